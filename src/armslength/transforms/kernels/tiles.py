"""The product with a sparse ±1 matrix, sixteen rows side by side.

A tile holds sixteen rows, transposed: the sixteen values of a column stand together, so that one of A's entries serves
all of them at once. For each coordinate of the sketch the columns that it adds and subtracts are listed; the sums stay in
registers. Sums are int64 modulo 2^64, whatever type the values have.
"""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel
from armslength.transforms.kernels.layout import turn
from armslength.vectors import LANES, sum_columns

TILE_COLUMNS = 8192  # a tile of int32 takes half a megabyte: it stays in a core's own cache


@kernel
def _list_of(entry: int) -> int:
    """Which list an entry stands in: 2b for +1 in row b, 2b + 1 for −1."""
    return 2 * entry if entry >= 0 else 2 * (-1 - entry) + 1


@kernel
def list_columns(encoded: Integers, starts: NDArray[np.int32], columns: NDArray[np.int32]) -> None:
    """For each row b of A: its +1 columns are columns[starts[2b]:starts[2b+1]], its −1 columns follow, up to starts[2b+2].

    Args:
        encoded: m x s: the row of each entry, or −1−row where it is −1.
        starts: 2k + 1 numbers.
        columns: m·s numbers.
    """
    starts[:] = 0
    for j in range(encoded.shape[0]):
        for r in range(encoded.shape[1]):
            starts[1 + _list_of(encoded[j, r])] += 1
    for number in range(1, len(starts)):
        starts[number] += starts[number - 1]
    following = starts[:-1].copy()
    for j in range(encoded.shape[0]):
        for r in range(encoded.shape[1]):
            number = _list_of(encoded[j, r])
            columns[following[number]] = j
            following[number] += 1


@kernel
def add_tiles(
    rows: Integers,
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    product: NDArray[np.int64],
    tile: Integers,
    totals: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """product += rows·Aᵀ modulo 2^64, for the columns of A that `list_columns` has listed.

    Args:
        rows: n x m, contiguous; m is at most TILE_COLUMNS.
        starts: Of the lists.
        columns: The lists.
        product: n x k.
        tile: m x 16, of the type of the rows: room to work in, as are the next two.
        totals: k x 16.
        sums: 16 x k.
    """
    for first in range(0, rows.shape[0], LANES):
        _fill_tile(rows, first, tile)
        totals[:] = 0
        for number in range(len(totals)):
            sum_columns(
                tile,
                columns,
                starts[2 * number],
                starts[2 * number + 1],
                starts[2 * number + 2],
                totals,
                number,
            )
        turn(totals, sums)
        for lane in range(min(LANES, rows.shape[0] - first)):
            for number in range(product.shape[1]):
                product[first + lane, number] += sums[lane, number]


@kernel
def _fill_tile(rows: Integers, first: int, tile: Integers) -> None:
    """tile[j, lane] = rows[first+lane, j]; lanes beyond the last row are 0."""
    if first + LANES <= rows.shape[0]:
        turn(rows[first : first + LANES], tile)
        return
    for lane in range(LANES):
        for j in range(rows.shape[1]):
            tile[j, lane] = rows[first + lane, j] if first + lane < rows.shape[0] else 0
