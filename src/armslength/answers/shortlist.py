"""What is left of all pairs that queries have met: enough for the answers, and for what the intervals leave open."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Ends are read off lines that meet up to rounding, and so rise with the estimate up to rounding: far less than this.
_ALMOST = 1 + 2.0**-40
_TOGETHER = 256  # consecutive queries whose pairs are held together: as many as a tile has

# (queries, rows of the index), (value, lower, upper)
_Held = tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.float64], ...]]


@dataclass(frozen=True)
class Answers:
    """For each query its answers, nearest first, and what intervals say of all rows; squared distances."""

    indices: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    possible: NDArray[np.bool_]
    candidates: NDArray[np.int64]
    best_rank: NDArray[np.int64]
    worst_rank: NDArray[np.int64]


class Shortlist:
    """Pairs that may be answers, or that count: for each query the smallest values, and the smallest lower ends.

    Args:
        queries: How many there are.
        count: How many answers each will get.
    """

    def __init__(self, queries: int, count: int) -> None:
        self.count = count
        self.least_upper = np.full(queries, np.inf)
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        self._held: list[_Held] = [((whole, whole), (real, real, real))] * -(-queries // _TOGETHER)

    def add(
        self,
        pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
        value: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
    ) -> None:
        """Meets pairs (queries, rows of the index): every pair must come once, or be known not to matter."""
        np.minimum.at(self.least_upper, pairs[0], upper)
        places = pairs[0] // _TOGETHER
        order = np.argsort(places, kind="stable")
        starts = np.flatnonzero(np.diff(places[order], prepend=-1))
        for here in np.split(order, starts)[1:]:
            place = places[here[0]]
            parts, ends = self._held[place]
            self._held[place] = self._smallest_of(
                tuple(np.concatenate([old, new[here]]) for old, new in zip(parts, pairs, strict=True)),
                tuple(
                    np.concatenate([old, new[here]])
                    for old, new in zip(ends, (value, lower, upper), strict=True)
                ),
            )

    def _smallest_of(
        self, parts: tuple[NDArray[np.int64], ...], ends: tuple[NDArray[np.float64], ...]
    ) -> _Held:
        """What is kept of these pairs: of each query the smallest values, and the smallest lower ends."""
        (queries, numbers), (value, lower, _) = parts, ends
        wanted = np.zeros(len(queries), dtype=np.bool_)
        for key, most in ((value, self.count), (lower, self.count + 1)):
            order = np.lexsort((numbers, key, queries))
            wanted[order[_ranks(queries[order]) < most]] = True
        return tuple(each[wanted] for each in parts), tuple(each[wanted] for each in ends)

    def add_tile(
        self,
        tile: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
        first_query: int,
        first_number: int,
    ) -> None:
        """Meets a tile of consecutive queries with consecutive rows; a pair that does not count is infinity in all three."""
        value, lower, upper = tile
        wanted = np.zeros(value.shape, dtype=np.bool_)
        for key, most in ((value, self.count), (lower, self.count + 1)):
            np.put_along_axis(wanted, _smallest(key, most), values=True, axis=1)
        # An infinite lower end is a row that is not there; an infinite upper end rules no row out.
        wanted &= lower != np.inf
        last = first_query + len(value)
        np.minimum(
            self.least_upper[first_query:last], upper.min(axis=1), out=self.least_upper[first_query:last]
        )
        rows, columns = np.nonzero(wanted)
        self.add(
            (rows + first_query, columns + first_number),
            *(each[rows, columns] for each in (value, lower, upper)),
        )

    def answers(self) -> Answers:
        """The answers, once every pair was met."""
        queries, numbers = (
            np.concatenate(each) for each in zip(*(parts for parts, _ in self._held), strict=True)
        )
        value, lower, upper = (
            np.concatenate(each) for each in zip(*(ends for _, ends in self._held), strict=True)
        )
        n = len(self.least_upper)
        order = np.lexsort((numbers, value, queries))
        chosen = order[_ranks(queries[order]) < self.count].reshape(n, self.count)
        reach = self.least_upper * _ALMOST
        candidates = np.bincount(queries[lower <= reach[queries]], minlength=n)
        low, high = lower[chosen], upper[chosen]
        # Among the answers alone: that many are surely nearer, whatever the other rows are.
        surely_nearer = _counts(np.sort(high, axis=1), low / _ALMOST)
        by_lower = np.lexsort((lower, queries))
        ranks = _ranks(queries[by_lower])
        near = by_lower[ranks <= self.count]
        lows = np.full((n, self.count + 1), np.inf)
        lows[queries[near], ranks[ranks <= self.count]] = lower[near]
        # The answer itself is one of those whose lower end does not lie above its upper end.
        possibly = _counts(lows, np.nextafter(high * _ALMOST, np.inf))
        return Answers(
            numbers[chosen],
            value[chosen],
            low,
            high,
            low <= reach[:, None],
            np.minimum(candidates, self.count + 1),
            1 + surely_nearer,
            np.maximum(possibly, 1 + surely_nearer),  # nothing lies below infinity, not even itself
        )


def _counts(rising: NDArray[np.float64], limits: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each row, how many of its rising numbers lie below each of its limits."""
    pairs = zip(rising, limits, strict=True)
    return np.array([np.searchsorted(row, limit) for row, limit in pairs]).reshape(limits.shape)


def _ranks(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each within its group, for groups that lie together."""
    places = np.arange(len(groups))
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return places - np.repeat(starts, np.diff(starts, append=len(groups)))


def _smallest(matrix: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Where the smallest of each row are; of equal ones the first."""
    if matrix.shape[1] <= count:
        return np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
    best = np.argpartition(matrix, count - 1, axis=1)[:, :count]
    largest = np.take_along_axis(matrix, best, axis=1).max(axis=1, keepdims=True)
    tied = np.flatnonzero((matrix <= largest).sum(axis=1) > count)
    if len(tied):
        best[tied] = np.argsort(matrix[tied], axis=1, kind="stable")[:, :count]
    return best
