"""All pairs of parties, or some of them: verdict, similarity and distance, with intervals."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import (
    DIFFER,
    INCONCLUSIVE,
    SAME,
    VERDICTS,
    Answer,
    Tile,
    alike_limit,
    answer_note,
    checked_sketches,
    each_pair_once,
    squared_distance_estimator,
    verdict_numbers,
    without_small,
)
from armslength.checks import integer, one_of
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import clear_note
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.questions import COUNTS, question, similarities_about
from armslength.progress import Advance, progress
from armslength.results import Column, distance_text, heading, line, sentences, similarity_text
from armslength.sketches.sketches import Sketches, check_same_space

_ROWS_IN_A_BATCH = 2**16  # so that a progress bar moves while they are written
_MOST_KEPT = 2**20  # pairs of which a table is made for a summary
_MOST_LINES = 30  # of the text
_MOST_IN_ALL = 3  # parties that are named as those in all inconclusive pairs
_WIDTH = len("0.9990 (0.9980 to 0.9999), not identical")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Answer):
    """Pairs of parties, each with a verdict, how similar they are, and how far apart, with intervals.

    The verdict is "differ" if a difference was found; "alike" if the similarity is surely at least `alike`, even where a difference was
    found, too; otherwise "inconclusive". With probability at least `level` all verdicts are true: for a given truth only one of the first
    two can be wrong. Iterating gives Arrow batches in memory that does not grow with the pairs, and so does reading it from another
    library that takes Arrow streams; `to_arrow` and `to_pandas` give one table.

    Attributes:
        left: The labels of the left side.
        right: The labels of the right side; None for the pairs within the left side.
        alike: The similarity (for counts: the distance) from which on parties are alike; None: no verdict is "alike".
        scope: What the level is for: "together", "each" or "fdr".
        verdict: The verdict of all pairs that are listed; None: any.
        is_ranked: Whether the pairs are in the order of their distances.
        schema: The columns.
        make_batches: What computes the batches.
    """

    left: tuple[str, ...]
    right: tuple[str, ...] | None
    alike: float | None
    scope: str
    verdict: str | None
    is_ranked: bool
    schema: pa.Schema
    make_batches: Callable[[], Iterator[pa.RecordBatch]]

    @property
    def pairs(self) -> int:
        """How many pairs were compared, also those that are not listed."""
        count = len(self.left)
        return count * (count - 1) // 2 if self.right is None else count * len(self.right)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.make_batches()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The batches for any library that takes Arrow streams."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self)).__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """One line for each pair: left, right, verdict, similarity, lower, upper, distance, distance_lower, distance_upper, in_clear.

        About counts there is no similarity: left, right, verdict, distance, lower, upper, in_clear.
        """
        return self._all if self.pairs <= _MOST_KEPT else pa.Table.from_batches(self, self.schema)

    @cached_property
    def _all(self) -> pa.Table:
        return pa.Table.from_batches(self, self.schema)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with a heat map of the distances of all pairs; hatched are those that are inconclusive."""
        columns = self.left if self.right is None else self.right
        shape = len(self.left), len(columns)
        value, known = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        table = self.to_arrow()
        places = [
            pc.index_in(table[name], pa.array(labels)).to_numpy()
            for name, labels in (("left", self.left), ("right", columns))
        ]
        is_known = pc.not_equal(table["verdict"], INCONCLUSIVE).to_numpy()
        for i, j in (places, places[::-1])[: 1 + (self.right is None)]:
            value[i, j], known[i, j] = table["distance"].to_numpy(), is_known
        label = f"distance{self._unit}"
        return plots.heat_map(value, known, (self.left, columns), label, ax, within=self.right is None)

    def counts(self) -> dict[str, int]:
        """How many of the listed pairs have each verdict."""
        found: Counter[str] = Counter()
        for batch in [self.to_arrow()] if self.pairs <= _MOST_KEPT else self:
            found.update(
                {each["values"]: each["counts"] for each in batch["verdict"].value_counts().to_pylist()}
            )
        return {verdict: found.get(verdict, 0) for verdict in VERDICTS}

    def most_different(self) -> tuple[str, str] | None:
        """The listed pair that surely differs most; None if none differs, or there are very many pairs.

        It is chosen by the ends of intervals: the estimate of a small party can be large by chance.
        """
        if self.pairs > _MOST_KEPT:
            return None
        table = self.to_arrow()
        table = table.filter(pa.array(np.array(table["verdict"].to_pylist()) == DIFFER))
        if not len(table):
            return None
        if self.about == COUNTS:
            row = int(np.argmax(table["lower"].to_numpy()))
        else:
            row = int(np.lexsort((-table["distance_lower"].to_numpy(), table["upper"].to_numpy()))[0])
        return table["left"][row].as_py(), table["right"][row].as_py()

    def _title(self) -> str:
        together = {
            "together": f"all {plural(self.pairs, 'pair')} together" if self.pairs > 1 else "one pair",
            "each": "each pair by itself",
            "fdr": "of the pairs said to differ, on average (false discovery rate)",
        }[self.scope]
        first = self._question(together)
        return f"{first}\n{self.summary()}" if self.pairs <= _MOST_KEPT else first

    def summary(self) -> str:
        """How many pairs differ, are alike or are inconclusive; and who is in all that are inconclusive."""
        counts = self.counts()
        total = sum(counts.values())
        if total < self.pairs:
            return f"{total:,} of {plural(self.pairs, 'pair')} are listed."
        limit = "similarity at least" if self.about != COUNTS else "distance at most"
        parts = [
            f"{counts[DIFFER]:,} of {plural(total, 'pair')} {'differs' if counts[DIFFER] == 1 else 'differ'}"
        ]
        for word, more in ((SAME, f" ({limit} {self.alike or 0:g})"), (INCONCLUSIVE, self._in_all())):
            if counts[word]:
                parts.append(f"{counts[word]:,} {'is' if counts[word] == 1 else 'are'} {word}{more}")
        return f"{', '.join(parts)}."

    def _in_all(self) -> str:
        """Who is in all pairs that are inconclusive, if these are few."""
        if self.pairs > _MOST_KEPT:
            return ""
        table = self.to_arrow()
        rows = zip(*(table[name].to_pylist() for name in ("left", "right", "verdict")), strict=True)
        pairs = [(left, right) for left, right, verdict in rows if verdict == INCONCLUSIVE]
        count = len(pairs)
        names: list[str] = []
        while pairs and len(names) < _MOST_IN_ALL:
            often = Counter(label for pair in pairs for label in pair)
            names.append(max(often, key=lambda label: often[label]))  # the first of equals
            pairs = [pair for pair in pairs if names[-1] not in pair]
        is_few = not pairs and count > len(names) and self.right is None
        return f"; all of them with {' or '.join(names)}" if is_few else ""

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        """The first pairs. How many there are with a verdict is not known before all are compared: then only these count."""
        if self.pairs <= _MOST_KEPT or self.is_ranked:
            return super()._head(rows)
        first = self.schema.empty_table()
        for batch in self:
            first = pa.concat_tables([first, pa.Table.from_batches([batch])]).slice(0, rows)
            if len(first) == rows:
                break
        return first, self.pairs if self.verdict is None else len(first)

    def __str__(self) -> str:
        if self.pairs > _MOST_KEPT:
            return repr(self)
        table = self.to_arrow()
        rows = table.to_pylist()
        if not self.is_ranked:
            order = {verdict: number for number, verdict in enumerate((DIFFER, INCONCLUSIVE, SAME))}
            rows.sort(key=lambda row: (order[row["verdict"]], *_by_number(row)))
        columns = [
            *(
                Column.of_labels(name, (row[name] for row in rows[:_MOST_LINES]))
                for name in ("left", "right")
            ),
            Column("verdict", len(INCONCLUSIVE)),
            Column(_number_name(self.about), _WIDTH),
        ]
        lines = [self._title(), "", heading(columns)]
        lines += [
            line(columns, [row["left"], row["right"], row["verdict"], number_words(row)])
            for row in rows[:_MOST_LINES]
        ]
        if len(rows) > _MOST_LINES:
            lines.append(f"… and {plural(len(rows) - _MOST_LINES, 'more pair')}")
        return sentences([*lines, ""], self.note)


