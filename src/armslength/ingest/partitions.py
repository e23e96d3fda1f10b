"""Events by person: parts that fit memory, some of them in memory and the others in an encrypted temporary file.

The file has no name and its key lives in this process alone: a killed process leaves nothing readable, not even on free blocks.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from armslength._numba import Int64s, Words, kernel
from armslength.checks import short_repr
from armslength.errors import InputError, OutOfMemoryError, ParameterError
from armslength.ingest.contributions import (
    Events,
    KeyedOrder,
    PackedEvents,
    Votes,
    most_events_of_one_person,
    person_mix,
)
from armslength.threads import check_same_process

if TYPE_CHECKING:
    from io import FileIO

DEFAULT_MEMORY = "1GB"
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}
PARTS = 512
PART_SHIFT = np.uint64(55)  # the highest 9 bits of a hash are the part
_PASS_SHIFT = np.uint64(39)
_RUN_SHIFT = np.uint64(31)
_MOST_PASSES = 1 << 16
_ROWS_OF_RUN, _MOST_RUNS = 1 << 14, 1 << 8
_FINER = 16  # passes in place of one
_CELL_PASSES = (16, 256, 4096)
_GROUP_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# of small parts that are taken out together: enough work for a kernel, few enough for a core's cache
_ROWS_TOGETHER = 1 << 17
_EVENT_BYTES = (
    96  # of one event while its part is bounded; a long id counts as the events that would fill its bytes
)
_LEAST_ROWS = 1 << 10
_ALLOCATED_AT_ONCE = 1 << 26  # bytes of the temporary file


@dataclass(frozen=True)
class Block:
    """Events in the order of their parts."""

    events: PackedEvents
    starts: Int64s  # the first event of each part, and the number of all
    long_starts: Int64s  # the same for the bytes of long ids

    def part(self, first: int, last: int) -> PackedEvents:
        """The events of the parts first … last−1, not copied."""
        first_long = int(self.long_starts[first])
        rows = self.events.rows[self.starts[first] : self.starts[last]]
        long_ids = self.events.long_ids[first_long : self.long_starts[last]]
        return self.events._replace(rows=rows, long_ids=long_ids, first_long=first_long)


PersonRule = KeyedOrder | Votes


class Job(NamedTuple):
    """Parts whose events are taken out together; of several passes, each takes the persons with other hashes."""

    first: int
    last: int
    rows: int  # about, of several passes
    number: int = 0
    passes: int = 1


def memory_bytes(memory: Any) -> int:
    """A size such as '1GB' or '512MiB' in bytes."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B", str(memory))
    if match is None:
        raise ParameterError(f"memory must be a size such as '1GB', got {short_repr(memory)}", "memory")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])


