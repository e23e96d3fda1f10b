"""The exact integers of a release before noise, **not private**: what arrays, event tables and Spark tasks all end in.

Sketches are linear, so partial sums from anywhere add up; noise is drawn once, at the end, in one place.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Int64s, Words, kernel
from armslength.errors import InputError
from armslength.ingest.contributions import BoundedEvents
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol
from armslength.transforms.integer_rows import Rows, SparseRows
from armslength.transforms.transform import Transform

_MOST_COUNTS = 1 << 24  # 128 MB
_MOST_ADDED = 1 << 22  # 32 MB
_REMEMBERED, _SLOT_SHIFT = 1 << 18, np.uint64(64 - 18)  # columns of items
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_COARSE = 2**16  # units of a vote in the weights of F, whose products must fit 64 bits
_MOST_BINS = 1 << 23  # 64 MB
_MOST_PEOPLE = 2**31
_NONE: NDArray[np.int32] = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Sums:
    """Input that was read to its end and checked: nothing after this can fail because of it."""

    values: NDArray[np.int64]  # A·x of each row modulo 2^64, n x k, contiguous
    totals: NDArray[np.int64] | None  # Σⱼ xⱼ of each row in grid units, where the protocol releases totals
    source: str  # "events" if the software bounded what each person adds; "rows" and "stream" if the data holder promises it
    # of votes, in grid units, n x (M + 1): people with an item in each item group, and four times what is left out of these
    margins: NDArray[np.int64] | None = field(default=None, kw_only=True)
    # of votes, in grid units, n x 2: Q, the people's squared lengths, and F, the norm of their squares; or n x 1 without F
    spread: NDArray[np.int64] | None = field(default=None, kw_only=True)

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
    scalars: NDArray[np.int64]  # Σ amount of each, modulo 2^64; and Q of votes


@dataclass(frozen=True)
class SumShape:
    """What is added up for each group: its sketch, or its counts, which are projected at the end."""

    groups: int
    counts_only: bool
    width: int
    margins: int  # columns
    scalars: int  # the total; and Q of votes

    @property
    def columns(self) -> int:
        """How many integers of each group are added up: its values, margins and scalars."""
        return self.width + self.margins + self.scalars

    @classmethod
    def of(cls, protocol: Protocol, groups: int) -> "SumShape":
        """The shape for so many groups; a transform with full columns projects at the end, if counts fit memory."""
        transform = protocol.transform
        width = transform.input_dim
        margins = 0 if protocol.margins is None else len(protocol.margins.names) + 1
        scalars = 2 if protocol.votes else 1
        if transform.column_entries is None and width is not None and groups * width <= _MOST_COUNTS:
            return cls(groups, True, width, margins, scalars)
        return cls(groups, False, transform.sketch_dim, margins, scalars)


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
def margin_cells(
    starts: Int64s, groups: NDArray[np.int32], margins: NDArray[np.int32], names: int, bound: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Int64s]:
    """(rows, columns, grid units) that some persons add to the margins: to each of their item groups, and to what is left out.

    Guarantee: a person with g different item groups among the events starts[i] … starts[i+1]−1, all in one row, adds R units to each if g ≤ G,
    else W = ⌊G·R/g⌋, and then 4(R − W) to the last column. That is a function of this person's events alone.
    Reference: docs/privacy.md, margins.
    """
    size = len(groups) + len(starts)
    rows, columns, amounts = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)
    last, used = np.full(names, -1, np.int64), 0
    for person in range(len(starts) - 1):
        first = used
        for event in range(starts[person], starts[person + 1]):
            margin = margins[event]
            if margin < names and last[margin] != person:
                last[margin] = person
                rows[used], columns[used] = groups[event], margin
                used += 1
        count = used - first
        weight = VOTE if count <= bound else bound * VOTE // count
        amounts[first:used] = weight
        if weight < VOTE:
            rows[used], columns[used], amounts[used] = rows[first], names, 4 * (VOTE - weight)
            used += 1
    return rows[:used].copy(), columns[:used].copy(), amounts[:used].copy()


@dataclass(frozen=True)
class Bins:
    """For F: in which bins of the sketch some people's votes fall, with the integers of weight ⌊2^16/t⌋ there; **not private**."""

    groups: NDArray[np.int32]  # of each person
    starts: Int64s  # each person's first bin, and the number of all
    bins: NDArray[np.int32]
    values: NDArray[np.int32]


