"""Sketches: released rows, which add, subtract, scale, join and slice like the data they stand for."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import LONGEST_LABEL, checked_labels, number, short_repr
from armslength.errors import IncompatibleSketchesError, ParameterError, UnknownNameError, plural
from armslength.privacy.exact_numbers import decimal_text
from armslength.protocol.margins import Margins
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol
from armslength.results import Result
from armslength.sketches.misfits import Misfit, Source, check_all_fit, differing_settings, misfits
from armslength.sketches.noises import LARGEST_FACTOR, SMALLEST_FACTOR, SOURCES, UNKNOWN, Noises, Release
from armslength.sketches.sketch_format import list_column, usual_margins, write_sketch_file
from armslength.threads import cached_attribute

_COORDINATES_IN_REPR = 3


def unknown_label(label: str, labels: Iterable[str]) -> UnknownNameError:
    """The error for a label that no row has, with what may be meant."""
    known = list(islice(labels, 10_000))
    by_casefold = {name.casefold(): name for name in known}
    close = [repr(by_casefold[match]) for match in get_close_matches(label.casefold(), by_casefold, 3)]
    advice = f"there are {', '.join(map(repr, known[:8]))}{', …' if len(known) > 8 else ''}"
    if close:
        advice = f"did you mean {' or '.join(close)}?"
    return UnknownNameError(f"no sketch labelled {short_repr(label)}; {advice}")


class Sketches(Result):
    """Rows of k numbers in integer units, each with a label and the noises it is made of.

    Everything here is post-processing of released rows: it costs no privacy, however often it is done. `sketches["north"]`,
    `sketches[["north", "south"]]`, `sketches[2:5]` and `sketches[0]` select rows. Rows add, subtract and scale, also by NumPy's
    numbers; `sum(sketches)` is one row. `np.asarray(sketches)` is `.values`: n x k in integer units.

    Attributes:
        values: n x k: int64 as released and for whole multiples, float64 once scaled by a fraction.
        labels: n names; the numbers of the rows where none were given.
        noises: The noises of all rows.
        protocols: The protocols of all rows; they share one space.
        transform: The public transform that all rows share.
        totals: The total Σⱼ xⱼ of each row with its noise, in grid units; of votes, that is the number of people times 2^20. None unless
            all rows were released with totals.
        spread: n x 2, of votes, in grid units, each with its noise: the sum of the squared lengths of people's votes in the sketch, and the norm of
            the sum of their squares; n x 1 without the second, where sketches have more than 4,096 numbers. It tells how far chance
            reaches. None unless all rows have it.
        margins: n x (M + 1), of votes, in grid units, each with its noise: how many people have an item in each of `margin_names`, and four times
            how many are left out of each at most; None unless all rows were released with the same margins. Where
            only some rows have those that most have, choosing these rows gives them: `sketches[sketches.with_margins]`.
        in_clear: For each row, whether data without noise is part of it.
    """

    __array_ufunc__ = None  # so that NumPy's numbers leave `2 * sketches` to us

    def __init__(
        self,
        values: NDArray[Any],
        labels: Sequence[str] | None,
        noises: Noises,
        protocols: Iterable[Protocol],
        totals: NDArray[Any] | None = None,
        margins: NDArray[Any] | None = None,
        spread: NDArray[Any] | None = None,
    ) -> None:
        self.protocols = tuple(protocols)
        if len(self.protocols) > 1:
            self.protocols = tuple(dict.fromkeys(self.protocols))
            check_same_space(self.protocols)
        self.transform = self.protocols[0].transform
        self.values = values
        self.labels = tuple(map(str, range(len(values))) if labels is None else labels)
        self.noises = noises
        self.totals, self.spread = totals, spread
        self.kept_margins = margins  # rows without them are NaN
        self.margins = None if margins is None or self._has_gaps else margins
        self.in_clear: tuple[bool, ...] = tuple(noises.in_clear.tolist())
        for array in (values, totals, margins, spread):
            if array is not None:
                array.flags.writeable = False

    @property
    def protocol(self) -> Protocol:
        """The one protocol of all rows."""
        if len(self.protocols) != 1:
            count = len(self.protocols)
            raise ParameterError(f"the rows have {count} protocols, not one; see .protocols")
        return self.protocols[0]

    @property
    def space(self) -> str:
        """The fingerprint of what all rows agree on."""
        return self.protocols[0].space

    @property
    def margin_names(self) -> tuple[str, ...]:
        """The M item groups of the margins; none without margins. The last is "(other)", unless they are values of a record."""
        return () if self.margins is None or self.item_groups is None else self.item_groups.names

    @property
    def _has_gaps(self) -> bool:
        """Whether some rows have margins and others have none."""
        kept = self.kept_margins
        return kept is not None and kept.dtype == np.float64 and bool(np.isnan(kept[:, -1]).any())

    @property
    def with_margins(self) -> NDArray[np.bool_]:
        """For each row, whether it has margins, and the same as all that have some."""
        if self.kept_margins is None or not self._has_gaps:
            return np.full(len(self), self.margins is not None)
        has: NDArray[np.bool_] = ~np.isnan(self.kept_margins[:, -1])
        return has

    @cached_attribute
    def item_groups(self) -> Margins | None:
        """What the margins of the rows that have them count."""
        if self.kept_margins is None:
            return None
        kinds = {protocol.margins for protocol in self.protocols} - {None}
        if len(kinds) > 1:
            released = (self.noises.terms(row) for row in np.flatnonzero(self.with_margins).tolist())
            kinds = {next((terms[0][0].margins for terms in released if terms), None)}
        return next(iter(kinds), None)

    @property
    def misfits(self) -> list[Misfit]:
        """The rows that were released with other settings than most, and which settings differ."""
        rows_by_protocols: dict[tuple[Protocol, ...], list[str]] = {}
        for row, label in enumerate(self.labels):
            protocols = tuple(dict.fromkeys(protocol for protocol, _ in self.noises.terms(row)))
            if protocols:  # without noise there are no settings
                rows_by_protocols.setdefault(protocols, []).append(label)
        return misfits(
            [
                Source(protocols, len(labels), labels.__iter__)
                for protocols, labels in rows_by_protocols.items()
            ]
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        """What all rows were released as: each protocol with each source ("events", "rows" or "stream") under it; "unknown" for one without rows."""
        present = {self.noises.releases[number] for number in np.unique(self.noises.numbers).tolist()}
        # A protocol that has no noise here (all of its rows were left out) still stands in the file.
        return tuple(
            (protocol, source)
            for protocol in self.protocols
            for source in [known for known in SOURCES if (protocol, known) in present] or [UNKNOWN]
        )

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> "Iterator[Sketches]":
        return (self.span(row, row + 1) for row in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sketches, (
            self.values,
            self.labels,
            self.noises,
            self.protocols,
            self.totals,
            self.kept_margins,
            self.spread,
        )

    def equals(self, other: "Sketches") -> bool:
        """Whether both have the same values of the same type, labels, noises, protocols, totals, margins and spread."""
        names = "values", "totals", "margins", "spread"
        numbers = ((getattr(self, name), getattr(other, name)) for name in names)
        return (
            self.values.dtype == other.values.dtype
            and all(np.array_equal(left, right) for left, right in numbers)
            and (self.labels, self.protocols) == (other.labels, other.protocols)
            and self.noises == other.noises
        )

    def __contains__(self, label: object) -> bool:
        """Whether a row has this label."""
        return label in self.labels

    def __getitem__(self, chosen: Any) -> "Sketches":
        """Rows by number, slice, mask or label, or by a list of numbers or labels.

        A label that several rows have is refused: select those by number.
        """
        count = len(self)
        if isinstance(chosen, slice):
            if any(isinstance(end, str) for end in (chosen.start, chosen.stop)):
                raise ParameterError("a slice takes row numbers; name all labels in a list")
            return self.rows(range(count)[chosen])
        try:
            array = np.asarray(chosen)
        except ValueError:  # lists of different lengths
            array = np.empty((0, 0))
        if array.dtype == np.bool_ and array.shape == (count,):
            return self.rows(np.flatnonzero(array).tolist())
        keys = np.atleast_1d(array).tolist()
        if keys and array.ndim <= 1 and all(isinstance(key, str) for key in keys):
            return self.rows(self._row_numbers(keys))
        is_numbers = array.ndim <= 1 and (not keys or array.dtype.kind in "iu")
        if not is_numbers or not all(-count <= key < count for key in keys):
            raise ParameterError(
                f"rows must be numbers below {count}, a slice, a label or labels, got {short_repr(chosen)}"
            )
        return self.rows([key % count for key in keys])

    def _row_numbers(self, labels: list[str]) -> list[int]:
        """The number of the one row that has each label."""
        rows_by_label: dict[str, list[int]] = {label: [] for label in labels}
        for row, label in enumerate(self.labels):
            if label in rows_by_label:
                rows_by_label[label].append(row)
        for label, rows in rows_by_label.items():
            if not rows:
                raise unknown_label(label, self.labels)
            if len(rows) > 1:
                raise ParameterError(
                    f"{len(rows)} rows are labelled {short_repr(label)}; choose one by its number: "
                    f"{', '.join(map(str, rows[:8]))}{', …' if len(rows) > 8 else ''}"
                )
        return [rows_by_label[label][0] for label in labels]

    def rows(self, numbers: Sequence[int]) -> "Sketches":
        """Rows by number, in this order; one may come more than once."""
        chosen = list(numbers)
        return self._select(chosen, [self.labels[row] for row in chosen])

    def span(self, start: int, stop: int) -> "Sketches":
        """Consecutive rows; values are shared, not copied."""
        part = slice(start, stop)
        return self._select(part, self.labels[part])

    def _select(self, rows: Any, labels: Sequence[str]) -> "Sketches":
        return _combined([self], labels, self.noises.take(rows), lambda numbers: numbers[rows])

    def __add__(self, other: Any) -> "Sketches":
        return self._combine(other, 1, "+")

    def __radd__(self, other: Any) -> "Sketches":
        if type(other) is int and other == 0:  # what sum() begins with
            return self
        return self._combine(other, 1, "+")

    def __sub__(self, other: Any) -> "Sketches":
        return self._combine(other, -1, "−")

    def __neg__(self) -> "Sketches":
        return self * -1

    def __mul__(self, factor: Any) -> "Sketches":
        """Every row times a number: whole numbers keep integers."""
        coefficient = number("factor of sketches", factor, above=-LARGEST_FACTOR, at_most=LARGEST_FACTOR)
        if coefficient != 0 and abs(coefficient) < SMALLEST_FACTOR:
            raise ParameterError(
                f"factor of sketches must be 0 or at least 2^-60 in magnitude, got {short_repr(factor)}"
            )
        keeps_integers = isinstance(factor, (int, np.integer)) and abs(coefficient) < 2**31
        times = np.int64(factor) if keeps_integers and self.values.dtype == np.int64 else coefficient
        noises = self.noises.times(coefficient)
        return _combined([self], self.labels, noises, lambda numbers: numbers * times)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Sketches":
        smallest = SMALLEST_FACTOR / 2
        return self * (1 / number("divisor of sketches", divisor, above=smallest, at_most=LARGEST_FACTOR))

    def _combine(self, other: Any, sign: int, symbol: str) -> "Sketches":
        """Row by row; one row is combined with every row."""
        if not isinstance(other, Sketches):
            raise TypeError(f"sketches combine with sketches, got {type(other).__name__}")
        count = max(len(self), len(other))
        if not {len(self), len(other)} <= {1, count}:
            raise ParameterError(
                f"cannot combine sketches of {len(self)} and {len(other)} rows: both need as many rows, or one of them one row"
            )
        left, right = (part.rows([0] * count) if len(part) == 1 else part for part in (self, other))
        names = (f"{a} {symbol} {b}" for a, b in zip(left.labels, right.labels, strict=True))
        labels = [name.encode()[:LONGEST_LABEL].decode(errors="ignore") for name in names]
        noises = left.noises.plus(right.noises, sign)
        return _combined([left, right], labels, noises, lambda first, second: first + sign * second)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one Parquet file, whole or not at all, with the release card in its metadata."""
        write_sketch_file(path, self)

    def to_arrow(self) -> pa.Table:
        """One row for each: `label`, `values` (a list of k numbers), `total`, `spread` and `margins` where these were released, and `in_clear`."""
        total = {} if self.totals is None else {"total": pa.array(self.totals)}
        lists = {"spread": self.spread, "margins": self.margins}
        others = {name: list_column(numbers) for name, numbers in lists.items() if numbers is not None}
        labels, in_clear = pa.array(self.labels, pa.string()), pa.array(self.in_clear, pa.bool_())
        columns = {"label": labels, "values": list_column(self.values), **total, **others}
        return pa.table({**columns, "in_clear": in_clear})

    def _title(self) -> str:
        epsilons = sorted({protocol.epsilon for protocol in self.protocols})
        epsilon = " to ".join(dict.fromkeys(map(decimal_text, (epsilons[0], epsilons[-1]))))
        clear = "; IN CLEAR, not private" if any(self.in_clear) else ""
        return (
            f"Sketches of {plural(len(self), 'row')}, {plural(self.values.shape[1], 'coordinate')}, "
            f"{self.transform.name}, ε = {epsilon}{clear}"
        )

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        table = self.span(0, rows).to_arrow()
        hidden = "values", "margins", "spread"
        table = table.select([name for name in table.column_names if name not in hidden])
        if self.spread is not None and self.totals is not None:
            people = np.rint(self.totals[:rows] / VOTE).astype(np.int64)
            table = table.drop(["total"]).append_column("people", pa.array(people))
        for column in range(min(self.values.shape[1], _COORDINATES_IN_REPR)):
            table = table.append_column(f"values[{column}]", pa.array(self.values[:rows, column]))
        return table, len(self)


