"""HadamardJL: k rows of a Hadamard matrix with random signs, without replacement (the SRHT)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armslength._numba import Integers, kernel
from armslength.errors import ParameterError
from armslength.randomness.sampling import uniform_sample
from armslength.randomness.seeds import Stream, checked_seed, fresh_seed
from armslength.threads import for_blocks, lazy
from armslength.transforms.integer_rows import integer_rows
from armslength.transforms.transform import (
    HADAMARD_ENTRY,
    LONE_SIGN,
    SAMPLED_ROW,
    SIGN,
    Transform,
    block_rows,
    checked_input_dim,
    checked_sketch_dim,
)

# What `HadamardJL` and `FastJL` share: the padded dimension, the random signs, the Hadamard entries.


LARGEST_PADDED_DIM = 2**28  # a padded row of int64 is 2 GB
_FEWEST_SIGNS = 2**22  # of which some are made alone; fewer than that are kept: 32 MB
LARGEST_SCANNED_DIM = 2**25  # five such rows are held when a matrix is scanned: 1.3 GB


def padded_dimension(input_dim: int) -> int:
    """The smallest power of two that is at least input_dim."""
    return 1 << (input_dim - 1).bit_length()


def random_signs(seed: str, purpose: str, count: int) -> NDArray[np.int64]:
    """The diagonal of D: −1 where the bit of the stream is 1, else +1."""
    return 1 - 2 * Stream(seed, purpose).bits(0, count).astype(np.int64)


def are_few(count: int, size: int) -> bool:
    """Whether so many of all signs are made alone: all of them would take much memory, and more time."""
    return size > _FEWEST_SIGNS and LONE_SIGN * count < SIGN * size


def lone_signs(seed: str, purpose: str, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The entries of D at these places, each made alone."""
    stream = Stream(seed, purpose)
    bits = [stream.bits(number, 1)[0] for number in numbers.tolist()]
    return 1 - 2 * np.array(bits, dtype=np.int64)


def signs_work(count: int, size: int) -> int:
    """What that many of all signs cost to make."""
    return LONE_SIGN * count if are_few(count, size) else SIGN * size


def hadamard_entries(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """(−1)^popcount(f AND j) for each row f and column j."""
    shared = np.bitwise_count(rows[:, None] & columns[None, :])
    entries: NDArray[np.int64] = 1 - 2 * (shared & 1).astype(np.int64)
    return entries


# The Walsh-Hadamard transform of integers, without its factor 1/√d: entries (−1)^popcount(f AND j).


@kernel
def walsh(vector: NDArray[np.int64]) -> None:
    """vector = H·vector modulo 2^64, in place; the length is a power of two.

    Three doublings at a time: the vector goes through the cache a third as often.
    """
    half = 1
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
def _eight(part: NDArray[np.int64], size: int) -> None:
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
def walsh_rows(rows: Integers, signs: NDArray[np.int64], padded: NDArray[np.int64], index: int) -> None:
    """padded = H·D·rows[index] modulo 2^64, with zeros behind the row."""
    width = rows.shape[1]
    for j in range(width):
        padded[j] = np.int64(rows[index, j]) * signs[j]
    padded[width:] = 0
    walsh(padded)


@kernel
def walsh_all(rows: Integers, signs: NDArray[np.int64], product: NDArray[np.int64]) -> None:
    """product = H·D·row modulo 2^64, for each row."""
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, product[i], i)


@kernel
def project_sampled(
    rows: Integers,
    signs: NDArray[np.int64],
    sample: NDArray[np.int64],
    padded_dim: int,
    product: NDArray[np.int64],
) -> None:
    """product = the sampled coordinates of H·D·row, for each row."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, padded, i)
        for number in range(len(sample)):
            product[i, number] = padded[sample[number]]


@kernel
def project_combined(
    rows: Integers,
    signs: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
    padded_dim: int,
    product: NDArray[np.int64],
) -> None:
    """product = P·H·D·row modulo 2^64, for each row; P by rows of (column, value) entries."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for i in range(rows.shape[0]):
        walsh_rows(rows, signs, padded, i)
        for number in range(len(starts) - 1):
            total = np.int64(0)
            for position in range(starts[number], starts[number + 1]):
                total += values[position] * padded[columns[position]]
            product[i, number] = total


@kernel
def column_norms_of_walsh(
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.int64],
    padded_dim: int,
    l1: NDArray[np.int64],
    l2_squared: NDArray[np.int64],
) -> None:
    """Adds |entry| and entry² of each column of P·H to l1 and l2_squared, row by row of P."""
    padded = np.empty(padded_dim, dtype=np.int64)
    for number in range(len(starts) - 1):
        padded[:] = 0
        for position in range(starts[number], starts[number + 1]):
            padded[columns[position]] += values[position]
        walsh(padded)
        for j in range(len(l1)):
            l1[j] += abs(padded[j])
            l2_squared[j] += padded[j] * padded[j]


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