@dataclass(frozen=True)
class VoteSums:
    """What some people's votes add to Q and F; **not private**."""

    groups: NDArray[np.int32]  # of each person who votes
    squares: Int64s  # q of each, in grid units
    bins: Bins  # of those of whom F is counted

    @classmethod
    def of(
        cls, events: BoundedEvents, columns: NDArray[np.int32], width: int, *, has_norm: bool
    ) -> "VoteSums":
        """Those of these votes, whose items are added to these columns of a sketch of so many numbers."""
        is_sampled = events.is_sampled if has_norm else np.zeros(len(events.is_sampled), dtype=np.bool_)
        people, squares, groups, starts, bins, values = vote_sums(
            events.starts, events.groups, columns, is_sampled, width
        )
        return cls(people, squares, Bins(groups, starts, bins, values))


@kernel
def vote_sums(  # noqa: C901  # one loop over persons
    starts: Int64s,
    groups: NDArray[np.int32],
    columns: NDArray[np.int32],
    is_sampled: NDArray[np.bool_],
    width: int,
) -> tuple[NDArray[np.int32], Int64s, NDArray[np.int32], Int64s, NDArray[np.int32], NDArray[np.int32]]:
    """(groups, q) of each person with votes, and the arrays of `Bins`.

    Guarantee: with t items of weight f = ⌊R/t⌋ and N = ‖A·x‖² in integers, collisions included, q = ⌊f²N/(s·R)⌋ is at most t·f ≤ R. What the
    person adds to the matrix of F has the norm w²N with w = ⌊2^16/t⌋ ≤ f/16: in grid units at most f²N/(s·R) < q + 1.
    Reference: docs/privacy.md, votes.
    """
    people, entries, sparsity = len(starts) - 1, 0, columns.shape[1]
    for person in range(people):
        if is_sampled[person]:
            entries += min((starts[person + 1] - starts[person]) * sparsity, width)
    person_groups, squares = np.empty(people, np.int32), np.empty(people, np.int64)
    bin_groups, bin_starts = np.empty(people, np.int32), np.zeros(people + 1, np.int64)
    bins, values = np.empty(entries, np.int32), np.empty(entries, np.int32)
    sums, last, touched = np.zeros(width, np.int64), np.full(width, -1, np.int64), np.empty(width, np.int32)
    voters, sampled, used = 0, 0, 0
    for person in range(people):
        items = starts[person + 1] - starts[person]
        if items == 0:
            continue
        count = 0
        for event in range(starts[person], starts[person + 1]):
            for entry in range(sparsity):
                target = columns[event, entry]
                sign = 1 if target >= 0 else -1
                place = target if target >= 0 else -1 - target
                if last[place] != person:
                    last[place], sums[place], touched[count] = person, 0, place
                    count += 1
                sums[place] += sign
        weight, norm = VOTE // items, np.int64(0)
        for place in touched[:count]:
            norm += sums[place] * sums[place]
        person_groups[voters] = groups[starts[person]]
        squares[voters] = weight * weight * norm // (sparsity * VOTE)
        voters += 1
        coarse = _COARSE // items
        if not is_sampled[person] or coarse == 0:
            continue
        for place in touched[:count]:
            if sums[place] != 0:
                bins[used], values[used] = place, coarse * sums[place]
                used += 1
        bin_groups[sampled] = groups[starts[person]]
        sampled += 1
        bin_starts[sampled] = used
    return (
        person_groups[:voters].copy(),
        squares[:voters].copy(),
        bin_groups[:sampled].copy(),
        bin_starts[: sampled + 1].copy(),
        bins[:used].copy(),
        values[:used].copy(),
    )


@kernel
def add_squares(
    people: Int64s, starts: Int64s, bins: NDArray[np.int32], values: NDArray[np.int32], matrix: Int64s
) -> None:
    """Adds v·vᵀ of each of these people, v being their values, to the upper triangle of a matrix."""
    for number in range(len(people)):
        first, last = starts[people[number]], starts[people[number] + 1]
        for left in range(first, last):
            a, value = bins[left], np.int64(values[left])
            for right in range(left, last):
                b = bins[right]
                if a < b:
                    matrix[a, b] += value * values[right]
                else:
                    matrix[b, a] += value * values[right]


