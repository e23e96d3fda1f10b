"""What an estimate is: values with their variances, intervals and labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.intervals import Bounds, Level, Rule


@dataclass(frozen=True)
class Estimate:
    """Estimates of one quantity for rows or pairs of rows, in data units.

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
    value: NDArray[np.float64]
    labels: tuple[tuple[str, ...], ...]
    in_clear: tuple[tuple[bool, ...], ...]
    within: bool
    note: str
    rule: Rule

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance over seed and noise: the exact formula, at the estimate where the formula has an unknown."""
        variance = self.rule.variance
        if variance is None:
            raise ParameterError(
                f"variance must be asked of squared quantities, got {self.quantity}; use interval"
            )
        return variance

    @property
    def std_error(self) -> NDArray[np.float64]:
        """The square root of the variance."""
        return np.sqrt(self.variance)

    @property
    def pairs(self) -> int:
        """How many different quantities there are."""
        if self.within:
            return max(1, len(self.labels[0]) * (len(self.labels[0]) - 1) // 2)
        return self.value.size

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

    def to_arrow(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> pa.Table:
        """One line for each row or pair: labels, value, lower, upper, resolved, in_clear.

        `in_clear` says whether data without noise is part of the line: such a line is **not private**. It is a column because a note
        gets lost where frames are joined and written.
        """
        lower, upper = self.interval(level, method=method, simultaneous=simultaneous)
        chosen = self._lines()
        names = ("label",) if self.value.ndim == 1 else ("left", "right")
        columns: dict[str, Any] = {
            name: pa.array(np.array(labels, dtype=object)[index], pa.string())
            for name, labels, index in zip(names, self.labels, chosen, strict=True)
        }
        columns["value"] = self.value[chosen]
        columns["lower"], columns["upper"] = lower[chosen], upper[chosen]
        columns["resolved"] = (lower[chosen] > 0) | (upper[chosen] < 0)
        columns["in_clear"] = self.clear_lines(chosen)
        meta = {"quantity": self.quantity, "level": repr(level), "method": method, "note": self.note}
        return pa.table(columns).replace_schema_metadata(meta)

    def to_pandas(
        self, level: float = 0.95, *, method: str = "asymptotic", simultaneous: bool = False
    ) -> Any:
        """`to_arrow` as a pandas data frame; pandas must be installed."""
        table = self.to_arrow(level, method=method, simultaneous=simultaneous)
        frame = table.to_pandas()
        frame.attrs.update({key.decode(): value.decode() for key, value in table.schema.metadata.items()})
        return frame

    def clear_lines(self, chosen: tuple[NDArray[np.int64], ...]) -> NDArray[np.bool_]:
        """For some rows or pairs, given by their numbers along each axis, whether data without noise is part of them."""
        marks = [np.array(axis, dtype=np.bool_)[i] for axis, i in zip(self.in_clear, chosen, strict=True)]
        clear: NDArray[np.bool_] = np.any(marks, axis=0)
        return clear

    def _lines(self) -> tuple[NDArray[np.int64], ...]:
        if self.value.ndim == 1:
            return (np.arange(len(self.value)),)
        if self.within:
            return tuple(np.triu_indices(len(self.labels[0]), 1))
        return tuple(index.ravel() for index in np.indices(self.value.shape))

    def __repr__(self) -> str:
        shape = " x ".join(str(size) for size in self.value.shape)
        return f"<Estimate of {self.quantity}, {shape}{': ' + self.note if self.note else ''}>"
