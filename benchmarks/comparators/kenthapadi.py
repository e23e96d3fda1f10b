"""Independent normal projections with normal noise (Kenthapadi, Korolova, Mironov & Mishra 2013).

Unit of privacy: whatever moves a vector by at most ρ in ℓ1 norm, at each party, **if** the noise belongs to the sensitivity
of the very matrix that is used. Assuming a sensitivity, as the paper's theorem does with high probability over the
matrix, is not enough: the matrix is public, and once it is drawn its longest column is what it is.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from armslength.planner.predictions import unit_sigma
from armslength.privacy.exact_numbers import exact_number


def projection(sketch_dim: int, input_dim: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """A public k x d matrix with independent N(0, 1/k) entries (erratum 2: the printed variance is 1)."""
    return generator.normal(scale=1 / math.sqrt(sketch_dim), size=(sketch_dim, input_dim))


def sensitivity(matrix: NDArray[np.float64]) -> float:
    """Δ₂ of a matrix: its longest column."""
    return math.sqrt(float((matrix**2).sum(axis=0).max()))


def sigma_for(l2_sensitivity: float, epsilon: float, delta: float) -> float:
    """The σ of the analytic Gaussian mechanism at this sensitivity."""
    return l2_sensitivity * unit_sigma(exact_number("epsilon", epsilon), exact_number("delta", delta))


def printed_sigma(epsilon: float, delta: float) -> float:
    """The σ of the printed theorem, 4·√ln(1/δ)/ε, which assumes Δ₂ ≤ 2."""
    return 4 * math.sqrt(math.log(1 / delta)) / epsilon


def actual_delta(l2_sensitivity: float, sigma: float, epsilon: float) -> float:
    """The δ that noise of this σ really gives at that sensitivity and ε (Balle & Wang 2018)."""
    ratio = l2_sensitivity / sigma
    upper = math.exp(float(log_ndtr(ratio / 2 - epsilon / ratio)))
    lower = math.exp(epsilon + float(log_ndtr(-ratio / 2 - epsilon / ratio)))
    return upper - lower


def release(
    x: NDArray[np.float64],
    matrix: NDArray[np.float64],
    sigma: float,
    trials: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """That many independent releases under one public matrix."""
    return matrix @ x + generator.normal(scale=sigma, size=(trials, len(matrix)))


def squared_distances(a: NDArray[np.float64], b: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Unbiased estimates, row by row: ‖a − b‖² − 2kσ²."""
    estimates: NDArray[np.float64] = ((a - b) ** 2).sum(axis=1) - 2 * a.shape[1] * sigma**2
    return estimates
