"""Limits of prevalences: against exact laws of the noise, at the ends of their range, with an undercount, and for very few people."""

import numpy as np
import pytest
from scipy.stats import binom

from armslength.estimates.prevalence import (
    LARGEST_TAIL,
    Limits,
    Noise,
    Prevalence,
    _reach,
    _root,
    _scaled,
    difference_limits,
)
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE


def law(people):
    """Laplace noise of this scale in people."""
    return DiscreteLaplace(people * VOTE)


NEARLY_NONE = law(0.001)


def side(counts, people, often=1, scale=10.0, *, undercount=0.0, beyond_chance=True, tail_noise=None):
    """The people of one side, with the same noise in margins and in the number of people."""
    noises = (Noise(tail_noise or law(scale), often),)
    return Prevalence(np.asarray(counts, float), undercount, float(people), noises, noises, beyond_chance)


def exact_tail(noises, reach):
    """P(Σ noise ≥ reach people) for (scale in people, how often), by convolution on a lattice of a 32nd of the smallest scale."""
    step, count = min(scale for scale, _ in noises) / 32, 1 << 17
    edges = (np.arange(-count // 2, count // 2 + 1) - 0.5) * step
    total = np.ones(count // 2 + 1, dtype=complex)
    for scale, often in noises:
        cdf = np.where(edges < 0, np.exp(-np.abs(edges) / scale) / 2, 1 - np.exp(-np.abs(edges) / scale) / 2)
        total *= np.fft.rfft(np.fft.ifftshift(np.diff(cdf))) ** often
    mass = np.fft.irfft(total, count)
    return mass[round(reach / step) : count // 2].sum()


def test_a_root_is_found_whatever_the_shape_in_few_steps():
    wanted = np.array([1e-4, 0.01, 0.3, 0.999, 1.0, 1.0])
    steps = []

    def excess(s):
        steps.append(s)
        normal, flat_at_first, steep_at_last = (
            1e4 * s[:2] - [1, 100],
            s[2] ** 3 - 0.027,
            s[3] / (1.001 - s[3]),
        )
        return np.array([*normal, flat_at_first, steep_at_last - 499.5, -1.0, np.nan])  # the last two never

    found = _root(excess, np.ones(6), -1.0)
    assert found == pytest.approx(wanted, rel=1e-6)
    steps.clear()
    found = _root(lambda s: excess(np.append(s, [1, 1]))[:4], np.ones(4), -1.0)
    assert found == pytest.approx(wanted[:4], rel=1e-6)
    assert len(steps) < 25


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("often", [1, 8])
@pytest.mark.parametrize("tail", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_noise_alone_is_outside_as_seldom_as_stated(weight, often, tail, p):
    noises = (Noise(law(40), often), Noise(law(20), often, weight))
    scales = [(40 * share, often) for share in (1, p) if share]
    scales += [(20 * weight * share, often) for share in (1, p) if share]
    reach = _reach(_scaled(noises, 1.0) + _scaled(noises, p), np.array([p]), 0.0, tail, 1.0)[0]
    assert 0.9 < exact_tail(scales, reach) / tail < 1.05  # a saddlepoint is off by a few percent
    people = 10_000.0
    exact = Prevalence(np.array([p * people]), 0.0, people, noises, noises, beyond_chance=False)
    limits = exact.limits(tail)
    assert limits.least == p == limits.most
    # With the undercount's noise, a quarter of that of a count, in the upper end alone.
    scales += [(10, often), (5 * weight, often)]
    above = _reach(
        _scaled(noises, 1.0) + _scaled(noises, p) + _scaled(noises, 0.25), np.array([p]), 0.0, tail, 1.0
    )
    assert 0.9 < exact_tail(scales, above[0]) / tail < 1.05
    assert limits.lower[0] == pytest.approx(p - (reach + 0.5) / people, rel=0.05, abs=2e-4)
    assert limits.upper[0] == pytest.approx(p + (above[0] + 0.5) / people, rel=0.05, abs=2e-4)


@pytest.mark.parametrize("n", [30, 200, 100_000])
@pytest.mark.parametrize("p", [1e-4, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("tail", [0.025, 1e-4])
def test_without_noise_the_ends_hold_for_every_binomial(n, p, tail):
    counts = np.arange(*np.clip(binom.ppf([1e-12, 1 - 1e-12], n, p) + np.array([-2, 2]), 0, n + 1))
    limits = side(counts, n, tail_noise=NEARLY_NONE).limits(tail)
    low = counts[limits.lower > p].min(initial=np.inf)
    high = counts[limits.upper < p].max(initial=-np.inf)
    assert binom.sf(low - 1, n, p) <= 1.01 * tail
    assert binom.cdf(high, n, p) <= 1.01 * tail
    if n == 10**5 and p == 0.5:
        assert binom.sf(low - 1, n, p) >= 0.9 * tail


@pytest.mark.parametrize("beyond_chance", [True, False])
@pytest.mark.parametrize("missing", [0, 100, 400])
def test_the_plain_share_is_covered_whoever_is_missing(missing, beyond_chance):
    """Of 4,000 people 1,200 have an item of a group, and of those any number up to the undercount is not in the count."""
    for left_out in {0, missing // 2, missing}:
        known = {"undercount": missing, "beyond_chance": beyond_chance, "scale": 1.0}
        limits = side([1200 - left_out], 4000, **known).limits(1e-6)
        assert limits.lower[0] < 0.3 < limits.upper[0]
        assert limits.most[0] - limits.least[0] == pytest.approx(missing / 4000)
    plain = side([1200], 4000, beyond_chance=beyond_chance, scale=1.0).limits(1e-6)
    assert limits.upper[0] - limits.lower[0] < plain.upper[0] - plain.lower[0] + missing / 4000 + 0.003


def test_more_rows_more_noise_and_a_smaller_tail_make_wider_limits():
    counts = [0, 20, 500, 1000]
    plain = side(counts, 1000)

    def width(of, tail=0.01):
        limits = of.limits(tail)
        return limits.upper - limits.lower

    assert (width(plain) > width(side(counts, 1000, scale=5))).all()
    assert (width(plain) < width(side(counts, 1000, often=3))).all()
    assert (width(plain) < width(plain, 0.001)).all()
    assert (width(plain) > width(side(counts, 1000, beyond_chance=False))).all()
    assert (width(plain, 0.4) == width(plain, LARGEST_TAIL)).all()
    # A mixture of laws lies between, and a weight below 1 is less.
    noises = [(Noise(law(10), 1), Noise(law(12), 1, factor)) for factor in (0.5, 1)]
    mixed = [width(Prevalence(np.array(counts, float), 0.0, 1000.0, each, each)) for each in noises]
    assert (width(plain) < mixed[0]).all()
    assert (mixed[0] < mixed[1]).all()


def test_limits_have_an_estimate_between_them_wherever_noise_puts_the_counts():
    counts = [-500, -1, 0, 1, 300, 999, 1000, 1001, 1700]
    for known in ({"scale": 20}, {"tail_noise": NEARLY_NONE}, {"scale": 12, "often": 4}, {"undercount": 30}):
        for beyond_chance in (True, False):
            limits = side(counts, 1000, beyond_chance=beyond_chance, **known).limits(1e-4)
            assert np.isfinite([limits.lower, limits.upper]).all()
            assert (limits.lower < limits.least).all()
            assert (limits.most < limits.upper).all()
            assert (np.diff(limits.lower) >= 0).all()
            assert (np.diff(limits.upper) >= 0).all()


def test_a_difference_adds_the_squares_of_distances_and_both_undercounts():
    a, b = (
        Limits(*(np.array([end]) for end in ends))
        for ends in ((0.3, 0.31, 0.2, 0.46), (0.5, 0.52, 0.38, 0.56))
    )
    value, lower, upper = difference_limits(a, b)
    assert value[0] == pytest.approx(0.2)
    assert lower[0] == pytest.approx(0.2 - 0.01 - np.hypot(0.12, 0.15))
    assert upper[0] == pytest.approx(0.2 + 0.02 + np.hypot(0.04, 0.1))


def test_people_are_there_when_noise_cannot_be_all_of_them():
    reach = 10 * np.log(1 / (2 * 0.001))  # of Laplace noise
    for people, expected in ((-50.0, False), (0.0, False), (reach - 3.0, False), (reach + 3.0, True)):
        assert side([0, 0], people).has_people(0.001) is expected


def test_many_are_missing_when_noise_cannot_be_all_of_them():
    reach = 10 / 4 * np.log(1 / (2 * 0.001))
    for undercount, expected in ((50 - reach, False), (50 + 0.9 * reach, False), (50 + 1.1 * reach, True)):
        assert side([0, 0], 1000, undercount=float(undercount)).lacks(0.05, 0.001) is expected
