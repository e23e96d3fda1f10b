"""What runs on the workers: the version first, then the work; our own errors come back as rows, others without their words.

Errors travel as rows because an exception in a task is tried again, and comes with a stack of every process it went through.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength.errors import InputError, ParameterError
from armslength.ingest.event_table import TableJob
from armslength.ingest.sums import PartialSums, SumShape, parts_of
from armslength.spark.messages import (
    LISTING,
    PROBLEM,
    WORD,
    Layout,
    Row,
    in_batches,
    packed_integers,
    packed_senders,
    rows_of,
    tag_of,
)
from armslength.spark.summing import packed_problem, summed
from armslength.spark.vector_tasks import together
from armslength.version import __version__

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_of(job: Any) -> Task:
    """A function for `mapInArrow` that has `job.rows` make rows of a partition's batches."""
    return _shipped(__version__, pickle.dumps(job))


def summing_task() -> Task:
    """A function for `mapInArrow` that adds rows up."""
    return _shipped(__version__, pickle.dumps(Joined(summed)))


def joining_task() -> Task:
    """A function for `mapInArrow` that puts rows of a block together."""
    return _shipped(__version__, pickle.dumps(Joined(together)))


@dataclass(frozen=True)
class Joined:
    """A job on rows that tasks have sent.

    Attributes:
        work: What is made of them.
    """

    work: Callable[[Iterable[Row]], Iterator[Row]]

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """The rows that it makes."""
        return self.work(rows_of(batches))


def _shipped(version: str, packed: bytes) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(version, packed, batches)

    return task


def run(version: str, packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one task.

    Args:
        version: The driver's version of armslength.
        packed: The job, which is not looked into before the versions agree.
        batches: The partition.
    """
    if version != __version__:
        return in_batches(_refusal(_other_version(version), batches))
    return in_batches(_careful(packed, batches))


def _careful(packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    try:
        yield from pickle.loads(packed).rows(batches)  # noqa: S301  # our own driver's, like the function itself
    except (InputError, ParameterError) as problem:
        yield from _refusal(problem, batches)
    except Exception as problem:  # noqa: BLE001  # its words may quote data, and would stand in the log of a worker
        raise RuntimeError(f"armslength: a task ended with {type(problem).__name__}") from None


def _refusal(problem: InputError | ParameterError, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for _ in batches:
        pass  # Spark goes on writing until somebody has read it all
    yield PROBLEM, packed_problem(problem), b""


def _other_version(driver: str) -> ParameterError:
    return ParameterError(
        f"armslength must be of one version everywhere, got {driver} on the driver and {__version__} on a worker; "
        "install the same one"
    )


# From one partition's events to rows of partial sums, **not private**: a function of the events, the key and public input alone.
#
# Nothing is drawn here, and nothing is kept: a task that runs twice on the same events sends the same rows. No Spark is needed: batches are Arrow's.


BUCKET, FINGERPRINT = "bucket", "fingerprint"
_MOST_BUFFERED = 1 << 23  # 64 MB


@dataclass(frozen=True)
class PartitionJob:
    """What every task of a release is told.

    Attributes:
        table: What is counted; its source is the partition.
        key: Puts each person's events into the order in which they are kept: drawn once, before any task.
        layout: How sums are cut into chunks.
    """

    table: TableJob
    key: bytes
    layout: Layout

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """The rows of one partition.

        Args:
            batches: Its events under the names of their roles, each with the bucket of its person and the fingerprint of its row.
        """
        reader = PartitionReader(batches)
        if reader.schema is None:
            return
        table = replace(self.table, source=reader.events(), threads=1)
        shape = SumShape.of(table.protocol, len(table.groups.labels))
        buffer = ChunkBuffer(self.layout)
        tags, count = 0, 0
        for chunk, cells in self._chunks(table, reader, shape, buffer):
            packed = packed_integers(cells)
            tag = tag_of(*reader.name, chunk, count, packed)
            tags, count = (tags + tag) % WORD, count + 1
            yield chunk, packed, packed_senders({reader.name: tag})
        yield LISTING, packed_integers(reader.buckets), packed_senders({reader.name: tags})

    def _chunks(
        self, table: TableJob, reader: "PartitionReader", shape: SumShape, buffer: "ChunkBuffer"
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The sums of the partition, chunk by chunk; one chunk may come several times."""
        for events in table.kept_events(self.key):
            for part in parts_of(table.protocol, events, shape, threads=1):
                yield from buffer.add(part)
        reader.finish()
        yield from buffer.drain()


class PartitionReader:
    """One reading of a partition: its events go on, and what tells this reading from another one stays.

    Args:
        batches: The partition.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._first = next((batch for batch in batches if batch.num_rows), None)
        self._events = self._read()
        self._sum, self._count, self._is_done = 0, 0, False
        self.buckets: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def schema(self) -> pa.Schema | None:
        """Of the events; None for a partition without any."""
        if self._first is None:
            return None
        names = [name for name in self._first.schema.names if name not in (BUCKET, FINGERPRINT)]
        return pa.schema([self._first.schema.field(name) for name in names])

    @property
    def name(self) -> tuple[int, int]:
        """(the lowest bucket, the fingerprint of all events): the same for whoever reads the same events, in any order."""
        if not self._is_done:
            raise RuntimeError("a partition must be read to its end before any of its sums are sent")
        return int(self.buckets[0]), (self._sum + self._count * 0x9E3779B97F4A7C15) % WORD

    def events(self) -> pa.RecordBatchReader:
        """The events, without what only this class looks at."""
        return pa.RecordBatchReader.from_batches(self.schema, self._events)

    def finish(self) -> None:
        """Reads what is left: an engine that sees that no event can be taken does not look at them all."""
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
            yield batch.select([name for name in batch.schema.names if name not in (BUCKET, FINGERPRINT)])
            batch = next(self._batches, None)
        self._is_done = True


class ChunkBuffer:
    """The sums of the groups that have come, until they are too many.

    Args:
        layout: How they are cut.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._most = min(layout.groups, max(1, _MOST_BUFFERED // layout.columns))
        self._cells: dict[int, NDArray[np.int64]] = {}

    def add(self, part: PartialSums) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Adds sums; gives what had to go first."""
        for group, values, total in zip(part.groups.tolist(), part.values, part.totals, strict=True):
            cells = self._cells.get(group)
            if cells is None:
                if len(self._cells) == self._most:
                    yield from self.drain()
                cells = self._cells[group] = np.zeros(self._layout.columns, dtype=np.int64)
            cells[:-1] += values
            cells[-1] += total

    def drain(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """All of them, chunk by chunk; the buffer is empty then."""
        layout = self._layout
        rows_of_groups, self._cells = self._cells, {}
        blocks: dict[int, list[int]] = {}
        for group in sorted(rows_of_groups):
            blocks.setdefault(group // layout.groups_at_once, []).append(group)
        for block, groups in blocks.items():
            rows, _ = layout.place(block * layout.pieces)
            cells = np.zeros((rows.stop - rows.start, layout.columns), dtype=np.int64)
            for group in groups:
                cells[group - rows.start] = rows_of_groups.pop(group)
            for piece in range(layout.pieces):
                chunk = block * layout.pieces + piece
                yield chunk, cells[:, layout.place(chunk)[1]]
