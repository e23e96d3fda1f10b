"""Estimates: values with their variances, intervals and labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import short_repr
from armslength.errors import ParameterError, plural
from armslength.estimates.intervals import Bounds, Level, Rule
from armslength.estimates.pair_noise import Floats
from armslength.results import Result, data_frame
from armslength.sketches.sketches import unknown_label

_QUICK = 100_000  # values whose intervals take no noticeable time


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Result):
    """Estimates of one quantity for rows or pairs of rows, in data units.

    `estimate["north", "south"]` is the estimate of one pair, `estimate["north"]` of one row against all others, and
    `estimate[["north", "south", "east"]]` of the pairs among some rows. `float` gives the value of a single row or pair.

    Attributes:
        quantity: What is estimated.
        value: n, or n x m for pairs.
        labels: The names along each axis.
        in_clear: Along each axis, whether data without noise is part of the row.
        within: Whether the pairs are those of one set of sketches, each counted once.
        note: What must be known to read it; empty if nothing.
        rule: How the values become variances and intervals.
    """

    quantity: str
    value: Floats
    labels: tuple[tuple[str, ...], ...]
    in_clear: tuple[tuple[bool, ...], ...]
    within: bool
    note: str
    rule: Rule

    @property
    def variance(self) -> Floats:
        """The variance over seed and noise: the exact formula, at the estimate where the formula has an unknown."""
        variance = self.rule.variance
        if variance is None:
            raise ParameterError(
                f"variance is known only for squared quantities, not for {self.quantity}; use interval()"
            )
        return variance

    @property
    def std_error(self) -> Floats:
        """The square root of the variance."""
        return np.sqrt(self.variance)

    @property
    def pairs(self) -> int:
        """How many different quantities there are."""
        if self.within:
            return max(1, len(self.labels[0]) * (len(self.labels[0]) - 1) // 2)
        return max(1, self.value.size)

    def interval(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> Bounds:
        """(lower, upper) ends that hold the truth with this confidence, over seed and noise.

        Args:
            level: The confidence, such as 0.95.
            method: "asymptotic", for differences spread over many coordinates (docs/estimates.md says how many), or
                "guaranteed", which holds for all.
            simultaneous: Whether all intervals must hold together (Bonferroni).
        """
        return self.rule.interval(Level.of(level, method, self.pairs if simultaneous else 1))

    def resolved(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> NDArray[np.bool_]:
        """Whether the interval excludes 0. The threshold is that of the exact law at 0."""
        lower, upper = self.interval(level, method=method, simultaneous=simultaneous)
        return (lower > 0) | (upper < 0)

    def __getitem__(self, chosen: Any) -> "Estimate":
        """Part of the estimate, by label or list of labels along each axis."""
        keys = chosen if isinstance(chosen, tuple) else (chosen,)
        if len(keys) > self.value.ndim:
            raise ParameterError(
                f"{self.quantity} have {plural(self.value.ndim, 'label')} each, got {len(keys)}"
            )
        numbers = [self._numbers(axis, key) for axis, key in enumerate(keys)]
        within = self.within and len(keys) == 1 and not isinstance(chosen, str)
        if len(numbers) < self.value.ndim:
            everything = np.arange(self.value.shape[1])
            # A row within its own set is compared with the others.
            others = np.delete(everything, numbers[0]) if self.within else everything
            numbers.append(numbers[0] if within else others)
        part = np.ix_(*numbers)
        labels = tuple(tuple(axis[i] for i in n) for axis, n in zip(self.labels, numbers, strict=True))
        in_clear = tuple(tuple(axis[i] for i in n) for axis, n in zip(self.in_clear, numbers, strict=True))
        value, rule = self.value[part], _Part(self.rule, part)
        return replace(self, value=value, labels=labels, in_clear=in_clear, within=within, rule=rule)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __float__(self) -> float:
        """The value of a single row or pair."""
        lines = self.lines(2)
        if len(lines[0]) != 1:
            count = self.pairs if len(lines[0]) else 0
            raise ParameterError(
                f"cannot convert an estimate of {plural(count, 'value')} to float; choose one by its labels, as in estimate['north', 'south']"
            )
        return float(self.value[lines][0])

    def to_arrow(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> pa.Table:
        """One line for each row or pair: labels, value, lower, upper, resolved, in_clear.

        `in_clear` says whether data without noise is part of the line: such a line is **not private**.
        """
        lines = self.lines()
        lower, upper = (end[lines] for end in self.interval(level, method=method, simultaneous=simultaneous))
        columns = {**self.label_columns(lines), "value": self.value[lines], "lower": lower, "upper": upper}
        columns |= {"resolved": (lower > 0) | (upper < 0), "in_clear": self.clear_lines(lines)}
        meta = {"quantity": self.quantity, "level": repr(level), "method": method, "note": self.note}
        return pa.table(columns).replace_schema_metadata(meta)

    def to_pandas(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> Any:
        """`to_arrow` as a pandas data frame; pandas must be installed."""
        return data_frame(self.to_arrow(level, method=method, simultaneous=simultaneous))

    def clear_lines(self, lines: tuple[NDArray[np.int64], ...]) -> NDArray[np.bool_]:
        """Whether data without noise is part of the rows or pairs at this index."""
        marks = [np.array(axis, dtype=np.bool_)[i] for axis, i in zip(self.in_clear, lines, strict=True)]
        clear: NDArray[np.bool_] = np.any(marks, axis=0)
        return clear

    def _numbers(self, axis: int, key: str | Sequence[str]) -> NDArray[np.int64]:
        """The index of these labels along an axis."""
        chosen = [key] if isinstance(key, str) else key
        if not isinstance(chosen, list) or not all(isinstance(label, str) for label in chosen):
            raise ParameterError(f"label must be text or a list of texts, got {short_repr(key)}")
        labels = self.labels[axis]
        for label in chosen:
            if label not in labels:
                raise unknown_label(label, labels)
            if labels.count(label) > 1:
                raise ParameterError(f"{labels.count(label)} rows are labelled {short_repr(label)}")
        return np.array([labels.index(label) for label in chosen], dtype=np.int64)

    def lines(self, limit: int | None = None) -> tuple[NDArray[np.int64], ...]:
        """The index of every row or pair, each pair once; at most so many of them."""
        shape = self.value.shape
        if limit is not None and len(shape) == 2:  # the first ones are in the first rows
            shape = min(limit, shape[0]), shape[1]
        pairs = np.triu_indices(shape[0], 1, shape[1]) if self.within else np.indices(shape)
        return tuple(axis.ravel()[:limit] for axis in pairs)

    def label_columns(self, lines: tuple[NDArray[np.int64], ...]) -> dict[str, pa.Array]:
        """The labels of the rows or pairs at this index."""
        names = ("label",) if self.value.ndim == 1 else ("left", "right")
        return {
            name: pa.array(labels, pa.string()).take(pa.array(index))
            for name, labels, index in zip(names, self.labels, lines, strict=True)
        }

    def _title(self) -> str:
        shape = " x ".join(f"{size:,}" for size in self.value.shape)
        ends = ", with 95% intervals" if self.value.size <= _QUICK else ""
        return f"{self.quantity[0].upper()}{self.quantity[1:]} of {shape} rows{ends}"

    def _head(self, rows: int) -> tuple[pa.Table, int]:
        if self.value.size <= _QUICK:
            try:
                return super()._head(rows)
            except ParameterError:
                pass  # a row may have no interval at this level; the values are there in any case
        lines = self.lines(rows)
        columns = {**self.label_columns(lines), "value": self.value[lines]}
        return pa.table({**columns, "in_clear": self.clear_lines(lines)}), self.pairs


@dataclass(frozen=True, eq=False)
class _Part:
    """The rule of some rows or pairs of an estimate."""

    rule: Rule
    part: tuple[NDArray[np.int64], ...]

    @property
    def variance(self) -> Floats | None:
        variance = self.rule.variance
        return None if variance is None else variance[self.part]

    def interval(self, level: Level) -> Bounds:
        lower, upper = self.rule.interval(level)
        return lower[self.part], upper[self.part]
