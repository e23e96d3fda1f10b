"""The one door from exact integers to the outside: charge the ledger, add noise, return sketches.

Order is everything here. All of the input is read and checked first, so that bad input costs nothing; then the ledger
is charged; then noise from the operating system's bits is drawn and added; only then does anything leave.
"""

import os
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armslength.checks import checked_labels
from armslength.errors import ParameterError
from armslength.ingest.arrays import array_sums, index_labels, projected_sums
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import Account, open_account
from armslength.noise.draw import add_noise
from armslength.protocol.protocol import Protocol
from armslength.sketches.noises import Noises, noise_ids
from armslength.sketches.sketches import Sketches
from armslength.threads import worker_count

if TYPE_CHECKING:
    from armslength.ingest.event_table import TableJob  # which loads DuckDB


def release(  # noqa: PLR0913  # each is a decision of its own
    protocol: Protocol,
    source: Any,
    *,
    ledger: Any,
    person: str | None = None,
    item: str | None = None,
    group: str | None = None,
    public_groups: Any = None,
    label: str | None = None,
    labels: Any = None,
    item_groups: Any = None,
    vocabulary: Any = None,
    weight: str | None = None,
    items: Any = None,
    population: str = "",
    period: str = "",
    repeat: bool = False,
    memory: str = "1GB",
    threads: int | None = None,
    progress: bool = True,
) -> Sketches:
    """One private sketch for each public group of an event table, or for each row of an array; charged to the ledger first.

    With `person`, the source is an event table, or a table with one row for each person: who, what, where. Without, it is an array.

    Guarantee: for a table, all rows together are ε-DP for adding or removing, or for replacing, one person with all of their events, whatever
    these are: a person has one vote in one group, split over all different items they have there, or at most `contribution` events, by
    weight, over all groups. For an array, all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for neighbors with ‖x − x'‖₁ ≤ radius
    over all rows. Off the grid, neighbors must also differ in at most `changed_entries` entries over all rows. You promise both: nothing can
    check them. In both cases which groups or rows there are, how many, their order and labels are public input, and no setting may be chosen by
    looking at the data. Random bits are taken for ideal. Errors are raised before anything is charged or drawn, and show no value of the data.
    Reference: docs/privacy.md, theorem 1, event tables and margins.

    Args:
        protocol: What the parties agreed on.
        source: A table: Parquet, Arrow, CSV or JSON files, a folder, a pattern or a list of them; a table of Arrow, pandas, Polars or DuckDB;
            or an `al.Source`, for databases and other dialects. An array: n rows of a dense array, a SciPy sparse matrix, or anything with an
            Arrow C stream. Nobody may change it meanwhile: it is not copied, and may be read twice.
        ledger: A `Ledger`, the path of one that exists, or `al.NO_LEDGER`.
        person: The column that says who an event is about. Events without a person are left out. None: the source is an array.
        item: The column that says what happened, of the protocol's type. Events without an item are left out. With a protocol that has a
            record there is none: the columns of each row become items.
        group: The column that says which group an event belongs to; with `public_groups`.
        public_groups: Every group that gets a row, also without events, in this order. Events of others are left out.
        label: Instead of both: the name of the one row that all events belong to.
        labels: Of an array: one public name for each row; None takes the index of a pandas data frame if that is text, and else numbers them.
        item_groups: For a protocol whose item groups are a table of items: the same mapping, table or file. Prefixes and columns of a record are in
            the protocol.
        vocabulary: For a table and a protocol with a vocabulary: its list of names. Events with other items are left out. A record's own is known.
        weight: The column that says how much an event counts, of either sign, floored onto the protocol's grid; None: 1. Not
            with votes.
        items: For an array and an open vocabulary: the items that the columns count; a table's column names if None.
        population: Whose budget the ledger charges.
        period: The time that the data are about, "2026-11" for example. The same labels may be released once per period.
        repeat: Whether the same population, period and labels may be released again.
        memory: About how much of a table is held before events go to an encrypted temporary file, such as "1GB".
        threads: At most this many threads; None takes all that the process may run.
        progress: Whether to show progress with a table, if standard error is a terminal.

    Example:
        >>> import armslength as al
        >>> import pyarrow as pa
        >>> protocol = al.Protocol(al.SparseJL(sketch_dim=64, seed="trial-2026"), al.Votes(), epsilon=1, unit="one patient")
        >>> visits = {"patient": ["ann", "ann", "bob"], "code": ["I10", "S72", "I10"]}
        >>> al.release(protocol, pa.table(visits), person="patient", item="code", label="north", ledger=al.NO_LEDGER).labels
        ('north',)
    """
    if not isinstance(protocol, Protocol):
        raise ParameterError(f"protocol must be al.Protocol, got {type(protocol).__name__}", "protocol")
    of_tables = {
        "item": item,
        "group": group,
        "public_groups": public_groups,
        "label": label,
        "item_groups": item_groups,
        "vocabulary": vocabulary,
        "weight": weight,
    }
    account = open_account(ledger, population, period=period, repeat=repeat)
    if person is None:
        _refuse(
            of_tables, "person is missing: {} is for event tables, which have a column of persons", "person"
        )
        return release_array(protocol, source, labels, items, account, threads)
    _refuse(
        {"labels": labels, "items": items}, "leave out {}: it is for arrays, and person= names an event table"
    )
    from armslength.ingest.event_columns import EventColumns  # noqa: PLC0415  # arrays need no engine
    from armslength.ingest.event_table import TableJob, public_groups_of  # noqa: PLC0415  # the same

    columns, groups = EventColumns(person, item, group, weight), public_groups_of(group, public_groups, label)
    known: dict[str, Any] = {"item_groups": item_groups, "memory": memory, "threads": threads}
    job = TableJob.of(source, protocol, columns, groups, vocabulary, **known)
    return release_events(job, account, show_progress=progress)


