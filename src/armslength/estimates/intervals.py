"""Intervals for D = ‖z‖² from an estimate: inverted, never plugged in."""

import math
from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np
from scipy.special import ndtri

from armslength.checks import number, one_of
from armslength.errors import ParameterError
from armslength.estimates.pair_noise import NO_NOISE, Floats, PairNoise, PairNoises
from armslength.estimates.quantiles import LARGEST_DEVIATE, chi_square_quantile, estimate_quantiles
from armslength.estimates.variance import ErrorModel, VarianceCurve

Bounds = tuple[Floats, Floats]

METHODS = ("asymptotic", "guaranteed")
_NODES_PER_UNIT = 256  # of arcsinh(D/start): two neighbors differ by at most 0.4 percent
_FARTHEST = 2.0**40  # times the estimate: beyond that no upper end is looked for


@dataclass(frozen=True)
class Level:
    """The probability with which each end of an interval may miss, and the method."""

    tail: float
    method: str

    def __post_init__(self) -> None:
        if not self.tail > 0:
            raise ParameterError("level must be below 1, got one that leaves no error")
        if self.method == "asymptotic" and not ndtri(self.tail) >= -LARGEST_DEVIATE:
            raise ParameterError(
                f"level must leave a tail of at least 1e-12 to each end, got {self.tail:.3g}; "
                'lower the level, compare fewer pairs, or use method="guaranteed"'
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
        lower, upper = _scaled_interval(model, laws[int(number)], (value, unit, slack), level)
    else:
        number, unit, slack = (np.broadcast_to(each, value.shape) for each in (number, unit, slack))
        lower, upper = np.empty(value.shape), np.empty(value.shape)
        if noises.shared is not None:
            number = number.copy()
            number[noises.shared[0]] = -1  # they follow below
        order = np.argsort(number, axis=None, kind="stable")
        used, starts = np.unique(number.ravel()[order], return_index=True)
        used, starts = used[used >= 0], starts[used >= 0]
        for law, chosen in zip(used.tolist(), np.split(order, starts)[1:], strict=True):
            parts = value.flat[chosen], unit.flat[chosen], slack.flat[chosen]
            lower.flat[chosen], upper.flat[chosen] = _scaled_interval(model, laws[law], parts, level)
    if noises.shared is not None:
        pairs, merged = noises.shared
        lower[pairs], upper[pairs] = pair_intervals(model, merged, value[pairs], level)
    return lower, upper


def _scaled_interval(
    model: ErrorModel, law: PairNoise, estimates: tuple[Floats, Floats, Floats], level: Level
) -> Bounds:
    """The intervals of (estimates, units, slacks) whose noise has this law."""
    value, unit, slack = estimates
    if law.is_exact:
        return interval_rule(model, law).interval(value, level)
    lower, upper = interval_rule(model, law).interval(value / unit, level, slack / unit)
    return lower * unit, upper * unit


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

    def interval(self, estimates: Floats, level: Level, slack: Floats | float = 0.0) -> Bounds:
        """(lower, upper) for each estimate; no upper limit is infinity.

        An estimate below 0 gets the upper end of an estimate of 0, so that noise does not look like certainty. Estimates
        are lowered by the slack for their lower ends, and raised by it for their upper ends.
        """
        if self.curve.b == 0 and self.curve.c == 0:
            return self._without_noise(estimates, level)
        top = float(np.max(estimates + slack, initial=0.0, where=np.isfinite(estimates)))
        start = max(math.sqrt(self.curve.c), self.curve.b, 1e-300)
        farthest = max(top, start)
        while True:
            farthest *= 8
            # Nodes do not depend on the estimates: a part of them gets the same ends as all at once.
            count = math.ceil(_NODES_PER_UNIT * math.asinh(farthest / start)) + 1
            nodes = start * np.sinh(np.arange(count) / _NODES_PER_UNIT)
            upper, lower = self._quantiles(nodes, level)
            deviation = np.sqrt(self.curve.at(nodes))
            above, below = nodes + upper * deviation, nodes - lower * deviation
            if above[-1] > top and (below[-1] > top or farthest > _FARTHEST * max(top, start)):
                break
        # The smallest D that could give so large an estimate, and the largest that could still give so small a one.
        above, below = np.maximum.accumulate(above), np.minimum.accumulate(below[::-1])[::-1]
        high = estimates - slack
        lower = np.interp(high, above, nodes)
        lower[high <= above[0]] = 0.0
        return lower, np.interp(np.maximum(estimates, 0.0) + slack, below, nodes, right=np.inf)

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
