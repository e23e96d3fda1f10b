"""Events of whole persons, a part at a time that fits memory; the rest waits in an encrypted temporary file.

The file has no name and its key lives in this process alone: a killed process leaves nothing readable, not even on free blocks.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from armslength.errors import InputError
from armslength.ingest.contributions import (
    BoundedEvents,
    KeyedOrder,
    PersonTotals,
    bounded,
    bounded_in_parts,
    person_totals,
    person_totals_in_parts,
)
from armslength.ingest.engine import EVENT_HASH, PERSON_HASH, EventTable
from armslength.threads import check_same_process

if TYPE_CHECKING:
    from io import FileIO

    from numpy.typing import NDArray

_PARTS, _BITS = 64, 6
_LEVELS = 64 // _BITS
_SHARE_SORTED = 4  # of the memory; sorting takes as much twice over
_MOST_ROWS = 0.95  # of all: a part with more was hardly divided
_LEAST_SEGMENT = 1 << 16
_Segment = tuple[int, int, int]  # (number, place, length) of a piece of the temporary file
_T = TypeVar("_T")
_OfStream = Callable[[Iterable[pa.RecordBatch]], Iterator[_T]]
_OfStreams = Callable[[Iterable[Iterable[pa.RecordBatch]]], Iterator[_T]]


def bounded_events(
    table: EventTable, batches: Iterable[pa.RecordBatch], order: KeyedOrder, bound: int, memory: int
) -> Iterator[BoundedEvents]:
    """The events that `bounded` keeps, from batches in any order.

    Guarantee: the same events whatever the memory is. Hashes decide where events wait; the whole id decides who is one person.
    """
    yield from _by_person(
        table,
        batches,
        memory,
        lambda stream: bounded(stream, order, bound),
        lambda streams: bounded_in_parts(streams, order, bound),
    )


def totals_of_persons(
    table: EventTable, batches: Iterable[pa.RecordBatch], order: KeyedOrder, memory: int
) -> Iterator[PersonTotals]:
    """What each person has before the bound, as `person_totals` counts it, from batches in any order."""
    yield from _by_person(
        table,
        batches,
        memory,
        lambda stream: person_totals(stream, order),
        lambda streams: person_totals_in_parts(streams, order),
    )


def _by_person(
    table: EventTable,
    batches: Iterable[pa.RecordBatch],
    memory: int,
    of_stream: _OfStream[_T],
    of_streams: _OfStreams[_T],
) -> Iterator[_T]:
    """What `of_stream` makes of sorted events of whole persons, or `of_streams` where somebody has too many for memory."""
    with _TemporaryFile() as file:
        yield from _Cutter(table, of_stream, of_streams, memory // _SHARE_SORTED, file).cut(batches)


@dataclass
class _Part:
    """Events that wait in the temporary file."""

    segments: list[_Segment] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0  # in memory


class _TemporaryFile:
    """An encrypted file without a name: AES-256-GCM with a key that is stored nowhere, and a number for each segment."""

    def __init__(self) -> None:
        self._cipher = AESGCM(AESGCM.generate_key(256))
        self._process = os.getpid()
        self._count, self._end = 0, 0
        self._file: FileIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, batches: list[pa.RecordBatch]) -> _Segment:
        """Adds events; where they are."""
        check_same_process(self._process)  # two processes would write under one key and number
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
            writer.write_table(pa.Table.from_batches(batches))
        ciphertext = self._cipher.encrypt(
            self._count.to_bytes(12, "little"), sink.getvalue().to_pybytes(), None
        )
        try:
            file = self._file or tempfile.TemporaryFile(prefix="armslength-", buffering=0)  # noqa: SIM115  # closed at the end
            self._file = file
            file.seek(self._end)
            left = memoryview(ciphertext)
            while left:
                left = left[file.write(left) or 0 :]
        except OSError as problem:
            raise InputError(
                f"the temporary folder must have room for a copy of the events, got: {problem.strerror}; set TMPDIR to another"
            ) from None
        segment = self._count, self._end, len(ciphertext)
        self._count, self._end = self._count + 1, self._end + len(ciphertext)
        return segment

    def read(self, part: _Part) -> Iterator[pa.RecordBatch]:
        """The events of a part."""
        for number, start, length in part.segments:
            file = self._file
            ciphertext = b"" if file is None else os.pread(file.fileno(), length, start)
            plain = self._cipher.decrypt(number.to_bytes(12, "little"), ciphertext, None)
            with pa.ipc.open_stream(pa.py_buffer(plain)) as reader:
                yield from reader


@dataclass(frozen=True)
class _Cutter(Generic[_T]):
    """The arguments of `_by_person`, and its temporary file."""

    table: EventTable
    of_stream: _OfStream[_T]
    of_streams: _OfStreams[_T]
    most: int  # bytes of events that are sorted at once
    file: _TemporaryFile

    def cut(self, batches: Iterable[pa.RecordBatch], level: int = 0) -> Iterator[_T]:
        """The results of all events; those that do not fit memory are divided by the hash of the person."""
        stream, in_memory, size = iter(batches), list[pa.RecordBatch](), 0
        for batch in stream:
            in_memory.append(batch)
            size += batch.nbytes
            if size > self.most:
                break
        else:
            if in_memory:
                in_order = self.table.in_order(pa.Table.from_batches(in_memory))
                yield from self.of_stream(in_order)
            return
        parts = self._divided(in_memory, stream, PERSON_HASH, level)
        rows = sum(part.rows for part in parts)
        for part in _joined(parts, self.most):
            if level + 1 == _LEVELS or part.rows > _MOST_ROWS * rows:
                yield from self._cut_few_persons(part)
            else:
                yield from self.cut(self.file.read(part), level + 1)

    def _cut_few_persons(self, part: _Part) -> Iterator[_T]:
        """The same where somebody has more events than fit memory: divided by person, group and item instead."""
        parts = self._divided([], self.table.with_event_hash(self.file.read(part)), EVENT_HASH, 0)
        streams = (self.table.runs_in_order(self.file.read(each)) for each in parts if each.rows)
        yield from self.of_streams(streams)

    def _divided(
        self, in_memory: list[pa.RecordBatch], stream: Iterator[pa.RecordBatch], by: str, level: int
    ) -> list[_Part]:
        """All events in the temporary file, by bits of a hash; empties the list of what was in memory."""
        parts = [_Part() for _ in range(_PARTS)]
        waiting: list[list[pa.RecordBatch]] = [[] for _ in parts]
        sizes = [0] * _PARTS
        least = max(_LEAST_SEGMENT, self.most // _PARTS)

        def write(number: int) -> None:
            parts[number].segments.append(self.file.write(waiting[number]))
            parts[number].rows += sum(map(len, waiting[number]))
            parts[number].bytes += sizes[number]
            waiting[number], sizes[number] = [], 0

        while (batch := in_memory.pop() if in_memory else next(stream, None)) is not None:
            for number, piece in _pieces(batch, by, level):
                waiting[number].append(piece)
                sizes[number] += piece.nbytes
                if sizes[number] >= least:
                    write(number)
        for number in range(_PARTS):
            if waiting[number]:
                write(number)
        return parts


def _joined(parts: list[_Part], most: int) -> Iterator[_Part]:
    """Parts together as long as they fit memory, so that frequent items are hashed seldom."""
    together = _Part()
    for part in parts:
        if together.rows and together.bytes + part.bytes > most:
            yield together
            together = _Part()
        together.segments += part.segments
        together.rows += part.rows
        together.bytes += part.bytes
    yield together


def _pieces(batch: pa.RecordBatch, by: str, level: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch by the bits of a hash that this level looks at."""
    hashes: NDArray[np.uint64] = batch.column(by).to_numpy(zero_copy_only=False)
    numbers = ((hashes >> np.uint64(_BITS * level)) & np.uint64(_PARTS - 1)).astype(np.uint8)
    in_order = np.argsort(numbers, kind="stable")
    ordered = batch.take(pa.array(in_order))
    ends = np.searchsorted(numbers[in_order], np.arange(_PARTS + 1))
    for number in range(_PARTS):
        if ends[number] < ends[number + 1]:
            yield number, ordered.slice(ends[number], ends[number + 1] - ends[number])
