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
_SHARES = np.linspace(0.0, 1.0, 65) ** 2  # of the scalars' Laplace noise in the variance
COARSE = 0.10  # relative error of a total at the level asked for, above which its law is not used
_DOMINANT = 0.10  # share of the totals in the variance, above which coarse totals matter
_SLACK = 0.25  # standard errors of F̂ that are added to it


@dataclass(frozen=True)
class Spread:
    """How far apart the people of each row are, as their released votes tell it; in votes, one number for each row.

    a = Ax is a person's own part of the sketch of the row, in data units: a vote, split over what they have.
    """

    people: Floats  # T̂
    squares: Floats  # Q̂, of Σ‖a‖²
    products: Floats  # F̂, of ‖Σ aaᵀ‖ (Frobenius), divided by the share of the people it is from; T̂, which is never less, if unknown
    squares_variance: Floats  # of the noise of Q̂
    products_variance: Floats  # of the noise of F̂, divided by the squared share; 0 if unknown
    share: Floats  # of the people that F̂ is from


@dataclass(frozen=True)
class ShapeRows:
    """Rows divided by their released totals T̂, in data units; one number for each row.

    A question about the counts is the same law without chance: what the people of a row tell about others is 0.
    """

    values: Floats  # x/T̂ with its noise, n x k
    norm: Floats  # ‖x/T̂‖² without the noise's part
    k2: Floats  # cumulants of the noise of a coordinate
    k4: Floats
    k6: Floats
    total_error: Floats  # Var(noise of T̂)/T̂²
    mix: Floats  # π², the squared norm of what is asked about, the population or the counts; at least 0
    one_person: Floats  # 1/T̂; for a question about the counts this and all that follows is 0
    chance: Floats  # (3) τ, what sampling adds to ‖p̂‖²; at least 0
    subtracted: Floats  # the same as estimated: it may be below 0
    chance_error: Floats  # the variance that the noise of Q̂ gives it
    sampling: Floats  # (4) at least √tr Σ², for the covariance Σ of p̂ over samples
    top: Floats  # (5) at least the largest share of an item

    @classmethod
    def of(
        cls,
        values: Floats,
        total: Floats,
        noise: tuple[Floats, Floats, Floats],
        noise_norm: Floats,
        total_variance: Floats,
    ) -> "ShapeRows":
        """Rows for a question about the counts.

        Args:
            values: The rows as they are, in data units.
            total: Their released totals.
            noise: κ₂, κ₄ and κ₆ of a coordinate.
            noise_norm: What noise adds to each squared norm.
            total_variance: The variance of each total's noise.
        """
        k2, k4, k6 = (each / total**power for each, power in zip(noise, (2, 4, 6), strict=True))
        shapes = values / total[:, None]
        norm = np.einsum("ij,ij->i", shapes, shapes) - noise_norm / total**2
        none = np.zeros(len(total))
        error = total_variance / total**2
        return cls(shapes, norm, k2, k4, k6, error, np.maximum(norm, 0.0), none, none, none, none, none, none)

    def sampled(self, spread: Spread, root: float | None) -> "ShapeRows":
        """(3) to (5): the same rows for a question about the populations of which their people are a sample.

        Args:
            spread: Of the same rows.
            root: The square root of the entries in a column of the matrix; None if all are.
        """
        people, own = spread.people, spread.squares / spread.people
        unclipped = (self.norm - own / people) / np.maximum(1 - 1 / people, 0.5)
        mix = np.clip(unclipped, 0.0, 1.0)
        apart = np.maximum(own - mix, 0.0)  # tr Σ of one person
        # (4) F̂⁺: chance decides how many people F̂ is from
        share = spread.share
        error = spread.products_variance + spread.products**2 * (1 - share) / (share * people)
        products = spread.products + _SLACK * np.sqrt(error)
        themselves = np.maximum(spread.squares - np.sqrt(spread.squares_variance), 0.0) ** 2 / people / share
        by_products = np.maximum(products**2 - themselves, 0.0) / people**2 - mix**2
        by_mix = mix * (1 - mix) + apart**2 / self.values.shape[1]
        least = by_mix / (4 * np.maximum(people, 1.0))
        squares = np.minimum(np.maximum(by_products, least), by_mix)
        squares = np.minimum(squares, np.maximum(apart, 0.05 * np.maximum(own, mix)) ** 2)
        top = np.sqrt(mix)
        if root is not None:
            top = np.minimum(top, root * np.abs(self.values).max(axis=1))
        return replace(
            self,
            mix=mix,
            one_person=1 / people,
            chance=apart / people,
            subtracted=(own - unclipped) / people,
            chance_error=spread.squares_variance / people**4,
            sampling=np.sqrt(squares) / people,
            top=top,
        )

    def span(self, rows: slice) -> "ShapeRows":
        """Some rows."""
        return ShapeRows(**{name: numbers[rows] for name, numbers in vars(self).items()})

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
            mix=self.mix * squared,
            one_person=self.one_person * size,
            chance=self.chance * squared,
            subtracted=self.subtracted * squared,
            chance_error=self.chance_error * squared**2,
            sampling=self.sampling * squared,
            top=self.top * size,
        )


