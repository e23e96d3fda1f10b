"""Distances: the square root of what squared distances say, with the mapped interval."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import TILE_ROWS, TILE_WIDTH, kernel, multiply_tile, transpose_block
from armslength.errors import ParameterError
from armslength.estimates.estimate import Bounds, Estimate
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.pair_noise import PairNoises, pair_noises, row_noises
from armslength.estimates.variance import debias, variance_curve
from armslength.protocol.protocol import Protocol
from armslength.sketches.sketches import Sketches, check_same_space
from armslength.threads import for_blocks

# Hot loops over pairs of sketches.


BAND = 8 * TILE_ROWS  # rows


@kernel
def squared_differences(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_offset: NDArray[np.float64],
    right_offset: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """result[i, j] = ‖left_i − right_j‖², the difference taken modulo 2^64 before it becomes a float."""
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            result[i, j] = squared_difference(left[i], right[j], left_offset[i] - right_offset[j])


@kernel
def chosen_squared_differences(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_offset: NDArray[np.float64],
    right_offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    result: NDArray[np.float64],
) -> None:
    """result[p] = ‖left_i − right_j‖² for the pairs i = rows[p], j = columns[p]."""
    for number in range(len(rows)):
        i, j = rows[number], columns[number]
        result[number] = squared_difference(left[i], right[j], left_offset[i] - right_offset[j])


@kernel
def squared_difference(left: NDArray[np.int64], right: NDArray[np.int64], shift: float) -> float:
    """‖left − right + shift‖²."""
    total = 0.0
    for number in range(len(left)):
        difference = np.float64(left[number] - right[number]) + shift
        total += difference * difference
    return total


@kernel
def squares_from_products(
    rows: NDArray[np.float64],
    panels: NDArray[np.float64],
    row_squares: NDArray[np.float64],
    column_squares: NDArray[np.float64],
    bias_and_unit: tuple[float, float],
    first: int,
    mirrored: bool,
    result: NDArray[np.float64],
) -> None:
    """result[i, j] = unit·(‖u_i‖² + ‖v_j‖² − 2⟨u_i, v_j⟩ − bias), for one band of rows i.

    Args:
        rows: The u_i; zeros follow them up to a whole band.
        panels: The v_j, eight at a time, transposed; zeros follow them up to a whole panel.
        row_squares: ‖u_i‖².
        column_squares: ‖v_j‖².
        bias_and_unit: What noise adds to a squared norm, and a factor for all.
        first: The first row of the band.
        mirrored: Whether v is u: then only what lies on or below the diagonal is computed, and copied across it.
        result: For all i and j.
    """
    bias, unit = bias_and_unit
    last = min(first + BAND, result.shape[0])
    stop = last if mirrored else result.shape[1]
    part = np.empty((BAND, TILE_WIDTH))
    for left in range(0, stop, TILE_WIDTH):
        right = min(left + TILE_WIDTH, result.shape[1])
        for top in range(first, last, TILE_ROWS):
            tile = part[top - first : top - first + TILE_ROWS]
            multiply_tile(rows, top, panels[left // TILE_WIDTH], tile)
        for i in range(first, last):
            for j in range(left, right):
                total = (row_squares[i] + column_squares[j] - 2 * part[i - first, j - left]) - bias
                part[i - first, j - left] = unit * total
                result[i, j] = part[i - first, j - left]
        if mirrored and left < first:
            if last - first == BAND:
                for top in range(0, BAND, TILE_WIDTH):
                    transpose_block(part.view(np.int64), top, 0, result.view(np.int64), left, first + top)
            else:
                for j in range(left, right):
                    for i in range(first, last):
                        result[j, i] = part[i - first, j - left]


# ‖u−v‖² for all pairs of rows: by products where their rounding cannot matter, pair by pair where it could.
#
# The products are our own and not the BLAS's: its threads go on spinning for 25 ms after a call and take time from ours, and
# what follows the product can be done here while a tile is in the cache.


_EXACT = 2.0**53


def all_squares(
    left: Sketches, right: Sketches, bias: float, unit: float, tolerance: float
) -> NDArray[np.float64]:
    """unit·(‖u−v‖² − bias) for every row u of left and v of right, u and v in integer units.

    Differences are taken modulo 2^64, so it does not matter where the integers have wrapped.

    Args:
        left: n rows.
        right: m rows.
        bias: What noise adds to a squared norm, in squared integer units.
        unit: What turns those into data units.
        tolerance: How large an error of ‖u−v‖² does no harm; 0 if none does.
    """
    if not len(left) or not len(right):
        return np.empty((len(left), len(right)))
    u, v = _from_first_row(left, right)
    left_squares = np.einsum("ij,ij->i", u, u)
    right_squares = left_squares if v is u else np.einsum("ij,ij->i", v, v)
    if not _products_will_do((u,) if v is u else (u, v), (left_squares, right_squares), tolerance):
        return _pair_by_pair(left, right, bias, unit)
    rows, panels = _padded(u), panels_of(v)
    result = np.empty((len(u), len(v)))
    bands = -(-len(u) // BAND)
    mirrored = v is u

    def fill(start: int, stop: int) -> None:
        for number in range(start, stop):
            # With a mirror image the bands grow: a short one with a long one, so that every thread has as much to do.
            for band in {number, bands - 1 - number}:
                squares_from_products(
                    rows, panels, left_squares, right_squares, (bias, unit), band * BAND, mirrored, result
                )

    for_blocks(-(-bands // 2), 1, fill)
    return result


def _padded(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, with zeros up to a whole band."""
    padded = np.zeros((-(-len(rows) // BAND) * BAND, rows.shape[1]))
    padded[: len(rows)] = rows
    return padded


def panels_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, eight at a time, transposed, with zeros up to a whole panel."""
    count = -(-len(rows) // TILE_WIDTH)
    padded = np.zeros((count * TILE_WIDTH, rows.shape[1]))
    padded[: len(rows)] = rows
    return np.ascontiguousarray(padded.reshape(count, TILE_WIDTH, -1).transpose(0, 2, 1))


def chosen_squares(
    left: Sketches, right: Sketches, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """‖u−v‖² for some pairs, in squared integer units."""
    result = np.empty(len(rows))
    chosen_squared_differences(*_same_type(left, right), left.offsets, right.offsets, rows, columns, result)
    return result


def _from_first_row(left: Sketches, right: Sketches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides less the first row of all: what the rows have in common would only cost digits."""
    a, b = _same_type(left, right)
    offset = left.offsets[0]

    def relative(side: NDArray[Any], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        difference: NDArray[np.float64] = (side - a[:1]).astype(np.float64)
        if (offsets != offset).any():
            difference += (offsets - offset)[:, None]
        return difference

    u = relative(a, left.offsets)
    return u, u if left is right else relative(b, right.offsets)


def _same_type(left: Sketches, right: Sketches) -> tuple[NDArray[Any], NDArray[Any]]:
    if left.values.dtype == right.values.dtype:
        return left.values, right.values
    return left.values.astype(np.float64), right.values.astype(np.float64)


def _products_will_do(
    sides: tuple[NDArray[np.float64], ...],
    squares: tuple[NDArray[np.float64], ...],
    tolerance: float,
) -> bool:
    """Whether ‖u‖² + ‖v‖² − 2⟨u, v⟩ is exact in any order, or its rounding within the tolerance.

    Sums of k products are wrong by at most k·2^−53 times the sum of their magnitudes, in any order, fused or not; the
    magnitudes add up to at most (‖u‖ + ‖v‖)². Eight more for the rounding of u, of v and of the three terms.
    """
    coordinates = sides[0].shape[1]
    largest = max(float(max(side.max(), -side.min())) for side in sides)
    if 4 * coordinates * largest**2 < _EXACT and all(np.array_equal(side, np.floor(side)) for side in sides):
        return True
    longest = max(float(each.max(initial=0.0)) for each in squares)
    return bool(4 * longest * (coordinates + 8) / _EXACT <= tolerance)


def _pair_by_pair(left: Sketches, right: Sketches, bias: float, unit: float) -> NDArray[np.float64]:
    (a, b), (p, q) = _same_type(left, right), (left.offsets, right.offsets)
    result = np.empty((len(a), len(b)))

    def fill(start: int, stop: int) -> None:
        part = result[start:stop]
        squared_differences(a[start:stop], b, p[start:stop], q, part)
        part -= bias
        part *= unit

    for_blocks(len(a), max(1, len(a) // 64), fill)
    return result


# Squared distances and squared norms: unbiased, with their exact variance curve.


_UNNOTICED = 1e-6  # of a standard error
CLEAR_NOTE = "data in the clear is part of it: not private"


def squared_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x−y‖² for every row of a against every row of b, or for all pairs within a.

    ‖u−v‖² − k·κ₂, in data units. May be negative; a row against itself is exactly 0.
    Guarantee: unbiased over the public seed, for any noise whose cumulants are known.
    Reference: paper, general estimator lemma; erratum 1 (the main theorem's own constant is half of what it must be).
    """
    left, right = checked_pair(a, b)
    noises = pair_noises(left, right)
    value = _values(left, right, noises)
    return _estimate(
        "squared distances",
        value,
        noises,
        (left, right),
        b is None,
    )


def squared_norms(a: Sketches) -> Estimate:
    """‖x‖² for every row: ‖u‖² − k·κ₂, in data units; unbiased over the public seed."""
    checked_pair(a, None)
    noises = row_noises(a)
    protocol = a.protocols[0]
    zero = np.zeros((1, a.values.shape[1]), dtype=a.values.dtype)
    raw = np.empty((len(a), 1))
    squared_differences(a.values, zero, a.offsets, np.zeros(1), raw)
    value = protocol.unit_squared * (raw[:, 0] - debias(protocol, noises.each("k2")))
    return _estimate("squared norms", value, noises, (a,), False)


def _estimate(
    quantity: str,
    value: NDArray[np.float64],
    noises: PairNoises,
    sides: tuple[Sketches, ...],
    within: bool,
) -> Estimate:
    protocol = sides[0].protocols[0]
    return Estimate(
        quantity,
        value,
        tuple(side.labels for side in sides),
        tuple(side.in_clear for side in sides),
        within,
        clear_note(*sides),
        partial(plug_in_variance, protocol, noises, value),
        partial(interval, protocol, noises, value),
    )


def _values(left: Sketches, right: Sketches, noises: PairNoises) -> NDArray[np.float64]:
    """γ²c²(‖u−v‖² − bias) for all pairs."""
    protocol = left.protocols[0]
    unit = protocol.unit_squared
    biases = [float(debias(protocol, np.asarray(noise.cumulants.k2))) for noise, _ in noises.groups]
    smallest = min((noise.cumulants.k2 for noise, chosen in noises.groups if _is_block(chosen)), default=0.0)
    # √(2k)·κ₂ is what noise alone makes of the squared norm; input noise, which is summed, makes no less.
    harmless = _UNNOTICED * math.sqrt(2 * protocol.transform.sketch_dim) * smallest
    alike = sum(_is_block(chosen) for _, chosen in noises.groups) == 1
    # One bias for nearly all is taken away in the same pass. Several are not: a large one would cost a small one its digits.
    first_bias, first_unit = (biases[0], unit) if alike else (0.0, 1.0)
    value = all_squares(left, right, first_bias, first_unit, harmless)
    for (_, chosen), bias in zip(noises.groups, biases, strict=True):
        if not _is_block(chosen):
            # A noise that both rows have may cancel, and then nothing hides any rounding: these are done one by one.
            value[chosen] = unit * (chosen_squares(left, right, *chosen) - bias)
        elif not alike:
            value[chosen] = unit * (value[chosen] - bias)
    return value


def _is_block(chosen: Any) -> bool:
    """Whether a group is all pairs, or all of some rows with some columns, and not a list of pairs."""
    return chosen is ... or chosen[0].ndim == 2


def plug_in_variance(
    protocol: Protocol, noises: PairNoises, value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """V at the estimate, or at 0 where the estimate is negative."""
    result = np.empty_like(value)
    for noise, chosen in noises.groups:
        variance = variance_curve(protocol, noise.cumulants).at(value[chosen])
        if chosen is ...:
            result = variance
        else:
            result[chosen] = variance
    return result


def interval(
    protocol: Protocol,
    noises: PairNoises,
    value: NDArray[np.float64],
    confidence: float,
    method: str,
    pairs: int,
) -> Bounds:
    """Intervals pair by pair, each by the rule of its noise."""
    level = Level.of(confidence, method, pairs)
    lower, upper = np.empty_like(value), np.empty_like(value)
    for noise, chosen in noises.groups:
        ends = interval_rule(protocol, noise).interval(value[chosen], level)
        if chosen is ...:
            lower, upper = ends
        else:
            lower[chosen], upper[chosen] = ends
    return lower, upper


def checked_pair(a: Sketches, b: Sketches | None) -> tuple[Sketches, Sketches]:
    """Both sides of a comparison, if they can be compared."""
    for sketches in (a, b):
        if sketches is not None and not isinstance(sketches, Sketches):
            raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    if b is None:
        return a, a
    check_same_space((*a.protocols, *b.protocols))
    return a, b


def clear_note(*sides: Sketches) -> str:
    """What every output says when data without noise is part of it."""
    return CLEAR_NOTE if any(any(side.in_clear) for side in sides) else ""


def is_clear(note: str) -> bool:
    """Whether a note says that data without noise is part of an answer."""
    return CLEAR_NOTE in note


def distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x−y‖ for every row of a against every row of b, or for all pairs within a.

    The square root of the squared estimate, clipped at 0: biased, so it carries an interval and no variance.
    """
    return as_distances(squared_distances(a, b))


def as_distances(squared: Estimate) -> Estimate:
    """The square roots of estimated squares, clipped at 0, with the square roots of their intervals."""
    value = np.sqrt(np.maximum(squared.value, 0.0))
    quantity = squared.quantity.replace("squared ", "").replace("norms", "lengths")
    return replace(
        squared, quantity=quantity, value=value, _variance=None, _interval=partial(_root_interval, squared)
    )


def _root_interval(squared: Estimate, confidence: float, method: str, pairs: int) -> Bounds:
    lower, upper = squared.interval(confidence, method=method, comparisons=pairs)
    return np.sqrt(lower), np.sqrt(upper)


# A matrix of squared distances that points could really have, near the estimated one.


def valid_squared_distances(estimate: Estimate) -> NDArray[np.float64]:
    """All-pairs squared distances projected onto those of real points: symmetric, zero diagonal, no negative ones.

    −½JDJ, with J the centering matrix, is the Gram matrix of centered points exactly if it has no negative
    eigenvalue; those that noise made negative are set to 0. For drawings and clusterings that need a true metric:
    the result is biased, and the intervals of the estimate do not apply to it.
    """
    if not np.isfinite(estimate.value).all():
        raise ParameterError("estimate must be finite, got infinity or NaN")
    if estimate.quantity != "squared distances" or not estimate.within:
        raise ParameterError(f"estimate must be al.squared_distances within one set, got {estimate.quantity}")
    d = (estimate.value + estimate.value.T) / 2
    centered = d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()
    eigenvalues, vectors = np.linalg.eigh(-centered / 2)
    gram = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    squares = np.diag(gram)
    valid: NDArray[np.float64] = np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0)
    np.fill_diagonal(valid, 0.0)
    return valid
