"""What `apply` accepts: rows of integers, dense or sparse, read as int64 modulo 2^64.

NumPy and SciPy keep narrow types in sums and turn uint64 into floats, so the cast to int64 comes before any arithmetic.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Integers, kernel, transpose_block
from armslength.checks import type_name
from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError

ToIntegers = Callable[[NDArray[Any]], Integers]


def narrow(values: NDArray[Any]) -> Integers:
    """Integers as they are if their type fits int32, else as int64 modulo 2^64; contiguous, and copied only if they must be."""
    kind: Any = np.int32 if np.can_cast(values.dtype, np.int32) else np.int64
    return contiguous(values.astype(kind, copy=False))


class DenseRows:
    """A dense matrix; only the values that are read become integers, int32 or int64, by the function `integers`."""

    def __init__(self, array: NDArray[Any], integers: ToIntegers = narrow) -> None:
        self.array, self.integers = array, integers
        self.count, self.width = (int(size) for size in array.shape)

    def piece(self, start: int, stop: int, first: int, last: int) -> Integers:
        """Columns first … last−1 of rows start … stop−1, contiguous."""
        return contiguous(self.integers(self.array[start:stop, first:last]))

    def block(self, start: int, stop: int) -> Integers:
        """Rows start … stop−1."""
        return self.piece(start, stop, 0, self.width)


class SparseRows:
    """A sparse matrix by rows, as in `scipy.sparse.csr_array`, its values read as those of `DenseRows`; duplicates add up."""

    def __init__(
        self, starts: Integers, columns: Integers, values: Any, width: int, integers: ToIntegers = narrow
    ) -> None:
        self.starts, self.columns, self.values, self.integers = starts, columns, values, integers
        self.count, self.width = len(starts) - 1, width

    def block(self, start: int, stop: int) -> NDArray[np.int64]:
        """Rows start … stop−1 as a dense matrix."""
        return self.matrix(start, stop).toarray()

    def matrix(self, start: int, stop: int) -> sparse.csr_array:
        """Rows start … stop−1 in int64."""
        starts, columns, values = self.entries(start, stop)
        shape = stop - start, self.width
        return sparse.csr_array((values.astype(np.int64), columns, starts), shape)

    def entries(self, start: int, stop: int) -> tuple[Integers, Integers, Integers]:
        """(starts, columns, values) of rows start … stop−1."""
        starts = self.starts[start : stop + 1]
        part = slice(starts[0], starts[-1])
        values = contiguous(self.integers(self.values[part]))
        return starts - starts[0], contiguous(self.columns[part]), values


Rows = DenseRows | SparseRows


def integer_rows(X: Any, width: int) -> Rows:
    """X as rows of integers, if it is a matrix of an integer type or bool, dense or SciPy's, with that many columns."""
    if isinstance(X, (DenseRows, SparseRows)):
        check_shape((X.count, X.width), width)
        return X
    is_sparse = sparse.issparse(X)
    array = X if is_sparse else plain_array(X, "X")
    check_shape(array.shape, width)
    if array.dtype.kind not in "biu":
        remedy = "floor real values onto a grid first" if array.dtype.kind == "f" else "use an integer type"
        raise InputError(f"X must hold integers, got {type_name(array.dtype)}; {remedy}", "X")
    if not is_sparse:
        return DenseRows(array)
    stored = stored_rows(X, any_order=True)
    if stored is not None:
        return SparseRows(*stored, width)
    rows, columns, values = sparse_entries(X)
    # Cast first: `tocsr` adds up duplicate entries in the type that it finds.
    by_row = sparse.coo_array((values.astype(np.int64), (rows, columns)), shape=X.shape).tocsr()
    return SparseRows(by_row.indptr, by_row.indices, by_row.data, width)


def contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """The values in rows that lie together; copied only if they do not."""
    size = values.itemsize
    if values.ndim != 2 or size not in (4, 8) or values.strides[0] != size or values.flags.c_contiguous:
        return np.ascontiguousarray(values)
    # A column lies together, as in data frames and Fortran order.
    rows = np.empty(values.shape, dtype=values.dtype)
    bits: Any = np.int32 if size == 4 else np.int64
    transpose(values.T.view(bits), rows.view(bits))
    return rows


