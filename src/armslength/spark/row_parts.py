"""From one partition's vectors to rows of exact integers, **not private**; and all of them, in order, on the driver."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from armslength.errors import InputError
from armslength.protocol.projection import Prepared, project_and_add_up
from armslength.protocol.protocol import Protocol
from armslength.spark.rows import PROBLEM, Row, integers, packed_integers
from armslength.spark.summing import problem_of
from armslength.spark.vectors import matrix_of

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class RowsJob:
    """What every task of a release of rows is told.

    Attributes:
        protocol: What the parties agreed on.
        labels: The public rows.
        dtype: What packed numbers are; None for lists of numbers.
    """

    protocol: Protocol
    labels: tuple[str, ...]
    dtype: str | None

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        """(number, A·x, total) of each listed row, some at a time, under the number of the first.

        Args:
            batches: Rows with the columns `row`, as text, and `vector`.
        """
        numbers = {label: number for number, label in enumerate(self.labels)}
        transform = self.protocol.transform
        at_once = max(1, _BLOCK_BYTES // (8 * (max(transform.sketch_dim, transform.input_dim or 0) + 2)))
        for batch in batches:
            for start in range(0, batch.num_rows, at_once):
                yield from self._block(batch.slice(start, at_once), numbers)

    def _block(self, batch: pa.RecordBatch, numbers: dict[str, int]) -> Iterator[Row]:
        try:
            batch.validate(full=True)
        except pa.ArrowException:
            raise InputError("rows must have valid text for their ids, got something else") from None
        found = [numbers.get(label) for label in batch.column("row").to_pylist()]
        listed = [place for place, number in enumerate(found) if number is not None]
        if not listed:
            return
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
        yield int(cells[0, 0]), packed_integers(cells), b""


class GatheredRows:
    """The integers of all public rows on the driver; a row that does not come is that of a vector of zeros.

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

    def add(self, row: Row) -> None:
        """Puts rows where they belong, or raises the problem that came instead."""
        chunk, packed, _ = row
        if chunk == PROBLEM:
            raise problem_of(bytes(packed))
        cells = integers(packed).reshape(-1, self._values.shape[1] + 2)
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
        """All rows, ready for their noise."""
        return Prepared([], self._values, None, self._totals)
