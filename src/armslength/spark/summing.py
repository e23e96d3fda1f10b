"""Adding up what tasks send, in tasks of its own and at last on the driver; sums are modulo 2^64, in any order and grouping."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from armslength.errors import InputError, ParameterError
from armslength.ingest.arrays import Prepared
from armslength.ingest.sums import GroupSums
from armslength.protocol.protocol import Protocol
from armslength.spark.messages import (
    ARRIVED,
    LISTING,
    PROBLEM,
    Layout,
    Row,
    Senders,
    add_senders,
    integers,
    packed_integers,
    packed_senders,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KINDS = {kind.__name__: kind for kind in (InputError, ParameterError)}


def summed(rows: Iterable[Row]) -> Iterator[Row]:
    """The same sums in fewer rows: one for each chunk, and one that says whose they are. Notes go on as they are.

    What a task gives comes from one attempt at it, so that one list of senders will do for all of its chunks.
    """
    held: dict[int, NDArray[np.int64]] = {}
    arrived: Senders = {}
    for number, packed, senders in rows:
        if number < 0:
            yield number, bytes(packed), senders
            continue
        cells = integers(packed)
        if number not in held:
            held[number] = np.zeros(len(cells), dtype=np.int64)
        np.add(held[number], cells, out=held[number])
        add_senders(arrived, senders)
    for number, cells in held.items():
        yield number, packed_integers(cells), b""
    if arrived:
        yield ARRIVED, b"", packed_senders(arrived)


class Gathered:
    """All sums on the driver, and whether they are what one reading of every partition gives.

    Guarantee: `prepared` refuses unless every bucket of persons was read by one task, and every row that this task sent, from one reading of
    its events, was added once. So each person's events were bounded together, in one place, whatever the engine has computed
    again; a person's bucket is a function of the person alone.
    Reference: docs/privacy.md, event tables.

    Args:
        protocol: What the parties agreed on.
        layout: How sums were cut.
    """

    def __init__(self, protocol: Protocol, layout: Layout) -> None:
        self._layout = layout
        self._sums = GroupSums(protocol, layout.groups)
        self._arrived: Senders = {}
        self._listed: Senders = {}
        self._buckets: list[NDArray[np.int64]] = []

    def add(self, row: Row) -> None:
        """Adds a row, or raises the problem that it reports."""
        chunk, packed, senders = row
        if chunk == PROBLEM:
            raise problem_of(bytes(packed))
        if chunk == LISTING:
            self._buckets.append(integers(packed))
            add_senders(self._listed, senders)
            return
        add_senders(self._arrived, senders)
        if chunk == ARRIVED:
            return
        groups, columns = self._layout.place(chunk)
        shape = (groups.stop - groups.start, columns.stop - columns.start)
        self._sums.add_cells(groups.start, columns.start, integers(packed).reshape(shape))

    def prepared(self) -> Prepared:
        """The sums of all groups, ready for their noise, if all of them came, once."""
        buckets = np.concatenate([np.zeros(0, dtype=np.int64), *self._buckets])
        if len(np.unique(buckets)) != len(buckets):
            raise InputError(
                "all events of a person must come to one task, got a bucket of persons in two; nothing was charged"
            )
        sent = {name: tags for name, tags in self._listed.items() if tags}
        if sent != self._arrived:
            raise other_rows()
        return self._sums.prepared()


def other_rows() -> InputError:
    """What is said when sums cannot be of one reading of the source."""
    return InputError(
        "source must hold the same rows whenever Spark computes it again, got others, and nothing was charged; "
        "write it to a table first, and release that"
    )


def packed_problem(problem: InputError | ParameterError) -> bytes:
    """A message of ours as a note to the driver."""
    kind = next(name for name, kind in _KINDS.items() if isinstance(problem, kind))
    return f"{kind}:{problem}".encode()


def problem_of(packed: bytes) -> InputError | ParameterError:
    """The error of a note."""
    kind, message = packed.decode().split(":", 1)
    return _KINDS[kind](message)
