"""The layout of a sketch file: its columns, its metadata, its digests, and what is refused before anything is unpacked.

One Parquet file. Columns: label; values (k integers, or floats once scaled); noise, a list of
(id, coefficient, number of the protocol); in_clear; and total, spread and margins where these were released. The metadata key `armslength`
holds the protocols, what was released under each, and the release card as JSON; `armslength digests` shows whether it was edited.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.checks import LONGEST_LABEL, SHOWABLE, is_showable
from armslength.errors import CorruptFileError, UnsupportedVersionError, unsupported
from armslength.files import atomic_write, canonical_json, read_json
from armslength.protocol.margins import Margins
from armslength.protocol.protocol import LARGEST_PROTOCOL_FILE, Protocol, protocols_of
from armslength.sketches.card import check_card, release_card
from armslength.sketches.noises import LARGEST_FACTOR, SMALLEST_FACTOR, SOURCES, UNKNOWN, Noises, Release
from armslength.sketches.parquet_footer import DamagedFileError, RowGroup
from armslength.transforms.transform import Transform

if TYPE_CHECKING:
    from armslength.sketches.sketches import Sketches

FORMAT = "armslength sketches"
VERSION = 4
KEY, DIGEST_KEY = b"armslength", b"armslength digests"
_TERM = {"id": pa.binary(16), "coefficient": pa.float64(), "protocol": pa.int32()}
_TERM_TYPE = pa.struct([pa.field(name, kind, nullable=False) for name, kind in _TERM.items()])
NOISE_TYPE = pa.list_(pa.field("element", _TERM_TYPE, nullable=False))
_GROUP_ROWS, _GROUP_BYTES = 16_384, 32 * 2**20  # of a row group, which is what a reader holds at once
_MOST_PROTOCOLS = 1000
_EDITED = "was edited after it was written; ask its sender for it again"
_LARGEST_DIGESTS = 8 * 2**20  # bytes: 20,000 row groups
_LARGEST_NUMBER = LARGEST_FACTOR * 2.0**63  # what scaling makes of the largest integer; squares stay finite
_BYTES_OF_AN_ENTRY = 16  # a number as it is unpacked, and once more where rows are joined
_BYTES_OF_A_TERM = 192  # a noise of a row as it is unpacked, joined and sorted
_FIRST_NOISE = 2  # its place among the columns that Parquet stores


@dataclass(frozen=True)
class Layout:
    """Which numbers each row has, beside its label and its noises."""

    width: int  # of a sketch
    is_integer: bool
    has_totals: bool = False
    spread_width: int = 0  # how many numbers tell how far chance reaches; 0: none
    margin_width: int = 0  # how many margins there are; 0: none

    @property
    def schema(self) -> pa.Schema:
        """The columns of a file."""
        value_type = pa.int64() if self.is_integer else pa.float64()
        element = pa.field("element", value_type, nullable=False)
        columns = {
            "label": pa.string(),
            "values": pa.list_(element, self.width),
            "noise": NOISE_TYPE,
            "in_clear": pa.bool_(),
            **({"total": value_type} if self.has_totals else {}),
            **({"spread": pa.list_(element, self.spread_width)} if self.spread_width else {}),
            **({"margins": pa.list_(element, self.margin_width)} if self.margin_width else {}),
        }
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def write_sketch_file(path: str | os.PathLike[str], sketches: "Sketches") -> None:
    """Writes the file, whole or not at all."""
    values, noises, releases = sketches.values, sketches.noises, sketches.releases
    is_integer = values.dtype == np.int64
    width, more = values.shape[1], 0 if sketches.margins is None else sketches.margins.shape[1]
    columns = [
        pa.array(sketches.labels, pa.string()),
        list_column(values),
        _noise_column(noises, releases),
        pa.array(noises.in_clear),
    ]
    if sketches.totals is not None:
        columns.append(pa.array(sketches.totals, pa.from_numpy_dtype(values.dtype)))
    columns += [
        list_column(numbers) for numbers in (sketches.spread, sketches.margins) if numbers is not None
    ]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "protocols": [protocol.document() for protocol, _ in releases],
        "sources": [source for _, source in releases],
        "card": release_card(releases, in_clear=any(sketches.in_clear)),
    }
    spread_width = 0 if sketches.spread is None else sketches.spread.shape[1]
    layout = Layout(width, is_integer, sketches.totals is not None, spread_width, more)
    table = pa.table(columns, schema=layout.schema)
    text, group_rows = canonical_json(header), max(1, min(_GROUP_ROWS, _GROUP_BYTES // (8 * (width + more))))
    groups = (table.slice(start, group_rows) for start in range(0, max(1, table.num_rows), group_rows))
    metadata = {KEY: text, DIGEST_KEY: digests_text(text, groups)}
    lists = [field.name for field in layout.schema if pa.types.is_fixed_size_list(field.type)]
    with atomic_write(path) as file:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            file,
            row_group_size=group_rows,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            # Noise leaves a few bits in each integer: packed they are smaller than compressed words, and read three times as fast.
            column_encoding={f"{name}.list.element": "DELTA_BINARY_PACKED" for name in lists}
            if is_integer
            else None,
        )


def list_column(values: NDArray[Any]) -> pa.Array:
    """A column with a list of numbers in each row, none of them missing."""
    element = pa.field("element", pa.from_numpy_dtype(values.dtype), nullable=False)
    kind = pa.list_(element, values.shape[1])
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), type=kind)


def _noise_column(noises: Noises, releases: Sequence[Release]) -> pa.Array:
    """For each row the list of its noises: id, coefficient, and the number of its release, which the file calls its protocol."""
    index = {release: number for number, release in enumerate(releases)}
    numbers = np.array([index.get(release, -1) for release in noises.releases], dtype=np.int32)
    id_buffer = pa.py_buffer(np.ascontiguousarray(noises.ids))
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(noises.ids), [None, id_buffer])
    columns = [ids, pa.array(noises.coefficients), pa.array(numbers[noises.numbers])]
    terms = pa.StructArray.from_arrays(columns, fields=list(_TERM_TYPE))
    return pa.ListArray.from_arrays(noises.starts.astype(np.int32), terms, type=NOISE_TYPE)


@dataclass(frozen=True, eq=False)
class FileHeader:
    """What the metadata of a file says of all its rows; its releases share one space."""

    releases: tuple[Release, ...]  # that rows refer to by number
    protocols: tuple[Protocol, ...]  # of the releases; one may have several sources
    card: dict[str, Any]  # as it was written; its facts are those of the releases


def header_text(schema: pa.Schema) -> bytes:
    """The metadata's document as it is written."""
    text: bytes | None = (schema.metadata or {}).get(KEY)
    if text is None or len(text) > LARGEST_PROTOCOL_FILE:
        raise DamagedFileError("is not a sketch file: it has no metadata of armslength")
    return text


