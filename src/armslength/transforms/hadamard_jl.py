"""HadamardJL: k rows of a Hadamard matrix with random signs, without replacement (the SRHT)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.lazy import lazy
from armslength.randomness.permutation import uniform_sample
from armslength.randomness.seeds import checked_seed, fresh_seed
from armslength.threads import for_blocks
from armslength.transforms.base import Transform, block_rows, checked_input_dim, checked_sketch_dim
from armslength.transforms.inputs import integer_rows
from armslength.transforms.kernels.walsh import project_sampled
from armslength.transforms.padding import (
    LARGEST_PADDED_DIM,
    are_few,
    hadamard_entries,
    lone_signs,
    padded_dimension,
    random_signs,
    signs_work,
)
from armslength.transforms.work import HADAMARD_ENTRY, SAMPLED_ROW


@dataclass(frozen=True)
class HadamardJL(Transform):
    """The subsampled randomized Hadamard transform: every entry ±1, c = 1/√k.

    d' is input_dim padded to a power of two; the padding is never stored.

    Guarantee: E‖Sz‖² = ‖z‖² and Var‖Sz‖² = (2/k)·(d'−k)/(d'−1)·(‖z‖₂⁴ − ‖z‖₄⁴) over the seed.
    Δ₁ = Δ₂² = k exactly, with nothing to initialize.

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch; at most d'.
        seed: The public seed, a string that all parties share; None makes a fresh one.
    """

    name: ClassVar[str] = "HadamardJL"

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_dim", checked_input_dim(self.input_dim, at_most=LARGEST_PADDED_DIM))
        object.__setattr__(self, "sketch_dim", checked_sketch_dim(self.sketch_dim))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        if self.sketch_dim > self.padded_dim:
            raise ParameterError(
                f"sketch_dim must be at most {self.padded_dim} (input_dim padded to a power of two), "
                f"got {self.sketch_dim}"
            )

    @property
    def padded_dim(self) -> int:
        """d': input_dim padded to a power of two."""
        return padded_dimension(self.input_dim)

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/k."""
        return Fraction(1, self.sketch_dim)

    @property
    def l1_sensitivity(self) -> int:
        """Δ₁ = k, of every column."""
        return self.sketch_dim

    @property
    def l2_sensitivity_squared(self) -> int:
        """Δ₂² = k, of every column."""
        return self.sketch_dim

    @property
    def operator_norm_squared(self) -> Fraction:
        """‖A‖² ≤ d': rows of H are orthogonal and of that squared norm, and leaving out columns cannot lengthen A·z."""
        return Fraction(self.padded_dim)

    @property
    def scan_work(self) -> int:
        """None."""
        return 0

    @property
    def operator_norm_work(self) -> int:
        """None."""
        return 0

    def columns_work(self, count: int) -> int:
        """The sampled rows and the signs, then each entry."""
        k = self.sketch_dim
        return SAMPLED_ROW * k + signs_work(count, self.input_dim) + HADAMARD_ENTRY * k * count

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """Both are (2/k)(d'−k)/(d'−1)."""
        d, k = self.padded_dim, self.sketch_dim
        coefficient = 2 * (d - k) / (k * (d - 1)) if d > 1 else 0.0
        return coefficient, coefficient

    def columns(self, items: Any) -> NDArray[np.int64]:
        """The columns of A at these column numbers, k x len(items)."""
        numbers = self.column_numbers(items)
        return hadamard_entries(self._sample, numbers) * self._signs_at(numbers)

    def apply(self, X: Any, *, threads: int | None = None) -> NDArray[np.int64]:
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**."""
        rows = integer_rows(X, self.input_dim)
        signs, sample = self._signs, self._sample
        product = np.empty((rows.count, self.sketch_dim), dtype=np.int64)

        def project(start: int, stop: int) -> None:
            project_sampled(rows.block(start, stop), signs, sample, self.padded_dim, product[start:stop])

        for_blocks(rows.count, block_rows(self.padded_dim), project, threads)
        return product

    def _signs_at(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if "_signs" not in self.__dict__ and are_few(len(numbers), self.input_dim):
            return lone_signs(self.seed, "HadamardJL signs", numbers)
        return self._signs[numbers]

    @lazy
    def _signs(self) -> NDArray[np.int64]:
        return random_signs(self.seed, "HadamardJL signs", self.input_dim)

    @lazy
    def _sample(self) -> NDArray[np.int64]:
        return uniform_sample(self.seed, "HadamardJL rows", self.sketch_dim, self.padded_dim)

    def parameters(self) -> Mapping[str, Any]:
        """What builds this transform again."""
        return {"input_dim": self.input_dim, "sketch_dim": self.sketch_dim, "seed": self.seed}
