"""Squared distances and squared norms: unbiased, with their exact variance curve."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.kernels import squared_differences
from armslength.estimates.noise_models import PairNoises, pair_noises, row_noises
from armslength.estimates.result import Bounds, Estimate
from armslength.estimates.squares import all_squares, chosen_squares
from armslength.estimates.variance import debias, variance_curve
from armslength.protocol.protocol import Protocol
from armslength.protocol.sketches import Sketches, check_same_space

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
