"""Prevalences, the shares of people with an item of each item group, and how much two parties differ in them.

For a true prevalence p, the released counts m̂ and n̂ have m̂ − p·n̂ = (m − p·n) + E − p·F: the people drawn by chance, and the noise of
both counts. Its law is known, without any division by a noisy number. A p is possible unless m̂ − p·n̂ is in a tail of it (Fieller). The
two sides are combined by adding the squares of the distances to their ends (docs/reference/answers.md).
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from armslength.errors import ParameterError
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shape_law import bisect
from armslength.laws import DiscreteLaplace, Law
from armslength.sketches.sketches import Sketches

Limits = tuple[Floats, Floats, Floats]  # value, lower, upper

LARGEST_TAIL = 0.05  # up to which adding squares is cautious for Laplace noise
_HALVINGS = 40
_LARGEST_TILT = 300.0  # e^s of it is a float
_ENDS = np.geomspace(1e-9, 0.5, 240)
_NODES = np.concatenate([[0.0], _ENDS, 1 - _ENDS[-2::-1], [1.0]])  # prevalences, dense near 0 and 1
_LATTICE = 0.5  # counts are whole: half a person


@dataclass(frozen=True)
class Prevalence:
    """The people of one side, with noise.

    Attributes:
        counts: How many people have an item of each item group.
        people: How many people there are.
        laws: The laws of the noise in each count, and how many noises have each.
        beyond_chance: Whether prevalences are those of the population that the people are a sample of, and not of the people counted.
    """

    counts: Floats
    people: float
    laws: tuple[tuple[Law, int], ...]
    beyond_chance: bool = True

    @classmethod
    def of(cls, sketches: Sketches, *, beyond_chance: bool) -> "Prevalence":
        """The people of all rows together."""
        if sketches.margins is None:
            raise ParameterError(
                "sketches must have been released with the same margins, got some without or with others; "
                "plan a protocol with margins"
            )
        noises = sketches.noises.sum()
        if noises.in_clear.any() or not len(noises.ids) or (noises.coefficients != 1).any():
            raise ParameterError(
                "rows to explain must be released rows, or sums of them, each once, got multiples, differences or data in the clear"
            )
        laws = Counter(protocol.margin_law for protocol, _ in noises.terms(0) if protocol.margin_law)
        *counts, people = sketches.margins.sum(axis=0, dtype=np.float64)
        return cls(np.array(counts), float(people), tuple(laws.items()), beyond_chance)

    def has_people(self, tail: float) -> bool:
        """Whether the number of people is above 0: noise alone is as large with a probability of at most `tail`."""
        return self.people > self.people_noise(tail)

    def people_noise(self, tail: float) -> float:
        """How much is added to the number of people, and to each count, with a probability of `tail`."""
        _, reach = replace(self, beyond_chance=False).quantiles(np.zeros(1), tail)
        return float(reach[0])

    def limits(self, tail: float) -> Limits:
        """(value, lower, upper) of each item group; each end misses with a probability of at most `tail`.

        Values and ends below 0 or above 1 are kept: the distances between them are what a difference needs.
        """
        tail = min(tail, LARGEST_TAIL)
        below, above = self.quantiles(_NODES, tail)
        middle = _NODES * self.people
        # Where several prevalences are just possible, the outermost one counts.
        largest = np.maximum.accumulate(middle + above + _LATTICE)
        smallest = np.minimum.accumulate((middle - below - _LATTICE)[::-1])[::-1]
        return self.counts / self.people, self._inverse(largest), self._inverse(smallest)

    def _inverse(self, curve: Floats) -> Floats:
        """The prevalences at which a rising curve over the nodes is at the counts; a straight line beyond both ends."""
        beyond = np.clip(self.counts - curve[-1], 0.0, None) + np.clip(self.counts - curve[0], None, 0.0)
        inside: Floats = np.interp(self.counts, curve, _NODES) + beyond / self.people
        return inside

    def quantiles(self, p: Floats, tail: float) -> tuple[Floats, Floats]:
        """How far m̂ − p·n̂ is below and above 0 with a probability of `tail` each, by Lugannani and Rice's saddlepoint."""
        scales = [law.scale for law, _ in self.laws if isinstance(law, DiscreteLaplace)]
        variance = sum(often * law.second_moment for law, often in self.laws)
        # A Laplace noise has no larger tilts; 20 standard deviations out, every tail is small enough.
        tilts = [1 / scale for scale in scales] or [20 / max(np.sqrt(variance), 1e-6)]
        largest = min([_LARGEST_TILT, *tilts])
        sign = np.array([[-1.0], [1.0]])
        low, high = np.zeros((2, len(p))), np.full((2, len(p)), largest * (1 - 2.0**-40))
        _, high = bisect(
            lambda s: ~(_upper_tail(s, *self._cumulants(sign * s, p)) < tail), low, high, _HALVINGS
        )
        below, above = sign * self._cumulants(sign * high, p)[1]
        return below, above

    def _cumulants(self, s: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
        """The cumulant generating function of m̂ − p·n̂ at s, and its first two derivatives."""
        total = [np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)]
        if self.beyond_chance:
            # Those without an item of the group are binomial, too: with s > 0 nothing cancels.
            n, sign, s_up = self.people, np.sign(s), np.abs(s)
            q = np.where(s < 0, 1 - p, p)
            rise = np.expm1(s_up)
            tilted = q * (1 + rise) / (1 + q * rise)
            total = [
                n * (np.log1p(q * rise) - q * s_up),
                n * sign * (tilted - q),
                n * tilted * (1 - q) / (1 + q * rise),
            ]
        for law, often in self.laws:
            for factor in (1.0, p):
                for order, part in enumerate(_noise_cumulants(law, factor * s)):
                    total[order] = total[order] + often * factor**order * part
        return total[0], total[1], total[2]


def difference_limits(a: Limits, b: Limits) -> Limits:
    """(value, lower, upper) of the prevalences of b less those of a, by those of both sides.

    Each end misses about as seldom as those of the sides, for tails of at most `LARGEST_TAIL`.
    """
    value = b[0] - a[0]
    return value, value - np.hypot(b[0] - b[1], a[2] - a[0]), value + np.hypot(b[2] - b[0], a[0] - a[1])


def _upper_tail(s: Floats, k: Floats, first: Floats, second: Floats) -> Floats:
    """The probability of at least `first`, the mean at tilt s > 0."""
    root = np.sqrt(np.maximum(2 * (s * np.abs(first) - k), 1e-300))
    with np.errstate(divide="ignore", over="ignore"):  # where nothing varies, nothing is rare
        tail: Floats = ndtr(-(root + np.log(s * np.sqrt(second) / root) / root))
    return tail


def _noise_cumulants(law: Law, s: Floats) -> tuple[Floats, Floats, Floats]:
    """The cumulant generating function of a noise at s, and its first two derivatives."""
    if not isinstance(law, DiscreteLaplace):
        k2 = law.second_moment
        return k2 * s * s / 2, k2 * s, np.full_like(s, k2)
    # 1 − αe^s and 1 − αe^−s, without cancellation
    up, down = -np.expm1(s - 1 / law.scale), -np.expm1(-s - 1 / law.scale)
    gap = -np.expm1(-1 / law.scale)
    more, less = (1 - up) / up, (1 - down) / down
    return 2 * np.log(gap) - np.log(up) - np.log(down), more - less, more / up + less / down
