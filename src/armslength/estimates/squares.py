"""‖u−v‖² for all pairs of rows: by products where their rounding cannot matter, pair by pair where it could.

The products are our own and not the BLAS's: its threads go on spinning for 25 ms after a call and take time from ours, and
what follows the product can be done here while a tile is in the cache.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.kernels import (
    BAND,
    chosen_squared_differences,
    squared_differences,
    squares_from_products,
)
from armslength.protocol.sketches import Sketches
from armslength.threads import for_blocks
from armslength.vectors import TILE_WIDTH

_EXACT = 2.0**53


def all_squares(
    left: Sketches, right: Sketches, bias: float, unit: float, tolerance: float
) -> NDArray[np.float64]:
    """unit·(‖u−v‖² − bias) for every row u of left and v of right, u and v in integer units.

    Differences are taken modulo 2^64, so it does not matter where the integers have wrapped.

    Args:
        left: n rows.
        right: m rows.
        bias: What noise adds to a squared norm, in squared integer units.
        unit: What turns those into data units.
        tolerance: How large an error of ‖u−v‖² does no harm; 0 if none does.
    """
    if not len(left) or not len(right):
        return np.empty((len(left), len(right)))
    u, v = _from_first_row(left, right)
    left_squares = np.einsum("ij,ij->i", u, u)
    right_squares = left_squares if v is u else np.einsum("ij,ij->i", v, v)
    if not _products_will_do((u,) if v is u else (u, v), (left_squares, right_squares), tolerance):
        return _pair_by_pair(left, right, bias, unit)
    rows, panels = _padded(u), panels_of(v)
    result = np.empty((len(u), len(v)))
    bands = -(-len(u) // BAND)
    mirrored = v is u

    def fill(start: int, stop: int) -> None:
        for number in range(start, stop):
            # With a mirror image the bands grow: a short one with a long one, so that every thread has as much to do.
            for band in {number, bands - 1 - number}:
                squares_from_products(
                    rows, panels, left_squares, right_squares, (bias, unit), band * BAND, mirrored, result
                )

    for_blocks(-(-bands // 2), 1, fill)
    return result


def _padded(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, with zeros up to a whole band."""
    padded = np.zeros((-(-len(rows) // BAND) * BAND, rows.shape[1]))
    padded[: len(rows)] = rows
    return padded


def panels_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, eight at a time, transposed, with zeros up to a whole panel."""
    count = -(-len(rows) // TILE_WIDTH)
    padded = np.zeros((count * TILE_WIDTH, rows.shape[1]))
    padded[: len(rows)] = rows
    return np.ascontiguousarray(padded.reshape(count, TILE_WIDTH, -1).transpose(0, 2, 1))


def chosen_squares(
    left: Sketches, right: Sketches, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """‖u−v‖² for some pairs, in squared integer units."""
    result = np.empty(len(rows))
    chosen_squared_differences(*_same_type(left, right), left.offsets, right.offsets, rows, columns, result)
    return result


def _from_first_row(left: Sketches, right: Sketches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides less the first row of all: what the rows have in common would only cost digits."""
    a, b = _same_type(left, right)
    offset = left.offsets[0]

    def relative(side: NDArray[Any], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        difference: NDArray[np.float64] = (side - a[:1]).astype(np.float64)
        if (offsets != offset).any():
            difference += (offsets - offset)[:, None]
        return difference

    u = relative(a, left.offsets)
    return u, u if left is right else relative(b, right.offsets)


def _same_type(left: Sketches, right: Sketches) -> tuple[NDArray[Any], NDArray[Any]]:
    if left.values.dtype == right.values.dtype:
        return left.values, right.values
    return left.values.astype(np.float64), right.values.astype(np.float64)


def _products_will_do(
    sides: tuple[NDArray[np.float64], ...],
    squares: tuple[NDArray[np.float64], ...],
    tolerance: float,
) -> bool:
    """Whether ‖u‖² + ‖v‖² − 2⟨u, v⟩ is exact in any order, or its rounding within the tolerance.

    Sums of k products are wrong by at most k·2^−53 times the sum of their magnitudes, in any order, fused or not; the
    magnitudes add up to at most (‖u‖ + ‖v‖)². Eight more for the rounding of u, of v and of the three terms.
    """
    coordinates = sides[0].shape[1]
    largest = max(float(max(side.max(), -side.min())) for side in sides)
    if 4 * coordinates * largest**2 < _EXACT and all(np.array_equal(side, np.floor(side)) for side in sides):
        return True
    longest = max(float(each.max(initial=0.0)) for each in squares)
    return bool(4 * longest * (coordinates + 8) / _EXACT <= tolerance)


def _pair_by_pair(left: Sketches, right: Sketches, bias: float, unit: float) -> NDArray[np.float64]:
    (a, b), (p, q) = _same_type(left, right), (left.offsets, right.offsets)
    result = np.empty((len(a), len(b)))

    def fill(start: int, stop: int) -> None:
        part = result[start:stop]
        squared_differences(a[start:stop], b, p[start:stop], q, part)
        part -= bias
        part *= unit

    for_blocks(len(a), max(1, len(a) // 64), fill)
    return result