class EventStore:
    """All events of a table, to be taken out again person by person.

    Guarantee: all events of a person are in one job, however much memory there is. A keyed hash of the person chooses the job; who is
    one person is left to those who take events out.

    Args:
        key: Of the hash.
        memory: About how many bytes may be used.
        threads: How many threads take events out at a time.
    """

    def __init__(self, key: Words, memory: int, threads: int) -> None:
        self._key = key
        self._most_bytes = 3 * memory // 4
        self._most_rows = max(_LEAST_ROWS, memory // (4 * _EVENT_BYTES * threads))
        self._lock = Lock()
        self._blocks: list[Block] = []
        self._in_file: list[_BlockInFile] = []
        self._file = _TemporaryFile()
        self._bytes = 0
        self._rows: Int64s = np.zeros(PARTS, dtype=np.int64)
        self._long_bytes: Int64s = np.zeros(PARTS, dtype=np.int64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, block: Block) -> None:
        """Adds events; several threads may."""
        size = block.events.rows.nbytes + block.events.long_ids.nbytes
        with self._lock:
            self._rows += np.diff(block.starts)
            self._long_bytes += np.diff(block.long_starts)
            in_memory = self._bytes + size <= self._most_bytes
            if in_memory:
                self._bytes += size
                self._blocks.append(block)
        if not in_memory:
            in_file = self._file.write(block)
            with self._lock:
                self._in_file.append(in_file)

    def jobs(self, rule: PersonRule) -> list[Job]:
        """All jobs: small parts together, a large one in several passes."""
        together, first, rows, size = list[Job](), 0, 0, 0
        sizes = self._rows + self._long_bytes // _EVENT_BYTES
        for part, (count, more) in enumerate(zip(self._rows.tolist(), sizes.tolist(), strict=True)):
            if rows and size + more > min(self._most_rows, _ROWS_TOGETHER):
                together.append(Job(first, part, rows))
                first, rows, size = part, 0, 0
            rows, size = rows + count, size + more
        together += [Job(first, PARTS, rows)] if rows else []
        jobs = list[Job]()
        for job in together:
            passes = self._passes(job, rule)
            for number in range(passes):
                rows = job.rows // passes + (number < job.rows % passes)
                jobs.append(job._replace(rows=rows, number=number, passes=passes))
        return jobs

    def _passes(self, job: Job, rule: PersonRule) -> int:
        """How many passes it takes until each fits memory, to judge by a sample."""
        size = job.rows + int(self._long_bytes[job.first : job.last].sum()) // _EVENT_BYTES
        if size <= self._most_rows:
            return 1
        sample, seen = list[PackedEvents](), 0
        for events in self._parts(job):
            sample.append(events)
            seen += _size(events)
            if seen > self._most_rows:
                break
        left = _size(rule.compact(Events.joined(sample)))
        return min(_MOST_PASSES, 1 << int(2 * size / seen * left / self._most_rows).bit_length())

    def take(self, job: Job, rule: PersonRule) -> Iterator[Events]:
        """Events of the persons of a job, everybody's once, of which the rule keeps the same as of all theirs.

        That is all of them, if they fit memory; else in more passes over persons, or over the groups and items of one who has most.
        """
        events, cell_passes = None, tuple[int, ...]()
        try:
            events = self._events_of(job, rule)
        except _TooManyEventsError as problem:
            if problem.one_person or job.passes >= _MOST_PASSES:
                cell_passes = _CELL_PASSES
        for cells in cell_passes:
            if events is None:
                with suppress(_TooManyEventsError):
                    parts = (self._events_of(job, rule, number, cells) for number in range(cells))
                    events = rule.shortened(parts)
        if events is not None:
            yield from self._in_runs(events)
            return
        if job.passes >= _MOST_PASSES:
            raise OutOfMemoryError(
                "one person's events do not fit in the memory given; try memory=4GB", "memory"
            )
        for step in range(_FINER):
            number, passes = job.number + step * job.passes, _FINER * job.passes
            yield from self.take(job._replace(number=number, passes=passes), rule)

    def _events_of(self, job: Job, rule: PersonRule, cell_number: int = 0, cell_passes: int = 1) -> Events:
        """The events of a job; of several passes over groups and items, those of one."""
        parts, rows, limit = list[Events | PackedEvents](), 0, self._most_rows
        for packed in self._parts(job):
            part: Events | PackedEvents = packed
            if job.passes > 1 or cell_passes > 1:
                numbers = job.number, job.passes, cell_number, cell_passes
                events = Events.joined([packed])
                part = events.chosen(rows_of_pass(events.rows, self._key, *numbers))
                if len(part.long_ids):
                    part = Events.joined([part])  # with the ids of these rows alone
            parts.append(part)
            rows += len(part.rows)
            if rows > limit:
                compact = rule.compact(Events.joined(parts))
                parts, rows = [compact], len(compact.rows)
                if rows > self._most_rows:
                    one_person = most_events_of_one_person(*compact, self._key) > rows // 2
                    if not (one_person and rows <= rule.most_of_one):
                        problem = _TooManyEventsError()
                        problem.one_person = one_person
                        raise problem
                limit = max(limit, 2 * rows)
        return Events.joined(parts)

    def _in_runs(self, events: Events) -> Iterator[Events]:
        """The same events, some persons at a time, so that each run fits a core's cache: bounding takes half of the time there."""
        runs = min(_MOST_RUNS, 1 << (len(events.rows) // _ROWS_OF_RUN).bit_length())
        rows, starts = rows_by_run(events.rows, self._key, runs)
        for first, last in pairwise(starts.tolist()):
            if last > first:
                yield Events(rows[first:last], events.long_ids)

    def _parts(self, job: Job) -> Iterator[PackedEvents]:
        for block in self._blocks:
            yield block.part(job.first, job.last)
        for in_file in self._in_file:
            for part in range(job.first, job.last):
                yield self._file.read(in_file, part)


def _size(events: Events | PackedEvents) -> int:
    """How many events without long ids fill the same memory."""
    return len(events.rows) + len(events.long_ids) // _EVENT_BYTES


class _TooManyEventsError(Exception):
    """Events do not fit memory."""

    one_person = False  # whether somebody has most of them


@kernel
def rows_of_pass(
    events: Words, key: Words, number: int, passes: int, cell_number: int, cell_passes: int
) -> Int64s:
    """The rows whose persons, and whose groups and items, have these numbers; passes are powers of two."""
    rows, count = np.empty(len(events), dtype=np.int64), 0
    for row in range(len(events)):
        value = person_mix(events[row, 0], events[row, 1], key)
        if np.int64((value >> _PASS_SHIFT) & np.uint64(passes - 1)) != number:
            continue
        if cell_passes > 1:
            value = person_mix(events[row, 2], events[row, 3] + events[row, 4] * _GROUP_FACTOR, key)
            if np.int64((value >> _PASS_SHIFT) & np.uint64(cell_passes - 1)) != cell_number:
                continue
        rows[count] = row
        count += 1
    return rows[:count].copy()


@kernel
def rows_by_run(events: Words, key: Words, runs: int) -> tuple[Words, Int64s]:
    """The rows in the order of runs of persons; the first of each run, and the number of all rows."""
    run = np.empty(len(events), dtype=np.uint8)
    starts = np.zeros(runs + 1, dtype=np.int64)
    for row in range(len(events)):
        value = person_mix(events[row, 0], events[row, 1], key) >> _RUN_SHIFT
        run[row] = np.int64(value) & (runs - 1)
        starts[run[row] + 1] += 1
    starts = np.cumsum(starts)
    following, ordered = starts.copy(), np.empty_like(events)
    for row in range(len(events)):
        target = following[run[row]]
        following[run[row]] += 1
        for column in range(events.shape[1]):
            ordered[target, column] = events[row, column]
    return ordered, starts


@dataclass(frozen=True)
class _BlockInFile:
    """Where the parts of a block are: one behind the other, each encrypted by itself."""

    number: int  # of the first part, among all that were written
    places: Int64s
    block: Block  # without its events


class _TemporaryFile:
    """An encrypted file without a name: AES-256-GCM with a key that is stored nowhere, and a number for each part."""

    def __init__(self) -> None:
        self._cipher = AESGCM(AESGCM.generate_key(256))
        self._process = os.getpid()
        self._lock = Lock()
        self._count, self._end, self._allocated = 0, 0, 0
        self._file: FileIO | None = None

    def close(self) -> None:
        """Gives its space back."""
        if self._file is not None:
            self._file.close()

    def write(self, block: Block) -> _BlockInFile:
        """Adds a block."""
        check_same_process(self._process)  # two processes would write under one key and number
        with self._lock:
            number, self._count = self._count, self._count + PARTS
        texts = list[bytes]()
        for part in range(PARTS):
            events = block.part(part, part + 1)
            plain: Any = events.rows.ravel().view(np.uint8)  # not copied
            if len(events.long_ids):
                plain = events.rows.tobytes() + events.long_ids.tobytes()
            texts.append(self._cipher.encrypt((number + part).to_bytes(12, "little"), plain, None))
        places = np.cumsum([0, *map(len, texts)])
        left = memoryview(b"".join(texts))
        with self._lock:
            start, self._end = self._end, self._end + len(left)
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="armslength-", buffering=0)  # noqa: SIM115  # closed at the end
                end = start + int(places[-1])
                if end > self._allocated and hasattr(os, "posix_fallocate"):  # many times as fast as without
                    more = max(end - self._allocated, _ALLOCATED_AT_ONCE)
                    os.posix_fallocate(self._file.fileno(), self._allocated, more)
                    self._allocated += more
                while left:
                    left = left[os.pwrite(self._file.fileno(), left, end - len(left)) :]
            except OSError as problem:
                raise InputError(
                    f"cannot write a copy of the events to the temporary folder: {problem.strerror}; set TMPDIR to another"
                ) from None
        layout = block.events._replace(rows=block.events.rows[:0].copy(), long_ids=np.empty(0, np.uint8))
        return _BlockInFile(number, places + start, Block(layout, block.starts, block.long_starts))

    def read(self, stored: _BlockInFile, part: int) -> PackedEvents:
        """The events of one part."""
        check_same_process(self._process)
        first, last = int(stored.places[part]), int(stored.places[part + 1])
        text = b"" if self._file is None else os.pread(self._file.fileno(), last - first, first)
        # kernels are compiled for arrays that may be written to
        plain = bytearray(self._cipher.decrypt((stored.number + part).to_bytes(12, "little"), text, None))
        events, starts = stored.block.events, stored.block.starts
        count, width = int(starts[part + 1] - starts[part]), events.rows.shape[1]
        rows = np.frombuffer(plain, dtype=np.uint64, count=count * width).reshape(-1, width)
        long_ids = np.frombuffer(plain, dtype=np.uint8, offset=rows.nbytes)
        first_long = int(stored.block.long_starts[part])
        return events._replace(rows=rows, long_ids=long_ids, first_long=first_long)
