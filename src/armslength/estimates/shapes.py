"""Totals, and distances of shapes, whose intervals carry the errors of the totals (proof: docs/reference/answers.md).

A row x with the released total T̂ is compared as x/T̂ = r·p, where p = x/T is its shape and r = T/T̂ lies in an interval.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.estimates.distances import (
    Pair,
    Rows,
    as_distances,
    checked_pair,
    debiased_squares,
    pair_estimate,
    squared_norms,
)
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Bounds, Level, Rule
from armslength.estimates.pair_noise import Floats, scaled_pair_noises
from armslength.estimates.variance import ErrorModel
from armslength.laws import DiscreteLaplace
from armslength.protocol.protocol import Protocol
from armslength.sketches.sketches import Sketches

NOTE = "shapes: rows divided by their released totals, whose error is part of the interval"
# Shares of the error: most to the distance, which needs it most; a twentieth to each row's norm and total.
_TO_DISTANCE, _TO_NORM, _TO_TOTAL = 0.8, 0.05, 0.05


def shape_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x/Tx − y/Ty‖ for every row of a against every row of b, or for all pairs within a; Tx is the total Σⱼ xⱼ.

    Guarantee: the interval holds at its level whatever the totals' noise was; the value, at the released totals, is near.
    """
    return as_distances(squared_shape_distances(a, b))


def squared_shape_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x/Tx − y/Ty‖² for all pairs of rows: estimated at the released totals, with an interval for the true ones."""
    left, right = checked_pair(a, b)
    model = ErrorModel.of(left.protocols[0])
    mine = _Side.of(left)
    theirs = mine if right is left else _Side.of(right)
    rows = mine.divided(left)
    columns = rows if right is left else theirs.divided(right)
    noises = scaled_pair_noises(left, right, (1 / mine.total, 1 / theirs.total))
    value = debiased_squares(model, rows, columns, noises)
    rule = Shape(Pair(model, noises, value), mine, theirs)
    return pair_estimate("squared shape distances", value, (left, right), rule, within=b is None, note=NOTE)


def totals(sketches: Sketches) -> Estimate:
    """Σⱼ xⱼ for every row, in data units: unbiased, with its exact variance.

    Guarantee: the interval of a released row comes from the exact law of its noise, that of a combination of rows from
    a union bound over their laws. Both methods give it.
    """
    checked_pair(sketches, None)
    if sketches.totals is None:
        raise ParameterError(
            "sketches must have been released with totals, got some without; plan a protocol with total_share"
        )
    unit = float(sketches.protocols[0].resolution)
    value = sketches.totals.astype(np.float64) * unit
    terms = map(sketches.noises.terms, range(len(sketches)))
    noises = tuple(tuple((_total_law(protocol), abs(factor)) for protocol, factor in row) for row in terms)
    return pair_estimate("totals", value, (sketches,), Total(value, noises, unit))


def _total_law(protocol: Protocol) -> DiscreteLaplace:
    if protocol.total_law is None:
        raise TypeError("sketches with totals have a law of their totals' noise")
    return protocol.total_law


@dataclass(frozen=True)
class Total:
    """The rule of totals."""

    value: Floats
    noises: tuple[tuple[tuple[DiscreteLaplace, float], ...], ...]  # laws and coefficients, for each row
    unit: float  # data units in a grid unit

    @property
    def variance(self) -> Floats:
        """γ²·Σα²κ₂ over the noises of each row."""
        sums = [sum(factor**2 * law.second_moment for law, factor in row) for row in self.noises]
        return self.unit**2 * np.array(sums)

    def interval(self, level: Level) -> Bounds:
        """The totals that noise does not exclude."""
        reaches = {
            row: sum(factor * law.upper_quantile(level.tail / len(row)) for law, factor in row)
            for row in set(self.noises)
        }
        reach = self.unit * np.array([reaches[row] for row in self.noises])
        return self.value - reach, self.value + reach


@dataclass(frozen=True)
class _Side:
    """The rows of one side, which are divided by their released totals."""

    labels: tuple[str, ...]
    total: Floats  # as released, in data units
    totals: Rule
    norms: Rule  # of squared norms

    @classmethod
    def of(cls, sketches: Sketches) -> "_Side":
        released = totals(sketches)
        side = cls(sketches.labels, released.value, released.rule, squared_norms(sketches).rule)
        side.check_positive(released.value)
        return side

    def divided(self, sketches: Sketches) -> Rows:
        """The rows' numbers, divided by their totals."""
        values = (sketches.values + sketches.offsets[:, None]) / self.total[:, None]
        return Rows(values, np.zeros(len(values)))

    def total_ratios(self, level: Level) -> Bounds:
        """(lower, upper) of 1/r = T̂/T."""
        lower, upper = self.totals.interval(level)
        self.check_positive(lower)
        return self.total / upper, self.total / lower

    def squared_norms(self, level: Level) -> Bounds:
        """(lower, upper) of ‖x/T̂‖²."""
        lower, upper = self.norms.interval(level)
        return lower / self.total**2, upper / self.total**2

    def check_positive(self, least: Floats) -> None:
        """Raises an error if a total may be 0."""
        wrong = np.flatnonzero(~(least > 0))
        if len(wrong):
            raise ParameterError(
                f"totals must surely be above 0 to compare shapes, got one of {short_repr(self.labels[wrong[0]])} that may not be; "
                "leave it out, lower the level, or compare by size"
            )


