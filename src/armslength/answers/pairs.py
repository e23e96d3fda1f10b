"""Pairs of rows in tiles, so that no answer needs all pairs at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import clear_note, squared_distances
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Bounds, Level
from armslength.estimates.shapes import NOTE, squared_shape_distances
from armslength.sketches.collection import Collection
from armslength.sketches.sketches import Sketches

Measure = Callable[[Sketches, Sketches | None], Estimate]

ROWS, COLUMNS = 256, 2048  # half a million pairs to a tile: 4 MiB for each number of a pair
SMALL = 1024  # rows within which all pairs are one tile
HELD = 4096  # rows of a collection that are held while all others pass by: the other side is read once for each so many


@dataclass(frozen=True)
class Tile:
    """The pairs of some consecutive rows with some consecutive columns.

    Attributes:
        first_row: Where its rows begin on the left side.
        first_column: Where its columns begin on the right side.
        estimate: The pairs; `estimate.within` says that rows and columns are the same.
    """

    first_row: int
    first_column: int
    estimate: Estimate

    def ends(self, level: float, method: str, pairs: int) -> Bounds:
        """(lower, upper) of every pair, each one of `pairs` that hold together at this level."""
        return ends(self.estimate, level, method, pairs)

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of its pairs within the tile, each pair once."""
        if self.estimate.within:
            rows, columns = np.triu_indices(len(self.estimate.value), 1)
            return rows, columns
        rows, columns = np.divmod(np.arange(self.estimate.value.size), self.estimate.value.shape[1])
        return rows, columns


def ends(estimate: Estimate, level: float, method: str, pairs: int) -> Bounds:
    """(lower, upper) of every estimate, each one of `pairs` that hold together at this level (Bonferroni)."""
    return estimate.rule.interval(Level.of(level, method, pairs))


def row_blocks(count: int) -> Iterator[range]:
    """Consecutive blocks of rows."""
    return (range(start, min(start + ROWS, count)) for start in range(0, count, ROWS))


def each_pair_once(
    a: Sketches | Collection, b: Sketches | Collection | None, measure: Measure
) -> Iterator[Tile]:
    """Tiles that hold every row of a against every row of b, or every pair within a once.

    Sketches come rows first. Of a collection some thousand rows are held at a time, and meet every block of the other side.
    """
    if b is None and len(a) <= SMALL:
        yield Tile(0, 0, measure(a if isinstance(a, Sketches) else a.to_sketches(), None))
    elif isinstance(a, Sketches) and not isinstance(b, Collection):
        for rows in row_blocks(len(a)):
            yield from tiles_of(rows, a, b, measure, from_diagonal=True)
    else:
        yield from _passing_by(a, b, measure)


def _passing_by(
    a: Sketches | Collection, b: Sketches | Collection | None, measure: Measure
) -> Iterator[Tile]:
    """The same where a side is read from files: nothing of it stays longer than it is needed."""
    first_row = 0
    # What is in memory anyway is held as a whole, and the other side is read once.
    for held in a.blocks(HELD) if isinstance(a, Collection) else iter([a]):
        if b is None:
            for rows in row_blocks(len(held)):
                for tile in tiles_of(rows, held, None, measure, from_diagonal=True):
                    yield replace(
                        tile,
                        first_row=first_row + tile.first_row,
                        first_column=first_row + tile.first_column,
                    )
        first_column = 0 if b is not None else first_row + len(held)
        for columns in (a if b is None else b).blocks(COLUMNS, first_column):
            for rows in row_blocks(len(held)):
                part = held.span(rows.start, rows.stop)
                yield Tile(first_row + rows.start, first_column, measure(part, columns))
            first_column += len(columns)
        first_row += len(held)


def tiles_of(
    rows: range,
    a: Sketches,
    b: Sketches | Collection | None,
    measure: Measure,
    *,
    from_diagonal: bool = False,
) -> Iterator[Tile]:
    """Tiles that hold these rows of a against all rows of b, or against all rows of a.

    Args:
        rows: Consecutive rows.
        a: Where they are.
        b: The other side; None for a itself.
        measure: What is estimated.
        from_diagonal: Within a: whether to leave out what lies to the left of the rows' own tile.
    """
    left = a.span(rows.start, rows.stop)
    if b is None and not from_diagonal:
        yield from _across(left, rows.start, a.span(0, rows.start), 0, measure)
    if b is None:
        # A tile of its own for the diagonal: there every row meets its own noise.
        yield Tile(rows.start, rows.start, measure(left, None))
    yield from _across(left, rows.start, a if b is None else b, 0 if b is not None else rows.stop, measure)


