"""Totals, and distances of shapes: of rows divided by their totals, whose errors are carried into the interval.

A row x with the released total T̂ is compared as x/T̂ = r·p, where p = x/T is its shape and r = T/T̂ is not known, but lies in
an interval. docs/guides/answers.md has the formula and its proof.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.checks import shown
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
from armslength.estimates.pair_noise import scaled_pair_noises
from armslength.estimates.variance import ErrorModel
from armslength.laws import DiscreteLaplace
from armslength.sketches.sketches import Sketches

NOTE = "shapes: rows divided by their released totals, whose error is part of the interval"
# Of the error: most to the distance, for which it is dear; a twentieth to each row's norm and to each row's total.
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

    Guarantee: the interval of a row as it was released comes from the exact law of its noise; that of a combination of
    several rows from their laws together (a union bound). Both methods give it.
    """
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    if sketches.totals is None:
        raise ParameterError(
            "sketches must have been released with totals, got some without; plan a protocol with total_share"
        )
    unit = float(sketches.protocols[0].resolution)
    value = sketches.totals.astype(np.float64) * unit
    noises = tuple(
        tuple((source.total_law, abs(coefficient)) for source, coefficient in row.terms)
        for row in sketches.provenance
    )
    return pair_estimate("totals", value, (sketches,), Total(value, noises, unit))


@dataclass(frozen=True)
class Total:
    """The rule of totals.

    Attributes:
        value: The totals, in data units.
        noises: For each row the laws of its noises, with their coefficients.
        unit: Data units in a grid unit.
    """

    value: NDArray[np.float64]
    noises: tuple[tuple[tuple[DiscreteLaplace, float], ...], ...]
    unit: float

    @property
    def variance(self) -> NDArray[np.float64]:
        """γ²·Σα²κ₂ over the noises of each row."""
        return self.unit**2 * np.array(
            [sum(coefficient**2 * law.second_moment for law, coefficient in row) for row in self.noises]
        )

    def interval(self, level: Level) -> Bounds:
        """The totals that noise does not exclude."""
        reaches = {row: _reach(row, level.tail) for row in set(self.noises)}
        reach = self.unit * np.array([reaches[row] for row in self.noises])
        return self.value - reach, self.value + reach


def _reach(noises: tuple[tuple[DiscreteLaplace, float], ...], tail: float) -> float:
    """What the noise of a row's total exceeds, on either side, with at most the tail's probability, in grid units."""
    each = tail / max(1, len(noises))
    return sum(coefficient * law.upper_quantile(each) for law, coefficient in noises)


@dataclass(frozen=True)
class _Side:
    """What is known of the rows of one side.

    Attributes:
        labels: Their names.
        total: As released, by which they are divided; in data units.
        totals: The rule of their totals.
        norms: The rule of their squared norms.
    """

    labels: tuple[str, ...]
    total: NDArray[np.float64]
    totals: Rule
    norms: Rule

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
        """Between which 1/r = T̂/T lies."""
        lower, upper = self.totals.interval(level)
        self.check_positive(lower)
        return self.total / upper, self.total / lower

    def squared_norms(self, level: Level) -> Bounds:
        """Between which ‖x/T̂‖² lies."""
        lower, upper = self.norms.interval(level)
        return lower / self.total**2, upper / self.total**2

    def check_positive(self, least: NDArray[np.float64]) -> None:
        """Refuses a total that may be 0."""
        wrong = np.flatnonzero(~(least > 0))
        if len(wrong):
            raise ParameterError(
                f"totals must surely be above 0 to compare shapes, got one of {shown(self.labels[wrong[0]])} that may not be; "
                "leave it out, lower the level, or compare by size"
            )


@dataclass(frozen=True)
class Shape:
    """The rule of squared distances of shapes: all that totals, norms and distances within their intervals allow.

    Attributes:
        divided: The rule of the squared distances of rows divided by their released totals.
        left: The rows.
        right: The columns.
    """

    divided: Rule
    left: _Side
    right: _Side
    variance: None = None

    def interval(self, level: Level) -> Bounds:
        """(lower, upper) over all true totals and norms."""
        lower, upper = self.divided.interval(level.share(_TO_DISTANCE))
        norms = _Ranges.of(*(side.squared_norms(level.share(_TO_NORM)) for side in (self.left, self.right)))
        ratios = _Ranges.of(*(side.total_ratios(level.share(_TO_TOTAL)) for side in (self.left, self.right)))
        # x/T̂x = y/T̂y makes the shapes equal, whatever the true totals are.
        equal = upper == 0
        least = np.where(equal, 0.0, _least(lower, norms, ratios))
        return least, np.where(equal, 0.0, _most(upper, norms, ratios))


