"""All pairs of squares, in each of their three ways, and the functions that intervals are read off."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.estimates import squares
from armslength.estimates.rising import RisingFunction
from armslength.protocol.provenance import Released

K = 19
PROTOCOL = al.Protocol(al.SparseJL(40, K, 1, "x"), 1)


def sketches_of(values):
    ids = np.random.default_rng(len(values)).bytes(16 * len(values))
    return al.Sketches(np.array(values), None, Released.of(ids, PROTOCOL), [PROTOCOL])


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
        found = squares.all_squares(one, other, 3.0, 2.0, 0.0)
        expected = 2.0 * (exact_squares(one, other) - 3)
        assert np.allclose(found, expected.astype(float), rtol=1e-14 if largest > 10**4 else 0, atol=0)
    assert np.array_equal(found, found.T)


def test_rounding_is_taken_only_where_it_is_harmless(monkeypatch):
    generator = np.random.default_rng(0)
    left = sketches_of(generator.integers(-(2**26), 2**26, (20, K)))
    used = []
    real = squares._pair_by_pair
    monkeypatch.setattr(squares, "_pair_by_pair", lambda *given: used.append(1) or real(*given))
    longest = 4 * float((np.asarray(left.values, dtype=float) ** 2).sum(axis=1).max())
    harmless = 4 * longest * (K + 8) * 2.0**-53
    expected = exact_squares(left, left).astype(float)
    assert np.abs(squares.all_squares(left, left, 0.0, 1.0, harmless) - expected).max() <= harmless
    assert not used
    squares.all_squares(left, left, 0.0, 1.0, harmless / 1000)
    assert used


def test_chosen_pairs_are_those_of_the_matrix():
    left, right = (sketches_of(np.random.default_rng(i).integers(-99, 99, (6, K))) for i in range(2))
    rows, columns = np.array([0, 5, 5]), np.array([3, 0, 5])
    expected = exact_squares(left, right)[rows, columns].astype(float)
    assert np.array_equal(squares.chosen_squares(left, right, rows, columns), expected)


@pytest.mark.parametrize("flat", [False, True])
def test_a_rising_function_is_its_interpolation(flat):
    places = -3.0 + 50 * np.sinh(np.linspace(0, 12, 4096))
    values = np.sqrt(places + 3.0) + 0.2 * (places + 3.0)
    if flat:
        places[:40] = places[0]  # it jumps at its origin
    function = RisingFunction.of(places, values, 50 * 2.0**-24, np.inf)
    generator = np.random.default_rng(5)
    asked = np.concatenate(
        [places[0] + 10 ** generator.uniform(-3, np.log10(places[-1]), 100_000), places[40:-1], [-1e9, -3.1]]
    )
    asked = asked[asked < places[-1]]
    found = np.empty_like(asked)
    function.read(asked, found)
    expected = np.where(asked < places[0], 0.0, np.interp(asked, places, values))
    error = np.abs(found - expected) / (expected + 1e-9)
    assert (
        error.max() <= 2e-3
    )  # in a cell with a corner of the interpolation, which is itself no better there
    assert error[asked > places[100]].max() <= 1e-5
    beyond = np.array([places[-1] * 1.01, np.inf])
    function.read(beyond, found[:2])
    assert np.isinf(found[:2]).all()


def test_the_lower_end_is_0_exactly_up_to_the_threshold():
    function = RisingFunction.of(np.array([10.0, 20.0, 30.0]), np.array([0.0, 5.0, 9.0]), 1e-9, 9.0)
    asked = np.array([np.nextafter(10.0, 0), 10.0, np.nextafter(10.0, 11), -np.inf, np.nan])
    found = np.empty(5)
    function.read(asked, found)
    assert found[0] == found[1] == found[3] == found[4] == 0.0
    assert found[2] > 0


def test_estimates_do_not_depend_on_how_squares_are_made(monkeypatch):
    sketches = PROTOCOL.release(np.random.default_rng(1).poisson(5, (60, 40)), ledger=al.NO_LEDGER)
    both = al.concat([sketches, sketches[3] + sketches[4], sketches[0] * 2])
    fast = al.squared_distances(both)
    monkeypatch.setattr(squares, "_products_will_do", lambda *_: False)
    slow = al.squared_distances(both)
    assert np.allclose(fast.value, slow.value, rtol=1e-12, atol=1e-9)
    assert (np.diag(fast.value) == 0).all()
    for one, other in zip(fast.interval(), slow.interval(), strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6)