def concat(parts: Sequence[Sketches]) -> Sketches:
    """All rows of all parts, in order; they must share one space."""
    parts = list(parts)
    if not parts or not all(isinstance(part, Sketches) for part in parts):
        raise ParameterError("concat() takes a list of sketches")
    check_all_fit([Source(part.protocols, len(part), part.labels.__iter__) for part in parts])
    labels = [label for part in parts for label in part.labels]
    noises = Noises.concat([part.noises for part in parts])
    return _combined(parts, labels, noises, lambda *numbers: np.concatenate(numbers))


def sum_rows(sketches: Sketches, label: str) -> Sketches:
    """One row, the sum of all rows: the sketch of the summed data, with the noises of all of them."""
    if not len(sketches):
        raise ParameterError("sketches has no rows to add up", "sketches")
    names = checked_labels([label], 1) or ()
    noises = sketches.noises.sum()
    return _combined([sketches], names, noises, lambda numbers: numbers.sum(axis=0, keepdims=True))


def _combined(
    parts: Sequence[Sketches], labels: Sequence[str], noises: Noises, combine: Callable[..., NDArray[Any]]
) -> Sketches:
    """What is made of the numbers of all parts; of totals, if all parts have them; and of the margins that most rows have."""
    protocols = tuple(protocol for part in parts for protocol in part.protocols)
    check_same_space(protocols)
    totals = [part.totals for part in parts if part.totals is not None]
    spreads = [part.spread for part in parts if part.spread is not None]
    item_groups = usual_margins((part.item_groups, int(part.with_margins.sum())) for part in parts)
    values, margins = combine(*(part.values for part in parts)), None
    if item_groups is not None:
        margins = combine(*(_margins_of(part, item_groups) for part in parts))
        missing = np.isnan(margins[:, -1])
        if len(missing) and missing.all():
            margins = None
        elif not missing.any():
            margins = margins.astype(values.dtype, copy=False)  # NaN had made them floats
    return Sketches(
        values,
        labels,
        noises,
        protocols,
        combine(*totals) if len(totals) == len(parts) else None,
        margins,
        combine(*spreads) if len(spreads) == len(parts) else None,
    )


def _margins_of(part: Sketches, item_groups: Margins) -> NDArray[Any]:
    """The margins of a part that counts these item groups; of another, as many NaN."""
    if part.kept_margins is not None and part.item_groups == item_groups:
        return part.kept_margins
    return np.full((len(part), len(item_groups.names) + 1), np.nan)


def check_same_space(protocols: Sequence[Protocol]) -> None:
    """Refuses protocols whose sketches cannot be compared, and names what differs."""
    first = protocols[0]
    for other in protocols[1:]:
        if other.space != first.space:
            differing = ", ".join(differing_settings(first, other))
            raise IncompatibleSketchesError(
                f"sketches cannot be compared, because these settings differ: {differing}"
            )
