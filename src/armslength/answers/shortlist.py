"""The pairs that may be answers of a search, or that count for ranks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Ends rise with the estimate up to rounding, which is far less than this.
_ALMOST = 1 + 2.0**-40
_GROUP = 256  # consecutive queries whose pairs are stored together: as many as a tile has

Floats = NDArray[np.float64]
# (queries, rows of the index, value, lower, upper)
_Pairs = tuple[NDArray[Any], ...]


class Answers(NamedTuple):
    """For each query its answers, nearest first, as squared distances, and what intervals say of all rows."""

    indices: NDArray[np.int64]
    value: Floats
    lower: Floats
    upper: Floats
    possible: NDArray[np.bool_]
    candidates: NDArray[np.int64]
    best_rank: NDArray[np.int64]
    worst_rank: NDArray[np.int64]


class Shortlist:
    """For each query the pairs of the smallest values, and of the smallest lower ends."""

    def __init__(self, queries: int, count: int) -> None:
        self.count = count
        self.least_upper = np.full(queries, np.inf)
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        self._groups: list[_Pairs] = [(whole, whole, real, real, real)] * -(-queries // _GROUP)

    def add(
        self, pairs: tuple[NDArray[np.int64], NDArray[np.int64]], value: Floats, lower: Floats, upper: Floats
    ) -> None:
        """Adds pairs (queries, rows of the index). Every pair must come once, or be sure not to matter."""
        np.minimum.at(self.least_upper, pairs[0], upper)
        groups = pairs[0] // _GROUP
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for part in np.split(order, starts)[1:]:
            group = groups[part[0]]
            both = zip(self._groups[group], (*pairs, value, lower, upper), strict=True)
            self._groups[group] = self._smallest_of(
                tuple(np.concatenate([old, new[part]]) for old, new in both)
            )

    def _smallest_of(self, pairs: _Pairs) -> _Pairs:
        """Those of the smallest values and of the smallest lower ends of each query."""
        queries, numbers, value, lower, _ = pairs
        wanted = np.zeros(len(queries), dtype=np.bool_)
        for key, most in ((value, self.count), (lower, self.count + 1)):
            order = np.lexsort((numbers, key, queries))
            wanted[order[_ranks(queries[order]) < most]] = True
        return tuple(each[wanted] for each in pairs)

    def add_tile(self, tile: tuple[Floats, Floats, Floats], first_query: int, first_number: int) -> None:
        """Adds consecutive queries with consecutive rows; a pair that does not count is infinity in all three."""
        # An infinite lower end is a row that is not there; an infinite upper end rules no row out.
        rows, columns = np.nonzero(tile[1] != np.inf)
        ends = (each[rows, columns] for each in tile)
        self.add((rows + first_query, columns + first_number), *ends)

    def answers(self) -> Answers:
        """The answers, once every pair was added."""
        parts = zip(*self._groups, strict=True)
        queries, numbers, value, lower, upper = (np.concatenate(each) for each in parts)
        n = len(self.least_upper)
        order = np.lexsort((numbers, value, queries))
        chosen = order[_ranks(queries[order]) < self.count].reshape(n, self.count)
        reach = self.least_upper * _ALMOST
        candidates = np.bincount(queries[lower <= reach[queries]], minlength=n)
        candidates = np.minimum(candidates, self.count + 1)
        low, high = lower[chosen], upper[chosen]
        # Among the answers alone: that many are surely nearer, whatever the other rows are.
        best_rank = 1 + _counts(np.sort(high, axis=1), low / _ALMOST)
        by_lower = np.lexsort((lower, queries))
        ranks = _ranks(queries[by_lower])
        near = by_lower[ranks <= self.count]
        lows = np.full((n, self.count + 1), np.inf)
        lows[queries[near], ranks[ranks <= self.count]] = lower[near]
        # The answer itself is one of those whose lower end does not lie above its upper end.
        possibly = _counts(lows, np.nextafter(high * _ALMOST, np.inf))
        worst_rank = np.maximum(possibly, best_rank)  # nothing lies below infinity, not even itself
        possible = low <= reach[:, None]
        return Answers(numbers[chosen], value[chosen], low, high, possible, candidates, best_rank, worst_rank)


def _counts(ascending: Floats, limits: Floats) -> NDArray[np.int64]:
    """For each row, how many of its numbers lie below each of its limits."""
    pairs = zip(ascending, limits, strict=True)
    return np.array([np.searchsorted(row, limit) for row, limit in pairs]).reshape(limits.shape)


def _ranks(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each within its group, for sorted groups."""
    places = np.arange(len(groups))
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return places - np.repeat(starts, np.diff(starts, append=len(groups)))
