"""Exact search: every pair is looked at, rounded to 16 bits, and measured where that cannot rule it out.

Of one noise, both ends of an interval rise with the estimate. So the smallest count + 1 estimates among the rows of one noise
have all that these rows can add: the answers, the smallest upper end, and count + 1 of the smallest lower ends.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import PAIR_ROWS, PAIR_WIDTH
from armslength.answers.heaps import Asked, Columns, Heaps, meet
from armslength.answers.rounding import LARGEST_DIM, Center, Rounded, margin, panel_order
from armslength.answers.sharing import Holders, Pairs, shared_values
from armslength.answers.shortlists import Shortlist
from armslength.estimates.intervals import Level, pair_intervals
from armslength.estimates.pair_noise import PairNoise, PairNoises, noise_classes
from armslength.estimates.variance import ErrorModel
from armslength.progress import Advance
from armslength.sketches.sketches import Sketches
from armslength.threads import available_threads, for_blocks

MOST_CLASSES = 32  # noises of the index; each has heaps of its own
ROWS = 16_384  # of the index at once, at most
_ROUNDED = 2**23  # bytes of theirs, rounded, that stay in a shared cache
_QUERIES = 42 * PAIR_ROWS  # that stay in a core's own cache


class ExactSearch:
    """The queries, and the best of what they have met so far.

    Args:
        queries: The n queries.
        count: How many answers each will get.
        held: (level, method, pairs) of the intervals.
        within: Whether the index is the queries themselves: nobody is its own neighbor.
    """

    def __init__(self, queries: Sketches, count: int, held: tuple[float, str, int], *, within: bool) -> None:
        self._queries, self._kept, self._held, self._within = queries, count + 1, held, within
        self._holders = Holders(queries, within=within)
        self._classes, self._query_noises = noise_classes(queries)
        self._model = ErrorModel.of(queries.protocols[0])
        self._prepared: tuple[Center, Asked] | None = None
        self._noises: dict[PairNoise, int] = {}  # of the index: the number of its heaps
        self._heaps: list[Heaps] = []

    def take(self, block: Sketches, first_number: int, shortlist: Shortlist, advance: Advance) -> bool:
        """Meets consecutive rows of the index; False, and nothing is done, if they are none for this search.

        That is so if the rows have too many different noises, if too many pairs share one, if their numbers are of another
        type than those before, or if there are too many coordinates.
        """
        kind = self._queries.values.dtype
        kind = kind if kind == block.values.dtype else np.dtype(np.float64)
        if block.values.shape[1] > LARGEST_DIM:
            return False
        prepared = self._prepared = self._prepared or _prepared(self._queries, kind)
        if prepared[1].values.dtype != kind:
            return False
        shared = self._holders.pairs_with(block, first_number, 4 * (len(self._queries) + len(block)))
        classes = None if shared is None else self._numbered(block)
        if shared is None or classes is None:
            return False
        if len(shared[0]):
            value, noises = shared_values(self._queries, block, shared)
            ends = pair_intervals(self._model, noises, value, Level.of(*self._held))
            shortlist.add((shared[0], shared[1] + first_number), value, *ends)
        skipped = _with_own(shared, first_number, len(block)) if self._within else shared
        offsets, at_once = block.offsets, rows_in_cache(block.values.shape[1])
        for start in range(0, len(block), at_once):
            rows = slice(start, min(start + at_once, len(block)))
            here = (skipped[1] >= rows.start) & (skipped[1] < rows.stop)
            pairs = skipped[0][here], skipped[1][here] - start
            self._meet(
                prepared, block.values[rows], offsets[rows], first_number + start, classes[rows], pairs
            )
            advance(len(self._queries) * (rows.stop - start))
        return True

    def finish(self, shortlist: Shortlist) -> None:
        """Gives the shortlist what the heaps hold."""
        for noise, number in self._noises.items():
            heaps = self._heaps[number]
            queries, numbers, value = heaps.entries()
            different = [mine.plus(noise) for mine in self._query_noises]
            noises = PairNoises.of(different, self._classes[queries])
            ends = pair_intervals(self._model, noises, value, Level.of(*self._held))
            shortlist.add((queries, numbers), value, *ends)

    def _numbered(self, block: Sketches) -> NDArray[np.int64] | None:
        """For each row the number of its heaps; None if there would be too many."""
        classes, noises = noise_classes(block)
        new = [number for number, noise in enumerate(noises) if noise not in self._noises]
        if len(self._heaps) + len(new) > MOST_CLASSES:
            return None
        for number in new:
            self._noises[noises[number]] = len(self._heaps)
            k2 = [mine.plus(noises[number]).cumulants.k2 for mine in self._query_noises]
            bias = self._model.bias * np.array(k2)[self._classes]
            self._heaps.append(Heaps.empty(self._kept, bias, self._model.unit))
        return np.array([self._noises[noise] for noise in noises], dtype=np.int64)[classes]

    def _meet(
        self,
        prepared: tuple[Center, Asked],
        values: NDArray[Any],
        offsets: NDArray[np.float64],
        first_number: int,
        classes: NDArray[np.int64],
        skipped: Pairs,
    ) -> None:
        """All queries meet some rows, but for the pairs that are skipped."""
        center, asked = prepared
        rows = np.ascontiguousarray(values, dtype=asked.values.dtype)
        order, spans = panel_order(classes, len(self._heaps))
        rounded = Rounded.of(rows, offsets, order, PAIR_WIDTH, center)
        counts = np.bincount(skipped[0], minlength=len(asked.values))
        columns = Columns(
            rows,
            offsets,
            first_number,
            rounded.words,
            order,
            *rounded.column_factors(center, order),
            (np.concatenate([[0], np.cumsum(counts)]), skipped[1]),
        )

        def work(first: int, last: int) -> None:
            for heaps, panels in zip(self._heaps, spans, strict=True):
                meet(asked, columns, panels, heaps, (first, last))

        share = -(-len(asked.values) // (available_threads() * PAIR_ROWS)) * PAIR_ROWS
        for_blocks(len(asked.values), min(share, _QUERIES), work)


def rows_in_cache(coordinates: int) -> int:
    """How many rows are met at once: what a cache holds of them, but a panel at least."""
    return min(ROWS, max(PAIR_WIDTH, _ROUNDED // (2 * coordinates)))


def _with_own(pairs: Pairs, first_query: int, rows: int) -> Pairs:
    """The pairs, and each of these consecutive rows with itself, whether or not it has a noise; by query."""
    own = np.arange(rows)
    queries, columns = np.concatenate([pairs[0], own + first_query]), np.concatenate([pairs[1], own])
    order = np.lexsort((columns, queries))
    return queries[order], columns[order]


def _prepared(queries: Sketches, kind: np.dtype[Any]) -> tuple[Center, Asked]:
    """The queries as the hot loop wants them, in numbers of this type."""
    values, offsets = np.ascontiguousarray(queries.values, dtype=kind), queries.offsets
    center = Center.of(values, offsets)
    rounded, words = Rounded.queries(values, offsets, center)
    rounds = rounded.scale > 0
    scale = np.where(rounds, rounded.scale, center.length)
    asked = Asked(
        values,
        offsets,
        words,
        rounded.square,
        rounded.slack,
        (center.length / (2 * scale)).astype(np.float32),
        np.where(rounds, 1 / (2 * scale * center.length), 0.0),
        margin(values.shape[1]),
    )
    return center, asked
