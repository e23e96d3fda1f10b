"""The pieces of intervals of single items, against slow and obvious computations."""

import math

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binom

import armslength as al
from armslength.estimates.item_intervals import (
    _rank_of_one_block,
    _rate_of_each,
    item_intervals,
    noise_reach,
)
from armslength.estimates.pair_noise import NO_NOISE, PairNoise
from armslength.laws import DiscreteLaplace, RoundedNormal


@pytest.mark.parametrize(("free", "bins"), [(19, 1), (190, 10), (950, 50), (1000, 3), (5, 40)])
def test_the_rank_is_the_largest_with_that_error(free, bins):
    def error(rank):
        # All of the `rank` largest are free bins.
        return 1 - comb(free, rank, exact=True) / comb(free + bins, rank, exact=True)

    for allowed in (0.01, 0.05, 0.2, 0.5):
        rank = _rank_of_one_block(free, bins, 1, allowed)
        assert rank == 0 or error(rank) <= allowed + 1e-9
        assert rank == free or error(rank + 1) > allowed - 1e-9


def test_twenty_numbers_for_each_item_are_enough_and_one_less_is_not():
    for count in (1, 7, 50, 300):
        assert _rank_of_one_block(19 * count, count, 1, 0.05) >= 1
        assert _rank_of_one_block(19 * count - 1, count, 1, 0.05) == 0


@pytest.mark.parametrize("blocks", range(1, 10))
def test_the_rate_of_each_block(blocks):
    rate = _rate_of_each(blocks, 1e-3)
    assert 2 * binom.sf(blocks // 2, blocks, rate / 2) == pytest.approx(1e-3)


@pytest.mark.parametrize(
    "laws",
    [
        ((DiscreteLaplace(3.0), 1.0), (DiscreteLaplace(3.0), 1.0)),
        ((DiscreteLaplace(0.5), 1.0), (RoundedNormal(4.0), 2.0)),
        ((RoundedNormal(0.3), 1.0),),
    ],
)
def test_the_reach_of_noise_is_exact_on_a_lattice(laws):
    values = np.arange(-2000, 2001)
    law = np.zeros(len(values))
    law[2000] = 1
    for each, factor in laws:
        single = np.zeros(len(values))
        n = np.arange(-500, 501)
        single[2000 + n * int(factor)] = each.cdf(n.astype(float)) - each.cdf(n - 1.0)
        law = np.convolve(law, single, mode="same")
    for tail in (0.3, 0.05, 1e-4, 1e-8):
        reach = noise_reach(PairNoise.sum_of(laws), tail)
        assert law[np.abs(values) > reach].sum() <= tail * (1 + 1e-9)
        assert law[np.abs(values) >= reach].sum() > tail * (1 - 1e-9) or reach == 0


def test_the_reach_of_noise_that_is_on_no_lattice():
    laws = ((DiscreteLaplace(5000.0), 1 / 700), (DiscreteLaplace(5000.0), 1 / 910))
    b, c = 5000 / 700, 5000 / 910

    def beyond(x):  # P(|X + Y| > x) of two Laplace variables
        return (b * b * math.exp(-x / b) - c * c * math.exp(-x / c)) / (b * b - c * c)

    for tail in (0.05, 1e-4):
        reach = noise_reach(PairNoise.sum_of(laws), tail)
        assert 0.98 * tail < beyond(reach) <= tail
    assert noise_reach(NO_NOISE, 0.05) == 0


def clear_rows(transform, counts):
    protocol = al.Protocol(transform, epsilon=1)
    return al.sketch_in_clear(protocol, counts)


def test_without_noise_and_without_other_items_all_is_exact():
    counts = np.zeros((2, 1000), dtype=np.int64)
    counts[1, :5] = [7, -3, 0, 100, 2]
    for transform in (
        al.SparseJL(input_dim=1000, sketch_dim=400, seed="items"),
        al.SparseJL(input_dim=1000, sketch_dim=300, sparsity=3, seed="items"),
        al.Identity(input_dim=1000),
    ):
        rows = clear_rows(transform, counts)
        found = item_intervals([rows[1] - rows[0]], np.arange(5), 0.05)
        assert np.array_equal(found.value, counts[1, :5])
        assert np.array_equal(found.lower, found.upper)


def test_a_bin_of_two_items_measures_both():
    transform = al.SparseJL(input_dim=2000, sketch_dim=400, seed="items")
    encoded = transform.signed_rows(np.arange(2000))[:, 0].astype(int)
    rows, signs = np.where(encoded < 0, -1 - encoded, encoded), np.where(encoded < 0, -1, 1)
    i = 0
    j = next(n for n in range(1, 2000) if rows[n] == rows[0] and signs[n] != signs[0])
    counts = np.zeros((2, 2000), dtype=np.int64)
    counts[1, [i, j]] = 50, 8
    sketches = clear_rows(transform, counts)
    found = item_intervals([sketches[1] - sketches[0]], np.array([i, j]), 0.05)
    assert found.value.tolist() == [42, -42]
    assert found.bins[0] == found.bins[1]


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
def test_intervals_hold_their_estimates(blocks):
    rng = np.random.default_rng(blocks)
    counts = rng.poisson(20, (2, 500))
    transform = al.SparseJL(input_dim=500, sketch_dim=600, sparsity=blocks, seed="items")
    rows = al.release(al.Protocol(transform, epsilon=1), counts, ledger=al.NO_LEDGER)
    for count in (1, 5, 20):
        found = item_intervals([rows[1] - rows[0]], np.arange(count), 0.05)
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
