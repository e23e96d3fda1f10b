"""The typical party: for each party the average of all others that are large enough, none weighing more than the median.

Its profile is Σ wⱼpⱼ, with weights wⱼ proportional to min(Tⱼ, median T). So one party, however large or odd, is at most one among many,
and parties stay independent of what they are compared with. The weights are public, and taken as they are.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shape_law import ShapeRows
from armslength.estimates.shapes import Shapes
from armslength.estimates.totals import has_sure_total
from armslength.sketches.sketches import Sketches

_LEVEL = 0.95  # of the answers, about all pairs together, that decide which parties are large enough


def weights_of(totals: Floats) -> Floats:
    """n x n: how much each other party weighs in what a party is compared with; each line adds up to 1."""
    capped = np.minimum(totals, np.median(totals))
    weights: Floats = np.tile(capped, (len(totals), 1))
    np.fill_diagonal(weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def large_enough(sketches: Sketches, *, beyond_chance: bool) -> NDArray[np.bool_]:
    """For each row whether anything can be said of its profile.

    It cannot where the number of people may be 0, or where noise and chance are so large that even a profile without a common item would
    not be found to differ, among all pairs together.
    """
    is_large = has_sure_total(sketches)
    tail = Level.of(_LEVEL, METHODS[0], max(1, len(sketches) * (len(sketches) - 1) // 2)).tail
    if not is_large.any():
        return is_large
    shapes = Shapes(sketches[is_large], None, beyond_chance=beyond_chance)
    rows, total = shapes.rows[0], shapes.sides[0].total
    # π² of all people together: that of a small party is mostly noise
    share = total / total.sum()
    pooled = share @ rows.values
    noise = np.einsum("ij,ij->i", rows.values, rows.values) - rows.norm
    mix = np.clip(pooled @ pooled - share**2 @ (noise + rows.subtracted), 0.0, 1.0) * np.ones(len(total))
    rows = replace(rows, mix=mix)
    known = replace(rows.scaled(np.zeros(len(total))), mix=mix)  # without noise and chance
    law = shapes.law(rows, known, is_paired=True)
    equal = np.zeros_like(law.inner)
    can_differ = law.limits(equal, tail)[1] < 2 * mix[:, None]
    is_large[is_large] = can_differ[:, 0]
    return is_large


@dataclass(frozen=True)
class TypicalParties:
    """Each row of some sketches against the typical party of all others; n x 1."""

    shapes: Shapes
    rows: ShapeRows
    typical: ShapeRows

    @classmethod
    def of(cls, sketches: Sketches, *, beyond_chance: bool) -> "TypicalParties":
        """Those of these rows, at least three, all of them large enough."""
        shapes = Shapes(sketches, None, beyond_chance=beyond_chance)
        rows, total = shapes.rows[0], shapes.sides[0].total
        return cls(shapes, rows, _typical(rows, total, shapes.root))

    def squared_distances(self, tail: float) -> tuple[Floats, Floats, Floats]:
        """(value, lower, upper) of the squared distance of each row from its typical party; each end misses with this probability."""
        law = self.shapes.law(self.rows, self.typical, is_paired=True)
        lower, upper = law.interval(tail)
        lower, upper = law.known_from(lower, tail), np.where(law.is_coarse(upper, tail), np.inf, upper)
        return law.value[:, 0], lower[:, 0], upper[:, 0]

    def similarities(self, level: Level) -> tuple[Floats, Floats, Floats]:
        """(value, lower, upper) of the cosine of each row's profile and that of its typical party."""
        likeness = self.shapes.likeness(self.rows, self.typical, is_paired=True)
        lower, upper = likeness.interval(level)
        return likeness.value[:, 0], lower[:, 0], upper[:, 0]


def _typical(rows: ShapeRows, total: Floats, root: float | None) -> ShapeRows:
    """The typical party of each row, as a row.

    Chance adds up with squared weights, and so does √tr Σ², by the triangle inequality. As wⱼ/nⱼ is at most one over the sum S of what is
    averaged, the bound δᵀΣδ ≤ Σ δᵢ²·μᵢ/n holds with S people.
    """
    weights = weights_of(total)
    squared = weights**2
    # E[1/T̂] is too large by v; a weight of T̂ itself has no such error
    unbiased = 1 - rows.total_error * (total >= np.median(total))
    values = weights @ (unbiased[:, None] * rows.values)
    noise = np.einsum("ij,ij->i", rows.values, rows.values) - rows.norm
    norm = np.einsum("ij,ij->i", values, values) - squared @ noise
    subtracted = squared @ rows.subtracted
    mix = np.clip(norm - subtracted, 0.0, 1.0)
    # The errors of the totals: Σ w²vπ², as if they were one error of the average.
    errors = squared @ (rows.total_error * rows.mix)
    error = np.minimum(errors / np.maximum(mix, 1e-300), rows.total_error.max())
    more = 1 + error  # which the law takes away again
    people = np.minimum(total, np.median(total))
    one_person = np.where(rows.one_person > 0, 1 / np.maximum(people.sum() - people, 1.0), 0.0)
    top = np.where(rows.top > 0, np.sqrt(mix), 0.0)
    if root is not None:
        top = np.minimum(top, root * np.abs(values).max(axis=1))
    return ShapeRows(
        values=values * more[:, None],
        norm=norm * more**2,
        k2=squared @ rows.k2,
        k4=squared**2 @ rows.k4,
        k6=squared**3 @ rows.k6,
        total_error=error,
        mix=mix,
        one_person=one_person,
        chance=squared @ rows.chance,
        subtracted=subtracted,
        chance_error=squared**2 @ rows.chance_error,
        sampling=squared @ rows.sampling,
        top=top,
    )
