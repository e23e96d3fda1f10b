"""What a release would count of an event table, and what in it looks like a mistake: **private**, for the data holder alone."""

import secrets
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength.ingest.contributions import KEY_BYTES, BoundedEvents
from armslength.ingest.encoding import LeftOut
from armslength.ingest.event_table import TableJob
from armslength.protocol.protocol import Protocol
from armslength.protocol.record import MISSING, OTHER, Record, prefix

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_NAMES = 10_000  # groups that are not listed and are remembered: a wrong column may have millions
_MOST_COMPARED = 1000
_SPELLINGS = ("capital letters", "zeros in front, such as 7 and 007")  # how ids of one person may differ


class ColumnCheck(NamedTuple):
    """What became of a column of a record, in rows that have a person and a listed group."""

    rows: int
    missing: int
    other: int  # not among the categories listed

    @property
    def needs_a_look(self) -> bool:
        """Whether nearly nothing in it is read as the protocol says: 90 percent are missing or other."""
        return self.rows > 0 and 10 * (self.missing + self.other) >= 9 * self.rows


@dataclass(frozen=True)
class MarginCheck:
    """What margins count of a table, before the contribution leaves anything out."""

    in_none: float  # the share of the pairs, events or weights that are in no listed item group
    empty: list[str]  # listed item groups that nobody has an item in; of a record, none is said to be
    people_over: int  # who have more item groups than the margin contribution

    @property
    def needs_a_look(self) -> bool:
        """Whether the list may not fit the table: an item group with nobody, or 90 percent in no listed one."""
        return bool(self.empty) or self.in_none >= 0.9


@dataclass(frozen=True)
class TableCheck:
    """What a release would count of a table; nothing was spent. **Private**: show it to nobody but the data holder."""

    left_out: LeftOut
    groups: dict[str, int]  # rows with a person in each public group
    unlisted: dict[str, int]  # rows of each group that is not listed, most rows first; at most 10,000 groups
    without_group: int  # rows with a person and without any group
    likely: dict[str, str]  # for public groups without rows, the group that was likely meant
    people: int  # who have at least one event that counts
    people_over: int  # who have more than the contribution
    share: float | None  # of the pairs, events or weights that count: what the contribution keeps
    spellings: dict[str, int]  # how many people have several ids, by what differs between these
    columns: dict[str, ColumnCheck]  # of a record
    margins: MarginCheck | None  # where the protocol has margins, and somebody counts

    @property
    def empty_groups(self) -> list[str]:
        """The public groups without any row that has a person."""
        return [label for label, rows in self.groups.items() if not rows]

    @property
    def needs_a_look(self) -> bool:
        """Whether something may be a mistake: an empty or unlisted group, rows left out, an id written in several ways, a column that is nearly all missing or other, item groups that do not fit."""
        return bool(
            self.empty_groups
            or self.spellings
            or self.left_out.counting < self.left_out.rows
            or not self.people
            or any(column.needs_a_look for column in self.columns.values())
            or (self.margins is not None and self.margins.needs_a_look)
        )


def check_table(job: TableJob, *, show_progress: bool = False) -> TableCheck:
    """Reads all events as a release would, and spends nothing. The result is **private**."""
    left_out, rows, ids = LeftOut(), _RowCounts(len(job.groups.labels), job.protocol.record), _IdSpellings()
    cells = _MarginCounts(job.protocol)
    people, people_over, total, kept = 0, 0, 0.0, 0.0
    key = secrets.token_bytes(KEY_BYTES)  # a release draws another, so a person may count in another group
    for part in job.person_totals(key, left_out, rows, show_progress=show_progress):
        people += len(part.totals)
        people_over += int((part.totals > job.bound).sum())
        total += float(part.totals.sum())
        kept += float(np.minimum(part.totals, job.bound).sum())
        ids.add(part.ids)
        cells.add(part)
    if job.groups.column is None:
        rows.listed[:] = left_out.rows - left_out.person
    groups = dict(zip(job.groups.labels, rows.listed.tolist(), strict=True))
    unlisted = dict(rows.unlisted.most_common())
    return TableCheck(
        left_out,
        groups,
        unlisted,
        left_out.group - rows.unlisted_rows,
        _likely([label for label, count in groups.items() if not count], list(unlisted)),
        people,
        people_over,
        kept / total if total else None,
        ids.spellings(),
        rows.columns(),
        cells.check() if total else None,
    )


