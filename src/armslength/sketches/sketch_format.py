"""The layout of a sketch file: its columns and metadata, and what is refused before anything is unpacked."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.files import canonical_json, read_json
from armslength.protocol.protocol import LARGEST_PROTOCOL_FILE, Protocol, protocols_of
from armslength.protocol.work_budget import WorkBudget
from armslength.sketches.card import check_card
from armslength.sketches.noises import (
    SOURCES,
    UNKNOWN,
    NoiseSource,
    Provenance,
    Release,
    Released,
    middle_of_dropped_bits,
)
from armslength.sketches.parquet_footer import ColumnChunk, RowGroup, unpacked_bytes
from armslength.sketches.sketches import LARGEST_FACTOR, SMALLEST_FACTOR, Sketches

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


# The columns of a sketch file as arrays: rows as they were released never become one object each.


_LARGEST_NUMBER = LARGEST_FACTOR * 2.0**63  # what scaling makes of the largest integer; squares stay finite


def noise_column(sketches: Sketches, releases: Sequence[Release]) -> pa.Array:
    """For each row the list of its noises: id, coefficient, and the number of its release, which the file calls its protocol."""
    numbers = {release: number for number, release in enumerate(releases)}
    if sketches.released is None:
        rows = [
            [
                {
                    "id": bytes.fromhex(source.id),
                    "coefficient": coefficient,
                    "protocol": numbers[source.protocol, source.source],
                }
                for source, coefficient in row.terms
            ]
            for row in sketches.provenance
        ]
        return pa.array(rows, NOISE_TYPE)
    count = len(sketches)
    kind = NOISE_TYPE.value_type
    ids = pa.py_buffer(np.ascontiguousarray(sketches.released.ids))
    number = numbers[sketches.released.protocol, sketches.released.source]
    terms = pa.StructArray.from_arrays(
        [
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, ids]),
            pa.array(np.ones(count)),
            pa.array(np.full(count, number, dtype=np.int32)),
        ],
        fields=list(kind),
    )
    return pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32), terms, type=NOISE_TYPE)


def sketches_of(table: pa.Table, head: Head, limit: int, where: str) -> Sketches:
    """The sketches of a table that has been read, every field checked.

    Args:
        table: Rows with the columns that a file must have; labels as a dictionary.
        head: What the file's metadata says of them.
        limit: How many bytes the objects of combined rows may take.
        where: The file, for messages.
    """
    if any(column.null_count for column in table.columns):
        raise CorruptFileError(f"{where} must have no missing values, got some")
    values = _values_of(table, head, where)
    noises = _noises_of(table, head.releases, limit, where)
    return Sketches(
        values, labels_of(table.column("label"), where), noises, head.protocols, _totals_of(table, where)
    )


def labels_of(column: pa.ChunkedArray, where: str) -> list[str]:
    """The labels of all rows, of a column that was read as a dictionary."""
    labels = column.combine_chunks()
    different = labels.dictionary
    ends = np.frombuffer(different.buffers()[1], dtype=np.int32)[different.offset :]
    lengths = np.diff(ends[: len(different) + 1])
    # Lengths first: a label that is too long never becomes a string.
    fit = bool(((lengths >= 1) & (lengths <= LONGEST_LABEL)).all())
    names: list[str] = different.to_pylist() if fit else []
    if not fit or not all(map(str.isprintable, names)):
        raise CorruptFileError(
            f"{where} must have printable labels of 1 to {LONGEST_LABEL} bytes, got others"
        )
    return [names[number] for number in labels.indices.to_pylist()]


def _values_of(table: pa.Table, head: Head, where: str) -> NDArray[Any]:
    """n x k numbers with their dropped bits."""
    column = table.column("values").combine_chunks()
    flat = column.flatten()
    if flat.null_count or len(flat) != len(column) * column.type.list_size:
        raise CorruptFileError(f"{where} must have no missing values, got some")
    values: NDArray[Any] = flat.to_numpy().reshape(len(column), column.type.list_size)
    if values.dtype == np.float64 and not (np.abs(values) <= _LARGEST_NUMBER).all():
        raise CorruptFileError(f"{where} must have finite values, got others")
    return values << np.int64(head.dropped_bits) if head.dropped_bits else values


def _totals_of(table: pa.Table, where: str) -> NDArray[Any] | None:
    if "total" not in table.schema.names:
        return None
    totals: NDArray[Any] = table.column("total").to_numpy()
    if not (np.abs(totals) <= _LARGEST_NUMBER).all():
        raise CorruptFileError(f"{where} must have finite totals, got others")
    return totals


def _noises_of(
    table: pa.Table, releases: tuple[Release, ...], limit: int, where: str
) -> Released | list[Provenance]:
    """The noises of all rows, as arrays if every row is as it was released."""
    noise = table.column("noise").combine_chunks()
    terms = noise.flatten()
    fields = dict(zip((field.name for field in terms.type), terms.flatten(), strict=True))
    if any(field.null_count for field in fields.values()):
        raise CorruptFileError(f"{where} must have no missing values, got some")
    numbers = fields["protocol"].to_numpy()
    unsaid = [number for number, (_, source) in enumerate(releases) if source == UNKNOWN]
    if np.isin(numbers, unsaid).any():
        raise CorruptFileError(
            f"{where} must say what was released for every row with noise, got some without"
        )
    offsets = table.column("offset").to_numpy()
    if len(numbers) and (numbers == numbers[0]).all() and 0 <= numbers[0] < len(releases):
        released = Released(_bytes_of(fields["id"]), *releases[numbers[0]])
        if (
            (np.diff(noise.offsets.to_numpy()) == 1).all()
            and (fields["coefficient"].to_numpy() == 1.0).all()
            and (offsets == released.offset).all()
            and not table.column("in_clear").to_numpy().any()
        ):
            return released
    if BYTES_OF_AN_OBJECT * len(terms) > limit:
        raise too_large(limit, where)
    columns = (noise.to_pylist(), offsets.tolist(), table.column("in_clear").to_pylist())
    return [_provenance(*row, releases) for row in zip(*columns, strict=True)]


def _bytes_of(ids: pa.FixedSizeBinaryArray) -> NDArray[np.void]:
    """The ids as an array of their own."""
    return np.frombuffer(ids.buffers()[1], dtype="V16")[ids.offset : ids.offset + len(ids)].copy()


def _provenance(
    terms: list[dict[str, Any]], offset: float, clear: bool, releases: tuple[Release, ...]
) -> Provenance:  # a field of the file
    if not abs(offset) <= _LARGEST_NUMBER:
        raise ValueError("offset")
    read = []
    for term in terms:
        if not SMALLEST_FACTOR <= abs(term["coefficient"]) <= LARGEST_FACTOR or term["protocol"] < 0:
            raise ValueError("coefficient")
        read.append((NoiseSource(term["id"].hex(), *releases[term["protocol"]]), term["coefficient"]))
    if len({source.id for source, _ in read}) != len(read):
        raise ValueError("noise ids")
    # What dropping bits took away is known: an offset may differ from it by the rounding of sums alone.
    parts = [coefficient * middle_of_dropped_bits(source.protocol) for source, coefficient in read]
    if abs(offset - math.fsum(parts)) > 1e-9 * math.fsum(map(abs, parts)):
        raise ValueError("offset")
    return Provenance(tuple(read), offset, clear)


# What tells that a sketch file was edited: a digest of its head, and one of each column of each row group.
#
# All of it is public, as are the released rows that it is made of: nothing of the data enters but through the noise. It shows
# accidents and careless hands, not forgers, who can compute it anew: who must be sure takes the SHA-256 of the whole file from
# its sender.


DIGEST_KEY = b"armslength digests"
_LARGEST = 8 * 2**20  # 20,000 row groups


@dataclass(frozen=True)
class Digests:
    """SHA-256 of what a file holds, in hexadecimal.

    Attributes:
        head: Of the head's text.
        rows: How many rows each row group has.
        groups: For each row group, the digest of each of its columns by name.
    """

    head: str
    rows: tuple[int, ...]
    groups: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, head: bytes, table: pa.Table, group_rows: int) -> "Digests":
        """The digests of a table that is written in row groups of this size."""
        groups = [table.slice(start, group_rows) for start in range(0, max(1, table.num_rows), group_rows)]
        return cls(
            hashlib.sha256(head).hexdigest(),
            tuple(group.num_rows for group in groups),
            tuple(map(_of_columns, groups)),
        )

    def text(self) -> bytes:
        """As it is written."""
        return canonical_json({"head": self.head, "rows": list(self.rows), "groups": list(self.groups)})

    def check(self, table: pa.Table, group: int, where: str) -> None:
        """Refuses columns of a row group that are not those that were written.

        Args:
            table: The columns that were read, without missing values.
            group: The number of their row group.
            where: The file, for messages.
        """
        written = self.groups[group]
        if any(written.get(name) != digest for name, digest in _of_columns(table).items()):
            raise _edited(where)


def read_digests(schema: pa.Schema, head: bytes, group_rows: Sequence[int], where: str) -> Digests:
    """The digests of a file, if they are those of its head and they are of as many rows."""
    text: bytes | None = (schema.metadata or {}).get(DIGEST_KEY)
    if text is None or len(text) > _LARGEST:
        raise _edited(where)
    found: Any = read_json(text, where)
    if set(found) != {"head", "rows", "groups"}:
        raise _edited(where)
    digests = Digests(found["head"], tuple(found["rows"]), tuple(map(dict, found["groups"])))
    if (
        digests.head != hashlib.sha256(head).hexdigest()
        or digests.rows != tuple(group_rows)
        or len(digests.groups) != len(digests.rows)
    ):
        raise _edited(where)
    return digests


def _edited(where: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where} must be as it was written, got a file that was edited; ask its sender for it again"
    )


def _of_columns(table: pa.Table) -> dict[str, str]:
    return {name: _of_column(table.column(name).combine_chunks()) for name in table.schema.names}


def _of_column(column: pa.Array) -> str:
    """Lengths of lists and texts before what is in them, every number in little-endian order."""
    digest = hashlib.sha256()
    for part in _parts(column):
        digest.update(part.nbytes.to_bytes(8, "little"))
        digest.update(part.data)
    return digest.hexdigest()


def _parts(column: pa.Array) -> Iterator[NDArray[Any]]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_list(kind):
        ends = np.frombuffer(column.buffers()[1], dtype="<i4")[
            column.offset : column.offset + len(column) + 1
        ]
        yield np.ascontiguousarray(np.diff(ends))
    if pa.types.is_string(kind):
        data = column.buffers()[2]
        yield np.frombuffer(data or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    elif pa.types.is_list(kind):
        for field in column.flatten().flatten():
            yield from _parts(field)
    elif pa.types.is_fixed_size_list(kind):
        yield from _parts(column.flatten())
    elif pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        yield np.frombuffer(column.buffers()[1], dtype=np.uint8)[width * column.offset :][
            : width * len(column)
        ]
    elif pa.types.is_boolean(kind):
        yield column.to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        numbers = column.to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False))
