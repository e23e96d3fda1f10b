"""The exact integers of a release before noise, **not private**: what arrays, event tables and Spark tasks all end in.

Sketches are linear, so partial sums from anywhere add up; noise is drawn once, at the end, in one place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from armslength.ingest.contributions import BoundedEvents
from armslength.protocol.protocol import Protocol
from armslength.transforms.integer_rows import Rows, SparseRows
from armslength.transforms.transform import Transform

_MOST_COUNTS = 1 << 24  # 128 MB
_MOST_ADDED = 1 << 22  # 32 MB


@dataclass(frozen=True)
class Sums:
    """Input that was read to its end and checked: nothing after this can fail because of it."""

    values: NDArray[np.int64]  # A·x of each row modulo 2^64, n x k, contiguous
    totals: NDArray[np.int64] | None  # Σⱼ xⱼ of each row in grid units, where the protocol releases totals
    source: str  # "events" if the software bounded what each person adds; "rows" and "stream" if the data holder promises it

    def add_noise(self, add: Callable[[NDArray[np.int64]], None]) -> NDArray[np.int64]:
        """The values with their noise, n x k; these sums cannot be used again."""
        add(self.values)
        return self.values


@dataclass(frozen=True)
class RowSums(Sums):
    """Rows that are multiplied when noise is drawn, because it goes on the input; until then the values are empty."""

    parts: Sequence[Rows]
    transform: Transform
    threads: int | None

    def add_noise(self, add: Callable[[NDArray[np.int64]], None]) -> NDArray[np.int64]:
        """The values with noise on their input, n x k."""
        start = 0
        for part in self.parts:
            product = self.transform.noised(part, add, "input", threads=self.threads)
            self.values[start : start + len(product)] = product
            start += len(product)
        return self.values


@dataclass(frozen=True)
class PartialSums:
    """The exact integers of some events: to be added up, never to be released."""

    groups: NDArray[np.int64]  # the numbers of the groups that occur, each once
    values: NDArray[np.int64]  # A·x of each, modulo 2^64; or x itself, which is projected at the end
    totals: NDArray[np.int64]  # Σ amount of each, modulo 2^64


def _partial_sums(
    protocol: Protocol, events: BoundedEvents, *, counts_only: bool, threads: int | None
) -> PartialSums:
    """The integers of these events for each group that occurs in them."""
    groups, rows = np.unique(events.groups, return_inverse=True)
    transform = protocol.transform
    column_items: dict[str, Any] = {}
    if transform.input_dim is None:
        coded = events.items.dictionary_encode()
        columns, width = coded.indices.to_numpy(), len(coded.dictionary)
        column_items["items"] = coded.dictionary.to_pylist()
    else:
        columns, width = events.items.to_numpy(), transform.input_dim
    counts = sparse.coo_array((events.amounts, (rows, columns)), shape=(len(groups), width)).tocsr()
    if counts_only:
        values = counts.toarray()
    else:
        sparse_rows = SparseRows(counts.indptr, counts.indices, counts.data, width)
        values = transform.apply(sparse_rows, **column_items, threads=threads)
    totals = np.zeros(len(groups), dtype=np.int64)
    np.add.at(totals, rows, events.amounts)
    return PartialSums(groups.astype(np.int64), values, totals)


@dataclass(frozen=True)
class SumShape:
    """What is added up for each group: its sketch, or its counts, which are projected at the end."""

    counts_only: bool
    width: int

    @classmethod
    def of(cls, protocol: Protocol, count: int) -> "SumShape":
        """The shape for so many groups; a transform that is slow for each event projects at the end, if counts fit memory."""
        transform = protocol.transform
        width = transform.input_dim
        if not transform.cheap_per_event and width is not None and count * width <= _MOST_COUNTS:
            return cls(True, width)
        return cls(False, transform.sketch_dim)


def parts_of(
    protocol: Protocol, events: BoundedEvents, shape: SumShape, threads: int | None = None
) -> Iterator[PartialSums]:
    """The integers of these events, some groups at a time, so that each part stays small."""
    at_once = max(1, _MOST_ADDED // shape.width)
    present = np.unique(events.groups)
    if len(present) <= at_once:
        yield _partial_sums(protocol, events, counts_only=shape.counts_only, threads=threads)
        return
    order = np.argsort(events.groups, kind="stable")
    starts = np.searchsorted(events.groups[order], present[::at_once])
    for rows in np.split(order, starts[1:]):
        some = BoundedEvents(events.groups[rows], events.items.take(pa.array(rows)), events.amounts[rows])
        yield _partial_sums(protocol, some, counts_only=shape.counts_only, threads=threads)


class GroupSums:
    """The sum of partial sums, one row for each public group; a group without events keeps its zeros."""

    def __init__(self, protocol: Protocol, count: int, threads: int | None = None) -> None:
        self._protocol = protocol
        self._threads = threads
        self._shape = SumShape.of(protocol, count)
        self._values = np.zeros((count, self._shape.width), dtype=np.int64)
        self._totals = np.zeros(count, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds events."""
        for part in parts_of(self._protocol, events, self._shape, self._threads):
            self._values[part.groups] += part.values
            self._totals[part.groups] += part.totals

    def add_cells(self, groups: slice, columns: slice, cells: NDArray[np.int64]) -> None:
        """Adds a rectangle of sums; the column after the last value is that of the totals."""
        values = self._values[groups, columns]
        cells = cells.reshape(len(values), -1)
        values += cells[:, : values.shape[1]]
        if values.shape[1] < cells.shape[1]:
            self._totals[groups] += cells[:, -1]

    def sums(self) -> Sums:
        """All sums, ready for their noise."""
        values = self._values
        if self._shape.counts_only:
            values = self._protocol.transform.apply(values, threads=self._threads)
        return Sums(values, self._totals if self._protocol.total_share else None, "events")
