"""Which noises a row is made of. Cumulants add only for independent noises, so noise has identity."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.laws import DiscreteLaplace, Law
from armslength.protocol.protocol import Protocol

SOURCES = ("events", "rows", "stream")
UNKNOWN = "unknown"  # for a protocol before any release, or without any row of it

Release = tuple[Protocol, str]  # a protocol, and what was released under it: one of SOURCES, or UNKNOWN


@dataclass(frozen=True)
class NoiseSource:
    """One released row's noise: a random public id, and the protocol under which it was drawn.

    Attributes:
        id: What tells this noise from all others.
        protocol: Under which it was drawn.
        source: What was released. "events": the software bounded what each person adds; "rows" and "stream": the party promised it.
            It is no part of the identity.
    """

    id: str
    protocol: Protocol
    source: str = field(compare=False)

    @property
    def law(self) -> Law:
        """The law of each coordinate's noise."""
        return self.protocol.law

    @property
    def total_law(self) -> DiscreteLaplace:
        """The law of the total's noise."""
        if self.protocol.total_law is None:
            raise ParameterError("rows must have been released with totals, got one without")
        return self.protocol.total_law


@dataclass(frozen=True)
class Provenance:
    """A row as a linear combination of released rows.

    Attributes:
        terms: (noise source, coefficient), by id; no coefficient is 0.
        offset: What is added to the stored integers when they are read: the middle of the dropped bits.
        in_clear: Whether data without noise is part of it.
    """

    terms: tuple[tuple[NoiseSource, float], ...]
    offset: float = 0.0
    in_clear: bool = False

    def plus(self, other: "Provenance", coefficient: float = 1.0) -> "Provenance":
        """This row plus coefficient times the other: shared noises are merged, not counted twice."""
        total = dict(self.terms)
        for source, theirs in other.terms:
            ours, added = total.get(source, 0.0), coefficient * theirs
            # What is left of a coefficient after cancellation is rounding, not noise; a small one that met nothing is noise.
            merged = ours + added
            total[source] = merged if abs(merged) > 1e-13 * max(abs(ours), abs(added)) else 0.0
        return self._of(total.items(), self.offset + coefficient * other.offset, other.in_clear)

    def times(self, coefficient: float) -> "Provenance":
        """This row times a number."""
        return self._of(((source, coefficient * c) for source, c in self.terms), coefficient * self.offset)

    def _of(
        self, terms: Iterable[tuple[NoiseSource, float]], offset: float, in_clear: bool = False
    ) -> "Provenance":
        kept = sorted((term for term in terms if term[1] != 0), key=lambda term: term[0].id)
        return Provenance(tuple(kept), offset, self.in_clear or in_clear)


@dataclass(frozen=True, eq=False)
class Released:
    """Rows as they were released: each has one noise, of one protocol. A `Provenance` is made of one when it is asked for.

    Attributes:
        ids: The noise id of each row, 16 bytes.
        protocol: Under which all of them were drawn.
        source: What was released, as in `NoiseSource`.
    """

    ids: NDArray[np.void]
    protocol: Protocol
    source: str

    @classmethod
    def of(cls, ids: bytes, protocol: Protocol, source: str) -> "Released":
        """Rows with these ids, 16 bytes for each."""
        return cls(np.frombuffer(ids, dtype="V16"), protocol, source)

    @property
    def offset(self) -> float:
        """The middle of the dropped bits."""
        return middle_of_dropped_bits(self.protocol)

    @property
    def are_different(self) -> bool:
        """Whether no noise comes twice."""
        return len(np.unique(self.ids)) == len(self.ids)

    def take(self, numbers: Any) -> "Released":
        """Rows by number."""
        return Released(self.ids[numbers], self.protocol, self.source)

    def rows(self) -> tuple[Provenance, ...]:
        """Each row's noise by itself."""
        offset = self.offset
        return tuple(
            Provenance(((NoiseSource(each.hex(), self.protocol, self.source), 1.0),), offset)
            for each in self.ids.tolist()
        )

    @classmethod
    def joined(cls, parts: Sequence["Released"]) -> "Released":
        """All rows of parts that have one protocol and one source."""
        return cls(np.concatenate([part.ids for part in parts]), parts[0].protocol, parts[0].source)


def middle_of_dropped_bits(protocol: Protocol) -> float:
    """What is added to a released number when it is read: half of what dropping its bits can have taken away."""
    return float(2**protocol.dropped_bits - 1) / 2


def joined_noises(parts: Sequence[Released | Sequence[Provenance]]) -> Released | list[Provenance]:
    """The noises of all parts, in order; as arrays where all were released under one protocol from one kind of source."""
    released = [part for part in parts if isinstance(part, Released)]
    if (
        released
        and len(released) == len(parts)
        and len({(each.protocol, each.source) for each in released}) == 1
    ):
        return Released.joined(released)
    return [row for part in parts for row in (part.rows() if isinstance(part, Released) else part)]
