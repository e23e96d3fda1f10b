"""A secret projection (Blocki, Blum, Datta & Sheffet 2012): the matrix is kept secret and is the noise.

Unit of privacy: a change of one coordinate, or of one party's vector, by norm at most ρ, **while one curator holds all
vectors and never shows the matrix**. Parties that keep their vectors to themselves cannot do it: they would have to share
the matrix, and whoever knows it undoes the projection.
"""

import numpy as np
from numpy.typing import NDArray

from comparators.formulas import SecretProjection


def release(
    vectors: NDArray[np.float64], method: SecretProjection, generator: np.random.Generator
) -> NDArray[np.float64]:
    """One release about all vectors (n x d) at once, n x r: (M·X + w·G)ᵀ with fresh secret M and G.

    (ε, δ)-DP by the theorem in docs/comparison.md.
    """
    count, dimension = vectors.shape
    secret = generator.normal(size=(dimension, method.rows))
    return vectors @ secret + method.width * generator.normal(size=(count, method.rows))


def squared_distance(
    released: NDArray[np.float64], method: SecretProjection, first: int, second: int
) -> float:
    """An unbiased estimate of the squared distance of two of the vectors: ‖u − v‖²/r − 2w²."""
    difference = released[first] - released[second]
    return float((difference**2).sum()) / method.rows - 2 * method.width**2
