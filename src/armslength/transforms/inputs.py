"""What `apply` accepts: rows of integers, dense or sparse, read as int64 modulo 2^64.

NumPy and SciPy keep narrow types in sums and turn uint64 into floats, so the cast to int64 comes before
any arithmetic, the merging of duplicate entries included.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength.errors import InputError


@dataclass(frozen=True)
class DenseRows:
    """A dense matrix of some integer type; `block` casts only what is asked for."""

    array: NDArray[Any]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.array)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.array.shape[1])

    def block(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows start … stop−1 as contiguous int64, modulo 2^64."""
        return np.ascontiguousarray(self.array[start:stop]).astype(np.int64, order="C", copy=False)


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix by rows, its values already int64 modulo 2^64; duplicates add up."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    width: int

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.starts) - 1

    def block(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows start … stop−1 as a dense matrix."""
        dense = np.zeros((stop - start, self.width), dtype=np.int64)
        entries = slice(self.starts[start], self.starts[stop])
        rows = np.repeat(np.arange(stop - start), np.diff(self.starts[start : stop + 1]))
        np.add.at(dense, (rows, self.columns[entries]), self.values[entries])
        return dense


def integer_rows(X: Any, width: int) -> DenseRows | SparseRows:
    """X as rows of integers, if it is a matrix of an integer type with that many columns.

    Args:
        X: A dense array, or any SciPy sparse array or matrix, of any integer type or bool.
        width: How many columns X must have.
    """
    is_sparse = sparse.issparse(X)
    array = X if is_sparse else np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, coordinates), got {array.ndim}; try X.reshape(1, -1)"
        )
    if array.shape[1] != width:
        raise InputError(f"X must have {width} columns, one for each coordinate, got {array.shape[1]}")
    if array.dtype.kind not in "biu":
        raise InputError(f"X must hold integers, got {array.dtype}; floor real values onto a grid first")
    return _sparse_rows(array) if is_sparse else DenseRows(array)


def _sparse_rows(matrix: Any) -> SparseRows:
    """The rows of a SciPy sparse matrix of any format and integer type."""
    # Cast first: `tocsr` adds up duplicate entries in the type that it finds.
    by_row = sparse.csr_array(matrix.astype(np.int64).tocsr())
    starts = by_row.indptr.astype(np.int64)
    entries = int(starts[-1])
    if (
        starts[0] != 0
        or np.any(np.diff(starts) < 0)
        or entries > min(len(by_row.indices), len(by_row.data))
        or (entries and not 0 <= by_row.indices.min() <= by_row.indices.max() < by_row.shape[1])
    ):
        raise InputError("X must be a valid sparse matrix, got one whose indices do not fit its shape")
    return SparseRows(
        starts, by_row.indices[:entries].astype(np.int64), by_row.data[:entries], by_row.shape[1]
    )
