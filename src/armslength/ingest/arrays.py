"""What a release accepts, block by block, as integers in grid units: arrays, sparse matrices, Arrow tables."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Integers
from armslength.checks import type_name
from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError, ParameterError
from armslength.ingest.grid import Grid
from armslength.ingest.sums import RowSums, Sums
from armslength.protocol.protocol import Protocol, check_columns
from armslength.randomness.hashing import read_to_the_end
from armslength.threads import for_blocks
from armslength.transforms.integer_rows import (
    DenseRows,
    Rows,
    SparseRows,
    check_shape,
    plain_array,
    sparse_entries,
    stored_rows,
)
from armslength.transforms.transform import block_rows

_ENTRIES_AT_ONCE = 1 << 22  # of a table: 32 MB of integers


def array_sums(protocol: Protocol, X: Any, items: Any = None, threads: int | None = None) -> Sums:
    """The exact integers of X, read and checked; where noise goes on the input, they are multiplied later."""
    if protocol.noise_site != "input":
        return projected_sums(protocol, X, items, threads)
    transform = protocol.transform
    parts = list(_parts(protocol, X, items)[0])
    # reads every value, so that a bad one is refused now
    totals = np.concatenate([_row_totals(part, threads) for part in parts])
    values = np.empty((len(totals), transform.sketch_dim), dtype=np.int64)
    return RowSums(values, totals if protocol.total_share else None, "rows", parts, transform, threads)


def projected_sums(protocol: Protocol, X: Any, items: Any = None, threads: int | None = None) -> Sums:
    """The exact integers A·x of every row, wherever noise goes."""
    products, totals = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    parts, column_items = _parts(protocol, X, items)
    for part in parts:
        products.append(protocol.transform.apply(part, **column_items, threads=threads))
        if protocol.total_share:
            totals.append(_row_totals(part, threads))
    return Sums(_joined(products), np.concatenate(totals) if totals else None, "rows")


def _row_totals(rows: Rows, threads: int | None) -> NDArray[np.int64]:
    """Σⱼ xⱼ of each row in grid units, modulo 2^64, **not private**."""
    totals = np.zeros(rows.count, dtype=np.int64)

    def add_up(start: int, stop: int) -> None:
        if isinstance(rows, SparseRows):
            starts, _, values = rows.entries(start, stop)
            running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values, dtype=np.int64)])
            totals[start:stop] = running[starts[1:]] - running[starts[:-1]]
        else:
            totals[start:stop] = rows.block(start, stop).sum(axis=1, dtype=np.int64)

    width = max(1, len(rows.columns) // max(1, rows.count)) if isinstance(rows, SparseRows) else rows.width
    for_blocks(rows.count, block_rows(width), add_up, threads)
    return totals


def index_labels(X: Any) -> list[str] | None:
    """The index of a data frame, if it is text that names each row; None for anything else.

    Numbers are no labels: after a filter they say which rows were left out, and labels are published.
    """
    index: Any = getattr(X, "index", None)
    if getattr(index, "inferred_type", None) == "categorical":
        index = index.astype(index.categories.dtype)
    if getattr(index, "inferred_type", None) != "string":
        return None
    labels = list(index)
    if len(set(labels)) < len(labels) or not all(isinstance(label, str) for label in labels):
        raise InputError(
            "the index of X has duplicate or missing names; pass labels, or X.reset_index(drop=True)",
            "X",
            "labels",
        )
    return labels


def _checked_items(protocol: Protocol, items: Any) -> Any:
    """Items of the type that the protocol declares."""
    if items is None:
        raise InputError("items must name the columns of X for an open vocabulary", "items", "X")
    if isinstance(items, np.ndarray):
        items = items.tolist()
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, range)):
        raise InputError(
            f"items must be a list of type {protocol.items}, got {type(items).__name__}", "items"
        )
    names = read_to_the_end(items)
    check_item_types(protocol, names)
    if len(set(names)) != len(names):
        raise InputError("items names a column twice; add up columns of the same name first", "items")
    return names


def check_item_types(protocol: Protocol, items: list[Any]) -> None:
    """Refuses items that are not of the type that the protocol declares."""
    wanted = str if protocol.items == "string" else (int, np.integer)
    if not all(issubclass(kind, wanted) and not issubclass(kind, bool) for kind in set(map(type, items))):
        raise InputError(f"items must all be of the protocol's type {protocol.items}; convert them", "items")


def _parts(protocol: Protocol, X: Any, items: Any) -> tuple[Iterable[Rows], dict[str, Any]]:
    """(consecutive parts of X in grid units, the items of its columns as arguments for `apply`).

    Values are read, and refused, when a part is used.
    """
    width = protocol.transform.input_dim
    grid = Grid.of(protocol.resolution, protocol.value_range, on_grid=protocol.on_grid)
    reader = None
    if not sparse.issparse(X) and hasattr(X, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(X)  # once: some tables allow no second time
        except MemoryError:
            raise OutOfMemoryError(NO_MEMORY) from None
        except Exception:  # noqa: BLE001  # an engine's own error may quote the data
            raise InputError("cannot read X as a table of numbers with named columns", "X") from None
    column_items = {}
    if width is None:
        names = None if reader is None else _data_columns(reader.schema)
        column_items["items"] = _checked_items(protocol, names if items is None else items)
    elif items is not None:
        raise ParameterError("items cannot be given when input_dim is fixed", "items", "input_dim")
    if reader is not None:
        return _table_parts(reader, grid, width, protocol.vocabulary), column_items
    return [_sparse_rows(X, grid, width) if sparse.issparse(X) else _dense_rows(X, grid, width)], column_items


def _joined(products: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All of them in one array; frees each when it is copied."""
    if len(products) == 1:
        return products[0]
    result = np.empty((sum(map(len, products)), products[0].shape[1]), dtype=np.int64)
    start = 0
    products.reverse()
    while products:
        part = products.pop()
        result[start : start + len(part)] = part
        start += len(part)
    return result


