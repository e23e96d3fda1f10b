"""Distances and cosines of shapes: of rows divided by their totals.

Questions are about the counts, or about the populations of which the counted people are a sample (`beyond_chance`). The law of the
estimates is in `shape_law`. Where totals are too coarse for it, and for guaranteed intervals, there is a box of all that the
intervals of totals, norms and distances allow (proof: docs/reference/answers.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.distances import (
    Pair,
    checked_pair,
    debiased_squares,
    pair_estimate,
    squared_norms,
)
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Bounds, Level, Rule
from armslength.estimates.pair_noise import Floats, noise_classes, scaled_pair_noises
from armslength.estimates.shape_law import ShapeLaw, ShapeRows, Spread, as_axis, bisect
from armslength.estimates.totals import DOUBTFUL, Total, total_rule
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants
from armslength.sketches.sketches import Sketches

NO_POPULATIONS = "only releases in which people vote, and their sums, can be asked about populations; ask about='people' or about='counts'"
ALIKE = 0.95  # the similarity from which on two profiles are alike
# Shares of the error: most to the distance, which needs it most; a twentieth to each row's norm and total.
_TO_DISTANCE, _TO_NORM, _TO_TOTAL = 0.8, 0.05, 0.05
_HALVINGS = 20


def squared_shape_distances(
    a: Sketches, b: Sketches | None = None, *, beyond_chance: bool = False
) -> Estimate:
    """‖x/Tx − y/Ty‖² for every row of a against every row of b, or for all pairs within a; Tx is the total Σⱼ xⱼ.

    Args:
        a: Rows that were released with totals.
        b: The same; None for all pairs within a.
        beyond_chance: Whether to ask about the populations behind the rows: chance is part of the error then, and is taken
            away from the distance. It needs event tables whose people have one vote each.
    """
    shapes = Shapes(a, b, beyond_chance=beyond_chance)
    divided = [
        part.values / side.total[:, None] for side, part in zip(shapes.sides, shapes.sketches, strict=True)
    ]
    squares = debiased_squares(shapes.model, divided[0], divided[1], shapes.noises)
    curve = shapes.model.variance_curve(shapes.noises.cumulants)
    law = ShapeLaw.of(*shapes.rows, curve, shapes.root)
    value = law.value
    value[shapes.shared] = squares[shapes.shared]
    rule = Shape(law, Pair(shapes.model, shapes.noises, squares), shapes.sides, shapes.shared)
    return shapes.estimate("squared distances of profiles", value, rule)


def shape_cosines(a: Sketches, b: Sketches | None = None, *, beyond_chance: bool = False) -> Estimate:
    """How alike two shapes are: ⟨p, q⟩/(‖p‖·‖q‖), 1 for equal mixes, 0 for mixes that share no item.

    The arguments are those of `squared_shape_distances`. The interval is approximate; simulations are in docs/reference/populations.md.
    """
    shapes = Shapes(a, b, beyond_chance=beyond_chance)
    rule = shapes.likeness(*shapes.rows)
    rule.value[shapes.shared] = np.where(shapes.is_equal, 1.0, np.nan)
    rule = replace(rule, shared=shapes.shared, is_equal=shapes.is_equal, sides=shapes.sides)
    return shapes.estimate("similarities", rule.value, rule)


class Shapes:
    """Two sides whose shapes are compared."""

    def __init__(self, a: Sketches, b: Sketches | None, *, beyond_chance: bool) -> None:
        left, right = self.sketches = checked_pair(a, b)
        self.within, self.beyond_chance = b is None, beyond_chance
        self.model = ErrorModel.of(left.protocols[0])
        entries = left.transform.column_entries
        self.root = None if entries is None else float(np.sqrt(entries))
        different = (left,) if right is left else (left, right)
        sides = [_Side.of(part) for part in different]
        rows = [self._rows(part, side) for part, side in zip(different, sides, strict=True)]
        self.sides, self.rows = (sides[0], sides[-1]), (rows[0], rows[-1])
        self.noises = scaled_pair_noises(left, right, (1 / sides[0].total, 1 / sides[-1].total))
        none = np.zeros(0, dtype=np.int64)
        # A row against itself has no noise left; rows that share some of their noise are compared by the box.
        self.shared, self.is_equal = (none, none), np.zeros(0, dtype=np.bool_)
        if self.noises.shared is not None:
            self.shared, merged = self.noises.shared
            self.is_equal = merged.each("k2") == 0
        if beyond_chance and not self.is_equal.all():
            raise ParameterError(
                "rows that share a release have people in common, so nothing can be said about populations; ask about='people'",
                "about",
            )

    def _rows(self, sketches: Sketches, side: "_Side") -> ShapeRows:
        unit = self.model.unit
        classes, noises = noise_classes(sketches.noises)
        cumulants = [(noise.cumulants.k2, noise.cumulants.k4, noise.sixth_cumulant) for noise in noises]
        k2, k4, k6 = np.array(cumulants).reshape(-1, 3)[classes].T
        noise = unit * k2, unit**2 * k4, unit**3 * k6
        values = np.sqrt(unit) * sketches.values
        error = side.totals.variance
        rows = ShapeRows.of(values, side.total, noise, self.model.bias * unit * k2, error)
        return rows.sampled(spread_of(sketches, side.total), self.root) if self.beyond_chance else rows

    def law(self, rows: ShapeRows, columns: ShapeRows, *, is_paired: bool = False) -> ShapeLaw:
        """The law of squared distances of these rows, which may be scaled."""
        k2, k4 = (
            getattr(rows, name)[:, None] + as_axis(getattr(columns, name), 1, is_paired=is_paired)
            for name in ("k2", "k4")
        )
        curve = self.model.variance_curve(Cumulants(k2 / self.model.unit, k4 / self.model.unit**2))
        return ShapeLaw.of(rows, columns, curve, self.root, is_paired=is_paired)

    def likeness(self, rows: ShapeRows, columns: ShapeRows, *, is_paired: bool = False) -> "Likeness":
        """The cosines of these rows and their rule, for rows that have no noise in common and totals above 0."""
        squares = [side.norm - side.subtracted for side in (rows, columns)]
        lengths = [np.sqrt(np.where(square > 0, square, 1.0)) for square in squares]
        p, q = (side.scaled(1 / length) for side, length in zip((rows, columns), lengths, strict=True))
        law = self.law(p, q, is_paired=is_paired)
        opposite = self.law(p, q.scaled(-np.ones(len(q.norm))), is_paired=is_paired)
        least = 0.0 if all(map(has_spread, self.sketches)) else -1.0  # no vote is negative
        value = np.clip(law.inner, least, 1.0)
        # Nothing is known of the cosine where noise and chance could be all of a row's length.
        value[~((squares[0][:, None] > 0) & (as_axis(squares[1], 1, is_paired=is_paired) > 0))] = np.nan
        none = np.zeros(0, dtype=np.int64)
        return Likeness(value, law, opposite, least, (none, none), np.zeros(0, dtype=np.bool_))

    def estimate(self, quantity: str, value: Floats, rule: Rule) -> Estimate:
        """The estimate, with a note on what must be known to read it."""
        left, right = self.sketches
        level = Level(DOUBTFUL, METHODS[0])
        is_doubtful = ~np.concatenate([side.totals.is_positive(level) for side in self.sides])
        doubtful = some_labels((*left.labels, *right.labels), is_doubtful)
        note = f"nothing is known of {doubtful}: the total may be 0" if doubtful else ""
        return pair_estimate(quantity, value, self.sketches, rule, within=self.within, note=note)


def some_labels(labels: Sequence[str], is_chosen: NDArray[np.bool_]) -> str:
    """The first five of the chosen labels, each once, separated by commas."""
    names = list(dict.fromkeys(labels[row] for row in np.flatnonzero(is_chosen).tolist()))
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def has_spread(sketches: Sketches) -> bool:
    """Whether these rows can be asked about the populations behind them: released votes, or sums of such rows."""
    noises = sketches.noises
    return (
        sketches.spread is not None
        and all(protocol.votes for protocol, _ in noises.releases)
        and not noises.in_clear.any()
        and bool((np.diff(noises.starts) > 0).all() and (noises.coefficients == 1).all())
    )


def spread_of(sketches: Sketches, people: Floats) -> Spread:
    """How far apart the people of each row are; `people` are its released totals.

    In a sum of rows, which is taken for a row of so many different people, T and Q add up, and F by the triangle inequality, with
    their noises. Rows whose F is from different shares of their people have none together.
    """
    if sketches.spread is None or not has_spread(sketches):
        raise ParameterError(NO_POPULATIONS, "about")
    noises, unit = sketches.noises, float(sketches.protocols[0].resolution)
    first = noises.starts[:-1]

    def of_rows(add: np.ufunc, numbers: list[float]) -> Floats:
        terms = np.array(numbers, dtype=np.float64)[noises.numbers]
        return np.asarray(add.reduceat(terms, first)) if len(first) else np.zeros(0)

    protocols = [protocol for protocol, _ in noises.releases]
    laws = [protocol.spread_law for protocol in protocols]
    variance = unit**2 * of_rows(np.add, [law.second_moment if law is not None else np.nan for law in laws])
    shares = [float(protocol.spread_sample) for protocol in protocols]
    share, most = of_rows(np.minimum, shares), of_rows(np.maximum, shares)
    spread = sketches.spread.astype(np.float64) * unit
    is_known = (share == most) & (spread.shape[1] > 1)
    products = np.where(is_known, spread[:, -1] / share, people)
    of_products = np.where(is_known, variance / share**2, 0.0)
    return Spread(people, spread[:, 0], products, variance, of_products, share)


def _have_totals(sides: "tuple[_Side, _Side]", level: Level) -> NDArray[np.bool_]:
    """Whether both totals of each pair are above 0, at this level and in any case nearly surely."""
    strict = Level(min(level.tail, DOUBTFUL), level.method)
    both: NDArray[np.bool_] = np.logical_and.outer(*(side.totals.is_positive(strict) for side in sides))
    return both


@dataclass(frozen=True)
class _Side:
    """The rows of one side, which are divided by their released totals."""

    total: Floats  # as released, in data units; NaN if it is not above 0
    totals: Total
    norms: Rule  # of squared norms

    @classmethod
    def of(cls, sketches: Sketches) -> "_Side":
        rule = total_rule(sketches)
        return cls(np.where(rule.value > 0, rule.value, np.nan), rule, squared_norms(sketches).rule)

    def total_ratios(self, level: Level) -> Bounds:
        """(lower, upper) of 1/r = T̂/T; NaN where T may be 0."""
        lower, upper = self.totals.interval(level)
        return self.total / upper, self.total / np.where(lower > 0, lower, np.nan)

    def squared_norms(self, level: Level) -> Bounds:
        """(lower, upper) of ‖x/T̂‖²."""
        lower, upper = self.norms.interval(level)
        return lower / self.total**2, upper / self.total**2


@dataclass(frozen=True)
class Shape:
    """The rule of squared distances of shapes."""

    law: ShapeLaw
    divided: Pair  # of rows divided by their released totals
    sides: tuple[_Side, _Side]
    shared: tuple[NDArray[np.int64], NDArray[np.int64]]  # the pairs that have a noise in common
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """By the law, or by the box: for the counts of coarse totals, and where it must be guaranteed.

        Nothing is known where a total may be 0.
        """
        is_sampled = bool(self.law.rows.one_person.any())
        if level.method == "guaranteed":
            if is_sampled:
                raise ParameterError("method must be 'asymptotic' beyond chance, got 'guaranteed'", "method")
            return self.box(level)
        ends = self.law.interval(level.tail)
        is_special = np.equal.outer(self.law.rows.k2, -self.law.columns.k2)  # neither has noise
        is_special[self.shared] = True
        boxes = [is_special | self.law.is_coarse(end, level.tail) for end in ends]
        lower, upper = ends
        if is_sampled:
            lower = self.law.known_from(lower, level.tail)
        if boxes[0].any() or boxes[1].any():
            box_lower, box_upper = self.box(level)
            if is_sampled:  # the box knows nothing of chance; a row against itself is 0 in any case
                box_lower, box_upper = np.where(is_special, 0.0, lower), np.where(box_upper == 0, 0.0, np.inf)
            lower, upper = np.where(boxes[0], box_lower, lower), np.where(boxes[1], box_upper, upper)
        is_unknown = ~_have_totals(self.sides, level) & (upper != 0)
        lower, upper = np.where(is_unknown, 0.0, lower), np.where(is_unknown, np.inf, upper)
        return np.nan_to_num(lower, nan=0.0, posinf=np.inf), np.nan_to_num(upper, nan=np.inf, posinf=np.inf)

    def box(self, level: Level) -> Bounds:
        """All that the intervals of totals, norms and distances allow; nothing is known where a total may be 0."""
        lower, upper = self.divided.interval(level.share(_TO_DISTANCE))
        norms = _ranges(*(side.squared_norms(level.share(_TO_NORM)) for side in self.sides))
        ratios = _ranges(*(side.total_ratios(level.share(_TO_TOTAL)) for side in self.sides))
        # x/T̂x = y/T̂y makes the shapes equal, whatever the true totals are.
        is_equal = (upper == 0) & ~np.isnan(self.divided.value)
        lower = np.nan_to_num(_smallest_square(lower, norms, ratios), nan=0.0)
        upper = np.nan_to_num(_largest_square(upper, norms, ratios), nan=np.inf, posinf=np.inf)
        return np.where(is_equal, 0.0, lower), np.where(is_equal, 0.0, upper)


@dataclass(frozen=True)
class Likeness:
    """The rule of cosines of shapes: docs/reference/populations.md says why it holds.

    Rows are divided by their estimated lengths: z = p/N, w = q/M.
    """

    value: Floats  # ⟨z, w⟩; NaN where a length is not above 0 as estimated
    law: ShapeLaw  # of ‖z−w‖²
    opposite: ShapeLaw  # of ‖z+w‖²
    least: float  # the smallest possible cosine: 0 for votes
    shared: tuple[NDArray[np.int64], NDArray[np.int64]]
    is_equal: NDArray[np.bool_]
    sides: "tuple[_Side, _Side] | None" = None  # None where both are known to be above 0
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """(lower, upper) of each cosine; all that are possible where a length or a total may be 0."""
        if level.method == "guaranteed":
            raise ParameterError(
                "method must be 'asymptotic' for cosines of shapes, got 'guaranteed'", "method"
            )
        is_known = ~np.isnan(self.value)
        if self.sides is not None:
            is_known &= _have_totals(self.sides, level)
        upper = np.where(is_known, self._highest(level.tail, 1, 1.0), 1.0)
        lower = np.where(is_known, -self._highest(level.tail, -1, -self.least), self.least)
        lower[self.shared], upper[self.shared] = np.where(self.is_equal, 1.0, self.least), 1.0
        return lower, upper

    def is_at_least(self, cosine: float, level: Level) -> NDArray[np.bool_]:
        """Whether the lower end is at least so much."""
        is_above = (self.value >= cosine) & ~self._are_possible(level.tail, -1)(
            np.full_like(self.value, -cosine)
        )
        if self.sides is not None:
            is_above &= _have_totals(self.sides, level)
        is_above[self.shared] = self.is_equal
        return is_above

    def _highest(self, tail: float, sign: int, most: float) -> Floats:
        """The largest cosine of z and w·sign, up to `most`, that the estimate does not exclude."""
        value = sign * self.value
        return bisect(self._are_possible(tail, sign), value, np.full_like(value, most), _HALVINGS)[1]

    def _are_possible(self, tail: float, sign: int) -> Callable[[Floats], NDArray[np.bool_]]:
        """Whether the estimates do not exclude these cosines of z and w·sign.

        4(ĉ − c) = (1−c)·(‖z+w‖² − 2(1+c)) − (1+c)·(‖z−w‖² − 2(1−c)): the errors of two distances, each at its own limit.
        """
        near, far = (self.law, self.opposite)[::sign]
        value, uneven = sign * self.value, self._uneven()

        def is_possible(cosine: Floats) -> NDArray[np.bool_]:
            distance, opposite = 2 * (1 - cosine), 2 * (1 + cosine)
            above = near.limits(distance, tail)[1] - distance
            below = opposite - far.limits(opposite, tail)[0]
            reach = ((1 - cosine) * below + (1 + cosine) * above) / 4
            smallest = cosine - reach
            # N and M have noise of their own: the smallest for any lengths of z and w
            any_length = np.sqrt(np.maximum(smallest**2 - (uneven * reach) ** 2, 0.0))
            possible: NDArray[np.bool_] = np.where(smallest > 0, any_length, smallest) <= value
            return possible

        return is_possible

    def _uneven(self) -> Floats:
        """By how much one row has more noise and chance than the other, as a share of what both have."""
        rows, columns = (
            np.sqrt(self.law.coordinates) * side.k2 + side.sampling
            for side in (self.law.rows, self.law.columns)
        )
        x, y = rows[:, None], as_axis(columns, 1, is_paired=self.law.is_paired)
        uneven: Floats = np.abs(x - y) / np.maximum(x + y, 1e-300)
        return uneven


# The (lower, upper) of each row, and of each column, in shapes that broadcast to a matrix of pairs.
_Ranges = tuple[Bounds, Bounds]


def _ranges(rows: Bounds, columns: Bounds) -> _Ranges:
    return (rows[0][:, None], rows[1][:, None]), (columns[0][None, :], columns[1][None, :])


def _largest_square(upper: Floats, norms: _Ranges, ratios: _Ranges) -> Floats:
    """The largest ‖ρP − σQ‖²: convex in (ρ, σ), so at a corner."""
    (x_low, x_high), (y_low, y_high) = norms
    result = np.zeros_like(upper)
    for rho, sigma in product(*ratios):
        p, q = np.where(rho > sigma, x_high, x_low), np.where(sigma > rho, y_high, y_low)
        result = np.maximum(result, _form(rho, sigma, upper, p, q))
    return result


def _smallest_square(lower: Floats, norms: _Ranges, ratios: _Ranges) -> Floats:
    """The smallest ‖ρP − σQ‖² for the smallest ‖P−Q‖² and norms that suit it: on an edge, or on ρ = σ; at least 0."""
    rhos, sigmas = ratios
    equal = np.maximum(rhos[0], sigmas[0])
    result = np.where(equal <= np.minimum(rhos[1], sigmas[1]), equal**2 * lower, np.inf)
    for (x, y), (edges, others) in ((norms, ratios), (norms[::-1], ratios[::-1])):
        # On an edge, ρ is the larger of the two with the first norms, and the smaller with the second.
        for rho, (p, q, nearer) in product(edges, ((x[0], y[1], np.minimum), (x[1], y[0], np.maximum))):
            with np.errstate(divide="ignore", invalid="ignore"):  # the form is linear where q is 0
                best = np.nan_to_num((p + q - lower) / 2 / q, nan=0.0, posinf=np.inf, neginf=-np.inf)
            sigma = nearer(np.clip(best * rho, *others), rho)
            is_inside = (sigma >= others[0]) & (sigma <= others[1])
            result = np.where(is_inside, np.minimum(result, _form(rho, sigma, lower, p, q)), result)
    is_bounded = np.isfinite(norms[0][1]) & np.isfinite(norms[1][1])
    return np.where(is_bounded, np.maximum(result, 0.0), 0.0)


def _form(rho: Floats, sigma: Floats, squared_distance: Floats, p: Floats, q: Floats) -> Floats:
    """‖ρP − σQ‖² = ρσ‖P−Q‖² + (ρ−σ)(ρ‖P‖² − σ‖Q‖²); where ρ = σ, norms do not matter, even infinite ones."""
    with np.errstate(invalid="ignore"):
        stretch = (rho - sigma) * (rho * p - sigma * q)
    return rho * sigma * squared_distance + np.where(rho == sigma, 0.0, stretch)
