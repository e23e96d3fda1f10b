"""The one place where secret meets public: A·x from the data, noise from the operating system's bits.

Order is everything here. All of the input is read and checked first, so that bad input costs nothing; then the ledger
is charged; then noise is drawn and added; only then does anything leave.
"""

import os
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import integer, shown
from armslength.errors import ParameterError
from armslength.ingest.arrays import Prepared, prepared, project_and_add_up
from armslength.ledger.entry import check_spelling, ledger_entry
from armslength.ledger.ledger import Ledger, NoLedger, opened_ledger
from armslength.noise.draw import add_noise, draw
from armslength.protocol.protocol import Protocol
from armslength.sketches.noises import Noises
from armslength.sketches.sketches import Sketches, checked_labels


def release(  # each is a decision of its own
    protocol: Protocol,
    X: Any,
    *,
    ledger: Any,
    labels: Any = None,
    population: str = "",
    items: Any = None,
    repeat: bool = False,
    threads: int | None = None,
) -> Sketches:
    """One private sketch for each row of X.

    Guarantee: all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for neighbors with ‖x − x'‖₁ ≤ radius
    over all rows (‖x − x'‖₂ if that is the protocol's norm). Off the grid, neighbors must also differ in at most `changed_entries` entries
    over all rows. You promise both: nothing can check them. Number and labels of the rows are public, and no setting may be
    chosen by looking at X. Random bits are taken for ideal. Errors are raised before anything is charged or drawn, and show no value of X.
    Reference: docs/privacy.md, theorem 1.

    Args:
        protocol: What the parties agreed on.
        X: n rows: a dense array, a SciPy sparse matrix, or anything with an Arrow C stream. Nobody may change it meanwhile:
            it is not copied, and may be read twice.
        ledger: A `Ledger`, the path of one that exists, or `al.NO_LEDGER`.
        labels: One name for each row; None numbers them.
        population: Whose budget the ledger charges.
        items: For an open vocabulary: the items that the columns count; a table's column names if None.
        repeat: Whether the same population and labels may be released again.
        threads: At most this many threads; None takes all that the process may run.
    """
    book = opened_ledger(ledger)
    check_population(population, book)
    if threads is not None:
        integer("threads", threads, at_least=1, at_most=1024)
    ready = prepared(protocol, X, items, threads)
    names = checked_rows(protocol, ready.count, labels)
    return released(
        protocol,
        ready,
        names,
        source="rows",
        ledger=book,
        population=population,
        repeat=repeat,
        threads=threads,
    )


def released(
    protocol: Protocol,
    ready: Prepared,
    names: list[str] | None,
    *,
    source: str,
    ledger: Ledger | NoLedger,
    population: str,
    repeat: bool,
    threads: int | None = None,
) -> Sketches:
    """The release of input that is ready, after the ledger was charged: the one way from exact integers to the outside."""
    process = os.getpid()
    charge(protocol, ledger, population, names or range(ready.count), repeat=repeat)
    values = with_noise(protocol, ready, threads)
    totals = with_total_noise(protocol, ready.totals)
    if os.getpid() != process:
        # A signal handler forked in the middle: there would be two releases, and one line of the ledger.
        raise RuntimeError(
            "a release must stay in one process, but it was forked in the middle; release again"
        )
    noises = new_provenance(protocol, len(values), source)
    return Sketches(drop_bits(values, protocol), names, noises, [protocol], totals)


def with_total_noise(protocol: Protocol, totals: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """Totals plus fresh noise of their own law, modulo 2^64; None where the protocol releases none."""
    if protocol.total_law is None:
        return None
    if totals is None:
        raise TypeError("totals must be added up before there is noise")
    return totals + draw(protocol.total_law, totals.shape)


def checked_rows(protocol: Protocol, count: int, labels: Any) -> list[str] | None:
    """The label of each row, or None for numbers, if that many rows may be released and the labels are theirs."""
    if count > 1 and not protocol.on_grid and protocol.changed_entries is None:
        raise ParameterError(
            "changed_entries must say how many entries one unit can change, over all rows, when several rows are off the grid; "
            "pass changed_entries=input_dim to the protocol if one unit lies in one row"
        )
    return checked_labels(labels, count)


def with_noise(protocol: Protocol, ready: Prepared, threads: int | None) -> NDArray[np.int64]:
    """A·x plus fresh noise of the protocol's law, n x k."""
    transform = protocol.transform
    if ready.product is not None:
        add_noise(ready.product, protocol.law, threads=threads)
        return ready.product
    if protocol.noise_site == "input":
        add_input_noise = partial(add_noise, law=protocol.law, threads=threads)
        return np.concatenate(
            [
                transform.noised(part, add_input_noise, protocol.noise_site, threads=threads)
                for part in ready.parts
            ]
        )
    add_rows = ready.add_rows
    if add_rows is None:
        raise TypeError("rows must be projected before there is noise")
    values = np.empty((ready.count, transform.sketch_dim), dtype=np.int64)

    def add(start: int, stop: int) -> None:
        add_rows(start, stop, values[start:stop])

    add_noise(values, protocol.law, threads=threads, to_zero=True, then=add)
    return values


def drop_bits(values: NDArray[np.int64], protocol: Protocol) -> NDArray[np.int64]:
    """The values with their low bits cleared, as the protocol says: post-processing of the noise."""
    bits = np.int64(protocol.dropped_bits)
    return (values >> bits) << bits if bits else values


def new_provenance(protocol: Protocol, count: int, source: str) -> Noises:
    """A new random noise id for each row."""
    return Noises.fresh(secrets.token_bytes(16 * count), protocol, source)


def check_population(population: Any, ledger: Ledger | NoLedger) -> None:
    """A ledger needs to know whose budget it charges."""
    if not isinstance(population, str) or len(population) > 1000 or not population.isprintable():
        raise ParameterError(f"population must be one line of text, got {shown(population)}")
    check_spelling(population)
    if not isinstance(ledger, NoLedger) and not population:
        raise ParameterError("population must name the people whose budget the ledger charges, got nothing")


def charge(
    protocol: Protocol,
    ledger: Ledger | NoLedger,
    population: str,
    labels: Sequence[str | int],
    *,
    repeat: bool,
) -> None:
    """Writes the line of the ledger, or refuses."""
    if isinstance(ledger, NoLedger):
        return
    names = list(map(str, labels))
    ledger.charge(ledger_entry(protocol, population, names), names, repeat=repeat)


def preview_charge(
    protocol: Protocol, ledger: Ledger | NoLedger, population: str, labels: Sequence[str], *, repeat: bool
) -> None:
    """Refuses what `charge` would refuse, and writes nothing."""
    if isinstance(ledger, NoLedger):
        return
    names = list(labels)
    ledger.preview(ledger_entry(protocol, population, names), names, repeat=repeat)


# A query in the clear: a sketch without noise, for whoever may see the data anyway. Marked so everywhere.


def sketch_in_clear(
    protocol: Protocol, X: Any, *, labels: Any = None, items: Any = None, threads: int | None = None
) -> Sketches:
    """Sketches of X without any noise, **not private**: to compare with private ones, never to publish.

    Args:
        protocol: What the parties agreed on; its noise is not used.
        X: n rows, as for a release.
        labels: One name for each row; None numbers them.
        items: For an open vocabulary: the items that the columns count.
        threads: At most this many threads; None takes all that the process may run.
    """
    product, totals = project_and_add_up(protocol, X, items, threads)
    noises = Noises.none(len(product), in_clear=True)
    return Sketches(product, checked_labels(labels, len(product)), noises, [protocol], totals)
