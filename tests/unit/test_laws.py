"""The mathematics of the noise against sums in 60-digit decimals."""

import math

import mpmath
import numpy as np
import pytest

from armslength.errors import ParameterError
from armslength.laws import DiscreteLaplace, RoundedNormal
from exact_laws import pmf
from reference.noise import exact_moments, tail

SCALES = [0.05, 0.3, 0.5, 1.0, 1.9999999, 2.0, 2.5, 50.0]
LAWS = [DiscreteLaplace, RoundedNormal]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_moments(law, scale):
    noise = law(scale)
    second, fourth = exact_moments(noise.name, scale)
    assert noise.second_moment == pytest.approx(second, rel=1e-14)
    assert noise.fourth_moment == pytest.approx(fourth, rel=1e-14)
    assert noise.cumulants.k2 == noise.second_moment
    assert noise.cumulants.k4 == pytest.approx(fourth - 3 * second**2, rel=1e-12, abs=1e-13 * fourth)


@pytest.mark.parametrize("law", LAWS)
def test_distribution_function_is_the_running_sum(law):
    n = np.arange(-80, 81)
    running = np.cumsum(pmf(law(3.0), n))
    assert law(3.0).cdf(n.astype(float)) == pytest.approx(running, abs=1e-11)
    assert law(3.0).cdf(n + 0.9) == pytest.approx(running, abs=1e-11)


def test_probabilities_far_out_are_zero_at_once():
    assert pmf(RoundedNormal(0.01), 2**62) == 0.0
    assert pmf(DiscreteLaplace(0.01), 2**62) == 0.0


def test_moments_of_huge_scales_are_those_of_the_continuous_laws():
    b = 2.0**40
    laplace, normal = DiscreteLaplace(b), RoundedNormal(b)
    assert laplace.second_moment == pytest.approx(2 * b**2)
    assert laplace.fourth_moment == pytest.approx(24 * b**4)
    assert laplace.cumulants.k4 == pytest.approx(12 * b**4)
    assert normal.second_moment == pytest.approx(b**2)
    assert normal.fourth_moment == pytest.approx(3 * b**4)


def test_the_printed_odd_moments_are_not_followed():
    # Erratum 4: the paper's note has E[Lⁿ] = n!·bⁿ for all n; odd moments of a symmetric law are 0.
    n = np.arange(-60, 61)
    assert abs((pmf(DiscreteLaplace(2.0), n) * n**3).sum()) < 1e-12


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 50.0, 2.0**30, 2.0**40])
def test_probabilities_to_the_last_digit(scale):
    points = [0, 1, 2, 3, int(scale), int(5 * scale), int(30 * scale) + 1]
    with mpmath.workdps(80):
        b = mpmath.mpf(scale)
        for n in points:
            laplace = mpmath.tanh(1 / (2 * b)) * mpmath.exp(-n / b)
            normal = tail("gaussian", scale, n) / 2 - tail("gaussian", scale, n + 1) / 2
            if n == 0:
                normal = 1 - tail("gaussian", scale, 1)
            assert pmf(DiscreteLaplace(scale), n) == pytest.approx(float(laplace), rel=3e-16, abs=1e-320)
            assert pmf(RoundedNormal(scale), n) == pytest.approx(float(normal), rel=3e-16, abs=1e-320)


@pytest.mark.parametrize("law", LAWS)
def test_probabilities_sum_to_one_and_are_symmetric(law):
    n = np.arange(-200, 201)
    each = pmf(law(3.0), n)
    assert math.fsum(each) == pytest.approx(1, abs=1e-15)
    assert np.array_equal(each, each[::-1])
    assert pmf(law(3.0), np.array([[1, -1]])).shape == (1, 2)


def test_neighbors_differ_by_the_ratio_that_epsilon_allows():
    # The ε-DP inequality of the Laplace mechanism, at every integer: P(n) ≤ e^(1/b)·P(n+1).
    law = DiscreteLaplace(3.0)
    each = pmf(law, np.arange(-50, 51))
    ratios = each[1:] / each[:-1]
    assert ratios.max() == pytest.approx(math.exp(1 / 3), rel=1e-14)
    assert ratios.min() == pytest.approx(math.exp(-1 / 3), rel=1e-14)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0, -1.0, 0.009, math.nan, math.inf, 2.0**40 * 1.01, "1", None, True, 1j])
def test_scales_outside_the_proved_range_are_refused(law, scale):
    with pytest.raises(ParameterError, match="scale must be"):
        law(scale)
