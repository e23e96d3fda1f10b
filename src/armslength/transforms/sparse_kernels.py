"""Adding ±value to the rows that a sparse column names.

A column of `SparseJL` is s numbers: the row, or −1−row where the entry is −1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import LANES, Int64s, Integers, Words, kernel, sum_columns
from armslength.randomness.hashing import hash_value, scaled_to
from armslength.transforms.integer_rows import transpose

_BATCH = 64  # entries
_ONE = np.uint64(1)
TILE_COLUMNS = 8192  # a tile of int32 takes half a megabyte: it stays in a core's own cache


@kernel
def _add(target: Int64s, entry: np.signedinteger[Any], value: np.int64) -> None:
    """Adds ±value where an entry says, without a branch: signs are random, and a processor would guess half of them wrong."""
    sign = np.int64(entry) >> np.int64(63)  # 0, or −1 for an entry of −1, whose row is then ~entry
    target[np.int64(entry) ^ sign] += (value ^ sign) - sign


@kernel
def scatter_dense(rows: Integers, encoded: Integers, product: Int64s) -> None:
    """product += rows·Aᵀ modulo 2^64, for the columns of A that `encoded` holds."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = np.int64(rows[i, j])
            if value != 0:
                for r in range(encoded.shape[1]):
                    _add(product[i], encoded[j, r], value)


@kernel
def scatter_sparse(
    starts: Integers, columns: Integers, values: Integers, encoded: Integers, product: Int64s
) -> None:
    """product += rows·Aᵀ modulo 2^64, for rows of (column, value) entries.

    The columns of A lie all over memory: those of a few entries are fetched together, so that the processor waits once.
    """
    sparsity = encoded.shape[1]
    batch = np.empty(_BATCH * sparsity, dtype=encoded.dtype)
    for i in range(len(starts) - 1):
        target = product[i]
        for first in range(starts[i], starts[i + 1], _BATCH):
            last = min(first + _BATCH, starts[i + 1])
            for position in range(first, last):
                place, column = (position - first) * sparsity, columns[position]
                for r in range(sparsity):
                    batch[place + r] = encoded[column, r]
            for position in range(first, last):
                place = (position - first) * sparsity
                value = np.int64(values[position])
                for r in range(sparsity):
                    _add(target, batch[place + r], value)


@kernel
def _signed(row: np.int64, low: np.uint64) -> np.int64:
    """The row, or −1−row where the hash value is odd."""
    return -1 - row if low & _ONE else row


@kernel
def block_columns(coefficients: Words, items: Words, buckets: int, encoded: Integers) -> None:
    """Block construction: block r of a column has its entry in the row of bucket_r."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            bucket = scaled_to(high, low, np.uint64(buckets))
            encoded[j, r] = _signed(r * buckets + np.int64(bucket), low)


@kernel
def graph_columns(coefficients: Words, items: Words, sketch_dim: int, encoded: Integers) -> None:
    """Graph construction: s distinct rows by Floyd's method, so every s-subset is equally likely."""
    sparsity = coefficients.shape[0]
    last_user = np.full(sketch_dim, -1, dtype=np.int64)
    for j in range(items.shape[0]):
        for r in range(sparsity):
            largest = sketch_dim - sparsity + r
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            row = np.int64(scaled_to(high, low, np.uint64(largest + 1)))
            if last_user[row] == j:
                row = np.int64(largest)
            last_user[row] = j
            encoded[j, r] = _signed(row, low)


@kernel
def balanced_columns(
    coefficients: Words, bucket_of: NDArray[np.int32], items: Words, buckets: int, encoded: Integers
) -> None:
    """Balanced construction: bucket_of comes from a permutation per block, signs come from the hash functions."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            _, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            encoded[j, r] = _signed(r * buckets + np.int64(bucket_of[r, items[j, 1]]), low)


@kernel
def _list_of(entry: int) -> int:
    """Which list an entry stands in: 2b for +1 in row b, 2b + 1 for −1."""
    return 2 * entry if entry >= 0 else 2 * (-1 - entry) + 1


@kernel
def list_columns(encoded: Integers, sketch_dim: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(starts, columns): row b of A has +1 in columns[starts[2b]:starts[2b+1]], and −1 in those up to starts[2b+2]."""
    starts, columns = np.zeros(2 * sketch_dim + 1, dtype=np.int32), np.empty(encoded.size, dtype=np.int32)
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
    return starts, columns


@kernel
def add_tiles(
    rows: Integers,
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    product: Int64s,
    tile: Integers,
    totals: Int64s,
    sums: Int64s,
) -> None:
    """product += rows·Aᵀ modulo 2^64, for contiguous rows and the lists of `list_columns`; the last three are buffers.

    A tile holds sixteen rows, transposed: the sixteen values of a column stand together, so that one entry of A serves all of them.
    """
    for first in range(0, rows.shape[0], LANES):
        _fill_tile(rows, first, tile)
        totals[:] = 0
        for number in range(len(totals)):
            plus = 2 * number
            sum_columns(tile, columns, starts[plus], starts[plus + 1], starts[plus + 2], totals, number)
        transpose(totals, sums)
        for lane in range(min(LANES, rows.shape[0] - first)):
            for number in range(product.shape[1]):
                product[first + lane, number] += sums[lane, number]


@kernel
def _fill_tile(rows: Integers, first: int, tile: Integers) -> None:
    """tile[j, lane] = rows[first+lane, j]; lanes beyond the last row are 0."""
    if first + LANES <= rows.shape[0]:
        transpose(rows[first : first + LANES], tile)
        return
    for lane in range(LANES):
        for j in range(rows.shape[1]):
            tile[j, lane] = rows[first + lane, j] if first + lane < rows.shape[0] else 0


class TileBuffer:
    """The memory of one thread for all of its tiles: new memory for each would cost more than the work."""

    def __init__(self, width: int, sketch_dim: int) -> None:
        self._tile = np.empty(width * LANES, dtype=np.int64)
        self.totals = np.empty((sketch_dim, LANES), dtype=np.int64)
        self.sums = np.empty((LANES, sketch_dim), dtype=np.int64)

    def tile(self, piece: Integers) -> Integers:
        """A buffer for sixteen rows of this piece."""
        size = piece.shape[1] * LANES
        return self._tile.view(piece.dtype)[:size].reshape(piece.shape[1], LANES)
