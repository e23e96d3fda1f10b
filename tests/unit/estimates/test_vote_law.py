"""The law of votes against its formulas, written down a second time, on random numbers.

They are those of the research code that was simulated before the law was built. Where the law differs on purpose, a test says so: F from a
sample of the people, and a mix that is longer than a vote.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, pearson3

from armslength.estimates.shape_law import COARSE, ShapeLaw, ShapeRows, Spread
from armslength.estimates.totals import DOUBTFUL, TotalNoise
from armslength.estimates.variance import VarianceCurve
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE, scalar_laws

PAIRS, K = 60, 12
_NORMAL = np.linspace(-10, 10, 40_001)


@dataclass
class Side:
    """One party of each pair, by the research code's names."""

    u: np.ndarray
    T: np.ndarray
    Q: np.ndarray
    F: np.ndarray
    k2: np.ndarray
    k4: np.ndarray
    k6: np.ndarray
    b: np.ndarray  # scale of the scalars' noise

    def __post_init__(self):
        n = self.T
        self.v = 10 * self.b**2 / n**2
        self.raw = (self.u**2).sum(axis=1) - K * self.k2
        q = self.Q / n
        exact = (self.raw - q / n) / (1 - 1 / n)
        self.mix = np.clip(exact, 0, 1)
        self.tau = np.maximum(q - self.mix, 0) / n
        self.tau_raw = (q - exact) / n
        crude = self.mix * (1 - self.mix) + np.maximum(q - self.mix, 0) ** 2 / K
        own = np.maximum(self.Q - np.sqrt(8) * self.b, 0) ** 2 / n
        from_F = np.maximum((self.F + np.sqrt(8) * self.b / 4) ** 2 - own, 0) / n**2 - self.mix**2
        trace = np.minimum(np.maximum(from_F, crude / 4 / n), crude)
        trace = np.minimum(trace, np.maximum(np.maximum(q - self.mix, 0), 0.05 * q) ** 2)
        self.root = np.sqrt(trace) / n
        self.top = np.minimum(np.sqrt(self.mix), np.abs(self.u).max(axis=1))
        self.var_chance = 8 * self.b**2 / n**4


def moments(x, y, d, a):
    """Variance, third cumulant and the part of the scalars, at the squared distance d."""
    X, Y, vx, vy = x.mix, y.mix, x.v, y.v
    c = np.clip((X + Y - d) / 2, 0, np.sqrt(X * Y))
    error = 4 * (X**2 * vx + Y**2 * vy)
    gx = np.minimum(np.sqrt((X - Y + d + x.tau) ** 2 + error), 2 * np.sqrt(X * d) + x.tau)
    gy = np.minimum(np.sqrt((Y - X + d + y.tau) ** 2 + error), 2 * np.sqrt(Y * d) + y.tau)
    bx, by = (v * np.maximum(3 * one - 2 * c, np.sqrt(X * Y)) for v, one in ((vx, X), (vy, Y)))
    totals = vx * gx**2 + vy * gy**2 + 5 * (bx**2 + by**2) + 4 * vx * vy * c**2 + x.var_chance + y.var_chance
    third = 15 * (vx * gx**2 * bx + vy * gy**2 * by) + 74 * (bx**3 + by**3)
    third += 60 * c**2 * vx * vy * (bx + by) + 12 * gx * gy * c * vx * vy
    k2, k4, k6 = x.k2 + y.k2, x.k4 + y.k4, x.k6 + y.k6
    squares = (x.u - y.u) ** 2 - k2[:, None] - ((x.tau + y.tau) / K)[:, None]
    bins = np.abs(x.u) / x.T[:, None] + np.abs(y.u) / y.T[:, None]
    spread = np.maximum((squares * bins).sum(axis=1), 0)
    root = x.root + y.root
    linear = 4 * np.minimum(np.minimum(d * root, spread), d * (x.top / x.T + y.top / y.T))
    energy = d + x.tau + y.tau + bx + by
    variance = totals + a * d**2 + 4 * k2 * energy + K * (k4 + 2 * k2**2) + (1 + a) * linear + 2 * root**2
    third += K * (k6 + 12 * k4 * k2 + 8 * k2**3) + (12 * k4 + 24 * k2**2) * energy
    third += 2 * a**2 * d**3 + 12 * a * k2 * d**2
    third += (8 * root**2 + 6 * linear) * root + (24 * root**2 + 12 * linear) * (k2 + a / 2 * d)
    return variance, third, totals


def value(x, y):
    inner = (x.u * y.u).sum(axis=1)
    of_x, of_y = ((each.raw - each.tau_raw) * (1 - 3 * each.v) for each in (x, y))
    return of_x + of_y - 2 * inner * (1 - x.v - y.v)


