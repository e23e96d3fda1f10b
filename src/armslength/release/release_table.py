"""`al.release_table`: one private sketch for each public group of an event table."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from armslength.checks import integer
from armslength.errors import ParameterError
from armslength.ingest.arrays import Prepared
from armslength.ingest.contributions import KEY_BYTES, BoundedEvents, KeyedOrder, contribution_in_grid_units
from armslength.ingest.engine import DEFAULT_MEMORY, EventTable, LeftOut, memory_bytes, opened_table
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, item_numbers, public_groups_of
from armslength.ingest.sources import size_of
from armslength.ingest.spill import bounded_events
from armslength.ingest.sums import GroupSums
from armslength.ledger.ledger import Ledger, NoLedger, opened_ledger
from armslength.progress import Advance, progress
from armslength.protocol.protocol import Protocol
from armslength.release.release import check_population, preview_charge, released
from armslength.sketches.sketches import Sketches


def release_table(  # noqa: PLR0913  # each is a decision of its own
    source: Any,
    protocol: Protocol,
    *,
    person: str,
    item: str,
    ledger: Any = None,
    group: str | None = None,
    public_groups: Any = None,
    label: str | None = None,
    weight: str | None = None,
    population: str = "",
    vocabulary: Any = None,
    repeat: bool = False,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
    show_progress: bool = False,
) -> Sketches:
    """One private sketch for each public group of an event table: who, what, where.

    Guarantee: all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for adding or removing, or for replacing, one
    person with all of their events: whatever a person's events are, at most `contribution` of them, by weight, over all groups
    are counted. Which groups there are, how many rows, their order and labels are public input. Errors are raised before anything
    is charged or drawn.
    Reference: docs/privacy.md, event tables and theorem 1.

    Args:
        source: A Parquet, CSV, JSON-lines or Arrow file, a folder or a list of them; or an Arrow table, or a data frame. Nobody
            may change it meanwhile.
        protocol: What the parties agreed on: with a contribution, and a unit of protection in words.
        person: The column that says who an event is about. Events without a person are left out.
        item: The column that says what happened, of the protocol's type. Events without an item are left out.
        ledger: A `Ledger`, the path of one that exists, or `al.NO_LEDGER`.
        group: The column that says which group an event belongs to; with `public_groups`.
        public_groups: Every group that gets a row, also without events, in this order. Events of others are left out.
        label: Instead of both: the name of the one row that all events belong to.
        weight: The column that says how much an event counts, of either sign, floored onto the protocol's grid; None: 1.
        population: Whose budget the ledger charges.
        vocabulary: For a protocol with a vocabulary: its list of names. Events with other items are left out.
        repeat: Whether the same population and labels may be released again.
        memory: About how much is held before events go to an encrypted temporary file, such as "1GB".
        threads: At most this many threads; None takes all that the process may run.
        show_progress: Whether to show progress, if standard error is a terminal.
    """
    book = opened_ledger(ledger)
    check_population(population, book)
    job = TableJob.of(
        source,
        protocol,
        EventColumns(person, item, group, weight),
        public_groups_of(group, public_groups, label),
        vocabulary,
        memory=memory,
        threads=threads,
    )
    return job.release(ledger=book, population=population, repeat=repeat, show_progress=show_progress)


@dataclass(frozen=True)
class TableJob:
    """A release of an event table, checked as far as it can be without data.

    Attributes:
        source: Where the events are.
        protocol: What the parties agreed on.
        columns: Which columns hold what.
        groups: The rows of the release.
        bound: The most that one person adds, in grid units.
        names: The names of a fixed vocabulary with their numbers, or None.
        memory: How much the engine may hold.
        threads: At most this many threads.
    """

    source: Any
    protocol: Protocol
    columns: EventColumns
    groups: PublicGroups
    bound: int
    names: pa.Table | None
    memory: str
    threads: int | None

    @classmethod
    def of(
        cls,
        source: Any,
        protocol: Protocol,
        columns: EventColumns,
        groups: PublicGroups,
        vocabulary: Any = None,
        *,
        memory: str = DEFAULT_MEMORY,
        threads: int | None = None,
    ) -> "TableJob":
        """The release, if the protocol fits an event table."""
        if not isinstance(protocol, Protocol):
            raise ParameterError(f"protocol must be al.Protocol, got {type(protocol).__name__}")
        bound = contribution_in_grid_units(protocol)
        if not protocol.unit:
            raise ParameterError(
                "unit must say in the protocol, in words, who is protected, such as 'one patient'; got nothing"
            )
        if protocol.value_range is not None:
            raise ParameterError(
                "value_range must be None for an event table: it clamps sums, and a contribution bounds events"
            )
        if protocol.noise_site != "output":
            raise ParameterError(
                f"noise_site must be 'output' for an event table, got {protocol.noise_site!r}"
            )
        if threads is not None:
            integer("threads", threads, at_least=1, at_most=1024)
        names = item_numbers(protocol, vocabulary)
        return cls(source, protocol, columns, groups, bound, names, memory, threads)

    def preview(self, *, ledger: Ledger | NoLedger, population: str, repeat: bool) -> None:
        """Refuses what `release` would refuse, as far as the schema of the source and the ledger tell; spends nothing."""
        preview_charge(self.protocol, ledger, population, self.groups.labels, repeat=repeat)
        with self.opened():
            pass

    def release(
        self, *, ledger: Ledger | NoLedger, population: str, repeat: bool, show_progress: bool = False
    ) -> Sketches:
        """The sketches; the ledger is asked before any event is read, and charged when all of them were."""
        preview_charge(self.protocol, ledger, population, self.groups.labels, repeat=repeat)
        ready = self.sums(secrets.token_bytes(KEY_BYTES), show_progress=show_progress)
        return released(
            self.protocol,
            ready,
            list(self.groups.labels),
            source="events",
            ledger=ledger,
            population=population,
            repeat=repeat,
            threads=self.threads,
        )

    def sums(self, key: bytes, *, show_progress: bool = False) -> Prepared:
        """The exact integers of all groups, **not private**, from the events that this key takes.

        They depend on the events and the key, and not on the order of the rows, the files, or how work is cut and shared.
        """
        sums = GroupSums(self.protocol, len(self.groups.labels), self.threads)
        left_out = LeftOut()
        total, unit = size_of(self.source) if show_progress else (None, "rows")
        # All events are read before the first is taken: a person's may stand anywhere.
        with progress("reading", total, unit, shown=show_progress) as advance:
            taken = self.taken(key, left_out, advance, unit)
            first = next(taken, None)
        with progress("counting", left_out.counting, "rows", shown=show_progress) as advance:
            done = 0
            for events in chain([] if first is None else [first], taken):
                sums.add(events)
                advance(left_out.in_order - done)
                done = left_out.in_order
        if show_progress and sys.stderr is not None and sys.stderr.isatty():
            # like the progress bar: for the data holder's own eyes, before anything is charged, and never in a file
            sys.stderr.write(f"{left_out.in_words()}\n")
        return sums.prepared()

    def taken(
        self,
        key: bytes,
        left_out: LeftOut | None = None,
        advance: Advance | None = None,
        unit: str = "rows",
    ) -> Iterator[BoundedEvents]:
        """The events that this key takes, person by person: **private**, and within everybody's bound.

        Args:
            key: Puts each person's events into the order in which they are taken.
            left_out: Takes how many rows were read, and how many left out.
            advance: Is told how much more was read.
            unit: In "rows", or "B" for bytes of text files.
        """
        order = KeyedOrder(key, self.groups.labels)
        with self.opened() as table:
            table.left_out = left_out or table.left_out
            batches = table.batches(self.groups, self.names, weighted=self.columns.weight is not None)
            if advance is not None:
                batches = _watched(batches, table.left_out, advance, unit)
            yield from bounded_events(table, batches, order, self.bound, memory_bytes(self.memory))

    def opened(self) -> AbstractContextManager[EventTable]:
        """The source, after a look at its schema alone."""
        return opened_table(
            self.source,
            self.columns,
            self.protocol,
            by_number=self.names is None and self.protocol.transform.input_dim is not None,
            memory=self.memory,
            threads=self.threads,
        )


def _watched(
    batches: Iterator[pa.RecordBatch], left_out: LeftOut, advance: Advance, unit: str
) -> Iterator[pa.RecordBatch]:
    """The batches; whoever watches hears how much was read for each."""
    done = 0
    for batch in batches:
        now = left_out.bytes if unit == "B" else left_out.rows
        advance(now - done)
        done = now
        yield batch
