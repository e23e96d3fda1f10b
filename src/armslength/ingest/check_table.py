"""What a release would count of an event table, and what in it looks like a mistake: **private**, for the data holder alone."""

import math
import secrets
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength._numba import Int64s, Words, kernel
from armslength.ingest.contributions import KEY_BYTES, BoundedEvents, slot_of
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_table import TableJob
from armslength.ingest.partitions import memory_bytes
from armslength.ingest.spellings import TEXT_BYTES, SpellingCheck, Spellings
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol
from armslength.protocol.record import MISSING, OTHER, Record, prefix

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_NAMES = 10_000  # groups that are not listed and are remembered: a wrong column may have millions
_MOST_COMPARED = 1000
_ID_MEMORY, _ITEM_MEMORY = 4, 16  # of the memory, one over the share for their spellings
_ITEM_BUCKETS = 1 << 20
_MOST_DEGREE = 1 << 16
_FEWEST = 100  # people, and items: with fewer, swapped columns do not show
_UNEVEN, _MORE_UNEVEN = 1.5, 4.0  # see `_Evenness`


class ColumnCheck(NamedTuple):
    """What became of a column of a record, in rows that have a person and a listed group."""

    rows: int
    missing: int
    other: int  # not among the categories listed

    @property
    def needs_a_look(self) -> bool:
        """Whether nearly nothing in it is read as the protocol says: 90 percent are missing or other."""
        return self.rows > 0 and 10 * (self.missing + self.other) >= 9 * self.rows


class Typical(NamedTuple):
    """How many of something people have."""

    median: int
    most: int  # that nine people of ten have at most

    @classmethod
    def of(cls, counts: Int64s) -> Self:
        """Of how many people have each number."""
        ends = np.cumsum(counts)
        median, most = (int(np.searchsorted(ends, share * ends[-1])) for share in (0.5, 0.9))
        return cls(median, most)


@dataclass(frozen=True)
class VoteCheck:
    """How people vote."""

    several_groups: int  # people who have events in more than one public group, and vote in one of these
    per_person: Typical  # different items, in the group where the person votes
    without: int  # people with too many items, who have no vote


@dataclass(frozen=True)
class MarginCheck:
    """What margins count of a table."""

    in_none: float  # the share of the votes that are in no listed item group
    empty: list[str]  # listed item groups that nobody has an item in; of a record, none is said to be
    per_person: Typical  # item groups
    people_over: int  # who have more item groups than the margin contribution
    missing: float  # how much of a person is missing for that reason, in the average of all people
    most_missing: float  # above it, no difference is named
    spelled_otherwise: (
        float  # the share of what is in no listed item group, but would be with other capitals or punctuation
    )

    @property
    def needs_a_look(self) -> bool:
        """Whether the list may not fit the table: an item group with nobody, 90 percent in no listed one, items in other spellings, or more missing than lets differences be named."""
        return (
            bool(self.empty)
            or self.in_none >= 0.9
            or self.spelled_otherwise > 0
            or self.missing > self.most_missing
        )


