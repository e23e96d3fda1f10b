"""Adding ±value to the rows that a sparse column names.

A column of `SparseJL` is s numbers: the row, or −1−row where the entry is −1.
"""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel


@kernel
def scatter_dense(rows: NDArray[np.int64], encoded: NDArray[np.int32], product: NDArray[np.int64]) -> None:
    """product += rows·Aᵀ modulo 2^64, for the columns of A that `encoded` holds."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = rows[i, j]
            if value != 0:
                for r in range(encoded.shape[1]):
                    entry = encoded[j, r]
                    if entry >= 0:
                        product[i, entry] += value
                    else:
                        product[i, -1 - entry] -= value


@kernel
def scatter_sparse(
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
    encoded: NDArray[np.int32],
    product: NDArray[np.int64],
) -> None:
    """product += rows·Aᵀ modulo 2^64, for rows of (column, value) entries."""
    for i in range(len(starts) - 1):
        for position in range(starts[i], starts[i + 1]):
            value = values[position]
            for r in range(encoded.shape[1]):
                entry = encoded[columns[position], r]
                if entry >= 0:
                    product[i, entry] += value
                else:
                    product[i, -1 - entry] -= value
