"""Sketches: released rows, which add, subtract, scale, join and slice like the data they stand for."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import integer, number, shown
from armslength.errors import IncompatibleSketchesError, ParameterError, counted
from armslength.protocol.protocol import Protocol
from armslength.sketches.noises import SOURCES, UNKNOWN, Provenance, Release, Released, joined_noises
from armslength.threads import lazy

# What rows have in common that share one space, wherever they lie.


class InOneSpace:
    """Rows whose protocols share one space.

    Attributes:
        protocols: The protocols of all rows, each once.
    """

    protocols: tuple[Protocol, ...]

    @property
    def protocol(self) -> Protocol:
        """The one protocol of all rows."""
        if len(self.protocols) != 1:
            raise ParameterError(
                f"protocol must be one for all rows, got {len(self.protocols)}; see .protocols"
            )
        return self.protocols[0]

    @property
    def transform(self) -> Any:
        """The public transform that all rows share."""
        return self.protocols[0].transform

    @property
    def space(self) -> str:
        """The fingerprint of what all rows agree on."""
        return self.protocols[0].space


LARGEST_FACTOR, SMALLEST_FACTOR = 2.0**60, 2.0**-60
_LONGEST_LABEL = 1024


class Sketches(InOneSpace):
    """Rows of k numbers in integer units, each with a label and the noises it is made of.

    Everything here is post-processing of released rows: it costs no privacy, however often it is done.

    Attributes:
        values: n x k: int64 as released and for whole multiples, float64 once scaled by a fraction.
        released: The rows' noises, where they are as they were released; None once rows were combined.
        protocols: The protocols of all rows; they share one space.
        totals: The total Σⱼ xⱼ of each row with its noise, in grid units; None unless all rows were released with totals.
    """

    def __init__(
        self,
        values: NDArray[Any],
        labels: Sequence[str] | None,
        provenance: Sequence[Provenance] | Released,
        protocols: Sequence[Protocol],
        totals: NDArray[Any] | None = None,
    ) -> None:
        self.values = values
        self.values.flags.writeable = False
        if labels is not None:
            self.labels = tuple(labels)
        self.released = provenance if isinstance(provenance, Released) else None
        if not isinstance(provenance, Released):
            self.provenance = tuple(provenance)
        self.protocols = tuple(dict.fromkeys(protocols))
        check_same_space(self.protocols)
        self.totals = totals
        if totals is not None:
            totals.flags.writeable = False

    @lazy
    def labels(self) -> tuple[str, ...]:
        """n names; the numbers of the rows where none were given."""
        return tuple(map(str, range(len(self.values))))

    @lazy
    def provenance(self) -> tuple[Provenance, ...]:
        """For each row, its noises and their coefficients."""
        return self.released.rows() if self.released is not None else ()

    @property
    def noises(self) -> Released | tuple[Provenance, ...]:
        """The noises of all rows, in the form in which they are held."""
        return self.provenance if self.released is None else self.released

    @property
    def releases(self) -> tuple[Release, ...]:
        """What all rows were released as: each protocol with each source ("events", "rows" or "stream") under it; "unknown" for one without rows."""
        found = (
            {(self.released.protocol, self.released.source)}
            if self.released is not None
            else {(term.protocol, term.source) for row in self.provenance for term, _ in row.terms}
        )
        # A protocol that has no noise here (all of its rows were left out) still stands in the file.
        return tuple(
            (protocol, source)
            for protocol in self.protocols
            for source in [each for each in SOURCES if (protocol, each) in found] or [UNKNOWN]
        )

    @property
    def in_clear(self) -> tuple[bool, ...]:
        """For each row, whether data without noise is part of it."""
        if self.released is not None:
            return (False,) * len(self)
        return tuple(row.in_clear for row in self.provenance)

    @property
    def offsets(self) -> NDArray[np.float64]:
        """What is added to each row's stored numbers when they are read."""
        if self.released is not None:
            return np.full(len(self), self.released.offset)
        return np.array([row.offset for row in self.provenance])

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        clear = ", IN CLEAR" if any(self.in_clear) else ""
        return f"<Sketches of {counted(len(self), 'row')}, {counted(self.values.shape[1], 'coordinate')}, {self.transform.name}{clear}>"

    def __iter__(self) -> "Iterator[Sketches]":
        return (self[row] for row in range(len(self)))

    def __getitem__(self, chosen: Any) -> "Sketches":
        """Rows by number, slice, list of numbers, or label; always `Sketches`."""
        if isinstance(chosen, str):
            if chosen not in self.labels:
                there = ", ".join(map(repr, self.labels[:8])) + (", …" if len(self.labels) > 8 else "")
                raise ParameterError(f"label must be one of {there}, got {shown(chosen)}")
            chosen = self.labels.index(chosen)
        try:
            numbers = np.atleast_1d(np.arange(len(self))[chosen])
        except (IndexError, TypeError, ValueError):
            numbers = np.empty((0, 0))
        if numbers.ndim != 1:
            raise ParameterError(
                f"rows must be numbers below {len(self)}, a slice or a label, got {shown(chosen)}"
            )
        return self.rows(numbers.tolist())

    def rows(self, numbers: Sequence[int]) -> "Sketches":
        """Rows by number, in this order; one may come more than once."""
        chosen = list(numbers)
        labels = [self.labels[row] for row in chosen]
        rows = (
            [self.provenance[row] for row in chosen] if self.released is None else self.released.take(chosen)
        )
        totals = None if self.totals is None else self.totals[chosen]
        return Sketches(self.values[chosen], labels, rows, self.protocols, totals)

    def blocks(self, rows: int, first: int = 0) -> "Iterator[Sketches]":
        """All rows in order from the first, at most so many at a time; values are shared, not copied."""
        step = integer("rows", rows, at_least=1, at_most=2**40)
        begin = integer("first", first, at_least=0, at_most=len(self))
        return (self.span(start, start + step) for start in range(begin, len(self), step))

    def span(self, start: int, stop: int) -> "Sketches":
        """Consecutive rows; values are shared, not copied."""
        part = slice(start, stop)
        noises = self.provenance[part] if self.released is None else self.released.take(part)
        totals = None if self.totals is None else self.totals[part]
        return Sketches(self.values[part], self.labels[part], noises, self.protocols, totals)

    def __add__(self, other: Any) -> "Sketches":
        return self._combined(other, 1, "+")

    def __sub__(self, other: Any) -> "Sketches":
        return self._combined(other, -1, "−")

    def __neg__(self) -> "Sketches":
        return self * -1

    def __mul__(self, factor: Any) -> "Sketches":
        """Every row times a number: whole numbers keep integers."""
        coefficient = number("factor of sketches", factor, above=-LARGEST_FACTOR, at_most=LARGEST_FACTOR)
        if coefficient != 0 and abs(coefficient) < SMALLEST_FACTOR:
            raise ParameterError(
                f"factor of sketches must be 0 or at least 2^-60 in magnitude, got {shown(factor)}"
            )
        keeps_integers = isinstance(factor, (int, np.integer)) and abs(coefficient) < 2**31
        times = np.int64(factor) if keeps_integers and self.values.dtype == np.int64 else coefficient
        rows = [row.times(coefficient) for row in self.provenance]
        totals = None if self.totals is None else self.totals * times
        return Sketches(self.values * times, self.labels, rows, self.protocols, totals)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Sketches":
        return self.__mul__(
            1 / number("divisor of sketches", divisor, above=SMALLEST_FACTOR / 2, at_most=LARGEST_FACTOR)
        )

    def _combined(self, other: Any, sign: int, symbol: str) -> "Sketches":
        """Row by row; one row is combined with every row."""
        if not isinstance(other, Sketches):
            raise TypeError(f"sketches combine with sketches, got {type(other).__name__}")
        check_same_space((*self.protocols, *other.protocols))
        count = max(len(self), len(other))
        if not {len(self), len(other)} <= {1, count}:
            raise ParameterError(
                f"sketches must have as many rows as each other, or one, got {len(self)} and {len(other)}"
            )
        values = self.values + sign * other.values
        left, right = (part.rows([0] * count) if len(part) == 1 else part for part in (self, other))
        rows = [a.plus(b, sign) for a, b in zip(left.provenance, right.provenance, strict=True)]
        labels = [_shortened(f"{a} {symbol} {b}") for a, b in zip(left.labels, right.labels, strict=True)]
        totals = None if left.totals is None or right.totals is None else left.totals + sign * right.totals
        return Sketches(values, labels, rows, self.protocols + other.protocols, totals)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one Parquet file, whole or not at all, with the release card in its metadata."""
        from armslength.sketches.sketch_file import save_sketches  # noqa: PLC0415  # files know sketches, not the other way

        save_sketches(self, path)


def _shortened(label: str) -> str:
    """The label, cut to as many bytes as a file takes."""
    return label.encode()[:_LONGEST_LABEL].decode(errors="ignore")


def check_same_space(protocols: Sequence[Protocol]) -> None:
    """Refuses protocols whose sketches cannot be compared, and names what differs."""
    first = protocols[0]
    for other in protocols[1:]:
        if other.space != first.space:
            ours, theirs = first.space_fields(), other.space_fields()
            differing = ", ".join(_differences(ours, theirs))
            raise IncompatibleSketchesError(f"sketches must share one space, got different {differing}")


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    names = [name for name in ours if ours[name] != theirs[name]]
    if "transform" in names and ours["transform"]["name"] == theirs["transform"]["name"]:
        a, b = ours["transform"]["parameters"], theirs["transform"]["parameters"]
        inner = [f"transform {key}" for key in a if a[key] != b.get(key)]
        names = [name for name in names if name != "transform"] + inner
    return names


def checked_labels(labels: Any, count: int) -> list[str] | None:
    """One label for each row, if that is what they are; None for the rows' numbers."""
    if labels is None:
        return None
    listed = [labels] if isinstance(labels, str) else list(labels) if isinstance(labels, Sequence) else None
    if listed is None or not all(isinstance(label, str) for label in listed):
        raise ParameterError(f"labels must be a list of strings, got {shown(labels)}")
    if len(listed) != count:
        raise ParameterError(f"labels must name {count} rows, got {len(listed)}")
    if any(
        not 1 <= len(label.encode(errors="replace")) <= _LONGEST_LABEL or not label.isprintable()
        for label in listed
    ):
        raise ParameterError(f"labels must be printable, 1 to {_LONGEST_LABEL} bytes each, got another")
    if len(set(listed)) != len(listed):
        raise ParameterError("labels must differ from each other, got duplicates")
    return listed


def concat(parts: Sequence[Sketches]) -> Sketches:
    """All rows of all parts, in order; they must share one space."""
    listed = list(parts)
    if not listed or not all(isinstance(part, Sketches) for part in listed):
        raise ParameterError("concat must get a list of sketches, got something else")
    protocols = tuple(protocol for part in listed for protocol in part.protocols)
    check_same_space(protocols)
    return Sketches(
        np.concatenate([part.values for part in listed]),
        [label for part in listed for label in part.labels],
        joined_noises([part.noises for part in listed]),
        protocols,
        _joined_totals(listed),
    )


def summed(sketches: Sketches, label: str) -> Sketches:
    """One row, the sum of all rows: the sketch of the summed data, with the noises of all of them."""
    names = checked_labels([label], 1)
    total = sketches[0]
    for row in range(1, len(sketches)):
        total += sketches[row]
    return Sketches(total.values.copy(), names, total.provenance, sketches.protocols, total.totals)


def _joined_totals(parts: list[Sketches]) -> NDArray[Any] | None:
    totals = [part.totals for part in parts if part.totals is not None]
    return np.concatenate(totals) if len(totals) == len(parts) else None
