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
from numpy.typing import NDArray

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
    values, totals, margins = noised(protocol, sums, threads)
    if os.getpid() != process:
        # A signal handler forked in the middle: there would be two releases, and one line of the ledger.
        rule = "a release must stay in one process"
        raise RuntimeError(f"{rule}, but it was forked in the middle; release again")
    named = None if labels is None else names
    return finished(protocol, values, totals, named, sums.source, margins, release=account.release)


def noised(
    protocol: Protocol, sums: Sums, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """(values, totals, margins) of the sums, each entry plus a fresh draw of its law, modulo 2^64; the sums are used up."""
    values = sums.add_noise(partial(add_noise, law=protocol.law, threads=threads))
    for array, law in ((sums.totals, protocol.total_law), (sums.margins, protocol.margin_law)):
        if (array is None) != (law is None):
            raise TypeError(
                "totals and margins must be added up where the protocol has them, and nowhere else"
            )
        if array is not None and law is not None:
            add_noise(array, law)
    return values, sums.totals, sums.margins


def finished(
    protocol: Protocol,
    values: NDArray[np.int64],
    totals: NDArray[np.int64] | None,
    labels: list[str] | None,
    source: str,
    margins: NDArray[np.int64] | None = None,
    *,
    release: bytes,
) -> Sketches:
    """Sketches of values that have their noise; noise ids come from the release's id."""
    noises = Noises.fresh(noise_ids(release, len(values)), protocol, source)
    return Sketches(values, labels, noises, [protocol], totals, margins)


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
            "pass changed_entries=input_dim to the protocol if one unit lies in one row"
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
    """Refuses rows and streams under a protocol whose record or margins only event tables have."""
    for name in ("margins", "record"):
        if getattr(protocol, name) is not None:
            raise ParameterError(
                f"{name} must be None, except for tables: rows and streams do not say which items belong to one person; "
                f"release events with release_table, or make a protocol without {name}"
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
