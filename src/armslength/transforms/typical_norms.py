"""Sensitivities before a matrix is made: exact where they have a formula, else the median over seeds.

`GaussianJL`, `FastJL` and the sparse `SignJL` have sensitivities that depend on the published matrix. A plan makes no
matrices, so it takes the median of their law: that of the largest of d column norms. What a protocol then calibrates its
noise to is always the exact number of its own matrix.
"""

import math
from dataclasses import dataclass

from scipy.special import bdtrik, chdtri, log_ndtr, ndtr, pdtrik

from armslength.randomness.sampling import achlioptas_table, normal_table
from armslength.transforms.dense_jl import GaussianJL, SignJL
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import Transform


@dataclass(frozen=True)
class Sensitivities:
    """Of A, in integer units.

    Attributes:
        l1: Δ₁.
        l2_squared: Δ₂².
        is_exact: Whether every seed has these; otherwise they are medians.
    """

    l1: float
    l2_squared: float
    is_exact: bool


def typical_sensitivities(transform: Transform) -> Sensitivities:
    """What the sensitivities of such a transform are, without making its matrix."""
    k, d = transform.sketch_dim, transform.input_dim
    if d is not None and isinstance(transform, GaussianJL):
        second = float(normal_table().second_moment)
        return Sensitivities(math.sqrt(second) * _largest_l1(k, d), second * _largest_chi_square(k, d), False)
    if d is not None and isinstance(transform, FastJL):
        # An entry of P·H is nearly normal; rows of P differ in length, which costs degrees of freedom.
        second = 1 / (k * float(transform.scale_squared))
        degrees = k / (1 + (float(transform.entry_kurtosis) - 1) / transform.padded_dim)
        l1 = math.sqrt(second) * _largest_l1(k, d)
        return Sensitivities(l1, second * k / degrees * _largest_chi_square(degrees, d), False)
    if d is not None and isinstance(transform, SignJL) and transform.construction == "sparse":
        share = float(achlioptas_table().second_moment)
        entries = max(1, math.ceil(float(bdtrik(_median_of_largest(d), k, share))))
        return Sensitivities(entries, entries, False)
    return Sensitivities(transform.l1_sensitivity, transform.l2_sensitivity_squared, True)


def typical_operator_norm_squared(transform: Transform) -> tuple[float, bool]:
    """What ‖A‖² of such a transform is, without making its matrix, and whether every seed has it: for ℓ2 neighbors."""
    k, d = transform.sketch_dim, transform.input_dim
    s_is_one = isinstance(transform, SparseJL) and transform.sparsity == 1
    balanced = isinstance(transform, SparseJL) and transform.construction == "balanced"
    if d is None or isinstance(transform, (HadamardJL, Identity)) or (s_is_one and balanced):
        return float(transform.operator_norm_squared), True
    if s_is_one:
        return math.ceil(float(pdtrik(_median_of_largest(k), d / k))), False  # the fullest of k bins
    # A matrix of independent entries of variance v: ‖A‖ is near √v(√d + √k).
    variance = 1 / (k * float(transform.scale_squared))
    if isinstance(transform, FastJL):
        # Rows of P differ in length, and the longest counts.
        degrees = 2 * transform.padded_dim / (float(transform.entry_kurtosis) - 1)
        longest = _largest_chi_square(degrees, k) / degrees
        return variance * (math.sqrt(longest * transform.padded_dim) + math.sqrt(k)) ** 2, False
    rows = k - transform.sparsity if balanced and isinstance(transform, SparseJL) else k
    return variance * (math.sqrt(d) + math.sqrt(rows)) ** 2, False


def _median_of_largest(count: int) -> float:
    """The level that the largest of that many independent variables stays below half of the time: 2^(−1/count)."""
    return math.exp(-math.log(2) / count)


def _largest_chi_square(degrees: float, count: int) -> float:
    """The median of the largest of that many chi-square variables."""
    return float(chdtri(degrees, -math.expm1(-math.log(2) / count)))


def _largest_l1(k: int, count: int) -> float:
    """The median of the largest of that many sums of k magnitudes of standard normals.

    By Lugannani and Rice's saddlepoint formula for one sum, whose cumulant function is k(s²/2 + ln 2Φ(s)).
    """
    wanted = -math.expm1(-math.log(2) / count)
    low, high = 1e-6, 60.0
    for _ in range(60):
        s = (low + high) / 2
        low, high = (s, high) if _tail_of_l1(k, s)[1] > wanted else (low, s)
    return _tail_of_l1(k, low)[0]


def _tail_of_l1(k: int, s: float) -> tuple[float, float]:
    """(t, P(sum > t)) at the saddlepoint s > 0."""
    log_phi = float(log_ndtr(s))
    mills = math.exp(-s * s / 2 - log_phi) / math.sqrt(2 * math.pi)
    t = k * (s + mills)
    w = math.sqrt(max(2 * (s * t - k * (s * s / 2 + math.log(2) + log_phi)), 1e-12))
    u = s * math.sqrt(k * (1 - mills * (s + mills)))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return t, float(ndtr(-w)) + density * (1 / u - 1 / w)


# What a configuration costs, counted and not timed: bytes of a release, additions for a vector.


_BYTES_OF_AN_INTEGER = 8


def bytes_of_a_row(transform: Transform) -> int:
    """The integers of one released row; a file adds its protocol and card, a few kilobytes once."""
    return _BYTES_OF_AN_INTEGER * transform.sketch_dim


def additions(transform: Transform, density: float | None) -> int | None:
    """Integer additions for one vector of that density (None: every coordinate); None where nobody knows its length."""
    d, k = transform.input_dim, transform.sketch_dim
    if d is None:
        return None
    entries = math.ceil(d * (1.0 if density is None else density))
    if isinstance(transform, SparseJL):
        return transform.sparsity * entries + k
    if isinstance(transform, (HadamardJL, FastJL)):
        padded = transform.padded_dim
        walsh = padded * max(1, padded.bit_length() - 1)
        return walsh + (math.ceil(transform.density * padded * k) if isinstance(transform, FastJL) else k)
    return d if isinstance(transform, Identity) else entries * k
