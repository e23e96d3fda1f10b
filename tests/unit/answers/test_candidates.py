"""The filter of the search: no rounding loses a pair, and a pair that it cannot judge is always a candidate."""

import numpy as np
import pytest

from armslength.answers import candidates
from armslength.answers.candidates import Origin, margin

RNG = np.random.default_rng(21)
STATE = RNG.bit_generator.state
KINDS = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def same_numbers():
    RNG.bit_generator.state = STATE  # whatever has run before


def products(left, right):
    """⟨a, b⟩ in the floats of the rows, with the sums in several orders."""
    yield left @ right.T
    terms = left[:, None, :] * right[None, :, :]
    for order in (np.s_[:], np.s_[::-1]):
        yield np.cumsum(terms[:, :, order], axis=2, dtype=terms.dtype)[:, :, -1]
    rising = np.take_along_axis(terms, np.argsort(terms, axis=2), axis=2)
    yield np.cumsum(rising, axis=2, dtype=terms.dtype)[
        :, :, -1
    ]  # negative ones first: partial sums are as large as can be


def ruled_out(queries, rows, kind, share, *, bias=0.0, unit=1.0):
    """How many pairs would be lost if each were exactly as far as the worst answer of its query."""
    origin = Origin(queries)
    left, right = (origin.float_rows(side, kind) for side in (queries, rows))
    assert np.isfinite(right.square).all()
    half = ((right.square - share * right.slack) / 2).astype(kind)
    i, j = (each.ravel() for each in np.indices((len(queries), len(rows))))
    raw = candidates.chosen_squares(left.exact, right.exact, i, j).reshape(len(queries), -1)
    worst = unit * (raw - bias)
    most, noise = worst / unit * origin.scale**2, bias * origin.scale**2
    lowered = share * (left.slack[:, None] + np.abs(most) + noise)
    limit = ((left.square[:, None] - (most + noise) - lowered) / 2).astype(kind)
    return sum(int((product - half < limit).sum()) for product in products(left.floats, right.floats))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coordinates", [1, 2, 7, 256])
@pytest.mark.parametrize("longer", [-36, -17, 0, 17, 24, 36])
def test_no_length_loses_a_pair(kind, coordinates, longer):
    queries = RNG.normal(0, 1, (20, coordinates))
    rows = RNG.normal(0, 1, (40, coordinates)) * 2.0**longer
    assert ruled_out(queries, rows, kind, margin(coordinates, kind)) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("digits", [0, 20, 45, 50, 54])
def test_no_noise_loses_a_pair(kind, digits):
    # Noise that is far larger than distances takes their last digits, and turning units back and forth some more.
    queries = RNG.normal(0, 100, (20, 3))
    rows = queries[0] + RNG.normal(0, 100, (40, 3))
    assert ruled_out(queries, rows, kind, margin(3, kind), bias=1e5 * 2.0**digits / 3, unit=0.3) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_margin_pairs_are_lost(kind):
    common = (
        RNG.normal(0, 1, 256) * 1000
    )  # which the origin takes from the queries, but not from what lies around them
    queries = RNG.normal(0, 1, (20, 256)) + common * RNG.choice([-1, 1], (20, 1))
    rows = RNG.normal(0, 1, (40, 256)) + common
    assert ruled_out(queries, rows, kind, 0.0) > 100
    assert ruled_out(queries, rows, kind, margin(256, kind)) == 0


@pytest.mark.parametrize("coordinates", [1, 256, 2**17])
def test_the_margin_is_that_of_the_proof(coordinates):
    unit = 2.0**-24
    gamma = (coordinates + 3) * unit / (1 - (coordinates + 3) * unit)
    doubles = 3 * (coordinates + 6) * 2.0**-53
    assert margin(coordinates, np.float32) > gamma + 4 * unit + doubles
    assert margin(coordinates, np.float32) < 1.2 * gamma + 20 * unit
    tiny = (coordinates + 3) * 2.0**-53
    assert margin(coordinates, np.float64) > tiny / (1 - tiny) + 4 * 2.0**-53 + doubles


@pytest.mark.parametrize("kind", KINDS)
def test_rows_too_far_for_floats_are_marked(kind):
    queries = RNG.integers(-50, 50, (9, 4))
    origin = Origin(queries)
    rows = np.tile(queries[0], (6, 1))
    rows[1, 2] += 2**61  # differences of such could wrap
    rows[2] -= 2**50  # 2^40 times as long as a query
    rows[3, 0] += 2**30
    rows[4, 3] = -(2**63)
    found = origin.float_rows(rows, kind)
    assert np.isneginf(found.square).tolist() == [False, True, True, False, True, False]
    assert not found.floats[[1, 2, 4]].any()


@pytest.mark.parametrize("outlier", [2**20, 2**40, 2**60])
@pytest.mark.parametrize("place", [0, 7])
def test_an_outlier_moves_the_origin_little(outlier, place):
    values = RNG.integers(-300, 300, (50, 16))
    with_outlier = values.copy()
    with_outlier[place] += outlier
    alone, beside = (Origin(each).scale for each in (values, with_outlier))
    assert alone / 2 <= beside <= alone


def test_equal_rows_have_an_origin():
    origin = Origin(np.full((5, 3), -(2**63)))
    assert origin.scale == 1
    assert not origin.float_rows(np.full((5, 3), -(2**63)), np.float32).floats.any()