def _by_number(row: dict[str, Any]) -> tuple[bool, float]:
    """Sorts pairs by the number that people read, the most different first; pairs of unknown similarity last."""
    if "similarity" not in row:
        return False, -np.nan_to_num(row["distance"])
    is_unknown = row["similarity"] is None or (row["lower"] <= 0 and row["upper"] >= 1)
    return is_unknown, row["similarity"] or 0.0


def _number_name(about: str) -> str:
    """The number that people read: the similarity, or for counts the distance."""
    return "distance" if about == COUNTS else "similarity"


def number_words(row: dict[str, Any]) -> str:
    """The number of a pair with its interval."""
    if "similarity" in row:
        value = float("nan") if row["similarity"] is None else row["similarity"]
        words = similarity_text(value, row["lower"], row["upper"])
        return f"{words}, not identical" if row["verdict"] == SAME and row["distance_lower"] > 0 else words
    return distance_text(row["distance"], row["lower"], row["upper"])


def compare(  # noqa: PLR0913  # two sides, and keywords that each choose one thing
    a: Sketches,
    b: Sketches | None = None,
    *,
    about: str | None = None,
    level: float = 0.95,
    each: bool = False,
    fdr: bool = False,
    alike: float | None = None,
    verdict: str | None = None,
    top: int | None = None,
    farthest: bool = False,
    keep: bool = False,
    show_progress: bool = False,
) -> Comparison:
    """Every row of a against every row of b, or each pair within a once: verdict, similarity and distance, with intervals.

    Args:
        a: Rows on the left.
        b: Rows on the right; None for the pairs within a.
        about: "populations" (do they differ, beyond chance?), "people" (do the people who were counted differ?) or "counts" (how far apart
            are the raw vectors?). None takes the first of them that the releases allow.
        level: The confidence of all verdicts together, and of all intervals of each kind.
        each: Whether the level is for each pair by itself.
        fdr: Whether the level is about false discoveries instead: of the pairs that are said to differ a share of at most 1 − level
            is wrong on average (Benjamini, Hochberg and Yekutieli). It assumes that errors of pairs are not negatively related, as those
            of pairs that share a row are not.
        alike: The similarity from which on two parties are alike (0.95); about counts the distance up to which they are (no default).
        verdict: Only pairs with this verdict.
        top: Only this many pairs, those of the smallest distances, nearest first.
        farthest: With `top`: those of the largest distances, farthest first.
        keep: Whether to keep parties that have too few people to say anything, which are left out of the pairs within a.
        show_progress: Whether to show a bar on a terminal.
    """
    checked_sketches("a", a, 2 if b is None else 1)
    right = a if b is None else checked_sketches("b", b, 1)
    check_same_space((*a.protocols, *right.protocols))
    about = question(about, *((a,) if b is None else (a, b)))
    limit = alike_limit(alike, about)
    left_out = ""
    if b is None:
        a, left_out = without_small(a, about, 2, keep=keep)
    count = _count(a, b)
    if fdr and each:
        raise ParameterError("fdr=True cannot be combined with each=True", "fdr", "each")
    together = Level.of(level, METHODS[0], 1 if each else count)  # checked before any work
    if verdict is not None:
        one_of("verdict", verdict, VERDICTS)
    if top is not None:
        integer("top", top, at_least=1, at_most=10**7)
    elif farthest:
        raise ParameterError("farthest=True needs top, a number of pairs", "farthest", "top")
    note = answer_note(about, clear_note(a, right), left_out)
    scope = "fdr" if fdr else "each" if each else "together"
    metadata = {"about": about, "level": repr(float(level)), "scope": scope, "note": note}
    schema = _schema(about).with_metadata(metadata)
    make_batches = partial(
        _compared,
        (a, b),
        schema,
        partial(_pairs, about=about, limit=limit, verdict=verdict),
        together,
        fdr=fdr,
        top=top,
        farthest=farthest,
        show_progress=show_progress,
    )
    return Comparison(
        left=a.labels,
        right=None if b is None else b.labels,
        alike=limit,
        scope=scope,
        verdict=verdict,
        is_ranked=top is not None,
        schema=schema,
        make_batches=make_batches,
        about=about,
        level=float(level),
        note=note,
    )


