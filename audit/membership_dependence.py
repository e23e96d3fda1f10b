"""Noise of different coordinates must be independent: a test between neighbors that would gain if it were not.

The likelihood ratio takes independence for granted and looks only at coordinates that a neighbor moves: noise that is shared between
coordinates is unseen by it where one is moved, though the difference of two of them then gives the data away. This test looks at all
coordinates. It measures their covariance in releases of one world and weighs them as is best for it.
"""

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.noise.draw import draw
from audit.membership_cases import Case
from audit.membership_faults import Releaser

Floats = NDArray[np.float64]

# One case of each law in which a neighbor moves one coordinate, and leaves the others as they are.
DEPENDENCE_CASES = ("SparseJL block, s=1, Laplace", "SparseJL block, s=1, Gaussian")
_RELEASES = 20_000  # from which the covariance is measured; others are attacked
_RIDGE = 1e-6  # of the mean variance: shared noise has a covariance that cannot be inverted


class LinearTest:
    """The best linear test for noise of the covariance that a few releases show.

    Args:
        case: The neighbors and their protocol.
        releaser: How rows are released.
    """

    def __init__(self, case: Case, releaser: Releaser) -> None:
        both = np.stack([case.x, case.other])
        first, second = al.sketch_in_clear(case.protocol, both, items=case.items).values
        seen = releaser(case, np.broadcast_to(case.x, (_RELEASES, len(case.x))).copy()).values - first
        covariance = seen.T @ seen / _RELEASES
        covariance += _RIDGE * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        self._weights = np.linalg.solve(covariance, second - first)
        self._middle = (first + second) / 2

    def statistic(self, released: al.Sketches) -> Floats:
        """One number for each row: larger where the other neighbor is likelier."""
        return np.asarray((released.values - self._middle) @ self._weights)


def release_with_shared_noise(case: Case, X: NDArray[np.generic]) -> al.Sketches:
    """A release with a fault: every coordinate of a row gets the same noise."""
    clear = al.sketch_in_clear(case.protocol, X, items=case.items)
    noise = draw(case.protocol.law, (len(X), 1))
    return al.Sketches(clear.values + noise, None, clear.noises, clear.protocols)
