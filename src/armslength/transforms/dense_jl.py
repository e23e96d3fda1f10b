"""GaussianJL and SignJL: dense matrices of independent, symmetric, small integers."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armslength._numba import Int64s, Integers
from armslength.checks import one_of
from armslength.randomness.sampling import ACHLIOPTAS_TABLE, NORMAL_TABLE, SIGN_TABLE, SymmetricTable
from armslength.randomness.seeds import Stream, fresh_seed
from armslength.threads import cached_attribute
from armslength.transforms.integer_rows import SparseRows, integer_rows
from armslength.transforms.transform import (
    Transform,
    block_rows,
    check_dense_size,
    largest_column_norms,
    set_checked,
)

CONSTRUCTIONS = ("dense", "sparse")
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, kw_only=True)
class IndependentEntries(Transform):
    """A dense matrix whose entries are independent draws of one symmetric table; c² = 1/(k·E[entry²]).

    Guarantee: E‖Sz‖² = ‖z‖² and Var‖Sz‖² = (1/k)[2‖z‖₂⁴ + (κ−3)‖z‖₄⁴] over the seed, κ the exact kurtosis of an entry.
    Sensitivities are exact: the published matrix is scanned once, on first use.
    """

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)

    def __post_init__(self) -> None:
        set_checked(self)
        check_dense_size(self.input_dim, self.sketch_dim)

    @property
    @abstractmethod
    def _table(self) -> SymmetricTable:
        """The law of an entry."""

    def _make_columns(self, first: int, count: int) -> NDArray[np.int8]:
        """Columns first … first+count−1 of A, each as a row."""
        k = self.sketch_dim
        words = Stream(self.seed, f"{self.name} entries").words(first * k, count * k)
        return self._table.values(words).reshape(count, k)

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/(k·E[entry²])."""
        return 1 / (self.sketch_dim * self._table.second_moment)

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """a = 2/k and b = (3−κ)/k."""
        return 2 / self.sketch_dim, float((3 - self._table.kurtosis) / self.sketch_dim)

    @cached_attribute
    def column_norms(self) -> tuple[int, int]:
        """(Δ₁, Δ₂²), by a scan of all columns."""
        l1, l2_squared = zip(
            *(largest_column_norms(columns.T.astype(np.int64)) for _, columns in self._parts()), strict=True
        )
        return max(l1), max(l2_squared)

    def columns(self, items: Any) -> Int64s:
        """The columns of A at these column numbers, k x len(items)."""
        return self._columns[self.column_numbers(items)].T.astype(np.int64)

    def apply(self, X: Any, *, threads: int | None = None) -> Int64s:  # noqa: ARG002  # the BLAS has its own
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**."""
        rows = integer_rows(X, self.input_dim)
        product = np.zeros((rows.count, self.sketch_dim), dtype=np.int64)
        if isinstance(rows, SparseRows):
            by_row = rows.matrix(0, rows.count)
            present = np.unique(by_row.indices).astype(np.int64)
            columns = self._columns[present]
            for first in range(0, len(present), self._columns_at_once):
                part = slice(first, first + self._columns_at_once)
                product += by_row[:, present[part]] @ columns[part].astype(np.int64)
            return product
        for first, columns in self._parts():
            step = block_rows(max(columns.shape))
            for start in range(0, rows.count, step):
                block = rows.piece(start, min(start + step, rows.count), first, first + len(columns))
                add_product(block, columns, self._table.largest, product[start : start + step])
        return product

    def _parts(self) -> Iterator[tuple[int, NDArray[np.int8]]]:
        """Runs of columns that are handled at once, each column as a row, with the number of the first."""
        step = self._columns_at_once
        for first in range(0, self.input_dim, step):
            yield first, self._columns[first : first + step]

    @property
    def _columns_at_once(self) -> int:
        return max(1, _ENTRIES_AT_ONCE // self.sketch_dim)

    @cached_attribute
    def _columns(self) -> NDArray[np.int8]:
        """All columns, each as a row."""
        columns, step = np.empty((self.input_dim, self.sketch_dim), dtype=np.int8), self._columns_at_once
        for first in range(0, self.input_dim, step):
            part = columns[first : first + step]
            part[:] = self._make_columns(first, len(part))
        return columns


@dataclass(frozen=True, kw_only=True)
class GaussianJL(IndependentEntries):
    """Independent normals of standard deviation 12, rounded to integers: the paper's comparator.

    Guarantee: as `IndependentEntries`, with κ−3 = −4.0e-7: Var‖Sz‖² is (2/k)‖z‖₂⁴ to six digits.
    Reference: paper, theorems of Kenthapadi et al.; erratum 2 (entries of variance 1/k, which c sets).

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch.
        seed: The public seed, a string that all parties share; None makes a fresh one.
    """

    name: ClassVar[str] = "GaussianJL"
    _table = NORMAL_TABLE


@dataclass(frozen=True, kw_only=True)
class SignJL(IndependentEntries):
    """Independent signs: "dense" is ±1, "sparse" is +1, 0, −1 with probabilities 1/6, 2/3, 1/6.

    Guarantee: as `IndependentEntries`: Var‖Sz‖² is (2/k)(‖z‖₂⁴ − ‖z‖₄⁴) for "dense" (κ = 1) and
    (2/k)‖z‖₂⁴ for "sparse" (κ = 3, up to 2^−61). Dense: Δ₁ = Δ₂² = k, nothing to scan.

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch.
        seed: The public seed, a string that all parties share; None makes a fresh one.
        construction: "dense" or "sparse".
    """

    name: ClassVar[str] = "SignJL"

    construction: str = "dense"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "construction", one_of("construction", self.construction, CONSTRUCTIONS))

    @property
    def _table(self) -> SymmetricTable:
        return SIGN_TABLE if self.construction == "dense" else ACHLIOPTAS_TABLE

    @cached_attribute
    def column_norms(self) -> tuple[int, int]:
        """(Δ₁, Δ₂²): both are k if dense, else by a scan of all columns."""
        return (self.sketch_dim,) * 2 if self.construction == "dense" else super().column_norms

    def _make_columns(self, first: int, count: int) -> NDArray[np.int8]:
        if self.construction == "sparse":
            return super()._make_columns(first, count)
        k = self.sketch_dim
        bits = Stream(self.seed, "SignJL signs").bits(first * k, count * k)
        return (1 - 2 * bits.astype(np.int8)).reshape(count, k)


def add_product(rows: Integers, columns: NDArray[np.int8], largest: int, product: Int64s) -> None:
    """product += rows·columns modulo 2^64, exactly, by the BLAS; |columns| ≤ largest.

    Values are cut into limbs of so few bits that every sum of magnitudes stays below 2^53: then every partial sum in every order is
    an integer that float64 holds exactly. The last limb has the sign.
    """
    factors = columns.astype(np.float64)
    bits = 53 - (largest * rows.shape[1]).bit_length()
    size = max(int(rows.max(initial=0)), -1 - int(rows.min(initial=0))).bit_length()
    for shift in range(0, size + 1, bits):
        limb = rows >> shift
        if shift + bits <= size:
            limb &= (1 << bits) - 1
        product += (limb.astype(np.float64) @ factors).astype(np.int64) << shift
