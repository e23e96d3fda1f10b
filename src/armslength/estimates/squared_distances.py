"""Squared distances and squared norms: unbiased, with their exact variance curve."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.kernels import squared_differences
from armslength.estimates.noise_models import PairNoises, pair_noises, row_noises
from armslength.estimates.result import Bounds, Estimate
from armslength.estimates.variance import debias, variance_curve
from armslength.protocol.protocol import Protocol
from armslength.protocol.sketches import Sketches, check_same_space
from armslength.threads import for_blocks

CLEAR_NOTE = "data in the clear is part of it: not private"


def squared_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x−y‖² for every row of a against every row of b, or for all pairs within a.

    ‖u−v‖² − k·κ₂, in data units. May be negative; a row against itself is exactly 0.
    Guarantee: unbiased over the public seed, for any noise whose cumulants are known.
    Reference: paper, general estimator lemma; erratum 1 (the main theorem's own constant is half of what it must be).
    """
    left, right = checked_pair(a, b)
    raw = raw_squared_differences(left, right)
    return _estimate(
        "squared distances",
        raw,
        pair_noises(left, right),
        left,
        (left.labels, right.labels),
        b is None,
        clear_note(left, right),
    )


def squared_norms(a: Sketches) -> Estimate:
    """‖x‖² for every row: ‖u‖² − k·κ₂, in data units; unbiased over the public seed."""
    checked_pair(a, None)
    zero = np.zeros((1, a.values.shape[1]), dtype=a.values.dtype)
    raw = _squared(a.values, zero, offsets(a), np.zeros(1))
    return _estimate("squared norms", raw[:, 0], _flat(row_noises(a)), a, (a.labels,), False, clear_note(a))


def _flat(noises: PairNoises) -> PairNoises:
    return PairNoises(noises.noises, noises.number[:, 0])


def _estimate(
    quantity: str,
    raw: NDArray[np.float64],
    noises: PairNoises,
    sketches: Sketches,
    labels: tuple[tuple[str, ...], ...],
    within: bool,
    note: str,
) -> Estimate:
    protocol = sketches.protocols[0]
    value = protocol.unit_squared * (raw - debias(protocol, noises.each("k2")))
    return Estimate(
        quantity,
        value,
        labels,
        within,
        note,
        partial(plug_in_variance, protocol, noises, value),
        partial(interval, protocol, noises, value),
    )


def plug_in_variance(
    protocol: Protocol, noises: PairNoises, value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """V at the estimate, or at 0 where the estimate is negative."""
    result = np.empty_like(value)
    for number, noise in enumerate(noises.noises):
        chosen = noises.number == number
        result[chosen] = variance_curve(protocol, noise.cumulants).at(np.maximum(value[chosen], 0.0))
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
    for number, noise in enumerate(noises.noises):
        chosen = noises.number == number
        if not chosen.any():
            continue
        rule = interval_rule(protocol, noise)
        lower[chosen], upper[chosen] = rule.interval(value[chosen], level)
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


def offsets(sketches: Sketches) -> NDArray[np.float64]:
    """What is added to each row's stored numbers."""
    return np.array([row.offset for row in sketches.provenance])


def raw_squared_differences(left: Sketches, right: Sketches) -> NDArray[np.float64]:
    """‖u−v‖² in squared integer units, for all pairs."""
    return _squared(left.values, right.values, offsets(left), offsets(right))


def _squared(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_offset: NDArray[np.float64],
    right_offset: NDArray[np.float64],
) -> NDArray[np.float64]:
    if left.dtype != right.dtype:
        left, right = left.astype(np.float64), right.astype(np.float64)
    if left.dtype == np.int64 and _exact_in_float64(left, right) and len({*left_offset, *right_offset}) == 1:
        u, v = left.astype(np.float64), right.astype(np.float64)
        result = u @ v.T
        result *= -2
        result += (u * u).sum(axis=1)[:, None]
        result += (v * v).sum(axis=1)
        return result
    result = np.empty((len(left), len(right)))

    def fill(start: int, stop: int) -> None:
        squared_differences(
            left[start:stop], right, left_offset[start:stop], right_offset, result[start:stop]
        )

    for_blocks(len(left), max(1, len(left) // 64), fill)
    return result


def _exact_in_float64(left: NDArray[np.int64], right: NDArray[np.int64]) -> bool:
    """Whether ‖u‖² + ‖v‖² − 2⟨u,v⟩ is exact in any order: every sum is an integer below 2^53."""
    largest = max(
        abs(int(extreme)) for side in (left, right) for extreme in (side.max(initial=0), side.min(initial=0))
    )
    return bool(4 * left.shape[1] * largest**2 < 2**53)