@dataclass(frozen=True)
class TableCheck:
    """What a release would count of a table; nothing was spent. **Private**: show it to nobody but the data holder."""

    left_out: LeftOut
    groups: dict[str, int]  # rows with a person in each public group
    unlisted: dict[str, int]  # rows of each group that is not listed, most rows first; at most 10,000 groups
    without_group: int  # rows with a person and without any group
    likely: dict[str, str]  # for public groups without rows, the group that was likely meant
    people: int  # who have at least one event that counts
    votes: VoteCheck | None  # where people vote, and somebody does
    people_over: int  # who have more than the contribution, where amounts are added up
    share: float | None  # of these amounts: what the contribution keeps
    ids: SpellingCheck  # people who may have several ids
    items: SpellingCheck  # items of text that may have several spellings; of a record, none is said to have
    is_swapped: bool  # whether the columns of people and items look swapped
    people_of_groups: dict[str, int]  # who vote, or have an event that counts, in each public group
    least_people: int  # a group with fewer cannot be told from any other
    columns: dict[str, ColumnCheck]  # of a record
    margins: MarginCheck | None  # where the protocol has margins, and somebody counts

    @property
    def empty_groups(self) -> list[str]:
        """The public groups without any row that has a person."""
        return [label for label, rows in self.groups.items() if not rows]

    @property
    def small_groups(self) -> dict[str, int]:
        """The people of each public group that has rows, and too few people for any answer."""
        least, people = self.least_people, self.people_of_groups
        return {label: people[label] for label, rows in self.groups.items() if rows and people[label] < least}

    @property
    def needs_a_look(self) -> bool:
        """Whether something may be a mistake: an empty, unlisted or small group, rows left out, an id or item written in several ways, swapped columns, a column that is nearly all missing or other, item groups that do not fit."""
        return bool(
            self.empty_groups
            or self.small_groups
            or self.ids.several
            or self.items.several
            or self.is_swapped
            or self.left_out.counting < self.left_out.rows
            or not self.people
            or (self.votes is not None and self.votes.without)
            or any(column.needs_a_look for column in self.columns.values())
            or (self.margins is not None and self.margins.needs_a_look)
        )


