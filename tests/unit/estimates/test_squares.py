"""All pairs of squares, in each of their three ways, and the functions that intervals are read off."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.estimates import distances, quantiles
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.pair_noise import row_noises
from armslength.estimates.quantiles import RisingFunction
from armslength.sketches.noises import Released

K = 19
PROTOCOL = al.Protocol(al.SparseJL(input_dim=40, sketch_dim=K, sparsity=1, seed="x"), epsilon=1)


def sketches_of(values):
    ids = np.random.default_rng(len(values)).bytes(16 * len(values))
    return al.Sketches(np.array(values), None, Released.of(ids, PROTOCOL, "rows"), [PROTOCOL])


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
        found = distances.all_squares(one, other, 3.0, 2.0, 0.0)
        expected = 2.0 * (exact_squares(one, other) - 3)
        assert np.allclose(found, expected.astype(float), rtol=1e-14 if largest > 10**4 else 0, atol=0)
    assert np.array_equal(found, found.T)


def test_rounding_is_taken_only_where_it_is_harmless(monkeypatch):
    generator = np.random.default_rng(0)
    left = sketches_of(generator.integers(-(2**26), 2**26, (20, K)))
    used = []
    real = distances._pair_by_pair
    monkeypatch.setattr(distances, "_pair_by_pair", lambda *given: used.append(1) or real(*given))
    longest = 4 * float((np.asarray(left.values, dtype=float) ** 2).sum(axis=1).max())
    harmless = 4 * longest * (K + 8) * 2.0**-53
    expected = exact_squares(left, left).astype(float)
    assert np.abs(distances.all_squares(left, left, 0.0, 1.0, harmless) - expected).max() <= harmless
    assert not used
    distances.all_squares(left, left, 0.0, 1.0, harmless / 1000)
    assert used


def test_chosen_pairs_are_those_of_the_matrix():
    left, right = (sketches_of(np.random.default_rng(i).integers(-99, 99, (6, K))) for i in range(2))
    rows, columns = np.array([0, 5, 5]), np.array([3, 0, 5])
    expected = exact_squares(left, right)[rows, columns].astype(float)
    assert np.array_equal(distances.chosen_squares(left, right, rows, columns), expected)


def searched(places, values, asked):
    return np.where(asked < places[0], 0.0, np.interp(asked, places, values))


def test_a_rising_function_is_its_interpolation():
    values = 50 * np.sinh(np.linspace(0, 12, 4096))
    places = values + 3 * np.sqrt(values**2 / 100 + 40 * values + 900)
    function = RisingFunction.of(places, values, 50 * 2.0**-24, beyond=np.inf, zero_at_origin=False)
    assert function.has_cells
    generator = np.random.default_rng(5)
    far = places[0] + 10 ** generator.uniform(-3, np.log10(places[-1]), 100_000)
    asked = np.concatenate([far, places, [-1e9, places[0] - 0.1]])
    asked = asked[asked <= places[-1]]
    found = np.empty_like(asked)
    function.read(asked, found)
    expected = searched(places, values, asked)
    assert (np.abs(found - expected) <= 1e-4 * np.abs(asked - expected)).all()
    beyond = np.array([np.nextafter(places[-1], np.inf), places[-1] * 1.01, np.inf])
    function.read(beyond, found[:3])
    assert np.isinf(found[:3]).all()


def test_a_function_that_jumps_is_searched():
    values = np.linspace(0, 100, 4096)
    places = np.maximum.accumulate(10 + values - 8 * (values > 50))  # it stands still from 50 to 58
    function = RisingFunction.of(places, values, 1e-6, beyond=100.0, zero_at_origin=True)
    assert not function.has_cells
    asked = np.random.default_rng(1).uniform(0, places[-1], 1000)
    found = np.empty_like(asked)
    function.read(asked, found)
    assert np.array_equal(found, searched(places, values, asked))


@pytest.mark.parametrize("jumps", [False, True])
def test_what_happens_at_the_origin(jumps):
    places, values = np.array([10.0, 20.0, 30.0]), np.array([0.0, 5.0, 9.0])
    if jumps:
        places[1] = 10.0
    asked = np.array([np.nextafter(10.0, 0), 10.0, np.nextafter(10.0, 11), -np.inf, np.nan])
    found = np.empty(5)
    for zero_at_origin in (True, False):
        function = RisingFunction.of(places, values, 1e-9, beyond=9.0, zero_at_origin=zero_at_origin)
        function.read(asked, found)
        assert found[0] == found[3] == 0.0
        assert found[1] == (0.0 if zero_at_origin or not jumps else 5.0)
        assert found[2] > (4.9 if jumps else 0)
        assert np.isnan(found[4])


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
def test_intervals_are_those_of_a_search(epsilon, transform, level, monkeypatch):
    # Where noise is nearly always 0 the limits have steps, which cells would smear: an end was once off by half.
    protocol = al.Protocol(transform, epsilon=epsilon)
    row = protocol.release(np.zeros((1, transform.input_dim), dtype=int), ledger=al.NO_LEDGER)
    rule = interval_rule(protocol, row_noises(row).groups[0][0])
    asked = np.concatenate(
        [
            np.linspace(-2, 4, 5000),
            10 ** np.linspace(1, 9, 500),
            rule._limits(np.zeros(1), Level.of(level, "spread", 1))[0],
        ]
    )
    found = rule.interval(asked, Level.of(level, "spread", 1))
    monkeypatch.setattr(quantiles, "_HARMLESS", -1.0)
    expected = rule.interval(asked, Level.of(level, "spread", 1))
    for ours, theirs in zip(found, expected, strict=True):
        assert np.array_equal(np.isinf(ours), np.isinf(theirs))
        assert np.array_equal(ours == 0, theirs == 0)
        finite = np.isfinite(theirs)
        assert (np.abs(ours - theirs)[finite] <= 2e-4 * np.abs(asked - theirs)[finite]).all()


def test_estimates_do_not_depend_on_how_squares_are_made(monkeypatch):
    sketches = PROTOCOL.release(np.random.default_rng(1).poisson(5, (60, 40)), ledger=al.NO_LEDGER)
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
    parts = [protocol.release(x, ledger=al.NO_LEDGER) for protocol in (loud, quiet)]
    for order in (parts, parts[::-1], [parts[0], al.sketch_in_clear(loud, x)]):
        estimate = al.squared_distances(al.concat(order))
        first = 0 if order is not parts and order[0] is parts[1] else 3
        found = estimate.value[first : first + 3, first : first + 3]
        assert np.abs(found - np.array([[0, 9, 16], [9, 0, 1], [16, 1, 0]])).max() < 1e-5


def test_no_rows_have_no_distances():
    sketches = PROTOCOL.release(np.ones((3, 40), dtype=int), ledger=al.NO_LEDGER)
    none = sketches[[]]
    for pair, shape in (((none,), (0, 0)), ((none, sketches), (0, 3)), ((sketches, none), (3, 0))):
        estimate = al.squared_distances(*pair)
        assert estimate.value.shape == estimate.variance.shape == estimate.interval()[0].shape == shape


def test_a_row_that_comes_twice_is_the_same_row():
    sketches = PROTOCOL.release(np.random.default_rng(2).poisson(5, (4, 40)), ledger=al.NO_LEDGER)
    estimate = al.squared_distances(sketches[[0, 2, 0, 3]])
    assert estimate.value[0, 2] == estimate.value[2, 0] == 0
    assert estimate.variance[0, 2] == 0
    assert estimate.variance[0, 1] > 0
    other = al.squared_distances(sketches[[0, 2]], sketches[[2, 3]])
    assert other.value[1, 0] == 0
    assert (np.delete(other.variance.ravel(), 2) > 0).all()