def read_header(text: bytes, path: str, known: Transform | None = None) -> FileHeader:
    """The metadata's document, if this version can read it; an equal transform that is `known` is not scanned again."""
    metadata: Any = read_json(text, path)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise DamagedFileError("is not a sketch file: it has no metadata of armslength")
    version = metadata.get("version")
    if type(version) is not int:
        raise DamagedFileError("has a version that is not a whole number")
    if version != VERSION:
        raise UnsupportedVersionError(unsupported(path, version, VERSION))
    documents = metadata.get("protocols")
    if not isinstance(documents, list) or not 1 <= len(documents) <= _MOST_PROTOCOLS:
        raise DamagedFileError(f"has no protocols, or more than {_MOST_PROTOCOLS}")
    if set(metadata) != {"format", "version", "protocols", "sources", "card"}:
        raise DamagedFileError("does not have the metadata fields of its version")
    protocols = protocols_of(documents, known)
    _check_sources(metadata["sources"], protocols)
    releases = tuple(zip(protocols, metadata["sources"], strict=True))
    check_card(metadata["card"], releases)
    return FileHeader(releases, protocols, metadata["card"])


def _check_sources(sources: Any, protocols: Sequence[Protocol]) -> None:
    """Refuses sources that no release under these protocols can have had."""
    is_known = isinstance(sources, list) and all(source in (*SOURCES, UNKNOWN) for source in sources)
    if not is_known or len(sources) != len(protocols):
        raise DamagedFileError("does not say of each protocol what was released")
    pairs = list(zip(protocols, sources, strict=True))
    if any(source == "events" and protocol.contribution is None for protocol, source in pairs):
        raise DamagedFileError("is of an event table, but a protocol has no contribution")
    if any(source in ("rows", "stream") and protocol.votes for protocol, source in pairs):
        raise DamagedFileError("has a protocol with votes, but is not of an event table")


def check_columns(schema: pa.Schema, header: FileHeader) -> Layout:
    """The layout of all rows. Refuses other columns before anything of them is unpacked: a few bytes can announce a list of any width."""
    protocols = header.protocols
    has_totals, has_spread, has_margins = (name in schema.names for name in ("total", "spread", "margins"))
    spread = spread_width_of(protocols) if has_spread else 0
    if has_spread and not (spread and has_totals):
        raise DamagedFileError("has a spread, but not all of its protocols have votes")
    margins = margin_width(protocols) if has_margins else 0
    if has_margins and not margins:
        raise DamagedFileError("has margins, but its protocols do not share them")
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema]
    width = protocols[0].transform.sketch_dim
    for layout in (Layout(width, is_integer, has_totals, spread, margins) for is_integer in (True, False)):
        if (layout.schema.names, layout.schema.types) == (schema.names, types):
            break
    else:
        raise DamagedFileError("does not have the columns of a sketch file")
    if has_totals and not all(protocol.total_share for protocol in protocols):
        raise DamagedFileError("has totals that its protocols do not release")
    return layout


