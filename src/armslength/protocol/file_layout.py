"""The layout of a sketch file: its columns and metadata, and what is refused before anything is unpacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.formats.canonical import read_json
from armslength.formats.parquet_footer import ColumnChunk, RowGroup, unpacked_bytes
from armslength.protocol.card import check_card
from armslength.protocol.document import protocols_of
from armslength.protocol.protocol import LARGEST_PROTOCOL_FILE, Protocol
from armslength.protocol.provenance import SOURCES, UNKNOWN, Release
from armslength.protocol.work import WorkBudget

FORMAT = "armslength sketches"
VERSION = 3

KEY = b"armslength"
LONGEST_LABEL = 1024
BYTES_OF_AN_OBJECT = 512  # a term of a combined row's noise, as Python has it
_BYTES_OF_AN_ENTRY = 16  # a number as it is unpacked, and once more where it is gathered
# The columns that Parquet stores, by the name of ours that they are of, and places among them.
_STORED = (b"label", b"values", b"noise", b"noise", b"noise", b"offset", b"in_clear")
_VALUES, _FIRST_NOISE, _AFTER_NOISE = 1, 2, 5
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


@dataclass(frozen=True, eq=False)
class Head:
    """What the metadata of a file says of all its rows.

    Attributes:
        dropped_bits: How many low bits the stored integers are without.
        releases: The protocols that rows refer to by number, each with what was released under it; they share one space.
        card: The release card as it was written; its facts are those of the releases.
    """

    dropped_bits: int
    releases: tuple[Release, ...]
    card: dict[str, Any]

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols by number; one may stand there with several sources."""
        return tuple(protocol for protocol, _ in self.releases)


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


def check_columns(schema: pa.Schema, head: Head, where: str) -> None:
    """Refuses other columns before anything of them is unpacked: a few bytes can announce a list of any width."""
    width = head.protocols[0].transform.sketch_dim
    has_totals = "total" in schema.names
    kinds = [
        kind
        for kind in (pa.int64(), pa.float64())
        if fields_match(schema, file_schema(width, kind, totals=has_totals))
    ]
    if not kinds:
        raise CorruptFileError(f"{where} must have the columns of a sketch file, got others")
    bits = head.dropped_bits
    if bits and (kinds != [pa.int64()] or any(each.dropped_bits != bits for each in head.protocols)):
        raise CorruptFileError(f"{where} must drop the bits that its protocols say, got others")
    if has_totals and not all(protocol.total_share for protocol in head.protocols):
        raise CorruptFileError(f"{where} must have totals only where its protocols release them, got others")


def head_text(schema: pa.Schema, where: str) -> bytes:
    """The metadata's document as it is written."""
    text: bytes | None = (schema.metadata or {}).get(KEY)
    if text is None or len(text) > LARGEST_PROTOCOL_FILE:
        raise CorruptFileError(f"{where} must carry the metadata of armslength, got a foreign file")
    return text


def checked_head(text: bytes, where: str, budget: WorkBudget) -> Head:
    """The metadata's document, if this version can read it, and the work that its protocols ask for is in the budget."""
    head: Any = read_json(text, where)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise CorruptFileError(f"{where} must carry the metadata of armslength, got a foreign file")
    version = head.get("version")
    if type(version) is not int:
        raise CorruptFileError(f"{where} must have a version that is a whole number, got something else")
    if version != VERSION:
        raise UnsupportedVersionError(
            f"{where} must have version {VERSION} of the format, got another; use the armslength that wrote it"
        )
    if not isinstance(head.get("protocols"), list) or not 1 <= len(head["protocols"]) <= _MOST_PROTOCOLS:
        raise CorruptFileError(f"{where} must have 1 to {_MOST_PROTOCOLS} protocols, got others")
    if set(head) != {"format", "version", "dropped_bits", "protocols", "sources", "card"}:
        raise CorruptFileError(f"{where} must have the metadata fields of its version, got others")
    if type(head["dropped_bits"]) is not int:
        raise CorruptFileError(f"{where} must drop a whole number of bits, got something else")
    protocols = protocols_of(head["protocols"], budget, where)
    _check_sources(head["sources"], protocols, where)
    releases = tuple(zip(protocols, head["sources"], strict=True))
    check_card(head["card"], releases, where)
    return Head(head["dropped_bits"], releases, head["card"])


def _check_sources(sources: Any, protocols: Sequence[Protocol], where: str) -> None:
    """Refuses sources that no release under these protocols can have had."""
    if (
        not isinstance(sources, list)
        or len(sources) != len(protocols)
        or not all(isinstance(source, str) and source in (*SOURCES, UNKNOWN) for source in sources)
    ):
        raise CorruptFileError(f"{where} must say of each protocol what was released, got something else")
    if any(
        source == "events" and protocol.contribution is None
        for protocol, source in zip(protocols, sources, strict=True)
    ):
        raise CorruptFileError(
            f"{where} must have a contribution in every protocol of an event table, got none"
        )


def check_size(groups: Sequence[RowGroup], width: int, limit: int, where: str, *, totals: bool) -> None:
    """Refuses before anything is unpacked: what the footer announces of these row groups must fit together.

    Args:
        groups: The row groups that will be held together.
        width: How many values a row has.
        limit: What they may unpack to, in bytes.
        where: The file, for messages.
        totals: Whether the file has the column of totals.
    """
    announced = entries = objects = 0
    names = _STORED + (b"total",) * totals
    for group in groups:
        counts = [column.num_values for column in group.columns]
        if tuple(column.path[0] for column in group.columns) != names:
            raise CorruptFileError(f"{where} must have the columns of a sketch file, got others")
        if not 0 <= group.num_rows * width == counts[_VALUES]:
            raise CorruptFileError(f"{where} must have {width} values in each row, got others")
        terms = counts[_FIRST_NOISE]
        singles = [counts[0], *counts[_AFTER_NOISE:]]
        # An empty list of noises is an entry too: there are never fewer than rows.
        if set(singles) != {group.num_rows} or set(counts[_FIRST_NOISE:_AFTER_NOISE]) != {
            max(terms, group.num_rows)
        }:
            raise CorruptFileError(f"{where} must have every column in each row, got others")
        announced += group.unpacked
        entries += sum(counts)
        # One term in every row may be rows as they were released, which stay arrays; more are rows that were combined.
        objects += terms if terms != group.num_rows else 0
    if announced > limit or _BYTES_OF_AN_ENTRY * entries > limit or BYTES_OF_AN_OBJECT * objects > limit:
        raise too_large(limit, where)


def check_pages(file: BinaryIO, columns: Sequence[ColumnChunk], where: str) -> None:
    """Refuses columns that would unpack to more than the footer says, which is what was held against the limit.

    Args:
        file: The file, open for reading.
        columns: Those that are about to be unpacked.
        where: The file, for messages.
    """
    for column in columns:
        if unpacked_bytes(file, column, where) > column.unpacked:
            raise CorruptFileError(f"{where} must unpack to what its footer says, got more")


def too_large(limit: int, where: str) -> CorruptFileError:
    """What is said of a file that unpacks to too much."""
    return CorruptFileError(
        f"{where} must unpack to at most {limit} bytes, got more; raise limit if you trust it"
    )


def fields_match(found: pa.Schema, expected: pa.Schema) -> bool:
    """Whether names and types agree; labels were read as a dictionary."""
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in found]
    return bool(found.names == expected.names and types == expected.types)