@kernel
def squared_norm_parts(matrix: Int64s) -> Words:
    """Σ M², of a symmetric matrix by its upper triangle, as sums of products of halves of 32 bits, each in two words.

    Guarantee: no sum wraps. For |M| < 2^63 each product is below 2^64, so each of its halves is below 2^32; at most k² ≤ 2^24 of them are
    added, those above the diagonal twice, which stays below 2^56.
    """
    parts, low = np.zeros(6, dtype=np.uint64), np.uint64(2**32 - 1)
    for row in range(len(matrix)):
        for column in range(row, len(matrix)):
            number = matrix[row, column]
            if number == 0:
                continue
            size = np.uint64(abs(number))
            times = np.uint64(1) if row == column else np.uint64(2)
            top, bottom = size >> np.uint64(32), size & low
            for place, product in enumerate((top * top, top * bottom, bottom * bottom)):
                parts[2 * place] += times * (product >> np.uint64(32))
                parts[2 * place + 1] += times * (product & low)
    return parts


def norm_of(matrix: NDArray[np.int64], sparsity: int) -> int:
    """F in grid units, rounded down once: ‖M‖ of a symmetric matrix by its upper triangle, over s·2^12."""
    parts = squared_norm_parts(matrix).tolist()
    sums = [(high << 32) + low for high, low in zip(parts[::2], parts[1::2], strict=True)]
    squared = (sums[0] << 64) + (sums[1] << 33) + sums[2]
    return math.isqrt(squared) // (sparsity * (_COARSE**2 // VOTE))


class Squares:
    """M = Σ v·vᵀ over people of one group, v being a person's bins; exact, because each of its numbers is at most 2^32 for a person.

    Args:
        width: Of the sketch.
    """

    def __init__(self, width: int) -> None:
        self._matrix = np.zeros((width, width), dtype=np.int64)
        self._people = 0

    def add(self, bins: Bins, people: NDArray[np.int64]) -> None:
        """Adds some of these people."""
        self._people += len(people)
        if self._people >= _MOST_PEOPLE:  # more of them do not fit 64 bits
            raise InputError("a group has 2^31 sampled people or more; plan for more people")
        add_squares(people, bins.starts, bins.bins, bins.values, self._matrix)

    def norm(self, sparsity: int) -> int:
        """F in grid units; `sparsity` is how many entries a column of the public matrix has."""
        return norm_of(self._matrix, sparsity)


class Norms:
    """F of each group, from the bins of people: kept as they come, and as a matrix for a group where that is smaller.

    Args:
        width: Of the sketch.
        sparsity: The entries in a column of the public matrix.
    """

    def __init__(self, width: int, sparsity: int) -> None:
        self._width, self._sparsity = width, sparsity
        self._waiting: list[Bins] = []
        self._entries, self._limit = 0, _MOST_BINS
        self._squares: dict[int, Squares] = {}

    def add(self, bins: Bins) -> None:
        """Adds people."""
        self._waiting.append(bins)
        self._entries += len(bins.bins)
        if self._entries > self._limit:
            self._shrink()

    def norms(self, groups: int) -> NDArray[np.int64]:
        """F of each of so many groups, in grid units; this uses up the bins."""
        result = np.zeros(groups, dtype=np.int64)
        parts = [(bins, people_by_group(bins)) for bins in self._waiting]
        self._waiting = []
        for group in sorted(self._squares.keys() | {group for _, people_of in parts for group in people_of}):
            squares = self._squares.pop(group, None) or Squares(self._width)
            for bins, people_of in parts:
                if group in people_of:
                    squares.add(bins, people_of[group])
            result[group] = squares.norm(self._sparsity)
        return result

    def _shrink(self) -> None:
        """Turns bins into matrices, for groups whose bins take more memory."""
        parts = [(bins, people_by_group(bins)) for bins in self._waiting]
        entries = Counter[int]()
        for bins, people_of in parts:
            sizes = np.diff(bins.starts)
            entries.update({group: int(sizes[people].sum()) for group, people in people_of.items()})
        large = {group for group, count in entries.items() if count > self._width**2} | self._squares.keys()
        self._waiting = []
        self._squares |= {group: Squares(self._width) for group in large - self._squares.keys()}
        for bins, people_of in parts:  # one after the other, so that no second copy of all bins is made
            for group in large & people_of.keys():
                self._squares[group].add(bins, people_of[group])
            small = [people for group, people in people_of.items() if group not in large]
            if small:
                self._waiting.append(chosen_bins(bins, np.sort(np.concatenate(small))))
        self._entries = sum(len(bins.bins) for bins in self._waiting)
        self._limit = max(_MOST_BINS, 2 * self._entries)


def joined_bins(parts: Sequence[Bins]) -> Bins:
    """The bins of all people of all parts."""
    parts = [Bins(_NONE, np.zeros(1, dtype=np.int64), _NONE, _NONE), *parts]
    groups, bins, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("groups", "bins", "values")
    )
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    return Bins(groups, starts_of(sizes), bins, values)


