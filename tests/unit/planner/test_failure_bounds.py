"""The bound on the fourth moment, against every hash function and sign there is, for small sizes."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import armslength as al
from armslength.estimates.variance import curve_of
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.planner.failure_bounds import (
    failure_bound,
    fourth_moment,
    pair_moments,
)
from armslength.transforms.transform import ErrorMoments
from exact_laws import pmf


def one_block(z, assignments):
    """All values of T = ‖Sz‖² − ‖z‖² for one block: every assignment of coordinates to bins, every sign."""
    values = []
    for bins in assignments:
        for signs in itertools.product((-1, 1), repeat=len(z)):
            sums = {}
            for bucket, sign, each in zip(bins, signs, z, strict=True):
                sums[bucket] = sums.get(bucket, 0) + sign * each
            values.append(sum(total * total for total in sums.values()) - sum(each * each for each in z))
    return values


def moment(values, power):
    return Fraction(sum(value**power for value in values), len(values))


def blocks_moment(values, blocks, power):
    """The moment of the mean of independent blocks, exactly."""
    if blocks == 1:
        return moment(values, power)
    count = Fraction(0)
    for combination in itertools.product(range(len(values)), repeat=blocks):
        count += Fraction(sum(values[index] for index in combination), blocks) ** power
    return count / len(values) ** blocks


VECTORS = [(1, 1), (1, 2, 3), (1, 1, 1, 1), (3, 1, 0, 0), (5,)]


@pytest.mark.parametrize("z", VECTORS)
@pytest.mark.parametrize("bins", [1, 2, 3])
def test_block_moments_are_bounded(z, bins):
    values = one_block(z, itertools.product(range(bins), repeat=len(z)))
    bound = al.SparseJL(sketch_dim=bins, sparsity=1, seed="x").error_moments()
    d = sum(each * each for each in z)
    assert moment(values, 1) == 0
    for power, limit in ((2, bound.second), (3, bound.third), (4, bound.fourth)):
        assert moment(values, power) <= limit * d**power * (1 + 1e-12)


@pytest.mark.parametrize("z", [(1, 1), (1, 2)])
def test_moments_of_two_blocks(z):
    values = one_block(z, itertools.product(range(2), repeat=len(z)))
    bound = al.SparseJL(sketch_dim=4, sparsity=2, seed="x").error_moments()
    d = sum(each * each for each in z)
    for power, limit in ((2, bound.second), (3, bound.third), (4, bound.fourth)):
        assert blocks_moment(values, 2, power) <= limit * d**power * (1 + 1e-12)


@pytest.mark.parametrize(("d", "bins"), [(6, 3), (5, 2), (7, 3), (4, 4), (3, 5), (6, 1)])
def test_balanced_moments_are_bounded(d, bins):
    transform = al.SparseJL(input_dim=d, sketch_dim=bins, sparsity=1, seed="x", construction="balanced")
    dealt = [j % bins for j in range(d)]
    assignments = set(itertools.permutations(dealt))
    for z in VECTORS:
        if len(z) > d:
            continue
        padded = (*z, *([0] * (d - len(z))))
        values = one_block(padded, assignments)
        bound = transform.error_moments()
        norm = sum(each * each for each in z)
        for power, limit in ((2, bound.second), (3, bound.third), (4, bound.fourth)):
            assert moment(values, power) <= limit * norm**power * (1 + 1e-12)


@pytest.mark.parametrize(("d", "bins"), [(6, 3), (5, 2), (7, 3), (8, 4)])
def test_how_likely_coordinates_meet(d, bins):
    assignments = set(itertools.permutations([j % bins for j in range(d)]))
    pair, two_pairs, three, four = al.SparseJL(
        input_dim=d, sketch_dim=bins, sparsity=1, seed="x", construction="balanced"
    )._meetings()

    def share(condition):
        return Fraction(sum(condition(bins) for bins in assignments), len(assignments))

    assert pair == share(lambda b: b[0] == b[1])
    assert three == share(lambda b: b[0] == b[1] == b[2])
    assert four == share(lambda b: b[0] == b[1] == b[2] == b[3])
    assert two_pairs == share(lambda b: b[0] == b[1] and b[2] == b[3])


def test_the_bound_is_sharp_for_two_equal_coordinates():
    # They meet with probability 1/k, and then the error is all of D: the fourth moment is D⁴/k, and no bound can be less.
    for k in (1000, 100_000):
        assert 1 <= al.SparseJL(sketch_dim=k, sparsity=1, seed="x").error_moments().fourth * k < 1 + 13 / k
    # More entries a column, in as many rows: nearer to 12/k², that of a normal projection.
    fourths = [
        al.SparseJL(sketch_dim=4096, sparsity=s, seed="x").error_moments().fourth
        for s in (1, 2, 4, 8, 16, 32)
    ]
    assert fourths == sorted(fourths, reverse=True)
    assert fourths[-1] < 3 * 12 / 4096**2


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(0.4), DiscreteLaplace(3.0), RoundedNormal(0.7), RoundedNormal(2.5)]
)
def test_moments_of_the_noise_of_a_pair(law):
    n = np.arange(-150, 151)
    probability = pmf(law, n)
    both = np.convolve(probability, probability)
    values = np.arange(-300, 301).astype(float)
    found = pair_moments(law, 2.0)
    for power, each in ((2, found.m2), (4, found.m4), (6, found.m6), (8, found.m8)):
        assert each == pytest.approx(2.0 ** (power / 2) * (both * values**power).sum(), rel=1e-9)


@pytest.mark.parametrize("law", [DiscreteLaplace(0.5), DiscreteLaplace(1.2), RoundedNormal(0.8)])
@pytest.mark.parametrize("y", [(0, 0), (3, 0), (2, -1), (1, 4)])
def test_the_fourth_moment_without_a_projection_is_exact_up_to_the_fourth_norm(law, y):
    # Two coordinates, every pair of noises: E[(‖y + N‖² − 2κ₂ − ‖y‖²)⁴].
    n = np.arange(-60, 61)
    one = pmf(law, n)
    noise, values = np.convolve(one, one), np.arange(-120, 121).astype(float)
    k2 = 2 * law.cumulants.k2
    first, second = ((2 * each * values + values**2 - k2) for each in y)
    exact = (np.outer(noise, noise) * (first[:, None] + second[None, :]) ** 4).sum()
    d = float(sum(each * each for each in y))
    bound = fourth_moment(2, ErrorMoments(0.0, 0.0, 0.0), pair_moments(law, 1.0), d)
    slack = 16 * max(2 * law.cumulants.k4, 0.0) * (d**2 - sum(each**4 for each in y))
    if law.cumulants.k4 < 0:
        slack = -16 * 2 * law.cumulants.k4 * sum(each**4 for each in y)
    assert bound == pytest.approx(exact + slack, rel=1e-9)


@pytest.mark.parametrize("z", [(1, 1), (2, 1), (1, 2, 3)])
@pytest.mark.parametrize("law", [DiscreteLaplace(0.6), RoundedNormal(0.8)])
def test_the_fourth_moment_of_projection_and_noise_together(z, law):
    # Every hash function into two bins, every sign, every pair of noises. With the exact moments of T, the formula is exact up
    # to what it makes of Σy⁴.
    n = np.arange(-40, 41)
    one = pmf(law, n)
    noise, values = np.convolve(one, one), np.arange(-80, 81).astype(float)
    both, k2, k4 = np.outer(noise, noise), 2 * law.cumulants.k2, 2 * law.cumulants.k4
    d = sum(each * each for each in z)
    projected = []
    for bins in itertools.product(range(2), repeat=len(z)):
        for signs in itertools.product((-1, 1), repeat=len(z)):
            y = [
                sum(s * v for b, s, v in zip(bins, signs, z, strict=True) if b == bucket)
                for bucket in range(2)
            ]
            projected.append(y)
    errors = [sum(each * each for each in y) - d for y in projected]
    fourth = 0.0
    for y, error in zip(projected, errors, strict=True):
        first, second = ((2 * each * values + values**2 - k2) for each in y)
        fourth += (both * (error + first[:, None] + second[None, :]) ** 4).sum() / len(projected)
    exact = ErrorMoments(*(float(moment(errors, power)) / d**power for power in (2, 3, 4)))
    bound = fourth_moment(2, exact, pair_moments(law, 1.0), float(d))
    of_y = np.mean([sum(each**4 for each in y) for y in projected])
    taken = d**2 + float(moment(errors, 2)) if k4 > 0 else 0.0
    assert bound == pytest.approx(fourth + 16 * k4 * (taken - of_y), rel=1e-9)


def test_one_bin_and_many_equal_coordinates_reach_the_bound():
    # All coordinates share the one bin: T is a square of a sum of signs, less its mean, nearly a chi-square variable, whose
    # moments are 2, 8 and 60; the bound has 2, 8 and 61.
    m = 18
    signs = 1 - 2 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(np.int16)
    errors = signs.sum(axis=1).astype(float) ** 2 / m - 1
    found = al.SparseJL(sketch_dim=1, sparsity=1, seed="x").error_moments()
    for power, bound, share in ((2, found.second, 0.9), (3, found.third, 0.8), (4, found.fourth, 0.65)):
        assert share * bound < (errors**power).mean() <= bound


def test_the_constants_of_the_proof():
    # docs/planning.md, for B bins and s blocks, written out once more.
    for bins, s in ((10, 1), (10, 2), (16, 8)):
        found = al.SparseJL(sketch_dim=bins * s, sparsity=s, seed="x").error_moments()
        one = 1 / bins + 12 / bins**2 + 48 / bins**3
        assert found.second == pytest.approx(2 / (bins * s))
        assert found.third == pytest.approx(8 / (bins * s) ** 2)
        assert found.fourth == pytest.approx(one / s**3 + 12 * (1 - 1 / s) / (bins * s) ** 2)


def test_which_transforms_have_the_bound():
    assert al.SparseJL(sketch_dim=8, sparsity=2, seed="x", construction="graph").error_moments() is None
    assert al.SparseJL(sketch_dim=8, sparsity=2, seed="x", independence=7).error_moments() is None
    assert al.SparseJL(sketch_dim=8, sparsity=2, seed="x", independence=8).error_moments() is not None
    assert al.HadamardJL(input_dim=8, sketch_dim=4, seed="x").error_moments() is None
    assert al.Identity(input_dim=8).error_moments() == ErrorMoments(0.0, 0.0, 0.0)


def test_a_bound_is_a_probability():
    protocol = al.Protocol(al.HadamardJL(input_dim=100, sketch_dim=10, seed="x"), epsilon=0.1, delta=1e-6)
    curve = curve_of(protocol.transform, "output", 1.0, protocol.law.cumulants + protocol.law.cumulants)
    assert failure_bound(protocol.transform, protocol.law, protocol.unit_squared, curve, 1.0, 0.1) == 1.0
