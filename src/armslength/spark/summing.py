"""Adding up what tasks send, in tasks and then on the driver; sums are modulo 2^64, in any order and grouping."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from armslength.errors import InputError, ParameterError
from armslength.ingest.sums import GroupSums, Sums
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

_KINDS = {kind.__name__: kind for kind in (InputError, ParameterError)}


def summed(rows: Iterable[Row]) -> Iterator[Row]:
    """The same sums in fewer rows: one for each chunk, and one with all senders. Notes are passed on."""
    sums: dict[int, NDArray[np.int64]] = {}
    arrived: Senders = {}
    for number, packed, senders in rows:
        if number < 0:
            yield number, bytes(packed), senders
            continue
        cells = integers(packed)
        if number not in sums:
            sums[number] = np.zeros(len(cells), dtype=np.int64)
        np.add(sums[number], cells, out=sums[number])
        add_senders(arrived, senders)
    for number, cells in sums.items():
        yield number, packed_integers(cells), b""
    if arrived:
        yield ARRIVED, b"", packed_senders(arrived)


class SentRows:
    """Checks that the rows on the driver are those that one reading of every partition sent.

    Every row has a tag for its content, and at its end a task lists the tags of all rows that it sent.
    """

    def __init__(self) -> None:
        self.arrived: Senders = {}
        self.listings: list[NDArray[np.int64]] = []
        self._listed: Senders = {}

    def receive(self, row: Row) -> tuple[int, NDArray[np.int64]] | None:
        """The number and the integers of a row; None for a note. Raises the error that a task reports."""
        number, packed, senders = row
        if number == PROBLEM:
            raise problem_of(bytes(packed))
        if number == LISTING:
            self.listings.append(integers(packed))
            add_senders(self._listed, senders)
            return None
        add_senders(self.arrived, senders)
        return None if number == ARRIVED else (number, integers(packed))

    def check(self) -> None:
        """Refuses unless each row that was sent arrived once."""
        if {name: tags for name, tags in self._listed.items() if tags} != self.arrived:
            raise InputError(
                "source must hold the same rows whenever Spark computes it again, got others, and nothing was charged; "
                "write it to a table first, and release that"
            )


class DriverSums:
    """The sums of all groups on the driver.

    Guarantee: `sums` refuses unless one task read each bucket of persons, and every row that it sent, from one reading of its events,
    was added once. A person's bucket is a function of the person alone. So each person's events were bounded together, in one
    place, whatever Spark computed again.
    Reference: docs/privacy.md, event tables.
    """

    def __init__(self, protocol: Protocol, layout: Layout) -> None:
        self._layout = layout
        self._groups = GroupSums(protocol, layout.groups)
        self._sent = SentRows()

    def add(self, row: Row) -> None:
        """Adds a row, or raises the error that it reports."""
        received = self._sent.receive(row)
        if received is not None:
            chunk, cells = received
            groups, columns = self._layout.place(chunk)
            shape = (groups.stop - groups.start, columns.stop - columns.start)
            self._groups.add_cells(groups.start, columns.start, cells.reshape(shape))

    def sums(self) -> Sums:
        """The sums of all groups, ready for their noise, if all rows arrived once."""
        buckets = np.concatenate([np.zeros(0, dtype=np.int64), *self._sent.listings])
        if len(np.unique(buckets)) != len(buckets):
            raise InputError("a person's events must come to one task, got two; nothing was charged")
        self._sent.check()
        return self._groups.sums()


def packed_problem(problem: InputError | ParameterError) -> bytes:
    """A message of ours as a note to the driver."""
    kind = next(name for name, kind in _KINDS.items() if isinstance(problem, kind))
    return f"{kind}:{problem}".encode()


def problem_of(packed: bytes) -> InputError | ParameterError:
    """The error of a note."""
    kind, message = packed.decode().split(":", 1)
    return _KINDS[kind](message)
