"""What a release counts of an event table: its columns, the public groups, the names of items, the bound for a person.

Which groups exist is public input, never read off the data: a group of one person would appear with that person.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import pyarrow as pa

from armslength.checks import checked_labels, short_repr
from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError, ParameterError
from armslength.ingest.contributions import BoundedEvents, Events, ids_of, person_rule
from armslength.ingest.encoding import EventEncoder, ItemWords, LeftOut, Watch
from armslength.ingest.engine import EventTable, opened_table
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.parquet_texts import ParquetTexts
from armslength.ingest.partitions import DEFAULT_MEMORY, EventStore, Job, PersonRule, memory_bytes
from armslength.ingest.records import record_roles
from armslength.ingest.sources import event_files, size_of
from armslength.ingest.sums import GroupSums, ItemColumns, Sums, SumShape, VoteSums, margin_cells
from armslength.progress import progress
from armslength.protocol.margins import folded_table, margin_table
from armslength.protocol.protocol import Protocol, checked_vocabulary
from armslength.randomness.seeds import canonical_text
from armslength.threads import cached_attribute, ordered_map, worker_count

_TEXTS = {"person", "group", "item"}
_MOST_GROUPS = 10_000_000


@dataclass(frozen=True)
class TableJob:
    """What is counted of an event table, checked as far as it can be without data."""

    source: Any
    protocol: Protocol
    columns: EventColumns
    groups: "PublicGroups"
    item_names: list[str] | None  # of a fixed vocabulary, in order
    margin_table: dict[str, int] | None  # the item group of each listed item or prefix; None without margins
    memory: str
    threads: int

    @classmethod
    def of(  # the arguments of a release
        cls,
        source: Any,
        protocol: Protocol,
        columns: EventColumns,
        groups: "PublicGroups",
        vocabulary: Any = None,
        *,
        item_groups: Any = None,
        memory: str = DEFAULT_MEMORY,
        threads: int | None = None,
    ) -> Self:
        """The job, if the protocol fits an event table; the arguments are those of `al.release`."""
        if not isinstance(protocol, Protocol):
            raise ParameterError(f"protocol must be al.Protocol, got {type(protocol).__name__}", "protocol")
        person_rule(bytes(32), (), protocol)
        if not protocol.unit:
            raise ParameterError("the protocol must say who is protected, such as unit='one patient'", "unit")
        columns = _with_record(columns, protocol)
        if protocol.votes and columns.weight is not None:
            raise ParameterError(
                "weight cannot be used where people vote; to add up weights, make a protocol with al.Counts",
                "weight",
            )
        names, table = item_names(protocol, vocabulary), None
        if item_groups is not None or protocol.margins is not None:
            table = margin_table(item_groups, protocol.margins)
        workers = worker_count(threads)
        return cls(source, protocol, columns, groups, names, table, memory, workers)

    @cached_attribute
    def shape(self) -> SumShape:
        """The shape of the sums."""
        return SumShape.of(self.protocol, len(self.groups.labels))

    def sums(self, key: bytes, *, show_progress: bool = False) -> Sums:
        """The exact integers of all groups, **not private**: a function of the set of events and the key alone."""
        sums, left_out = GroupSums(self.protocol, self.shape, self.threads), LeftOut()
        for events in self.kept_events(key, left_out, show_progress=show_progress):
            sums.add(events)
        if show_progress and sys.stderr is not None and sys.stderr.isatty():
            # for the data holder's eyes, like the progress bar: never in a file
            sys.stderr.write(f"{left_out.in_words()}\n")
        return sums.sums()

    def kept_events(
        self, key: bytes, left_out: LeftOut | None = None, *, show_progress: bool = False
    ) -> Iterator[BoundedEvents]:
        """The events that are kept under this key, within everybody's bound, **not private**; updates `left_out`."""
        rule, protocol = person_rule(key, self.groups.labels, self.protocol), self.protocol
        caches = list[ItemColumns]()  # one for each thread

        def bounded(events: Events) -> BoundedEvents:
            kept = rule.bounded(events)
            try:
                item_columns = caches.pop()
            except IndexError:
                item_columns = ItemColumns(protocol, self.shape)
            columns = item_columns(kept.items)
            caches.append(item_columns)
            cells, votes, margins = None, None, protocol.margins
            if protocol.votes and columns is not None:
                width, has_norm = protocol.transform.sketch_dim, protocol.releases_norm
                votes = VoteSums.of(kept, columns, width, has_norm=has_norm)
            if margins is not None:
                limits = len(margins.names), protocol.margin_contribution or 0
                cells = margin_cells(kept.starts, kept.groups, kept.margins, *limits)
            return replace(kept, columns=columns, votes=votes, margin_cells=cells)

        return self._for_all_persons(rule, bounded, left_out or LeftOut(), None, show_progress=show_progress)

    def person_totals(
        self, key: bytes, left_out: LeftOut, watch: Watch | None = None, *, show_progress: bool = False
    ) -> Iterator[BoundedEvents]:
        """All events that count, with the persons' ids and totals, **not private**; updates `left_out`, and shows `watch` the groups and items of all rows.

        Items that are in an item group only in another spelling have a number of their own: see `Margins.codes`. A person's total is the number
        of different items in the one group where the person votes, or the amount of all events without a bound.
        """
        rule = person_rule(key, self.groups.labels, self.protocol, is_bounded=False)

        def totals(events: Events) -> BoundedEvents:
            kept = rule.bounded(events)
            return replace(kept, ids=ids_of(events, kept.persons))

        return self._for_all_persons(rule, totals, left_out, watch, show_progress=show_progress)

    def _for_all_persons(
        self,
        rule: PersonRule,
        work: Callable[[Events], BoundedEvents],
        left_out: LeftOut,
        watch: Watch | None,
        *,
        show_progress: bool,
    ) -> Iterator[BoundedEvents]:
        """What `work` makes of all events of some persons, until everybody was among them once."""
        labels = None if self.groups.column is None else self.groups.labels
        margins, table = self.protocol.margins, self.margin_table
        codes = None
        if margins is not None and table is not None:
            other_spellings = None if watch is None else folded_table(table)
            codes = partial(margins.codes, table=table, other_spellings=other_spellings)
        item_words = ItemWords(rule.key, self.item_names, codes)
        encoder = EventEncoder(rule.key, labels, item_words, left_out, watch)
        if self.protocol.record is not None:
            left_out.noun = "item"
        store = EventStore(rule.key, memory_bytes(self.memory), self.threads)
        with _memory_errors(), store:
            self._read(encoder, store, left_out, show_progress=show_progress)
            jobs = store.jobs(rule)

            def results(job: Job) -> list[BoundedEvents]:
                return [work(events) for events in store.take(job, rule)]

            rows = left_out.counting
            bar = progress("counting", rows, "rows", show=True) if show_progress else nullcontext()
            with bar as advance:
                for job, parts in zip(jobs, ordered_map(results, jobs, self.threads), strict=True):
                    yield from parts
                    if advance is not None:
                        advance(job.rows)

    def _read(
        self, encoder: EventEncoder, store: EventStore, left_out: LeftOut, *, show_progress: bool
    ) -> None:
        """Stores all events that can be used."""

        def read(piece: Iterable[pa.RecordBatch]) -> None:
            for batch in piece:
                try:
                    block = encoder.block(batch)
                except UnicodeDecodeError:  # its message would show data
                    raise InputError(
                        "cannot read source: it holds text that is not UTF-8", "source"
                    ) from None
                if block is not None:
                    store.add(block)

        total, unit = size_of(self.source) if show_progress else (None, "rows")
        items, before = 1 if self.protocol.record is None else self.protocol.record.items_per_row, 0
        bar = progress("reading", total, unit, show=True) if show_progress else nullcontext()
        with self.opened() as table, bar as advance:
            for _ in ordered_map(read, table.pieces(), self.threads):
                if advance is not None:
                    now = table.bytes_read if unit == "B" else left_out.rows // items
                    advance(now - before)
                    before = now

    def opened(self) -> AbstractContextManager[EventTable | ParquetTexts]:
        """The source, after a look at its schema alone."""
        by_number = self.item_names is None and self.protocol.transform.input_dim is not None
        if self.protocol.items == "string" and not by_number and set(self.columns.named) <= _TEXTS:
            texts = ParquetTexts.of(event_files(self.source), self.columns.named)
            if texts is not None:
                return nullcontext(texts)
        options: dict[str, Any] = {"by_number": by_number, "memory": self.memory, "threads": self.threads}
        return opened_table(self.source, self.columns, self.protocol, **options)


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Too little memory as an error of ours, whoever notices it."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None


