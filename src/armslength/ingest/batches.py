"""Batches of Arrow that fit memory and the engine: of few bytes, and of types that it reads whatever their values are.

Guarantee: a value is converted by itself, and becomes missing where the engine's type cannot hold it. No row decides about another one,
and how rows are cut into batches changes no sum.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.errors import InputError
from armslength.ingest.event_columns import is_text

ROWS_AT_ONCE = 1 << 20  # of a block, so that each part is large enough to be encrypted by itself
BYTES_AT_ONCE = 1 << 26  # of the texts of a batch, unless one row has more
_ROWS_DECODED = 1 << 13  # of a Parquet file: its metadata do not say how long a text is
_ROWS_CODED = 1 << 16
_CHEAP_DICTIONARY = 1 << 21
# which pyarrow can read as numbers of texts
_CODED = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
_MILLISECONDS_OF_DAY = 86_400_000
_MOST_DIGITS = 38


def cuts(sizes: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """(first, last) of consecutive rows, as many as have at most so many bytes together, or one."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first = last


def in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same rows in batches whose texts fit memory."""
    if sum(map(_most_bytes, batch.columns)) <= BYTES_AT_ONCE:
        yield batch
        return
    sizes = sum(map(text_sizes, batch.columns), np.zeros(batch.num_rows, np.int64))
    for first, last in cuts(sizes, BYTES_AT_ONCE):
        yield batch.slice(first, last - first)


def _most_bytes(column: pa.Array) -> int:
    """At most how many bytes the texts of all rows have."""
    if not pa.types.is_dictionary(column.type):
        return int(text_sizes(column).sum())
    return len(column) * int(text_sizes(column.dictionary).max(initial=0))


def text_sizes(column: pa.Array) -> NDArray[np.int64]:
    """How many bytes the text of each row has, also if it is the number of one; 0 for other types."""
    if pa.types.is_dictionary(column.type):
        sizes = np.append(text_sizes(column.dictionary), 0)
        indices = column.indices
        indices = indices.fill_null(len(sizes) - 1) if indices.null_count else indices
        of_rows: NDArray[np.int64] = sizes[indices.to_numpy()]
        return of_rows
    if not is_text(column.type) or not len(column):
        return np.zeros(len(column), dtype=np.int64)
    words = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
    offsets = np.frombuffer(column.buffers()[1], words, len(column) + 1, column.offset * words.itemsize)
    return np.diff(offsets).astype(np.int64)


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are as large as they may be."""
    waiting, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        for piece in in_pieces(batch) if batch.nbytes > BYTES_AT_ONCE else (batch,):
            if rows and (rows + piece.num_rows > ROWS_AT_ONCE or size + piece.nbytes > BYTES_AT_ONCE):
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
            waiting, rows, size = [*waiting, piece], rows + piece.num_rows, size + piece.nbytes
    if rows:
        yield pa.concat_batches(waiting)


def row_group_runs(metadata: pq.FileMetaData) -> Iterator[list[int]]:
    """The row groups of a Parquet file, as many together as have the rows of a block."""
    groups, rows = list[int](), 0
    for number in range(metadata.num_row_groups):
        groups, rows = [*groups, number], rows + metadata.row_group(number).num_rows
        if rows >= ROWS_AT_ONCE or number + 1 == metadata.num_row_groups:
            yield groups
            groups, rows = [], 0


