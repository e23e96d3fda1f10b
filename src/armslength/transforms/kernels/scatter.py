"""Adding ±value to the rows that a sparse column names.

A column of `SparseJL` is s numbers: the row, or −1−row where the entry is −1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel

_FETCHED = 64  # entries


@kernel
def _add(target: NDArray[np.int64], entry: np.signedinteger[Any], value: np.int64) -> None:
    """Adds ±value where an entry says, without a branch: signs are random, and a processor would guess half of them wrong."""
    sign = np.int64(entry) >> np.int64(63)  # 0, or −1 for an entry of −1, whose row is then ~entry
    target[np.int64(entry) ^ sign] += (value ^ sign) - sign


@kernel
def scatter_dense(rows: Integers, encoded: Integers, product: NDArray[np.int64]) -> None:
    """product += rows·Aᵀ modulo 2^64, for the columns of A that `encoded` holds."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = np.int64(rows[i, j])
            if value != 0:
                for r in range(encoded.shape[1]):
                    _add(product[i], encoded[j, r], value)


@kernel
def scatter_sparse(
    starts: Integers,
    columns: Integers,
    values: Integers,
    encoded: Integers,
    product: NDArray[np.int64],
) -> None:
    """product += rows·Aᵀ modulo 2^64, for rows of (column, value) entries.

    The columns of A lie all over memory: those of a few entries are fetched together before the first is used, so that
    the processor waits for all of them at once.
    """
    sparsity = encoded.shape[1]
    fetched = np.empty(_FETCHED * sparsity, dtype=encoded.dtype)
    for i in range(len(starts) - 1):
        target = product[i]
        for first in range(starts[i], starts[i + 1], _FETCHED):
            last = min(first + _FETCHED, starts[i + 1])
            for position in range(first, last):
                place, column = (position - first) * sparsity, columns[position]
                for r in range(sparsity):
                    fetched[place + r] = encoded[column, r]
            for position in range(first, last):
                place = (position - first) * sparsity
                value = np.int64(values[position])
                for r in range(sparsity):
                    _add(target, fetched[place + r], value)
