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


def opened(X: Any) -> Any:
    """X with its Arrow stream opened, which some tables allow only once; anything else as it is."""
    if sparse.issparse(X) or not hasattr(X, "__arrow_c_stream__"):
        return X
    try:
        return pa.RecordBatchReader.from_stream(X)
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError(
            "X must be a readable table of numbers with column names, got something else"
        ) from None


def integer_blocks(
    X: Any, grid: Grid, width: int | None, vocabulary: str | None, threads: int | None
) -> Iterator[Any]:
    """Consecutive blocks of rows of X in grid units: int64 arrays or CSR arrays.

    Args:
        X: A dense array, a SciPy sparse matrix, or a table that `opened` has opened.
        grid: How values become integers.
        width: How many columns X must have; None for any.
        vocabulary: The hash of the names that a table's columns must have, or None.
        threads: At most this many threads.
    """
    if sparse.issparse(X):
        yield from _sparse_blocks(X, grid, width)
    elif isinstance(X, pa.RecordBatchReader):
        yield from _table_blocks(X, grid, width, vocabulary)
    else:
        yield from _dense_blocks(X, grid, width, threads)


def column_names(X: Any) -> list[str] | None:
    """The names of a table's columns; None for what has no names."""
    return _data_columns(X.schema) if isinstance(X, pa.RecordBatchReader) else None


def _data_columns(schema: pa.Schema) -> list[str]:
    """The columns that are data: a pandas index travels as a column, and is none."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in index]
    if len(set(names)) != len(names):
        raise InputError("columns of X must have different names, got duplicates")
    return names


def _check_shape(shape: tuple[int, ...], width: int | None) -> None:
    if len(shape) != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, coordinates), got {len(shape)}; try X.reshape(1, -1)"
        )
    if shape[0] == 0:
        raise InputError("X must have a row, got none")
    if width is not None and shape[1] != width:
        raise InputError(f"X must have {width} columns, one for each coordinate, got {shape[1]}")


def _dense_blocks(X: Any, grid: Grid, width: int | None, threads: int | None) -> Iterator[NDArray[np.int64]]:
    array = plain_array(X, "X")
    if (
        array is not X
        and array.dtype.kind == "f"
        and np.any(np.abs(array) >= 2.0**53)
        and _has_large_integers(X)
    ):
        raise InputError(
            "X must be an array of one integer type when it holds large integers, got a list with floats"
        )
    _check_shape(array.shape, width)
    if array.dtype.kind not in "biuf":
        raise InputError(f"X must hold integers or floats, got {array.dtype}")
    step = max(1, _ENTRIES_AT_ONCE // max(1, array.shape[1]))
    for start in range(0, array.shape[0], step):
        yield grid.integers(array[start : start + step], threads)


def _has_large_integers(values: Any) -> bool:
    """Whether a nested list holds integers that NumPy has rounded to floats, beside other floats."""
    if isinstance(values, (list, tuple)):
        return any(_has_large_integers(inner) for inner in values)
    return isinstance(values, (int, np.integer)) and abs(int(values)) > 2**53


def _sparse_blocks(X: Any, grid: Grid, width: int | None) -> Iterator[Any]:
    _check_shape(X.shape, width)
    if not grid.zero_stays_zero:
        raise InputError("value_range must hold 0 for sparse X, got a range without it; pass X.toarray()")
    if X.shape[0] * X.shape[1] >= 2**63:
        raise InputError("sparse X must have fewer than 2^63 places, got more; release it in parts")
    rows, columns, entries = sparse_entries(X)
    duplicates = _duplicates(rows * X.shape[1] + columns)
    if not duplicates:
        values = grid.integers(entries)
    elif entries.dtype.kind not in "biu":
        raise InputError(
            "sparse X of real values must have each entry once, got duplicates; floats are never summed"
        )
    else:
        # Integers add up before they are clamped or floored, so the sums themselves must not wrap.
        largest = max(abs(int(entries.max())), abs(int(entries.min())))
        if not grid.is_linear and largest * (duplicates + 1) >= 2**63:
            raise InputError("sparse X must have each large entry once, got duplicates that could overflow")
        summed = sparse.coo_array((entries.astype(np.int64), (rows, columns)), shape=X.shape).tocsr()
        summed.sum_duplicates()
        yield sparse.csr_array((grid.integers(summed.data), summed.indices, summed.indptr), shape=X.shape)
        return
    yield sparse.coo_array((values, (rows, columns)), shape=X.shape).tocsr()


def _duplicates(places: NDArray[np.int64]) -> int:
    """How many entries stand where another one stands."""
    if np.all(places[1:] > places[:-1]):  # as a canonical matrix has them
        return 0
    ordered = np.sort(places)
    return int((ordered[1:] == ordered[:-1]).sum())


def _table_blocks(
    reader: pa.RecordBatchReader, grid: Grid, width: int | None, vocabulary: str | None
) -> Iterator[NDArray[np.int64]]:
    names = _data_columns(reader.schema)
    for name in names:
        kind = reader.schema.field(name).type
        whole_decimal = pa.types.is_decimal(kind) and kind.scale == 0
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or whole_decimal
        ):
            raise InputError(
                f"columns of X must hold numbers, got {kind} in column {name!r}; leave it out, or cast it"
            )
    check_columns(names, vocabulary)
    found = False
    for batch in _batches(reader):
        if batch.num_rows == 0:
            continue
        found = True
        _check_shape((batch.num_rows, len(names)), width)
        block = np.empty((batch.num_rows, len(names)), dtype=np.int64)
        for number, name in enumerate(names):
            block[:, number] = grid.integers(_numbers(batch.column(name), name))
        yield block
    if not found:
        raise InputError("X must have a row, got none")


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            yield reader.read_next_batch()
        except StopIteration:
            return
        except Exception:  # noqa: BLE001  # an engine's own error may quote the data
            raise InputError(
                "X must be a table that can be read to its end, got an error in the middle"
            ) from None


def _numbers(column: pa.Array, name: str) -> NDArray[Any]:
    """The column as an array, if nothing is missing and whole decimals fit int64."""
    if column.null_count:
        raise InputError(f"columns of X must have no missing values, got some in column {name!r}")
    if pa.types.is_decimal(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(f"decimals of X must fit int64, got larger ones in column {name!r}") from None
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