def _compared(
    sides: tuple[Sketches, Sketches | None],
    schema: pa.Schema,
    pairs: partial[pa.Table],
    together: Level,
    *,
    fdr: bool,
    top: int | None,
    farthest: bool,
    show_progress: bool,
) -> Iterator[pa.RecordBatch]:
    """The batches of a comparison."""
    about, count = pairs.keywords["about"], _count(*sides)
    distance_level = _discovery_level(*sides, about, together, count) if fdr else together
    pairs = partial(pairs, levels=(distance_level, together))
    with progress("compare", count, "pairs", show=show_progress) as advance:
        if top is not None:
            yield from _batches(_first(*sides, pairs, top, advance, farthest=farthest), schema)
            return
        for tile in each_pair_once(*sides):
            estimate = tile.estimate(squared_distance_estimator(about))
            parts = _batches(pairs(tile, estimate, estimate.lines()), schema)
            done = np.arange(len(parts) + 1) * _pair_count(estimate) // len(parts)
            for part, step in zip(parts, np.diff(done).tolist(), strict=True):
                yield part
                advance(step)


def _schema(about: str) -> pa.Schema:
    """The columns for this question."""
    numbers = ["distance", "lower", "upper"]
    if about != COUNTS:
        numbers = ["similarity", "lower", "upper", "distance", "distance_lower", "distance_upper"]
    fields = {
        **dict.fromkeys(("left", "right", "verdict"), pa.string()),
        **dict.fromkeys(numbers, pa.float64()),
    }
    return pa.schema(fields | {"in_clear": pa.bool_()})