def _with_record(columns: EventColumns, protocol: Protocol) -> EventColumns:
    """The columns, with those of the protocol's record, if it has one, instead of an item."""
    if protocol.record is None:
        if columns.item is None:
            raise ParameterError("item must name a column: the protocol has no record", "item")
        return columns
    if columns.item is not None:
        raise ParameterError("item cannot be combined with a protocol that has a record", "item")
    return replace(columns, record=record_roles(protocol.record))


@dataclass(frozen=True)
class PublicGroups:
    """The labels of a release's rows, in order, from public input alone."""

    labels: tuple[str, ...]
    column: str | None  # of the table, with an event's group; None if there is one group


def public_groups_of(group: str | None, listed: Any, label: str | None) -> PublicGroups:
    """The groups of a release: those listed, with a column; or one, with a label."""
    if group is None:
        if listed is not None:
            raise ParameterError(
                "public_groups needs a group column; for one group, give a label", "public_groups"
            )
        if label is None:
            raise ParameterError(
                "give label if all events belong to one group, otherwise group and public_groups",
                "label",
                "group",
                "public_groups",
            )
        return PublicGroups(tuple(checked_labels([label], 1) or ()), None)
    if label is not None:
        raise ParameterError(
            "label cannot be combined with group: the groups name the rows", "label", "group"
        )
    if listed is None:
        raise ParameterError(
            "public_groups must list every group that gets a row: read off the data, the list would tell who is in it",
            "public_groups",
        )
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise ParameterError(
            f"public_groups must be a list of names, got {short_repr(listed)}", "public_groups"
        )
    if not 1 <= len(listed) <= _MOST_GROUPS:
        raise ParameterError(
            f"public_groups must list 1 to {_MOST_GROUPS} groups, got {len(listed)}", "public_groups"
        )
    return PublicGroups(tuple(checked_labels(list(listed), len(listed)) or ()), group)


