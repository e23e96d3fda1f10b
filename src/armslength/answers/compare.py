"""All pairs with their intervals, or some of them, as an Arrow reader."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.answers.pairs import BY, PairEstimator, Tile, checked_rows, each_pair_once, pair_estimator
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
# What is collected of a pair before it is given out: its place, and squares where distances are asked for.
_PAIRS = pa.schema(
    [("row", pa.int64()), ("column", pa.int64()), *(field for field in SCHEMA if field.name != "resolved")]
)


def compare(  # noqa: PLR0913  # two sides, and keywords that each choose one thing
    a: Sketches | Collection,
    b: Sketches | Collection | None = None,
    *,
    quantity: str = "distance",
    by: str = "size",
    level: float = 0.95,
    method: str = "spread",
    simultaneous: bool = False,
    top: int | None = None,
    farthest: bool = False,
    below: float | None = None,
    above: float | None = None,
    possibly: bool = False,
    show_progress: bool = False,
) -> pa.RecordBatchReader:
    """An Arrow reader of pairs: left, right, value, lower, upper, resolved, in_clear. All pairs, in memory that does not grow with them.

    A loop over the reader computes one batch of pairs after the other; `read_all()` gives one table, `read_pandas()` one data frame.
    Its schema's metadata has the quantity, the level and the note. Every row of a against every row of b, or each pair within a once, in tiles: the numbers are those of `al.distances` on
    all rows at once. Up to 1,024 rows within a come in its order. Of a collection some thousand rows are held while the other side
    passes by, block after block; the pairs are the same, and come in the order of those blocks.

    Args:
        a: Rows on the left, in memory or in files.
        b: Rows on the right; None for the pairs within a.
        quantity: "distance", "squared-distance", "inner-product" or "cosine".
        by: "size" for rows as they are, "shape" for rows divided by their totals (distances alone).
        level: The confidence of the intervals.
        method: "spread" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether all intervals hold together at the level: those of *all* pairs, chosen or not.
        top: Only this many pairs, those of the smallest values, smallest first.
        farthest: With `top`: those of the largest values, largest first.
        below: Only pairs that surely lie at or below this: their upper end does.
        above: Only pairs that surely lie above this: their lower end does.
        possibly: With `below` or `above`: also pairs of which it is not sure that they do not.
        show_progress: Whether to show a bar on a terminal.
    """
    left, right = _checked_sides(a, b)
    estimator = _estimator(quantity, by)
    is_root = quantity == "distance"
    one_of("method", method, METHODS)
    pairs = len(a) * (len(a) - 1) // 2 if b is None else len(a) * len(right)
    confidence = {"level": level, "method": method, "comparisons": pairs if simultaneous else 1}
    Level.of(level, method, pairs if simultaneous else 1)  # before any work
    limits = _Limits.of(below, above, possibly, is_root)
    if top is not None:
        integer("top", top, at_least=1, at_most=10**7)
    elif farthest:
        raise ParameterError("farthest must come with a number of top pairs, got it alone")
    clear = CLEAR_NOTE if any(any(side.in_clear) for side in (left, right)) else ""
    special = APPROXIMATE if quantity in _PRODUCTS else SHAPES if by == "shape" else ""
    schema = SCHEMA.with_metadata(
        {
            "quantity": quantity,
            "by": by,
            "level": repr(level),
            "method": method,
            "simultaneous": str(bool(simultaneous)).lower(),
            "note": "; ".join(filter(None, (special, clear))),
        }
    )

    def batches() -> Iterator[pa.RecordBatch]:
        with progress("compare", pairs, "pairs", shown=show_progress) as advance:
            tiles = _count(each_pair_once(a, b, estimator), advance)
            tables: Iterator[pa.Table]
            if top is None:
                tables = (_pairs_of(tile, tile.pairs(), confidence, limits) for tile in tiles)
            else:
                tables = iter([_smallest(tiles, confidence, limits, top, -1.0 if farthest else 1.0)])
            for table in tables:
                yield from _answer(table, schema, is_root=is_root)

    return pa.RecordBatchReader.from_batches(schema, batches())


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


def _estimator(quantity: str, by: str) -> PairEstimator:
    """What is estimated of each pair: for distances their squares, which noise can make negative and which are never tied at 0."""
    one_of("quantity", quantity, QUANTITIES)
    one_of("by", by, BY)
    if quantity in _PRODUCTS:
        if by == "shape":
            raise ParameterError(f"quantity must be a distance to compare by shape, got {quantity}")
        return inner_products if quantity == "inner-product" else cosines
    return pair_estimator(by)


@dataclass(frozen=True)
class _Limits:
    """Between which limits the pairs are that are asked for."""

    below: float | None
    above: float | None
    possibly: bool
    is_root: bool  # whether the limits are for the square roots

    @classmethod
    def of(cls, below: Any, above: Any, possibly: bool, is_root: bool) -> "_Limits":
        for name, limit in (("below", below), ("above", above)):
            if limit is not None:
                number(name, limit, above=-1e300, at_most=1e300)
        if possibly and below is None and above is None:
            raise ParameterError("possibly must come with below or above, got it alone")
        return cls(below, above, possibly, is_root)

    def contain(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each pair is within the limits."""
        wanted = np.ones(lower.shape, dtype=np.bool_)
        if self.is_root and (self.below is not None or self.above is not None):
            lower, upper = np.sqrt(lower), np.sqrt(upper)
        if self.below is not None:
            wanted &= (lower if self.possibly else upper) <= self.below
        if self.above is not None:
            wanted &= (upper if self.possibly else lower) > self.above
        return wanted


