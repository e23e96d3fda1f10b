"""Squared distances, norms and inner products of rows as they are, and roots of squares.

Squares are unbiased with their exact variance. Intervals of products are approximate: their variance has several unknowns.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from armslength._numba import kernel
from armslength.checks import one_of
from armslength.errors import ParameterError
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Bounds, Level, Rule, pair_intervals
from armslength.estimates.pair_noise import Floats, PairNoises, pair_noises, shared_cumulants
from armslength.estimates.variance import ErrorModel
from armslength.sketches.sketches import Sketches, check_same_space
from armslength.threads import for_blocks
from armslength.transforms.transform import ProductCoefficients

Integers = NDArray[np.int64]

CLEAR_NOTE = "data in the clear is part of it: not private"
APPROXIMATE = "approximate: norms and products in the variance are themselves estimated"
_UNNOTICED = 1e-6  # of a standard error
_EXACT = 2.0**53
_BLOCK_ROWS = 64  # of a matrix of pairs


def squared_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x−y‖² for every row of a against every row of b, or for all pairs within a.

    ‖u−v‖² − k·κ₂, in data units. May be negative; a row against itself is exactly 0.
    Guarantee: unbiased over the public seed, for any noise whose cumulants are known.
    Reference: paper, general estimator lemma; erratum 1 (the main theorem's own constant is half of what it must be).
    """
    left, right = checked_pair(a, b)
    model, noises = ErrorModel.of(left.protocols[0]), pair_noises(left, right)
    value = debiased_squares(model, left.values, right.values, noises)
    rule = Pair(model, noises, value)
    return pair_estimate("squared distances", value, (left, right), rule, within=b is None)


def squared_norms(a: Sketches) -> Estimate:
    """‖x‖² for every row: ‖u‖² − k·κ₂, in data units; unbiased over the public seed."""
    checked_pair(a, None)
    model, noises = ErrorModel.of(a.protocols[0]), PairNoises.of_rows(a.noises)
    u = a.values.astype(np.float64)
    value = model.unit * (np.einsum("ij,ij->i", u, u) - model.bias * noises.each("k2"))
    return pair_estimate("squared norms", value, (a,), Pair(model, noises, value))


def as_distances(squared: Estimate) -> Estimate:
    """The square roots of estimated squares, clipped at 0, with the square roots of their intervals."""
    value = np.maximum(squared.value, 0.0)
    np.sqrt(value, out=value)
    quantity = squared.quantity.replace("squared ", "").replace("norms", "lengths")
    return replace(squared, quantity=quantity, value=value, rule=Root(squared.rule))


def gram_matrix(squared: Floats) -> Floats:
    """−½JDJ, with J the centering matrix: the Gram matrix of centered points with these squared distances."""
    d = (squared + squared.T) / 2
    centered: Floats = d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()
    return -centered / 2


def checked_pair(a: Sketches, b: Sketches | None) -> tuple[Sketches, Sketches]:
    """Both sides of a comparison, if they can be compared."""
    for sketches in (a, b):
        if sketches is not None and not isinstance(sketches, Sketches):
            raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}", "sketches")
    if b is None:
        return a, a
    check_same_space((*a.protocols, *b.protocols))
    return a, b


def pair_estimate(
    quantity: str,
    value: Floats,
    sides: tuple[Sketches, ...],
    rule: Rule,
    *,
    within: bool = False,
    note: str = "",
) -> Estimate:
    """An estimate for rows or pairs of rows, with their labels, and a note if data in the clear is part of it."""
    notes = "; ".join(filter(None, (note, clear_note(*sides))))
    labels, in_clear = tuple(side.labels for side in sides), tuple(side.in_clear for side in sides)
    return Estimate(quantity, value, labels, in_clear, within, notes, rule)


def clear_note(*sides: Sketches) -> str:
    """The note of outputs that data without noise is part of; empty for others."""
    return CLEAR_NOTE if any(any(side.in_clear) for side in sides) else ""


def is_clear(note: str) -> bool:
    """Whether a note says that data without noise is part of an answer."""
    return CLEAR_NOTE in note


