"""The central baseline: one curator holds both vectors and adds Laplace noise to their exact distance.

Unit of privacy: whatever moves either vector by at most ρ, such as one person: ‖x − y‖₂ then moves by at most ρ. Every pair
that is asked for spends ε again, and the curator sees everything.
"""

import numpy as np
from numpy.typing import NDArray


def release(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    epsilon: float,
    radius: float,
    trials: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """That many independent noisy distances: ε-DP each, up to floating-point noise."""
    return np.linalg.norm(x - y) + generator.laplace(scale=radius / epsilon, size=trials)


def squared_distances(noisy: NDArray[np.float64], epsilon: float, radius: float) -> NDArray[np.float64]:
    """Unbiased estimates of the squared distance: the square less 2b²."""
    return noisy**2 - 2 * (radius / epsilon) ** 2
