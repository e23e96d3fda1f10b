"""Distances of shapes: of rows divided by their totals, whose errors are carried into the interval.

A row x with the released total T̂ is compared as x/T̂ = r·p, where p = x/T is its shape and r = T/T̂ is not known, but lies in
an interval. docs/guides/answers.md has the formula and its proof.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from armslength.checks import number, shown
from armslength.errors import ParameterError
from armslength.estimates.distances import (
    all_squares,
    as_distances,
    checked_pair,
    chosen_squares,
    clear_note,
    squared_norms,
)
from armslength.estimates.estimate import Bounds, Estimate
from armslength.estimates.intervals import Level, ScaledRows, scaled_intervals
from armslength.estimates.pair_noise import PairNoise, row_noises, sharing_pairs
from armslength.estimates.variance import debias
from armslength.sketches.noises import Provenance
from armslength.sketches.sketches import Sketches

# Totals: how large each row is, where the protocol has released that for a share of ε.


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
    return Estimate(
        "totals",
        value,
        (sketches.labels,),
        (sketches.in_clear,),
        False,
        clear_note(sketches),
        partial(_variance, sketches, unit),
        partial(_total_interval, sketches, value, unit),
    )


def _variance(sketches: Sketches, unit: float) -> NDArray[np.float64]:
    """γ²·Σα²κ₂ over the noises of each row."""
    return np.array(
        [
            unit**2
            * sum(coefficient**2 * source.total_law.second_moment for source, coefficient in row.terms)
            for row in sketches.provenance
        ]
    )


def _total_interval(
    sketches: Sketches, value: NDArray[np.float64], unit: float, confidence: float, method: str, pairs: int
) -> Bounds:
    """The totals that noise does not exclude."""
    level = Level.of(confidence, method, pairs)
    reach = unit * np.array([_reach(row, level.tail) for row in sketches.provenance])
    return value - reach, value + reach


def _reach(row: Provenance, tail: float) -> float:
    """What the noise of a row's total exceeds, on either side, with at most the tail's probability, in grid units."""
    each = tail / max(1, len(row.terms))
    return sum(abs(coefficient) * source.total_law.upper_quantile(each) for source, coefficient in row.terms)


NOTE = "shapes: rows divided by their released totals, whose error is part of the interval"
# Of the error: most to the distance, for which it is dear; a twentieth to each row's norm and to each row's total.
_TO_DISTANCE, _TO_NORM, _TO_TOTAL = 0.8, 0.05, 0.05
_UNNOTICED = 1e-6  # of a standard error


def shape_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x/Tx − y/Ty‖ for every row of a against every row of b, or for all pairs within a; Tx is the total Σⱼ xⱼ.

    Guarantee: the interval holds at its level whatever the totals' noise was; the value, at the released totals, is near.
    """
    return as_distances(squared_shape_distances(a, b))


def squared_shape_distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x/Tx − y/Ty‖² for all pairs of rows: estimated at the released totals, with an interval for the true ones."""
    left, right = checked_pair(a, b)
    sides = _Side.of(left), _Side.of(left if b is None else right)
    shared = _SharedPairs.of(*sides)
    value = _values(*sides, shared)
    notes = "; ".join(note for note in (NOTE, clear_note(left, right)) if note)
    return Estimate(
        "squared shape distances",
        value,
        (left.labels, right.labels),
        (left.in_clear, right.in_clear),
        b is None,
        notes,
        None,
        partial(_interval, *sides, shared, value),
    )


@dataclass(frozen=True)
class _Side:
    """Rows with the totals by which they are divided."""

    sketches: Sketches
    total: NDArray[np.float64]  # as released, data units

    @classmethod
    def of(cls, sketches: Sketches) -> "_Side":
        total = totals(sketches).value
        _check_positive(sketches, total)
        return cls(sketches, total)

    @property
    def rows(self) -> ScaledRows:
        """The rows' noises, and by what they are multiplied."""
        return ScaledRows(self.sketches, 1 / self.total)

    def divided(self) -> Sketches:
        """Only the numbers, divided; what noise they have is known here."""
        values = (self.sketches.values + self.sketches.offsets[:, None]) / self.total[:, None]
        none = [Provenance(())] * len(values)
        return Sketches(values, self.sketches.labels, none, self.sketches.protocols)

    def ratios(self, level: float, method: str, pairs: int) -> Bounds:
        """Between which 1/r = T̂/T lies."""
        lower, upper = totals(self.sketches)._interval(level, method, pairs)  # noqa: SLF001  # a part of this estimate
        _check_positive(self.sketches, lower)
        return self.total / upper, self.total / lower

    def norms(self, level: float, method: str, pairs: int) -> Bounds:
        """Between which ‖x/T̂‖² lies."""
        lower, upper = squared_norms(self.sketches)._interval(level, method, pairs)  # noqa: SLF001  # a part of this estimate
        return lower / self.total**2, upper / self.total**2


