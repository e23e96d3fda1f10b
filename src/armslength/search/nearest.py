"""Who is nearest to whom: exact in the estimates, tile by tile, and how sure that is."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import integer, one_of
from armslength.errors import ParameterError
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.squared_distances import checked_pair
from armslength.progress import progress
from armslength.protocol.sketches import Sketches
from armslength.search.blocks import row_blocks, tiles_of
from armslength.search.measures import checked_sketches, noted, squared_measure


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each query the index rows of the smallest estimated distances, nearest first, in data units.

    With probability at least `level`, for each query (with `simultaneous` for all queries together): every interval of
    that query holds, so that the index row that is truly nearest is one of its `candidates`.

    Attributes:
        queries: The n queries' labels.
        labels: The labels of the n x count answers.
        indices: Their numbers in the index.
        value: Their estimated distances.
        lower: The lower ends.
        upper: The upper ends.
        possible: Whether each answer could truly be the nearest of all index rows.
        candidates: For each query, how many index rows could; count + 1 stands for "more than were asked for".
        level: The confidence.
        simultaneous: Whether it holds for all queries together.
        by: "size" or "shape".
        note: What must be known to read it; empty if nothing.
    """

    queries: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    indices: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    possible: NDArray[np.bool_]
    candidates: NDArray[np.int64]
    level: float
    simultaneous: bool
    by: str
    note: str

    @property
    def surely_nearest(self) -> NDArray[np.bool_]:
        """For each query, whether its first answer is surely the nearest: nothing else is a candidate."""
        only_one: NDArray[np.bool_] = self.candidates == 1
        return only_one & self.possible[:, 0]

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """For each answer, whether its interval leaves out 0."""
        return np.greater(self.lower, 0)

    def to_arrow(self) -> pa.Table:
        """One line for each answer: query, rank, label, value, lower, upper, resolved, possible."""
        count = self.indices.shape[1]
        columns = {
            "query": pa.array([label for label in self.queries for _ in range(count)], pa.string()),
            "rank": np.tile(np.arange(1, count + 1), len(self.queries)),
            "label": pa.array([label for row in self.labels for label in row], pa.string()),
            "value": self.value.ravel(),
            "lower": self.lower.ravel(),
            "upper": self.upper.ravel(),
            "resolved": self.resolved.ravel(),
            "possible": self.possible.ravel(),
        }
        meta = {"quantity": "distances", "by": self.by, "level": repr(self.level), "note": self.note}
        return pa.table(columns).replace_schema_metadata(meta)

    def __str__(self) -> str:
        lines = []
        for query, names, sure, candidates in zip(
            self.queries, self.labels, self.surely_nearest, self.candidates, strict=True
        ):
            shown = f"{candidates}" if candidates <= len(names) else f"more than {len(names)}"
            how = "surely" if sure else f"one of {shown} that could be"
            lines.append(f"{query}: nearest is {names[0]} ({how}, at {self.level:.6g})")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def nearest(
    queries: Sketches,
    index: Sketches | None = None,
    count: int = 10,
    level: float = 0.95,
    *,
    by: str = "size",
    method: str = "spread",
    simultaneous: bool = False,
    show_progress: bool = False,
) -> Nearest:
    """The `count` nearest index rows of each query, by estimated distance, with intervals and what they leave open.

    Exact in the estimates: every pair is looked at, in tiles. What noise adds is subtracted pair by pair before ranking, so
    an index whose rows have different noises is ranked rightly.

    Args:
        queries: Rows to ask about.
        index: Rows to search; None searches the queries themselves, each without itself.
        count: How many answers to give, at most as many as there are.
        level: With this probability all intervals of a query hold.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        method: "spread" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether the level holds for all queries together instead of for each.
        show_progress: Whether to show a bar on a terminal.
    """
    checked_sketches("queries", queries, 1)
    checked_sketches("index", queries if index is None else index, 2 if index is None else 1)
    _, right = checked_pair(queries, index)
    others = len(right) - (index is None)
    kept = min(integer("count", count, at_least=1, at_most=2**31), others)
    one_of("method", method, METHODS)
    if not isinstance(simultaneous, bool):
        raise ParameterError("simultaneous must be True or False, got something else")
    pairs = others * (len(queries) if simultaneous else 1)
    Level.of(level, method, pairs)  # before any work
    measure = squared_measure(by)
    parts = []
    with progress("nearest", len(queries) * len(right), "pairs", shown=show_progress) as advance:
        for rows in row_blocks(len(queries)):
            shortlist = _Shortlist.empty(len(rows), kept)
            for tile in tiles_of(rows, queries, index, measure):
                lower, upper = tile.ends(level, method, pairs)
                value = tile.estimate.value
                if index is None and tile.estimate.within:
                    value, lower, upper = (_without_diagonal(each) for each in (value, lower, upper))
                shortlist.take(value, lower, upper, tile.first_column)
                advance(value.size)
            parts.append(shortlist)
    note = noted(by, queries, right)
    return _joined(parts, queries.labels, right.labels, (level, simultaneous, by, note))


