"""Pairs of rows in tiles, so that no answer needs all pairs at once; checks, notes and tables of all answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import one_of
from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.distances import is_clear, squared_distances
from armslength.estimates.estimate import Estimate
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shapes import (
    COUNTS_NOTE,
    POPULATIONS_NOTE,
    has_spread,
    some_labels,
    squared_shape_distances,
)
from armslength.estimates.totals import has_sure_total
from armslength.estimates.typical import large_enough
from armslength.results import Result
from armslength.sketches.sketches import Sketches

PairEstimator = Callable[[Sketches, Sketches | None], Estimate]

BY = ("size", "shape")
MORE, FEWER, NOT_FOUND = "more", "fewer", "no difference found"
ROWS, COLUMNS = 256, 2048  # half a million pairs to a tile: 4 MiB for each number of a pair
SMALL = 1024  # rows within which all pairs are one tile


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Result):
    """What answers have in common.

    Attributes:
        level: The confidence, for all of the answer together.
        by: "size" or "shape".
        beyond_chance: Whether the answer is about the populations behind the rows, and not about the people counted.
        note: What must be known to read it; empty if nothing.
    """

    level: float
    by: str
    beyond_chance: bool = False
    note: str

    def _table(self, columns: dict[str, Any], **metadata: str) -> pa.Table:
        """The columns as a table; `in_clear` is the same in all lines, since ranks and groups depend on all rows."""
        arrays = {
            name: pa.array(column, pa.string()) if isinstance(column, tuple | list) else pa.array(column)
            for name, column in columns.items()
        }
        if "in_clear" not in arrays:
            length = len(next(iter(arrays.values())))
            arrays["in_clear"] = pa.array(np.full(length, is_clear(self.note)))
        metadata |= {"by": self.by, "beyond_chance": str(self.beyond_chance).lower()}
        metadata |= {"level": repr(self.level), "note": self.note}
        return pa.table(arrays).replace_schema_metadata(metadata)

    @property
    def _unit(self) -> str:
        """The unit of a distance, for the label of an axis."""
        return ", data units" if self.by == "size" else ", of shapes"


@dataclass(frozen=True)
class Tile:
    """The pairs of consecutive rows of the left side with consecutive rows of the right side."""

    first_row: int
    first_column: int
    estimate: Estimate


def pair_estimator(by: str, *, beyond_chance: bool = False) -> PairEstimator:
    """Squared distances of rows as they are ("size"), or of rows divided by their totals ("shape")."""
    if one_of("by", by, BY) == "shape":
        return partial(squared_shape_distances, beyond_chance=beyond_chance)
    if beyond_chance:
        raise ParameterError("beyond_chance=True needs by='shape'", "beyond_chance", "by")
    return squared_distances


def best_question(sketches: Sketches) -> tuple[str, bool]:
    """(by, beyond_chance) of the question that people ask, as far as the releases allow it: do the populations' mixes differ?"""
    if sketches.totals is None or has_sure_total(sketches).sum() < min(2, len(sketches)):
        return "size", False
    return "shape", has_spread(sketches) and not sketches.noises.has_shared


def each_pair_once(a: Sketches, b: Sketches | None, estimator: PairEstimator) -> Iterator[Tile]:
    """Tiles with every row of a against every row of b, or with every pair within a once."""
    if b is not None:
        for start in range(0, len(b), COLUMNS):
            columns = b.span(start, start + COLUMNS)
            for rows in row_blocks(len(a)):
                yield Tile(rows.start, start, estimator(a.span(rows.start, rows.stop), columns))
    elif len(a) <= SMALL:
        yield Tile(0, 0, estimator(a, None))
    else:
        for rows in row_blocks(len(a)):
            yield from tiles_within(rows, a, estimator, from_diagonal=True)


def tiles_within(
    rows: range, sketches: Sketches, estimator: PairEstimator, *, from_diagonal: bool = False
) -> Iterator[Tile]:
    """Tiles with these rows against all rows (`from_diagonal`: without those before them)."""
    left = sketches.span(rows.start, rows.stop)
    # A tile of its own for the diagonal: there every row meets its own noise.
    yield Tile(rows.start, rows.start, estimator(left, None))
    for first, last in ((0, 0 if from_diagonal else rows.start), (rows.stop, len(sketches))):
        for start in range(first, last, COLUMNS):
            yield Tile(rows.start, start, estimator(left, sketches.span(start, min(start + COLUMNS, last))))


def row_blocks(count: int) -> Iterator[range]:
    """Consecutive blocks of rows."""
    return (range(start, min(start + ROWS, count)) for start in range(0, count, ROWS))


def answer_note(by: str, *others: str, beyond_chance: bool = False) -> str:
    """The note of an answer: which question it is for, and others; empty if there is nothing to note."""
    question = POPULATIONS_NOTE if beyond_chance else COUNTS_NOTE
    return "; ".join(filter(None, (question if by == "shape" else "", *others)))


def with_shapes(
    sketches: Sketches, by: str, at_least: int, *, beyond_chance: bool = False
) -> tuple[Sketches, str]:
    """The rows whose profiles something can be said of, if that is the question, and a note that names the others."""
    if by != "shape" or sketches.totals is None:
        return sketches, ""
    is_large = large_enough(sketches, beyond_chance=beyond_chance)
    if is_large.all():
        return sketches, ""
    names = some_labels(sketches.labels, ~is_large)
    if is_large.sum() < at_least:
        raise NotResolvableError(
            f"too few people to say anything about {names}; {plural(int(is_large.sum()), 'party is', 'parties are')} left, and this takes {at_least}"
        )
    return sketches[is_large], f"left out, because they have too few people to say anything: {names}"


def verdicts(lower: Floats, upper: Floats) -> tuple[str, ...]:
    """Of differences with these ends: whether there is more or fewer, or no difference was found."""
    words = np.where(lower > 0, MORE, np.where(upper < 0, FEWER, NOT_FOUND))
    return tuple(words.tolist())


def by_evidence(value: Floats, lower: Floats, upper: Floats) -> NDArray[np.int64]:
    """The order of differences by evidence: those that were found first, then by the size of a difference over that of its error."""
    size, half = np.abs(value), (upper - lower) / 2
    evidence = np.divide(size, half, out=np.where(size > 0, np.inf, 0.0), where=half > 0)
    return np.lexsort((-size, -evidence, (lower <= 0) & (upper >= 0)))


def checked_sketches(name: str, sketches: object, at_least: int) -> Sketches:
    """The sketches, if they are sketches of so many rows."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"{name} must be al.Sketches, got {type(sketches).__name__}", name)
    if len(sketches) < at_least:
        raise ParameterError(
            f"{name} must have at least {plural(at_least, 'row')}, got {len(sketches)}", name
        )
    return sketches