def _count(tiles: Iterator[Tile], advance: Advance) -> Iterator[Tile]:
    """The tiles; after each, the progress bar advances by its pairs."""
    for tile in tiles:
        yield tile
        rows, columns = tile.estimate.value.shape
        advance(rows * (rows - 1) // 2 if tile.estimate.within else rows * columns)


def _pairs_of(
    tile: Tile,
    places: tuple[NDArray[np.int64], ...],
    confidence: Mapping[str, Any],
    limits: _Limits,
) -> pa.Table:
    """Those pairs at these rows and columns of a tile that are within the limits."""
    numbers = (tile.estimate.value, *tile.estimate.interval(**confidence))
    value, lower, upper = (each[places] for each in numbers)
    kept = np.flatnonzero(limits.contain(lower, upper))
    rows, columns = (each[kept] for each in places)
    left, right = (
        pa.array(labels, pa.string()).take(pa.array(chosen))
        for labels, chosen in zip(tile.estimate.labels, (rows, columns), strict=True)
    )
    return pa.table(
        [
            rows + tile.first_row,
            columns + tile.first_column,
            left,
            right,
            value[kept],
            lower[kept],
            upper[kept],
            tile.estimate.clear_lines((rows, columns)),
        ],
        schema=_PAIRS,
    )


def _smallest(
    tiles: Iterator[Tile], confidence: Mapping[str, Any], limits: _Limits, count: int, sign: float
) -> pa.Table:
    """The pairs of the smallest values (sign 1) or of the largest (sign −1), in order; equal ones by their rows."""
    best = _PAIRS.empty_table()
    last = np.inf
    for tile in tiles:
        better = sign * tile.estimate.value <= last
        places: tuple[NDArray[np.int64], ...] = np.nonzero(
            np.triu(better, 1) if tile.estimate.within else better
        )
        if not len(places[0]):
            continue
        both = pa.concat_tables([best, _pairs_of(tile, places, confidence, limits)])
        values = sign * both["value"].to_numpy()
        order = np.lexsort((both["column"].to_numpy(), both["row"].to_numpy(), values))[:count]
        best = both.take(pa.array(order)).combine_chunks()
        if len(order) == count:
            last = values[order[-1]]
    return best


def _answer(pairs: pa.Table, schema: pa.Schema, *, is_root: bool) -> Iterator[pa.RecordBatch]:
    """The pairs as they are given out: distances are roots of estimated squares, clipped at 0."""
    value, lower, upper = (pairs[name].to_numpy() for name in ("value", "lower", "upper"))
    if is_root:
        value, lower, upper = (np.sqrt(np.maximum(each, 0.0)) for each in (value, lower, upper))
    resolved = (lower > 0) | (upper < 0)
    columns = [pairs["left"], pairs["right"], value, lower, upper, resolved, pairs["in_clear"]]
    table = pa.table(columns, schema=schema).combine_chunks()
    # A table without rows has no batches, and yet its reader must not end without one.
    return iter(table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)])
