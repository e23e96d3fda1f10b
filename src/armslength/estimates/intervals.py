"""Intervals for D = ‖z‖² from an estimate: inverted, never plugged in."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Protocol as Interface

import numpy as np
from scipy.special import ndtri

from armslength._numba import kernel
from armslength.checks import number, one_of
from armslength.errors import ParameterError
from armslength.estimates.pair_noise import NO_NOISE, Floats, PairNoise, PairNoises
from armslength.estimates.quantiles import LARGEST_DEVIATE, chi_square_quantile, estimate_quantiles
from armslength.estimates.variance import ErrorModel, VarianceCurve
from armslength.threads import for_blocks

Bounds = tuple[Floats, Floats]

METHODS = ("asymptotic", "guaranteed")
_NODES_PER_UNIT = 256  # of arcsinh(D/start): two neighbors differ by at most 0.4 percent
_FARTHEST = 2.0**40  # times the estimate: beyond that no upper end is looked for
_STEP_BITS = 44  # of a float's 52 bits of fraction: 256 steps from each power of 2 to the next
_WITHIN, _PER_STEP = 2**_STEP_BITS - 1, 2.0**-_STEP_BITS
_BLOCK = 2**15


@dataclass(frozen=True)
class Level:
    """The probability with which each end of an interval may miss, and the method."""

    tail: float
    method: str

    def __post_init__(self) -> None:
        if not self.tail > 0:
            raise ParameterError("level must be below 1", "level")
        if self.method == "asymptotic" and not ndtri(self.tail) >= -LARGEST_DEVIATE:
            raise ParameterError(
                f"level must leave a tail of at least 1e-12 to each end, got {self.tail:.3g}; "
                'lower the level, compare fewer pairs, or use method="guaranteed"',
                "level",
                "method",
            )

    @classmethod
    def of(cls, confidence: float, method: str, pairs: int) -> "Level":
        """The level of one interval among `pairs` that must hold together (Bonferroni)."""
        level = number("level", confidence, above=0.0, at_most=1.0)
        return cls((1 - level) / 2 / pairs, one_of("method", method, METHODS))

    def share(self, share: float) -> "Level":
        """The level of an interval that has this share of the error."""
        return Level(share * self.tail, self.method)


class Rule(Interface):
    """How estimates become variances and intervals. Rules are values: frozen, and they can be pickled."""

    @property
    def variance(self) -> Floats | None:
        """The variance of each estimate over seed and noise; None where there is no formula."""

    def interval(self, level: Level) -> Bounds:
        """(lower, upper) of each estimate."""


def pair_intervals(model: ErrorModel, noises: PairNoises, value: Floats, level: Level) -> Bounds:
    """(lower, upper) of ‖z‖² for rows or pairs, each by the law of its noise.

    Up to its unit, an interval depends on the law alone: estimates are divided by κ₂, so that a few laws are enough.
    """
    laws, numbers, units, slacks = noises.by_law()
    number, unit = numbers[noises.index], units[noises.index]
    slack = slacks[noises.index] * model.unit
    if np.ndim(number) == 0:
        lower, upper = interval_rule(model, laws[int(number)]).interval(value, level, slack, unit)
    else:
        number, unit, slack = (np.broadcast_to(array, value.shape) for array in (number, unit, slack))
        lower, upper = np.empty(value.shape), np.empty(value.shape)
        if noises.shared is not None:
            number = number.copy()
            number[noises.shared[0]] = -1  # they follow below
        order = np.argsort(number, axis=None, kind="stable")
        used, starts = np.unique(number.ravel()[order], return_index=True)
        used, starts = used[used >= 0], starts[used >= 0]
        for law, chosen in zip(used.tolist(), np.split(order, starts)[1:], strict=True):
            rule = interval_rule(model, laws[law])
            ends = rule.interval(value.flat[chosen], level, slack.flat[chosen], unit.flat[chosen])
            lower.flat[chosen], upper.flat[chosen] = ends
    if noises.shared is not None:
        pairs, merged = noises.shared
        lower[pairs], upper[pairs] = pair_intervals(model, merged, value[pairs], level)
    return lower, upper


def interval_rule(model: ErrorModel, noise: PairNoise) -> "IntervalRule":
    """The rule for pairs with this noise."""
    curve, cumulants = model.variance_curve(noise.cumulants), noise.cumulants
    k2 = model.bias * cumulants.k2 * model.unit
    if model.null_degrees is not None:
        second, fourth = model.null_variance
        null_variance = second * cumulants.k2**2 + fourth * cumulants.k4
        wider = VarianceCurve(curve.a, curve.b, max(curve.c, null_variance))
        return IntervalRule(NO_NOISE, wider, model.null_degrees, k2 / model.null_degrees)
    return IntervalRule(noise, curve, model.coordinates, k2 / model.coordinates, model.left_out)


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
        self, estimates: Floats, level: Level, slack: Floats | float = 0.0, unit: Floats | float = 1.0
    ) -> Bounds:
        """(lower, upper) for each estimate; no upper limit is infinity.

        An estimate below 0 gets the upper end of an estimate of 0, so that noise does not look like certainty. Estimates
        are lowered by the slack for their lower ends, and raised by it for their upper ends. One whose unit is not 1 has
        the noise of this rule times the square root of the unit.
        """
        if self.curve.b == 0 and self.curve.c == 0:
            return self._without_noise(estimates, level)
        flat, units, slacks = np.ravel(estimates), np.ravel(unit), np.ravel(slack / unit)
        # No less than any finite estimate that is looked up.
        top = _largest(flat) / float(np.min(units, initial=np.inf, where=units > 0)) + _largest(slacks)
        ends = self._ends(top, level)
        lower, upper = np.empty(len(flat)), np.empty(len(flat))
        look_up = partial(_look_up, (flat, units, slacks), ends, (lower, upper))
        if len(flat) <= _BLOCK:
            look_up(0, len(flat))
        else:
            for_blocks(len(flat), _BLOCK, look_up)
        return lower.reshape(np.shape(estimates)), upper.reshape(np.shape(estimates))

    def _ends(self, top: float, level: Level) -> tuple[float, float, Floats, Floats]:
        """Both ends as tables for estimates up to `top`: (start, least, lower, upper).

        Their grid has 256 points from each power of 2 to the next, and begins at start, for an estimate of `least` in the
        table of lower ends, and of 0 in that of upper ends.
        """
        # A power of 2; neither nodes nor grid depend on the estimates: a part of them gets the same ends as all at once.
        start = math.ldexp(0.5, math.frexp(max(math.sqrt(self.curve.c), self.curve.b, 1e-300))[1])
        farthest = max(top, start)
        while True:
            farthest *= 8
            count = math.ceil(_NODES_PER_UNIT * math.asinh(farthest / start)) + 1
            nodes = start * np.sinh(np.arange(count) / _NODES_PER_UNIT)
            upper, lower = self._quantiles(nodes, level)
            deviation = np.sqrt(self.curve.at(nodes))
            above, below = nodes + upper * deviation, nodes - lower * deviation
            if above[-1] > top and (below[-1] > top or farthest > _FARTHEST * max(top, start)):
                break
        # The smallest D that could give so large an estimate, and the largest that could still give so small a one.
        above, below = np.maximum.accumulate(above), np.minimum.accumulate(below[::-1])[::-1]
        first, last = (np.array([start, start + top]).view(np.int64) >> _STEP_BITS).tolist()
        grid = (np.arange(first, last + 2) << _STEP_BITS).view(np.float64)
        least = float(above[0])
        lowest = np.interp(grid - start + least, above, nodes)
        return start, least, lowest, np.interp(grid - start, below, nodes, right=np.inf)

    def smallest_resolved(self, level: Level) -> float:
        """The estimate from which on an interval leaves out 0: the upper quantile of the exact law at D = 0."""
        upper, _ = self._quantiles(np.zeros(1), level)
        return float(upper[0]) * math.sqrt(self.curve.at_point(0.0))

    def _quantiles(self, d: Floats, level: Level) -> Bounds:
        """(q⁺, q⁻) at each D."""
        if level.method == "guaranteed":
            chebyshev = np.full_like(d, np.sqrt(1 / (2 * level.tail)))
            return chebyshev, chebyshev
        deviate = -float(ndtri(level.tail))
        signal = d / self.coordinates
        share = signal / (signal + self.noise_variance) if self.noise_variance > 0 else np.ones_like(d)
        upper, lower = estimate_quantiles(self.noise.normalized(), self.coordinates).at(share, deviate)
        if self.left_out:
            # ‖Sz‖² is D minus the part of the rows left out: its lower tail is their upper tail.
            lower = np.maximum(lower, chi_square_quantile(self.left_out, deviate))
        return upper, lower

    def _without_noise(self, estimates: Floats, level: Level) -> Bounds:
        """Only the projection's error: D̂ is D times a factor, so the interval is D̂ divided by factors."""
        upper, lower = self._quantiles(np.ones(1), level)
        root = np.sqrt(self.curve.a)
        positive = np.maximum(estimates, 0.0)
        far = 1 - float(lower[0]) * root
        with np.errstate(divide="ignore", invalid="ignore"):
            above = positive / far if far > 0 else np.where(positive > 0, np.inf, 0.0)
        return positive / (1 + float(upper[0]) * root), above