def _across(
    left: Sketches, first_row: int, right: Sketches | Collection, first_column: int, measure: Measure
) -> Iterator[Tile]:
    """Tiles of these rows with all of the right side from a column on."""
    starts = range(first_column, len(right), COLUMNS)
    for start, columns in zip(starts, right.blocks(COLUMNS, first_column), strict=True):
        yield Tile(first_row, start, measure(left, columns))


# Pairs as lines of an answer: who, with whom, and the estimate.


@dataclass(frozen=True)
class Lines:
    """Some pairs by number and by label, with their estimates."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    left: pa.Array
    right: pa.Array
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    in_clear: NDArray[np.bool_]  # whether data without noise is part of the pair

    @classmethod
    def none(cls) -> "Lines":
        """No pair."""
        numbers, labels, values = np.empty(0, dtype=np.int64), pa.array([], pa.string()), np.empty(0)
        return cls(numbers, numbers, labels, labels, values, values, values, np.empty(0, dtype=np.bool_))

    def take(self, wanted: NDArray[np.int64]) -> "Lines":
        """Some of the lines, by number."""
        return Lines(
            self.rows[wanted],
            self.columns[wanted],
            self.left.take(pa.array(wanted)),
            self.right.take(pa.array(wanted)),
            self.value[wanted],
            self.lower[wanted],
            self.upper[wanted],
            self.in_clear[wanted],
        )

    def roots(self) -> "Lines":
        """The square roots of estimated squares, clipped at 0."""
        value = np.sqrt(np.maximum(self.value, 0.0))
        return replace(self, value=value, lower=np.sqrt(self.lower), upper=np.sqrt(self.upper))

    def plus(self, other: "Lines") -> "Lines":
        """The lines of both."""
        return Lines(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("rows", "columns")),
            *(pa.concat_arrays([getattr(self, name), getattr(other, name)]) for name in ("left", "right")),
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("value", "lower", "upper", "in_clear")
            ),
        )

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The lines as Arrow has them."""
        resolved = (self.lower > 0) | (self.upper < 0)
        numbers = (pa.array(each) for each in (self.value, self.lower, self.upper, resolved, self.in_clear))
        return pa.RecordBatch.from_arrays([self.left, self.right, *numbers], schema=schema)


# What rows are compared by: their sizes and all, or their shapes alone.


BY = ("size", "shape")


def squared_measure(by: str) -> Measure:
    """Squared distances of rows as they are ("size"), or of rows divided by their totals ("shape")."""
    return squared_distances if one_of("by", by, BY) == "size" else squared_shape_distances


def noted(by: str, *sides: Sketches) -> str:
    """What must be known to read an answer about these rows; empty if nothing."""
    return "; ".join(part for part in (NOTE if by == "shape" else "", clear_note(*sides)) if part)


def checked_sketches(name: str, sketches: object, at_least: int) -> Sketches:
    """The sketches, if they are sketches of so many rows."""
    if not isinstance(sketches, Sketches):
        advice = "; load it with .to_sketches()" if isinstance(sketches, Collection) else ""
        raise ParameterError(f"{name} must be al.Sketches, got {type(sketches).__name__}{advice}")
    checked_rows(name, sketches, at_least)
    return sketches


def checked_rows(name: str, rows: object, at_least: int) -> Sketches | Collection:
    """The rows, if they are sketches or a collection of so many rows."""
    if not isinstance(rows, Sketches | Collection):
        raise ParameterError(f"{name} must be al.Sketches or a collection of them, got {type(rows).__name__}")
    if len(rows) < at_least:
        least = f"at least {at_least} row{'s' if at_least > 1 else ''}"
        raise ParameterError(f"{name} must have {least}, got {len(rows)}")
    return rows
