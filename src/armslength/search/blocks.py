"""Pairs of rows in tiles, so that no answer needs all pairs at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.result import Bounds, Estimate
from armslength.protocol.sketches import Sketches
from armslength.search.collection import Collection

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
    return estimate._interval(level, method, pairs)  # noqa: SLF001  # how many pairs there are in all, a tile does not know


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
