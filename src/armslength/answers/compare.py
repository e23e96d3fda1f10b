"""All pairs with their intervals, tile by tile, and those of them that somebody asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.answers.pairs import BY, Lines, Measure, Tile, checked_rows, each_pair_once, squared_measure
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import CLEAR_NOTE
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.products import APPROXIMATE, cosines, inner_products
from armslength.estimates.shapes import NOTE as SHAPES
from armslength.progress import Advance, progress
from armslength.sketches.collection import Collection
from armslength.sketches.sketches import Sketches, check_same_space

_PRODUCTS = ("inner-product", "cosine")
QUANTITIES = ("distance", "squared-distance", *_PRODUCTS)
SCHEMA = pa.schema(
    [
        pa.field("left", pa.string()),
        pa.field("right", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("lower", pa.float64()),
        pa.field("upper", pa.float64()),
        pa.field("resolved", pa.bool_()),
        pa.field("in_clear", pa.bool_()),
    ]
)


def compare(  # noqa: PLR0913  # two sides, and keywords that each choose one thing
    a: Sketches | Collection,
    b: Sketches | Collection | None = None,
    *,
    quantity: str = "distance",
    by: str = "size",
    level: float = 0.95,
    method: str = "asymptotic",
    simultaneous: bool = False,
    top: int | None = None,
    farthest: bool = False,
    below: float | None = None,
    above: float | None = None,
    possibly: bool = False,
    show_progress: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Arrow batches of pairs: left, right, value, lower, upper, resolved, in_clear. All pairs, in memory that does not grow with them.

    Every row of a against every row of b, or each pair within a once, in tiles: the numbers are those of `al.distances` on
    all rows at once. Up to 1,024 rows within a come in its order. Of a collection some thousand rows are held while the other side
    passes by, block after block; the pairs are the same, and come in the order of those blocks.

    Args:
        a: Rows on the left, in memory or in files.
        b: Rows on the right; None for the pairs within a.
        quantity: "distance", "squared-distance", "inner-product" or "cosine".
        by: "size" for rows as they are, "shape" for rows divided by their totals (distances alone).
        level: The confidence of the intervals.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether all intervals hold together at the level: those of *all* pairs, chosen or not.
        top: Only this many pairs, those of the smallest values, smallest first.
        farthest: With `top`: those of the largest values, largest first.
        below: Only pairs that surely lie at or below this: their upper end does.
        above: Only pairs that surely lie above this: their lower end does.
        possibly: With `below` or `above`: also pairs of which it is not sure that they do not.
        show_progress: Whether to show a bar on a terminal.
    """
    left, right = _checked_sides(a, b)
    measure = _measure(quantity, by)
    is_root = quantity == "distance"
    one_of("method", method, METHODS)
    pairs = len(a) * (len(a) - 1) // 2 if b is None else len(a) * len(right)
    Level.of(level, method, pairs if simultaneous else 1)  # before any work
    choice = _Choice.of(below, above, possibly, is_root)
    if top is not None:
        integer("top", top, at_least=1, at_most=10**7)
    elif farthest:
        raise ParameterError("farthest must come with a number of top pairs, got it alone")
    clear = CLEAR_NOTE if any(any(side.in_clear) for side in (left, right)) else ""
    special = APPROXIMATE if quantity in _PRODUCTS else SHAPES if by == "shape" else ""
    said = {
        "quantity": quantity,
        "by": by,
        "level": repr(level),
        "method": method,
        "simultaneous": str(bool(simultaneous)).lower(),
        "note": "; ".join(part for part in (special, clear) if part),
    }

    def batches() -> Iterator[pa.RecordBatch]:
        with progress("compare", pairs, "pairs", shown=show_progress) as advance:
            tiles = _watched(each_pair_once(a, b, measure), advance)
            held = (level, method, pairs if simultaneous else 1)
            found: Iterator[Lines]
            if top is None:
                found = (_lines_of(tile, tile.pairs(), held, choice) for tile in tiles)
            else:
                found = iter([_extreme(tiles, held, choice, top, -1.0 if farthest else 1.0)])
            for lines in found:
                rooted = lines.roots() if is_root else lines
                yield rooted.batch(SCHEMA.with_metadata(said))

    return batches()


