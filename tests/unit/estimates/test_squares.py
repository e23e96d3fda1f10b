"""All pairs of squares, in each of their ways, and the intervals that are read off a table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.estimates import distances, intervals
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.pair_noise import PairNoise
from armslength.estimates.variance import ErrorModel
from armslength.sketches.noises import Noises

K = 19
PROTOCOL = al.Protocol(al.SparseJL(input_dim=40, sketch_dim=K, sparsity=1, seed="x"), epsilon=1)


def sketches_of(values):
    ids = np.random.default_rng(len(values)).bytes(16 * len(values))
    return al.Sketches(np.array(values), None, Noises.fresh(ids, PROTOCOL, "rows"), [PROTOCOL])


def exact_squares(left, right):
    """In Python integers, differences modulo 2^64."""
    a, b = left.values.astype(object), right.values.astype(object)
    difference = (a[:, None, :] - b[None, :, :] + 2**63) % 2**64 - 2**63
    return (difference**2).sum(axis=2)


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 110),
    m=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    largest=st.sampled_from([5, 10**4, 2**31]),
    base=st.sampled_from([0, 10**6, 2**63 - 1]),
)
def test_all_squares_are_exact_where_they_say_so(n, m, seed, largest, base):
    generator = np.random.default_rng(seed)
    # A part that all rows have in common, up to the end of the ring, costs nothing.
    common = np.full(K, base, dtype=np.int64)
    left, right = (sketches_of(generator.integers(-largest, largest, (rows, K)) + common) for rows in (n, m))
    for one, other in ((left, right), (left, left)):
        found = distances.all_squares(one.values, other.values, 0.0)
        expected = exact_squares(one, other)
        assert np.allclose(found, expected.astype(float), rtol=1e-14 if largest > 10**4 else 0, atol=0)
    assert np.array_equal(found, found.T)


def test_rounding_is_taken_only_where_it_is_harmless(monkeypatch):
    generator = np.random.default_rng(0)
    left = sketches_of(generator.integers(-(2**26), 2**26, (20, K)))
    used = []
    real = distances.chosen_squares
    monkeypatch.setattr(distances, "chosen_squares", lambda *given: used.append(1) or real(*given))
    longest = 4 * float((np.asarray(left.values, dtype=float) ** 2).sum(axis=1).max())
    harmless = 4 * longest * (K + 8) * 2.0**-53
    expected = exact_squares(left, left).astype(float)
    assert np.abs(distances.all_squares(left.values, left.values, harmless) - expected).max() <= harmless
    assert not used
    distances.all_squares(left.values, left.values, harmless / 1000)
    assert used


def test_chosen_pairs_are_those_of_the_matrix():
    left, right = (sketches_of(np.random.default_rng(i).integers(-99, 99, (6, K))) for i in range(2))
    rows, columns = np.array([0, 5, 5]), np.array([3, 0, 5])
    expected = exact_squares(left, right)[rows, columns].astype(float)
    assert np.array_equal(distances.chosen_squares(left.values, right.values, rows, columns), expected)


@pytest.mark.parametrize("epsilon", [0.3, 3, 8, 20])
@pytest.mark.parametrize(
    "transform",
    [
        al.Identity(input_dim=3),
        al.Identity(input_dim=300),
        al.SparseJL(input_dim=300, sketch_dim=256, sparsity=1, seed="x"),
    ],
)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_intervals_are_those_of_a_fine_search(epsilon, transform, level, monkeypatch):
    # Where noise is nearly always 0 the limits have steps.
    protocol = al.Protocol(transform, epsilon=epsilon)
    row = al.release(protocol, np.zeros((1, transform.input_dim), dtype=int), ledger=al.NO_LEDGER)
    rule = interval_rule(ErrorModel.of(protocol), PairNoise.of(row.noises.terms(0)))
    threshold = rule.smallest_resolved(Level.of(level, "asymptotic", 1))
    asked = np.concatenate(
        [np.linspace(-2, 4, 5000), 10 ** np.linspace(1, 9, 500), [threshold, np.nan, np.inf]]
    )
    one = Level.of(level, "asymptotic", 1)
    coarse = rule.interval(asked, one)
    monkeypatch.setattr(intervals, "_NODES_PER_UNIT", 4096)
    # Two nodes differ by 0.4 percent: near a step, an end is that of an estimate which is as near.
    near = 0.005 * (np.abs(asked[:-2]) + np.sqrt(rule.curve.c))
    fine, less, more = (rule.interval(each, one) for each in (asked, asked[:-2] - near, asked[:-2] + near))
    for end in (0, 1):
        assert np.array_equal(np.isinf(coarse[end]), np.isinf(fine[end]))
        assert np.array_equal(coarse[end] == 0, fine[end] == 0)
        assert np.isnan(coarse[end][-2])
        assert (less[end] <= coarse[end][:-2] * (1 + 1e-5)).all()
        assert (coarse[end][:-2] <= more[end] * (1 + 1e-5)).all()


def test_estimates_do_not_depend_on_how_squares_are_made(monkeypatch):
    sketches = al.release(PROTOCOL, np.random.default_rng(1).poisson(5, (60, 40)), ledger=al.NO_LEDGER)
    both = al.concat([sketches, sketches[3] + sketches[4], sketches[0] * 2])
    fast = al.squared_distances(both)
    monkeypatch.setattr(distances, "_products_will_do", lambda *_: False)
    slow = al.squared_distances(both)
    assert np.allclose(fast.value, slow.value, rtol=1e-12, atol=1e-9)
    assert (np.diag(fast.value) == 0).all()
    for one, other in zip(fast.interval(), slow.interval(), strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_a_small_noise_beside_a_large_one_keeps_its_digits():
    identity = al.Identity(input_dim=1000)
    loud, quiet = (
        al.Protocol(identity, epsilon="1e-8", noise="laplace"),
        al.Protocol(identity, epsilon=40, noise="laplace"),
    )
    x = np.zeros((3, 1000), dtype=int)
    x[1, 0], x[2, 0] = 3, 4
    parts = [al.release(protocol, x, ledger=al.NO_LEDGER) for protocol in (loud, quiet)]
    for order in (parts, parts[::-1], [parts[0], al.sketch_in_clear(loud, x)]):
        estimate = al.squared_distances(al.concat(order))
        first = 0 if order is not parts and order[0] is parts[1] else 3
        found = estimate.value[first : first + 3, first : first + 3]
        assert np.abs(found - np.array([[0, 9, 16], [9, 0, 1], [16, 1, 0]])).max() < 1e-5


def test_no_rows_have_no_distances():
    sketches = al.release(PROTOCOL, np.ones((3, 40), dtype=int), ledger=al.NO_LEDGER)
    none = sketches[[]]
    for pair, shape in (((none,), (0, 0)), ((none, sketches), (0, 3)), ((sketches, none), (3, 0))):
        estimate = al.squared_distances(*pair)
        assert estimate.value.shape == estimate.variance.shape == estimate.interval()[0].shape == shape


def test_a_row_that_comes_twice_is_the_same_row():
    sketches = al.release(PROTOCOL, np.random.default_rng(2).poisson(5, (4, 40)), ledger=al.NO_LEDGER)
    estimate = al.squared_distances(sketches[[0, 2, 0, 3]])
    assert estimate.value[0, 2] == estimate.value[2, 0] == 0
    assert estimate.variance[0, 2] == 0
    assert estimate.variance[0, 1] > 0
    other = al.squared_distances(sketches[[0, 2]], sketches[[2, 3]])
    assert other.value[1, 0] == 0
    assert (np.delete(other.variance.ravel(), 2) > 0).all()
