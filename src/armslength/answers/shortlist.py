"""The smallest values and lower ends of each query, kept while pairs come in any order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.pair_noise import Floats

# Ends rise with the estimate up to rounding, which is far less than this.
_ALMOST = 1 + 2.0**-40
_NO_ROW = np.iinfo(np.int64).max  # the number of a row where there is none yet

Numbers = NDArray[np.int64]


class Smallest:
    """For each query the pairs of the smallest keys, in ascending order; of equal keys, the first rows."""

    def __init__(self, queries: int, kept: int, others: int = 0) -> None:
        shape = queries, kept
        self.key, self.number = np.full(shape, np.inf), np.full(shape, _NO_ROW)
        self.columns: list[NDArray[Any]] = [self.key, self.number]
        self.columns += [np.full(shape, np.inf) for _ in range(others)]  # what is kept beside a key

    @property
    def is_row(self) -> NDArray[np.bool_]:
        """Where there is a pair."""
        return np.asarray(self.number != _NO_ROW)

    def add(self, queries: Numbers, numbers: Numbers, key: Floats, *others: Floats) -> None:
        """Adds pairs of queries and rows, each of which must come once."""
        worst, last = self.key[queries, -1], self.number[queries, -1]
        better = (key < worst) | ((key == worst) & (numbers < last))
        if not better.any():
            return
        changed, kept = np.unique(queries[better]), self.key.shape[1]
        groups = np.concatenate([np.repeat(changed, kept), queries[better]])
        pairs = zip(self.columns, (key, numbers, *others), strict=True)
        both = [np.concatenate([old[changed].ravel(), new[better]]) for old, new in pairs]
        order = np.lexsort((both[1], both[0], groups))
        # Every group has at least as many pairs as are kept.
        starts = np.searchsorted(groups[order], changed)
        smallest = order[starts[:, None] + np.arange(kept)]
        for column, values in zip(self.columns, both, strict=True):
            column[changed] = values[smallest]


class Shortlist:
    """For each query the pairs of the smallest values, and of the smallest lower ends."""

    def __init__(self, queries: int, count: int) -> None:
        self.count = count
        self.least_upper = np.full(queries, np.inf)
        self._nearest, self._lowest = Smallest(queries, count, others=2), Smallest(queries, count + 1)

    def add(self, queries: Numbers, numbers: Numbers, value: Floats, lower: Floats, upper: Floats) -> None:
        """Adds pairs of queries and rows of the index. Every pair must come once, or be sure not to matter."""
        np.minimum.at(self.least_upper, queries, upper)
        self._nearest.add(queries, numbers, value, lower, upper)
        self._lowest.add(queries, numbers, lower)

    def answers(self) -> dict[str, Any]:
        """The answers, once every pair was added: attributes of `Nearest`, with squared distances."""
        value, numbers, low, high = self._nearest.columns
        lows, reach = self._lowest.key, self.least_upper[:, None] * _ALMOST
        candidates = (self._lowest.is_row & (lows <= reach)).sum(axis=1)
        # Among the answers alone: that many are surely nearer, whatever the other rows are.
        best_rank = 1 + _counts(np.sort(high, axis=1), low / _ALMOST)
        # The answer itself is one of those whose lower end does not lie above its upper end.
        possibly = _counts(lows, np.nextafter(high * _ALMOST, np.inf))
        worst_rank = np.maximum(possibly, best_rank)  # nothing lies below infinity, not even itself
        answers = {"indices": numbers, "value": value, "lower": low, "upper": high, "possible": low <= reach}
        return {**answers, "candidates": candidates, "best_rank": best_rank, "worst_rank": worst_rank}


def _counts(ascending: Floats, limits: Floats) -> Numbers:
    """For each row, how many of its numbers lie below each of its limits."""
    pairs = zip(ascending, limits, strict=True)
    return np.array([np.searchsorted(row, limit) for row, limit in pairs]).reshape(limits.shape)
