"""Intervals for pairs of rows that were multiplied by numbers of their own: one rule for each ratio, not for each pair.

Up to its unit, a rule depends on the ratio of the two rows' factors alone. Ratios are rounded up to a grid of a 64th of an
octave, so that the noise which a rule counts with is never smaller than the pair's, and at most 1.1 percent larger.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.noise_models import PairNoise, Term, noise_classes
from armslength.estimates.result import Bounds
from armslength.protocol.sketches import Sketches

_STEPS = 64  # in an octave
_SMALLEST = (
    -10 * _STEPS
)  # a row with a thousandth of the other's factor adds a millionth to the variance: rounded up to that


@dataclass(frozen=True)
class ScaledRows:
    """Sketches whose rows are multiplied by positive numbers."""

    sketches: Sketches
    factors: NDArray[np.float64]


def scaled_intervals(
    left: ScaledRows,
    right: ScaledRows,
    value: NDArray[np.float64],
    shared: tuple[tuple[int, int, PairNoise], ...],
    said: tuple[float, str, int],
) -> Bounds:
    """(lower, upper) of ‖z‖² for all pairs of rows.

    Args:
        left: n rows.
        right: m rows.
        value: n x m estimates, each free of bias.
        shared: Pairs that have a noise in common: row, column and what is left of their noises.
        said: The level, the method, and how many pairs hold together.
    """
    level = Level.of(*said)
    protocol = left.sketches.protocols[0]
    rows, row_terms = noise_classes(left.sketches)
    columns, column_terms = noise_classes(right.sketches)
    numbers = grid_numbers(left.factors, right.factors)
    larger = np.maximum(left.factors[:, None], right.factors[None, :])
    width = 2 * -_SMALLEST + 1
    keys = (rows[:, None] * len(column_terms) + columns[None, :]) * width + (numbers - _SMALLEST)
    lower, upper = np.empty_like(value), np.empty_like(value)
    order = np.argsort(keys, axis=None, kind="stable")
    different, starts = np.unique(keys.ravel()[order], return_index=True)
    for key, chosen in zip(different.tolist(), np.split(order, starts[1:]), strict=True):
        classes, number = divmod(key, width)
        i, j = divmod(classes, len(column_terms))
        noise = _noise(row_terms[i], column_terms[j], number + _SMALLEST)
        unit = larger.flat[chosen] ** 2
        ends = interval_rule(protocol, noise).interval(value.flat[chosen] / unit, level)
        lower.flat[chosen], upper.flat[chosen] = ends[0] * unit, ends[1] * unit
    for i, j, noise in shared:
        one = interval_rule(protocol, noise).interval(value[i : i + 1, j], level)
        lower[i, j], upper[i, j] = one[0][0], one[1][0]
    return lower, upper


def grid_numbers(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which ratio each pair of factors is taken as: 0 for equal ones, negative if the right one is the smaller."""
    steps = _STEPS * (np.log2(right)[None, :] - np.log2(left)[:, None])
    # Toward 0, so that the smaller factor is rounded up.
    numbers: NDArray[np.int64] = np.clip(np.trunc(steps), _SMALLEST, -_SMALLEST).astype(np.int64)
    return numbers


def _noise(mine: tuple[Term, ...], theirs: tuple[Term, ...], number: int) -> PairNoise:
    """The noise of two rows, the larger factor taken as 1 and the other as the number says."""
    smaller = 2.0 ** (-abs(number) / _STEPS)
    first, second = (1.0, smaller) if number <= 0 else (smaller, 1.0)
    return PairNoise.of(
        [
            *((source, first * coefficient) for source, coefficient in mine),
            *((source, second * coefficient) for source, coefficient in theirs),
        ]
    )