class _RowCounts:
    """How many rows with a person each group has, and how many of these are missing or other in each column of a record."""

    def __init__(self, count: int, record: Record | None) -> None:
        self._record, self._items = record, 0
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

    def items(self, items: pa.Array) -> None:
        """Adds the items of rows with a person and a listed group."""
        if self._record is not None:
            self._items += len(items)
            marks = [prefix(name) + mark for name, _ in self._record.columns for mark in (MISSING, OTHER)]
            chosen = items.filter(pc.is_in(items, pa.array(marks, items.type)))
            for each in chosen.value_counts().to_pylist():
                self._marks[each["values"]] += each["counts"]

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


class _MarginCounts:
    """How much is in each item group, and how many people have more of them than count."""

    def __init__(self, protocol: Protocol) -> None:
        self._margins, self._bound = protocol.margins, protocol.margin_contribution or 0
        names = 0 if self._margins is None else len(self._margins.names)
        self._amounts: NDArray[np.float64] = np.zeros(names + 1)  # the last: of items that belong to none
        self._over = 0

    def add(self, events: BoundedEvents) -> None:
        """Adds all events of some persons."""
        if self._margins is None:
            return
        size = len(self._amounts)
        self._amounts += np.bincount(events.margins, np.abs(events.amounts), size)
        persons = np.repeat(np.arange(len(events.starts) - 1), np.diff(events.starts))
        is_in_one = (events.margins < size - 1) & (events.amounts != 0)
        width = size * (int(events.groups.max(initial=0)) + 1)
        cells = np.unique((persons * width + events.groups * np.int64(size) + events.margins)[is_in_one])
        self._over += int((np.bincount(cells // width) > self._bound).sum())

    def check(self) -> MarginCheck | None:
        """What became of the items."""
        if self._margins is None:
            return None
        if self._margins.rule == "record":  # its other columns belong to none
            return MarginCheck(0.0, [], self._over)
        listed = self._amounts[:-2]
        empty = [name for name, amount in zip(self._margins.names, listed, strict=False) if not amount]
        return MarginCheck(1 - float(listed.sum() / self._amounts.sum()), empty, self._over)


def _likely(empty: list[str], unlisted: list[str]) -> dict[str, str]:
    """For each empty group, the name that was likely meant."""
    folded = {name.strip().casefold(): name for name in reversed(unlisted[:_MOST_COMPARED])}
    likely = {}
    for label in empty[:_MOST_COMPARED]:
        near = get_close_matches(label.strip().casefold(), folded, n=1)
        if near:
            likely[label] = folded[near[0]]
    return likely


class _IdSpellings:
    """Which ids would be one if they were written alike: a hash of that spelling, and what was changed for it, of each id."""

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.int64]] = []
        self._changes: list[NDArray[np.uint8]] = []

    def add(self, persons: pa.Array) -> None:
        """Adds different ids."""
        lower = pc.utf8_lower(persons)
        plain = pc.replace_substring_regex(lower, r"^0+([0-9])", r"\1")
        changes = np.zeros(len(persons), dtype=np.uint8)
        for bit, (before, after) in enumerate([(persons, lower), (lower, plain)]):
            changes |= pc.not_equal(before, after).to_numpy(zero_copy_only=False).astype(np.uint8) << bit
        self._hashes.append(np.fromiter(map(hash, plain.to_pylist()), np.int64, len(plain)))
        self._changes.append(changes)

    def spellings(self) -> dict[str, int]:
        """How many people have several ids, by what differs between them."""
        if not self._hashes:
            return {}
        hashes, changes = np.concatenate(self._hashes), np.concatenate(self._changes)
        order = np.argsort(hashes)
        hashes, changes = hashes[order], changes[order]
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        several = np.diff(np.append(starts, len(hashes))) > 1
        if not several.any():
            return {}
        anywhere = np.bitwise_or.reduceat(changes, starts)[several]
        differs = anywhere & ~np.bitwise_and.reduceat(changes, starts)[several]
        differs = np.where(differs == 0, anywhere, differs)  # 5.0 and 5.00
        counts = {name: int((differs >> bit & 1).sum()) for bit, name in enumerate(_SPELLINGS)}
        return {name: count for name, count in counts.items() if count}
