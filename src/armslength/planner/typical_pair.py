"""Two typical parties whose mixes differ, before there is any data: how often would their difference be seen, and with what interval?"""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shape_law import ShapeLaw, ShapeRows, Spread
from armslength.estimates.shapes import Likeness
from armslength.estimates.totals import DOUBTFUL, TotalNoise
from armslength.estimates.variance import VarianceCurve, curve_of
from armslength.laws import Cumulants, DiscreteLaplace
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import MOST_WITH_NORM, Protocol
from armslength.protocol.record import Record
from armslength.transforms.transform import Transform

OFTEN = 0.9  # a difference is seen if nine of ten such pairs are found to differ
_NODES = np.concatenate(
    [[0.0], np.geomspace(1e-7, 1.0, 400)]
)  # squared distances, in those of mixes without a common item
_RAREST = 1e-6
_HALVINGS = 20
_NO_NOISE = VarianceCurve(0.0, 0.0, 0.0)
_NORMAL = ndtri((np.arange(50) + 0.5) / 50)
ITEMS_PER_PERSON = 5.0
DIFFERENT = 0.8  # People differ: the mean of 1/t is about (typical t)^-0.8; on four data sets the exponent was 0.73 to 0.82
# Items go together: tr Σ² was 1.02 to 1.5 times that of independent items on NHDS (mean of 1/t: 1/5), 1.7 on eICU (1/10) and 2.8 on retail (1/17).
_TOGETHER = 13.0
_CONCENTRATION = 0.006  # of many items, about that of diagnoses and of movies that people rate
_ITEMS, _MOST_ITEMS = 1000, 100_000  # of an open vocabulary; and more of them hardly matter


@dataclass(frozen=True)
class Mix:
    """What a plan must know of the votes of a typical party: sums over the shares p of all items. People have t items each."""

    items_per_person: float  # t, so that the mean of 1/t over all people is that
    items: int
    top: float  # the largest share
    concentration: float  # π² = Σp²: how often two votes, drawn at random, are for the same item
    own: float  # about Σp²(1−tp)²/Σp²: tr Σ² = own·π²/t² for the covariance Σ of one vote
    popular: float  # Σp³(1−tp)/Σp²: δᵀΣδ = popular·D/t for a difference in all items by the same factor
    fourth: float  # Σp⁴/(Σp²)²

    @classmethod
    def zipf(cls, items: int, per_person: float) -> "Mix":
        """Zipf's law: the share of item r is proportional to 1/r, up to 1/t, as a person has an item once."""
        return cls.of(_zipf(items, 1 / per_person), per_person)

    @classmethod
    def of(cls, p: Floats, per_person: float) -> "Mix":
        """The sums over these shares."""
        per_person = min(per_person, float(len(p)), float(1 / (p @ p)))  # a vote is no shorter than the mix
        squares, alone = p @ p, np.maximum(1 - p * per_person, 0.0)
        return cls(
            per_person,
            len(p),
            float(p.max()),
            float(squares),
            max(float(p**2 @ alone**2 / squares), 1e-3) * (1 + min(per_person / _TOGETHER, 2.0) ** 2),
            float(p**3 @ alone / squares),
            float((p**4).sum() / squares**2),
        )

    @classmethod
    def of_concentration(cls, concentration: float, items: int, per_person: float) -> "Mix":
        """Zipf's law with fewer items, or with a lower cap, so that its concentration is about this; at least 1/items."""
        if cls.zipf(items, per_person).concentration < concentration:  # many people have fewer items

            def is_flatter(count: int) -> bool:
                return float((_zipf(count, 1.0) ** 2).sum()) < concentration

            return cls.of(_zipf(bisect_left(range(items), True, lo=2, key=is_flatter) - 1, 1.0), per_person)
        low, high = 1 / items, 1 / per_person
        for _ in range(30):
            cap = math.sqrt(low * high)
            too_flat = float((_zipf(items, cap) ** 2).sum()) < concentration
            low, high = (cap, high) if too_flat else (low, cap)
        return cls.of(_zipf(items, high), per_person)

    @property
    def length(self) -> float:
        """q = 1/t, the squared length of a vote."""
        return 1 / self.items_per_person

    @property
    def apart(self) -> float:
        """tr Σ = q − π², for the covariance Σ of one vote."""
        return max(0.0, self.length - self.concentration)


