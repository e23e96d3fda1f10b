"""The one door from exact integers to the outside: charge the ledger, add noise, return sketches.

Order is everything here. All of the input is read and checked first, so that bad input costs nothing; then the ledger
is charged; then noise from the operating system's bits is drawn and added; only then does anything leave.
"""

import os
import secrets
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armslength.checks import checked_labels
from armslength.errors import ParameterError
from armslength.ingest.arrays import array_sums, index_labels, projected_sums
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import Account
from armslength.noise.draw import add_noise
from armslength.protocol.protocol import Protocol
from armslength.sketches.noises import Noises, noise_ids
from armslength.sketches.sketches import Sketches
from armslength.threads import worker_count

if TYPE_CHECKING:
    from armslength.ingest.event_table import TableJob  # which loads DuckDB


def release(
    protocol: Protocol,
    sums: Sums,
    labels: Sequence[str] | None,
    account: Account,
    threads: int | None = None,
) -> Sketches:
    """Private sketches of exact integers, after the ledger was charged.

    Guarantee: every draw of noise is fresh, and independent of the sums, the labels and all else. What the sketches promise about people
    rests on what the sums, which this call uses up, can change by: `Protocol.release` and `Protocol.release_table` say it.
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
    """One private sketch for each row of X: see `Protocol.release`."""
    threads = worker_count(threads)
    labels = index_labels(X) if labels is None else labels
    sums = array_sums(protocol, X, items, threads)
    count = len(sums.values)
    check_not_for_tables(protocol)
    if count > 1 and not protocol.on_grid and protocol.changed_entries is None:
        raise ParameterError(
            "changed_entries must say how many entries one unit can change, over all rows, when several rows are off the grid; "
            "if one unit lies in one row, that is input_dim",
            "changed_entries",
        )
    return release(protocol, sums, checked_labels(labels, count), account, threads)


def release_events(job: "TableJob", account: Account, *, show_progress: bool = False) -> Sketches:
    """One private sketch for each public group of an event table: see `Protocol.release_table`.

    The ledger is asked before any event is read, and charged when all of them were.
    """
    account.preview(job.protocol, job.groups.labels)
    sums = job.sums(secrets.token_bytes(KEY_BYTES), show_progress=show_progress)
    return release(job.protocol, sums, job.groups.labels, account, job.threads)


def preview_events(job: "TableJob", account: Account) -> None:
    """Refuses what `release_events` would refuse, as far as the schema of the source and the ledger tell; spends nothing."""
    account.preview(job.protocol, job.groups.labels)
    with job.opened():
        pass


def check_not_for_tables(protocol: Protocol) -> None:
    """Refuses rows and streams where people vote: only event tables say which items belong to one person."""
    if protocol.votes:
        raise ParameterError(
            'contribution="vote" is for event tables: rows and streams do not say which items belong to one person; '
            "release events with release_table, or make a protocol with a radius",
            "contribution",
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
