"""The nearest rows of each query: exact in the estimates, and how sure that is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.candidates import Candidates, Shortlist, rows_at_once
from armslength.answers.pairs import (
    Answer,
    PairEstimator,
    answer_note,
    checked_rows,
    checked_sketches,
    each_pair_once,
    pair_estimator,
    with_shapes,
)
from armslength.checks import integer
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import clear_note
from armslength.estimates.intervals import Level
from armslength.progress import Advance, progress
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketch_file import Collection
from armslength.sketches.sketches import Sketches, check_same_space

_ROWS, _NUMBERS = 2**16, 2**24  # of the index that are read at once, at most
_LARGEST = 2.0**200  # a number whose fourth power, times many rows and coordinates, is a number still


@dataclass(frozen=True, eq=False, repr=False)
class Nearest(Answer):
    """For each query the index rows of the smallest estimated distances, nearest first, in data units.

    With probability at least `level`, for each query (with `simultaneous` for all together), every interval holds. Then
    the truly nearest index row is one of the `candidates`, and the true rank of every answer (one more than the number
    of index rows that are truly nearer) lies from `best_rank` to `worst_rank`.

    Attributes:
        queries: The n queries' labels.
        labels: The labels of the n x count answers.
        indices: Their numbers in the index.
        value: Their estimated distances.
        lower: The lower ends.
        upper: The upper ends.
        possible: Whether each answer could truly be the nearest of all index rows.
        candidates: For each query, how many index rows could; count + 1 stands for "more than were asked for".
        best_rank: For each answer, one more than the number of answers that are surely nearer.
        worst_rank: For each answer, its rank if all rows that could be nearer are; count + 1 stands for "or worse".
        simultaneous: Whether the level holds for all queries together.
    """

    queries: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    indices: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    possible: NDArray[np.bool_]
    candidates: NDArray[np.int64]
    best_rank: NDArray[np.int64]
    worst_rank: NDArray[np.int64]
    simultaneous: bool

    @property
    def surely_nearest(self) -> NDArray[np.bool_]:
        """For each query, whether its first answer is surely the nearest: nothing else is a candidate."""
        return np.equal(self.candidates, 1) & self.possible[:, 0]

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """For each answer, whether its interval leaves out 0."""
        return np.greater(self.lower, 0)

    def to_arrow(self) -> pa.Table:
        """One line for each answer: query, rank, label, value, lower, upper, resolved, possible, best_rank, worst_rank, in_clear.

        `in_clear` says whether data without noise is part of the answers: ranks depend on all rows.
        """
        count = self.indices.shape[1]
        names = ("value", "lower", "upper", "resolved", "possible", "best_rank", "worst_rank")
        columns = {
            "query": [label for label in self.queries for _ in range(count)],
            "rank": np.tile(np.arange(1, count + 1), len(self.queries)),
            "label": [label for row in self.labels for label in row],
            **{name: getattr(self, name).ravel() for name in names},
        }
        return self._table(columns, quantity="distances")

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of each answer, nearest first; answers that could be the nearest stand out."""
        names: list[Any] = list(self.labels[0])
        start = f" from {plots.short_name(self.queries[0])}"
        if len(self.queries) > 1:
            lines = zip(self.queries, self.labels, strict=True)
            names, start = [(query, label) for query, row in lines for label in row], ""
        ends = (self.value.ravel(), self.lower.ravel(), self.upper.ravel())
        words = ("could be the nearest", "cannot be the nearest")
        label, possible = f"distance{start}{self._unit}", self.possible.ravel()
        return plots.forest(names, ends, possible, label, ax, is_sorted=True, words=words)

    def _title(self) -> str:
        queries = plural(len(self.queries), "query", "queries")
        sure = f"{int(self.surely_nearest.sum())} of them surely"
        return f"The {self.indices.shape[1]} nearest of {queries}, {sure}, at {self.level:.6g}"

    def __str__(self) -> str:
        columns = [
            Column.of_labels("query", self.queries),
            Column("rank", 4, is_number=True),
            Column.of_labels("nearest", (label for row in self.labels for label in row)),
            *map(Column.of_numbers, ("distance", "from", "to")),
            Column("", len("could be nearest, not told from equal")),
        ]
        lines = [heading(columns)]
        # by their position: in a folder two queries may have one label
        surely_nearest = np.repeat(self.surely_nearest, self.indices.shape[1])
        for pair, is_sure in zip(self.to_arrow().to_pylist(), surely_nearest, strict=True):
            states = []
            if pair["possible"]:
                states.append("surely nearest" if is_sure else "could be nearest")
            if not pair["resolved"]:
                states.append("not told from equal")
            cells = [pair[name] for name in ("query", "rank", "label", "value", "lower", "upper")]
            lines.append(line(columns, [*cells, ", ".join(states)]))
        together = "for all queries together" if self.simultaneous else "for each query"
        lines.append(f"all intervals of a query hold at {100 * self.level:.6g}%, {together}")
        return sentences(lines, self.note)