def _checked_sides(
    a: Sketches | Collection, b: Sketches | Collection | None
) -> tuple[Sketches | Collection, Sketches | Collection]:
    """Both sides, if they can be compared."""
    checked_rows("a", a, 2 if b is None else 1)
    if b is None:
        return a, a
    checked_rows("b", b, 1)
    check_same_space((*a.protocols, *b.protocols))
    return a, b


def _measure(quantity: str, by: str) -> Measure:
    """What is estimated of each pair: for distances their squares, which noise can make negative and which are never tied at 0."""
    one_of("quantity", quantity, QUANTITIES)
    one_of("by", by, BY)
    if quantity in _PRODUCTS:
        if by == "shape":
            raise ParameterError(f"quantity must be a distance to compare by shape, got {quantity}")
        return inner_products if quantity == "inner-product" else cosines
    return squared_measure(by)


@dataclass(frozen=True)
class _Choice:
    """Which pairs are asked for."""

    below: float | None
    above: float | None
    possibly: bool
    is_root: bool  # whether the limits are for the square roots

    @classmethod
    def of(cls, below: Any, above: Any, possibly: bool, is_root: bool) -> "_Choice":
        given = {"below": below, "above": above}
        for name, limit in given.items():
            if limit is not None:
                number(name, limit, above=-1e300, at_most=1e300)
        if possibly and below is None and above is None:
            raise ParameterError("possibly must come with below or above, got it alone")
        return cls(below, above, possibly, is_root)

    def holds(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each pair is asked for."""
        wanted = np.ones(lower.shape, dtype=np.bool_)
        if self.is_root and (self.below is not None or self.above is not None):
            lower, upper = np.sqrt(lower), np.sqrt(upper)
        if self.below is not None:
            wanted &= (lower if self.possibly else upper) <= self.below
        if self.above is not None:
            wanted &= (upper if self.possibly else lower) > self.above
        return wanted


def _watched(tiles: Iterator[Tile], advance: Advance) -> Iterator[Tile]:
    """The tiles; whoever watches hears how many pairs are done."""
    for tile in tiles:
        yield tile
        rows, columns = tile.estimate.value.shape
        advance(rows * (rows - 1) // 2 if tile.estimate.within else rows * columns)


def _lines_of(
    tile: Tile,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    held: tuple[float, str, int],
    choice: _Choice,
) -> Lines:
    """Those of a tile's pairs that are asked for."""
    rows, columns = pairs
    value, lower, upper = (each[rows, columns] for each in (tile.estimate.value, *tile.ends(*held)))
    wanted = choice.holds(lower, upper)
    left, right = (pa.array(labels, pa.string()) for labels in tile.estimate.labels)
    if not wanted.all():
        rows, columns = rows[wanted], columns[wanted]
        value, lower, upper = value[wanted], lower[wanted], upper[wanted]
    return Lines(
        rows + tile.first_row,
        columns + tile.first_column,
        left.take(pa.array(rows)),
        right.take(pa.array(columns)),
        value,
        lower,
        upper,
        tile.estimate.clear_lines((rows, columns)),
    )


def _extreme(
    tiles: Iterator[Tile], held: tuple[float, str, int], choice: _Choice, count: int, sign: float
) -> Lines:
    """The lines of the smallest values (sign 1) or of the largest (sign −1), in order; equal ones by their rows."""
    best = Lines.none()
    for tile in tiles:
        limit = sign * best.value[-1] if len(best.value) == count else np.inf
        better = sign * tile.estimate.value <= limit
        rows, columns = np.nonzero(np.triu(better, 1) if tile.estimate.within else better)
        if not len(rows):
            continue
        both = best.plus(_lines_of(tile, (rows, columns), held, choice))
        values = sign * both.value
        last = np.partition(values, count - 1)[count - 1] if len(values) > count else np.inf
        kept = np.flatnonzero(values <= last)
        order = np.lexsort((both.columns[kept], both.rows[kept], values[kept]))
        best = both.take(kept[order[:count]])
    return best
