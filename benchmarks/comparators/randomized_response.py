"""Randomized response: every bit is flipped with probability 1/(1 + e^ε) (Warner 1965).

Unit of privacy: one bit of a vector, at the party that holds it. Nobody needs to be trusted with the vector.
"""

import math

import numpy as np
from numpy.typing import NDArray


def release(
    bits: NDArray[np.bool_], epsilon: float, trials: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """That many independent releases of a binary vector: ε-DP for a change of one bit."""
    flips = generator.random((trials, len(bits))) < 1 / (1 + math.exp(epsilon))
    return bits ^ flips


def squared_distances(a: NDArray[np.bool_], b: NDArray[np.bool_], epsilon: float) -> NDArray[np.float64]:
    """Unbiased estimates of the Hamming distance, row by row: (d − (d − 2·differing)/ρ²)/2, ρ = tanh(ε/2)."""
    d = a.shape[1]
    differing = (a ^ b).sum(axis=1)
    estimates: NDArray[np.float64] = (d - (d - 2 * differing) / math.tanh(epsilon / 2) ** 2) / 2
    return estimates
