"""The columns of `SparseJL`, from hash functions (specification, section 7)."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel
from armslength.randomness.field import scaled_to
from armslength.randomness.hashing import hash_value

_ONE = np.uint64(1)


@kernel
def _signed(row: np.int64, low: np.uint64) -> np.int64:
    """The row, or −1−row where the hash value is odd."""
    return -1 - row if low & _ONE else row


@kernel
def block_columns(
    coefficients: NDArray[np.uint64], items: NDArray[np.uint64], buckets: int, encoded: Integers
) -> None:
    """Block construction: block r of a column has its entry in the row of bucket_r."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            bucket = scaled_to(high, low, np.uint64(buckets))
            encoded[j, r] = _signed(r * buckets + np.int64(bucket), low)


@kernel
def graph_columns(
    coefficients: NDArray[np.uint64], items: NDArray[np.uint64], sketch_dim: int, encoded: Integers
) -> None:
    """Graph construction: s distinct rows by Floyd's method, so every s-subset is equally likely."""
    sparsity = coefficients.shape[0]
    taken_by = np.full(sketch_dim, -1, dtype=np.int64)
    for j in range(items.shape[0]):
        for r in range(sparsity):
            largest = sketch_dim - sparsity + r
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            row = np.int64(scaled_to(high, low, np.uint64(largest + 1)))
            if taken_by[row] == j:
                row = np.int64(largest)
            taken_by[row] = j
            encoded[j, r] = _signed(row, low)


@kernel
def balanced_columns(
    coefficients: NDArray[np.uint64],
    dealt: NDArray[np.int32],
    items: NDArray[np.uint64],
    buckets: int,
    encoded: Integers,
) -> None:
    """Balanced construction: buckets were dealt out by a permutation per block, signs come from the hash functions."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            _, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            encoded[j, r] = _signed(r * buckets + np.int64(dealt[r, items[j, 1]]), low)
