"""Rows that tasks send: a chunk of sums, its senders, and notes; all of it binary, and **not private**.

A sender is its lowest bucket and a fingerprint of all the events that it has read. So the driver sees whether all that it added up
came from one reading of each partition, whatever was computed twice.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA = pa.schema([("chunk", pa.int64()), ("cells", pa.binary()), ("senders", pa.binary())])
SPARK_SCHEMA = "chunk BIGINT, cells BINARY, senders BINARY"
LISTING = -1  # instead of a chunk: the buckets that a sender has read
PROBLEM = -2  # instead of a chunk: a message of ours, to be raised on the driver
ARRIVED = -3  # instead of a chunk: the senders of all chunks that one task has added up
_BYTES_AT_ONCE = 1 << 22
WORD = 1 << 64

Row = tuple[int, bytes, bytes]
Senders = dict[tuple[int, int], int]


def tag_of(sender: int, fingerprint: int, chunk: int, number: int, cells: bytes) -> int:
    """A word for one row and its content: the sum of tags shows which rows arrived, and how often."""
    return word_of(struct.pack("<qQqq", sender, fingerprint, chunk, number) + cells)


def word_of(packed: bytes) -> int:
    """A 64-bit hash of some bytes."""
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
    """Chunks of a matrix with one row for each group: its values, and behind them its total.

    A chunk is some whole groups; or, where one group has more than `most_cells` integers, a piece of one group.
    """

    def __init__(self, groups: int, width: int, most_cells: int) -> None:
        self.groups = groups
        self.columns = width + 1
        self.groups_at_once = max(1, most_cells // self.columns)
        self.columns_at_once = min(self.columns, most_cells)
        self.pieces = -(-self.columns // self.columns_at_once)  # chunks side by side
        self.chunks = -(-groups // self.groups_at_once) * self.pieces

    def place(self, chunk: int) -> tuple[slice, slice]:
        """(its groups, its columns)."""
        block, piece = divmod(chunk, self.pieces)
        first, left = block * self.groups_at_once, piece * self.columns_at_once
        return (
            slice(first, min(first + self.groups_at_once, self.groups)),
            slice(left, min(left + self.columns_at_once, self.columns)),
        )