def spread_width_of(protocols: Sequence[Protocol]) -> int:
    """How many numbers of a row tell how far chance reaches; 0 unless all protocols release them."""
    if not all(protocol.spread_law for protocol in protocols):
        return 0
    return 2 if protocols[0].releases_norm else 1  # all share one transform


def margin_width(protocols: Sequence[Protocol]) -> int:
    """How many margins a row has: one for each item group, and what is left out; 0 unless all protocols have the same."""
    shared = protocols[0].margins
    if shared is None or any(protocol.margins != shared for protocol in protocols):
        return 0
    return len(shared.names) + 1


def usual_margins(rows: Iterable[tuple[Margins | None, int]]) -> Margins | None:
    """The item groups that most rows have margins of, given as (item groups, rows); None if none has."""
    counts: dict[Margins, int] = {}
    for item_groups, count in rows:
        if item_groups is not None:
            counts[item_groups] = counts.get(item_groups, 0) + count
    return max(counts, key=counts.__getitem__, default=None)


def check_size(groups: Sequence[RowGroup], layout: Layout, limit: int) -> None:
    """Refuses row groups that do not fit together, or would unpack to more than `limit` bytes, by the footer alone."""
    announced = entries = terms = 0
    # The columns that Parquet stores, and how many numbers each row has there; the fields of a noise are columns of their own.
    widths: list[tuple[bytes, int | None]] = []
    for field in layout.schema:
        is_noise = field.name == "noise"
        width = None if is_noise else getattr(field.type, "list_size", 1)
        widths += [(field.name.encode(), width)] * (len(_TERM) if is_noise else 1)
    for group in groups:
        if [column.path[0] for column in group.columns] != [name for name, _ in widths]:
            raise DamagedFileError("does not have the columns of a sketch file")
        counts = [column.num_values for column in group.columns]
        # An empty list of noises is an entry too: there are never fewer than rows.
        noises = max(counts[_FIRST_NOISE], group.num_rows)
        if counts != [noises if width is None else group.num_rows * width for _, width in widths]:
            raise DamagedFileError("does not have every column in each row")
        announced += group.unpacked
        entries += sum(counts)
        terms += noises
    if max(announced, _BYTES_OF_AN_ENTRY * entries, _BYTES_OF_A_TERM * terms) > limit:
        raise DamagedFileError(f"unpacks to more than {limit} bytes; if you trust it, raise limit", "limit")


def read_columns(table: pa.Table, header: FileHeader) -> dict[str, Any]:
    """The arguments of `Sketches` but its protocols, from a table that has been read, labels as a dictionary; every field is checked."""
    if any(column.null_count for column in table.columns):
        raise DamagedFileError("has missing values")
    names = {"values": "values", "total": "totals", "margins": "margins", "spread": "spread"}
    numbers = {names[name]: _read_numbers(table, name) for name in table.schema.names if name in names}
    labels, noises = read_labels(table.column("label")), _read_noises(table, header.releases)
    return {"labels": labels, "noises": noises, **numbers}


def read_labels(column: pa.ChunkedArray) -> list[str]:
    """The labels of all rows, of a column that was read as a dictionary."""
    labels = column.combine_chunks()
    different = labels.dictionary
    ends = np.frombuffer(different.buffers()[1], dtype=np.int32)[different.offset :]
    lengths = np.diff(ends[: len(different) + 1])
    # Lengths first: a label that is too long never becomes a string.
    fit = bool(((lengths >= 1) & (lengths <= LONGEST_LABEL)).all())
    names: list[str] = different.to_pylist() if fit else []
    if not fit or not all(map(is_showable, names)):
        raise DamagedFileError(f"has labels that do not fit: they must be {SHOWABLE}")
    return [names[number] for number in labels.indices.to_pylist()]


def _read_numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """The numbers of a column that has one of them, or a list of them, in each row."""
    column = table.column(name).combine_chunks()
    shape: tuple[int, ...] = (len(column),)
    if pa.types.is_fixed_size_list(column.type):
        shape = len(column), column.type.list_size
        column = column.flatten()
    if column.null_count or len(column) != math.prod(shape):
        raise DamagedFileError("has missing values")
    numbers: NDArray[Any] = column.to_numpy().reshape(shape)
    if numbers.dtype == np.float64 and not (np.abs(numbers) <= _LARGEST_NUMBER).all():
        raise DamagedFileError(f"has {name} that are not finite")
    return numbers