@dataclass(frozen=True)
class Shape:
    """The rule of squared distances of shapes: all that the intervals of totals, norms and distances allow."""

    divided: Rule  # of squared distances of rows divided by their released totals
    left: _Side
    right: _Side
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """(lower, upper) over all true totals and norms."""
        lower, upper = self.divided.interval(level.share(_TO_DISTANCE))
        norms = _ranges(*(side.squared_norms(level.share(_TO_NORM)) for side in (self.left, self.right)))
        ratios = _ranges(*(side.total_ratios(level.share(_TO_TOTAL)) for side in (self.left, self.right)))
        # x/T̂x = y/T̂y makes the shapes equal, whatever the true totals are.
        equal = upper == 0
        least = np.where(equal, 0.0, _least(lower, norms, ratios))
        return least, np.where(equal, 0.0, _most(upper, norms, ratios))


# The (lower, upper) of each row, and of each column, in shapes that broadcast to a matrix of pairs.
_Ranges = tuple[Bounds, Bounds]


def _ranges(rows: Bounds, columns: Bounds) -> _Ranges:
    return (rows[0][:, None], rows[1][:, None]), (columns[0][None, :], columns[1][None, :])


def _most(upper: Floats, norms: _Ranges, ratios: _Ranges) -> Floats:
    """The largest ‖ρP − σQ‖²: convex in (ρ, σ), so at a corner."""
    (x_low, x_high), (y_low, y_high) = norms
    result = np.zeros_like(upper)
    for rho, sigma in product(*ratios):
        p, q = np.where(rho > sigma, x_high, x_low), np.where(sigma > rho, y_high, y_low)
        result = np.maximum(result, _form(rho, sigma, upper, p, q))
    return result


def _least(lower: Floats, norms: _Ranges, ratios: _Ranges) -> Floats:
    """The smallest ‖ρP − σQ‖² for the smallest ‖P−Q‖² and norms that suit it: on an edge, or on ρ = σ; at least 0."""
    (x, y), (rhos, sigmas) = norms, ratios
    equal = np.maximum(rhos[0], sigmas[0])
    result = np.where(equal <= np.minimum(rhos[1], sigmas[1]), equal**2 * lower, np.inf)
    for (p, q), (edges, others) in (((x, y), (rhos, sigmas)), ((y, x), (sigmas, rhos))):
        result = np.minimum(result, _least_on_edges(lower, p, q, edges, others))
    is_bounded = np.isfinite(x[1]) & np.isfinite(y[1])
    return np.where(is_bounded, np.maximum(result, 0.0), 0.0)


def _least_on_edges(lower: Floats, x: Bounds, y: Bounds, rhos: Bounds, sigmas: Bounds) -> Floats:
    """The smallest of the form where ρ is at an end of its range; infinity where σ has no room there."""
    result = np.full_like(lower, np.inf)
    for rho, (p, q, nearer) in product(rhos, ((x[0], y[1], np.minimum), (x[1], y[0], np.maximum))):
        # ρ is the larger of the two with the first norms, and the smaller with the second.
        sigma = nearer(np.clip(_ratio((p + q - lower) / 2, q) * rho, *sigmas), rho)
        inside = (sigma >= sigmas[0]) & (sigma <= sigmas[1])
        result = np.where(inside, np.minimum(result, _form(rho, sigma, lower, p, q)), result)
    return result


def _form(rho: Floats, sigma: Floats, squared_distance: Floats, p: Floats, q: Floats) -> Floats:
    """‖ρP − σQ‖² = ρσ‖P−Q‖² + (ρ−σ)(ρ‖P‖² − σ‖Q‖²); where ρ = σ, norms do not matter, even infinite ones."""
    with np.errstate(invalid="ignore"):
        rest = (rho - sigma) * (rho * p - sigma * q)
    return rho * sigma * squared_distance + np.where(rho == sigma, 0.0, rest)


def _ratio(half: Floats, square: Floats) -> Floats:
    """half / square; infinite where the square is 0 and the form therefore linear."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(half / square, nan=0.0, posinf=np.inf, neginf=-np.inf)
