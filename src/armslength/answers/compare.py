"""All pairs with their intervals, or some of them, as an Arrow reader."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.answers.pairs import (
    PairEstimator,
    Tile,
    answer_note,
    checked_sketches,
    each_pair_once,
    pair_estimator,
)
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import APPROXIMATE, CLEAR_NOTE, cosines, inner_products
from armslength.estimates.intervals import Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shapes import shape_cosines
from armslength.progress import Advance, progress
from armslength.sketches.sketches import Sketches, check_same_space

_ROWS_IN_A_BATCH = 2**16  # so that a progress bar moves while they are written
Limits = Callable[..., slice | NDArray[np.bool_]]
_PRODUCTS: dict[str, PairEstimator] = {"inner-product": inner_products, "cosine": cosines}
QUANTITIES = ("distance", "squared-distance", *_PRODUCTS)
SCHEMA = pa.schema(
    {
        "left": pa.string(),
        "right": pa.string(),
        **dict.fromkeys(("value", "lower", "upper"), pa.float64()),
        **dict.fromkeys(("resolved", "in_clear"), pa.bool_()),
    }
)
# Pairs with their places; with squares where the quantity is a distance.
_PAIRS = pa.schema(
    [("row", pa.int64()), ("column", pa.int64()), *(field for field in SCHEMA if field.name != "resolved")]
)


def compare(  # noqa: PLR0913  # two sides, and keywords that each choose one thing
    a: Sketches,
    b: Sketches | None = None,
    *,
    quantity: str = "distance",
    by: str = "size",
    beyond_chance: bool = False,
    level: float = 0.95,
    method: str = "asymptotic",
    simultaneous: bool = False,
    fdr: bool = False,
    top: int | None = None,
    farthest: bool = False,
    below: float | None = None,
    above: float | None = None,
    possibly: bool = False,
    show_progress: bool = False,
) -> pa.RecordBatchReader:
    """An Arrow reader of pairs: left, right, value, lower, upper, resolved, in_clear.

    Every row of a against every row of b, or each pair within a once. A loop over the reader computes one batch after
    the other, in memory that does not grow with the pairs; `read_all()` gives one table, `read_pandas()` one data
    frame. The metadata of its schema has the quantity, the level and the note.

    The numbers are those of `al.distances` on all rows at once. Up to 1,024 rows within a come in its order.

    Args:
        a: Rows on the left.
        b: Rows on the right; None for the pairs within a.
        quantity: "distance", "squared-distance", "inner-product" or "cosine".
        by: "size" for rows as they are, "shape" for rows divided by their totals (distances and cosines).
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        level: The confidence of the intervals.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        simultaneous: Whether all intervals hold together at the level: those of *all* pairs, chosen or not.
        fdr: Whether the level is about false discoveries instead: of the pairs that are resolved, and of their intervals, a share of
            at most 1 − level is wrong on average (Benjamini, Hochberg and Yekutieli). It assumes that errors of pairs are not
            negatively related, as those of pairs that share a row are not.
        top: Only this many pairs, those of the smallest values, smallest first.
        farthest: With `top`: those of the largest values, largest first.
        below: Only pairs that surely lie at or below this: their upper end does.
        above: Only pairs that surely lie above this: their lower end does.
        possibly: With `below` or `above`: also pairs of which it is not sure that they do not.
        show_progress: Whether to show a bar on a terminal.
    """
    checked_sketches("a", a, 2 if b is None else 1)
    right = a if b is None else checked_sketches("b", b, 1)
    protocols = (*a.protocols, *right.protocols)
    check_same_space(protocols)
    one_of("quantity", quantity, QUANTITIES)
    # For distances that of their squares, which are not tied at 0.
    estimator = _estimator(quantity, by, beyond_chance=beyond_chance)
    is_root = quantity == "distance"
    pairs = len(a) * (len(a) - 1) // 2 if b is None else len(a) * len(right)
    pair_level = Level.of(level, method, pairs if simultaneous or fdr else 1)  # checked before any work
    if fdr and (simultaneous or quantity in _PRODUCTS):
        message = "fdr=True is for distances, and cannot be combined with simultaneous=True"
        raise ParameterError(message, "fdr", "simultaneous")
    for name, limit in (("below", below), ("above", above)):
        if limit is not None:
            number(name, limit, above=-1e300, at_most=1e300)
    if possibly and below is None and above is None:
        raise ParameterError("possibly=True needs below or above", "possibly", "below", "above")
    limits = partial(_are_within, below=below, above=above, possibly=possibly, is_root=is_root)
    if top is not None:
        integer("top", top, at_least=1, at_most=10**7)
    elif farthest:
        raise ParameterError("farthest=True needs top, a number of pairs", "farthest", "top")
    clear = CLEAR_NOTE if any(any(side.in_clear) for side in (a, right)) else ""
    special = APPROXIMATE if quantity in _PRODUCTS else ""
    note = answer_note(by, special, clear, beyond_chance=beyond_chance)
    metadata = {"quantity": quantity, "by": by, "level": repr(level), "method": method, "note": note}
    metadata["beyond_chance"] = str(beyond_chance).lower()
    metadata |= {"simultaneous": str(bool(simultaneous)).lower(), "fdr": str(bool(fdr)).lower()}
    schema = SCHEMA.with_metadata(metadata)

    def batches() -> Iterator[pa.RecordBatch]:
        with progress("compare", pairs, "pairs", show=show_progress) as advance:
            all_tiles = partial(each_pair_once, a, b, estimator)
            used_level = _discovery_level(all_tiles, pair_level, pairs) if fdr else pair_level
            answer = partial(_answer, schema=schema, is_root=is_root)
            if top is not None:
                tiles = _count(all_tiles(), advance)
                yield from answer(_first(tiles, used_level, limits, top, farthest=farthest))
                return
            for tile in all_tiles():
                table = _tile_pairs(tile, tile.estimate.lines(), used_level, limits)
                yield from _advancing(answer(table), _pair_count(tile), advance)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _estimator(quantity: str, by: str, *, beyond_chance: bool) -> PairEstimator:
    """What estimates the quantity; for distances their squares."""
    by_distance = pair_estimator(by, beyond_chance=beyond_chance)
    if quantity not in _PRODUCTS:
        return by_distance
    if by == "size":
        return _PRODUCTS[quantity]
    if quantity != "cosine":
        raise ParameterError(
            f"quantity must be a distance or a cosine to compare by shape, got {quantity}", "quantity"
        )
    return partial(shape_cosines, beyond_chance=beyond_chance)


def _discovery_level(tiles: Callable[[], Iterator[Tile]], pair_level: Level, pairs: int) -> Level:
    """The level at which R pairs are resolved, for the largest R that may be at it: R times the level for all pairs together.

    Benjamini and Hochberg's procedure, from above. Intervals at this level are those of Benjamini and Yekutieli.
    """
    resolved = pairs
    while True:
        level = Level(pair_level.tail * max(1, resolved), pair_level.method)
        lower_ends = (tile.estimate.rule.interval(level)[0][tile.estimate.lines()] for tile in tiles())
        count = sum(int(np.count_nonzero(lower > 0)) for lower in lower_ends)
        if count >= resolved or resolved == 0:
            return level
        resolved = count


def _are_within(
    lower: Floats, upper: Floats, *, below: float | None, above: float | None, possibly: bool, is_root: bool
) -> slice | NDArray[np.bool_]:
    """Which pairs to give out: those within the limits, which may be for square roots of these ends."""
    if below is None and above is None:
        return slice(None)
    if is_root:
        lower, upper = np.sqrt(lower), np.sqrt(upper)
    low, high = (upper, lower) if possibly else (lower, upper)
    is_below = np.less_equal(high, np.inf if below is None else below)
    return is_below & np.greater(low, -np.inf if above is None else above)


def _count(tiles: Iterator[Tile], advance: Advance) -> Iterator[Tile]:
    """The tiles; after each, the progress bar advances by its pairs."""
    for tile in tiles:
        yield tile
        advance(_pair_count(tile))


def _advancing(batches: Sequence[pa.RecordBatch], total: int, advance: Advance) -> Iterator[pa.RecordBatch]:
    """The batches; after each, the progress bar advances by its part of the total."""
    done = np.arange(len(batches) + 1) * total // len(batches)
    for batch, step in zip(batches, np.diff(done).tolist(), strict=True):
        yield batch
        advance(step)


def _pair_count(tile: Tile) -> int:
    rows, columns = map(int, tile.estimate.value.shape)
    return rows * (rows - 1) // 2 if tile.estimate.within else rows * columns


def _tile_pairs(tile: Tile, index: tuple[NDArray[np.int64], ...], level: Level, limits: Limits) -> pa.Table:
    """The pairs of a tile at this index, if within the limits."""
    estimate = tile.estimate
    numbers = [matrix[index] for matrix in (estimate.value, *estimate.rule.interval(level))]
    kept = limits(*numbers[1:])
    rows, columns = index = tuple(axis[kept] for axis in index)
    arrays = [rows + tile.first_row, columns + tile.first_column, *estimate.label_columns(index).values()]
    arrays += [*(column[kept] for column in numbers), estimate.clear_lines(index)]
    return pa.table(arrays, schema=_PAIRS)


def _first(tiles: Iterator[Tile], level: Level, limits: Limits, count: int, *, farthest: bool) -> pa.Table:
    """The pairs of the smallest values, or of the largest, in order; equal ones by their rows."""
    order = {"value": "descending" if farthest else "ascending", "row": "ascending", "column": "ascending"}
    best = _PAIRS.empty_table()
    last = -np.inf if farthest else np.inf
    for tile in tiles:
        better = tile.estimate.value >= last if farthest else tile.estimate.value <= last
        index = np.nonzero(np.triu(better, 1) if tile.estimate.within else better)
        if len(index[0]):
            both = pa.concat_tables([best, _tile_pairs(tile, index, level, limits)])
            best = both.sort_by(list(order.items())).slice(0, count).combine_chunks()
            last = best["value"][-1].as_py() if len(best) == count else last
    return best


def _answer(pairs: pa.Table, schema: pa.Schema, *, is_root: bool) -> list[pa.RecordBatch]:
    """The batches of the reader; distances are roots of estimated squares, clipped at 0."""
    value, lower, upper = (pairs[name].to_numpy() for name in ("value", "lower", "upper"))
    if is_root:
        value, lower, upper = np.sqrt(np.maximum(value, 0.0)), np.sqrt(lower), np.sqrt(upper)
    resolved = (lower > 0) | (upper < 0)
    columns = [pairs["left"], pairs["right"], value, lower, upper, resolved, pairs["in_clear"]]
    table = pa.table(columns, schema=schema).combine_chunks()
    # A table without rows has no batches, but every reader gives at least one.
    return table.to_batches(_ROWS_IN_A_BATCH) or [pa.RecordBatch.from_pylist([], schema=schema)]