def chosen_bins(bins: Bins, people: NDArray[np.int64]) -> Bins:
    """The bins of these people, in this order."""
    starts = starts_of(np.diff(bins.starts)[people])
    entries = np.repeat(bins.starts[people] - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
    return Bins(bins.groups[people], starts, bins.bins[entries], bins.values[entries])


def people_by_group(bins: Bins) -> dict[int, NDArray[np.int64]]:
    """The people of each group that has any, by the number of the group."""
    order = np.argsort(bins.groups, kind="stable")
    groups, firsts = np.unique(bins.groups[order], return_index=True)
    return dict(zip(groups.tolist(), np.split(order, firsts[1:]), strict=True)) if len(groups) else {}


def starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some parts begins, one after the other, and the sum of their sizes."""
    return np.concatenate([[0], np.cumsum(sizes)])


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
        scalars = np.zeros((len(part), shape.scalars), dtype=np.int64)
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
        scalars[:, 0] = totals
        if events.votes is not None:
            _add_chosen(scalars[:, 1], groups, first, events.votes.groups, (), events.votes.squares)
        if events.margin_cells is not None:
            margin_rows, margin_columns, units = events.margin_cells
            _add_chosen(margins, groups, first, margin_rows, (margin_columns,), units)
        yield PartialSums(part, values, margins, scalars)


def _add_chosen(
    target: NDArray[np.int64],
    groups: NDArray[np.int32],
    first: int,
    rows: NDArray[np.int32],
    columns: tuple[NDArray[np.int32], ...],
    amounts: NDArray[np.int64],
) -> None:
    """Adds amounts to rows of the target, which has the groups from `first` on; those of other groups are left out."""
    positions = np.searchsorted(groups, rows) - first
    inside = (positions >= 0) & (positions < len(target))
    index = (positions[inside], *(column[inside] for column in columns))
    np.add.at(target, index, amounts[inside])  # type: ignore[arg-type]  # an index of several axes


class GroupSums:
    """The sum of partial sums, one row for each public group; a group without events keeps its zeros."""

    def __init__(self, protocol: Protocol, shape: SumShape, threads: int | None = None) -> None:
        self._protocol = protocol
        self._threads = threads
        self._shape = shape
        self._values = np.zeros((shape.groups, shape.width), dtype=np.int64)
        self._margins = np.zeros((shape.groups, shape.margins), dtype=np.int64)
        self._scalars = np.zeros((shape.scalars, shape.groups), dtype=np.int64)
        entries = protocol.transform.column_entries or 1
        self._norms = Norms(shape.width, entries) if protocol.releases_norm else None

    def add(self, events: BoundedEvents) -> None:
        """Adds events."""
        if self._norms is not None and events.votes is not None:
            self._norms.add(events.votes.bins)
        if events.columns is not None:
            add_events(events.groups, events.columns, events.amounts, self._values, self._scalars[0])
            if events.votes is not None:
                np.add.at(self._scalars[1], events.votes.groups, events.votes.squares)
            if events.margin_cells is not None:
                rows, columns, units = events.margin_cells
                np.add.at(self._margins, (rows, columns), units)
            return
        for part in partial_sums_of(self._protocol, events, self._shape, self._threads):
            self._values[part.groups] += part.values
            self._margins[part.groups] += part.margins
            self._scalars[:, part.groups] += part.scalars.T

    def add_cells(self, groups: slice, columns: slice, cells: NDArray[np.int64]) -> None:
        """Adds a rectangle of sums; after the columns of the values come those of the margins, and the scalars."""
        cells, start = cells.reshape(groups.stop - groups.start, -1), 0
        for array in (self._values, self._margins, self._scalars.T):
            first, last = max(columns.start, start), min(columns.stop, start + array.shape[1])
            if first < last:
                array[groups, first - start : last - start] += cells[
                    :, first - columns.start : last - columns.start
                ]
            start += array.shape[1]

    def sums(self, norms: NDArray[np.int64] | None = None) -> Sums:
        """All sums, ready for their noise; with F of each group, where it was taken elsewhere."""
        values, protocol, spread = self._values, self._protocol, None
        if self._shape.counts_only:
            values = protocol.transform.apply(values, threads=self._threads)
        totals = self._scalars[0] if protocol.total_share else None
        if protocol.votes and protocol.total_share:
            columns = [self._scalars[1]]
            if self._norms is not None:
                columns.append(self._norms.norms(self._shape.groups) if norms is None else norms)
            spread = np.column_stack(columns)
        margins = self._margins if protocol.margins is not None else None
        return Sums(values, totals, "events", margins=margins, spread=spread)