def parquet_batches(
    file: Any,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    schema: pa.Schema,
    *,
    coded: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """The columns of a schema, of some row groups of a Parquet file, in batches of few bytes; text of `coded` as its numbers, where it has any.

    A file may hold a long text once for all of its rows. Such columns are read as numbers of texts, and cut into batches before they are text.
    """
    chunks = _text_chunks(metadata, groups, schema)
    rows = sum(metadata.row_group(group).num_rows for group in groups)
    sizes = {name: sum(chunk.total_uncompressed_size for chunk in found) for name, found in chunks.items()}
    numbered = [
        name
        for name, found in chunks.items()
        if all(_CODED.issuperset(chunk.encodings) for chunk in found)
        and sizes[name]
        <= 4 * rows + _CHEAP_DICTIONARY  # of more texts, the reader would begin every batch with all of them
    ]
    plain = [size // max(1, rows) for name, size in sizes.items() if name not in numbered]
    at_once = max(1, min(_ROWS_DECODED, BYTES_AT_ONCE // max(1, *plain))) if plain else _ROWS_CODED
    options: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}
    # UUIDs, and not their bytes; and instants that nanoseconds cannot hold
    options |= {"arrow_extensions_enabled": True, "coerce_int96_timestamp_unit": "us"}
    reader = pq.ParquetFile(file, metadata=metadata, read_dictionary=numbered, **options)
    for batch in reader.iter_batches(at_once, row_groups=groups, columns=schema.names, use_threads=False):
        for name in numbered:
            batch.column(name).validate(full=True)  # the reader does not check numbers of texts
        for piece in in_pieces(batch.select(schema.names)):
            decoded = piece
            for place, name in enumerate(schema.names):
                if name in numbered and name not in coded:
                    decoded = decoded.set_column(place, name, piece.column(place).cast(schema.types[place]))
            yield decoded


def _text_chunks(metadata: pq.FileMetaData, groups: Sequence[int], schema: pa.Schema) -> dict[str, list[Any]]:
    """The chunks of each column of text."""
    chunks = dict[str, list[Any]]()
    for place in range(len(metadata.schema)):
        name = metadata.schema.column(place).path
        if name in schema.names and is_text(schema.field(name).type):
            chunks[name] = [metadata.row_group(group).column(place) for group in groups]
    return chunks


def engine_schema(schema: pa.Schema) -> pa.Schema:
    """The types that the engine gets, for columns that are called like their roles; refuses those that it cannot read."""
    return pa.schema([(field.name, _engine_type(field.name, field.type)) for field in schema])


def _engine_type(role: str, kind: pa.DataType) -> pa.DataType:
    """Times as instants in UTC without a zone, and decimals of at most 38 digits; other types as they are."""
    is_coded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    value = kind.value_type if is_coded else kind
    plain = value
    if pa.types.is_timestamp(value):
        plain = pa.timestamp("us" if value.unit == "ns" else value.unit)
    elif pa.types.is_date64(value):
        plain = pa.date32()
    elif pa.types.is_decimal(value):
        if value.precision > _MOST_DIGITS or value.scale < 0:
            raise InputError(
                f"{role} has decimals of more than {_MOST_DIGITS} digits, or of a negative scale; cast it first",
                role,
            )
        plain = pa.decimal128(value.precision, value.scale)
    elif pa.types.is_nested(value) or pa.types.is_float16(value) or _is_foreign(value):
        name = getattr(value, "extension_name", type_name(value)).removeprefix("arrow.")
        raise InputError(f"{role} must be a column of text or numbers, got {name}; cast it first", role)
    return kind if plain == value else plain


def _is_foreign(kind: pa.DataType) -> bool:
    """Whether a type is somebody's own."""
    return isinstance(kind, pa.BaseExtensionType) and kind not in (pa.uuid(), pa.bool8())


def engine_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in the type of `engine_schema`, checked: the engine trusts Arrow's buffers. A value that does not fit is missing."""
    if column.type != kind and (
        pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type)
    ):
        column.validate()
        is_coded = pa.types.is_dictionary(column.type)
        if is_coded:
            column.indices.validate(full=True)
        column = column.dictionary_decode() if is_coded else pc.run_end_decode(column)
    if pa.types.is_decimal(column.type):
        column = _within_digits(column).cast(kind)
    elif column.type != kind and (pa.types.is_date64(column.type) or column.type.unit == "ns"):
        column = _floored(column, kind)
    elif column.type != kind:
        column = column.view(kind)  # a time without its zone
    column.validate(full=True)
    return column


def _within_digits(column: pa.Array) -> pa.Array:
    """Decimals, missing where they have more digits than their type."""
    digits, scale = column.type.precision, column.type.scale
    limit = Decimal(1).scaleb(digits - scale)
    wide = column.cast(pa.decimal256(76, scale))
    fits = pc.and_(pc.less(wide, pa.scalar(limit, wide.type)), pc.greater(wide, pa.scalar(-limit, wide.type)))
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def _floored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Days of milliseconds, or microseconds of nanoseconds, missing beyond the type; Arrow's cast would round to 0 or raise an error."""
    if not len(column):
        return pa.nulls(0, kind)
    is_date = pa.types.is_date32(kind)
    words, divisor = (np.int32, _MILLISECONDS_OF_DAY) if is_date else (np.int64, 1000)
    numbers = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset) // divisor
    fits = (numbers >= np.iinfo(words).min) & (numbers <= np.iinfo(words).max)
    values = pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(numbers.astype(words))])
    return pc.if_else(pc.and_(column.is_valid(), as_mask(fits)), values, pa.scalar(None, kind))


def as_mask(chosen: NDArray[np.bool_]) -> pa.Array:
    """The same in Arrow. Like `fill_null`, `pa.array` would import pandas, if it is there, which takes longer than a small table."""
    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits])