def check_table(
    job: TableJob, least_people: int = 0, most_missing: float = 1, *, show_progress: bool = False
) -> TableCheck:
    """Reads all events as a release would, and spends nothing. The result is **private**.

    Args:
        job: What is read.
        least_people: How many people a group needs for any answer; 0 if that is not known.
        most_missing: How much of a person margins may lack, in the average of all people, before no difference is named.
        show_progress: Whether to show a bar.
    """
    key = secrets.token_bytes(KEY_BYTES)  # a release draws another, so a person may count in another group
    words = np.frombuffer(key, dtype=np.uint64, count=2).copy()
    most = memory_bytes(job.memory) // TEXT_BYTES
    ids = Spellings(words, most // _ID_MEMORY, are_ids=True)
    items = Spellings(words, most // _ITEM_MEMORY, are_ids=False)
    labels, record = job.groups.labels, job.protocol.record
    left_out, rows, cells = (
        LeftOut(),
        _RowCounts(len(labels), record, items),
        _MarginCounts(job.protocol, most_missing),
    )
    groups, evenness = _GroupCounts(len(labels)), _Evenness(words)
    people, votes, amounts = 0, _VoteCounts(), _AmountCounts(job.protocol)
    for part in job.person_totals(key, left_out, rows, show_progress=show_progress):
        people += len(part.totals)
        (votes if job.protocol.votes else amounts).add(part)
        if part.ids is not None:
            ids.add(part.ids)
        cells.add(part)
        groups.add(part)
        evenness.add(part)
    if job.groups.column is None:
        rows.listed[:] = left_out.rows - left_out.person
    listed = dict(zip(labels, rows.listed.tolist(), strict=True))
    unlisted = dict(rows.unlisted.most_common())
    return TableCheck(
        left_out,
        listed,
        unlisted,
        left_out.group - rows.unlisted_rows,
        _likely([label for label, count in listed.items() if not count], list(unlisted)),
        people,
        votes.check() if job.protocol.votes and people else None,
        amounts.people_over,
        amounts.share,
        ids.check(),
        items.check(),
        record is None and evenness.is_swapped,
        dict(zip(labels, groups.people.tolist(), strict=True)),
        least_people,
        rows.columns(),
        cells.check() if people else None,
    )


class _RowCounts:
    """How many rows with a person each group has, the spellings of their items, and how many are missing or other in each column of a record."""

    def __init__(self, count: int, record: Record | None, spellings: Spellings) -> None:
        self._record, self._items, self._spellings = record, 0, spellings
        self._marks: Counter[str] = Counter()  # items such as sex=(other)
        self.listed: NDArray[np.int64] = np.zeros(count, dtype=np.int64)  # of public groups, by number
        self.unlisted: Counter[str] = Counter()
        self.unlisted_rows = 0

    def groups(self, names: list[str], numbers: "NDArray[np.int32]", counts: "NDArray[np.int64]") -> None:
        """Adds rows by the name and the number of their group; those without a group have an empty name."""
        np.add.at(self.listed, numbers[numbers >= 0], counts[numbers >= 0])
        for place in np.flatnonzero((numbers < 0) & (counts > 0)).tolist():
            if names[place]:
                self.unlisted[names[place]] += int(counts[place])
                self.unlisted_rows += int(counts[place])
        if len(self.unlisted) > _MOST_NAMES:
            self.unlisted = Counter(dict(self.unlisted.most_common(_MOST_NAMES)))

    def items(self, items: pa.Array, counts: pa.Array) -> None:
        """Adds the different items of rows with a person and a listed group, and how often each occurs."""
        if self._record is None:
            self._spellings.add(items)
            return
        self._items += pc.sum(counts).as_py() or 0
        marks = [prefix(name) + mark for name, _ in self._record.columns for mark in (MISSING, OTHER)]
        chosen = pc.is_in(items, pa.array(marks, items.type))
        names, numbers = items.filter(chosen).to_pylist(), counts.filter(chosen).to_pylist()
        self._marks.update(dict(zip(names, numbers, strict=True)))

    def columns(self) -> dict[str, ColumnCheck]:
        """What became of each column of the record, if there is one."""
        if self._record is None:
            return {}
        rows, marks = self._items // self._record.items_per_row, self._marks
        names = {name: prefix(name) for name, _ in self._record.columns}
        return {
            name: ColumnCheck(rows, marks[item + MISSING], marks[item + OTHER])
            for name, item in names.items()
        }


class _VoteCounts:
    """How many people have each number of different items, and events in several groups."""

    def __init__(self) -> None:
        self._sizes: Int64s = np.zeros(VOTE + 2, dtype=np.int64)
        self._several = 0

    def add(self, events: BoundedEvents) -> None:
        """Adds the votes of some persons."""
        sizes = np.bincount(events.totals.astype(np.int64))
        self._sizes[: len(sizes)] += sizes
        if events.in_groups is not None:
            self._several += int((events.in_groups > 1).sum())

    def check(self) -> VoteCheck:
        """How they vote."""
        return VoteCheck(self._several, Typical.of(self._sizes), int(self._sizes[VOTE + 1 :].sum()))


class _AmountCounts:
    """How much people have, and how much of it the contribution keeps."""

    def __init__(self, protocol: Protocol) -> None:
        contribution = protocol.contribution if isinstance(protocol.contribution, int) else 0
        self._bound = float(contribution / protocol.resolution)
        self._total = self._kept = 0.0
        self.people_over = 0

    def add(self, events: BoundedEvents) -> None:
        """Adds the amounts of some persons."""
        self.people_over += int((events.totals > self._bound).sum())
        self._total += float(events.totals.sum())
        self._kept += float(np.minimum(events.totals, self._bound).sum())

    @property
    def share(self) -> float | None:
        """What is kept."""
        return self._kept / self._total if self._total else None


class _MarginCounts:
    """How many votes are in each item group, and how many item groups people have."""

    def __init__(self, protocol: Protocol, most_missing: float) -> None:
        self._margins, self._bound, self._most_missing = (
            protocol.margins,
            protocol.margin_contribution or 0,
            most_missing,
        )
        self._names = 0 if self._margins is None else len(self._margins.names)
        self._amounts: NDArray[np.float64] = np.zeros(
            self._names + 2
        )  # the last: of none, and of other spellings
        self._sizes: Int64s = np.zeros(self._names + 1, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds the votes of some persons."""
        if self._margins is None:
            return
        size = len(self._amounts)
        self._amounts += np.bincount(events.margins, events.amounts, size)
        margins = np.where(events.margins > self._names, self._names - 1, events.margins)
        persons = np.repeat(np.arange(len(events.starts) - 1), np.diff(events.starts))
        cells = np.unique((persons * np.int64(size) + margins)[margins < self._names])
        self._sizes += np.bincount(
            np.bincount(cells // size, minlength=len(events.totals)), minlength=self._names + 1
        )

    def check(self) -> MarginCheck | None:
        """What became of the items."""
        if self._margins is None:
            return None
        numbers, people = np.arange(len(self._sizes)), self._sizes
        missing = np.maximum(0.0, 1 - self._bound / np.maximum(numbers, 1)) @ people / people.sum()
        known = Typical.of(people), int(people[self._bound + 1 :].sum()), float(missing), self._most_missing
        total = self._amounts.sum()
        if self._margins.rule == "record" or not total:  # its other columns belong to none
            return MarginCheck(0.0, [], *known, 0.0)
        listed = self._amounts[: self._names - 1]
        empty = [name for name, amount in zip(self._margins.names, listed, strict=False) if not amount]
        return MarginCheck(1 - float(listed.sum() / total), empty, *known, float(self._amounts[-1] / total))


class _GroupCounts:
    """How many people have an event that counts in each group."""

    def __init__(self, count: int) -> None:
        self.people: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        self._last: NDArray[np.int64] = np.full(count, -1, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds all events of some persons."""
        self._last[events.groups] = -1
        count_people(events.starts, events.groups, self._last, self.people)


class _Evenness:
    """Whether people look like items, and items like people.

    A few items have most of the events, and people have about as many each. The measure is the squared coefficient of variation of the
    number of different events: of people, without the 1 percent who have most, and of items. The columns look swapped where it is at
    least 1.5 for people, and four times as large as for items. Of items it is estimated from their counts in 2^20 buckets.
    """

    def __init__(self, key: Words) -> None:
        self._key = key
        self._buckets: NDArray[np.int64] = np.zeros(_ITEM_BUCKETS, dtype=np.int64)
        self._degrees: NDArray[np.int64] = np.zeros(_MOST_DEGREE, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds all events of some persons."""
        count_items(events.items, self._key, self._buckets)
        degrees = np.minimum(np.diff(events.starts), _MOST_DEGREE - 1)
        found = np.bincount(degrees)
        self._degrees[: len(found)] += found

    @property
    def is_swapped(self) -> bool:
        """Whether the columns look swapped."""
        people, count = int(self._degrees.sum()), len(self._buckets)
        total, occupied = float(self._buckets.sum()), int(np.count_nonzero(self._buckets))
        items = -count * math.log(max(1 - occupied / count, 0.5 / count))
        if min(people, items) < _FEWEST:
            return False
        squares = float((self._buckets.astype(np.float64) ** 2).sum())
        squares = (squares - total**2 / count) / (
            1 - 1 / count
        )  # without those of items that meet in a bucket
        of_items = items * squares / total**2 - 1
        left = np.minimum(np.cumsum(self._degrees), people - people // 100)
        numbers = np.diff(left, prepend=0)
        degrees = np.arange(len(numbers), dtype=np.float64)
        of_people = float(numbers.sum() * (numbers @ degrees**2) / (numbers @ degrees) ** 2 - 1)
        return of_people >= max(_UNEVEN, _MORE_UNEVEN * of_items)


@kernel
def count_people(starts: Int64s, groups: "NDArray[np.int32]", last: Int64s, people: Int64s) -> None:
    """Adds 1 to the people of each group for each person with an event in it; `last` is −1 in these groups."""
    for person in range(len(starts) - 1):
        for event in range(starts[person], starts[person + 1]):
            if last[groups[event]] != person:
                last[groups[event]] = person
                people[groups[event]] += 1


@kernel
def count_items(items: Words, key: Words, buckets: Int64s) -> None:
    """Adds 1 to the bucket of the item of each event."""
    for event in range(len(items)):
        buckets[slot_of(items[event, 0], items[event, 1], key, len(buckets))] += 1


def _likely(empty: list[str], unlisted: list[str]) -> dict[str, str]:
    """For each empty group, the name that was likely meant."""
    folded = {name.strip().casefold(): name for name in reversed(unlisted[:_MOST_COMPARED])}
    likely = {}
    for label in empty[:_MOST_COMPARED]:
        near = get_close_matches(label.strip().casefold(), folded, n=1)
        if near:
            likely[label] = folded[near[0]]
    return likely
