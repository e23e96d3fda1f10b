"""Pairs as lines of an answer: who, with whom, and the estimate."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True)
class Lines:
    """Some pairs by number and by label, with their estimates."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    left: pa.Array
    right: pa.Array
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    in_clear: NDArray[np.bool_]  # whether data without noise is part of the pair

    @classmethod
    def none(cls) -> "Lines":
        """No pair."""
        numbers, labels, values = np.empty(0, dtype=np.int64), pa.array([], pa.string()), np.empty(0)
        return cls(numbers, numbers, labels, labels, values, values, values, np.empty(0, dtype=np.bool_))

    def take(self, wanted: NDArray[np.int64]) -> "Lines":
        """Some of the lines, by number."""
        return Lines(
            self.rows[wanted],
            self.columns[wanted],
            self.left.take(pa.array(wanted)),
            self.right.take(pa.array(wanted)),
            self.value[wanted],
            self.lower[wanted],
            self.upper[wanted],
            self.in_clear[wanted],
        )

    def roots(self) -> "Lines":
        """The square roots of estimated squares, clipped at 0."""
        value = np.sqrt(np.maximum(self.value, 0.0))
        return replace(self, value=value, lower=np.sqrt(self.lower), upper=np.sqrt(self.upper))

    def plus(self, other: "Lines") -> "Lines":
        """The lines of both."""
        return Lines(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("rows", "columns")),
            *(pa.concat_arrays([getattr(self, name), getattr(other, name)]) for name in ("left", "right")),
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("value", "lower", "upper", "in_clear")
            ),
        )

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The lines as Arrow has them."""
        resolved = (self.lower > 0) | (self.upper < 0)
        numbers = (pa.array(each) for each in (self.value, self.lower, self.upper, resolved, self.in_clear))
        return pa.RecordBatch.from_arrays([self.left, self.right, *numbers], schema=schema)