def _read_noises(table: pa.Table, releases: tuple[Release, ...]) -> Noises:
    """The noises of all rows."""
    column = table.column("noise").combine_chunks()
    terms = column.flatten()
    fields = dict(zip((field.name for field in terms.type), terms.flatten(), strict=True))
    if any(field.null_count for field in fields.values()):
        raise DamagedFileError("has missing values")
    numbers, coefficients = fields["protocol"].to_numpy(), fields["coefficient"].to_numpy()
    without_source = [number for number, (_, source) in enumerate(releases) if source == UNKNOWN]
    if np.isin(numbers, without_source).any():
        raise DamagedFileError("has rows with noise, but does not say what was released")
    sizes = np.abs(coefficients)
    if not ((numbers >= 0) & (numbers < len(releases))).all():
        raise ValueError("protocol")
    if not ((sizes >= SMALLEST_FACTOR) & (sizes <= LARGEST_FACTOR)).all():
        raise ValueError("coefficient")
    starts = np.concatenate(([0], np.cumsum(np.diff(column.offsets.to_numpy()), dtype=np.int64)))
    in_clear = table.column("in_clear").to_numpy()
    ids = np.frombuffer(fields["id"].buffers()[1], dtype="V16")[fields["id"].offset :][: len(terms)].copy()
    noises = Noises(starts, ids, coefficients, numbers, releases, in_clear)
    if not noises.are_merged:
        raise ValueError("noise ids")
    return noises


def digests_text(header: bytes, groups: Iterable[pa.Table]) -> bytes:
    """SHA-256 of the header of a file and of each column of each row group: shows careless edits, not forgers, who compute it anew."""
    tables = list(groups)
    digests = {
        "head": hashlib.sha256(header).hexdigest(),
        "rows": [table.num_rows for table in tables],
        "groups": list(map(_column_digests, tables)),
    }
    return canonical_json(digests)


def read_digests(schema: pa.Schema, header: bytes, group_rows: Sequence[int]) -> list[dict[str, str]]:
    """For each row group the digest of each column, if the header has its own digest and there are as many rows."""
    text: bytes | None = (schema.metadata or {}).get(DIGEST_KEY)
    if text is None or len(text) > _LARGEST_DIGESTS:
        raise DamagedFileError(_EDITED)
    try:
        fields: Any = read_json(text, "digests")
    except CorruptFileError:
        raise DamagedFileError(_EDITED) from None
    match fields:
        case {"head": head, "rows": list(rows), "groups": list(groups)} if len(fields) == 3:
            expected = hashlib.sha256(header).hexdigest(), list(group_rows), len(group_rows)
            if (head, rows, len(groups)) == expected and all(isinstance(group, dict) for group in groups):
                return groups
    raise DamagedFileError(_EDITED)


def check_digests(table: pa.Table, expected: Mapping[str, str]) -> None:
    """Refuses columns of a row group, read without missing values, that are not those that were written."""
    if any(expected.get(name) != digest for name, digest in _column_digests(table).items()):
        raise DamagedFileError(_EDITED)


def _column_digests(table: pa.Table) -> dict[str, str]:
    return {name: _column_digest(table.column(name).combine_chunks()) for name in table.schema.names}


def _column_digest(column: pa.Array) -> str:
    """Lengths of lists and texts before what is in them, every number in little-endian order."""
    digest = hashlib.sha256()
    for part in _buffers(column):
        digest.update(part.nbytes.to_bytes(8, "little"))
        digest.update(part.data)
    return digest.hexdigest()


def _buffers(column: pa.Array) -> Iterator[NDArray[Any]]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_list(kind):
        ends = np.frombuffer(column.buffers()[1], dtype="<i4")[column.offset :][: len(column) + 1]
        yield np.ascontiguousarray(np.diff(ends))
    if pa.types.is_string(kind):
        data = column.buffers()[2]
        yield np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    elif pa.types.is_list(kind):
        for field in column.flatten().flatten():
            yield from _buffers(field)
    elif pa.types.is_fixed_size_list(kind):
        yield from _buffers(column.flatten())
    elif pa.types.is_fixed_size_binary(kind):
        start, length = kind.byte_width * column.offset, kind.byte_width * len(column)
        yield np.frombuffer(column.buffers()[1], dtype=np.uint8)[start : start + length]
    elif pa.types.is_boolean(kind):
        yield column.to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        numbers = column.to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False))