def item_names(protocol: Protocol, vocabulary: Any) -> list[str] | None:
    """The name of every coordinate; None where items are hashed, or are numbers already."""
    if vocabulary is None and protocol.record is not None and protocol.transform.input_dim is not None:
        vocabulary = protocol.record.items()
    if protocol.transform.input_dim is None:
        if vocabulary is not None:
            raise ParameterError("vocabulary cannot be given for an open vocabulary", "vocabulary")
        return None
    if protocol.items != "string" and (vocabulary is not None or protocol.vocabulary is not None):
        raise ParameterError("items must be 'string' in a protocol with a vocabulary, got 'int64'", "items")
    if vocabulary is not None:
        width = protocol.transform.input_dim
        if isinstance(vocabulary, str) or checked_vocabulary(vocabulary, width) != protocol.vocabulary:
            raise ParameterError("vocabulary must be the list that the protocol was made with", "vocabulary")
        return [canonical_text(name).decode() for name in vocabulary]
    if protocol.vocabulary is not None:
        raise ParameterError("vocabulary must list the names of the protocol's coordinates", "vocabulary")
    if protocol.items != "int64":
        raise ParameterError(
            "items must be 'int64' (column numbers) for a fixed input_dim without a vocabulary, got 'string'; "
            "use an open vocabulary, or give the protocol a vocabulary",
            "items",
        )
    return None
