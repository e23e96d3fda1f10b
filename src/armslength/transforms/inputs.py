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
    array = X if is_sparse else plain_array(X, "X")
    if array.ndim != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, coordinates), got {array.ndim}; try X.reshape(1, -1)"
        )
    if array.shape[1] != width:
        raise InputError(f"X must have {width} columns, one for each coordinate, got {array.shape[1]}")
    if array.dtype.kind not in "biu":
        remedy = "floor real values onto a grid first" if array.dtype.kind == "f" else "use an integer type"
        raise InputError(f"X must hold integers, got {array.dtype}; {remedy}")
    return _sparse_rows(array) if is_sparse else DenseRows(array)


def plain_array(values: Any, name: str) -> NDArray[Any]:
    """The values as an array, if they are one; a mask is never dropped in silence."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} must have no masked entries, got a masked array; fill them first")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{name} must be an array of numbers, got something else") from None


def sparse_entries(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """(rows, columns, values) of a SciPy sparse matrix of any format: checked, in its own type, nothing added up.

    SciPy's conversions trust the indices of what they convert; broken ones can end the process.
    """
    problem = InputError("a sparse matrix must be valid, got one whose indices do not fit its shape")
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        entries = matrix.tocoo()
        rows, columns = (np.asarray(index, dtype=np.int64) for index in (entries.row, entries.col))
    except (ValueError, TypeError, IndexError, AttributeError):
        raise problem from None
    for index, size in zip((rows, columns), matrix.shape, strict=True):
        if len(index) != len(entries.data) or (len(index) and not 0 <= index.min() <= index.max() < size):
            raise problem
    return rows, columns, entries.data


def _sparse_rows(matrix: Any) -> SparseRows:
    """The rows of a SciPy sparse matrix of any format and integer type."""
    rows, columns, values = sparse_entries(matrix)
    # Cast first: `tocsr` adds up duplicate entries in the type that it finds.
    by_row = sparse.coo_array((values.astype(np.int64), (rows, columns)), shape=matrix.shape).tocsr()
    return SparseRows(
        by_row.indptr.astype(np.int64), by_row.indices.astype(np.int64), by_row.data, by_row.shape[1]
    )
