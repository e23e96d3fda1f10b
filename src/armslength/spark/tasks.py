"""What runs on the workers: from one partition's events or vectors to rows of exact integers, **not private**.

The rows are a function of the events, the key and public input alone, so a task that runs twice sends the same ones. Our own errors
travel as rows, because Spark would run a failed task again and show its stack; other errors lose their message.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.errors import InputError, ParameterError
from armslength.ingest.arrays import projected_sums
from armslength.ingest.event_table import TableJob
from armslength.ingest.sums import PartialSums, parts_of
from armslength.protocol.protocol import Protocol
from armslength.spark.summing import (
    ALL_TASKS,
    LISTING,
    PROBLEM,
    WORD,
    Layout,
    Row,
    in_batches,
    packed_integers,
    packed_problem,
    packed_senders,
    rows_of,
    tag_of,
    tags_of,
)
from armslength.version import __version__

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_of(job: Any) -> Task:
    """A function for `mapInArrow` that has `job.rows` make rows of a partition's batches."""
    version, packed = __version__, pickle.dumps(job)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(version, packed, batches)

    return task


def joining_task(work: Callable[[Iterable[Row]], Iterator[Row]]) -> Task:
    """A function for `mapInArrow` that makes fewer rows of those that tasks have sent."""
    return task_of(JoinJob(work))


@dataclass(frozen=True)
class JoinJob:
    """A job on rows that tasks have sent."""

    work: Callable[[Iterable[Row]], Iterator[Row]]

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """What the work makes of the rows."""
        return self.work(rows_of(batches))


