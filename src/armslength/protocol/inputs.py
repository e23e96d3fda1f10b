"""What a release accepts, block by block, as integers in grid units: arrays, sparse matrices, Arrow tables."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from armslength.errors import InputError
from armslength.protocol.quantize import Grid
from armslength.protocol.vocabulary import check_columns
from armslength.transforms.inputs import plain_array, sparse_entries

_ENTRIES_AT_ONCE = 1 << 23


def integer_blocks(X: Any, grid: Grid, width: int | None, vocabulary: str | None) -> Iterator[Any]:
    """Consecutive blocks of rows of X in grid units: int64 arrays or CSR arrays.

    Args:
        X: A dense array, a SciPy sparse matrix, or anything with an Arrow C stream (data frames, tables, relations).
        grid: How values become integers.
        width: How many columns X must have; None for any.
        vocabulary: The hash of the names that a table's columns must have, or None.
    """
    if sparse.issparse(X):
        yield from _sparse_blocks(X, grid, width)
    elif hasattr(X, "__arrow_c_stream__"):
        yield from _table_blocks(X, grid, width, vocabulary)
    else:
        yield from _dense_blocks(X, grid, width)


def column_names(X: Any) -> list[str] | None:
    """The names of a table's columns; None for what has no names."""
    if not hasattr(X, "__arrow_c_stream__"):
        return None
    return [str(name) for name in _reader(X).schema.names]


def _check_shape(shape: tuple[int, ...], width: int | None) -> None:
    if len(shape) != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, coordinates), got {len(shape)}; try X.reshape(1, -1)"
        )
    if shape[0] == 0:
        raise InputError("X must have a row, got none")
    if width is not None and shape[1] != width:
        raise InputError(f"X must have {width} columns, one for each coordinate, got {shape[1]}")


def _dense_blocks(X: Any, grid: Grid, width: int | None) -> Iterator[NDArray[np.int64]]:
    array = plain_array(X, "X")
    _check_shape(array.shape, width)
    if array.dtype.kind not in "biuf":
        raise InputError(f"X must hold integers or floats, got {array.dtype}")
    step = max(1, _ENTRIES_AT_ONCE // max(1, array.shape[1]))
    for start in range(0, array.shape[0], step):
        yield grid.integers(array[start : start + step])


def _sparse_blocks(X: Any, grid: Grid, width: int | None) -> Iterator[Any]:
    _check_shape(X.shape, width)
    if not grid.zero_stays_zero:
        raise InputError("value_range must hold 0 for sparse X, got a range without it; pass X.toarray()")
    rows, columns, entries = sparse_entries(X)
    if entries.dtype.kind in "biu":
        # Integers add up exactly, before anything else happens to them.
        values = sparse.coo_array((entries.astype(np.int64), (rows, columns)), shape=X.shape).tocsr()
        values.sum_duplicates()
        yield sparse.csr_array((grid.integers(values.data), values.indices, values.indptr), shape=X.shape)
        return
    if len(np.unique(rows * X.shape[1] + columns)) != len(rows):
        raise InputError(
            "sparse X of real values must have each entry once, got duplicates; floats are never summed"
        )
    yield sparse.coo_array((grid.integers(entries), (rows, columns)), shape=X.shape).tocsr()


def _reader(X: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(X)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        raise InputError("X must be a table of numbers with column names, got something else") from None


def _table_blocks(
    X: Any, grid: Grid, width: int | None, vocabulary: str | None
) -> Iterator[NDArray[np.int64]]:
    reader = _reader(X)
    names = [str(name) for name in reader.schema.names]
    for name, kind in zip(names, reader.schema.types, strict=True):
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"columns of X must hold numbers, got {kind} in column {name!r}; leave it out")
    check_columns(names, vocabulary)
    found = False
    for batch in reader:
        if batch.num_rows == 0:
            continue
        found = True
        _check_shape((batch.num_rows, batch.num_columns), width)
        block = np.empty((batch.num_rows, batch.num_columns), dtype=np.int64)
        for number, column in enumerate(batch.columns):
            if column.null_count:
                raise InputError(
                    f"columns of X must have no missing values, got some in column {names[number]!r}"
                )
            block[:, number] = grid.integers(column.to_numpy(zero_copy_only=False))
        yield block
    if not found:
        raise InputError("X must have a row, got none")
