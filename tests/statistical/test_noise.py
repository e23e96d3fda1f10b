"""The noise against its exact probabilities: chi-square at small, middle and large scales.

The draws are secret, so they differ in each run: a true law fails a test here with probability 1e-6, and
0.9 or 1.1 of its scale passes with less than that (their chi-square at these sizes lies above 1000).
"""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.special import chdtrc, ndtr, ndtri

from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.noise.draw import draw
from exact_laws import pmf
from statistical.limits import FALSE_ALARM, WRONG

DRAWS = 1_000_000
LAWS = [DiscreteLaplace, RoundedNormal]
BINS = 64


def p_value(counts, probabilities):
    expected = counts.sum() * probabilities
    assert expected.min() > 20
    return chdtrc(len(counts) - 1, ((counts - expected) ** 2 / expected).sum())


def counts_and_probabilities(values, law):
    """Each integer its own bin while 20 draws are expected there; the two tails together at the ends."""
    largest = 0
    while pmf(law, largest + 1) * len(values) > 40:
        largest += 1
    inside = np.arange(-largest, largest + 1)
    each = pmf(law, inside)
    counts = np.array([(values == n).sum() for n in inside] + [(np.abs(values) > largest).sum()])
    outside = 1 - math.fsum(each)
    if outside * len(values) < 40:
        return counts[:-1], each / each.sum()
    return counts, np.append(each, outside)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_every_integer_has_its_probability(law, scale):
    values = draw(law(scale), (DRAWS,))
    assert p_value(*counts_and_probabilities(values, law(scale))) > FALSE_ALARM
    for factor in WRONG:
        assert p_value(*counts_and_probabilities(values, law(factor * scale))) < FALSE_ALARM


def cumulative(law, n):
    """P(N ≤ n) for scales at which float64 is far more exact than a million draws can see."""
    if law.name == "gaussian":
        return ndtr((n + 0.5) / law.scale)
    a = math.exp(-1 / law.scale)
    upper = np.exp(-(np.where(n >= 0, n, -n - 1) + 1) / law.scale) / (1 + a)
    return np.where(n >= 0, 1 - upper, upper)


def edges(law):
    """Integers that cut the law into equal parts."""
    share = np.arange(1, BINS) / BINS
    if law.name == "gaussian":
        return np.floor(law.scale * ndtri(share)).astype(np.int64)
    magnitude = -law.scale * np.log(2 * np.minimum(share, 1 - share))
    return np.floor(np.where(share < 0.5, -magnitude, magnitude)).astype(np.int64)


def binned_p_value(values, law):
    cuts = edges(law)
    counts = np.bincount(np.searchsorted(cuts, values), minlength=BINS)
    limits = np.concatenate([[0], cumulative(law, cuts.astype(float)), [1]])
    return p_value(counts, np.diff(limits))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [50.0, 1e6, 2.0**30, 0.9 * 2.0**40])
def test_large_scales_part_by_part_and_bit_by_bit(law, scale):
    values = draw(law(scale), (DRAWS,))
    assert binned_p_value(values, law(scale)) > FALSE_ALARM
    for factor in WRONG:
        assert binned_p_value(values, law(factor * scale)) < FALSE_ALARM
    if scale >= 1e6:
        # The lowest bits are uniform; a float's spacing at 2^40·45 would not show here, but a coarser one would.
        low = np.bincount(values & 255, minlength=256)
        assert p_value(low, np.full(256, 1 / 256)) > FALSE_ALARM


@pytest.mark.parametrize("law", LAWS)
def test_the_smallest_scale_is_all_zeros(law):
    # P(N ≠ 0) is 2e-44 and less.
    assert not draw(law(0.01), (DRAWS,)).any()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.5, 1.0, 50.0, 2.0**40])
def test_second_moment(law, scale):
    values = draw(law(scale), (DRAWS,)).astype(float) / scale
    noise = law(scale)
    second, fourth = noise.second_moment / scale**2, noise.fourth_moment / scale**4
    error = math.sqrt((fourth - second**2) / DRAWS)
    deviation = abs((values**2).mean() - second) / error
    assert deviation < 4.892
    for factor in WRONG:
        assert abs((values**2).mean() - factor * second) / error > 4.892


def two_sample_p_value(ours, theirs):
    """Chi-square of homogeneity over bins of the pooled values, for samples of one size."""
    pooled = np.concatenate([ours, theirs])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, 33)[1:-1]))
    a, b = (np.bincount(np.searchsorted(cuts, x), minlength=len(cuts) + 1) for x in (ours, theirs))
    used = a + b > 40
    return chdtrc(used.sum() - 1, (((a - b) ** 2)[used] / (a + b)[used]).sum())


@pytest.fixture(scope="module")
def opendp():
    dp.enable_features("contrib")
    return dp


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e6])
def test_laplace_against_the_exact_sampler_of_opendp(opendp, scale):
    count = 60_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    theirs = np.array(opendp.m.make_laplace(*space, scale=scale)([0] * count))
    assert two_sample_p_value(draw(DiscreteLaplace(scale), (count,)), theirs) > FALSE_ALARM
    for factor in WRONG:
        assert two_sample_p_value(draw(DiscreteLaplace(factor * scale), (count,)), theirs) < FALSE_ALARM


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_rounded_normal_against_the_exact_sampler_of_opendp(opendp, scale):
    # OpenDP's Gaussian on floats lives on a grid of 2^−1074: rounding it is the law that ours is. Its own
    # integer Gaussian is another law (the discrete Gaussian), which must and does fail at a small scale.
    count = 60_000
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l2_distance(T=float)
    theirs = np.rint(opendp.m.make_gaussian(*space, scale=scale)([0.0] * count)).astype(np.int64)
    assert two_sample_p_value(draw(RoundedNormal(scale), (count,)), theirs) > FALSE_ALARM
    for factor in WRONG:
        assert two_sample_p_value(draw(RoundedNormal(factor * scale), (count,)), theirs) < FALSE_ALARM
