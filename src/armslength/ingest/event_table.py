"""What a release counts of an event table: its columns, the public groups, the names of items, the bound for a person.

Which groups exist is public input, never read off the data: a group of one person would appear with that person.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Self, TypeVar

import pyarrow as pa

from armslength.checks import integer, short_repr
from armslength.errors import ParameterError
from armslength.ingest.contributions import (
    BoundedEvents,
    KeyedOrder,
    PersonTotals,
    contribution_in_grid_units,
)
from armslength.ingest.engine import DEFAULT_MEMORY, EventTable, LeftOut, memory_bytes, opened_table
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.sources import size_of
from armslength.ingest.spill import bounded_events, totals_of_persons
from armslength.ingest.sums import GroupSums, Sums
from armslength.progress import Advance, progress
from armslength.protocol.protocol import Protocol, checked_vocabulary
from armslength.randomness.seeds import canonical_text
from armslength.sketches.sketches import checked_labels

_MOST_GROUPS = 10_000_000
_T = TypeVar("_T")


@dataclass(frozen=True)
class TableJob:
    """What is counted of an event table, checked as far as it can be without data."""

    source: Any
    protocol: Protocol
    columns: EventColumns
    groups: "PublicGroups"
    bound: int  # the most that one person adds, in grid units
    item_names: pa.Table | None  # name and number of each item of a fixed vocabulary
    memory: str
    threads: int | None

    @classmethod
    def of(
        cls,
        source: Any,
        protocol: Protocol,
        columns: EventColumns,
        groups: "PublicGroups",
        vocabulary: Any = None,
        *,
        memory: str = DEFAULT_MEMORY,
        threads: int | None = None,
    ) -> Self:
        """The job, if the protocol fits an event table; the arguments are those of `Protocol.release_table`."""
        if not isinstance(protocol, Protocol):
            raise ParameterError(f"protocol must be al.Protocol, got {type(protocol).__name__}")
        bound = contribution_in_grid_units(protocol)
        if not protocol.unit:
            raise ParameterError("unit must say in the protocol who is protected, such as 'one patient'")
        if protocol.value_range is not None:
            raise ParameterError("value_range must be None for event tables: a contribution bounds them")
        if protocol.noise_site != "output":
            raise ParameterError(f"noise_site must be 'output' for event tables, got {protocol.noise_site!r}")
        if protocol.max_norm is not None:
            raise ParameterError("max_norm must be None until this path calls longest_prefix")
        if protocol.count == "people" and columns.weight is not None:
            raise ParameterError(
                "weight must be left out where the protocol counts people, got one; "
                'make a protocol with count="events" (--count events) to add up weights'
            )
        if protocol.count == "people" and protocol.resolution != 1:
            raise ParameterError("resolution must be 1 where the protocol counts people, got another")
        if threads is not None:
            integer("threads", threads, at_least=1, at_most=1024)
        item_names = item_numbers(protocol, vocabulary)
        return cls(source, protocol, columns, groups, bound, item_names, memory, threads)

    def sums(self, key: bytes, *, show_progress: bool = False) -> Sums:
        """The exact integers of all groups, **not private**: a function of the set of events and the key alone."""
        sums = GroupSums(self.protocol, len(self.groups.labels), self.threads)
        left_out = LeftOut()
        kept = partial(self.kept_events, key, left_out)
        for events in _with_bars(kept, self.source, left_out, shown=show_progress):
            sums.add(events)
        if show_progress and sys.stderr is not None and sys.stderr.isatty():
            # for the data holder's eyes, like the progress bar: never in a file
            sys.stderr.write(f"{left_out.in_words()}\n")
        return sums.sums()

    def kept_events(
        self, key: bytes, left_out: LeftOut | None = None, advance: Advance | None = None, unit: str = "rows"
    ) -> Iterator[BoundedEvents]:
        """The events that are kept under this key, within everybody's bound, **not private**; updates what is given for progress."""
        with self.opened() as table:
            batches = self._batches(table, left_out, advance, unit)
            yield from bounded_events(table, batches, self._order(key), self.bound, memory_bytes(self.memory))

    def person_totals(
        self,
        key: bytes,
        left_out: LeftOut,
        watch: Callable[[pa.RecordBatch], object] | None = None,
        *,
        show_progress: bool = False,
    ) -> Iterator[PersonTotals]:
        """What each person has before the bound, **not private**; updates `left_out`, and shows `watch` all rows."""

        def totals(advance: Advance, unit: str) -> Iterator[PersonTotals]:
            with self.opened() as table:
                batches = self._batches(table, left_out, advance, unit, watch)
                yield from totals_of_persons(table, batches, self._order(key), memory_bytes(self.memory))

        return _with_bars(totals, self.source, left_out, shown=show_progress)

    def _order(self, key: bytes) -> KeyedOrder:
        each_once, one_group = self.protocol.count == "people", self.protocol.one_group
        return KeyedOrder(key, self.groups.labels, each_once=each_once, one_group=one_group)

    def _batches(
        self,
        table: EventTable,
        left_out: LeftOut | None,
        advance: Advance | None,
        unit: str,
        watch: Callable[[pa.RecordBatch], object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The events that count, in any order."""
        table.left_out = left_out or table.left_out
        has_weights = self.columns.weight is not None
        batches = table.batches(self.groups.table(), self.item_names, has_weights=has_weights, watch=watch)
        return batches if advance is None else _with_progress(batches, table.left_out, advance, unit)

    def opened(self) -> AbstractContextManager[EventTable]:
        """The source, after a look at its schema alone."""
        by_number = self.item_names is None and self.protocol.transform.input_dim is not None
        options: dict[str, Any] = {"by_number": by_number, "memory": self.memory, "threads": self.threads}
        return opened_table(self.source, self.columns, self.protocol, **options)


def _with_bars(
    parts_of: Callable[[Advance, str], Iterator[_T]], source: Any, left_out: LeftOut, *, shown: bool
) -> Iterator[_T]:
    """The parts, with a bar while events are read and one while they are counted."""
    total, unit = size_of(source) if shown else (None, "rows")
    # All events are read before there is a first part: a person's may stand anywhere.
    with progress("reading", total, unit, shown=shown) as advance:
        parts = parts_of(advance, unit)
        first = next(parts, None)
    with progress("counting", left_out.counting, "rows", shown=shown) as advance:
        before = 0
        for part in chain([] if first is None else [first], parts):
            yield part
            advance(left_out.in_order - before)
            before = left_out.in_order


def _with_progress(
    batches: Iterator[pa.RecordBatch], left_out: LeftOut, advance: Advance, unit: str
) -> Iterator[pa.RecordBatch]:
    """The batches; advances the progress bar for each."""
    before = 0
    for batch in batches:
        now = left_out.bytes if unit == "B" else left_out.rows
        advance(now - before)
        before = now
        yield batch


@dataclass(frozen=True)
class PublicGroups:
    """The labels of a release's rows, in order, from public input alone."""

    labels: tuple[str, ...]
    column: str | None  # of the table, with an event's group; None if there is one group

    def table(self) -> pa.Table | None:
        """(label, number) of every group, for a join; None if there is one group."""
        if self.column is None:
            return None
        numbers = pa.array(range(len(self.labels)), pa.int32())
        return pa.table({"label": pa.array(self.labels, pa.string()), "number": numbers})


def public_groups_of(group: str | None, listed: Any, label: str | None) -> PublicGroups:
    """The groups of a release: those listed, with a column; or one, with a label."""
    if group is None:
        if listed is not None:
            raise ParameterError("public_groups must go with a group column, got none; or give a label")
        if label is None:
            raise ParameterError(
                "groups must be public: say the group column with its public groups, or one label if all events are of one group"
            )
        return PublicGroups(tuple(checked_labels([label], 1) or ()), None)
    if label is not None:
        raise ParameterError("label must be left out when there is a group column: its groups name the rows")
    if listed is None:
        raise ParameterError(
            "public_groups must list every group that gets a row: read off the data, the list would tell who is in it"
        )
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise ParameterError(f"public_groups must be a list of names, got {short_repr(listed)}")
    if not 1 <= len(listed) <= _MOST_GROUPS:
        raise ParameterError(f"public_groups must list 1 to {_MOST_GROUPS} groups, got {len(listed)}")
    return PublicGroups(tuple(checked_labels(list(listed), len(listed)) or ()), group)


def item_numbers(protocol: Protocol, vocabulary: Any) -> pa.Table | None:
    """(name, number) of every coordinate, for a join; None where items are hashed, or are numbers already."""
    if protocol.transform.input_dim is None:
        if vocabulary is not None:
            raise ParameterError("vocabulary must be left out for an open vocabulary, got one")
        return None
    if protocol.items != "string" and (vocabulary is not None or protocol.vocabulary is not None):
        raise ParameterError("items must be 'string' in a protocol with a vocabulary, got 'int64'")
    if vocabulary is not None:
        width = protocol.transform.input_dim
        if isinstance(vocabulary, str) or checked_vocabulary(vocabulary, width) != protocol.vocabulary:
            raise ParameterError("vocabulary must be the list that the protocol was made with, got other")
        names = [canonical_text(name).decode() for name in vocabulary]
        places = pa.array(range(len(names)), pa.int64())
        return pa.table({"name": pa.array(names, pa.string()), "place": places})
    if protocol.vocabulary is not None:
        raise ParameterError("vocabulary must list the names of the protocol's coordinates, got nothing")
    if protocol.items != "int64":
        raise ParameterError(
            "items must be 'int64' (column numbers) for a fixed input_dim without a vocabulary, got 'string'; "
            "use an open vocabulary, or give the protocol a vocabulary"
        )
    return None