def _discovery_level(a: Sketches, b: Sketches | None, about: str, together: Level, count: int) -> Level:
    """The level at which R pairs are found to differ, for the largest R that may be at it: R times the level for all pairs together.

    Benjamini and Hochberg's procedure, from above. Intervals at this level are those of Benjamini and Yekutieli.
    """
    found, estimator = count, squared_distance_estimator(about)
    while True:
        level = Level(together.tail * max(1, found), together.method)
        estimates = (tile.estimate(estimator) for tile in each_pair_once(a, b))
        lower_ends = (estimate.rule.interval(level)[0][estimate.lines()] for estimate in estimates)
        still = sum(int(np.count_nonzero(lower > 0)) for lower in lower_ends)
        if still >= found or found == 0:
            return level
        found = still


def _count(a: Sketches, b: Sketches | None) -> int:
    return len(a) * (len(a) - 1) // 2 if b is None else len(a) * len(b)


def _pair_count(estimate: Estimate) -> int:
    rows, columns = map(int, estimate.value.shape)
    return rows * (rows - 1) // 2 if estimate.within else rows * columns


def _pairs(
    tile: Tile,
    squares: Estimate,
    index: tuple[NDArray[np.int64], ...],
    *,
    about: str,
    levels: tuple[Level, Level],
    limit: float | None,
    verdict: str | None,
) -> pa.Table:
    """The pairs of a tile at this index, with their places, if they have this verdict.

    Args:
        tile: The pairs.
        squares: Their squared distances.
        index: Rows and columns within the tile.
        about: The question.
        levels: Of distances and of similarities.
        limit: From which similarity on, or up to which distance, parties are alike.
        verdict: Which pairs to keep; None for all.
    """
    square, *ends = (matrix[index] for matrix in (squares.value, *squares.rule.interval(levels[0])))
    distance, lower, upper = (np.sqrt(np.maximum(end, 0.0)) for end in (square, *ends))
    columns: dict[str, Any] = {"distance": distance, "lower": lower, "upper": upper}
    least = None
    if about != COUNTS:
        similar = tile.estimate(partial(similarities_about, about=about))
        ends = [matrix[index] for matrix in (similar.value, *similar.rule.interval(levels[1]))]
        least = ends[1]
        columns = dict(zip(("similarity", "lower", "upper"), ends, strict=True))
        columns |= {"distance": distance, "distance_lower": lower, "distance_upper": upper}
        for name in ("similarity", "distance"):
            columns[name] = pa.array(columns[name], from_pandas=True)  # NaN: unknown
    numbers = verdict_numbers(lower, upper, least, limit)
    rows, others = index
    places = {"row": rows + tile.first_row, "column": others + tile.first_column, "square": square}
    names = {**squares.label_columns(index), "verdict": pa.array(VERDICTS).take(pa.array(numbers))}
    table = pa.table({**places, **names, **columns, "in_clear": squares.clear_lines(index)})
    return table if verdict is None else table.filter(pa.array(numbers == VERDICTS.index(verdict)))


def _first(
    a: Sketches,
    b: Sketches | None,
    pairs: partial[pa.Table],
    count: int,
    advance: Advance,
    *,
    farthest: bool,
) -> pa.Table:
    """The pairs of the smallest distances, or of the largest, in order; equal ones by their rows."""
    order = {"square": "descending" if farthest else "ascending", "row": "ascending", "column": "ascending"}
    best: pa.Table | None = None
    last = -np.inf if farthest else np.inf
    for tile in each_pair_once(a, b):
        estimate = tile.estimate(squared_distance_estimator(pairs.keywords["about"]))
        better = estimate.value >= last if farthest else estimate.value <= last
        index = np.nonzero(np.triu(better, 1) if estimate.within else better)
        if len(index[0]):
            new = pairs(tile, estimate, index)
            both = new if best is None else pa.concat_tables([best, new])
            best = both.sort_by(list(order.items())).slice(0, count).combine_chunks()
            last = best["square"][-1].as_py() if len(best) == count else last
        advance(_pair_count(estimate))
    return best


def _batches(pairs: pa.Table | None, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The batches of an answer, without places; at least one, as every reader expects."""
    if pairs is None:
        return [pa.RecordBatch.from_pylist([], schema=schema)]
    table = pairs.select(schema.names).cast(schema).combine_chunks()
    return table.to_batches(_ROWS_IN_A_BATCH) or [pa.RecordBatch.from_pylist([], schema=schema)]