@dataclass(frozen=True)
class Votes:
    """How votes are released: the matrix and all noise."""

    transform: Transform
    law: DiscreteLaplace  # of the sketch, in integer units
    total_law: DiscreteLaplace  # of T − Q, in grid units
    spread_law: DiscreteLaplace  # of Q and of F
    sample: float = 1.0  # the share of people that F is from

    @classmethod
    def of(cls, protocol: Protocol) -> "Votes":
        """Those of a protocol with votes and a total_share."""
        laws = protocol.law, protocol.total_law, protocol.spread_law
        return cls(protocol.transform, *laws, float(protocol.spread_sample))  # type: ignore[arg-type]  # votes have these laws

    @property
    def unit(self) -> float:
        """Squared votes in a squared integer unit."""
        return float(self.transform.scale_squared) / VOTE**2

    @property
    def people_variance(self) -> float:
        """Of the number of people."""
        return (self.total_law.second_moment + self.spread_law.second_moment) / VOTE**2

    @property
    def spread_variance(self) -> float:
        """Of Q, and of F."""
        return self.spread_law.second_moment / VOTE**2


@dataclass(frozen=True)
class TypicalPair:
    """Two parties, and how their votes are released."""

    mix: Mix
    people: tuple[int, int]  # of the two parties
    tail: float  # of each end of an interval
    beyond_chance: bool
    votes: Votes | None  # None for no noise and no sketch: what chance alone hides

    def seen_from(self) -> float | None:
        """The largest cosine of two mixes that are found to differ in nine of ten cases; None if there is none."""
        law = self.law(1.0)
        answered = 1 - self._silent(law)
        if answered < OFTEN + _RAREST:
            return None
        squared = self._squared(1 - _NODES)
        lowest = self.true_law(law, squared).limits(squared, 1 - OFTEN / answered)[0]
        spare = lowest[0] - self._needed(law)
        if not spare[-1] > 0:
            return None
        last = int(np.flatnonzero(spare <= 0)[-1])
        share = -spare[last] / (spare[last + 1] - spare[last])
        return float(1 - _NODES[last] - share * (_NODES[last + 1] - _NODES[last]))

    def power(self, cosine: float) -> float:
        """How often two mixes of this cosine are found to differ."""
        law = self.law(1.0)
        needed, squared = self._needed(law), self._squared(np.array([cosine]))
        true = self.true_law(law, squared)
        is_likely = needed <= squared[0, 0]
        rare, common = _RAREST, 0.5  # how often estimates are on the other side of what is needed
        for _ in range(_HALVINGS):
            tail = (rare + common) / 2
            below, above = (float(end[0, 0]) for end in true.limits(squared, tail))
            is_rarer = below > needed if is_likely else above < needed
            rare, common = (rare, tail) if is_rarer else (tail, common)
        return (1 - rare if is_likely else rare) * (1 - self._silent(law))

    def likeness(self, cosine: float) -> tuple[float, float]:
        """The interval of the cosine that such a pair typically gets."""
        rows, columns = self._rows(cosine)
        z, w = (side.scaled(1 / np.sqrt(np.maximum(side.mix, 1e-300))) for side in (rows, columns))
        laws = [self._law(z, w.scaled(np.array([sign]))) for sign in (1.0, -1.0)]
        value, none = np.full((1, 1), cosine), np.zeros(0, dtype=np.int64)
        rule = Likeness(value, laws[0], laws[1], 0.0, (none, none), np.zeros(0, dtype=np.bool_))
        lower, upper = rule.interval(Level(self.tail, METHODS[0]))
        return float(lower[0, 0]), float(upper[0, 0])

    def law(self, cosine: float) -> ShapeLaw:
        """The law that intervals are made from, by what is released of such a pair on average."""
        return self._law(*self._rows(cosine))

    def true_law(self, law: ShapeLaw, squared: Floats) -> ShapeLaw:
        """The law of the estimates themselves at these squared distances: every item differs by the same factor."""
        curve = law.curve
        if self.votes is not None:
            curve = replace(
                curve, a=curve.a - self.votes.transform.variance_coefficients[1] * self.mix.fourth
            )
        if not self.beyond_chance:
            return replace(law, curve=curve)
        one = np.ones(1)
        root = math.sqrt(self._squared_covariance)
        rows, columns = (
            replace(side, sampling=root / people * one, top=one)
            for side, people in zip((law.rows, law.columns), self.people, strict=True)
        )
        each = self.mix.popular / self.mix.items_per_person + self._collisions * self.mix.apart
        linear = squared * each * sum(1 / people for people in self.people)
        return replace(law, rows=rows, columns=columns, linear=linear, curve=curve)

    def _squared(self, cosines: Floats) -> Floats:
        """Squared distances of two mixes of one length."""
        squared: Floats = 2 * self.mix.concentration * (1 - cosines[None, :])
        return squared

    def _needed(self, law: ShapeLaw) -> float:
        """The estimate from which on two mixes are found to differ."""
        return float(law.limits(np.zeros((1, 1)), self.tail)[1][0, 0])

    def _silent(self, law: ShapeLaw) -> float:
        """How often nothing is said: a number of people may be 0, or is too coarse."""
        if self.votes is None:
            return 0.0
        noise = TotalNoise((self.votes.total_law, self.votes.spread_law), 1 / VOTE)
        least = noise.upper_quantile(min(self.tail, DOUBTFUL))
        deviates = math.sqrt(self.votes.people_variance) * _NORMAL
        totals = [np.maximum(people + deviates, least / 2) for people in self.people]
        rows, columns = (
            replace(side, total_error=side.total_error * (people / total) ** 2)
            for side, people, total in zip((law.rows, law.columns), self.people, totals, strict=True)
        )
        equal = np.zeros((len(_NORMAL), len(_NORMAL)))
        is_silent = replace(law, rows=rows, columns=columns).is_coarse(equal, self.tail)
        return float((is_silent | np.logical_or.outer(*(total <= least for total in totals))).mean())

    @property
    def _collisions(self) -> float:
        """1/k: how often two items share a bin."""
        if self.votes is None or not self.votes.transform.projects:
            return 0.0
        return 1 / self.votes.transform.sketch_dim

    @property
    def _squared_covariance(self) -> float:
        """tr Σ² of one vote, in the sketch."""
        mix = self.mix
        items = min(mix.own * mix.concentration * mix.length**2, mix.apart**2)
        return items + self._collisions * mix.apart**2

    def _rows(self, cosine: float) -> tuple[ShapeRows, ShapeRows]:
        """What their rows look like on average: two vectors in a plane, with the lengths and the angle of the mixes."""
        return self._row(self.people[0], 1.0), self._row(self.people[1], cosine)

    def _row(self, people: int, cosine: float) -> ShapeRows:
        mix, votes, total = self.mix, self.votes, np.array([float(people)])
        chance = mix.apart / people if self.beyond_chance else 0.0
        norm = mix.concentration + chance
        inner = cosine * mix.concentration / norm  # chance lies at right angles
        values = np.zeros((1, 2 if votes is None else max(2, votes.transform.sketch_dim)))
        values[0, :2] = math.sqrt(norm) * np.array([inner, math.sqrt(max(0.0, 1 - inner**2))])
        cumulants, variance = [0.0, 0.0, 0.0], 0.0
        if votes is not None:
            law, unit = votes.law, votes.unit
            noises = (law.cumulants.k2, law.cumulants.k4, law.higher_cumulants[0])
            cumulants = [unit**power * each for power, each in enumerate(noises, start=1)]
            variance = votes.people_variance
        k2, k4, k6 = (np.array([each]) for each in cumulants)
        rows = ShapeRows.of(people * values, total, (k2, k4, k6), np.zeros(1), np.array([variance]))
        if not self.beyond_chance:
            return rows
        rows = rows.sampled(self._spread(total), None)
        return replace(rows, top=np.minimum(rows.top, self._fullest(people, float(k2[0]))))

    def _spread(self, total: Floats) -> Spread:
        """The typical Q and F: E‖Σ aaᵀ‖² = n²·E⟨v,w⟩² + n·E‖v‖⁴ for two votes v and w, and E⟨v,w⟩² = tr Σ² + 2μᵀΣμ + π⁴."""
        mix, votes = self.mix, self.votes
        sample = 1.0 if votes is None else votes.sample
        noise = 0.0 if votes is None else votes.spread_variance
        products = total
        is_known = votes is None or votes.transform.sketch_dim <= MOST_WITH_NORM
        if is_known:
            along = mix.popular * mix.length + self._collisions * mix.apart  # μᵀΣμ/π²
            two = self._squared_covariance + 2 * mix.concentration * along + mix.concentration**2
            products = np.minimum(total, np.sqrt(total**2 * two + total * mix.length**2 / sample))
        of_products = noise / sample**2 if is_known else 0.0
        if votes is not None and is_known:
            reach = votes.spread_law.scale / VOTE / sample
            products = products + reach * np.exp(-products / reach)  # E|F̂|, as the law squares it
        one = np.ones(1)
        return Spread(total, total * mix.length, products, noise * one, of_products * one, sample * one)

    def _fullest(self, people: int, noise_variance: float) -> float:
        """About the share of the fullest bin: the most popular item, others that fall into its bin, chance and noise."""
        variance = self.mix.top * self.mix.length * people + noise_variance
        return self.mix.top + self._collisions + math.sqrt(variance) / people

    def _law(self, rows: ShapeRows, columns: ShapeRows) -> ShapeLaw:
        k2, k4 = (float(getattr(rows, name)[0] + getattr(columns, name)[0]) for name in ("k2", "k4"))
        curve = _NO_NOISE
        if self.votes is not None:
            noise = Cumulants(k2 / self.votes.unit, k4 / self.votes.unit**2)
            curve = curve_of(self.votes.transform, "output", 1 / VOTE, noise)
        return ShapeLaw.of(rows, columns, curve, None)


