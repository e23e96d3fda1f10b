"""The filter of exact search: a pair always passes when the worst answer so far is the pair itself."""

from types import SimpleNamespace

import numpy as np
import pytest

from armslength._numba import PAIR_ROWS, PAIR_WIDTH
from armslength.answers import exact, heaps, rounding
from armslength.answers.heaps import Columns, Heaps, meet
from armslength.answers.rounding import Center, Rounded, margin

RNG = np.random.default_rng(21)
STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers():
    RNG.bit_generator.state = STATE  # whatever has run before


def unpacked(words):
    return words.view(np.int16).reshape(len(words), -1).astype(np.int64)


def lost(queries, rows, bias=0.0, unit=1.0):
    """How many pairs do not pass, each with the limit that the hot loop itself sets once it has met that pair alone."""
    n, k = queries.shape
    center, asked = exact._prepared(SimpleNamespace(values=queries, offsets=np.zeros(n)), queries.dtype)
    order = np.array([0] + [-1] * (PAIR_WIDTH - 1))
    nobody = np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    count = 0
    for row in rows:
        values, offsets = row[None], np.zeros(1)
        rounded = Rounded.of(values, offsets, order, PAIR_WIDTH, center)
        assert rounded.scale[0] > 0
        w, z = rounded.column_factors(center, order)
        held = Heaps.empty(1, np.full(n, bias), unit)
        meet(asked, Columns(values, offsets, 0, rounded.words, order, w, z, nobody), (0, 1), held, (0, n))
        assert (
            np.isfinite(held.x).mean() > 0.5
        )  # a query that is the center itself is not rounded, and passes always
        integers = unpacked(np.ascontiguousarray(rounded.words[0].T))
        products = (unpacked(asked.words)[:n] @ integers.T + margin(k)).astype(np.int32)
        count += sum(1 - heaps._passing(products[i], held.x[i], asked.y[i], w, z) for i in range(n))
    return count


@pytest.mark.parametrize("coordinates", [1, 2, 7, 256])
@pytest.mark.parametrize("longer", [-36, -17, 0, 17, 24, 36])
def test_no_length_loses_a_pair(coordinates, longer):
    queries = RNG.normal(0, 1, (2 * PAIR_ROWS, coordinates))
    rows = RNG.normal(0, 1, (40, coordinates)) * 2.0**longer
    assert lost(queries, rows) == 0


@pytest.mark.parametrize("digits", [0, 20, 45, 50, 54])
def test_no_noise_loses_a_pair(digits):
    # Noise that is far larger than distances takes their last digits, and turning units back and forth some more.
    queries = RNG.normal(0, 100, (2 * PAIR_ROWS, 3))
    rows = queries[0] + RNG.normal(0, 100, (40, 3))
    assert lost(queries, rows, bias=1e5 * 2.0**digits / 3, unit=0.3) == 0


def test_rows_are_lowered_by_what_float32_may_take():
    values = RNG.normal(0, 1, (32, 9)) * 2.0 ** RNG.integers(-9, 9, (32, 1))
    center = Center(np.zeros(9), 0.0, 1.0)
    order = np.arange(32)
    rounded = Rounded.of(values, np.full(32, 0.5), order, PAIR_WIDTH, center)
    _, z = rounded.column_factors(center, order)
    lowered = rounded.square - z.astype(np.float64) * rounded.scale * center.length
    np.testing.assert_allclose(lowered, 2.0**-20 * rounded.slack, atol=0, rtol=0.1)
    assert (rounded.slack > rounded.square + 2).all()


@pytest.mark.parametrize("coordinates", [1, 1024, 2**16, 2**22])
def test_the_margin_is_that_of_the_proof(coordinates):
    beyond = margin(coordinates) - rounding._NORM * np.sqrt(coordinates) - coordinates / 4
    assert 256 <= beyond < 257
