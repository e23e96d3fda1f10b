"""What every transform is: a public integer matrix A and a scale c with E‖c·A·z‖² = ‖z‖² over the seed (paper, definition LPP)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Integers
from armslength.checks import integer, plain_number, type_name
from armslength.errors import InputError, ParameterError
from armslength.laws import Cumulants
from armslength.randomness.seeds import checked_seed
from armslength.threads import cached_attribute, for_blocks
from armslength.transforms.integer_rows import Rows, integer_rows, plain_array

LARGEST_INPUT_DIM = 2**40
LARGEST_SKETCH_DIM = 2**24
LARGEST_DENSE = 2**26  # entries, which take a few seconds to draw and measure
_LARGEST_NORM = 1e150
_BLOCK_ENTRIES = 1 << 20  # 8 MB of int64: what one thread works on at a time
_FLOAT_COLUMNS = 1 << 16
_FLOAT_ENTRIES = 1 << 22  # of a dense A as float64: 32 MB
_KEPT_FLOATS = 1 << 24  # up to 0.3 GB of a sparse A stay in memory as floats

Matrix = NDArray[np.int64] | sparse.csc_array


class ErrorMoments(NamedTuple):
    """Bounds on E[T²], E[T³] and E[T⁴] of T = ‖Sz‖² − ‖z‖² over the seed, for ‖z‖ = 1."""

    second: float
    third: float
    fourth: float


class ProductCoefficients(NamedTuple):
    """The variance of an estimate of ⟨x, y⟩ in grid units: a coefficient for each term. τ is the covariance of the noises μ, η."""

    norms: float  # ‖x‖²‖y‖²
    inner: float  # ⟨x, y⟩²
    linear: float  # κ₂(μ)‖y‖² + κ₂(η)‖x‖² + 2⟨x, y⟩τ
    own: float  # κ₂(μ)κ₂(η)
    shared: float  # τ²
    fourth: float  # the fourth joint cumulant of the noises


class Transform(ABC):
    """A public k x d integer matrix A and a scale c.

    Noise is added to A·x (site "output"). A transform of several steps may take it before its last one (site "input").
    """

    name: ClassVar[str]
    open_vocabulary: ClassVar[bool] = False  # whether input_dim may be None
    cheap_per_event: ClassVar[bool] = False  # whether events need not be counted before they are projected
    projects: ClassVar[bool] = True  # whether it is more than a copy
    input_dim: int | None  # d, the coordinates of the input; None for an open vocabulary
    sketch_dim: int  # k, the coordinates of the sketch

    def parameters(self) -> Mapping[str, Any]:
        """The arguments of its class that build this transform again, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass

    @classmethod
    def from_parameters(cls, parameters: Any) -> Self:
        """The transform that has these `parameters()`; every rule of its class is checked again."""
        expected = {field.name for field in fields(cls)}  # type: ignore[arg-type]  # the same
        if not isinstance(parameters, Mapping) or set(parameters) != expected:
            raise ParameterError(
                f"{cls.name} needs the parameters {', '.join(sorted(expected))} and no others"
            )
        return cls(**parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the parameters alone, not what was computed from them."""
        return type(self).from_parameters, (dict(self.parameters()),)

    def card(self) -> str:
        """A short description for people: sizes, seed, scale, sensitivities, variance."""
        source = "open vocabulary" if self.input_dim is None else f"{self.input_dim} coordinates"
        lines = [f"{self.name}: {source} -> {self.sketch_dim}"]
        listed = {name: value for name, value in self.parameters().items() if not name.endswith("_dim")}
        lines += [f"  {name}: {value}" for name, value in listed.items()]
        square = self.scale_squared
        exact = str(square) if square.denominator < 10**6 else f"{float(square):.6g}"
        lines.append(f"  scale c: {self.scale:.6g} (c² = {exact})")
        lines.append(f"  sensitivity of A: ℓ1 {self.l1_sensitivity}, ℓ2 √{self.l2_sensitivity_squared}")
        lines.append(f"  Var‖Sz‖²: {_variance_text(self.variance_coefficients)}")
        return "\n".join(lines)

    def with_seed(self, seed: str) -> Self:
        """The same transform under another public seed."""
        return self.from_parameters({**self.parameters(), "seed": seed})

    @property
    def label(self) -> str:
        """The name, and the construction where there are several."""
        return self.name

    @property
    @abstractmethod
    def scale_squared(self) -> Fraction:
        """c², exactly: E‖c·A·z‖² = ‖z‖² over the seed."""

    @property
    def scale(self) -> float:
        """c, which turns integer units into data units."""
        return math.sqrt(self.scale_squared)

    @abstractmethod
    def columns(self, items: Any) -> Matrix:
        """The columns of A at these column numbers (for an open vocabulary: items), k x len(items)."""

    def signed_rows(self, items: Any) -> Integers:  # noqa: ARG002  # not offered here
        """The columns of A at these items as numbers, n x s: the row of each entry, or −1−row for an entry of −1."""
        raise ParameterError(f"signed_rows() needs SparseJL or Identity, not {self.name}")

    def matrix(self) -> Matrix:
        """A as a k x d matrix of int64: `scipy.sparse.csc_array`, or `ndarray` where the transform is dense by nature."""
        return self.columns(range(self._fixed_input_dim()))

    def apply(self, X: Any, *, threads: int | None = None) -> NDArray[np.int64]:
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**.

        Args:
            X: An n x d matrix of any integer type, dense or scipy.sparse; it is cast to int64 first.
            threads: At most this many threads; None takes all that the process may run.
        """
        rows = integer_rows(X, self._fixed_input_dim())
        product = np.empty((rows.count, self.sketch_dim), dtype=np.int64)

        def project(start: int, stop: int) -> None:
            product[start:stop] = self._project(rows, start, stop)

        for_blocks(rows.count, self._rows_at_once, project, threads)
        return product

    def _project(self, rows: Rows, start: int, stop: int) -> NDArray[np.int64]:
        """rows·Aᵀ for rows start … stop−1, by one thread; a transform has this or its own `apply`."""
        raise NotImplementedError

    @property
    def _rows_at_once(self) -> int:
        """How many rows one thread projects at a time."""
        return block_rows(self._fixed_input_dim())

    def noised(
        self, X: Any, add_noise: Callable[[NDArray[np.int64]], None], site: str, *, threads: int | None = None
    ) -> NDArray[np.int64]:
        """X·Aᵀ modulo 2^64 with noise at that site; `add_noise` adds an independent draw to every entry of an array."""
        if site != "output":
            self.check_noise_on_input()
        product = self.apply(X, threads=threads)
        add_noise(product)
        return product

    def check_noise_on_input(self) -> None:
        """Refuses noise on the input, which FastJL alone can have."""
        raise ParameterError(f"noise_site='input' needs FastJL, not {self.name}", "noise_site")

    def multiply_floats(self, X: Any) -> Any:
        """X·Aᵀ in float64 as a new n x k array, **not private**, for n x d floats, dense or sparse by rows."""
        if self._float_columns is not None:
            return _float_product(X, self._float_columns)
        present, is_sparse = np.arange(X.shape[1]), sparse.issparse(X)
        if is_sparse:  # the columns that occur are enough
            present = np.unique(X.indices[: X.indptr[-1]])
            X = X[:, present]
        product = np.zeros((X.shape[0], self.sketch_dim))
        width = min(_FLOAT_COLUMNS, max(1, _FLOAT_ENTRIES // (self.column_entries or self.sketch_dim)))
        for first in range(0, len(present), width):
            part = slice(first, first + width)
            product += _float_product(X[:, part], self.columns(present[part]).astype(np.float64).T)
        return product

    @cached_attribute
    def _float_columns(self) -> Any:
        """Aᵀ in float64, where it fits in memory."""
        d = self._fixed_input_dim()
        fits = d * (self.column_entries or self.sketch_dim) <= _KEPT_FLOATS
        return self.columns(np.arange(d)).astype(np.float64).T if fits else None

    def _fixed_input_dim(self) -> int:
        """The input dimension, if it is fixed."""
        if self.input_dim is None:
            raise ParameterError(
                f"this call needs a fixed input_dim; with an open vocabulary use {self.name}.columns(items)",
                "input_dim",
            )
        return self.input_dim

    def column_numbers(self, items: Any) -> NDArray[np.int64]:
        """Column numbers as an int64 array, if each is in range."""
        numbers, last = plain_array(items, "columns"), self._fixed_input_dim() - 1
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InputError(f"columns must be a list of column numbers, got {type_name(numbers.dtype)}")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() <= last:
            raise InputError(f"column numbers must be from 0 to {last}")
        return numbers.astype(np.int64, copy=False)

    @property
    @abstractmethod
    def column_norms(self) -> tuple[int, int]:
        """(Δ₁, Δ₂²): the largest ℓ1 norm and the largest squared ℓ2 norm of a column of A; exact, in integer units."""

    @property
    def l1_sensitivity(self) -> int:
        """Δ₁: the largest ℓ1 norm of a column of A; exact, in integer units."""
        return self.column_norms[0]

    @property
    def l2_sensitivity_squared(self) -> int:
        """Δ₂²: the largest squared ℓ2 norm of a column of A; exact, in integer units."""
        return self.column_norms[1]

    def sensitivity_squared(self, site: str) -> int:  # noqa: ARG002  # the output is the only site here
        """How far inputs at ℓ1 distance 1 are apart where noise is added, in squared ℓ2 norm: an exact bound.

        Guarantee: Δ₂², for a convex combination of columns is no longer than the longest.
        """
        return self.l2_sensitivity_squared

    @property
    def column_entries(self) -> int | None:
        """How many entries a column has, all ±1: then there are `signed_rows`; else None."""
        return None

    @property
    def item_blocks(self) -> tuple[int, int] | None:
        """(s, f) where an item has one entry ±1 in each of s independent blocks of rows; None where it is not so.

        f: an item is among the L largest of n bins with probability at most f·L/n. Reference: docs/reference/answers.md, items.
        """
        return None

    @property
    @abstractmethod
    def variance_coefficients(self) -> tuple[float, float]:
        """(a, b) of Var‖Sz‖² = a‖z‖₂⁴ − b‖z‖₄⁴ over the seed."""

    @property
    def projection_variance(self) -> float:
        """The smallest a of Var‖Sz‖² ≤ a‖z‖₂⁴, whatever z is."""
        a, b = self.variance_coefficients
        return max(a, a - b)

    def norm_variance(self, l2_squared: float, l4_fourth: float | None = None) -> float:
        """Variance of ‖Sz‖² over the public seed, in data units.

        Exact with both arguments; without the second an upper bound, whatever z is.

        Args:
            l2_squared: ‖z‖₂².
            l4_fourth: ‖z‖₄⁴, the sum of the fourth powers.
        """
        bound = self.projection_variance
        squared = checked_norm("l2_squared", l2_squared, _LARGEST_NORM)
        if l4_fourth is None:
            return bound * squared**2
        # ‖z‖₄⁴ ≤ ‖z‖₂⁴, up to the rounding of whoever computed the two
        fourth = checked_norm("l4_fourth", l4_fourth, squared**2 * (1 + 1e-9))
        a, b = self.variance_coefficients
        return max(a * squared**2 - b * fourth, 0.0)

    def variance_curve(self, noise: Cumulants, site: str) -> tuple[float, float, float]:  # noqa: ARG002  # the same
        """(a, b, c): an estimate of D = ‖z‖² has the variance aD² + bD + c, in grid units; ‖z‖₄⁴ is taken as 0.

        Var‖Sz‖² + 4κ₂‖z‖² + k(κ₄ + 2κ₂²), for noise in each coordinate, in integer units.
        Reference: paper, general variance lemma; erratum 5.
        """
        unit = float(self.scale_squared)
        k2, k4 = noise.k2 * unit, noise.k4 * unit**2
        return self.projection_variance, 4 * k2, self.sketch_dim * (k4 + 2 * k2**2)

    def noise_bias(self, k2: NDArray[np.float64], site: str) -> NDArray[np.float64]:  # noqa: ARG002  # the same
        """What noise of variance κ₂ in each coordinate adds to a squared norm, in squared integer units of the sketch."""
        return k2 * self.sketch_dim

    def null_law(self, noise: Cumulants, site: str) -> tuple[int, float] | None:  # noqa: ARG002  # the same
        """At D = 0: (degrees of freedom, variance) of ‖noise‖² in integer units; None for independent coordinates."""
        return None

    def product_coefficients(self, site: str) -> ProductCoefficients:  # noqa: ARG002  # the same
        """The variance of an estimate of ⟨x, y⟩; the projection's own part is an upper bound."""
        half, unit = self.projection_variance / 2, float(self.scale_squared)
        constant = self.sketch_dim * unit**2
        return ProductCoefficients(half, half, unit, constant, constant, constant)

    @property
    def left_out(self) -> int | None:
        """How many coordinates a rotation has besides those of the sketch, where they are the fewer; None for no rotation."""
        return None

    def error_moments(self) -> ErrorMoments | None:
        """Bounds that hold for every z; None where no proof is at hand."""
        return None


def _float_product(X: Any, columns: Any) -> NDArray[np.float64]:
    """X·columns in float64; of dense rows some at a time, which SciPy copies."""
    n, d = X.shape
    product = np.empty((n, columns.shape[1]))
    step = max(1, n if sparse.issparse(X) else _FLOAT_ENTRIES // d)
    for start in range(0, n, step):
        block: Any = X[start : start + step].astype(np.float64, copy=False) @ columns
        product[start : start + step] = block if isinstance(block, np.ndarray) else block.toarray()
    return product


def set_checked(
    transform: Transform,
    *,
    largest_input: int = LARGEST_INPUT_DIM,
    largest_sketch: int = LARGEST_SKETCH_DIM,
    **others: Any,
) -> None:
    """Replaces the sizes and the seed of a frozen transform by checked ones, and other fields by these values."""
    if transform.input_dim is not None or not transform.open_vocabulary:
        others["input_dim"] = checked_input_dim(transform.input_dim, largest_input)
    others["sketch_dim"] = integer("sketch_dim", transform.sketch_dim, at_least=1, at_most=largest_sketch)
    others["seed"] = checked_seed(transform.seed)  # type: ignore[attr-defined]  # those that are random have one
    for name, value in others.items():
        object.__setattr__(transform, name, value)


def checked_input_dim(value: Any, at_most: int = LARGEST_INPUT_DIM) -> int:
    """An input dimension, if it is one."""
    return integer("input_dim", value, at_least=1, at_most=at_most)


def check_dense_size(input_dim: int, sketch_dim: int) -> None:
    """Refuses dense matrices whose scan would take more than seconds."""
    if input_dim * sketch_dim > LARGEST_DENSE:
        raise ParameterError(
            f"input_dim·sketch_dim must be at most 2^26 for a dense matrix, got {input_dim} x {sketch_dim}; try SparseJL",
            *("input_dim", "sketch_dim"),
        )


def checked_norm(name: str, value: Any, at_most: float) -> float:
    """A norm as a float, so that no integer type can wrap; the message does not show it, it comes from data."""
    plain = plain_number(value)
    if plain is None or not 0 <= plain <= at_most:
        raise ParameterError(f"{name} must be a number from 0 to {at_most:g}", name)
    return float(plain)


def largest_column_norms(columns: Matrix) -> tuple[int, int]:
    """The largest ℓ1 norm and the largest squared ℓ2 norm of a column."""
    magnitudes: Any = abs(columns)
    return int(magnitudes.sum(axis=0).max()), int((magnitudes * magnitudes).sum(axis=0).max())


def block_rows(width: int) -> int:
    """How many rows of that width one thread works on at a time."""
    return max(1, _BLOCK_ENTRIES // max(1, width))


def _variance_text(coefficients: tuple[float, float]) -> str:
    a, b = coefficients
    return "0" if a == b == 0 else f"{a:.6g}·‖z‖₂⁴ {'−' if b >= 0 else '+'} {abs(b):.6g}·‖z‖₄⁴"
