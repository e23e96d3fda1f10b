"""Prevalences, the shares of people with an item of each item group, and how much two parties differ in them.

Of m people with an item of a group, at most λ are missing in the released count m̂ and up to λ in all are in the released undercount λ̂, so
m̂ − E ≤ m ≤ m̂ + λ̂ − E', with the noises E and E' of what is released. For a prevalence p, m − p·n is the people drawn by chance, and
with the noise of n̂ its law is known, without any division by a noisy number. A p is possible unless m̂ − p·n̂ is in the upper tail of the
law at p, or m̂ + λ̂ − p·n̂ in the lower one (Fieller). The two sides of a difference are combined by adding the squares of the
distances to their ends (docs/reference/answers.md).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from armslength.errors import ParameterError
from armslength.estimates.pair_noise import Floats
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE
from armslength.sketches.sketches import Sketches

_Scaled = tuple[DiscreteLaplace, int, float | Floats]  # as a `Noise`, with a factor for each prevalence

LARGEST_TAIL = 0.05  # up to which adding squares is cautious for Laplace noise
MOST_UNDERCOUNT = 0.05  # of the people: beyond it, no difference is named
_UNDERCOUNT_UNIT = 4  # margins hold four times the undercount
_HALVINGS = 40
_FIRST_HALVINGS = 6
_CLOSE = 1e-8  # in standard deviations
_LARGEST_TILT = 300.0  # e^s of it is a float
_ENDS = np.geomspace(1e-9, 0.5, 240)
_NODES = np.concatenate([[0.0], _ENDS, 1 - _ENDS[-2::-1], [1.0]])  # prevalences, dense near 0 and 1
_WEIGHTS = 16  # different weights of noises
_LATTICE = 0.5  # people are whole: half of one


class Noise(NamedTuple):
    """Some independent noises."""

    law: DiscreteLaplace  # in grid units
    often: int  # how many noises have it
    factor: float = 1.0  # of each


class Limits(NamedTuple):
    """What is known of each item group's prevalence; ends below 0 or above 1 are kept, as differences need their distances."""

    least: Floats  # the share as counted
    most: Floats  # the share if the whole undercount belongs to this item group
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Prevalence:
    """The people of one side, as released: in people, with noise.

    Attributes:
        counts: How many people have an item of each item group, where those with more than G item groups weigh less.
        undercount: How many people at most are missing in any count for that reason.
        people: How many people there are.
        margin_noises: The noises of each count, and of four times the undercount.
        people_noises: The noises of the number of people.
        beyond_chance: Whether prevalences are those of the population that the people are a sample of, and not of the people counted.
    """

    counts: Floats
    undercount: float
    people: float
    margin_noises: tuple[Noise, ...]
    people_noises: tuple[Noise, ...]
    beyond_chance: bool = True

    @classmethod
    def of(cls, sketches: Sketches, *, beyond_chance: bool, weights: Floats | None = None) -> "Prevalence":
        """The people of all rows together; or their average, by weights from 0 to 1 that are taken as given.

        Of weighted people, chance is at most that of as many people with the weight 1: the cumulant generating function of a·X is at most
        a times that of X, for a ≤ 1.
        """
        if sketches.margins is None or sketches.totals is None:
            raise ParameterError(
                "sketches have not all been released with the same margins; plan a protocol with margins"
            )
        noises = sketches.noises.sum()
        weights = np.ones(len(sketches)) if weights is None else weights
        if noises.in_clear.any() or not len(noises.ids) or (noises.coefficients != 1).any():
            raise ParameterError(
                "only released rows and their sums, each row once, can be explained, not multiples, differences or data in the clear"
            )
        terms = [
            (protocol, float(weight))
            for row, weight in enumerate(weights)
            for protocol, _ in sketches.noises.terms(row)
        ]
        *counts, undercount = weights @ sketches.margins.astype(np.float64) / VOTE
        return cls(
            np.array(counts),
            float(undercount) / _UNDERCOUNT_UNIT,
            float(weights @ sketches.totals.astype(np.float64)) / VOTE,
            _counted((protocol.margin_law, weight) for protocol, weight in terms),
            _counted(
                (law, weight)
                for protocol, weight in terms
                for law in (protocol.total_law, protocol.spread_law)
            ),
            beyond_chance,
        )

    def has_people(self, tail: float) -> bool:
        """Whether the number of people is above 0: noise alone is as large with a probability of at most `tail`."""
        return self.people > self.people_noise(tail)

    def people_noise(self, tail: float) -> float:
        """How much noise adds to the number of people with a probability of `tail`."""
        return _noise_reach(_scaled(self.people_noises, 1.0), tail)

    def lacks(self, share: float, tail: float) -> bool:
        """Whether more than a share of the people can be missing in a count; noise alone says so with a probability of at most `tail`."""
        noise = _noise_reach(_scaled(self.margin_noises, 1 / _UNDERCOUNT_UNIT), tail)
        return self.undercount - noise > share * self.people

    def limits(self, tail: float) -> Limits:
        """The limits of each item group; each end misses with a probability of at most `tail`."""
        tail = min(tail, LARGEST_TAIL)
        noises = _scaled(self.margin_noises, 1.0) + _scaled(self.people_noises, _NODES)
        with_undercount = noises + _scaled(self.margin_noises, 1 / _UNDERCOUNT_UNIT)
        middle = _NODES * self.people
        # Where several prevalences are just possible, the outermost one counts.
        largest = np.maximum.accumulate(middle + self._reach(noises, tail, 1.0) + _LATTICE)
        below = middle - self._reach(with_undercount, tail, -1.0) - _LATTICE
        smallest = np.minimum.accumulate(below[::-1])[::-1]
        filled = self.counts + self.undercount
        return Limits(
            self.counts / self.people,
            filled / self.people,
            self._inverse(largest, self.counts),
            self._inverse(smallest, filled),
        )

    def _inverse(self, curve: Floats, counts: Floats) -> Floats:
        """The prevalences at which a rising curve over the nodes is at the counts; a straight line beyond both ends."""
        beyond = np.clip(counts - curve[-1], 0.0, None) + np.clip(counts - curve[0], None, 0.0)
        inside: Floats = np.interp(counts, curve, _NODES) + beyond / self.people
        return inside

    def _reach(self, noises: list[_Scaled], tail: float, side: float) -> Floats:
        """How far chance and noises are above (side 1) or below (side −1) 0 with a probability of `tail`, at each node."""
        people = self.people if self.beyond_chance else 0.0
        return _reach(noises, _NODES, people, tail, side)


