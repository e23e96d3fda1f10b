"""What every transform is: an integer matrix A and a public scale c, with S = c·A length-preserving.

Length-preserving means E‖Sz‖² = ‖z‖² over the public seed (paper, definition LPP). Sensitivities are
exact integers of the published A; nothing here is private, and nothing here is secret.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength.checks import integer, plain_number, type_name
from armslength.errors import InputError, ParameterError
from armslength.transforms.integer_rows import plain_array

LARGEST_INPUT_DIM = 2**40
LARGEST_SKETCH_DIM = 2**24
_LARGEST_NORM = 1e150
LARGEST_DENSE = 2**34
_BLOCK_ENTRIES = 1 << 20  # 8 MB of int64: what one thread works on at a time

Matrix = NDArray[np.int64] | sparse.csc_array


class Transform(ABC):
    """A public k x d integer matrix A and a scale c.

    Attributes:
        input_dim: d, how many coordinates the input has; None for an open vocabulary.
        sketch_dim: k, how many coordinates the sketch has.
        scale_squared: c², an exact rational; E‖c·A·z‖² = ‖z‖² over the seed.
    """

    name: ClassVar[str]
    input_dim: int | None
    sketch_dim: int

    def __reduce__(self) -> tuple[Any, ...]:
        """A transform travels as its parameters; what it has computed stays behind."""
        from armslength.transforms.registry import build_transform  # noqa: PLC0415  # the registry knows all transforms

        return build_transform, (self.name, dict(self.parameters()))

    @property
    @abstractmethod
    def scale_squared(self) -> Fraction:
        """c², exactly."""

    @property
    def scale(self) -> float:
        """c, which turns integer units into data units."""
        return math.sqrt(self.scale_squared)

    @property
    @abstractmethod
    def l1_sensitivity(self) -> int:
        """Δ₁: the largest ℓ1 norm of a column of A; exact, in integer units."""

    @property
    @abstractmethod
    def l2_sensitivity_squared(self) -> int:
        """Δ₂²: the largest squared ℓ2 norm of a column of A; exact, in integer units."""

    @property
    def l2_sensitivity(self) -> float:
        """Δ₂, rounded up; in integer units."""
        root = math.sqrt(self.l2_sensitivity_squared)
        while Fraction(root) ** 2 < self.l2_sensitivity_squared:
            root = math.nextafter(root, math.inf)
        return root

    @property
    @abstractmethod
    def operator_norm_squared(self) -> Fraction:
        """A proved upper bound on ‖A‖², the largest ‖A·z‖²/‖z‖²; an exact rational, in integer units."""

    @property
    @abstractmethod
    def scan_work(self) -> int:
        """What the two sensitivities cost to compute, in the units of `transforms/transform.py`; 0 where there is a formula."""

    @property
    @abstractmethod
    def operator_norm_work(self) -> int:
        """What `operator_norm_squared` costs to compute, in the same units; 0 where there is a formula."""

    @abstractmethod
    def columns_work(self, count: int) -> int:
        """What that many columns cost to make, in the same units, with all that is made once for them."""

    @property
    @abstractmethod
    def variance_coefficients(self) -> tuple[float, float] | None:
        """(a, b) of Var‖Sz‖² = a‖z‖₂⁴ − b‖z‖₄⁴ over the seed; None where it is not known."""

    def norm_variance(self, l2_squared: float, l4_fourth: float | None = None) -> float:
        """Variance of ‖Sz‖² over the public seed, in data units.

        Exact with both arguments; without the second an upper bound, whatever z is.

        Args:
            l2_squared: ‖z‖₂².
            l4_fourth: ‖z‖₄⁴, the sum of the fourth powers.
        """
        if self.variance_coefficients is None:
            raise ParameterError(f"norm_variance of {self.name} must be supplied; pass variance_coefficients")
        squared = checked_norm("l2_squared", l2_squared, _LARGEST_NORM)
        a, b = self.variance_coefficients
        if l4_fourth is None:
            return max(a, a - b) * squared**2
        # ‖z‖₄⁴ ≤ ‖z‖₂⁴, up to the rounding of whoever computed the two
        fourth = checked_norm("l4_fourth", l4_fourth, squared**2 * (1 + 1e-9))
        return max(a * squared**2 - b * fourth, 0.0)

    @abstractmethod
    def columns(self, items: Any) -> Matrix:
        """The columns of A at these column numbers (for an open vocabulary: items), k x len(items)."""

    def matrix(self) -> Matrix:
        """A as a k x d matrix of int64: `scipy.sparse.csc_array`, or `ndarray` where the transform is dense by nature."""
        return self.columns(range(self._fixed_input_dim()))

    @abstractmethod
    def apply(self, X: Any, *, threads: int | None = None) -> NDArray[np.int64]:
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**.

        Args:
            X: An n x d matrix of any integer type, dense or scipy.sparse; it is cast to int64 first.
            threads: At most this many threads; None takes all that the process may run.
        """

    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """What builds this transform again: the arguments of its class, ready for JSON."""

    def card(self) -> str:
        """A short description for people: sizes, seed, scale, sensitivities, variance."""
        lines = [f"{self.name}: {self._sizes()}"]
        lines += [f"  {name}: {value}" for name, value in self._card_parameters().items()]
        lines.append(f"  scale c: {self.scale:.6g} (c² = {_short(self.scale_squared)})")
        lines.append(f"  sensitivity of A: ℓ1 {self.l1_sensitivity}, ℓ2 √{self.l2_sensitivity_squared}")
        lines.append(f"  Var‖Sz‖²: {_variance_in_words(self.variance_coefficients)}")
        return "\n".join(lines)

    def _card_parameters(self) -> Mapping[str, Any]:
        """The parameters that the card shows, beside the sizes in its first line."""
        return {name: value for name, value in self.parameters().items() if not name.endswith("_dim")}

    def _sizes(self) -> str:
        source = "open vocabulary" if self.input_dim is None else f"{self.input_dim} coordinates"
        return f"{source} -> {self.sketch_dim}"

    def _fixed_input_dim(self) -> int:
        """The input dimension, if it is fixed."""
        if self.input_dim is None:
            raise ParameterError(
                f"input_dim must be fixed for this call, got an open vocabulary; use {self.name}.columns(items)"
            )
        return self.input_dim

    def column_numbers(self, items: Any) -> NDArray[np.int64]:
        """Column numbers as an int64 array, if each is in range."""
        numbers = plain_array(items, "columns")
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InputError(f"columns must be a list of column numbers, got {type_name(numbers.dtype)}")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self._fixed_input_dim():
            raise InputError(
                f"column numbers must be from 0 to {self._fixed_input_dim() - 1}, got one outside"
            )
        return numbers.astype(np.int64, copy=False)


