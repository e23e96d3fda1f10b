"""The noisy histogram: Laplace noise of scale ρ/ε on every coordinate (Dwork, McSherry, Nissim & Smith 2006).

Unit of privacy: whatever moves a vector by at most ρ in ℓ1 norm, such as one person, at each party.
"""

import numpy as np
from numpy.typing import NDArray


def release(
    x: NDArray[np.float64], epsilon: float, radius: float, trials: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """That many independent releases: ε-DP for ‖x − x'‖₁ ≤ radius, up to floating-point noise."""
    return x + generator.laplace(scale=radius / epsilon, size=(trials, len(x)))


def squared_distances(
    a: NDArray[np.float64], b: NDArray[np.float64], epsilon: float, radius: float
) -> NDArray[np.float64]:
    """Unbiased estimates, row by row: ‖a − b‖² − 4d(ρ/ε)²."""
    estimates: NDArray[np.float64] = ((a - b) ** 2).sum(axis=1) - 4 * a.shape[1] * (radius / epsilon) ** 2
    return estimates
