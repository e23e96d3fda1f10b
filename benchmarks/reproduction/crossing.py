"""The δ at which Laplace and Gaussian noise cross, for several s, beside the printed e^(−s) (erratum 10)."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import armslength as al
from armslength.laws import Cumulants
from armslength.protocol.neighbors import calibrated_law
from reproduction.methods import METHODS, Setting, measured

SPARSITIES = (1, 2, 3, 4, 6, 8, 10, 12)
_EPSILON = Fraction(1)
_SMALL, _LARGE = 0.0, 1e12  # squared distances: where κ₄ + 2κ₂² decides, and where κ₂ does


def crossings() -> list[dict[str, Any]]:
    """For each s: the printed δ, and the exact ones for small and for large distances; Laplace wins below."""
    found = []
    for s in SPARSITIES:
        small, large = (crossing(s, distance) for distance in (_SMALL, _LARGE))
        found.append({"sparsity": s, "printed": math.exp(-s), "small": small, "large": large})
    return found


def crossing(sparsity: int, squared_distance: float) -> float:
    """The δ at which both laws have the same variance, by bisection of its logarithm."""
    transform = al.SparseJL(sketch_dim=64 * sparsity, sparsity=sparsity, seed="crossing")
    radius = al.Protocol(transform, epsilon=1).grid_radius

    def variance(noise: str, delta: Fraction) -> float:
        law, _ = calibrated_law(noise, transform, radius, _EPSILON, delta, "output")
        pair = Cumulants(2 * law.cumulants.k2, 2 * law.cumulants.k4)
        _, slope, constant = transform.variance_curve(pair, "output")
        return slope * squared_distance + constant

    laplace = variance("laplace", Fraction(1, 2))
    low, high = -60.0, -0.01  # log10 δ: Gaussian noise falls as δ grows
    for _ in range(40):
        middle = (low + high) / 2
        delta = Fraction(10**middle)
        low, high = (middle, high) if variance("gaussian", delta) > laplace else (low, middle)
    return 10**high


def measured_at_crossing(sparsity: int) -> tuple[float, float]:
    """The ratio of both laws' measured errors at the δ of small distances, and its standard error: it should be 1."""
    # So short a distance, and so large a sketch, that the noise's own terms are all that counts.
    setting = replace(
        Setting(), squared_distance=4, sketch_dim=480, sparsity=sparsity, delta=crossing(sparsity, 4.0)
    )
    by_name = {method.name: method for method in METHODS}
    laplace, laplace_error = measured(by_name["SJLT, paper's s, Laplace"], setting, "crossing")
    gaussian, gaussian_error = measured(by_name["SJLT, Gaussian"], setting, "crossing")
    ratio = laplace / gaussian
    return ratio, ratio * math.hypot(laplace_error / laplace, gaussian_error / gaussian)