@dataclass(frozen=True)
class ShapeLaw:
    """The law of D̂, the estimated squared distance of two shapes, as a function of the true D.

    For all pairs of two sides; or, if it is paired, for each row and the column of the same number: n x 1.
    """

    rows: ShapeRows
    columns: ShapeRows
    inner: Floats  # ⟨p̂, q̂⟩
    linear: Floats  # (5) ℓ̂, an estimate of what is at least δᵀΣδ; infinity if there is none
    coordinates: int
    curve: VarianceCurve  # of the sketch
    is_paired: bool = False

    @classmethod
    def of(
        cls,
        rows: ShapeRows,
        columns: ShapeRows,
        curve: VarianceCurve,
        root: float | None,
        *,
        is_paired: bool = False,
    ) -> "ShapeLaw":
        """The law of all pairs, or of each row with its column; `root` is as for `ShapeRows.sampled`."""
        p, q = rows.values, columns.values

        def product(left: Floats, right: Floats) -> Floats:
            return np.einsum("ij,ij->i", left, right)[:, None] if is_paired else left @ right.T

        inner = product(p, q)
        linear = np.full(inner.shape, np.inf)
        if root is not None and (rows.one_person.any() or columns.one_person.any()):
            size_p, size_q = np.abs(p), np.abs(q)
            left, right = {"size": size_p.sum(axis=1)}, {"size": size_q.sum(axis=1)}
            for side, each, size in ((left, rows, size_p), (right, columns, size_q)):
                side |= {"cube": (size**3).sum(axis=1), "error": each.k2 + each.chance / p.shape[1]}
                side["person"] = each.one_person
            x, y = (
                {name: as_axis(numbers, axis, is_paired=is_paired) for name, numbers in side.items()}
                for axis, side in enumerate((left, right))
            )
            error = x["error"] + y["error"]
            # Σ (p−q)²|p| and Σ (p−q)²|q|
            by_p = x["cube"] - 2 * product(p * size_p, q) + product(size_p, q * q) - error * x["size"]
            by_q = y["cube"] - 2 * product(p, q * size_q) + product(p * p, size_q) - error * y["size"]
            linear = root * np.maximum(by_p * x["person"] + by_q * y["person"], 0.0)
        return cls(rows, columns, inner, linear, p.shape[1], curve, is_paired)

    @property
    def value(self) -> Floats:
        """(2) and (3): D̂, unbiased to second order in the totals' errors, less the part of chance."""
        (vx, tx), (vy, ty) = self._pair("total_error", "subtracted")
        return self.highest_value - tx * (1 - 3 * vx) - ty * (1 - 3 * vy)

    @property
    def highest_value(self) -> Floats:
        """The same with nothing taken away: people who are on both sides add less to the distance than others, or nothing."""
        (x, vx), (y, vy) = self._pair("norm", "total_error")
        value: Floats = x * (1 - 3 * vx) + y * (1 - 3 * vy) - 2 * self.inner * (1 - vx - vy)
        return value

    def moments(self, d: Floats) -> tuple[Floats, Floats, Floats]:
        """(6) to (8): variance, third cumulant, and the variance that the scalars have in it, if the squared distance is d."""
        names = (
            "mix",
            "total_error",
            "chance",
            "chance_error",
            "one_person",
            "sampling",
            "top",
            "k2",
            "k4",
            "k6",
        )
        (
            (x, vx, tx, qx, px, rx, top_x, k2x, k4x, k6x),
            (y, vy, ty, qy, py, ry, top_y, k2y, k4y, k6y),
        ) = self._pair(*names)
        a, k2, k4, k6 = self.curve.a, k2x + k2y, k4x + k4y, k6x + k6y
        root = np.sqrt(x * y)
        c = np.clip((x + y - d) / 2, 0.0, root)
        # (6) the totals' noise: the slope is 2⟨p, p−q⟩ + τ, with the totals' errors in its estimate, and at most 2π√D + τ
        error = 4 * (x**2 * vx + y**2 * vy)
        slope_x = np.minimum(np.sqrt((x - y + d + tx) ** 2 + error), 2 * np.sqrt(x * d) + tx)
        slope_y = np.minimum(np.sqrt((y - x + d + ty) ** 2 + error), 2 * np.sqrt(y * d) + ty)
        # A total that is far off makes its own π too small.
        bend_x, bend_y = vx * np.maximum(3 * x - 2 * c, root), vy * np.maximum(3 * y - 2 * c, root)
        of_scalars = (
            vx * slope_x**2 + vy * slope_y**2 + 5 * (bend_x**2 + bend_y**2) + 4 * vx * vy * c**2 + qx + qy
        )
        third = (
            15 * (vx * slope_x**2 * bend_x + vy * slope_y**2 * bend_y)
            + 74 * (bend_x**3 + bend_y**3)
            + 60 * c**2 * vx * vy * (bend_x + bend_y)
            + 12 * slope_x * slope_y * c * vx * vy
        )
        # (5) sampling: at least √tr Σ², which is at least the largest eigenvalue of Σ
        r = rx + ry
        linear = 4 * np.minimum(d * r, np.minimum(self.linear, d * (top_x * px + top_y * py)))
        # (7) and (8): given the matrix, τ and Σ are known, so that its error is of D alone
        energy = d + tx + ty + bend_x + bend_y
        variance = of_scalars + a * d**2 + self.curve.b * energy + self.curve.c + (1 + a) * linear + 2 * r**2
        third = (
            third
            + self.coordinates * (k6 + 12 * k4 * k2 + 8 * k2**3)
            + (12 * k4 + 24 * k2**2) * energy
            + (2 * a**2 * d + 12 * a * k2) * d**2
            + (8 * r**2 + 6 * linear) * r
            + (24 * r**2 + 12 * linear) * (k2 + a / 2 * d)
        )
        return variance, third, of_scalars

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
                one_person=side.one_person / people,
                chance=side.chance / people,
                chance_error=side.chance_error * noise**2 / people**4,
                sampling=side.sampling / people,
            )
            for side in (self.rows, self.columns)
        )
        curve = replace(self.curve, b=self.curve.b * ratio**2, c=self.curve.c * ratio**4)
        other = replace(self, rows=rows, columns=columns, curve=curve)
        return self.value > other.limits(np.zeros_like(self.inner), tail)[1]

    def noise_share(self) -> Floats:
        """The share of the noise in the variance if the shapes are equal; the rest is chance."""
        equal = np.zeros_like(self.inner)
        variance, _, of_scalars = self.moments(equal)
        return (self.curve.at(equal) + of_scalars) / variance

    def is_coarse(self, d: Floats, tail: float) -> NDArray[np.bool_]:
        """(11) Whether a total is too coarse for this law, and matters, if the squared distance is d."""
        (vx, qx), (vy, qy) = self._pair("total_error", "chance_error")
        variance, _, of_scalars = self.moments(np.where(np.isfinite(d), d, 0.0))
        matters = of_scalars - qx - qy > _DOMINANT * variance
        is_coarse: NDArray[np.bool_] = matters & (
            np.sqrt(np.maximum(vx, vy) / 2) * -np.log(2 * tail) > COARSE
        )
        return is_coarse

    def known_from(self, lower: Floats, tail: float) -> Floats:
        """(11) These lower ends; each at which a total is too coarse is moved down to a D at which none is, or to 0.

        D̂ grows with D, so what excludes a distance excludes all that are smaller: whether shapes differ may be known where the distance is not.
        """
        is_coarse = self.is_coarse(lower, tail)
        if not is_coarse.any():
            return lower
        none = np.zeros_like(lower)
        fine, _ = bisect(lambda d: ~self.is_coarse(d, tail), none, lower, _HALVINGS)
        return np.where(is_coarse, np.where(self.is_coarse(none, tail), 0.0, fine), lower)

    def interval(self, tail: float, *, share_nobody: bool = False) -> tuple[Floats, Floats]:
        """(11) Every D that the estimate does not exclude: each end misses with at most this probability.

        The lower end is the smallest D with D̂ ≤ D + q⁺√V(D), the upper end the largest with D̂ ≥ D − q⁻√V(D).

        Args:
            tail: The probability.
            share_nobody: Whether surely nobody is on both sides, so that upper ends subtract chance, too.
        """
        lower, upper = np.empty_like(self.inner), np.empty_like(self.inner)
        step = max(1, _PAIRS_AT_ONCE // max(1, self.inner.shape[1]))  # that a processor's cache holds
        for start in range(0, len(lower), step):
            rows = slice(start, start + step)
            part = self._part(rows)
            lower[rows] = part.lower_ends(part.value, tail)
            highest = part.value if share_nobody else part.highest_value
            upper[rows] = part.upper_ends(np.maximum(highest, 0.0), tail)
        return lower, upper

    def _part(self, rows: slice) -> "ShapeLaw":
        """The law of some rows with all columns."""
        b, c = (np.broadcast_to(each, self.inner.shape)[rows] for each in (self.curve.b, self.curve.c))
        curve = replace(self.curve, b=b, c=c)
        columns = self.columns.span(rows) if self.is_paired else self.columns
        return replace(
            self,
            rows=self.rows.span(rows),
            columns=columns,
            inner=self.inner[rows],
            linear=self.linear[rows],
            curve=curve,
        )

    def limits(self, d: Floats, tail: float) -> tuple[Floats, Floats]:
        """(9) D − q⁻√V and D + q⁺√V."""
        variance, third, of_scalars = self.moments(d)
        deviation = np.sqrt(variance)
        scale = np.where(variance > 0, variance, 1.0)  # without noise, all is 0
        below, above = (np.interp(third / scale**1.5, _SKEWNESS, each) for each in _pearson_quantiles(tail))
        heavy = np.interp(of_scalars / scale, _SHARES, _normal_laplace_quantiles(tail))
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
        rows, columns = (
            tuple(as_axis(getattr(side, name), axis, is_paired=self.is_paired) for name in names)
            for axis, side in enumerate((self.rows, self.columns))
        )
        return rows, columns


def as_axis(numbers: Floats, axis: int, *, is_paired: bool) -> Floats:
    """One number for each row (axis 0) or column (axis 1), in a shape that broadcasts to the pairs."""
    return numbers[:, None] if is_paired or axis == 0 else numbers[None, :]


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
