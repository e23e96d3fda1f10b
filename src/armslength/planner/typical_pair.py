"""Two typical parties whose mixes differ, before there is any data: how often would their difference be seen, and with what interval?"""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shape_law import COARSE, ShapeLaw, ShapeRows
from armslength.estimates.shapes import Likeness
from armslength.estimates.variance import VarianceCurve, curve_of
from armslength.laws import Cumulants, DiscreteLaplace, Law
from armslength.transforms.transform import Transform

OFTEN = 0.9  # a difference is seen if nine of ten such pairs are told apart
_NODES = np.concatenate(
    [[0.0], np.geomspace(1e-7, 1.0, 400)]
)  # squared distances, in those of mixes without a common item
_NO_NOISE = VarianceCurve(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Mix:
    """What a plan must know of the mix of a typical party: sums over the shares p of all items."""

    items: int
    top: float  # the largest share
    concentration: float  # Σp²: how often two records, drawn at random, are of the same item
    own: float  # Σp²(1−Cp)²/Σp²: what is left of m if a person's items are independent
    popular: float  # Σp³(1−Cp)/Σp²: the share of the items that a difference is in
    fourth: float  # Σp⁴/(Σp²)²

    @classmethod
    def zipf(cls, items: int, contribution: int, cap: float = 1.0) -> "Mix":
        """Zipf's law: the share of item r is proportional to 1/r, up to the cap; a person with C items has each once, so 1/C is one."""
        cap = max(min(cap, 1 / contribution), 1 / items)
        weights = 1 / np.arange(1, items + 1)
        full = np.arange(items)  # so many items are at the cap, and the others share the rest
        scale = (1 - full * cap) / np.cumsum(weights[::-1])[::-1]
        first = int(np.argmax(scale * weights <= cap * (1 + 1e-12)))
        return cls.of(np.minimum(scale[first] * weights, cap), contribution)

    @classmethod
    def of(cls, p: Floats, contribution: int) -> "Mix":
        """The sums over these shares."""
        squares, alone = p @ p, 1 - p * min(contribution, len(p))
        return cls(
            len(p),
            float(p.max()),
            float(squares),
            max(float(p**2 @ alone**2 / squares), 1e-3),
            float(p**3 @ alone / squares),
            float((p**4).sum() / squares**2),
        )

    @classmethod
    def of_concentration(cls, concentration: float, items: int, contribution: int) -> "Mix":
        """Zipf's law with fewer items, or with a lower cap, so that its concentration is about this; at least 1/items."""
        if cls.zipf(items, contribution).concentration < concentration:  # many people have fewer than C items

            def is_flatter(count: int) -> bool:
                return cls.zipf(count, 1).concentration < concentration

            return cls.zipf(bisect_left(range(items), True, lo=2, key=is_flatter) - 1, 1)
        low, high = 1 / items, 1 / contribution
        for _ in range(30):
            cap = math.sqrt(low * high)
            too_flat = cls.zipf(items, contribution, cap).concentration < concentration
            low, high = (cap, high) if too_flat else (low, cap)
        return cls.zipf(items, contribution, high)


@dataclass(frozen=True)
class TypicalPair:
    """Two parties of equal size, and how they are released."""

    mix: Mix
    people: int
    contribution: int
    tail: float  # of each end of an interval
    beyond_chance: bool
    transform: Transform | None  # None for counts without noise: what chance alone hides
    law: Law
    total_law: DiscreteLaplace | None

    @property
    def total(self) -> float:
        """The items of all people of a party."""
        return float(self.people * self.contribution)

    @property
    def is_coarse(self) -> bool:
        """Whether totals may be too coarse for intervals of shapes; a twentieth more, as released totals vary."""
        if self.total_law is None:
            return False
        error = math.sqrt(self.total_law.second_moment / 2) / self.total
        return 1.05 * error * -math.log(2 * self.tail) > COARSE

    def seen_from(self) -> float | None:
        """The largest cosine of two mixes that are told apart in nine of ten cases; None if there is none."""
        if self.is_coarse:
            return None
        squared = 2 * self.mix.concentration * _NODES[None, :]
        law = self._law(*self._rows(1.0))
        needed = law.limits(np.zeros((1, 1)), self.tail)[1][0, 0]
        lost = 2 * (law.rows.chance[0] - self._chance)  # more than chance is taken away
        spare = self._true(law, squared).limits(squared, 1 - OFTEN)[0][0] - needed - lost
        if not spare[-1] > 0:
            return None
        last = int(np.flatnonzero(spare <= 0)[-1])
        share = -spare[last] / (spare[last + 1] - spare[last])
        return float(1 - _NODES[last] - share * (_NODES[last + 1] - _NODES[last]))

    def likeness(self, cosine: float) -> tuple[float, float]:
        """The interval of the cosine that such a pair typically gets."""
        rows, columns = self._rows(cosine)
        length = np.sqrt(np.maximum(rows.norm - rows.chance, 1e-300))
        laws = [self._law(rows.scaled(1 / length), columns.scaled(sign / length)) for sign in (1.0, -1.0)]
        norm = self._law(rows.scaled(1 / length), rows.nothing())
        none = np.zeros(0, dtype=np.int64)
        value = np.full((1, 1), cosine)
        rule = Likeness(value, laws[0], laws[1], norm, norm, (none, none), np.zeros(0, dtype=np.bool_))
        with np.errstate(
            invalid="ignore"
        ):  # if nearly all is one item, one of the two arguments says nothing
            lower, upper = rule.interval(Level(self.tail, METHODS[0]))
        return float(lower[0, 0]), float(upper[0, 0])

    @property
    def _chance(self) -> float:
        """τ of people with C different items each."""
        if not self.beyond_chance:
            return 0.0
        return max(0.0, 1 - self.contribution * self.mix.concentration) / self.total

    @property
    def _unit(self) -> float:
        """c²: squared data units in a squared integer unit."""
        return 1.0 if self.transform is None else float(self.transform.scale_squared)

    def _rows(self, cosine: float) -> tuple[ShapeRows, ShapeRows]:
        """What their rows look like on average: two vectors in a plane, with the lengths and the angle of the mixes."""
        squared, total = self.mix.concentration, np.array([self.total])
        norm = squared + self._chance
        inner = squared * cosine / norm  # chance lies at right angles
        law = self.law.cumulants
        is_noisy = float(self.transform is not None)
        cumulants = enumerate((law.k2, law.k4, self.law.higher_cumulants[0]), start=1)
        k2, k4, k6 = (np.array([is_noisy * self._unit**power * each]) for power, each in cumulants)
        error = np.array([0.0 if self.total_law is None else self.total_law.second_moment])
        sides = []
        for angle in (1.0, inner):
            values = math.sqrt(norm) * np.array([[angle, math.sqrt(max(0.0, 1 - angle**2))]])
            rows = ShapeRows.of(self.total * values, total, (k2, k4, k6), np.zeros(1), error, None)
            rows = replace(rows, top=np.minimum(rows.top, self._fullest(float(k2[0]))))
            if self.beyond_chance:
                rows = rows.sampled(total, np.array([float(self.contribution)]))
            sides.append(rows)
        return sides[0], sides[1]

    def _fullest(self, noise_variance: float) -> float:
        """About the share of the fullest bin: the most popular item, others that fall into its bin, chance and noise."""
        if self.transform is None:
            return self.mix.top
        variance = (self.mix.top * self.total if self.beyond_chance else 0.0) + noise_variance
        return self.mix.top + 1 / self.transform.sketch_dim + math.sqrt(variance) / self.total

    def _law(self, rows: ShapeRows, columns: ShapeRows) -> ShapeLaw:
        """The law that intervals are made from."""
        k2, k4 = (float(getattr(rows, name)[0] + getattr(columns, name)[0]) for name in ("k2", "k4"))
        curve, coordinates = _NO_NOISE, 1
        if self.transform is not None:
            noise = Cumulants(k2 / self._unit, k4 / self._unit**2)
            curve = curve_of(self.transform, "output", 1.0, noise)
            coordinates = self.transform.sketch_dim
        law = ShapeLaw.of(rows, columns, curve, None)
        return replace(law, coordinates=coordinates)

    def _true(self, law: ShapeLaw, squared: Floats) -> ShapeLaw:
        """The law of the estimates themselves: a person's items are independent, and every item differs by the same factor."""
        own, curve = self.mix.own, law.curve
        if self.transform is not None:
            curve = replace(curve, a=curve.a - self.transform.variance_coefficients[1] * self.mix.fourth)
        if not self.beyond_chance:
            return replace(law, curve=curve)
        chance, one = np.array([self._chance]), np.ones(1)
        rows = replace(law.rows, items=own * one, chance=chance, top=one)
        linear = 2 * squared * self.mix.popular / self.total / own
        return replace(law, rows=rows, columns=rows, linear=linear, curve=curve)