def _data_columns(schema: pa.Schema) -> list[str]:
    """The columns that are data, without those of a pandas index."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        names = [name for name in schema.names if name not in index]
    except (ValueError, TypeError, AttributeError, RecursionError):  # it may hold anything
        raise InputError("the pandas metadata of X is invalid; drop it", "X") from None
    if len(set(names)) != len(names):
        raise InputError("two columns of X have the same name; rename one", "X")
    return names


def _check_matrix(X: Any, width: int | None) -> None:
    check_shape(X.shape, width)
    if X.shape[0] == 0:
        raise InputError("X has no rows", "X")
    if X.dtype.kind not in "biuf":
        raise InputError(f"X must hold integers or floats, got {type_name(X.dtype)}", "X")


def _dense_rows(X: Any, grid: Grid, width: int | None) -> DenseRows:
    array = plain_array(X, "X")
    is_list_of_floats = isinstance(X, (list, tuple)) and array.dtype.kind == "f"
    if is_list_of_floats and np.any(np.abs(array) >= 2.0**53) and _has_large_integers(X):
        raise InputError(
            "X is a list that would round large integers to floats; pass an array of integers", "X"
        )
    _check_matrix(array, width)
    buffers = threading.local()

    def integers(values: NDArray[Any]) -> Integers:
        """The values in grid units; a thread's next floats overwrite the last ones."""
        buffer: NDArray[np.int64] | None = getattr(buffers, "integers", None)
        if values.dtype.kind == "f" and (buffer is None or len(buffer) < values.size):
            buffer = buffers.integers = np.empty(values.size, dtype=np.int64)
        return grid.integers(values, buffer)

    return DenseRows(array, integers)


def _has_large_integers(values: Any) -> bool:
    """Whether a nested list holds integers that NumPy has rounded to floats, beside other floats."""
    if isinstance(values, (list, tuple)):
        return any(_has_large_integers(inner) for inner in values)
    return isinstance(values, (int, np.integer)) and abs(int(values)) > 2**53


def _sparse_rows(X: Any, grid: Grid, width: int | None) -> SparseRows:
    _check_matrix(X, width)
    if not grid.zero_stays_zero:
        raise InputError("value_range must contain 0 for sparse X; pass X.toarray()", "value_range", "X")
    if X.shape[0] * X.shape[1] >= 2**63:
        raise InputError("sparse X has 2^63 places or more; release it in parts", "X")
    # integers that are only multiplied and added up need no order, and may come twice
    rows = stored_rows(X, any_order=grid.is_linear and X.dtype.kind != "f")
    return SparseRows(*(_by_rows(X, grid) if rows is None else rows), X.shape[1], grid.integers)


def _by_rows(X: Any, grid: Grid) -> tuple[Integers, Integers, NDArray[Any]]:
    """(starts, columns, values) of a matrix in any format; duplicates of integers are added up."""
    rows, columns, entries = sparse_entries(X)
    places = np.sort(rows * X.shape[1] + columns)
    duplicates = int((places[1:] == places[:-1]).sum())
    if duplicates:
        if entries.dtype.kind == "f":
            raise InputError("sparse X has duplicate entries of real values; add them up first", "X")
        # they add up before they are clamped or floored, so the sums must not wrap
        largest = max(abs(int(entries.max())), abs(int(entries.min())))
        if not grid.is_linear and largest * (duplicates + 1) >= 2**63:
            raise InputError(
                "sparse X has duplicate entries whose sum could overflow; add them up first", "X"
            )
        entries = entries.astype(np.int64)
    by_row = sparse.coo_array((entries, (rows, columns)), shape=X.shape).tocsr()
    by_row.sum_duplicates()
    return by_row.indptr, by_row.indices, by_row.data


def _table_parts(
    reader: pa.RecordBatchReader, grid: Grid, width: int | None, vocabulary: str | None
) -> Iterator[DenseRows]:
    names = _data_columns(reader.schema)
    for number, name in enumerate(names):
        kind = reader.schema.field(name).type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        is_decimal = pa.types.is_decimal(kind)
        if not is_number and not (is_decimal and kind.scale == 0):
            # no names: those of a pivoted table are items of the data
            problem = "decimals with a fraction" if is_decimal else type_name(kind)
            raise InputError(
                f"columns of X must hold numbers, got {problem} in column number {number} (from 0); leave it out, or cast it",
                "X",
            )
    check_columns(names, vocabulary)
    check_shape((1, len(names)), width)
    has_rows = False
    rows_at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(names)))
    for batch in _batches(reader):
        for start in range(0, batch.num_rows, rows_at_once):
            part = batch.slice(start, rows_at_once)
            has_rows = True
            block = np.empty((part.num_rows, len(names)), dtype=np.int64)
            for number, name in enumerate(names):
                block[:, number] = grid.integers(_numbers(part.column(name), number))
            yield DenseRows(block)
    if not has_rows:
        raise InputError("X has no rows", "X")


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError("cannot read X to its end", "X") from None


def _numbers(column: pa.Array, number: int) -> NDArray[Any]:
    """The column as an array, if nothing is missing and whole decimals fit int64."""
    if column.null_count:
        raise InputError(f"X has missing values in column number {number} (from 0); fill them first", "X")
    if pa.types.is_decimal(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(
                f"X has decimals that do not fit int64 in column number {number} (from 0)", "X"
            ) from None
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
