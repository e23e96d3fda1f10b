"""Limits of prevalences: against exact laws of the noise, at the ends of their range, and for very few people."""

import numpy as np
import pytest
from scipy.stats import binom

from armslength.estimates.prevalence import LARGEST_TAIL, Prevalence, difference_limits
from armslength.laws import DiscreteLaplace, RoundedNormal

NEARLY_NONE = DiscreteLaplace(0.01)  # not 0 once in 10^43
FAR = 3000


def exact_tail(law, often, p, reach):
    """P(Σ E − p·Σ F ≥ reach) for p = 0, ½ or 1, by convolution on the lattice of halves."""
    x = np.arange(-FAR, FAR + 1)
    mass = np.diff(law.cdf(np.arange(-FAR - 1, FAR + 1).astype(float)))
    size = 1 << 17
    one, scaled = np.zeros(size), np.zeros(size)
    np.add.at(one, 2 * x % size, mass)
    np.add.at(scaled, int(2 * p) * x % size, mass)
    total = np.fft.irfft((np.fft.rfft(one) * np.fft.rfft(scaled)) ** often, size)
    return total[int(np.ceil(2 * reach)) : size // 2].sum()


@pytest.mark.parametrize("law", [DiscreteLaplace(40), DiscreteLaplace(5), RoundedNormal(30)])
@pytest.mark.parametrize("often", [1, 8])
@pytest.mark.parametrize("tail", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_noise_alone_is_outside_as_seldom_as_stated(law, often, tail, p):
    people = 10_000.0
    side = Prevalence(np.array([p * people]), people, ((law, often),), beyond_chance=False)
    value, lower, upper = side.limits(tail)
    assert value == p
    assert upper[0] - p == pytest.approx(p - lower[0], rel=0.1)
    side = Prevalence(np.zeros(1), people, ((law, often),), beyond_chance=False)
    reach = side.quantiles(np.array([p]), tail)[1][0] + 0.5
    found = exact_tail(law, often, p, reach) / tail
    assert found < 1.001
    assert found > 0.8  # half a person to the lattice


@pytest.mark.parametrize("n", [30, 200, 100_000])
@pytest.mark.parametrize("p", [1e-4, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("tail", [0.025, 1e-4])
def test_without_noise_the_ends_hold_for_every_binomial(n, p, tail):
    counts = np.arange(*np.clip(binom.ppf([1e-12, 1 - 1e-12], n, p) + np.array([-2, 2]), 0, n + 1))
    _, lower, upper = Prevalence(counts, float(n), ((NEARLY_NONE, 1),)).limits(tail)
    low = counts[lower > p].min(initial=np.inf)
    high = counts[upper < p].max(initial=-np.inf)
    assert binom.sf(low - 1, n, p) <= 1.01 * tail
    assert binom.cdf(high, n, p) <= 1.01 * tail
    if n == 10**5 and p == 0.5:
        assert binom.sf(low - 1, n, p) >= 0.9 * tail


def test_more_rows_more_noise_and_a_smaller_tail_make_wider_limits():
    counts, law = np.array([0.0, 20, 500, 1000]), DiscreteLaplace(10)
    plain = Prevalence(counts, 1000.0, ((law, 1),))

    def width(side, tail=0.01):
        _, lower, upper = side.limits(tail)
        return upper - lower

    assert (width(plain) > width(Prevalence(counts, 1000.0, ((DiscreteLaplace(5), 1),)))).all()
    assert (width(plain) < width(Prevalence(counts, 1000.0, ((law, 3),)))).all()
    assert (width(plain) < width(plain, 0.001)).all()
    assert (width(plain) > width(Prevalence(counts, 1000.0, ((law, 1),), beyond_chance=False))).all()
    assert (width(plain, 0.4) == width(plain, LARGEST_TAIL)).all()
    # A mixture of laws lies between.
    mixed = width(Prevalence(counts, 1000.0, ((law, 1), (RoundedNormal(12), 1))))
    assert (width(plain) < mixed).all()


def test_limits_have_an_estimate_between_them_wherever_noise_puts_the_counts():
    counts = np.array([-500.0, -1, 0, 1, 300, 999, 1000, 1001, 1700])
    for laws in (((DiscreteLaplace(20), 1),), ((RoundedNormal(0.01), 1),), ((RoundedNormal(20), 4),)):
        for beyond_chance in (True, False):
            value, lower, upper = Prevalence(counts, 1000.0, laws, beyond_chance=beyond_chance).limits(1e-4)
            assert np.isfinite([lower, upper]).all()
            assert (lower < value).all()
            assert (value < upper).all()
            assert (np.diff(lower) >= 0).all()
            assert (np.diff(upper) >= 0).all()


def test_a_difference_adds_the_squares_of_distances():
    a = tuple(np.array([each]) for each in (0.3, 0.2, 0.45))
    b = tuple(np.array([each]) for each in (0.5, 0.38, 0.54))
    value, lower, upper = difference_limits(a, b)
    assert value[0] == pytest.approx(0.2)
    assert lower[0] == pytest.approx(0.2 - np.hypot(0.12, 0.15))
    assert upper[0] == pytest.approx(0.2 + np.hypot(0.04, 0.1))


def test_people_are_there_when_noise_cannot_be_all_of_them():
    law = DiscreteLaplace(10)
    reach = law.upper_quantile(0.001)
    for people, expected in ((-50.0, False), (0.0, False), (reach - 3.0, False), (reach + 3.0, True)):
        assert Prevalence(np.zeros(2), people, ((law, 1),)).has_people(0.001) is expected