def nearest(  # noqa: PLR0913  # each chooses one thing
    queries: Sketches,
    index: Sketches | Collection | None = None,
    count: int = 10,
    level: float = 0.95,
    *,
    by: str = "size",
    beyond_chance: bool = False,
    method: str = "asymptotic",
    simultaneous: bool = False,
    show_progress: bool = False,
) -> Nearest:
    """The `count` nearest index rows of each query, by estimated distance, with intervals and what they leave open.

    Exact in the estimates: every pair counts, and no matrix of all pairs is made. What noise adds is subtracted pair by
    pair before ranking, so an index whose rows have different noises is ranked correctly.

    Args:
        queries: Rows to ask about.
        index: Rows to search, read once, block by block; None searches the queries themselves, each without itself.
        count: How many answers to give, at most as many as there are.
        level: With this probability all intervals of a query hold.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether the level holds for all queries together instead of for each.
        show_progress: Whether to show a bar on a terminal.
    """
    _check_size("queries", checked_sketches("queries", queries, 1))
    queries, without = with_shapes(queries, by, 1)
    left_out = [without]
    if isinstance(index, Sketches):
        index, without = with_shapes(index, by, 1)
        left_out.append(without)
    index_rows = checked_rows("index", queries if index is None else index, 2 if index is None else 1)
    check_same_space((*queries.protocols, *index_rows.protocols))
    others = len(index_rows) - (index is None)
    answers_each = min(integer("count", count, at_least=1, at_most=2**31), others)
    confidence = Level.of(level, method, others * (len(queries) if simultaneous else 1))  # before any work
    estimator = pair_estimator(by, beyond_chance=beyond_chance)
    shortlist = Shortlist(len(queries), answers_each)
    search = Candidates(queries, answers_each, confidence, within=index is None) if by == "size" else None
    first, clear = 0, clear_note(queries)
    with progress("nearest", len(queries) * len(index_rows), "pairs", show=show_progress) as advance:
        for block in index_rows.blocks(rows_at_once(queries.values.shape[1], _ROWS, _NUMBERS)):
            _check_size("index", block)
            if search is None or not search.search(block, first, shortlist, advance):
                place = first, index is None
                _search_tiles(queries, block, estimator, confidence, shortlist, place, advance)
            clear = clear or clear_note(block)
            first += len(block)
            del block  # or it would stay while the next is read
        if search is not None:
            search.finish(shortlist)
    answers = shortlist.answers()
    answers |= {name: np.sqrt(np.maximum(answers[name], 0.0)) for name in ("value", "lower", "upper")}
    note = answer_note(by, clear, *left_out, beyond_chance=beyond_chance)
    answers |= {"queries": queries.labels, "labels": _labels(index_rows, answers["indices"])}
    answers["simultaneous"] = simultaneous
    return Nearest(**answers, level=level, by=by, beyond_chance=beyond_chance, note=note)


def _check_size(name: str, rows: Sketches) -> None:
    """Raises an error for rows scaled until their squares, or those of their noises, overflow."""
    values = rows.values
    if values.dtype.kind == "f" and not max(values.max(initial=0), -values.min(initial=0)) < _LARGEST:
        raise ParameterError(f"{name} must have numbers below 2^200, got larger ones; divide its rows first")


def _search_tiles(
    queries: Sketches,
    block: Sketches,
    estimator: PairEstimator,
    confidence: Level,
    shortlist: Shortlist,
    place: tuple[int, bool],
    advance: Advance,
) -> None:
    """Adds every pair of the queries with a block, with its interval; for any estimator and any noises."""
    first, within = place
    for tile in each_pair_once(queries, block, estimator):
        value = np.nan_to_num(tile.estimate.value, nan=np.inf)  # shapes without a total come last
        lower, upper = tile.estimate.rule.interval(confidence)
        start = first + tile.first_column
        if within:  # nobody is its own neighbor
            rows, columns = (np.arange(size) for size in value.shape)
            lower = np.where(np.equal.outer(rows + tile.first_row, columns + start), np.inf, lower)
        shortlist.add_tile((value, lower, upper), tile.first_row, start)
        advance(value.size)


def _labels(index_rows: Sketches | Collection, indices: NDArray[np.int64]) -> tuple[tuple[str, ...], ...]:
    """The labels of the answers."""
    if isinstance(index_rows, Sketches):  # no copy of rows
        names: Any = index_rows.labels
    else:
        numbers = np.unique(indices).tolist()
        names = dict(zip(numbers, index_rows.rows(numbers).labels, strict=True))
    return tuple(tuple(names[number] for number in row) for row in indices.tolist())