def difference_limits(a: Limits, b: Limits) -> tuple[Floats, Floats, Floats]:
    """(value, lower, upper) of the prevalences of b less those of a, by those of both sides.

    Each end misses about as seldom as those of the sides, for tails of at most `LARGEST_TAIL`.
    """
    lower = b.least - a.most - np.hypot(b.least - b.lower, a.upper - a.most)
    upper = b.most - a.least + np.hypot(b.upper - b.most, a.least - a.lower)
    return b.least - a.least, lower, upper


def _counted(laws: Iterable[tuple[DiscreteLaplace | None, float]]) -> tuple[Noise, ...]:
    """How many noises have each law and weight, which is rounded up, so that few are different; those without a weight do not count."""
    counts = Counter(
        (law, math.ceil(_WEIGHTS * weight) / _WEIGHTS)
        for law, weight in laws
        if law is not None and weight > 0
    )
    return tuple(Noise(law, often, weight) for (law, weight), often in counts.items())


def _scaled(noises: tuple[Noise, ...], factor: float | Floats) -> list[_Scaled]:
    """Noises times a factor."""
    return [(noise.law, noise.often, noise.factor * factor) for noise in noises]


def _noise_reach(noises: list[_Scaled], tail: float) -> float:
    """How far noises add up above 0 with a probability of `tail`."""
    return float(_reach(noises, np.zeros(1), 0.0, tail, 1.0)[0])