def _refuse(others: Mapping[str, Any], message: str, *names: str) -> None:
    """Refuses arguments that are for the other kind of source."""
    for name, value in others.items():
        if value is not None:
            raise ParameterError(message.format(name), *names, name)


def release_sums(
    protocol: Protocol,
    sums: Sums,
    labels: Sequence[str] | None,
    account: Account,
    threads: int | None = None,
) -> Sketches:
    """Private sketches of exact integers, after the ledger was charged.

    Guarantee: every draw of noise is fresh, and independent of the sums, the labels and all else. What the sketches promise about people
    rests on what the sums, which this call uses up, can change by: `release` says it.
    Reference: docs/privacy.md, theorem 1.
    """
    process = os.getpid()
    names = list(labels) if labels is not None else [str(row) for row in range(len(sums.values))]
    account.charge(protocol, names)
    released = noised(protocol, sums, threads)
    if os.getpid() != process:
        # A signal handler forked in the middle: there would be two releases, and one line of the ledger.
        raise RuntimeError(
            "the release was forked in the middle, and must stay in one process; release again"
        )
    named = None if labels is None else names
    return finished(protocol, released, named, release=account.release)


def noised(protocol: Protocol, sums: Sums, threads: int | None = None) -> Sums:
    """The sums, each number plus a fresh draw of its law, modulo 2^64; the sums are used up.

    Of votes, T − Q gets the noise of totals, and Q and F get that of the spread; T with both noises is what leaves.
    """
    values = sums.add_noise(partial(add_noise, law=protocol.law, threads=threads))
    totals, spread, margins = sums.totals, sums.spread, sums.margins
    laws = (totals, protocol.total_law), (spread, protocol.spread_law), (margins, protocol.margin_law)
    if any((array is None) != (law is None) for array, law in laws):
        raise TypeError(
            "totals, spread and margins must be added up where the protocol has them, and nowhere else"
        )
    if totals is not None and protocol.total_law is not None:
        if spread is not None and protocol.spread_law is not None:
            totals, spread = totals - spread[:, 0], np.ascontiguousarray(spread)
            add_noise(totals, protocol.total_law)
            add_noise(spread, protocol.spread_law)
            totals += spread[:, 0]
        else:
            add_noise(totals, protocol.total_law)
    if margins is not None and protocol.margin_law is not None:
        add_noise(margins, protocol.margin_law)
    return Sums(values, totals, sums.source, margins=margins, spread=spread)


def finished(protocol: Protocol, released: Sums, labels: list[str] | None, *, release: bytes) -> Sketches:
    """Sketches of sums that have their noise; noise ids come from the release's id."""
    noises = Noises.fresh(noise_ids(release, len(released.values)), protocol, released.source)
    return Sketches(
        released.values, labels, noises, [protocol], released.totals, released.margins, released.spread
    )


def release_array(
    protocol: Protocol, X: Any, labels: Any, items: Any, account: Account, threads: int | None
) -> Sketches:
    """One private sketch for each row of X: see `release`."""
    check_not_for_tables(protocol)
    threads = worker_count(threads)
    labels = index_labels(X) if labels is None else labels
    sums = array_sums(protocol, X, items, threads)
    count = len(sums.values)
    if count > 1 and not protocol.on_grid and protocol.changed_entries is None:
        raise ParameterError(
            "changed_entries must say how many entries one unit can change, over all rows, when several rows are off the grid; "
            "if one unit lies in one row, that is input_dim",
            "changed_entries",
        )
    return release_sums(protocol, sums, checked_labels(labels, count), account, threads)


def release_events(job: "TableJob", account: Account, *, show_progress: bool = False) -> Sketches:
    """One private sketch for each public group of an event table: see `release`.

    The ledger is asked before any event is read, and charged when all of them were.
    """
    account.preview(job.protocol, job.groups.labels)
    sums = job.sums(secrets.token_bytes(KEY_BYTES), show_progress=show_progress)
    return release_sums(job.protocol, sums, job.groups.labels, account, job.threads)


def preview_events(job: "TableJob", account: Account) -> None:
    """Refuses what `release_events` would refuse, as far as the schema of the source and the ledger tell; spends nothing."""
    account.preview(job.protocol, job.groups.labels)
    with job.opened():
        pass


def check_not_for_tables(protocol: Protocol) -> None:
    """Refuses rows and streams where people vote: only event tables say which items belong to one person."""
    if protocol.votes:
        raise ParameterError(
            "people vote in this protocol, and arrays and streams do not say which items belong to one person; "
            "release an event table with person=, or make a protocol with al.Arrays",
            "person",
        )


def sketch_in_clear(
    protocol: Protocol, X: Any, *, labels: Any = None, items: Any = None, threads: int | None = None
) -> Sketches:
    """Sketches of X without any noise, **not private**: to compare with private ones, never to publish.

    Args:
        protocol: What the parties agreed on; its noise is not used.
        X: n rows, as for a release.
        labels: One name for each row; None takes a data frame's index of text, or numbers them.
        items: For an open vocabulary: the items that the columns count.
        threads: At most this many threads; None takes all that the process may run.
    """
    labels = index_labels(X) if labels is None else labels
    sums = projected_sums(protocol, X, items, threads)
    count = len(sums.values)
    noises = Noises.none(count, in_clear=True)
    return Sketches(sums.values, checked_labels(labels, count), noises, [protocol], sums.totals)
