"""From one partition's vectors to rows of exact integers, **not private**; and all of them, in order, on the driver."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import InputError
from armslength.protocol.projection import Prepared, project_and_add_up
from armslength.protocol.protocol import Protocol
from armslength.spark.rows import LISTING, PROBLEM, Row, integers, packed_integers, word_of
from armslength.spark.summing import other_rows, problem_of
from armslength.spark.vectors import matrix_of

BLOCK_BYTES = 1 << 20
_WORD = 1 << 64


@dataclass(frozen=True)
class RowsJob:
    """What every task of a release of rows is told.

    Attributes:
        protocol: What the parties agreed on.
        labels: The public rows.
        dtype: What packed numbers are; None for lists of numbers.
        block_bytes: About how much a block of rows has.
    """

    protocol: Protocol
    labels: tuple[str, ...]
    dtype: str | None
    block_bytes: int = BLOCK_BYTES

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """(number, A·x, total) of each listed row, by blocks of the public list; and at last how many were sent, and which.

        To which block a row belongs is a function of the row alone, whatever order it is read in.

        Args:
            batches: Rows with the columns `row`, as text, and `vector`.
        """
        sent, tags = 0, 0
        numbers = {label: number for number, label in enumerate(self.labels)}
        transform = self.protocol.transform
        at_once = max(1, self.block_bytes // (8 * (max(transform.sketch_dim, transform.input_dim or 0) + 2)))
        for batch in batches:
            for start in range(0, batch.num_rows, at_once):
                cells = self._cells(batch.slice(start, at_once), numbers)
                sent, tags = sent + len(cells), (tags + tags_of(cells)) % _WORD
                blocks = cells[:, 0] // at_once
                for block in np.unique(blocks).tolist():
                    yield block, packed_integers(cells[blocks == block]), b""
        yield LISTING, packed_integers(np.array([sent, tags], dtype=np.uint64).view(np.int64)), b""

    def _cells(self, batch: pa.RecordBatch, numbers: dict[str, int]) -> NDArray[np.int64]:
        try:
            batch.validate(full=True)
        except pa.ArrowException:
            raise InputError("rows must have valid text for their ids, got something else") from None
        found = [numbers.get(label) for label in batch.column("row").to_pylist()]
        listed = [place for place, number in enumerate(found) if number is not None]
        if not listed:
            return np.zeros((0, self.protocol.transform.sketch_dim + 2), dtype=np.int64)
        vectors = batch.column("vector")
        if len(listed) < len(found):
            vectors = vectors.take(pa.array(listed))
        matrix = matrix_of(vectors, self.protocol.transform.input_dim or 0, self.dtype)
        values, totals = project_and_add_up(self.protocol, matrix, None, 1)
        cells = np.zeros((len(values), values.shape[1] + 2), dtype=np.int64)
        cells[:, 0] = [found[place] for place in listed]
        cells[:, 1:-1] = values
        if totals is not None:
            cells[:, -1] = totals
        return cells


def tags_of(cells: NDArray[np.int64]) -> int:
    """A word for some rows, whatever their order: the sum of one for each."""
    return sum(word_of(row.tobytes()) for row in np.ascontiguousarray(cells, dtype="<i8")) % _WORD


def together(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows, those of a block in one piece. Notes go on as they are."""
    held: dict[int, list[bytes]] = {}
    for block, packed, note in rows:
        if block < 0:
            yield block, bytes(packed), note
        else:
            held.setdefault(block, []).append(bytes(packed))
    for block, pieces in held.items():
        yield block, b"".join(pieces), b""


class GatheredRows:
    """The integers of all public rows on the driver; a row that nobody sent is that of a vector of zeros.

    What tasks say that they sent must be what came: a row that is lost on the way is not taken for one that was never there.

    Args:
        protocol: What the parties agreed on.
        count: How many public rows there are.
    """

    def __init__(self, protocol: Protocol, count: int) -> None:
        # zeros may be clamped to something else
        nothing = np.zeros((1, protocol.transform.input_dim or 0), dtype=np.int64)
        value, total = project_and_add_up(protocol, nothing, None, 1)
        self._values = np.repeat(value, count, axis=0)
        self._totals = None if total is None else np.repeat(total, count)
        self._came = np.zeros(count, dtype=np.bool_)
        self._sent, self._tags = 0, 0  # less what came

    def add(self, row: Row) -> None:
        """Puts rows where they belong, or raises the problem that came instead."""
        chunk, packed, _ = row
        if chunk == PROBLEM:
            raise problem_of(bytes(packed))
        if chunk == LISTING:
            sent, tags = integers(packed).view(np.uint64).tolist()
            self._sent, self._tags = self._sent + sent, self._tags + tags
            return
        cells = integers(packed).reshape(-1, self._values.shape[1] + 2)
        self._sent, self._tags = self._sent - len(cells), self._tags - tags_of(cells)
        numbers = cells[:, 0]
        if self._came[numbers].any() or len(np.unique(numbers)) < len(numbers):
            raise InputError(
                "row must name each row once, got one that occurs twice; nothing was charged, and nothing is added up here"
            )
        self._came[numbers] = True
        self._values[numbers] = cells[:, 1:-1]
        if self._totals is not None:
            self._totals[numbers] = cells[:, -1]

    def prepared(self) -> Prepared:
        """All rows, ready for their noise, if what was sent is what came."""
        if self._sent or self._tags % _WORD:
            raise other_rows()
        return Prepared([], self._values, None, self._totals)
