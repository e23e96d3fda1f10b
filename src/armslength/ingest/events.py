"""From lists of events to the sums of one row, for streams, **not private**; each different item is hashed once."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength.checks import short_repr, type_name
from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError
from armslength.ingest.arrays import check_item_types
from armslength.ingest.sums import Sums
from armslength.protocol.protocol import Protocol
from armslength.randomness.hashing import UNREADABLE, read_to_the_end
from armslength.transforms.integer_rows import SparseRows, plain_array
from armslength.transforms.transform import Transform

_EVENTS_AT_ONCE = 1 << 17
_ENTRIES_AT_ONCE = 1 << 20
_MOST_TOTALS = 1 << 21  # 16 MB


def event_sums(protocol: Protocol, items: Any, amounts: Any) -> Sums:
    """Σ amount·A[:, item] modulo 2^64 over all events, and Σ amount where there are totals.

    Items are column numbers or, for an open vocabulary, of the protocol's type. Amounts are integers in grid units: one, or one for each.
    """
    transform = protocol.transform
    if isinstance(items, Iterator):
        items = read_to_the_end(items)
    column = _arrow_column(items)
    if column is not None and column.null_count:
        raise InputError("items has missing values; leave those events out", "items")
    if transform.input_dim is not None:
        if column is not None and not pa.types.is_integer(column.type):
            raise InputError(f"items must be column numbers, got {type_name(column.type)}", "items")
        numbers = transform.column_numbers(items if column is None else column.to_numpy())
        whole = _whole_amounts(amounts, len(numbers))
        values = _sketch_of_numbers(transform, numbers, whole)[None, :]
    else:
        if column is None:
            column = _column_of_list(protocol, items)
        whole = _whole_amounts(amounts, len(column))
        different, totals = _counts(column, whole, protocol.items)
        values = transform.apply(totals[None, :], items=different)  # type: ignore[call-arg]  # open vocabularies are SparseJL's
    return Sums(values, whole.sum(dtype=np.int64, keepdims=True) if protocol.total_share else None, "stream")


def _sketch_of_numbers(
    transform: Transform, numbers: NDArray[np.int64], amounts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For a fixed input_dim: s additions for each event with `SparseJL`, a column for each different item with the others."""
    width = transform.input_dim or 0
    if width <= min(len(numbers), _MOST_TOTALS):
        # more events than columns: adding to one total is less work than to s coordinates
        return np.asarray(transform.apply(_totals(numbers, amounts, width)[None, :])[0])
    if transform.cheap_per_event:
        # as rows of a sparse matrix that are added up, so that threads share the work
        starts = np.append(np.arange(0, max(1, len(numbers)), _EVENTS_AT_ONCE), len(numbers))
        return np.asarray(transform.apply(SparseRows(starts, numbers, amounts, width)).sum(axis=0))
    different, places = np.unique(numbers, return_inverse=True)
    totals = _totals(places, amounts, len(different))
    sketch = np.zeros(transform.sketch_dim, dtype=np.int64)
    step = max(1, _ENTRIES_AT_ONCE // (transform.column_entries or transform.sketch_dim))
    for first in range(0, len(different), step):
        sketch += transform.columns(different[first : first + step]) @ totals[first : first + step]
    return sketch


def _totals(numbers: NDArray[Any], amounts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The total amount of each number below count."""
    totals = np.zeros(count, dtype=np.int64)
    np.add.at(totals, numbers, amounts)
    return totals


def _arrow_column(items: Any) -> pa.ChunkedArray | None:
    """Items as an Arrow column, if that is what they are."""
    if isinstance(items, pa.ChunkedArray):
        return items
    if not hasattr(items, "__arrow_c_array__") and not hasattr(items, "__arrow_c_stream__"):
        return None
    try:
        return pa.chunked_array(items if hasattr(items, "__arrow_c_stream__") else [pa.array(items)])
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError("cannot read items as one column", "items") from None


def _column_of_list(protocol: Protocol, items: Any) -> pa.ChunkedArray:
    """Items of a list or an array as an Arrow column of the protocol's type."""
    if isinstance(items, Mapping):
        raise InputError(
            "items must be a list, got a mapping; pass its keys, and its values as amounts", "items"
        )
    try:
        values = items.tolist() if isinstance(items, np.ndarray) else list(items)
        check_item_types(protocol, values)  # before Arrow, which takes 1.0 and True for 1
        return pa.chunked_array([pa.array(values, pa.string() if protocol.items == "string" else pa.int64())])
    except InputError:
        raise
    except TypeError:
        raise InputError(f"items must be a list, got {type(items).__name__}", "items") from None
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError(UNREADABLE) from None


def _counts(column: pa.ChunkedArray, amounts: NDArray[np.int64], kind: str) -> tuple[Any, NDArray[np.int64]]:
    """(the different items of an Arrow column, the total amount of each)."""
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text_types = (pa.string(), pa.large_string(), pa.string_view())
    if not (value_type in text_types if kind == "string" else pa.types.is_integer(value_type)):
        raise InputError(
            f"items must be of the protocol's type {kind}, got {type_name(value_type)}; cast them", "items"
        )
    try:
        column.validate(full=True)  # it may come from anywhere
    except pa.ArrowException:
        raise InputError("items holds invalid text, or an invalid dictionary", "items") from None
    if pa.types.is_dictionary(column.type):
        parts = np.split(amounts, np.cumsum([len(chunk) for chunk in column.chunks]))
        totals = [
            _totals(chunk.indices.to_numpy(), part, len(chunk.dictionary))
            for chunk, part in zip(column.chunks, parts, strict=False)
        ]
        amounts = np.concatenate([np.zeros(0, dtype=np.int64), *totals])
        column = pa.chunked_array([chunk.dictionary for chunk in column.chunks], value_type)
    if column.null_count:
        raise InputError("the dictionary of items has missing values", "items")
    coded = pc.dictionary_encode(column).combine_chunks()
    different = coded.dictionary
    sums = _totals(coded.indices.to_numpy(), amounts, len(different))
    return different.to_pylist() if kind == "string" else different.to_numpy(), sums


def _whole_amounts(amounts: Any, count: int) -> NDArray[np.int64]:
    """Amounts as int64, one for each item."""
    array = plain_array(amounts, "amounts")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(
            f"amounts must be integers in grid units, got {type_name(array.dtype)}; floor them", "amounts"
        )
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise InputError(
            f"amounts must be one integer, or {count} of them, got shape {short_repr(array.shape)}", "amounts"
        )
    return np.broadcast_to(array.astype(np.int64, copy=False), (count,))
