"""The nearest rows of each query: exact in the estimates, and how sure that is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import (
    Answer,
    Tile,
    answer_note,
    checked_sketches,
    each_pair_once,
    pair_estimator,
    with_shapes,
)
from armslength.answers.shortlist import Shortlist
from armslength.checks import integer
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import Pair, clear_note
from armslength.estimates.intervals import Level, pair_intervals
from armslength.estimates.pair_noise import Floats, noise_classes
from armslength.progress import progress
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketches import Sketches, check_same_space

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
    index: Sketches | None = None,
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

    Exact in the estimates: every pair is compared, a block of pairs at a time. What noise adds is subtracted pair by
    pair before ranking, so an index whose rows have different noises is ranked correctly.

    Args:
        queries: Rows to ask about.
        index: Rows to search; None searches the queries themselves, each without itself.
        count: How many answers to give, at most as many as there are.
        level: With this probability all intervals of a query hold.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether the level holds for all queries together instead of for each.
        show_progress: Whether to show a bar on a terminal.
    """
    estimator = pair_estimator(by, beyond_chance=beyond_chance)  # refuses what does not go together
    _check_size("queries", checked_sketches("queries", queries, 1))
    queries, left_out = with_shapes(queries, by, 1, beyond_chance=beyond_chance)
    notes = [left_out]
    if index is None:
        rows = checked_sketches("index", queries, 2)
    else:
        _check_size("index", checked_sketches("index", index, 1))
        rows, left_out = with_shapes(index, by, 1, beyond_chance=beyond_chance)
        notes.append(left_out)
    check_same_space((*queries.protocols, *rows.protocols))
    others = len(rows) - (index is None)
    answers_each = min(integer("count", count, at_least=1, at_most=2**31), others)
    confidence = Level.of(level, method, others * (len(queries) if simultaneous else 1))  # before any work
    shortlist = Shortlist(len(queries), answers_each)
    noise_of_row, _ = noise_classes(rows.noises)
    with progress("nearest", len(queries) * len(rows), "pairs", show=show_progress) as advance:
        for tile in each_pair_once(queries, None if index is None else rows, estimator):
            both_ways = index is None and not tile.estimate.within
            _add(tile, noise_of_row, confidence, shortlist, both_ways=both_ways)
            advance(tile.estimate.value.size * (1 + both_ways))
    answers = shortlist.answers()
    answers |= {name: np.sqrt(np.maximum(answers[name], 0.0)) for name in ("value", "lower", "upper")}
    labels = tuple(tuple(rows.labels[number] for number in line) for line in answers["indices"].tolist())
    answers |= {"queries": queries.labels, "labels": labels, "simultaneous": simultaneous}
    note = answer_note(by, clear_note(queries, rows), *notes, beyond_chance=beyond_chance)
    return Nearest(**answers, level=level, by=by, beyond_chance=beyond_chance, note=note)


def _check_size(name: str, rows: Sketches) -> None:
    """Raises an error for rows scaled until their squares, or those of their noises, overflow."""
    values = rows.values
    if values.dtype.kind == "f" and not max(values.max(initial=0), -values.min(initial=0)) < _LARGEST:
        raise ParameterError(f"{name} has numbers of 2^200 or more; divide its rows first", name)


def _add(
    tile: Tile, noise_of_row: NDArray[np.int64], level: Level, shortlist: Shortlist, *, both_ways: bool
) -> None:
    """Adds all pairs of a tile that can matter; `both_ways`: its rows are queries, and its columns, too."""
    value, rule = np.nan_to_num(tile.estimate.value, nan=np.inf), tile.estimate.rule
    is_pair = np.ones(value.shape, dtype=bool)
    if tile.estimate.within:  # nobody is its own neighbor
        np.fill_diagonal(is_pair, False)

    def add(chosen: tuple[NDArray[np.int64], ...], lower: Floats, upper: Floats) -> None:
        rows, columns = chosen[0] + tile.first_row, chosen[1] + tile.first_column
        for queries, numbers in ((rows, columns), (columns, rows))[: 1 + both_ways]:
            shortlist.add(queries, numbers, value[chosen], lower, upper)

    if not isinstance(rule, Pair):
        lower, upper = rule.interval(level)
        chosen = np.nonzero(is_pair)
        add(chosen, lower[chosen], upper[chosen])
        return
    if rule.noises.shared is not None:
        pairs, merged = rule.noises.shared
        kept = is_pair[pairs]
        is_pair[pairs] = False
        ends = pair_intervals(rule.model, merged, value[pairs], level)
        add(tuple(axis[kept] for axis in pairs), *(end[kept] for end in ends))
    others = np.where(is_pair, value, np.inf)
    smallest = _smallest(others, noise_of_row[tile.first_column :], shortlist.count + 1)
    if both_ways:
        smallest |= _smallest(others.T.copy(), noise_of_row[tile.first_row :], shortlist.count + 1).T
    chosen = np.nonzero(smallest & is_pair)
    add(chosen, *pair_intervals(rule.model, rule.noises.take(chosen), value[chosen], level))


def _smallest(value: Floats, noises: NDArray[np.int64], kept: int) -> NDArray[np.bool_]:
    """Where the smallest values of each row are: so many of each noise of the columns, and all that equal the last of these.

    No others matter: both ends of an interval rise with the estimate, among pairs of one query with rows of one noise.
    """
    smallest = np.ones(value.shape, dtype=bool)
    noises = noises[: value.shape[1]]
    for noise, count in enumerate(np.bincount(noises).tolist()):
        if count > kept:
            columns = np.flatnonzero(noises == noise) if count < len(noises) else slice(None)
            part = value[:, columns]
            smallest[:, columns] = part <= np.partition(part, kept - 1, axis=1)[:, kept - 1 : kept]
    return smallest