def _largest(values: Floats) -> float:
    """The largest finite one, or 0."""
    largest = np.max(values, initial=0.0)
    return float(largest if np.isfinite(largest) else np.max(values, initial=0.0, where=np.isfinite(values)))


@kernel
def _look_up(
    estimates: tuple[Floats, Floats, Floats],
    ends: tuple[float, float, Floats, Floats],
    result: Bounds,
    first: int,
    stop: int,
) -> None:
    """The ends of the estimates from `first` to `stop`."""
    values, units, slacks = estimates
    start, least, lower, upper = ends
    for n in range(first, stop):
        unit, slack = units[n if len(units) > 1 else 0], slacks[n if len(slacks) > 1 else 0]
        value = values[n] / unit
        highest = value + slack
        if not np.isfinite(highest):
            result[0][n], result[1][n] = (highest if np.isnan(highest) else 0.0), abs(highest)
            continue
        high = value - slack
        result[0][n] = unit * _end(high - least + start, start, lower) if high > least else 0.0
        result[1][n] = unit * _end(max(value, 0.0) + slack + start, start, upper)


@kernel
def _end(x: float, start: float, table: Floats) -> float:
    """The table at x on the grid that begins at start; infinity in a cell that reaches it.

    A float's leading bits are the cell, and the others how far in it x is: nothing is searched.
    """
    steps = np.float64(x).view(np.int64) - np.float64(start).view(np.int64)
    cell = np.uint64(steps >> _STEP_BITS)
    left, right = table[cell], table[cell + np.uint64(1)]
    within = (steps & _WITHIN) * _PER_STEP
    return float(left + (right - left) * within if right < np.inf else right)