def _without_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    changed = matrix.copy()
    np.fill_diagonal(changed, np.inf)
    return changed


@dataclass
class _Shortlist:
    """The best of what some queries have met so far."""

    value: NDArray[np.float64]  # n x count: squared estimates, in the order of the index
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    indices: NDArray[np.int64]
    least_lower: NDArray[np.float64]  # n x (count + 1): the smallest lower ends of all rows
    least_upper: NDArray[np.float64]  # n: the smallest upper end

    @classmethod
    def empty(cls, queries: int, count: int) -> "_Shortlist":
        nothing = np.full((queries, count), np.inf)
        numbers = np.full((queries, count), -1, dtype=np.int64)
        most = np.full((queries, count + 1), np.inf)
        return cls(nothing, nothing, nothing, numbers, most, np.full(queries, np.inf))

    def take(
        self,
        value: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        first_column: int,
    ) -> None:
        """Meets a tile; what may not be an answer is infinity."""
        count = self.value.shape[1]
        best = _smallest(value, count)
        found = [np.take_along_axis(each, best, axis=1) for each in (value, lower, upper)]
        value, low, high = (
            np.concatenate(both, axis=1)
            for both in zip((self.value, self.lower, self.upper), found, strict=True)
        )
        numbers = np.concatenate([self.indices, best + first_column], axis=1)
        best = _smallest(value, count)
        self.value, self.lower, self.upper, self.indices = (
            np.take_along_axis(each, best, axis=1) for each in (value, low, high, numbers)
        )
        lows = np.concatenate([self.least_lower, lower], axis=1)
        self.least_lower = np.take_along_axis(lows, _smallest(lows, count + 1), axis=1)
        self.least_upper = np.minimum(self.least_upper, upper.min(axis=1))


def _smallest(matrix: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Where the smallest of each row are, from left to right; of equal ones the first."""
    if matrix.shape[1] <= count:
        return np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
    best = np.argpartition(matrix, count - 1, axis=1)[:, :count]
    largest = np.take_along_axis(matrix, best, axis=1).max(axis=1, keepdims=True)
    tied = np.flatnonzero((matrix <= largest).sum(axis=1) > count)
    if len(tied):
        best[tied] = np.argsort(matrix[tied], axis=1, kind="stable")[:, :count]
    return np.sort(best, axis=1)


def _joined(
    parts: list[_Shortlist],
    queries: tuple[str, ...],
    index: tuple[str, ...],
    said: tuple[float, bool, str, str],
) -> Nearest:
    value, lower, upper, indices = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("value", "lower", "upper", "indices")
    )
    order = np.lexsort((indices, value), axis=1)
    value, lower, upper, indices = (
        np.take_along_axis(each, order, axis=1) for each in (value, lower, upper, indices)
    )
    least_lower = np.concatenate([part.least_lower for part in parts])
    least_upper = np.concatenate([part.least_upper for part in parts])[:, None]
    return Nearest(
        queries,
        tuple(tuple(index[number] for number in row) for row in indices.tolist()),
        indices,
        np.sqrt(np.maximum(value, 0.0)),
        np.sqrt(lower),
        np.sqrt(upper),
        lower <= least_upper,
        # An infinite lower end is a row that is not there; an infinite upper end rules no row out.
        ((least_lower <= least_upper) & np.isfinite(least_lower)).sum(axis=1),
        *said,
    )
