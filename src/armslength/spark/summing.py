"""What tasks send, all of it binary and **not private**, and how it is added up, in tasks and then on the driver.

A row is a chunk of sums modulo 2^64 with its senders, or a note. A sender is its lowest bucket and a fingerprint of all the events that
it has read: so the driver sees whether all that it added up came from one reading of each partition, whatever was computed twice.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import InputError, OutOfMemoryError, ParameterError
from armslength.ingest.sums import GroupSums, Sums, SumShape
from armslength.protocol.protocol import Protocol

SCHEMA = pa.schema([("chunk", pa.int64()), ("cells", pa.binary()), ("senders", pa.binary())])
SPARK_SCHEMA = "chunk BIGINT, cells BINARY, senders BINARY"
LISTING = -1  # instead of a chunk: the buckets that a sender has read
PROBLEM = -2  # instead of a chunk: a message of ours, to be raised on the driver
ARRIVED = -3  # instead of a chunk: the senders of all chunks that one task has added up
_BYTES_AT_ONCE = 1 << 22
WORD = 1 << 64
_KINDS = {kind.__name__: kind for kind in (InputError, OutOfMemoryError, ParameterError)}

Row = tuple[int, bytes, bytes]
Senders = dict[tuple[int, int], int]


def tag_of(sender: int, fingerprint: int, chunk: int, number: int, cells: bytes) -> int:
    """A word for one row and its content: the sum of tags shows which rows arrived, and how often."""
    packed = struct.pack("<qQqq", sender, fingerprint, chunk, number) + cells
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


def packed_senders(senders: Senders) -> bytes:
    """(sender, fingerprint, sum of the tags of its rows) for each."""
    return b"".join(struct.pack("<qQQ", *name, tags) for name, tags in senders.items())


def add_senders(senders: Senders, packed: bytes) -> None:
    """Adds the tags of packed senders, in place."""
    for sender, fingerprint, tags in struct.iter_unpack("<qQQ", packed):
        name = (sender, fingerprint)
        senders[name] = (senders.get(name, 0) + tags) % WORD


def integers(packed: Any) -> NDArray[np.int64]:
    """Packed integers."""
    return np.frombuffer(packed, dtype="<i8")


def packed_integers(values: NDArray[np.int64]) -> bytes:
    """Integers, 8 bytes each, little-endian."""
    return values.astype("<i8", copy=False).tobytes()


def in_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches of a few megabytes."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row)
        size += len(row[1]) + len(row[2]) + 8
        if size >= _BYTES_AT_ONCE:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = list(map(pa.array, zip(*rows, strict=True), SCHEMA.types))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of Arrow batches."""
    for batch in batches:
        for chunk, cells, senders in zip(*batch.columns, strict=True):
            yield chunk.as_py(), cells.as_buffer(), senders.as_py()


class Layout:
    """Chunks of a matrix with one row for each group: its values and margins, and behind them its total.

    A chunk is some whole groups; or, where one group has more than `most_cells` integers, a piece of one group.
    """

    def __init__(self, groups: int, width: int, most_cells: int) -> None:
        self.groups = groups
        self.columns = width + 1
        self.groups_at_once = max(1, most_cells // self.columns)
        self.columns_at_once = min(self.columns, most_cells)
        self.pieces = -(-self.columns // self.columns_at_once)  # chunks side by side
        self.chunks = -(-groups // self.groups_at_once) * self.pieces

    def slices(self, chunk: int) -> tuple[slice, slice]:
        """(its groups, its columns)."""
        block, piece = divmod(chunk, self.pieces)
        first, left = block * self.groups_at_once, piece * self.columns_at_once
        return (
            slice(first, min(first + self.groups_at_once, self.groups)),
            slice(left, min(left + self.columns_at_once, self.columns)),
        )


def summed(rows: Iterable[Row]) -> Iterator[Row]:
    """The same sums in fewer rows: one for each chunk, and one with all senders. Notes are passed on."""
    sums: dict[int, NDArray[np.int64]] = {}
    arrived: Senders = {}
    for number, packed, senders in rows:
        if number < 0:
            yield number, bytes(packed), senders
            continue
        cells = integers(packed)
        if number not in sums:
            sums[number] = np.zeros(len(cells), dtype=np.int64)
        np.add(sums[number], cells, out=sums[number])
        add_senders(arrived, senders)
    for number, cells in sums.items():
        yield number, packed_integers(cells), b""
    if arrived:
        yield ARRIVED, b"", packed_senders(arrived)


class DriverSums:
    """The sums of all groups on the driver.

    Every row has a tag for its content, and at its end a task lists the tags of all rows that it sent.

    Guarantee: `sums` refuses unless one task read each bucket of persons, and every row that it sent, from one reading of its events,
    was added once. A person's bucket is a function of the person alone. So each person's events were bounded together, in one
    place, whatever Spark computed again.
    Reference: docs/privacy.md, event tables.
    """

    def __init__(self, protocol: Protocol, layout: Layout) -> None:
        self._layout = layout
        self._groups = GroupSums(protocol, SumShape.of(protocol, layout.groups))
        self._buckets: list[NDArray[np.int64]] = []
        self._arrived: Senders = {}
        self._listed: Senders = {}

    def add(self, row: Row) -> None:
        """Adds a row, or raises the error that a task reports."""
        number, packed, senders = row
        if number == PROBLEM:
            kind, message = bytes(packed).decode().split(":", 1)
            raise _KINDS[kind](message)
        add_senders(self._listed if number == LISTING else self._arrived, senders)
        if number == LISTING:
            self._buckets.append(integers(packed))
        elif number >= 0:
            self._groups.add_cells(*self._layout.slices(number), integers(packed))

    def sums(self) -> Sums:
        """The sums of all groups, ready for their noise, if each row that was sent arrived once."""
        buckets = np.concatenate([np.zeros(0, dtype=np.int64), *self._buckets])
        if len(np.unique(buckets)) != len(buckets):
            raise InputError("a person's events must come to one task, got two; nothing was charged")
        if {name: tags for name, tags in self._listed.items() if tags} != self._arrived:
            raise InputError(
                "source must hold the same rows whenever Spark computes it again, got others, and nothing was charged; "
                "write it to a table first, and release that"
            )
        return self._groups.sums()
