"""The exact integers of a release before noise, **not private**: what arrays, event tables and Spark tasks all end in.

Sketches are linear, so partial sums from anywhere add up; noise is drawn once, at the end, in one place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Int64s, Words, kernel
from armslength.ingest.contributions import BoundedEvents, slot_of
from armslength.protocol.protocol import Protocol
from armslength.transforms.integer_rows import Rows, SparseRows
from armslength.transforms.transform import Transform

_MOST_COUNTS = 1 << 24  # 128 MB
_MOST_ADDED = 1 << 22  # 32 MB
_REMEMBERED, _SLOT_SHIFT = 1 << 17, np.uint64(64 - 17)  # columns of items
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Sums:
    """Input that was read to its end and checked: nothing after this can fail because of it."""

    values: NDArray[np.int64]  # A·x of each row modulo 2^64, n x k, contiguous
    totals: NDArray[np.int64] | None  # Σⱼ xⱼ of each row in grid units, where the protocol releases totals
    source: str  # "events" if the software bounded what each person adds; "rows" and "stream" if the data holder promises it
    # n x (M + 1): people with an item in each item group, and all people
    margins: NDArray[np.int64] | None = field(default=None, kw_only=True)

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
    margins: NDArray[np.int64]  # as in `Sums`; without columns where there are none
    totals: NDArray[np.int64]  # Σ amount of each, modulo 2^64


@dataclass(frozen=True)
class SumShape:
    """What is added up for each group: its sketch, or its counts, which are projected at the end."""

    groups: int
    counts_only: bool
    width: int
    margins: int  # columns

    @classmethod
    def of(cls, protocol: Protocol, groups: int) -> "SumShape":
        """The shape for so many groups; a transform with full columns projects at the end, if counts fit memory."""
        transform = protocol.transform
        width = transform.input_dim
        margins = 0 if protocol.margins is None else len(protocol.margins.names) + 1
        if transform.column_entries is None and width is not None and groups * width <= _MOST_COUNTS:
            return cls(groups, True, width, margins)
        return cls(groups, False, transform.sketch_dim, margins)


class ItemColumns:
    """Where in a group's sums each item is added, for the items of events; those met lately are remembered."""

    def __init__(self, protocol: Protocol, shape: SumShape) -> None:
        self._transform = protocol.transform
        self._counts_only = shape.counts_only
        entries = self._transform.column_entries or 1
        self._words: Words = np.full((_REMEMBERED, 2), 2**64 - 1, dtype=np.uint64)  # of no item
        self._columns: NDArray[np.int32] = np.zeros((_REMEMBERED, entries), dtype=np.int32)

    def __call__(self, items: Words) -> NDArray[np.int32] | None:
        """s numbers for each item: a column, or −1−column where the entry is −1; None for a transform with full columns."""
        if (
            self._transform.input_dim is not None
            and len(items)
            and items[:, -1].max() >= self._transform.input_dim
        ):
            raise TypeError("items must be columns of the transform: others would be added to other memory")
        if self._counts_only:
            return items[:, -1:].astype(np.int32)
        if self._transform.column_entries is None:
            return None
        columns = np.empty((len(items), self._columns.shape[1]), dtype=np.int32)
        missing = known_columns(items, self._words, self._columns, columns)
        if len(missing):
            words = items[missing]
            columns[missing] = self._transform.event_columns(words, threads=1)  # type: ignore[attr-defined]  # of every transform with few entries
            remember_columns(words, columns, missing, self._words, self._columns)
        return columns


@kernel
def known_columns(
    items: Words, known: Words, known_columns: NDArray[np.int32], columns: NDArray[np.int32]
) -> Int64s:
    """Fills in the columns of the items that are remembered; the rows of the others."""
    missing, count = np.empty(len(items), dtype=np.int64), 0
    for row in range(len(items)):
        high, low = items[row, 0], items[row, 1]
        slot = (low * _GOLDEN) >> _SLOT_SHIFT
        if known[slot, 0] == high and known[slot, 1] == low:
            for entry in range(columns.shape[1]):
                columns[row, entry] = known_columns[slot, entry]
        else:
            missing[count] = row
            count += 1
    return missing[:count].copy()


@kernel
def remember_columns(
    words: Words, columns: NDArray[np.int32], rows: Int64s, known: Words, known_columns: NDArray[np.int32]
) -> None:
    """Remembers the columns of these rows, each in the one slot of its item."""
    for number in range(len(rows)):
        slot = (words[number, 1] * _GOLDEN) >> _SLOT_SHIFT
        known[slot, 0], known[slot, 1] = words[number, 0], words[number, 1]
        for entry in range(columns.shape[1]):
            known_columns[slot, entry] = columns[rows[number], entry]


@kernel
def add_events(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    amounts: Int64s,
    values: Int64s,
    totals: Int64s,
) -> None:
    """Adds ±amount where columns say, modulo 2^64, to these rows of the values; and to the totals."""
    for event in range(len(rows)):
        row, amount = rows[event], amounts[event]
        totals[row] += amount
        for entry in range(columns.shape[1]):
            target = columns[event, entry]
            if target >= 0:
                values[row, target] += amount
            else:
                values[row, -1 - target] -= amount