@dataclass(frozen=True)
class Pair:
    """The rule of squared distances and squared norms."""

    model: ErrorModel
    noises: PairNoises
    value: Floats

    @property
    def variance(self) -> Floats:
        """V at the estimate, or at 0 where the estimate is negative."""
        result = self.model.variance_curve(self.noises.cumulants).at(self.value)
        if self.noises.shared is not None:
            pairs, merged = self.noises.shared
            result[pairs] = Pair(self.model, merged, self.value[pairs]).variance
        return result

    def interval(self, level: Level) -> Bounds:
        """Every D that could have given the estimate."""
        return pair_intervals(self.model, self.noises, self.value, level)


@dataclass(frozen=True)
class Root:
    """The rule of square roots."""

    squared: Rule
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """The square roots of the ends."""
        lower, upper = self.squared.interval(level)
        return np.sqrt(lower), np.sqrt(upper)


def inner_products(a: Sketches, b: Sketches | None = None) -> Estimate:
    """⟨x, y⟩ for every row of a against every row of b, or within a.

    ⟨u, v⟩ − k·Σαβκ₂ over noises that both rows have, in data units; unbiased over the public seed.
    """
    left, right = checked_pair(a, b)
    protocol, transform = left.protocols[0], left.protocols[0].transform
    u, v = (side.values.astype(np.float64) for side in (left, right))
    shared = shared_cumulants(left, right)
    value = protocol.unit_squared * (u @ v.T - transform.noise_bias(shared[0], protocol.noise_site))
    x, y = (np.maximum(squared_norms(side).value, 0.0) for side in (left, right))
    kx, ky = (PairNoises.of_rows(side.noises).each("k2") for side in (left, right))
    coefficients = transform.product_coefficients(protocol.noise_site)
    rule = Product(coefficients, float(protocol.resolution) ** 2, value, (x, y), (kx, ky), shared)
    return pair_estimate("inner products", value, (left, right), rule, within=b is None, note=APPROXIMATE)


@dataclass(frozen=True)
class Product:
    """The rule of inner products. Its variance is itself an estimate, so nothing is guaranteed."""

    coefficients: ProductCoefficients
    unit: float  # squared data units in a squared grid unit
    value: Floats
    norms: tuple[Floats, Floats]  # estimated ‖x‖² and ‖y‖², at least 0
    noises: tuple[Floats, Floats]  # κ₂ of each row and column, in integer units
    shared: tuple[Floats, Floats]  # Σαβκ₂ and Σα²β²κ₄ of each pair, in integer units

    @property
    def variance(self) -> Floats:
        """P(x,y) + κ₂(μ)‖x‖² + κ₂(η)‖y‖² + 2⟨x,y⟩Σαβκ₂ + k(κ₂κ₂ + (Σαβκ₂)² + Σα²β²κ₄), at the estimates."""
        x, y = self.norms[0][:, None], self.norms[1][None, :]
        # By Cauchy and Schwarz no product is larger than its norms allow.
        inner = np.clip(self.value, -np.sqrt(x * y), np.sqrt(x * y))
        kx, ky = self.noises[0][:, None] * self.unit, self.noises[1][None, :] * self.unit
        s2, s4 = self.shared[0] * self.unit, self.shared[1] * self.unit**2
        factors = self.coefficients
        noise = factors.linear * (kx * y + ky * x + 2 * inner * s2)
        own = factors.norms * x * y + factors.inner * inner**2
        return own + noise + factors.own * kx * ky + factors.shared * s2**2 + factors.fourth * s4

    def interval(self, level: Level) -> Bounds:
        """value ± z·√variance."""
        one_of("method of an approximate interval", level.method, METHODS[:1])
        reach = -ndtri(level.tail) * np.sqrt(self.variance)
        return self.value - reach, self.value + reach