def _check_positive(sketches: Sketches, least: NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(~(least > 0))
    if len(wrong):
        label = shown(sketches.labels[wrong[0]])
        raise ParameterError(
            f"totals must surely be above 0 to compare shapes, got one of {label} that may not be; "
            "leave it out, lower the level, or compare by size"
        )


@dataclass(frozen=True)
class _SharedPairs:
    """The few pairs that have a noise in common, which is merged in each of them."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    noises: tuple[PairNoise, ...]

    @classmethod
    def of(cls, left: _Side, right: _Side) -> "_SharedPairs":
        a, b = left.sketches, right.sketches
        if a is b and a.released is not None and a.released.are_different:
            rows = columns = np.arange(len(a))
            return cls(rows, columns, (PairNoise((), ()),) * len(a))
        found = sorted(sharing_pairs(a, b))
        noises = tuple(
            PairNoise.of(
                a.provenance[i].times(1 / left.total[i]).plus(b.provenance[j], -1 / right.total[j]).terms
            )
            for i, j in found
        )
        rows, columns = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return cls(rows, columns, noises)


def _values(left: _Side, right: _Side, shared: _SharedPairs) -> NDArray[np.float64]:
    """γ²c²(‖u/T̂x − v/T̂y‖² − bias) for all pairs."""
    protocol = left.sketches.protocols[0]
    unit = protocol.unit_squared
    k2 = [row_noises(side.sketches).each("k2") / side.total**2 for side in (left, right)]
    pair_k2 = k2[0][:, None] + k2[1][None, :]
    # √(2k)·κ₂ is what noise alone makes of the squared norm; input noise, which is summed, makes no less.
    harmless = _UNNOTICED * np.sqrt(2 * protocol.transform.sketch_dim) * float(pair_k2.min(initial=np.inf))
    u = left.divided()
    v = u if right.sketches is left.sketches else right.divided()
    value = unit * (all_squares(u, v, 0.0, 1.0, harmless) - debias(protocol, pair_k2))
    biases = debias(protocol, np.array([noise.cumulants.k2 for noise in shared.noises]))
    if len(shared.rows):
        squares = chosen_squares(u, v, shared.rows, shared.columns)
        value[shared.rows, shared.columns] = unit * (squares - biases)
    return value


def _interval(
    left: _Side,
    right: _Side,
    shared: _SharedPairs,
    value: NDArray[np.float64],
    confidence: float,
    method: str,
    pairs: int,
) -> Bounds:
    """The squared distances of shapes that totals, norms and distances within their intervals allow."""
    error = 1 - number("level", confidence, above=0.0, at_most=1.0)
    same = tuple(zip(shared.rows.tolist(), shared.columns.tolist(), shared.noises, strict=True))
    lower, upper = scaled_intervals(
        left.rows, right.rows, value, same, (1 - _TO_DISTANCE * error, method, pairs)
    )
    norms = [side.norms(1 - _TO_NORM * error, method, pairs) for side in (left, right)]
    ratios = [side.ratios(1 - _TO_TOTAL * error, method, pairs) for side in (left, right)]
    x, y = _Range.along(norms[0], 0), _Range.along(norms[1], 1)
    rho, sigma = _Range.along(ratios[0], 0), _Range.along(ratios[1], 1)
    # x/T̂x = y/T̂y makes the shapes equal, whatever the true totals are.
    equal = upper == 0
    least = np.where(equal, 0.0, _least(lower, (x, y), (rho, sigma)))
    most = np.where(equal, 0.0, _most(upper, (x, y), (rho, sigma)))
    return least, most


@dataclass(frozen=True)
class _Range:
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def along(cls, bounds: Bounds, axis: int) -> "_Range":
        """A range for each row (axis 0) or column (axis 1), to meet a matrix of pairs."""
        index = (slice(None), None) if axis == 0 else (None, slice(None))
        return cls(bounds[0][index], bounds[1][index])


def _most(
    upper: NDArray[np.float64], norms: tuple[_Range, _Range], ratios: tuple[_Range, _Range]
) -> NDArray[np.float64]:
    """The largest ‖ρP − σQ‖²: convex in (ρ, σ), so at a corner."""
    (x, y), (rhos, sigmas) = norms, ratios
    result = np.zeros_like(upper)
    for rho in (rhos.low, rhos.high):
        for sigma in (sigmas.low, sigmas.high):
            p, q = np.where(rho > sigma, x.high, x.low), np.where(sigma > rho, y.high, y.low)
            result = np.maximum(result, _form(rho, sigma, upper, p, q))
    return result


def _least(
    lower: NDArray[np.float64], norms: tuple[_Range, _Range], ratios: tuple[_Range, _Range]
) -> NDArray[np.float64]:
    """The smallest ‖ρP − σQ‖² for the smallest ‖P−Q‖² and norms that suit it, and 0 if that is less than 0.

    On each side of ρ = σ the norms that suit it are fixed, and what is left is a homogeneous quadratic form in (ρ, σ): it has
    no minimum inside of a region without the origin, so the smallest lies on an edge. On the edge ρ = σ it is ρ²·‖P−Q‖².
    """
    (x, y), (rhos, sigmas) = norms, ratios
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