def _reach(noises: list[_Scaled], p: Floats, people: float, tail: float, side: float) -> Floats:
    """How far a binomial of so many people, less its mean, and noises are above 0 (side 1) or below (side −1) with a probability of `tail`.

    By Lugannani and Rice's saddlepoint, in people, for each p.
    """
    high = np.full(len(p), _LARGEST_TILT)
    for law, _, factor in noises:  # a Laplace noise has no larger tilts
        high = np.minimum(high, VOTE / law.scale / np.maximum(factor, 1e-300))
    high = high * (1 - 2.0**-40)
    quantile = -float(ndtri(tail))
    tilt = _root(
        lambda s: _deviate(s, *_cumulants(side * s, p, people, noises)) - quantile, high, at_zero=-quantile
    )
    return side * _cumulants(side * tilt, p, people, noises)[1]


def _root(excess: Callable[[Floats], Floats], high: Floats, at_zero: float) -> Floats:
    """Where a rising function, given below 0 at 0, is 0; where it is not even at `high`, that.

    A few halvings, whatever its shape is far from there, and then Anderson and Björck's regula falsi, with at most `_HALVINGS` in all.
    """
    low, below, above = np.zeros_like(high), np.full_like(high, at_zero), np.full_like(high, np.nan)
    was_above = np.zeros(len(high), dtype=bool)
    for step in range(_HALVINGS):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if step >= _FIRST_HALVINGS:
                guess = (low * above - high * below) / (above - below)
                middle = np.where((guess > low) & (guess < high), guess, middle)
            value = excess(middle)
            is_above, is_close = value > 0, np.abs(value) < _CLOSE
            if step > _FIRST_HALVINGS:  # an end that stays twice in a row counts less
                less = 1 - value / np.where(is_above, above, below)
                less = np.where(is_above == was_above, np.where(less > 0, less, 0.5), 1.0)
                above, below = (
                    np.where(is_above, above, less * above),
                    np.where(is_above, less * below, below),
                )
        low, below = np.where(is_above & ~is_close, low, middle), np.where(is_above, below, value)
        high, above = np.where(is_above | is_close, middle, high), np.where(is_above, value, above)
        was_above = is_above
        if (low == high).all():
            break
    return high


def _cumulants(s: Floats, p: Floats, people: float, noises: list[_Scaled]) -> tuple[Floats, Floats, Floats]:
    """The cumulant generating function of chance and noises at s, and its first two derivatives."""
    # Those without an item of the group are binomial, too: with s > 0 nothing cancels.
    sign, s_up = np.sign(s), np.abs(s)
    q = np.where(s < 0, 1 - p, p)
    rise = np.expm1(s_up)
    tilted = q * (1 + rise) / (1 + q * rise)
    value = people * (np.log1p(q * rise) - q * s_up)
    first = people * sign * (tilted - q)
    second = people * tilted * (1 - q) / (1 + q * rise)
    for law, often, factor in noises:
        unit = factor / VOTE
        parts = _noise_cumulants(law, unit * s)
        value = value + often * parts[0]
        first = first + often * unit * parts[1]
        second = second + often * unit**2 * parts[2]
    return value, first, second


def _deviate(s: Floats, k: Floats, first: Floats, second: Floats) -> Floats:
    """How rare at least `first` is, the mean at tilt s > 0: the probability is that of a standard normal above this."""
    root = np.sqrt(np.maximum(2 * (s * np.abs(first) - k), 1e-300))
    with np.errstate(divide="ignore", over="ignore"):  # where nothing varies, nothing is rare
        return root + np.log(s * np.sqrt(second) / root) / root


def _noise_cumulants(law: DiscreteLaplace, s: Floats) -> tuple[Floats, Floats, Floats]:
    """The cumulant generating function of a noise at s, and its first two derivatives."""
    # 1 − αe^s and 1 − αe^−s, without cancellation
    up, down = -np.expm1(s - 1 / law.scale), -np.expm1(-s - 1 / law.scale)
    gap = -np.expm1(-1 / law.scale)
    more, less = (1 - up) / up, (1 - down) / down
    return 2 * np.log(gap) - np.log(up) - np.log(down), more - less, more / up + less / down
