"""The released totals of rows: how many people there are, or how much all entries of a row are together."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.distances import checked_pair, pair_estimate
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Bounds, Level
from armslength.estimates.pair_noise import Floats
from armslength.laws import DiscreteLaplace
from armslength.protocol.protocol import Protocol
from armslength.sketches.sketches import Sketches

DOUBTFUL = 0.0005  # how often a total that is said to be above 0 may be 0
_CHERNOFF = np.linspace(0.02, 0.98, 49)  # shares of the largest possible exponent


def totals(sketches: Sketches) -> Estimate:
    """Σⱼ xⱼ for every row, in data units: unbiased, with its exact variance. For votes it is the number of people.

    Guarantee: the interval of a released row comes from the exact law of its noise, that of a combination of rows from
    bounds that are proved. Both methods give it.
    """
    checked_pair(sketches, None)
    rule = total_rule(sketches)
    return pair_estimate("totals", rule.value, (sketches,), rule)


def has_sure_total(sketches: Sketches) -> NDArray[np.bool_]:
    """Whether each row's total is above 0: others have no shape."""
    return total_rule(sketches).is_positive(Level(DOUBTFUL, METHODS[0]))


class TotalNoise(NamedTuple):
    """The noise of one released total: one draw, or for votes the sum of two, the second of a larger scale; times a number."""

    laws: tuple[DiscreteLaplace, ...]
    factor: float

    @classmethod
    def of(cls, protocol: Protocol, coefficient: float) -> "TotalNoise":
        """The noise of a row that was released under this protocol, so many times."""
        laws = (protocol.total_law, protocol.spread_law)
        return cls(tuple(law for law in laws if law is not None), abs(coefficient))

    @property
    def variance(self) -> float:
        """In squared integer units."""
        return self.factor**2 * sum(law.second_moment for law in self.laws)

    def upper_quantile(self, tail: float) -> float:
        """A number that the noise exceeds with at most this probability.

        Guarantee: for laws of ratios α = e^(−1/b) < γ = e^(−1/c), partial fractions of the product of their generating functions
        give the exact P(N > n) = w·γ^(n+1)/(1+γ) − (w−1)·α^(n+1)/(1+α) for n ≥ 0, with w = A/(A−C) > 1, A = sinh²(1/2b) and C = sinh²(1/2c).
        The second term is left out, so that n is a quantile of the wider law, at tail/w; for c = 2b, w is at most 4/3.
        """
        *narrow, wide = self.laws
        for law in narrow:
            a, c = (math.sinh(1 / (2 * each.scale)) ** 2 for each in (law, wide))
            tail *= (1 - c / a) * (1 - 2.0**-40)
        return self.factor * wide.upper_quantile(tail)

    def log_moments(self, exponents: Floats) -> Floats:
        """log E[e^(tN)] at each t: −log(1 − κ₂(cosh t − 1)) for each law."""
        logs = [
            -np.log1p(-2 * law.second_moment * np.sinh(exponents * self.factor / 2) ** 2) for law in self.laws
        ]
        return np.asarray(sum(logs))


def largest_sum(noises: tuple[TotalNoise, ...], tail: float) -> float:
    """A number that the sum of these noises exceeds with at most this probability: the better of two bounds.

    Guarantee: a union bound, and for several noises Chernoff's, P(N > x) ≤ e^(−tx)·E[e^(tN)] for every t > 0.
    """
    union = sum(noise.upper_quantile(tail / len(noises)) for noise in noises)
    if len(noises) < 2:
        return union
    widest = max(noise.factor * law.scale for noise in noises for law in noise.laws)
    exponents = _CHERNOFF / widest
    reaches = (sum(noise.log_moments(exponents) for noise in noises) - math.log(tail)) / exponents
    return min(union, float(np.min(reaches)))


@dataclass(frozen=True)
class Total:
    """The rule of totals."""

    value: Floats
    noises: tuple[tuple[TotalNoise, ...], ...]  # of each row
    unit: float  # data units in a grid unit

    @property
    def variance(self) -> Floats:
        """γ²·Σα²κ₂ over the noises of each row."""
        return self.unit**2 * np.array(
            [sum(noise.variance for noise in row) for row in self.noises], dtype=np.float64
        )

    def interval(self, level: Level) -> Bounds:
        """The totals that noise does not exclude."""
        reaches = {row: largest_sum(row, level.tail) for row in set(self.noises)}
        reach = self.unit * np.array([reaches[row] for row in self.noises], dtype=np.float64)
        return self.value - reach, self.value + reach

    def is_positive(self, level: Level) -> NDArray[np.bool_]:
        """Whether each total is above 0, at this level."""
        return np.asarray(self.interval(level)[0] > 0)


def total_rule(sketches: Sketches) -> Total:
    """The rule of the totals of these rows, which must have been released with them."""
    if sketches.totals is None:
        raise ParameterError(
            "sketches have been released without totals; plan a protocol with total_share",
            "sketches",
            "total_share",
        )
    unit = float(sketches.protocols[0].resolution)
    noises = tuple(
        tuple(TotalNoise.of(protocol, factor) for protocol, factor in sketches.noises.terms(row))
        for row in range(len(sketches))
    )
    return Total(sketches.totals.astype(np.float64) * unit, noises, unit)
