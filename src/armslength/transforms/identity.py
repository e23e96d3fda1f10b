"""Identity: A = I, the noisy histogram."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Integers, Words
from armslength.transforms.integer_rows import Rows
from armslength.transforms.transform import (
    LARGEST_SKETCH_DIM,
    ErrorMoments,
    Transform,
    checked_input_dim,
)


@dataclass(frozen=True, kw_only=True)
class Identity(Transform):
    """No projection at all: A = I, c = 1, Var‖Sz‖² = 0, Δ₁ = Δ₂ = 1.

    Args:
        input_dim: How many coordinates; the sketch has as many.
    """

    name: ClassVar[str] = "Identity"
    label = "Identity (noisy histogram)"
    projects: ClassVar[bool] = False
    scale_squared = Fraction(1)
    column_norms = (1, 1)
    variance_coefficients = (0.0, 0.0)
    column_entries = 1

    input_dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_dim", checked_input_dim(self.input_dim, at_most=LARGEST_SKETCH_DIM))

    @property
    def sketch_dim(self) -> int:  # type: ignore[override]  # a field in the other transforms
        """k = d."""
        return self.input_dim

    def with_seed(self, seed: str) -> Self:  # noqa: ARG002  # as of the others
        """Itself: nothing is random."""
        return self

    def error_moments(self) -> ErrorMoments:
        """There is no error."""
        return ErrorMoments(0.0, 0.0, 0.0)

    def signed_rows(self, items: Any) -> Integers:
        """The column numbers, n x 1: column j has its one entry in row j."""
        return self.column_numbers(items)[:, None]

    def columns(self, items: Any) -> sparse.csc_array:
        """The columns of A at these column numbers, k x len(items)."""
        numbers = self.column_numbers(items)
        entries = (np.ones(len(numbers), dtype=np.int64), numbers, np.arange(len(numbers) + 1))
        return sparse.csc_array(entries, shape=(self.sketch_dim, len(numbers)))

    def event_columns(self, words: Words, threads: int | None = None) -> Integers:  # noqa: ARG002  # nothing to compute
        """The number of the coordinate, n x 1, of items as (high word, low word)."""
        return words[:, 1:].astype(np.int64)

    def _project(self, rows: Rows, start: int, stop: int) -> NDArray[np.int64]:
        return rows.block(start, stop).astype(np.int64, copy=False)
