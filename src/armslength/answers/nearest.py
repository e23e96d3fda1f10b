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
    alike_limit,
    answer_note,
    checked_sketches,
    each_pair_once,
    measure_words,
    measures,
    squared_distance_estimator,
    verdicts,
    without_small,
)
from armslength.answers.shortlist import Shortlist
from armslength.checks import integer
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import Pair, clear_note
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level, pair_intervals
from armslength.estimates.pair_noise import Floats, noise_classes
from armslength.estimates.questions import COUNTS, question, similarities_about
from armslength.progress import progress
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketches import Sketches, check_same_space

_LARGEST = 2.0**200  # a number whose fourth power, times many rows and coordinates, is a number still


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Nearest(Answer):
    """For each query the index rows of the smallest estimated distances, nearest first.

    With probability at least `level` every interval of a distance holds, for all queries together (with `each` for each query by itself).
    Then the truly nearest index row is one of the `candidates`, and the true rank of every answer (one more than the number
    of index rows that are truly nearer) lies from `best_rank` to `worst_rank`.

    Attributes:
        queries: The n queries' labels.
        labels: The labels of the n x count answers.
        indices: Their numbers in the index.
        verdict: Of each query and answer: "differ", "alike" or "inconclusive".
        similarity: n x count x 3: how similar they are, with both ends; None about counts.
        distance: n x count x 3: how far apart they are, with both ends.
        possible: Whether each answer could truly be the nearest of all index rows.
        candidates: For each query, how many index rows could; count + 1 stands for "more than were asked for".
        best_rank: For each answer, one more than the number of answers that are surely nearer.
        worst_rank: For each answer, its rank if all rows that could be nearer are; count + 1 stands for "or worse".
        each: Whether the level holds for each query by itself.
    """

    queries: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    indices: NDArray[np.int64]
    verdict: NDArray[np.str_]
    similarity: Floats | None
    distance: Floats
    possible: NDArray[np.bool_]
    candidates: NDArray[np.int64]
    best_rank: NDArray[np.int64]
    worst_rank: NDArray[np.int64]
    each: bool

    @property
    def surely_nearest(self) -> NDArray[np.bool_]:
        """For each query, whether its first answer is surely the nearest: nothing else is a candidate."""
        return np.equal(self.candidates, 1) & self.possible[:, 0]

    def to_arrow(self) -> pa.Table:
        """One line for each answer: query, rank, label, verdict, similarity, lower, upper, distance and its ends, possible, best_rank, worst_rank, in_clear.

        About counts there is no similarity, and lower and upper are those of the distance. `in_clear` says whether data without noise is
        part of the answers: ranks depend on all rows.
        """
        count = self.indices.shape[1]
        columns: dict[str, Any] = {
            "query": [label for label in self.queries for _ in range(count)],
            "rank": np.tile(np.arange(1, count + 1), len(self.queries)),
            "label": [label for row in self.labels for label in row],
            "verdict": self.verdict.ravel().tolist(),
        }
        columns |= measures(self.similarity, self.distance)
        columns |= {name: getattr(self, name).ravel() for name in ("possible", "best_rank", "worst_rank")}
        return self._table(columns)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of each answer, nearest first; answers that could be the nearest stand out."""
        names: list[Any] = list(self.labels[0])
        start = f" from {plots.short_name(self.queries[0])}"
        if len(self.queries) > 1:
            lines = zip(self.queries, self.labels, strict=True)
            names, start = [(query, label) for query, row in lines for label in row], ""
        words = ("could be the nearest", "cannot be the nearest")
        label, possible = f"distance{start}{self._unit}", self.possible.ravel()
        ends = plots.ends_of(self.distance)
        return plots.forest(names, ends, possible, label, ax, is_sorted=True, words=words)

    def _title(self) -> str:
        queries = plural(len(self.queries), "party", "parties")
        scope = "each party by itself" if self.each else "all parties together"
        sure = int(self.surely_nearest.sum())
        return f"{self._question(scope)}\nThe {self.indices.shape[1]} nearest of {queries}; the nearest is certain for {sure} of {len(self.queries)}."

    def __str__(self) -> str:
        number = "distance" if self.similarity is None else "similarity"
        columns = [
            Column.of_labels("party", self.queries),
            Column("rank", 4, is_number=True),
            Column.of_labels("nearest", (label for row in self.labels for label in row)),
            Column("verdict", len("inconclusive")),
            Column(number, 30),
            Column("", len("could be nearest")),
        ]
        lines = [self._title(), "", heading(columns)]
        # by their position: in a folder two queries may have one label
        for query, name in enumerate(self.queries):
            for rank, label in enumerate(self.labels[query]):
                state = "could be nearest" if self.possible[query, rank] else ""
                if self.surely_nearest[query] and not rank:
                    state = "nearest"
                words = measure_words(self.similarity, self.distance, (query, rank))
                lines.append(
                    line(columns, [name, rank + 1, label, str(self.verdict[query, rank]), words, state])
                )
        return sentences([*lines, ""], self.note)


def nearest(
    queries: Sketches,
    index: Sketches | None = None,
    *,
    count: int = 10,
    about: str | None = None,
    level: float = 0.95,
    each: bool = False,
    keep: bool = False,
    show_progress: bool = False,
) -> Nearest:
    """The `count` nearest index rows of each query, by estimated distance, with intervals and what they leave open.

    Exact in the estimates: every pair is compared, a block of pairs at a time. What noise adds is subtracted pair by
    pair before ranking, so an index whose rows have different noises is ranked correctly.

    Args:
        queries: Rows to ask about.
        index: Rows to search; None searches the queries themselves, each without itself.
        count: How many answers to give, at most as many as there are.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: With this probability all intervals hold.
        each: Whether the level is for each query by itself.
        keep: Whether to keep parties that have too few people to say anything.
        show_progress: Whether to show a bar on a terminal.
    """
    _check_size("queries", checked_sketches("queries", queries, 1))
    if index is not None:
        _check_size("index", checked_sketches("index", index, 1))
    about = question(about, *((queries,) if index is None else (queries, index)))
    queries, left_out = without_small(queries, about, 2 if index is None else 1, keep=keep)
    notes = [left_out]
    if index is None:
        rows = checked_sketches("index", queries, 2)
    else:
        rows, left_out = without_small(index, about, 1, keep=keep)
        notes.append(left_out)
    check_same_space((*queries.protocols, *rows.protocols))
    others = len(rows) - (index is None)
    answers_each = min(integer("count", count, at_least=1, at_most=2**31), others)
    # each pair once, as in `compare`: a pair has the same verdict there
    pairs = len(rows) * (len(rows) - 1) // 2 if index is None else len(queries) * len(rows)
    confidence = Level.of(level, METHODS[0], others if each else pairs)  # checked before any work
    shortlist = Shortlist(len(queries), answers_each)
    noise_of_row, _ = noise_classes(rows.noises)
    estimator = squared_distance_estimator(about)
    with progress("nearest", len(queries) * len(rows), "pairs", show=show_progress) as advance:
        for tile in each_pair_once(queries, None if index is None else rows):
            estimate = tile.estimate(estimator)
            both_ways = index is None and not estimate.within
            _add(tile, estimate, noise_of_row, confidence, shortlist, both_ways=both_ways)
            advance(estimate.value.size * (1 + both_ways))
    answers = shortlist.answers()
    ends = [np.sqrt(np.maximum(answers.pop(name), 0.0)) for name in ("value", "lower", "upper")]
    distance, similarity = np.stack(ends, axis=-1), None
    if about != COUNTS:
        similarity = np.empty_like(distance)
        for number, (query, line) in enumerate(zip(queries, answers["indices"].tolist(), strict=True)):
            similar = similarities_about(query, rows.rows(line), about)
            both = similar.rule.interval(confidence)
            similarity[number] = np.stack([similar.value[0], *(end[0] for end in both)], axis=-1)
    least = None if similarity is None else similarity[..., 1]
    return Nearest(
        **answers,
        queries=queries.labels,
        labels=tuple(tuple(rows.labels[number] for number in line) for line in answers["indices"].tolist()),
        verdict=verdicts(distance[..., 1], distance[..., 2], least, alike_limit(None, about)),
        similarity=similarity,
        distance=distance,
        each=each,
        about=about,
        level=float(level),
        note=answer_note(about, clear_note(queries, rows), *notes),
    )


def _check_size(name: str, rows: Sketches) -> None:
    """Raises an error for rows scaled until their squares, or those of their noises, overflow."""
    values = rows.values
    if values.dtype.kind == "f" and not max(values.max(initial=0), -values.min(initial=0)) < _LARGEST:
        raise ParameterError(f"{name} has numbers of 2^200 or more; divide its rows first", name)


def _add(
    tile: Tile,
    estimate: Estimate,
    noise_of_row: NDArray[np.int64],
    level: Level,
    shortlist: Shortlist,
    *,
    both_ways: bool,
) -> None:
    """Adds all pairs of a tile that can matter; `both_ways`: its rows are queries, and its columns, too."""
    value, rule = np.nan_to_num(estimate.value, nan=np.inf), estimate.rule
    is_pair = np.ones(value.shape, dtype=bool)
    if estimate.within:  # nobody is its own neighbor
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