def random_sides(seed, *, longer=False):
    """Parties of all kinds: few and many people, hardly any noise and much, vote and mix of any length."""
    rng = np.random.default_rng(seed)
    sides = []
    mixes = rng.dirichlet(np.full(K, 0.3), (2, PAIRS))
    mixes[1] += (1 - rng.random(PAIRS) ** 2)[:, None] * (mixes[0] - mixes[1])
    mixes *= rng.choice([-1, 1], K)
    for mix in mixes:
        T = 10 ** rng.uniform(0.6, 5, PAIRS)
        scale = 10 ** rng.uniform(-5, -2, PAIRS)
        k2 = 2 * scale**2
        u = mix + rng.laplace(size=(PAIRS, K)) * scale[:, None]
        own = (u**2).sum(axis=1) * (1 + (rng.random(PAIRS) - longer / 2) * 0.9)
        F = T * np.sqrt(own * rng.random(PAIRS))
        b = T * 10 ** rng.uniform(-4, -1, PAIRS)
        sides.append(Side(u, T, np.maximum(own, 1e-3) * T, F, k2, 12 * scale**4, 240 * scale**6, b))
    return sides


def rows_of(side, share=None):
    """The library's, with F from a share of the people."""
    noise = tuple(k * side.T**power for k, power in ((side.k2, 2), (side.k4, 4), (side.k6, 6)))
    rows = ShapeRows.of(side.u * side.T[:, None], side.T, noise, K * noise[0], 10 * side.b**2)
    share = np.ones(PAIRS) if share is None else share
    return rows.sampled(Spread(side.T, side.Q, side.F, 8 * side.b**2, 8 * side.b**2, share), 1.0)


def law_of(x, y, a):
    rows, columns = rows_of(x), rows_of(y)
    k2, k4 = x.k2 + y.k2, x.k4 + y.k4
    curve = VarianceCurve(a, 4 * k2[:, None], (K * (k4 + 2 * k2**2))[:, None])
    return ShapeLaw.of(rows, columns, curve, 1.0, is_paired=True)


@pytest.mark.parametrize("a", [2 / K, 0.0])
@pytest.mark.parametrize("seed", range(4))
def test_value_and_moments(seed, a):
    x, y = random_sides(seed)
    law = law_of(x, y, a)
    np.testing.assert_allclose(law.value[:, 0], value(x, y), rtol=1e-9, atol=1e-12)
    for d in (0.0, 1e-4, 0.02, 1.5):
        ours = law.moments(np.full((PAIRS, 1), d))
        for mine, theirs in zip(ours, moments(x, y, np.full(PAIRS, d), a), strict=True):
            np.testing.assert_allclose(mine[:, 0], theirs, rtol=1e-7)


def quantiles(skewness, share, tail):
    """How far below and above the mean, in deviations: the larger of Pearson III's and those of a normal plus a Laplace variable."""

    def beyond(z):
        gap = (z - np.sqrt(1 - share) * _NORMAL) / np.sqrt(share / 2)
        laplace = np.where(gap > 0, np.exp(-np.abs(gap)) / 2, 1 - np.exp(-np.abs(gap)) / 2)
        return np.trapezoid(norm.pdf(_NORMAL) * laplace, _NORMAL)

    heavy = -norm.ppf(tail) if share < 1e-9 else brentq(lambda z: beyond(z) - tail, 0, 40)
    ends = -pearson3.ppf(tail, skewness), pearson3.isf(tail, skewness)
    return tuple(max(float(end), heavy) for end in ends)


@pytest.mark.parametrize("tail", [0.05, 0.05 / 276])
def test_limits(tail):
    x, y = random_sides(9)
    for d in (0.0, 0.05):
        below, above = law_of(x, y, 2 / K).limits(np.full((PAIRS, 1), d), tail)
        variance, third, totals = moments(x, y, np.full(PAIRS, d), 2 / K)
        for pair in range(0, PAIRS, 6):
            deviation = np.sqrt(variance[pair])
            ends = quantiles(third[pair] / deviation**3, min(totals[pair] / variance[pair], 0.9999), tail)
            assert (d - below[pair, 0]) / deviation == pytest.approx(ends[0], rel=2e-3)
            assert (above[pair, 0] - d) / deviation == pytest.approx(ends[1], rel=2e-3)


