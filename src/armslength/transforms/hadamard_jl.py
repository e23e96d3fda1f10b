"""HadamardJL: k rows of a Hadamard matrix with random signs, without replacement (the SRHT)."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Int64s, kernel
from armslength.errors import ParameterError
from armslength.randomness.sampling import uniform_sample
from armslength.randomness.seeds import Stream, fresh_seed
from armslength.threads import cached_attribute, for_blocks
from armslength.transforms import work_units as work
from armslength.transforms.integer_rows import integer_rows
from armslength.transforms.transform import Transform, set_checked

LARGEST_PADDED_DIM = 2**28  # a padded row of int64 is 2 GB
LARGEST_SCANNED_DIM = 2**25  # five such rows are held when a matrix is scanned: 1.3 GB
_STEP_ENTRIES = 1 << 17  # of H·D·x that a thread holds at a time: 1 MB stays in its cache


@dataclass(frozen=True, kw_only=True)
class HadamardStep(Transform):
    """What `HadamardJL` and `FastJL` share: A begins with H·D, random signs and the Hadamard matrix of d' rows."""

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)

    @cached_attribute
    def _signs(self) -> NDArray[np.int8]:
        """The diagonal of D: −1 where the bit of the stream is 1, else +1."""
        return 1 - 2 * Stream(self.seed, f"{self.name} signs").bits(0, self.input_dim).astype(np.int8)

    @abstractmethod
    def last_step(self, hadamard: NDArray[Any]) -> NDArray[Any]:
        """What follows H·D: from n x d' to n x k, integers or floats."""

    @property
    def padded_dim(self) -> int:
        """d': input_dim padded to a power of two."""
        return padded_dimension(self.input_dim)

    def apply(self, X: Any, *, threads: int | None = None) -> Int64s:
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**."""
        rows = integer_rows(X, self.input_dim)
        return self._multiply(rows.block, np.empty((rows.count, self.sketch_dim), dtype=np.int64), threads)

    def multiply_floats(self, X: Any) -> NDArray[np.float64]:
        """X·Aᵀ in float64 as a new n x k array, **not private**; one row at a time, so that none sees another."""
        is_sparse = sparse.issparse(X)

        def block(start: int, stop: int) -> NDArray[np.floating]:
            return X[start:stop].toarray() if is_sparse else np.ascontiguousarray(X[start:stop])

        return self._multiply(block, np.empty((X.shape[0], self.sketch_dim)), None)

    def hadamard_step(self, rows: NDArray[Any], threads: int | None = None) -> NDArray[Any]:
        """H·D·x for each row, n x d': int64 modulo 2^64, or float64. **Not private**."""
        signs = self._signs
        kind = np.float64 if rows.dtype.kind == "f" else np.int64
        hadamard = np.empty((len(rows), self.padded_dim), dtype=kind)

        def transform(start: int, stop: int) -> None:
            walsh_rows(rows[start:stop], signs, hadamard[start:stop])

        for_blocks(len(rows), self._rows_at_once, transform, threads)
        return hadamard

    def _multiply(
        self, block: Callable[[int, int], NDArray[Any]], product: NDArray[Any], threads: int | None
    ) -> NDArray[Any]:
        def project(start: int, stop: int) -> None:
            product[start:stop] = self.last_step(self.hadamard_step(block(start, stop), 1))

        for_blocks(len(product), self._rows_at_once, project, threads)
        return product

    @property
    def _rows_at_once(self) -> int:
        return max(1, _STEP_ENTRIES // self.padded_dim)


@dataclass(frozen=True, kw_only=True)
class HadamardJL(HadamardStep):
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

    def __post_init__(self) -> None:
        set_checked(self, largest_input=LARGEST_PADDED_DIM)
        if self.sketch_dim > self.padded_dim:
            raise ParameterError(
                f"sketch_dim must be at most {self.padded_dim} (input_dim padded to a power of two), "
                f"got {self.sketch_dim}"
            )

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/k."""
        return Fraction(1, self.sketch_dim)

    @property
    def column_norms(self) -> tuple[int, int]:
        """Δ₁ = Δ₂² = k, of every column."""
        return self.sketch_dim, self.sketch_dim

    @property
    def operator_norm_squared(self) -> Fraction:
        """‖A‖² ≤ d': rows of H are orthogonal and of that squared norm, and leaving out columns cannot lengthen A·z."""
        return Fraction(self.padded_dim)

    @property
    def left_out(self) -> int | None:
        """Rows of H that are not in the sample, where those are the fewer."""
        rest = self.padded_dim - self.sketch_dim
        return rest if rest < self.sketch_dim else None

    def columns_work(self, count: int) -> int:
        """The sampled rows and the signs, then each entry."""
        k = self.sketch_dim
        return work.SAMPLED_ROW * k + work.SIGN * self.input_dim + work.HADAMARD_ENTRY * k * count

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """Both are (2/k)(d'−k)/(d'−1)."""
        d, k = self.padded_dim, self.sketch_dim
        coefficient = 2 * (d - k) / (k * (d - 1)) if d > 1 else 0.0
        return coefficient, coefficient

    def columns(self, items: Any) -> Int64s:
        """The columns of A at these column numbers, k x len(items)."""
        numbers = self.column_numbers(items)
        return hadamard_entries(self._sample, numbers) * self._signs[numbers]

    def last_step(self, hadamard: NDArray[Any]) -> NDArray[Any]:
        """The sample of each row."""
        return hadamard.take(self._sample, axis=1)

    @cached_attribute
    def _sample(self) -> Int64s:
        return uniform_sample(self.seed, "HadamardJL rows", self.sketch_dim, self.padded_dim)


def padded_dimension(input_dim: int) -> int:
    """The smallest power of two that is at least input_dim."""
    return 1 << (input_dim - 1).bit_length()


def hadamard_entries(rows: Int64s, columns: Int64s) -> Int64s:
    """(−1)^popcount(f AND j) for each row f and column j."""
    shared = np.bitwise_count(rows[:, None] & columns[None, :])
    entries: Int64s = 1 - 2 * (shared & 1).astype(np.int64)
    return entries


@kernel
def walsh_rows(rows: NDArray[Any], signs: NDArray[np.int8], product: NDArray[Any]) -> None:
    """product = H·D·row with zeros behind the row, for each row: int64 modulo 2^64, or float64."""
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        target = product[i]
        for j in range(width):
            target[j] = rows[i, j] * signs[j]
        target[width:] = 0
        walsh(target)


@kernel
def walsh(vector: NDArray[Any]) -> None:
    """vector = H·vector, in place, for int64 modulo 2^64 or float64; the length is a power of two."""
    half = 1
    # Three doublings at a time: the vector goes through the cache a third as often.
    while 8 * half <= len(vector):
        for start in range(0, len(vector), 8 * half):
            _eight(vector[start : start + 8 * half], half)
        half *= 8
    while half < len(vector):
        for start in range(0, len(vector), 2 * half):
            upper, lower = vector[start : start + half], vector[start + half : start + 2 * half]
            for j in range(half):
                a, b = upper[j], lower[j]
                upper[j], lower[j] = a + b, a - b
        half *= 2


@kernel
def _eight(part: NDArray[Any], size: int) -> None:
    """The Walsh-Hadamard transform across eight runs of this size."""
    v0, v1, v2, v3 = part[:size], part[size:], part[2 * size :], part[3 * size :]
    v4, v5, v6, v7 = part[4 * size :], part[5 * size :], part[6 * size :], part[7 * size :]
    for j in range(size):
        a0, a1 = v0[j] + v1[j], v0[j] - v1[j]
        a2, a3 = v2[j] + v3[j], v2[j] - v3[j]
        a4, a5 = v4[j] + v5[j], v4[j] - v5[j]
        a6, a7 = v6[j] + v7[j], v6[j] - v7[j]
        b0, b2 = a0 + a2, a0 - a2
        b1, b3 = a1 + a3, a1 - a3
        b4, b6 = a4 + a6, a4 - a6
        b5, b7 = a5 + a7, a5 - a7
        v0[j], v4[j] = b0 + b4, b0 - b4
        v1[j], v5[j] = b1 + b5, b1 - b5
        v2[j], v6[j] = b2 + b6, b2 - b6
        v3[j], v7[j] = b3 + b7, b3 - b7


@kernel
def column_norms_of_walsh(
    starts: Int64s, columns: Int64s, values: Int64s, padded_dim: int, l1: Int64s, l2_squared: Int64s
) -> None:
    """Adds |entry| and entry² of each column of P·H to l1 and l2_squared, row by row of P."""
    row = np.empty(padded_dim, dtype=np.int64)
    for number in range(len(starts) - 1):
        row[:] = 0
        for position in range(starts[number], starts[number + 1]):
            row[columns[position]] += values[position]
        walsh(row)
        for j in range(len(l1)):
            l1[j] += abs(row[j])
            l2_squared[j] += row[j] * row[j]
