"""The Walsh-Hadamard transform of integers, without its factor 1/√d: entries (−1)^popcount(f AND j)."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel


@kernel
def walsh(vector: NDArray[np.int64]) -> None:
    """vector = H·vector modulo 2^64, in place; the length is a power of two.

    Three doublings at a time: the vector goes through the cache a third as often.
    """
    half = 1
    while 8 * half <= len(vector):
        for start in range(0, len(vector), 8 * half):
            _eight(vector[start : start + 8 * half], half)
        half *= 8
    while half < len(vector):
        for start in range(0, len(vector), 2 * half):
            upper, lower = vector[start : start + half], vector[start + half : start + 2 * half]
            for j in range(half):
                a, b = upper[j], lower[j]
                upper[j], lower[j] = a + b, a - b
        half *= 2


@kernel
def _eight(part: NDArray[np.int64], size: int) -> None:
    """The Walsh-Hadamard transform across eight runs of this size."""
    v0, v1, v2, v3 = part[:size], part[size:], part[2 * size :], part[3 * size :]
    v4, v5, v6, v7 = part[4 * size :], part[5 * size :], part[6 * size :], part[7 * size :]
    for j in range(size):
        a0, a1 = v0[j] + v1[j], v0[j] - v1[j]
        a2, a3 = v2[j] + v3[j], v2[j] - v3[j]
        a4, a5 = v4[j] + v5[j], v4[j] - v5[j]
        a6, a7 = v6[j] + v7[j], v6[j] - v7[j]
        b0, b2 = a0 + a2, a0 - a2
        b1, b3 = a1 + a3, a1 - a3
        b4, b6 = a4 + a6, a4 - a6
        b5, b7 = a5 + a7, a5 - a7
        v0[j], v4[j] = b0 + b4, b0 - b4
        v1[j], v5[j] = b1 + b5, b1 - b5
        v2[j], v6[j] = b2 + b6, b2 - b6
        v3[j], v7[j] = b3 + b7, b3 - b7


@kernel
def walsh_rows(rows: Integers, signs: NDArray[np.int64], padded: NDArray[np.int64], index: int) -> None:
    """padded = H·D·rows[index] modulo 2^64, with zeros behind the row."""
    width = rows.shape[1]
    for j in range(width):
        padded[j] = np.int64(rows[index, j]) * signs[j]
    padded[width:] = 0
    walsh(padded)


@kernel
def walsh_all(rows: Integers, signs: NDArray[np.int64], product: NDArray[np.int64]) -> None:
    """product = H·D·row modulo 2^64, for each row."""
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, product[i], i)


@kernel
def project_sampled(
    rows: Integers,
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
    rows: Integers,
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