def run(driver: str, packed: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one task, for the driver's version and its pickled job, which is loaded if the versions agree."""
    if driver == __version__:
        return in_batches(_careful(packed, batches))
    problem = ParameterError(
        f"armslength must be of one version everywhere, got {driver} on the driver and {__version__} on a worker; install the same one"
    )
    return in_batches(_refusal(problem, batches))


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


BUCKET, FINGERPRINT = "bucket", "fingerprint"
_MOST_BUFFERED = 1 << 23  # 64 MB


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
        for chunk, cells in self._chunks(reader):
            packed = packed_integers(cells)
            tag = tag_of(*reader.name, chunk, count, packed)
            tags, count = (tags + tag) % WORD, count + 1
            yield chunk, packed, packed_senders({reader.name: tag})
        yield LISTING, packed_integers(reader.buckets), packed_senders({reader.name: tags})

    def _chunks(self, reader: "PartitionReader") -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The sums of the partition, chunk by chunk; one chunk may come several times."""
        table = replace(self.table, source=reader.events(), threads=1)
        buffer = ChunkBuffer(self.layout)
        for events in table.kept_events(self.key):
            for part in parts_of(table.protocol, events, table.shape, threads=1):
                yield from buffer.add(part)
        reader.finish()
        yield from buffer.drain()


class PartitionReader:
    """Passes on the events of a partition, and identifies this reading of it."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._first = next((batch for batch in batches if batch.num_rows), None)
        self._events = self._read()
        self._sum, self._count, self._is_done = 0, 0, False
        self.buckets: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
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
        self._cells: dict[int, NDArray[np.int64]] = {}

    def add(self, part: PartialSums) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Adds sums; yields those that no longer fit."""
        rows = zip(part.groups.tolist(), part.values, part.margins, part.totals, strict=True)
        for group, values, margins, total in rows:
            cells = self._cells.get(group)
            if cells is None:
                if len(self._cells) == self._most:
                    yield from self.drain()
                cells = self._cells[group] = np.zeros(self._layout.columns, dtype=np.int64)
            cells[:-1] += np.concatenate([values, margins])
            cells[-1] += total

    def drain(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """All sums, chunk by chunk; empties the buffer."""
        layout = self._layout
        cells_of, self._cells = self._cells, {}
        for block, groups in groupby(sorted(cells_of), lambda group: group // layout.groups_at_once):
            first_chunk = block * layout.pieces
            rows, _ = layout.place(first_chunk)
            cells = np.zeros((rows.stop - rows.start, layout.columns), dtype=np.int64)
            for group in groups:
                cells[group - rows.start] = cells_of.pop(group)
            for chunk in range(first_chunk, first_chunk + layout.pieces):
                yield chunk, cells[:, layout.place(chunk)[1]]


PACKED = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4"}


def check_vector_type(kind: pa.DataType, dtype: Any) -> None:
    """Refuses a column that holds no vectors, and a `dtype` that does not go with it."""
    if _is_binary(kind):
        if dtype not in PACKED:
            raise ParameterError(f"dtype of binary vectors must be one of {', '.join(PACKED)}, got {dtype!r}")
        return
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    if inner is None or not (pa.types.is_integer(inner) or pa.types.is_floating(inner)):
        raise InputError(f"vector must be binary or lists of numbers, got {type_name(kind)}; cast it first")
    if dtype is not None:
        raise ParameterError(f"dtype must be left out for lists of numbers, got {dtype!r}")


def matrix_of(column: pa.Array, width: int, dtype: str | None) -> NDArray[Any]:
    """The vectors of a column as rows."""
    if column.null_count:
        raise InputError("vector must be there in every listed row, got a missing one; leave such rows out")
    if _is_binary(column.type):
        return _unpacked(column.cast(pa.large_binary()), width, np.dtype(PACKED[str(dtype)]))
    _check_lengths(pc.list_value_length(column), width, f"{width} numbers")
    inner = column.flatten()
    if inner.null_count:
        raise InputError("vector must hold a number in every place, got a missing one")
    matrix: NDArray[Any] = inner.to_numpy().reshape(len(column), width)
    return matrix


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _unpacked(column: pa.Array, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Packed numbers as they lie in memory, without a copy."""
    size = width * dtype.itemsize
    _check_lengths(pc.binary_length(column), size, f"{width} numbers of {dtype.itemsize} bytes")
    if len(column) == 0:
        return np.zeros((0, width), dtype=dtype.newbyteorder("="))
    _, starts, data = column.buffers()
    first = int(np.frombuffer(starts, dtype=np.int64)[column.offset])
    numbers = np.frombuffer(data, dtype=dtype, count=len(column) * width, offset=first)
    aligned = np.require(numbers.astype(dtype.newbyteorder("="), copy=False), requirements=["A"])
    return aligned.reshape(len(column), width)


def _check_lengths(lengths: pa.Array, expected: int, meaning: str) -> None:
    if not pc.all(pc.equal(lengths, expected), min_count=0).as_py():
        raise InputError(f"vector must have {meaning} in every listed row, got another length")


BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class RowsJob:
    """The input of every task of a release of rows."""

    protocol: Protocol
    labels: tuple[str, ...]
    dtype: str | None  # of packed numbers; None for lists
    block_bytes: int = BLOCK_BYTES

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """(number, A·x, total) of each listed row, by blocks of the public list; then the tags of all that were sent.

        The block of a row is a function of the row alone, in whatever order rows are read.
        """
        tags = 0
        numbers = {label: number for number, label in enumerate(self.labels)}
        transform = self.protocol.transform
        at_once = max(1, self.block_bytes // (8 * (max(transform.sketch_dim, transform.input_dim or 0) + 2)))
        for batch in batches:
            for start in range(0, batch.num_rows, at_once):
                cells = self._cells(batch.slice(start, at_once), numbers)
                tags = (tags + tags_of(cells)) % WORD
                blocks = cells[:, 0] // at_once
                for block in np.unique(blocks).tolist():
                    yield block, packed_integers(cells[blocks == block]), b""
        yield LISTING, b"", packed_senders({ALL_TASKS: tags})

    def _cells(self, batch: pa.RecordBatch, numbers: dict[str, int]) -> NDArray[np.int64]:
        try:
            batch.validate(full=True)
        except pa.ArrowException:
            raise InputError("rows must have valid text for their ids, got something else") from None
        row_numbers = np.array([numbers.get(label, -1) for label in batch.column("row").to_pylist()])
        is_listed = row_numbers >= 0
        if not is_listed.any():
            return np.zeros((0, self.protocol.transform.sketch_dim + 2), dtype=np.int64)
        vectors = batch.column("vector")
        if not is_listed.all():
            vectors = vectors.filter(pa.array(is_listed))
        matrix = matrix_of(vectors, self.protocol.transform.input_dim or 0, self.dtype)
        sums = projected_sums(self.protocol, matrix, threads=1)
        cells = np.zeros((len(matrix), sums.values.shape[1] + 2), dtype=np.int64)
        cells[:, 0] = row_numbers[is_listed]
        cells[:, 1:-1] = sums.values
        if sums.totals is not None:
            cells[:, -1] = sums.totals
        return cells