@dataclass(frozen=True)
class _Range:
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class _Ranges:
    """Between which a quantity of each row and one of each column lies, in shapes that meet a matrix of pairs."""

    rows: _Range
    columns: _Range

    @classmethod
    def of(cls, rows: Bounds, columns: Bounds) -> "_Ranges":
        return cls(_Range(*(end[:, None] for end in rows)), _Range(*(end[None, :] for end in columns)))


def _most(upper: NDArray[np.float64], norms: _Ranges, ratios: _Ranges) -> NDArray[np.float64]:
    """The largest ‖ρP − σQ‖²: convex in (ρ, σ), so at a corner."""
    x, y, rhos, sigmas = norms.rows, norms.columns, ratios.rows, ratios.columns
    result = np.zeros_like(upper)
    for rho in (rhos.low, rhos.high):
        for sigma in (sigmas.low, sigmas.high):
            p, q = np.where(rho > sigma, x.high, x.low), np.where(sigma > rho, y.high, y.low)
            result = np.maximum(result, _form(rho, sigma, upper, p, q))
    return result


def _least(lower: NDArray[np.float64], norms: _Ranges, ratios: _Ranges) -> NDArray[np.float64]:
    """The smallest ‖ρP − σQ‖² for the smallest ‖P−Q‖² and norms that suit it, and 0 if that is less than 0.

    On each side of ρ = σ the norms that suit it are fixed, and what is left is a homogeneous quadratic form in (ρ, σ): it has
    no minimum inside of a region without the origin, so the smallest lies on an edge. On the edge ρ = σ it is ρ²·‖P−Q‖².
    """
    x, y, rhos, sigmas = norms.rows, norms.columns, ratios.rows, ratios.columns
    together = np.maximum(rhos.low, sigmas.low)
    meets = together <= np.minimum(rhos.high, sigmas.high)
    result = np.where(meets, together**2 * lower, np.inf)
    for p, q, rho_is_larger in ((x.low, y.high, True), (x.high, y.low, False)):
        half = (p + q - lower) / 2
        for rho in (rhos.low, rhos.high):
            sigma = np.clip(_ratio(half, q) * rho, sigmas.low, sigmas.high)
            sigma = np.minimum(sigma, rho) if rho_is_larger else np.maximum(sigma, rho)
            inside = (sigma >= sigmas.low) & (sigma <= sigmas.high)
            result = np.where(inside, np.minimum(result, _form(rho, sigma, lower, p, q)), result)
        for sigma in (sigmas.low, sigmas.high):
            rho = np.clip(_ratio(half, p) * sigma, rhos.low, rhos.high)
            rho = np.maximum(rho, sigma) if rho_is_larger else np.minimum(rho, sigma)
            inside = (rho >= rhos.low) & (rho <= rhos.high)
            result = np.where(inside, np.minimum(result, _form(rho, sigma, lower, p, q)), result)
    known = np.isfinite(x.high) & np.isfinite(y.high)
    return np.where(known, np.maximum(result, 0.0), 0.0)


def _form(
    rho: NDArray[np.float64],
    sigma: NDArray[np.float64],
    squared_distance: NDArray[np.float64],
    p: NDArray[np.float64],
    q: NDArray[np.float64],
) -> NDArray[np.float64]:
    """‖ρP − σQ‖² = ρσ‖P−Q‖² + (ρ−σ)(ρ‖P‖² − σ‖Q‖²); where ρ = σ, the norms do not matter, even infinite ones."""
    with np.errstate(invalid="ignore"):
        rest = (rho - sigma) * (rho * p - sigma * q)
    return rho * sigma * squared_distance + np.where(rho == sigma, 0.0, rest)


def _ratio(half: NDArray[np.float64], square: NDArray[np.float64]) -> NDArray[np.float64]:
    """half / square; infinite where the square is 0 and the form therefore linear."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(half / square, nan=0.0, posinf=np.inf, neginf=-np.inf)