def typical_mix(record: Record | None, input_dim: int | None, items_per_person: float | None = None) -> Mix:
    """The mix of a typical party, by the smaller concentration of Zipf's law and 0.006.

    Args:
        record: What becomes of the columns of a record; None for event tables.
        input_dim: How many items there are; None for an open vocabulary.
        items_per_person: How many different items a person typically has; None for five, or those of the record.
    """
    if record is not None:
        per_person = float(record.items_per_row)
    else:
        per_person = (items_per_person or ITEMS_PER_PERSON) ** DIFFERENT
    items = min(input_dim or max(_ITEMS, 2 * math.ceil(per_person)), _MOST_ITEMS)
    usual = Mix.zipf(items, per_person)
    if usual.concentration <= _CONCENTRATION or items < 1 / _CONCENTRATION:
        return usual
    return Mix.of_concentration(_CONCENTRATION, items, per_person)


def _zipf(items: int, cap: float) -> Floats:
    """Shares by Zipf's law, up to the cap."""
    cap = max(cap, 1 / items)
    weights = 1 / np.arange(1, items + 1)
    full = np.arange(items)  # so many items are at the cap, and the others share the rest
    scale = (1 - full * cap) / np.cumsum(weights[::-1])[::-1]
    first = int(np.argmax(scale * weights <= cap * (1 + 1e-12)))
    shares: Floats = np.minimum(scale[first] * weights, cap)
    return shares
