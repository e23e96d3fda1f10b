"""What tasks send, all of it binary and **not private**, and how it is added up, in tasks and then on the driver.

A row is a chunk of sums modulo 2^64, or the bins of some sampled people of one group, with its senders; or a note. A sender is its lowest
bucket and a fingerprint of all the events that it has read: so the driver sees whether all that was added up came from one reading of
each partition, whatever was computed twice. The bins of a group come to one task, which makes its F of them: matrices never travel.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength._numba import Int64s, Words, kernel
from armslength.errors import InputError, OutOfMemoryError, ParameterError
from armslength.ingest.sums import Bins, GroupSums, Squares, Sums, SumShape, chosen_bins, starts_of
from armslength.protocol.protocol import Protocol

SCHEMA = pa.schema([("chunk", pa.int64()), ("cells", pa.binary()), ("senders", pa.binary())])
SPARK_SCHEMA = "chunk BIGINT, cells BINARY, senders BINARY"
LISTING = -1  # instead of a chunk: the buckets that a sender has read
PROBLEM = -2  # instead of a chunk: a message of ours, to be raised on the driver
ARRIVED = -3  # instead of a chunk: the senders of all chunks that one task has added up
_BYTES_AT_ONCE = 1 << 22
WORD = 1 << 64
_ODD = np.uint64(0x9E3779B97F4A7C15)
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
    """Chunks of a matrix with one row for each group: its values, margins and scalars. Behind them, a chunk for the bins of each group.

    A chunk is some whole groups; or, where one group has more than `most_cells` integers, a piece of one group.
    """

    def __init__(self, groups: int, columns: int, most_cells: int) -> None:
        self.groups = groups
        self.columns = columns
        self.most_cells = most_cells
        self.groups_at_once = max(1, most_cells // self.columns)
        self.columns_at_once = min(self.columns, most_cells)
        self.pieces = -(-self.columns // self.columns_at_once)  # chunks side by side
        self.chunks = -(-groups // self.groups_at_once) * self.pieces  # without those of bins

    def slices(self, chunk: int) -> tuple[slice, slice]:
        """(its groups, its columns)."""
        block, piece = divmod(chunk, self.pieces)
        first, left = block * self.groups_at_once, piece * self.columns_at_once
        return (
            slice(first, min(first + self.groups_at_once, self.groups)),
            slice(left, min(left + self.columns_at_once, self.columns)),
        )


def packed_bins(bins: Bins, most: int) -> Iterator[tuple[int, bytes]]:
    """(group, the number of people, the number of bins of each, all bins, all values); a row has so many integers, and at most one person more.

    People come in the order of their groups and bins, so that equal people make equal rows, in whatever order they were read.
    """
    people = np.lexsort((bins_hashes(bins.starts, bins.bins, bins.values), bins.groups))
    bins = chosen_bins(bins, people)
    is_first = np.diff(bins.groups, prepend=-1) != 0
    integers_before = 2 * bins.starts[:-1] + np.arange(len(people))
    is_first |= np.diff(integers_before // most, prepend=-1) != 0
    rows = np.append(np.flatnonzero(is_first), len(people))
    for first, last in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        entries = slice(bins.starts[first], bins.starts[last])
        sizes = np.diff(bins.starts[first : last + 1])
        parts = [last - first], sizes, bins.bins[entries], bins.values[entries]
        yield int(bins.groups[first]), np.concatenate(parts).astype("<i4").tobytes()


def unpacked_bins(group: int, packed: Any) -> Bins:
    """The bins of people of a group."""
    numbers = np.frombuffer(packed, dtype="<i4").astype(np.int32)
    people = int(numbers[0])
    bins, values = np.split(numbers[1 + people :], 2)
    groups = np.full(people, group, dtype=np.int32)
    return Bins(groups, starts_of(numbers[1 : 1 + people].astype(np.int64)), bins, values)


@kernel
def bins_hashes(starts: Int64s, bins: NDArray[np.int32], values: NDArray[np.int32]) -> Words:
    """A number for each person that is the same for equal bins; it only orders them."""
    hashes = np.zeros(len(starts) - 1, dtype=np.uint64)
    for person in range(len(hashes)):
        word = np.uint64(0)
        for entry in range(starts[person], starts[person + 1]):
            for number in (bins[entry], values[entry]):
                word = (word ^ np.uint64(number)) * _ODD
                word ^= word >> np.uint64(29)
        hashes[person] = word
    return hashes


@dataclass(frozen=True)
class AddingJob:
    """Adds up what tasks have sent: sums, and bins to F. All rows of a chunk must come to one task, one after the other.

    Attributes:
        chunks: How many chunks of sums there are.
        width: Of the sketch.
        sparsity: The entries in a column of the public matrix.
    """

    chunks: int
    width: int
    sparsity: int

    @classmethod
    def of(cls, protocol: Protocol, layout: Layout) -> "AddingJob":
        """The job for a release."""
        return cls(layout.chunks, protocol.transform.sketch_dim, protocol.transform.column_entries or 1)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        """One row for each chunk: its sums, or F of its group; and one with all senders. Notes are passed on."""
        arrived: Senders = {}
        for chunk, rows in groupby(rows_of(batches), itemgetter(0)):
            if chunk < 0:
                yield from ((chunk, bytes(packed), senders) for _, packed, senders in rows)
            elif chunk < self.chunks:
                yield chunk, packed_integers(sum_of(rows, arrived)), b""
            else:
                norm = self._norm_of(chunk - self.chunks, rows, arrived)
                yield chunk, packed_integers(np.array([norm])), b""
        if arrived:
            yield ARRIVED, b"", packed_senders(arrived)

    def _norm_of(self, group: int, rows: Iterable[Row], arrived: Senders) -> int:
        squares = Squares(self.width)
        for _, packed, senders in rows:
            bins = unpacked_bins(group, packed)
            squares.add(bins, np.arange(len(bins.groups)))
            add_senders(arrived, senders)
        return squares.norm(self.sparsity)


def sum_of(rows: Iterable[Row], arrived: Senders) -> NDArray[np.int64]:
    """The sum of equally many integers of each row; adds the senders, in place."""
    sums: NDArray[np.int64] | None = None
    for _, packed, senders in rows:
        cells = integers(packed)
        sums = cells.copy() if sums is None else np.add(sums, cells, out=sums)
        add_senders(arrived, senders)
    if sums is None:
        raise ValueError("there must be a row")
    return sums


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
        self._norms: dict[int, int] = {}
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
        elif number >= self._layout.chunks:
            self._add_norm(number - self._layout.chunks, int(integers(packed)[0]))
        elif number >= 0:
            self._groups.add_cells(*self._layout.slices(number), integers(packed))

    def _add_norm(self, group: int, norm: int) -> None:
        if group in self._norms:  # norms of parts do not add up
            raise InputError("two tasks had sampled people of one group; nothing was charged")
        self._norms[group] = norm

    def sums(self) -> Sums:
        """The sums of all groups, ready for their noise, if each row that was sent arrived once."""
        buckets = np.concatenate([np.zeros(0, dtype=np.int64), *self._buckets])
        if len(np.unique(buckets)) != len(buckets):
            raise InputError("two tasks had events of one person; nothing was charged")
        if {name: tags for name, tags in self._listed.items() if tags} != self._arrived:
            raise InputError(
                "source had other rows when Spark computed it again, and nothing was charged; write it to a table first, and release that",
                "source",
            )
        norms = np.array([self._norms.get(group, 0) for group in range(self._layout.groups)])
        return self._groups.sums(norms)