def debiased_squares(
    model: ErrorModel, left: NDArray[Any], right: NDArray[Any], noises: PairNoises
) -> Floats:
    """γ²c²(‖u−v‖² − bias) for all pairs of rows in integer units; it does not matter where integers have wrapped."""
    k2 = noises.k2[noises.index]
    # √(2k)·κ₂ is what noise alone makes of the squared norm; input noise, which is summed, makes no less.
    smallest = math.sqrt(2 * model.coordinates) * float(np.min(k2, initial=np.inf))
    value = all_squares(left, right, _UNNOTICED * smallest)
    value -= model.bias * k2
    if noises.shared is not None:
        # A noise that both rows have may cancel, and then nothing hides rounding.
        pairs, merged = noises.shared
        value[pairs] = chosen_squares(left, right, *pairs) - model.bias * merged.each("k2")
    value *= model.unit
    return value


def all_squares(left: NDArray[Any], right: NDArray[Any], tolerance: float) -> Floats:
    """‖u−v‖² for every row u of left and v of right, in squared integer units.

    By a product of matrices if its error is within the tolerance, else pair by pair.
    """
    result = np.empty((len(left), len(right)))
    if not result.size:
        return result
    is_symmetric = left is right
    u = _from_first_row(left, left[:1])
    v = u if is_symmetric else _from_first_row(right, left[:1])
    left_squares = np.einsum("ij,ij->i", u, u)
    right_squares = left_squares if is_symmetric else np.einsum("ij,ij->i", v, v)
    if not _products_will_do((u, v), (left_squares, right_squares), tolerance):
        for start in range(0, len(result), _BLOCK_ROWS):
            block = result[start : start + _BLOCK_ROWS]
            rows, columns = np.indices(block.shape).reshape(2, -1)
            block[:] = chosen_squares(left, right, rows + start, columns).reshape(block.shape)
        return result
    # In one call: threads of the BLAS wait for each other at the end of each. Of u with itself it makes a symmetric matrix.
    np.matmul(u, v.T, out=result)
    for start in range(0, len(u), _BLOCK_ROWS):
        block = result[start : start + _BLOCK_ROWS]  # what follows stays in the cache
        block *= -2
        block += left_squares[start : start + _BLOCK_ROWS, None]
        block += right_squares
    return result


def chosen_squares(left: NDArray[Any], right: NDArray[Any], rows: Integers, columns: Integers) -> Floats:
    """‖u−v‖² for some pairs, from their differences, in squared integer units."""
    values, result = _same_type(left, right), np.empty(len(rows))
    for_blocks(len(rows), 2**13, partial(squared_differences, values, (rows, columns), result))
    return result


def _from_first_row(rows: NDArray[Any], first: NDArray[Any]) -> Floats:
    """The rows minus the first of the left side: what all rows have in common would only cost digits."""
    rows, first = _same_type(rows, first)
    difference: Floats = (rows - first).astype(np.float64)
    return difference


def _same_type(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if left.dtype == right.dtype:
        return left, right
    return left.astype(np.float64), right.astype(np.float64)


def _products_will_do(sides: tuple[Floats, ...], squares: tuple[Floats, ...], tolerance: float) -> bool:
    """Whether ‖u‖² + ‖v‖² − 2⟨u, v⟩ is exact in any order, or its rounding within the tolerance.

    Sums of k products are wrong by at most k·2^−53 times the sum of their magnitudes, in any order, fused or not.
    The magnitudes add up to at most (‖u‖ + ‖v‖)². Eight more for the rounding of u, v and the three terms.
    """
    coordinates = sides[0].shape[1]
    largest = max(float(max(side.max(), -side.min())) for side in sides)
    if 4 * coordinates * largest**2 < _EXACT and all(np.array_equal(side, np.floor(side)) for side in sides):
        return True
    longest = max(float(side.max(initial=0.0)) for side in squares)
    return bool(4 * longest * (coordinates + 8) / _EXACT <= tolerance)


@kernel
def squared_differences(
    values: tuple[Integers, Integers],
    pairs: tuple[Integers, Integers],
    result: Floats,
    first: int,
    stop: int,
) -> None:
    """result[n] = ‖left_i − right_j‖² for the n-th pair (i, j), from `first` to `stop`.

    Differences of integers are modulo 2^64 before they become floats.
    """
    for n in range(first, stop):
        i, j = pairs[0][n], pairs[1][n]
        left, right = values[0][i], values[1][j]
        total = 0.0
        for number in range(len(left)):
            difference = np.float64(left[number] - right[number])
            total += difference * difference
        result[n] = total
