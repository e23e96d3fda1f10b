"""What runs on the workers: from one partition's events to rows of exact integers, **not private**.

The rows are a function of the events, the key and public input alone, so a task that runs twice sends the same ones. Our own errors
travel as rows, because Spark would run a failed task again and show its stack; other errors lose their message.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength.errors import InputError, OutOfMemoryError, ParameterError
from armslength.ingest.event_table import TableJob
from armslength.ingest.sums import Bins, PartialSums, joined_bins, partial_sums_of
from armslength.spark.summing import (
    LISTING,
    PROBLEM,
    WORD,
    Layout,
    Row,
    in_batches,
    packed_bins,
    packed_integers,
    packed_senders,
    tag_of,
)
from armslength.version import __version__

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_of(job: Any) -> Task:
    """A function for `mapInArrow` that has `job.rows` make rows of a partition's batches."""
    version, packed = __version__, pickle.dumps(job)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(version, packed, batches)

    return task


def run(driver: str, packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one task, for the driver's version and its pickled job, which is loaded if the versions agree."""
    return in_batches(_rows_or_problem(driver, packed, batches))


def _rows_or_problem(driver: str, packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    try:
        if driver != __version__:
            raise ParameterError(  # noqa: TRY301  # sent like those of a job
                f"armslength has version {driver} on the driver and {__version__} on a worker; install the same one"
            )
        yield from pickle.loads(packed).rows(batches)  # noqa: S301  # our own driver's, like the function itself
    except (InputError, OutOfMemoryError, ParameterError) as problem:
        for _ in batches:
            pass  # Spark goes on writing until somebody has read it all
        yield PROBLEM, f"{type(problem).__name__}:{problem}".encode(), b""
    except Exception as problem:  # noqa: BLE001  # its words may quote data, and would stand in the log of a worker
        raise RuntimeError(f"armslength: a task ended with {type(problem).__name__}") from None


BUCKET, FINGERPRINT = "bucket", "fingerprint"
_MOST_BUFFERED = 1 << 23  # 64 MB
_MOST_BINS = 1 << 21  # 16 MB


@dataclass(frozen=True)
class PartitionJob:
    """The input of every task of a release."""

    table: TableJob  # its source is the partition
    key: bytes  # puts each person's events into the order in which they are kept: drawn once, before any task
    layout: Layout

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """The rows of one partition, whose events come with the bucket of their person and a fingerprint."""
        reader = PartitionReader(batches)
        if reader.schema is None:
            return
        tags, count = 0, 0
        for chunk, packed in self._chunks(reader):
            tag = tag_of(*reader.name, chunk, count, packed)
            tags, count = (tags + tag) % WORD, count + 1
            yield chunk, packed, packed_senders({reader.name: tag})
        yield LISTING, packed_integers(reader.buckets), packed_senders({reader.name: tags})

    def _chunks(self, reader: "PartitionReader") -> Iterator[tuple[int, bytes]]:
        """The sums of the partition and the bins of its people, chunk by chunk; one chunk may come several times."""
        table = replace(self.table, source=reader.events(), threads=1)
        sums, bins = ChunkBuffer(self.layout), BinBuffer(self.layout)
        for events in table.kept_events(self.key):
            for part in partial_sums_of(table.protocol, events, table.shape, threads=1):
                yield from sums.add(part)
            if events.votes is not None:
                yield from bins.add(events.votes.bins)
        reader.finish()
        yield from sums.drain()
        yield from bins.drain()


class PartitionReader:
    """Passes on the events of a partition, and identifies this reading of it."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._first = next((batch for batch in batches if batch.num_rows), None)
        self._events = self._read()
        self._sum, self._count, self._is_done = 0, 0, False
        self.buckets = np.zeros(0, dtype=np.int64)
        # of the events; None for a partition without any
        self.schema = None if self._first is None else _events_of(self._first).schema

    @property
    def name(self) -> tuple[int, int]:
        """(the lowest bucket, the fingerprint of all events), the same for the same events in any order."""
        if not self._is_done:
            raise RuntimeError("a partition must be read to its end before any of its sums are sent")
        return int(self.buckets[0]), (self._sum + self._count * 0x9E3779B97F4A7C15) % WORD

    def events(self) -> pa.RecordBatchReader:
        """The events, without bucket and fingerprint."""
        return pa.RecordBatchReader.from_batches(self.schema, self._events)

    def finish(self) -> None:
        """Reads the rest: an engine does not read on when it sees that no event can count."""
        for _ in self._events:
            pass

    def _read(self) -> Iterator[pa.RecordBatch]:
        batch = self._first
        while batch is not None:
            buckets = pc.unique(batch.column(BUCKET)).to_numpy(zero_copy_only=False)
            self.buckets = np.union1d(self.buckets, buckets).astype(np.int64)
            words = batch.column(FINGERPRINT).to_numpy(zero_copy_only=False).view(np.uint64)
            self._sum = (self._sum + int(words.sum(dtype=np.uint64))) % WORD
            self._count += batch.num_rows
            yield _events_of(batch)
            batch = next(self._batches, None)
        self._is_done = True


def _events_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select([name for name in batch.schema.names if name not in (BUCKET, FINGERPRINT)])


class ChunkBuffer:
    """Sums of groups, until they are too many."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._most = min(layout.groups, max(1, _MOST_BUFFERED // layout.columns))
        self._cells: dict[int, Any] = {}

    def add(self, part: PartialSums) -> Iterator[tuple[int, bytes]]:
        """Adds sums; yields those that no longer fit."""
        parts = np.concatenate([part.values, part.margins, part.scalars], axis=1)
        for group, numbers in zip(part.groups.tolist(), parts, strict=True):
            cells = self._cells.get(group)
            if cells is None:
                if len(self._cells) == self._most:
                    yield from self.drain()
                cells = self._cells[group] = np.zeros(self._layout.columns, dtype=np.int64)
            cells += numbers

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """All sums, chunk by chunk; empties the buffer."""
        layout = self._layout
        cells_of, self._cells = self._cells, {}
        for block, groups in groupby(sorted(cells_of), lambda group: group // layout.groups_at_once):
            first_chunk = block * layout.pieces
            rows, _ = layout.slices(first_chunk)
            cells = np.zeros((rows.stop - rows.start, layout.columns), dtype=np.int64)
            for group in groups:
                cells[group - rows.start] = cells_of.pop(group)
            for chunk in range(first_chunk, first_chunk + layout.pieces):
                yield chunk, packed_integers(cells[:, layout.slices(chunk)[1]])


class BinBuffer:
    """Bins of people, until they are too many."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._waiting: list[Bins] = []
        self._entries = 0

    def add(self, bins: Bins) -> Iterator[tuple[int, bytes]]:
        """Adds people; yields all when they no longer fit."""
        self._waiting.append(bins)
        self._entries += len(bins.bins)
        if self._entries > _MOST_BINS:
            yield from self.drain()

    def drain(self) -> Iterator[tuple[int, bytes]]:
        """All people, in the chunks of their groups; empties the buffer."""
        bins = joined_bins(self._waiting)
        self._waiting, self._entries = [], 0
        for group, packed in packed_bins(bins, 2 * self._layout.most_cells):
            yield self._layout.chunks + group, packed
