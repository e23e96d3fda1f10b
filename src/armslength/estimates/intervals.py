"""Intervals for D = ‖z‖² from an estimate: inverted, never plugged in."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from armslength.checks import number, one_of, shown
from armslength.errors import ParameterError
from armslength.estimates.estimate import Bounds
from armslength.estimates.pair_noise import PairNoise, Term, noise_classes
from armslength.estimates.quantiles import (
    LARGEST_DEVIATE,
    RisingFunction,
    chi_square_quantile,
    quantile_sheet,
)
from armslength.estimates.variance import VarianceCurve, debias, variance_curve
from armslength.protocol.protocol import Protocol
from armslength.sketches.sketches import Sketches
from armslength.threads import for_blocks

METHODS = ("spread", "guaranteed")
_NODES_PER_UNIT = 256  # of arcsinh(D/start): two neighbors differ by at most 0.4 percent
_ESTIMATES_AT_ONCE = 1 << 16
_FINEST = 2.0**-24  # of the noise's own standard error
_LAST_CELL = 1 / 16  # of the estimate
_FARTHEST = 2.0**40  # times the estimate: beyond that no upper end is looked for


@dataclass(frozen=True)
class Level:
    """What an interval must hold: a confidence, split over pairs, by a method."""

    tail: float  # for each of the two ends
    method: str

    @classmethod
    def of(cls, confidence: float, method: str, pairs: int) -> "Level":
        """The level of one interval among `pairs` that must hold together (Bonferroni)."""
        checked = number("level", confidence, above=0.0, at_most=1.0)
        one_of("method", method, METHODS)
        tail = (1 - checked) / 2 / pairs
        if method == "spread" and not ndtri(tail) >= -LARGEST_DEVIATE:
            raise ParameterError(
                f"level must leave a tail of at least 1e-12 to each pair, got {shown(confidence)}"
            )
        if tail <= 0:
            raise ParameterError(f"level must be below 1, got {shown(confidence)}")
        return cls(tail, method)


@dataclass(frozen=True)
class IntervalRule:
    """How estimates with one noise and one variance curve become intervals.

    An estimate D̂ of an unknown D lies above D + q⁺(D)·√V(D), or below D − q⁻(D)·√V(D), with at most the tail's
    probability. The interval is every D for which it does neither.
    """

    noise: PairNoise
    curve: VarianceCurve
    coordinates: int
    noise_variance: float  # κ₂ of a coordinate, data units
    left_out: int | None = None  # coordinates that a projection without replacement has left out

    def interval(
        self, estimates: NDArray[np.float64], level: Level
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(lower, upper) for each estimate, in its shape; no upper limit is infinity.

        An estimate below 0 gets the upper end of an estimate of 0: what noise has pushed there must not read as certainty.
        """
        if self.curve.b == 0 and self.curve.c == 0:
            return self._without_noise(estimates, level)
        given = np.ascontiguousarray(estimates).reshape(-1)
        top = _largest(given)
        start = max(np.sqrt(self.curve.c), self.curve.b, 1e-300)
        farthest = max(top, start)
        while True:
            farthest *= 8
            # Where the nodes lie does not depend on the estimates: a part of them gets the same ends as all at once.
            count = math.ceil(_NODES_PER_UNIT * math.asinh(farthest / start)) + 1
            nodes = start * np.sinh(np.arange(count) / _NODES_PER_UNIT)
            above, below = self._limits(nodes, level)
            # A little farther, since the last cell of a rising function ends where the last node does.
            enough = top + _LAST_CELL * max(top, start)
            if above[-1] > enough and (below[-1] > enough or farthest > _FARTHEST * max(top, start)):
                break
        # The smallest D that could give so large an estimate, and the largest that could still give so small a one.
        rising = np.maximum.accumulate(above)
        smallest = RisingFunction.of(rising, nodes, start * _FINEST, beyond=nodes[-1], zero_at_origin=True)
        still_possible = np.minimum.accumulate(below[::-1])[::-1]
        largest = RisingFunction.of(
            still_possible, nodes, start * _FINEST, beyond=np.inf, zero_at_origin=False
        )
        lower, upper = np.empty_like(given), np.empty_like(given)
        at_zero = np.empty(1)
        largest.read(np.zeros(1), at_zero)

        def invert(first: int, last: int) -> None:
            smallest.read(given[first:last], lower[first:last])
            largest.read(given[first:last], upper[first:last])
            np.maximum(upper[first:last], at_zero, out=upper[first:last])

        for_blocks(len(given), _ESTIMATES_AT_ONCE, invert)
        return lower.reshape(estimates.shape), upper.reshape(estimates.shape)

    def smallest_resolved(self, level: Level) -> float:
        """The estimate from which on an interval leaves out 0: the upper quantile of the exact law at D = 0."""
        upper, _ = self._quantiles(np.zeros(1), level)
        return float(upper[0]) * math.sqrt(self.curve.at_point(0.0))

    def _limits(
        self, d: NDArray[np.float64], level: Level
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """D + q⁺√V and D − q⁻√V."""
        upper, lower = self._quantiles(d, level)
        deviation = np.sqrt(self.curve.at(d))
        return d + upper * deviation, d - lower * deviation

    def _quantiles(
        self, d: NDArray[np.float64], level: Level
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if level.method == "guaranteed":
            chebyshev = np.full_like(d, np.sqrt(1 / (2 * level.tail)))
            return chebyshev, chebyshev
        deviate = -float(ndtri(level.tail))
        spread = d / self.coordinates
        share = spread / (spread + self.noise_variance) if self.noise_variance > 0 else np.ones_like(d)
        upper, lower = quantile_sheet(self.noise.shape(), self.coordinates).at(share, deviate)
        if self.left_out:
            # ‖Sz‖² is D less what the rows left out hold: its lower tail is their upper tail.
            lower = np.maximum(lower, chi_square_quantile(self.left_out, deviate))
        return upper, lower

    def _without_noise(
        self, estimates: NDArray[np.float64], level: Level
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Only the projection's error: D̂ is D times a factor, so the interval is D̂ divided by factors."""
        upper, lower = self._quantiles(np.ones(1), level)
        root = np.sqrt(self.curve.a)
        positive = np.maximum(estimates, 0.0)
        far = 1 - float(lower[0]) * root
        with np.errstate(divide="ignore", invalid="ignore"):
            above = positive / far if far > 0 else np.where(positive > 0, np.inf, 0.0)
        return positive / (1 + float(upper[0]) * root), above


def _largest(estimates: NDArray[np.float64]) -> float:
    """The largest finite estimate; 0 if none is positive."""
    found = [0.0]
    for_blocks(
        len(estimates), _ESTIMATES_AT_ONCE, lambda first, last: found.append(estimates[first:last].max())
    )
    if np.isfinite(found).all():
        return float(max(found))
    return float(estimates.max(initial=0.0, where=np.isfinite(estimates)))


def interval_rule(protocol: Protocol, noise: PairNoise) -> IntervalRule:
    """How estimates of pairs with this noise become intervals."""
    transform = protocol.transform
    curve = variance_curve(protocol, noise.cumulants)
    k2 = float(debias(protocol, np.asarray(noise.cumulants.k2))) * protocol.unit_squared
    null_law = transform.null_law(noise.cumulants, protocol.noise_site)
    if null_law is not None:
        # Noise that has gone through P is as good as normal, and its squares are not independent: a chi-square law of
        # fewer degrees, with the published P's own variance where that is larger.
        degrees, variance = null_law
        wider = VarianceCurve(curve.a, curve.b, max(curve.c, protocol.unit_squared**2 * variance))
        return IntervalRule(PairNoise((), ()), wider, degrees, k2 / degrees)
    return IntervalRule(noise, curve, transform.sketch_dim, k2 / transform.sketch_dim, transform.left_out)


def approximate_interval(
    value: NDArray[np.float64],
    variance: Callable[[], NDArray[np.float64]],
    confidence: float,
    method: str,
    pairs: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """value ± z·√variance, where the variance is itself an estimate: nothing is guaranteed."""
    one_of("method of an approximate interval", method, ("spread",))
    tail = (1 - number("level", confidence, above=0.0, at_most=1.0 - 1e-13)) / 2 / pairs
    reach = -ndtri(tail) * np.sqrt(variance())
    return value - reach, value + reach


# Intervals for pairs of rows that were multiplied by numbers of their own: one rule for each ratio, not for each pair.
#
# Up to its unit, a rule depends on the ratio of the two rows' factors alone. Ratios are rounded up to a grid of a 64th of an
# octave, so that the noise which a rule counts with is never smaller than the pair's, and at most 1.1 percent larger.


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
