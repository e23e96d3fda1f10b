"""The law of the estimated distance of two shapes: variance and skewness for every true distance, and its inversion.

A shape is p = x/T, a row divided by its total. There are two questions. About the *counts*: how far apart are the shapes of the rows
as they are? About the *populations*: how far apart are the shapes of the larger populations, if the people of each row are an
independent random sample of theirs? docs/reference/populations.md has the formulas, by the same numbers, and simulations.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, log_ndtr, ndtr, ndtri

from armslength.estimates.pair_noise import Floats
from armslength.estimates.variance import VarianceCurve

_HALVINGS = 24
_PAIRS_AT_ONCE = 1 << 13
_DOUBLINGS = 60  # of the first guess of an upper end; beyond that there is none
_SKEWNESS = np.concatenate([[0.0], np.geomspace(0.005, 20.0, 300)])
_SHARES = np.linspace(0.0, 1.0, 65) ** 2  # of the totals' Laplace noise in the variance
_SCALED_ITEM = 1 + 1e-9  # one item a person, but the norms of scaled rows are not those of shares
_ALL_PEOPLE = 1e150  # for a question about the counts: nothing is left to chance


@dataclass(frozen=True)
class ShapeRows:
    """Rows divided by their released totals T̂, in data units; one number for each row."""

    values: Floats  # x/T̂ with its noise, n x k
    norm: Floats  # ‖x/T̂‖² without the noise's part
    k2: Floats  # cumulants of the noise of a coordinate
    k4: Floats
    k6: Floats
    total_error: Floats  # Var(noise of T̂)/T̂²
    top: Floats  # at least the largest share of an item
    mix: Floats  # π², the squared norm of what is asked about, the population or the counts; at least 0
    people: Floats  # T̂; less for sums of rows that may share people
    items: Floats  # m: the most items of one person; 0 for a question about the counts
    chance: Floats  # (4) τ⁺: the most that sampling adds to ‖p̂‖²
    extra: Floats  # (5) e: what people with few items, who may prefer the popular ones, add to Σ

    @classmethod
    def of(
        cls,
        values: Floats,
        total: Floats,
        noise: tuple[Floats, Floats, Floats],
        noise_norm: Floats,
        total_error: Floats,
        root: float | None,
    ) -> "ShapeRows":
        """Rows for a question about the counts.

        Args:
            values: The rows as they are, in data units.
            total: Their released totals.
            noise: κ₂, κ₄ and κ₆ of a coordinate.
            noise_norm: What noise adds to each squared norm.
            total_error: The variance of each total's noise.
            root: The square root of the entries in a column of the matrix; None if all are.
        """
        k2, k4, k6 = (each / total**power for each, power in zip(noise, (2, 4, 6), strict=True))
        shapes = values / total[:, None]
        norm = np.einsum("ij,ij->i", shapes, shapes) - noise_norm / total**2
        top = np.sqrt(np.maximum(norm, 0.0))
        if root is not None:
            top = np.minimum(top, root * np.abs(shapes).max(axis=1))
        none = np.zeros(len(total))
        everybody = np.full(len(total), _ALL_PEOPLE)
        error = total_error / total**2
        return cls(shapes, norm, k2, k4, k6, error, top, np.maximum(norm, 0.0), everybody, none, none, none)

    def sampled(self, people: Floats, contribution: Floats) -> "ShapeRows":
        """(3) and (4): the same rows for a question about the populations of which their people are a sample.

        Over all populations of people with at most C items, sampling adds at most this, and it is reached.
        """
        mix = np.clip(self.norm - 1 / people, 0.0, 1.0)
        counted = 1 - mix + (contribution - 1) * mix * (1 - np.sqrt(mix))
        extra = np.maximum(counted - 1, 0.0)
        return replace(self, mix=mix, people=people, items=contribution, chance=counted / people, extra=extra)

    def scaled(self, factor: Floats) -> "ShapeRows":
        """The rows times numbers that are taken as known."""
        squared, size = factor**2, np.abs(factor)
        return ShapeRows(
            values=self.values * factor[:, None],
            norm=self.norm * squared,
            k2=self.k2 * squared,
            k4=self.k4 * squared**2,
            k6=self.k6 * squared**3,
            total_error=np.zeros(len(factor)),
            top=self.top * size,
            mix=self.mix * squared,
            people=self.people / size,
            items=np.where(self.items == 1, _SCALED_ITEM, self.items),
            chance=self.chance * squared,
            extra=self.extra * size,
        )

    def nothing(self) -> "ShapeRows":
        """A row of zeros without noise, from which the distance of a row is its norm."""
        values, zero = np.zeros((1, self.values.shape[1])), np.zeros(1)
        return ShapeRows.of(values, np.ones(1), (zero, zero, zero), zero, zero, None)


@dataclass(frozen=True)
class ShapeLaw:
    """The law of D̂, the estimated squared distance of two shapes, as a function of the true D; for all pairs of two sides."""

    rows: ShapeRows
    columns: ShapeRows
    inner: Floats  # ⟨p̂, q̂⟩
    linear: Floats  # (5) δᵀΣδ for independent items
    coordinates: int
    curve: VarianceCurve  # of the sketch

    @classmethod
    def of(cls, rows: ShapeRows, columns: ShapeRows, curve: VarianceCurve, root: float | None) -> "ShapeLaw":
        """The law of all pairs; `root` is as for `ShapeRows.of`."""
        p, q = rows.values, columns.values
        linear = np.full((len(p), len(q)), np.inf)
        if root is not None:
            x, y = (1 / side.people for side in (rows, columns))
            size_p, size_q = np.abs(p), np.abs(q)
            # Σ (p−q)²|p| and Σ (p−q)²|q|
            left = (size_p**3).sum(axis=1)[:, None] - 2 * (p * size_p) @ q.T + size_p @ (q * q).T
            right = (size_q**3).sum(axis=1)[None, :] - 2 * p @ (q * size_q).T + (p * p) @ size_q.T
            chance = rows.k2[:, None] + columns.k2 + (rows.chance[:, None] + columns.chance) / p.shape[1]
            linear = (left - chance * size_p.sum(axis=1)[:, None]) * x[:, None]
            linear = root * np.maximum(linear + (right - chance * size_q.sum(axis=1)) * y, 0.0)
        return cls(rows, columns, p @ q.T, linear, p.shape[1], curve)

    @property
    def value(self) -> Floats:
        """(2) and (3): D̂, unbiased to second order in the totals' errors, less the most that chance can add."""
        (x, vx, tx), (y, vy, ty) = self._pair("norm", "total_error", "chance")
        value: Floats = x * (1 - 3 * vx) + y * (1 - 3 * vy) - 2 * self.inner * (1 - vx - vy)
        return value - tx * (1 - vx) - ty * (1 - vy)

    @property
    def highest_value(self) -> Floats:
        """The same with nothing taken away: people who are on both sides add less to the distance than others, or nothing."""
        (tx, vx), (ty, vy) = self._pair("chance", "total_error")
        return self.value + tx * (1 - vx) + ty * (1 - vy)

    def moments(self, d: Floats) -> tuple[Floats, Floats, Floats]:
        """(5) to (8): variance, third cumulant, and the variance that the totals have in it, if the squared distance is d."""
        names = ("mix", "total_error", "chance", "people", "items", "top", "extra", "k2", "k4", "k6")
        (
            (x, vx, tx, px, mx, top_x, more_x, k2x, k4x, k6x),
            (y, vy, ty, py, my, top_y, more_y, k2y, k4y, k6y),
        ) = self._pair(*names)
        a, k2, k4, k6 = self.curve.a, k2x + k2y, k4x + k4y, k6x + k6y
        c = np.clip((x + y - d) / 2, 0.0, np.sqrt(x * y))
        # (6) the totals' noise: the slope is 2⟨p, p−q⟩ + τ, with the totals' errors in its estimate, and at most 2π√D + τ
        error = 4 * (x**2 * vx + y**2 * vy)
        slope_x = np.minimum(np.sqrt((x - y + d + tx) ** 2 + error), 2 * np.sqrt(x * d) + tx)
        slope_y = np.minimum(np.sqrt((y - x + d + ty) ** 2 + error), 2 * np.sqrt(y * d) + ty)
        bend_x, bend_y = vx * (3 * x - 2 * c), vy * (3 * y - 2 * c)
        of_totals = vx * slope_x**2 + vy * slope_y**2 + 5 * (bend_x**2 + bend_y**2) + 4 * vx * vy * c**2
        third = (
            15 * (vx * slope_x**2 * bend_x + vy * slope_y**2 * bend_y)
            + 74 * (bend_x**3 + bend_y**3)
            + 60 * c**2 * vx * vy * (bend_x + bend_y)
            + 12 * slope_x * slope_y * c * vx * vy
        )
        # (5) sampling: tr Σ², and at least the largest eigenvalue of Σ
        m = np.maximum(mx, my)
        xx, yy, cc = m * x, m * y, m * c
        is_one = m == 1  # one item a person: Σ = (diag p − ppᵀ)/T, and Σp³ ≥ π⁴
        xx, yy, cc = (np.where(is_one, each * (1 - np.minimum(each, 1.0)), each) for each in (xx, yy, cc))
        squares = (xx + more_x**2) / px**2 + (yy + more_y**2) / py**2 + 2 * (cc + more_x * more_y) / (px * py)
        largest = np.minimum((m * top_x + more_x) / px + (m * top_y + more_y) / py, np.sqrt(squares))
        linear = 4 * m * np.minimum(self.linear, d * (top_x / px + top_y / py))
        # (7) and (8): with the sketch of E‖x/T̂x − y/T̂y‖²
        energy = d + tx + ty + np.maximum(bend_x + bend_y, 0.0)
        variance = of_totals + self.curve.at(energy) + (1 + a) * (linear + 2 * squares)
        third = (
            third
            + self.coordinates * (k6 + 12 * k4 * k2 + 8 * k2**3)
            + ((2 * a**2 * energy + 12 * a * k2) * energy + 12 * k4 + 24 * k2**2) * energy
            + (8 * squares + 6 * linear) * largest
            + (24 * squares + 12 * linear) * (k2 + a / 2 * energy)
        )
        return variance, third, of_totals

    def told_apart_with(self, tail: float, *, noise: float = 1.0, people: float = 1.0) -> NDArray[np.bool_]:
        """Whether estimates like these would be told from 0 with so many times the noise, or so many times the people."""
        ratio = noise / people
        rows, columns = (
            replace(
                side,
                k2=side.k2 * ratio**2,
                k4=side.k4 * ratio**4,
                k6=side.k6 * ratio**6,
                total_error=side.total_error * ratio**2,
                people=side.people * people,
                chance=side.chance / people,
            )
            for side in (self.rows, self.columns)
        )
        curve = replace(self.curve, b=self.curve.b * ratio**2, c=self.curve.c * ratio**4)
        other = replace(self, rows=rows, columns=columns, curve=curve)
        return self.value > other.limits(np.zeros_like(self.inner), tail)[1]

    def noise_share(self) -> Floats:
        """The share of the noise in the variance if the shapes are equal; the rest is chance."""
        equal = np.zeros_like(self.inner)
        variance, _, of_totals = self.moments(equal)
        return (self.curve.at(equal) + of_totals) / variance

    def interval(self, tail: float) -> tuple[Floats, Floats]:
        """(11) Every D that the estimate does not exclude: each end misses with at most this probability.

        The lower end is the smallest D with D̂ ≤ D + q⁺√V(D), the upper end the largest with D̂ ≥ D − q⁻√V(D).
        """
        lower, upper = np.empty_like(self.inner), np.empty_like(self.inner)
        step = max(1, _PAIRS_AT_ONCE // max(1, self.inner.shape[1]))  # that a processor's cache holds
        for start in range(0, len(lower), step):
            rows = slice(start, start + step)
            part = self._part(rows)
            lower[rows] = part.lower_ends(part.value, tail)
            upper[rows] = part.upper_ends(np.maximum(part.highest_value, 0.0), tail)
        return lower, upper

    def _part(self, rows: slice) -> "ShapeLaw":
        """The law of some rows with all columns."""
        b, c = (np.broadcast_to(each, self.inner.shape)[rows] for each in (self.curve.b, self.curve.c))
        part = ShapeRows(**{name: values[rows] for name, values in vars(self.rows).items()})
        curve = replace(self.curve, b=b, c=c)
        return replace(self, rows=part, inner=self.inner[rows], linear=self.linear[rows], curve=curve)

    def limits(self, d: Floats, tail: float) -> tuple[Floats, Floats]:
        """(9) D − q⁻√V and D + q⁺√V."""
        variance, third, of_totals = self.moments(d)
        deviation = np.sqrt(variance)
        scale = np.where(variance > 0, variance, 1.0)  # without noise, all is 0
        below, above = (np.interp(third / scale**1.5, _SKEWNESS, each) for each in _pearson_quantiles(tail))
        heavy = np.interp(of_totals / scale, _SHARES, _normal_laplace_quantiles(tail))
        return d - np.maximum(below, heavy) * deviation, d + np.maximum(above, heavy) * deviation

    def lower_ends(self, value: Floats, tail: float) -> Floats:
        """The smallest D with value ≤ D + q⁺√V(D)."""
        low, high = np.zeros_like(value), np.maximum(value, 0.0)  # at `high` the estimate is not too large
        is_zero = value <= self.limits(low, tail)[1]
        low, _ = bisect(lambda d: value > self.limits(d, tail)[1], low, high, _HALVINGS)
        return np.where(is_zero, 0.0, low)

    def upper_ends(self, value: Floats, tail: float) -> Floats:
        """The largest D with value ≥ D − q⁻√V(D); infinity if there is none."""
        low, high = value, value + np.sqrt(self.moments(value)[0])
        for _ in range(_DOUBLINGS):
            is_open = self.limits(high, tail)[0] <= value
            if not is_open.any():
                break
            low, high = np.where(is_open, high, low), np.where(is_open, 2 * high, high)
        _, high = bisect(lambda d: self.limits(d, tail)[0] <= value, low, high, _HALVINGS)
        return np.where(is_open, np.inf, high)

    def _pair(self, *names: str) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """These numbers of rows and of columns, in shapes that broadcast to the pairs."""
        return (
            tuple(getattr(self.rows, name)[:, None] for name in names),
            tuple(getattr(self.columns, name)[None, :] for name in names),
        )


def bisect(
    is_below: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats, halvings: int
) -> tuple[Floats, Floats]:
    """Both ends of what is left, for each number, of the range from low, which is below, to high."""
    for _ in range(halvings):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high


@lru_cache(maxsize=64)
def _pearson_quantiles(tail: float) -> tuple[Floats, Floats]:
    """How far below and above their mean laws of Pearson's type III reach, by skewness, in standard deviations."""
    normal = np.array([-float(ndtri(tail))])
    shape = 4 / _SKEWNESS[1:] ** 2
    below, above = shape - gammaincinv(shape, tail), gammainccinv(shape, tail) - shape
    return np.concatenate([normal, below / np.sqrt(shape)]), np.concatenate([normal, above / np.sqrt(shape)])


@lru_cache(maxsize=64)
def _normal_laplace_quantiles(tail: float) -> Floats:
    """The same for a normal plus a Laplace noise, by the share of the Laplace noise in the variance."""
    low, high = np.zeros(len(_SHARES)), np.full(len(_SHARES), 60.0)
    return bisect(lambda x: _normal_laplace_tail(_SHARES, x) >= tail, low, high, 60)[1]


def _normal_laplace_tail(share: Floats, x: Floats) -> Floats:
    """P(√(1−share)·N + √share·L > x), where the normal N and the Laplace L have variance 1."""
    s, b = np.sqrt(np.maximum(1 - share, 1e-12)), np.sqrt(np.maximum(share, 1e-6) / 2)
    ratio = s**2 / (2 * b**2)
    right = np.exp(np.minimum(ratio - x / b + log_ndtr(x / s - s / b), 50.0))
    left = np.exp(np.minimum(ratio + x / b + log_ndtr(-x / s - s / b), 50.0))
    tail: Floats = ndtr(-x / s) + (right - left) / 2
    return tail
