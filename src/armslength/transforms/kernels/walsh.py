"""The Walsh-Hadamard transform of integers, without its factor 1/√d: entries (−1)^popcount(f AND j)."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel


@kernel
def walsh(vector: NDArray[np.int64]) -> None:
    """vector = H·vector modulo 2^64, in place; the length is a power of two."""
    half = 1
    while half < len(vector):
        for start in range(0, len(vector), 2 * half):
            for j in range(start, start + half):
                upper = vector[j]
                lower = vector[j + half]
                vector[j] = upper + lower
                vector[j + half] = upper - lower
        half *= 2


@kernel
def walsh_rows(
    rows: NDArray[np.int64], signs: NDArray[np.int64], padded: NDArray[np.int64], index: int
) -> None:
    """padded = H·D·rows[index] modulo 2^64, with zeros behind the row."""
    width = rows.shape[1]
    for j in range(width):
        padded[j] = rows[index, j] * signs[j]
    padded[width:] = 0
    walsh(padded)


@kernel
def walsh_all(rows: NDArray[np.int64], signs: NDArray[np.int64], product: NDArray[np.int64]) -> None:
    """product = H·D·row modulo 2^64, for each row."""
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, product[i], i)


@kernel
def project_sampled(
    rows: NDArray[np.int64],
    signs: NDArray[np.int64],
    sample: NDArray[np.int64],
    padded_dim: int,
    product: NDArray[np.int64],
) -> None:
    """product = the sampled coordinates of H·D·row, for each row."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, padded, i)
        for number in range(len(sample)):
            product[i, number] = padded[sample[number]]


@kernel
def project_combined(
    rows: NDArray[np.int64],
    signs: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
    padded_dim: int,
    product: NDArray[np.int64],
) -> None:
    """product = P·H·D·row modulo 2^64, for each row; P by rows of (column, value) entries."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, padded, i)
        for number in range(len(starts) - 1):
            total = np.int64(0)
            for position in range(starts[number], starts[number + 1]):
                total += values[position] * padded[columns[position]]
            product[i, number] = total


@kernel
def column_norms_of_walsh(
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
    padded_dim: int,
    l1: NDArray[np.int64],
    l2_squared: NDArray[np.int64],
) -> None:
    """Adds |entry| and entry² of each column of P·H to l1 and l2_squared, row by row of P."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for number in range(len(starts) - 1):
        padded[:] = 0
        for position in range(starts[number], starts[number + 1]):
            padded[columns[position]] += values[position]
        walsh(padded)
        for j in range(len(l1)):
            l1[j] += abs(padded[j])
            l2_squared[j] += padded[j] * padded[j]
