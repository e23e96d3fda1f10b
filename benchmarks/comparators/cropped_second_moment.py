"""The cropped second moment by randomized response (Mir, Muthukrishnan, Nikolov & Wright 2010), reconstructed.

Unit of privacy: everything about one coordinate of z = x − y, which one curator sees. The paper's mechanism keeps a counter
and a bit for each coordinate of a stream; here the bit is drawn once, from the coordinate's cropped square.
"""

import math

import numpy as np
from numpy.typing import NDArray


def shares(z: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """min(zᵢ², τ)/τ."""
    return np.minimum(z**2, threshold) / threshold


def release(
    z: NDArray[np.float64], threshold: float, epsilon: float, trials: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """That many independent releases of a bit for each coordinate: ε-DP for any change of one coordinate."""
    t = math.tanh(epsilon / 2)
    return generator.random((trials, len(z))) < 0.5 - t / 2 + t * shares(z, threshold)


def cropped_moments(bits: NDArray[np.bool_], threshold: float, epsilon: float) -> NDArray[np.float64]:
    """Unbiased estimates of Σmin(zᵢ², τ), row by row."""
    t = math.tanh(epsilon / 2)
    estimates: NDArray[np.float64] = threshold * (bits - (0.5 - t / 2)).sum(axis=1) / t
    return estimates