def test_an_interval_is_what_the_limits_do_not_exclude():
    x, y = random_sides(10)
    law, tail = law_of(x, y, 2 / K), 0.025
    lower, upper = law.interval(tail)
    found = lower > 0
    assert 10 < np.count_nonzero(found) < PAIRS
    np.testing.assert_allclose(law.limits(lower, tail)[1][found], law.value[found], rtol=1e-3)
    assert (law.value <= law.limits(np.zeros((PAIRS, 1)), tail)[1])[~found].all()
    is_closed = np.isfinite(upper)
    assert is_closed.any()
    highest = np.maximum(law.highest_value, 0)
    np.testing.assert_allclose(
        law.limits(upper, tail)[0][is_closed], highest[is_closed], rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("tail", [0.05, 0.05 / 276])
def test_coarse_totals_that_matter_are_silent(tail):
    x, y = random_sides(11)
    variance, _, totals = moments(x, y, np.zeros(PAIRS), 2 / K)
    matters = (totals - x.var_chance - y.var_chance) / variance > 0.1
    relative = np.sqrt(5) * np.maximum(x.b / x.T, y.b / y.T)  # a Laplace noise of the same variance
    expected = matters & (relative * -np.log(2 * tail) > 0.1)
    assert 0.1 < expected.mean() < 0.9
    assert COARSE == 0.1
    assert (law_of(x, y, 2 / K).is_coarse(np.zeros((PAIRS, 1)), tail)[:, 0] == expected).all()


@pytest.mark.parametrize("epsilon", [1, 10])
def test_a_number_of_people_that_may_be_0_is_found_by_its_exact_law(epsilon):
    # T − Q and Q have a Laplace noise each; the research code took one of the same variance, whose quantile is a little larger
    laws = scalar_laws(Fraction(epsilon, 10), "add_remove")
    assert all(isinstance(law, DiscreteLaplace) for law in laws)
    exact = TotalNoise(laws, 1 / VOTE).upper_quantile(DOUBTFUL)
    b = 10 / epsilon
    rough = np.sqrt(5) * b * -np.log(2 * DOUBTFUL)
    assert 0.85 * rough < exact < rough


def test_f_of_a_sample_is_less_sure():
    x, _ = random_sides(12)
    share = np.full(PAIRS, 0.25)
    error = 8 * x.b**2 + x.F**2 * 0.75 / (0.25 * x.T)
    own = np.maximum(x.Q - np.sqrt(8) * x.b, 0) ** 2 / x.T / 0.25
    squares = np.maximum((x.F + np.sqrt(error) / 4) ** 2 - own, 0) / x.T**2 - x.mix**2
    free = (rows_of(x, share).sampling * x.T) ** 2
    q = x.Q / x.T
    crude = x.mix * (1 - x.mix) + np.maximum(q - x.mix, 0) ** 2 / K
    bounds = np.minimum(crude, np.maximum(np.maximum(q - x.mix, 0), 0.05 * np.maximum(q, x.mix)) ** 2)
    np.testing.assert_allclose(free, np.minimum(np.maximum(squares, crude / 4 / x.T), bounds), rtol=1e-9)
    assert (free != (rows_of(x).sampling * x.T) ** 2).any()


def test_votes_shorter_than_the_mix_do_not_make_chance_vanish():
    # as the noise of Q can make them: then the law takes a part of the mix, and not of Q
    x, _ = random_sides(13, longer=True)
    ours = (rows_of(x).sampling * x.T) ** 2
    theirs = (x.root * x.T) ** 2
    is_short = x.mix > x.Q / x.T
    assert 5 < np.count_nonzero(is_short) < PAIRS
    assert (ours >= theirs * (1 - 1e-9)).all()
    assert (ours[is_short] > theirs[is_short]).any()
    np.testing.assert_allclose(ours[~is_short], theirs[~is_short], rtol=1e-9)


def test_without_chance_the_law_is_that_of_the_counts():
    x, y = random_sides(14)
    none = {name: np.zeros(PAIRS) for name in ("tau", "tau_raw", "root", "var_chance")}
    sides = []
    for side in (x, y):
        plain = replace(side)
        for name, numbers in none.items():
            setattr(plain, name, numbers)
        plain.mix, plain.top = np.maximum(side.raw, 0), np.zeros(PAIRS)
        sides.append(plain)
    noise = [tuple(k * s.T**p for k, p in ((s.k2, 2), (s.k4, 4), (s.k6, 6))) for s in (x, y)]
    rows = [
        ShapeRows.of(s.u * s.T[:, None], s.T, each, K * each[0], 10 * s.b**2)
        for s, each in zip((x, y), noise, strict=True)
    ]
    k2, k4 = x.k2 + y.k2, x.k4 + y.k4
    curve = VarianceCurve(2 / K, 4 * k2[:, None], (K * (k4 + 2 * k2**2))[:, None])
    law = ShapeLaw.of(*rows, curve, 1.0, is_paired=True)
    np.testing.assert_allclose(law.value[:, 0], value(*sides), rtol=1e-9, atol=1e-12)
    for mine, theirs in zip(
        law.moments(np.full((PAIRS, 1), 0.01)), moments(*sides, np.full(PAIRS, 0.01), 2 / K), strict=True
    ):
        np.testing.assert_allclose(mine[:, 0], theirs, rtol=1e-7)
