"""The exact product of integer rows with a dense matrix of small integers, modulo 2^64."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel

_EXACT_IN_FLOAT64 = 2**53


def add_product(rows: Integers, columns: NDArray[np.int8], largest: int, product: NDArray[np.int64]) -> None:
    """product += rows·columns modulo 2^64, exactly.

    While largest·‖row‖₁ stays below 2^53, every partial sum of every order is an integer that float64
    holds exactly, so the BLAS may be used; otherwise the sum is made in int64.

    Args:
        rows: n x m.
        columns: m x k: row j is column j of A.
        largest: An upper bound on |A|.
        product: n x k.
    """
    if largest * _largest_l1(rows) < _EXACT_IN_FLOAT64:
        product += (rows.astype(np.float64) @ columns.astype(np.float64)).astype(np.int64)
    else:
        _add_product(rows, columns, product)


def _largest_l1(rows: Integers) -> int:
    """An upper bound on the largest ℓ1 norm of a row, in Python integers."""
    if rows.size == 0:
        return 0
    largest_entry = max(int(rows.max()), -int(rows.min()))
    if largest_entry * rows.shape[1] < 2**62:
        return int(np.abs(rows.astype(np.int64)).sum(axis=1).max())
    return int(largest_entry * rows.shape[1])


@kernel
def _add_product(rows: Integers, columns: NDArray[np.int8], product: NDArray[np.int64]) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = np.int64(rows[i, j])
            if value != 0:
                for number in range(columns.shape[1]):
                    product[i, number] += value * np.int64(columns[j, number])


@kernel
def add_sparse_product(
    starts: Integers,
    positions: Integers,
    values: Integers,
    columns: NDArray[np.int8],
    product: NDArray[np.int64],
) -> None:
    """product += rows·columns modulo 2^64, for rows of (position in columns, value) entries."""
    for i in range(len(starts) - 1):
        for entry in range(starts[i], starts[i + 1]):
            for number in range(columns.shape[1]):
                product[i, number] += np.int64(values[entry]) * np.int64(columns[positions[entry], number])


@kernel
def multiply_columns(
    rows: Integers,
    starts: NDArray[np.int64],
    numbers: NDArray[np.int64],
    entries: NDArray[np.int64],
    product: NDArray[np.int64],
) -> None:
    """product += rows·Aᵀ modulo 2^64, for a sparse A by columns of (row number, entry)."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = np.int64(rows[i, j])
            if value != 0:
                for position in range(starts[j], starts[j + 1]):
                    product[i, numbers[position]] += value * entries[position]
