"""The layout of a sketch file: its columns and metadata, and what is refused before anything is unpacked."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.formats.canonical import read_json
from armslength.protocol.protocol import LARGEST_PROTOCOL_FILE

FORMAT = "armslength sketches"
VERSION = 1

KEY = b"armslength"
LONGEST_LABEL = 1024
_MOST_PROTOCOLS = 1000
NOISE_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("id", pa.binary(16), nullable=False),
                pa.field("coefficient", pa.float64(), nullable=False),
                pa.field("protocol", pa.int32(), nullable=False),
            ]
        ),
        nullable=False,
    )
)


def file_schema(width: int, value_type: pa.DataType, *, totals: bool) -> pa.Schema:
    """The columns of a file with sketches of this width."""
    values = pa.list_(pa.field("element", value_type, nullable=False), width)
    total = [pa.field("total", value_type, nullable=False)] if totals else []
    return pa.schema(
        [
            pa.field("label", pa.string(), nullable=False),
            pa.field("values", values, nullable=False),
            pa.field("noise", NOISE_TYPE, nullable=False),
            pa.field("offset", pa.float64(), nullable=False),
            pa.field("in_clear", pa.bool_(), nullable=False),
            *total,
        ]
    )


def check_columns_of(file: pq.ParquetFile, width: int, where: str) -> None:
    """Refuses other columns before anything of them is unpacked: a few bytes can announce a list of any width."""
    found = file.schema_arrow
    if not any(
        fields_match(found, file_schema(width, kind, totals="total" in found.names))
        for kind in (pa.int64(), pa.float64())
    ):
        raise CorruptFileError(f"{where} must have the columns of version {VERSION}, got others")


def checked_head(file: pq.ParquetFile, where: str) -> dict[str, Any]:
    """The metadata's document, if this version can read it."""
    metadata = file.schema_arrow.metadata or {}
    text = metadata.get(KEY)
    if text is None or len(text) > LARGEST_PROTOCOL_FILE:
        raise CorruptFileError(f"{where} must carry the metadata of armslength, got a foreign file")
    head: Any = read_json(text, where)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise CorruptFileError(f"{where} must carry the metadata of armslength, got a foreign file")
    version = head.get("version")
    if type(version) is not int or version < 1:
        raise CorruptFileError(f"{where} must have a version that is a whole number, got something else")
    if version > VERSION:
        raise UnsupportedVersionError(
            f"{where} must have version {VERSION}, got a newer one; use a newer armslength"
        )
    if not isinstance(head.get("protocols"), list) or not 1 <= len(head["protocols"]) <= _MOST_PROTOCOLS:
        raise CorruptFileError(f"{where} must have 1 to {_MOST_PROTOCOLS} protocols, got others")
    if set(head) != {"format", "version", "dropped_bits", "protocols", "card"}:
        raise CorruptFileError(f"{where} must have the metadata fields of version {VERSION}, got others")
    checked: dict[str, Any] = head
    return checked


def check_size(file: pq.ParquetFile, limit: int, where: str) -> None:
    """Refuses before anything is unpacked: what the footer announces must fit, and be what was agreed."""
    metadata = file.metadata
    announced = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    entries = sum(
        metadata.row_group(group).column(column).num_values
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    terms = max(
        (
            metadata.row_group(group).column(column).num_values
            for group in range(metadata.num_row_groups)
            for column in range(metadata.num_columns)
            if metadata.row_group(group).column(column).path_in_schema.startswith("noise")
        ),
        default=0,
    )
    # A term of a row's noise is a Python object in the end.
    if announced > limit or 16 * entries > limit or 512 * terms * metadata.num_row_groups > limit:
        raise CorruptFileError(
            f"{where} must unpack to at most {limit} bytes, got more; raise limit if you trust it"
        )


def fields_match(found: pa.Schema, expected: pa.Schema) -> bool:
    """Whether names and types agree; labels were read as a dictionary."""
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in found]
    return bool(found.names == expected.names and types == expected.types)
