"""How well clusters agree with a truth that is known: the adjusted Rand index."""

import numpy as np
from numpy.typing import NDArray


def adjusted_rand_index(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """1 for the same clusters, about 0 for clusters that have nothing to do with the truth.

    Reference: Hubert & Arabie 1985. scikit-learn has it too, and is no core dependency.
    """
    together = np.zeros((int(found.max()) + 1, int(truth.max()) + 1))
    np.add.at(together, (found, truth), 1)
    pairs = _pairs(together)
    in_found, in_truth = _pairs(together.sum(axis=1)), _pairs(together.sum(axis=0))
    expected = in_found * in_truth / _pairs(np.array([len(found)]))
    largest = (in_found + in_truth) / 2
    return 1.0 if largest == expected else float((pairs - expected) / (largest - expected))


def _pairs(counts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float((counts * (counts - 1) / 2).sum())