@kernel
def _is_new(table: Int64s, key: Words, person: int, row: int, column: int) -> bool:
    """Whether the table, whose size is a power of two, does not have this cell of a person yet; it has it from now on."""
    cell, last = (np.int64(row) << 32) | column, len(table) - 1
    # by a secret key: nobody can choose events whose cells all begin at one slot
    slot = slot_of(np.uint64(cell), np.uint64(person), key, len(table))
    while table[slot, 0] >= 0:
        if table[slot, 0] == person and table[slot, 1] == cell:
            return False
        slot = (slot + 1) & last
    table[slot, 0], table[slot, 1] = person, cell
    return True


@kernel
def margin_cells(
    starts: Int64s,
    groups: NDArray[np.int32],
    margins: NDArray[np.int32],
    names: int,
    bound: int,
    key: Words,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(rows, columns) of the margins that some persons add 1 to: the item groups of their events, and in the last column the person.

    Guarantee: of each person, who has the events starts[i] … starts[i+1]−1 in the order in which they are kept, at most `bound` pairs of
    row and item group, each once, and each row with an event once. That is a function of this person's events alone; the key only says where
    to look.
    Reference: docs/privacy.md, margins.
    """
    rows, columns = np.empty(2 * len(groups), np.int32), np.empty(2 * len(groups), np.int32)
    used, size = 0, 4
    while size < 4 * len(groups):
        size *= 2
    table = np.full((size, 2), -1, np.int64)
    for person in range(len(starts) - 1):
        pairs = 0
        for event in range(starts[person], starts[person + 1]):
            row, margin = groups[event], margins[event]
            if margin < names and pairs < bound and _is_new(table, key, person, row, margin):
                rows[used], columns[used] = row, margin
                used, pairs = used + 1, pairs + 1
            if _is_new(table, key, person, row, names):
                rows[used], columns[used] = row, names
                used += 1
    return rows[:used].copy(), columns[:used].copy()


def partial_sums_of(
    protocol: Protocol, events: BoundedEvents, shape: SumShape, threads: int | None = None
) -> Iterator[PartialSums]:
    """The integers of these events, some groups at a time, so that each part stays small."""
    groups, rows = np.unique(events.groups, return_inverse=True)
    at_once = max(1, _MOST_ADDED // shape.width)
    for first in range(0, len(groups), at_once):
        part = groups[first : first + at_once].astype(np.int64)
        chosen = (rows >= first) & (rows < first + len(part)) if len(part) < len(groups) else slice(None)
        part_rows, amounts = (rows[chosen] - first).astype(np.int32), events.amounts[chosen]
        values = np.zeros((len(part), shape.width), dtype=np.int64)
        totals = np.zeros(len(part), dtype=np.int64)
        if events.columns is not None:
            add_events(part_rows, events.columns[chosen], amounts, values, totals)
        else:
            numbers = events.items[chosen, -1].astype(np.int64)
            counts = sparse.coo_array(
                (amounts, (part_rows, numbers)), shape=(len(part), protocol.transform.input_dim)
            ).tocsr()
            whole = SparseRows(counts.indptr, counts.indices, counts.data, counts.shape[1])
            values[:] = protocol.transform.apply(whole, threads=threads)
            np.add.at(totals, part_rows, amounts)
        margins = np.zeros((len(part), shape.margins), dtype=np.int64)
        if events.margin_cells is not None:
            margin_rows, margin_columns = events.margin_cells
            positions = np.searchsorted(groups, margin_rows) - first
            inside = (positions >= 0) & (positions < len(part))
            np.add.at(margins, (positions[inside], margin_columns[inside]), 1)
        yield PartialSums(part, values, margins, totals)


class GroupSums:
    """The sum of partial sums, one row for each public group; a group without events keeps its zeros."""

    def __init__(self, protocol: Protocol, shape: SumShape, threads: int | None = None) -> None:
        self._protocol = protocol
        self._threads = threads
        self._shape = shape
        self._values = np.zeros((shape.groups, shape.width), dtype=np.int64)
        self._margins = np.zeros((shape.groups, shape.margins), dtype=np.int64)
        self._totals = np.zeros(shape.groups, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds events."""
        if events.columns is not None:
            add_events(events.groups, events.columns, events.amounts, self._values, self._totals)
            if events.margin_cells is not None:
                np.add.at(self._margins, events.margin_cells, 1)
            return
        for part in partial_sums_of(self._protocol, events, self._shape, self._threads):
            self._values[part.groups] += part.values
            self._margins[part.groups] += part.margins
            self._totals[part.groups] += part.totals

    def add_cells(self, groups: slice, columns: slice, cells: NDArray[np.int64]) -> None:
        """Adds a rectangle of sums; after the columns of the values come those of the margins, and that of the totals."""
        cells, start = cells.reshape(groups.stop - groups.start, -1), 0
        for array in (self._values, self._margins, self._totals[:, None]):
            first, last = max(columns.start, start), min(columns.stop, start + array.shape[1])
            if first < last:
                array[groups, first - start : last - start] += cells[
                    :, first - columns.start : last - columns.start
                ]
            start += array.shape[1]

    def sums(self) -> Sums:
        """All sums, ready for their noise."""
        values = self._values
        if self._shape.counts_only:
            values = self._protocol.transform.apply(values, threads=self._threads)
        totals = self._totals if self._protocol.total_share else None
        margins = self._margins if self._protocol.margins is not None else None
        return Sums(values, totals, "events", margins=margins)
