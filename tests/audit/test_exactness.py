"""The noise drawn twice from the same bits; the second implementation itself, in decimals of another library; and that the audit has teeth."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from audit.exactness import streams, worst_places
from audit.exactness.radii import exact_quantile, level_1_shares, level_2_shares
from audit.exactness.rates import Rate, counted_rate, table_rate, windowed_rate
from audit.exactness.streams import LAWS, Replay, compared, compared_at_once, random_streams, stream_of
from audit.exactness.worst_places import forced_levels, worst_streams

from armslength.laws import DiscreteLaplace
from armslength.noise import quantile_tables
from armslength.noise.quantile_tables import quantile_of
from reference.draws import _pi, certain_magnitude, draw, enclosed_tail
from reference.noise import is_magnitude, tail

SCALES = [0.01, 0.3, 1.0, 50.0, 256.0, math.nextafter(256.0, 300), 1e6, 2.0**40]
NAMES = ["laplace", "gaussian"]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_both_draw_the_same_integers(law, scale):
    noise, generator = law(scale), np.random.default_rng(int(scale) % 1000)
    for found in (
        compared(noise, random_streams(100, generator)),
        compared_at_once(noise, 203, generator),
        compared(noise, worst_streams(noise, generator, 30)),
    ):
        assert found.streams >= 100
        assert (found.different, found.odd) == (0, 0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1e6, 2.0**40])
def test_a_level_alone_is_never_wrong(law, scale):
    for forced in forced_levels(law(scale), np.random.default_rng(1), 60):
        assert forced.wrong == 0
        assert 0 < forced.certain < forced.words


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.3, 1.0, 77.7, 2.0**40])
def test_enclosed_tails_hold_the_true_one_and_are_narrow(name, scale):
    for multiple in (0.001, 0.5, 1, 4, 11):
        n = max(1, round(scale * multiple))
        for bits in (79, 200, 600):
            found = enclosed_tail(name, scale, n, bits)
            with mpmath.workprec(2000):
                exact = mpmath.ldexp(tail(name, scale, n), bits)
                assert found.low <= exact <= found.high
            assert found.high - found.low <= 8


def test_pi():
    with mpmath.workprec(700):
        assert _pi(500).low <= mpmath.ldexp(mpmath.pi, 500) <= _pi(500).high


@pytest.mark.parametrize("name", NAMES)
def test_far_into_the_tail_and_next_to_one(name):
    for scale in (0.01, 1.0, 2.0**40):
        for revealed, bits in ((1, 63), (3, 400), (2**63 - 1, 63), (2**64 - 3, 64)):
            n = certain_magnitude(name, scale, revealed, bits)
            if n is not None:
                assert is_magnitude(name, scale, 2 * revealed + 1, bits + 1, n)
    assert certain_magnitude(name, 1.0, 0, 63) is None
    # one interval that holds a change point, and its two neighbors
    point = enclosed_tail(name, 1000.0, 700, 63 + 64).low >> 64
    answers = [certain_magnitude(name, 1000.0, point + step, 63) for step in (-1, 0, 1)]
    assert answers == [700, None, 699]


def test_a_poor_guess_is_mended(monkeypatch):
    for wrong in (0, 10**5):
        monkeypatch.setattr("reference.draws._guess", lambda *_, wrong=wrong: wrong)
        assert draw("laplace", 1000.0, [2**62, 5]).value == 693


def test_words_are_used_as_specified():
    # Small scales: the low 16 bits of the first word, the low 48 of the second, then whole words.
    w = enclosed_tail("laplace", 20.0, 5, 127 + 64).low >> 64
    stream = stream_of(20.0, w, 127, np.random.default_rng(2), following=0)
    first = (stream[0] & 0x7FFF) << 48 | stream[1] & 2**48 - 1
    assert (first << 64 | stream[2]) == w
    assert draw("laplace", 20.0, stream).needed == 4
    assert stream_of(2.0**40, 2**126 + 5, 127, np.random.default_rng(2))[1] == 5
    with pytest.raises(ValueError, match="too short"):
        draw("laplace", 2.0**40, [0])
    with pytest.raises(IndexError, match="no more words"):
        Replay([1]).words(2)


@pytest.mark.parametrize("factor", [1 - 2.0**-44, 1 + 2.0**-44])
def test_a_scale_that_is_off_by_its_last_bits_is_noticed(factor, monkeypatch):
    law = DiscreteLaplace(1e6)
    monkeypatch.setattr(
        streams, "add_draws", lambda values, _law, source: real(values, DiscreteLaplace(1e6 * factor), source)
    )
    assert compared(law, worst_streams(law, np.random.default_rng(3), 0)).different > 0


real = streams.add_draws


def test_a_level_that_trusts_its_floats_is_noticed(monkeypatch):
    law = DiscreteLaplace(2.0**40)
    table = quantile_tables.float_table(quantile_of(law))
    bold = quantile_tables.QuantileTable(table.high, table.low, table.radius * 0.0)
    monkeypatch.setattr(worst_places, "float_table", lambda _: bold)
    assert forced_levels(law, np.random.default_rng(4), 200)[0].wrong > 0


@pytest.mark.parametrize("law", LAWS)
def test_true_errors_are_within_the_proved_ones(law):
    pieces = range(0, quantile_tables.OCTAVES * quantile_tables.PIECES, 300)
    for scale in (0.3, 2.0**40):
        for shares in (level_1_shares, level_2_shares):
            found = shares(law(scale), pieces, np.random.default_rng(5))
            assert found.points > 80
            assert 0.1 < found.radius <= 1
            assert 0.1 < found.decision <= 1


def test_the_quantile_in_decimals():
    with mpmath.workdps(60):
        for w in ("0.999", "0.5", "1e-13"):
            z = exact_quantile("gaussian", mpmath.mpf(w))
            assert abs(mpmath.erfc(z / mpmath.sqrt(2)) / mpmath.mpf(w) - 1) < mpmath.mpf("1e-45")
        assert exact_quantile("gaussian", mpmath.mpf(1)) == 0


@pytest.mark.parametrize("law", LAWS)
def test_levels_pass_on_as_often_as_predicted(law):
    generator = np.random.default_rng(6)
    assert all(rate.uncertain == rate.predicted for rate in map(table_rate, (law(0.01), law(1.0), law(50.0))))
    rate = counted_rate(law(2.0**40), 12_000_000, generator)
    assert rate.fits()
    assert rate.has_teeth
    assert all(
        windowed_rate(law(scale), n, 4000, generator).fits()
        for scale, n in ((0.3, 1), (50.0, 70), (2.0**40, 2**40))
    )


def test_a_count_that_is_off_by_a_tenth_does_not_fit():
    assert Rate(10**8, 30_000, 30_000).has_teeth
    assert not Rate(10**8, 33_000, 30_000).fits()
    assert not Rate(10**8, 300, 300).has_teeth
    assert Rate(100, 0, Fraction(1, 10)).fits()
