"""Adding up what tasks send, in tasks of its own and at last on the driver; sums are modulo 2^64, in any order and grouping."""

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
    """The same sums in fewer rows: one for each chunk, and one that says whose they are. Notes go on as they are.

    What a task gives comes from one attempt at it, so that one list of senders will do for all of its chunks.
    """
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
    """Whether the rows that came to the driver are those that one reading of every partition has sent.

    Every row has a tag for what is in it, and at its end a task lists the tags of all rows that it sent.

    Attributes:
        arrived: The tags of the rows that came, by sender.
        listings: What else tasks have listed.
    """

    def __init__(self) -> None:
        self.arrived: Senders = {}
        self.listings: list[NDArray[np.int64]] = []
        self._listed: Senders = {}

    def receive(self, row: Row) -> tuple[int, NDArray[np.int64]] | None:
        """The number and the integers of a row; None for a note; raises the problem that a task reports."""
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
        """Refuses anything else than each row that was sent, once."""
        if {name: tags for name, tags in self._listed.items() if tags} != self.arrived:
            raise InputError(
                "source must hold the same rows whenever Spark computes it again, got others, and nothing was charged; "
                "write it to a table first, and release that"
            )


class DriverSums:
    """The sums of all groups on the driver.

    Guarantee: `sums` refuses unless every bucket of persons was read by one task, and every row that this task sent, from one reading of
    its events, was added once. So each person's events were bounded together, in one place, whatever the engine has computed
    again; a person's bucket is a function of the person alone.
    Reference: docs/privacy.md, event tables.

    Args:
        protocol: What the parties agreed on.
        layout: How sums were cut.
    """

    def __init__(self, protocol: Protocol, layout: Layout) -> None:
        self._layout = layout
        self._groups = GroupSums(protocol, layout.groups)
        self._sent = SentRows()

    def add(self, row: Row) -> None:
        """Adds a row, or raises the problem that it reports."""
        received = self._sent.receive(row)
        if received is not None:
            chunk, cells = received
            groups, columns = self._layout.place(chunk)
            shape = (groups.stop - groups.start, columns.stop - columns.start)
            self._groups.add_cells(groups.start, columns.start, cells.reshape(shape))

    def sums(self) -> Sums:
        """The sums of all groups, ready for their noise, if all of them came, once."""
        buckets = np.concatenate([np.zeros(0, dtype=np.int64), *self._sent.listings])
        if len(np.unique(buckets)) != len(buckets):
            raise InputError(
                "all events of a person must come to one task, got a bucket of persons in two; nothing was charged"
            )
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
