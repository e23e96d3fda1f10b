"""From bounded events to exact integers for each group, **not private**: a pure function, and sums of what it gives.

Sketches are linear, so partial ones from anywhere add up; noise is drawn once, at the end, in one place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from armslength.protocol.projection import Prepared
from armslength.protocol.protocol import Protocol
from armslength.tables.bounds import BoundedEvents
from armslength.transforms.sparse_jl import SparseJL

_MOST_COUNTS = 1 << 24  # 128 MB
_MOST_ADDED = 1 << 22  # 32 MB


@dataclass(frozen=True)
class PartialSums:
    """The exact integers of some events: to be added up, never to be released.

    Attributes:
        groups: The numbers of the groups that occur, each once.
        values: A·x of each, modulo 2^64; or x itself, where that is projected at the end.
        totals: Σ amount of each, modulo 2^64.
    """

    groups: NDArray[np.int64]
    values: NDArray[np.int64]
    totals: NDArray[np.int64]


def partial_sums(
    protocol: Protocol, events: BoundedEvents, *, counts_only: bool = False, threads: int | None = None
) -> PartialSums:
    """The integers of these events for each group that occurs in them.

    Args:
        protocol: What says which items there are.
        events: Events within everybody's bound.
        counts_only: Whether to count only, without the projection.
        threads: At most this many threads; None takes all that the process may run.
    """
    groups, rows = np.unique(events.groups, return_inverse=True)
    transform = protocol.transform
    named: dict[str, Any] = {}
    if transform.input_dim is None:
        coded = events.items.dictionary_encode()
        columns, width = coded.indices.to_numpy(), len(coded.dictionary)
        named["items"] = coded.dictionary.to_pylist()
    else:
        columns, width = events.items.to_numpy(), transform.input_dim
    shape = (len(groups), width)
    counts = sparse.coo_array((events.amounts, (rows, columns)), shape=shape).tocsr()
    counts.sum_duplicates()
    values = counts.toarray() if counts_only else transform.apply(counts, **named, threads=threads)
    totals = np.zeros(len(groups), dtype=np.int64)
    np.add.at(totals, rows, events.amounts)
    return PartialSums(groups.astype(np.int64), values, totals)


class GroupSums:
    """The sum of partial sums, one row for each public group; a group without events keeps its zeros.

    Args:
        protocol: What the parties agreed on.
        count: How many groups there are.
        threads: At most this many threads; None takes all that the process may run.
    """

    def __init__(self, protocol: Protocol, count: int, threads: int | None = None) -> None:
        self._protocol = protocol
        self._threads = threads
        transform = protocol.transform
        width = transform.input_dim
        # SparseJL costs little for each event. The others cost much for each vector: they wait until all are counted, if
        # that fits.
        self._counts_only = (
            not isinstance(transform, SparseJL) and width is not None and count * width <= _MOST_COUNTS
        )
        self._values = np.zeros(
            (count, width if self._counts_only and width is not None else transform.sketch_dim),
            dtype=np.int64,
        )
        self._totals = np.zeros(count, dtype=np.int64)

    def add(self, events: BoundedEvents) -> None:
        """Adds events, some groups at a time, so that what is added stays small beside the sums."""
        at_once = max(1, _MOST_ADDED // self._values.shape[1])
        present = np.unique(events.groups)
        if len(present) <= at_once:
            self._add(events)
            return
        order = np.argsort(events.groups, kind="stable")
        starts = np.searchsorted(events.groups[order], present[::at_once])
        for rows in np.split(order, starts[1:]):
            self._add(
                BoundedEvents(events.groups[rows], events.items.take(pa.array(rows)), events.amounts[rows])
            )

    def _add(self, events: BoundedEvents) -> None:
        part = partial_sums(self._protocol, events, counts_only=self._counts_only, threads=self._threads)
        self._values[part.groups] += part.values
        self._totals[part.groups] += part.totals

    def prepared(self) -> Prepared:
        """All sums, ready for their noise."""
        values = (
            self._protocol.transform.apply(self._values, threads=self._threads)
            if self._counts_only
            else self._values
        )
        return Prepared([], values, None, self._totals if self._protocol.total_share else None)