def block_rows(width: int) -> int:
    """How many rows of that width one thread works on at a time."""
    return max(1, _BLOCK_ENTRIES // max(1, width))


def checked_norm(name: str, value: Any, at_most: float) -> float:
    """A norm as a float, so that no integer type can wrap; the message does not show it, it comes from data."""
    plain = plain_number(value)
    if plain is None or not 0 <= plain <= at_most:
        raise ParameterError(f"{name} must be a number from 0 to {at_most:g}, got another")
    return float(plain)


def check_dense_size(input_dim: int, sketch_dim: int) -> None:
    """Refuses dense matrices whose scan would take more than minutes."""
    if input_dim * sketch_dim > LARGEST_DENSE:
        raise ParameterError(
            f"input_dim·sketch_dim must be at most 2^34 for a dense matrix, got {input_dim} x {sketch_dim}; try SparseJL"
        )


def checked_input_dim(value: Any, at_most: int = LARGEST_INPUT_DIM) -> int:
    """An input dimension, if it is one."""
    return integer("input_dim", value, at_least=1, at_most=at_most)


def checked_sketch_dim(value: Any) -> int:
    """A sketch dimension, if it is one."""
    return integer("sketch_dim", value, at_least=1, at_most=LARGEST_SKETCH_DIM)


def _short(fraction: Fraction) -> str:
    return str(fraction) if fraction.denominator < 10**6 else f"{float(fraction):.6g}"


def _variance_in_words(coefficients: tuple[float, float] | None) -> str:
    if coefficients is None:
        return "not known"
    a, b = coefficients
    return "0" if a == b == 0 else f"{a:.6g}·‖z‖₂⁴ {'−' if b >= 0 else '+'} {abs(b):.6g}·‖z‖₄⁴"


# How much work a transform asks for, counted from its parameters before anything is computed.
#
# One unit is about a nanosecond of one core. The weights below were measured (docs/decisions/0023-work-budget.md); a count predicts the time
# to a factor of about 3, which is enough to tell a second from an hour.


HASH_STEP = (
    7  # a multiplication in the field of the hash functions; a hash value takes `independence` of them
)
HASH_FUNCTION, HASH_COEFFICIENT = (
    30_000,
    40,
)  # a key of its own for each function, and its uniform coefficients
DEALT_ENTRY = 30  # of a permutation that deals out buckets
SPARSE_ENTRY = 80  # of a column of SparseJL, in order of its rows
DRAWN_ENTRY, DRAWN_SIGN = 12, 1  # of a dense matrix
LONE_COLUMN = 20_000  # a column of a dense matrix that is drawn alone
SCANNED_ENTRY = 12  # of a dense matrix whose columns are measured
STORED_ENTRY = 40  # of a sparse matrix that is put together
SIGN, LONE_SIGN, SAMPLED_ROW, HADAMARD_ENTRY = 10, 10_000, 450, 10
SPARSE_PRODUCT = 18  # of two entries at random places, in the Gram matrix of a sparse matrix
FULL_PRODUCT = 6  # the same for a matrix that may be nearly full, where places follow each other
GRAM_ENTRY = 20  # of a Gram matrix that is added to another, or shifted
_FASTER = 32  # how many products of a dense Gram matrix take one unit
_PROOFS = 11  # at most, of the bisection for an operator norm


def dense_gram_work(rows: int, columns: int) -> int:
    """The Gram matrix of the rows of a dense matrix."""
    return rows * columns * (4 + rows // _FASTER)


def proof_work(rows: int) -> int:
    """The bisection for the operator norm of a matrix with this many rows: a Cholesky decomposition at each step."""
    return _PROOFS * (rows**3 // 48 + GRAM_ENTRY * rows**2 + 50_000)
