"""From one partition's vectors to rows of exact integers, **not private**, and all rows in order on the driver."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.errors import InputError, ParameterError
from armslength.ingest.arrays import projected_sums
from armslength.ingest.sums import Sums
from armslength.protocol.protocol import Protocol
from armslength.spark.messages import (
    LISTING,
    WORD,
    Row,
    add_senders,
    packed_integers,
    packed_senders,
    word_of,
)
from armslength.spark.summing import SentRows

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
_ALL_TASKS = (0, 0)  # which task has sent a row does not matter here


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
        yield LISTING, b"", packed_senders({_ALL_TASKS: tags})

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


def tags_of(cells: NDArray[np.int64]) -> int:
    """A word for some rows in any order: the sum of one for each."""
    return sum(word_of(row.tobytes()) for row in np.ascontiguousarray(cells, dtype="<i8")) % WORD


def together(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows, those of a block in one piece. Notes are passed on."""
    blocks: dict[int, list[bytes]] = {}
    for block, packed, note in rows:
        if block < 0:
            yield block, bytes(packed), note
        else:
            blocks.setdefault(block, []).append(bytes(packed))
    for block, pieces in blocks.items():
        yield block, b"".join(pieces), b""


class VectorSums:
    """The integers of all public rows on the driver; missing rows count as zeros.

    The tags of what arrived must be those that tasks list, so a row that is lost is not taken for a missing one.
    """

    def __init__(self, protocol: Protocol, count: int) -> None:
        # zeros may be clamped to something else
        zeros = projected_sums(protocol, np.zeros((1, protocol.transform.input_dim or 0), dtype=np.int64))
        self._values = np.repeat(zeros.values, count, axis=0)
        self._totals = None if zeros.totals is None else np.repeat(zeros.totals, count)
        self._arrived = np.zeros(count, dtype=np.bool_)
        self._sent = SentRows()

    def add(self, row: Row) -> None:
        """Puts rows where they belong, or raises the error that a task reports."""
        received = self._sent.receive(row)
        if received is None:
            return
        cells = received[1].reshape(-1, self._values.shape[1] + 2)
        add_senders(self._sent.arrived, packed_senders({_ALL_TASKS: tags_of(cells)}))
        numbers = cells[:, 0]
        if self._arrived[numbers].any() or len(np.unique(numbers)) < len(numbers):
            raise InputError("row must name each row once, got one that occurs twice; nothing was charged")
        self._arrived[numbers] = True
        self._values[numbers] = cells[:, 1:-1]
        if self._totals is not None:
            self._totals[numbers] = cells[:, -1]

    def sums(self) -> Sums:
        """All rows, ready for their noise, if all that was sent arrived."""
        self._sent.check()
        return Sums(self._values, self._totals, "rows")