def check_shape(shape: tuple[int, ...], width: int | None) -> None:
    """Refuses what is no matrix of that many columns."""
    if len(shape) != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, coordinates), got {len(shape)}; try X.reshape(1, -1)", "X"
        )
    if width is not None and shape[1] != width:
        raise InputError(f"X must have {width} columns, one for each coordinate, got {shape[1]}", "X")


def plain_array(values: Any, name: str) -> NDArray[Any]:
    """The values as an array, if they are one; a mask is never dropped in silence."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; fill its masked entries first", name)
    try:
        return np.asarray(values)
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    except Exception:  # noqa: BLE001  # the error of whatever makes itself an array may quote the data
        raise InputError(f"{name} must be an array of numbers", name) from None


def sparse_entries(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """(rows, columns, values) of a SciPy sparse matrix of any format: checked, in its own type, nothing added up.

    SciPy's conversions trust the indices of what they convert; broken ones can end the process.
    """
    problem = InputError("the indices of a sparse matrix do not fit its shape")
    try:
        if hasattr(matrix, "indptr") and not _rises(matrix.indptr, len(matrix.indices)):
            raise problem  # SciPy's own check passes over it where the last start is 0
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        entries = matrix.tocoo()
        rows, columns = (np.asarray(index, dtype=np.int64) for index in (entries.row, entries.col))
    except (ValueError, TypeError, IndexError, AttributeError):
        raise problem from None
    for index, size in zip((rows, columns), matrix.shape, strict=True):
        if len(index) != len(entries.data) or not _are_within(index, size):
            raise problem
    return rows, columns, entries.data


def _rises(starts: Any, count: int) -> bool:
    """Whether the starts of rows or columns begin at 0, never fall, and end within so many entries."""
    array = np.asarray(starts)
    ends_fit = array.ndim == 1 and len(array) > 0 and array[0] == 0 and array[-1] <= count
    return bool(ends_fit and (array[:-1] <= array[1:]).all())


def stored_rows(matrix: Any, *, any_order: bool) -> tuple[Integers, Integers, NDArray[Any]] | None:
    """(starts, columns, values) of a SciPy matrix that is stored by rows, validly; nothing is copied. None for any other.

    With `any_order` a row's columns may come in any order, and more than once; otherwise they must rise.
    """
    if matrix.format != "csr":
        return None
    starts, columns, values = (np.asarray(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    if not {starts.dtype, columns.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}:
        return None
    if starts.shape != (matrix.shape[0] + 1,) or columns.ndim != 1 or columns.shape != values.shape:
        return None
    if not _rises(starts, len(columns)):
        return None
    used = slice(starts[-1])  # there may be spare room behind the last entry
    columns, values = columns[used], values[used]
    is_valid = _are_within(columns, matrix.shape[1]) and (
        any_order or sparse.csr_array((values, columns, starts), matrix.shape).has_canonical_format
    )
    return (starts, columns, values) if is_valid else None


def _are_within(indices: Integers, size: int) -> bool:
    return not len(indices) or bool(0 <= indices.min() <= indices.max() < size)


@kernel
def transpose(columns: Integers, rows: Integers) -> None:
    """rows = columnsᵀ, block by block (NumPy's copy goes entry by entry); both int32 or both int64, rows contiguous."""
    size = 64 // rows.itemsize
    whole_rows, whole_columns = rows.shape[0] // size * size, rows.shape[1] // size * size
    for j in range(0, whole_columns, size):
        for i in range(0, whole_rows, size):
            transpose_block(columns, j, i, rows, i, j)
    for j in range(whole_columns, rows.shape[1]):
        for i in range(rows.shape[0]):
            rows[i, j] = columns[j, i]
    for i in range(whole_rows, rows.shape[0]):
        for j in range(whole_columns):
            rows[i, j] = columns[j, i]
