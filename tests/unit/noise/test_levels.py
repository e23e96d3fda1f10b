"""Certified inversion, level by level: each is forced through a private source of bits, and judged by the
law's own tail in 60-digit decimals, which knows no inverse function."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from audit.exactness.worst_places import level_1, level_2
from flint import arb

from armslength._flint import precision
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.noise import draw as door
from armslength.noise.draw import SecretBits
from armslength.noise.inversion import OPEN, locate, look_up, look_up_table, polynomial
from armslength.noise.quantile_tables import (
    DOUBLE_DEGREE,
    EXPONENTIAL,
    FLOAT_DEGREE,
    HALF_NORMAL,
    OCTAVES,
    PIECES,
    build,
    double_table,
    float_table,
    quantile_of,
    shift_of,
)
from reference.noise import is_magnitude, tail_bits

SCALES = [0.01, 0.3, 1.0, 50.0, 1e6, 2.0**30, 2.0**40]
LAWS = [DiscreteLaplace, RoundedNormal]
MASK = 2**63 - 1


class Scripted:
    """Words from a list; an error if more are asked for than it has."""

    def __init__(self, words):
        self.rest = list(words)
        self.asked = 0

    def words(self, count):
        assert count <= len(self.rest), "the script has no more bits"
        taken, self.rest = self.rest[:count], self.rest[count:]
        self.asked += count
        return np.array(taken, dtype=np.uint64)


def first_level(law, words):
    """Level 1 on its own: magnitudes, with −1 where it is not certain."""
    return level_1(law, words & np.uint64(MASK))


def hard_words(count, seed):
    """Uniform words, and words with few leading ones: the tail of the law."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**64, count, dtype=np.uint64)
    shifts = generator.integers(0, 62, count).astype(np.uint64)
    return np.concatenate([words, (words & np.uint64(MASK)) >> shifts])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_level_1_is_right_at_both_ends_of_what_it_knows(law, scale):
    noise = law(scale)
    words = hard_words(150, 1)
    answers = first_level(noise, words)
    certain = 0
    for word, answer in zip(words.tolist(), answers.tolist(), strict=True):
        if answer >= 0:
            certain += 1
            m = word & MASK
            # Any continuation of the 63 bits lies in (m, m+1)·2^−63; a hair inside either end must agree.
            assert is_magnitude(noise.name, scale, (m << 64) + 1, 127, answer)
            assert is_magnitude(noise.name, scale, ((m + 1) << 64) - 1, 127, answer)
    assert certain > 150


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_level_2_is_right_at_both_ends_of_what_it_knows(law, scale):
    noise = law(scale)
    words = hard_words(150, 2)
    more = np.random.default_rng(3).integers(0, 2**64, len(words), dtype=np.uint64)
    answers = level_2(noise, words, more)
    certain = 0
    for word, extra, answer in zip(words.tolist(), more.tolist(), answers.tolist(), strict=True):
        if answer >= 0:
            certain += 1
            m = (word & MASK) << 64 | extra
            assert is_magnitude(noise.name, scale, (m << 64) + 1, 191, answer)
            assert is_magnitude(noise.name, scale, ((m + 1) << 64) - 1, 191, answer)
    assert certain > 200


def boundaries(law):
    """Integers n with the W at which the answer changes from n to n − 1, in 255 bits."""
    middle = max(1, int(law.scale))
    wanted = sorted({1, 2, middle, 2 * middle + 1, 3 * middle, 5 * middle})
    found = [(n, tail_bits(law.name, law.scale, n, 255)) for n in wanted]
    return [(n, w) for n, w in found if w >> 192 >= 2**20]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 50.0, 1e6, 2.0**30, 2.0**40])
def test_a_boundary_forces_every_level_and_the_last_one_decides(law, scale):
    noise = law(scale)
    tried = boundaries(noise)
    assert tried
    for n, w in tried:
        first, second, third = w >> 192, w >> 128 & (2**64 - 1), w >> 64 & (2**64 - 1)
        # The first 63 bits straddle the boundary, and so do the first 127.
        assert first_level(noise, np.array([first], dtype=np.uint64))[0] == -1
        assert level_2(noise, *(np.array([word], dtype=np.uint64) for word in (first, second)))[0] == -1
        for below, expected in ((third - 1, n), (third + 1, n - 1)):
            source = Scripted([second, below, 2**63])
            magnitude = door.certain_magnitudes(noise, np.array([first], dtype=np.uint64), source)[0]
            assert magnitude == expected
            assert source.asked == 2
        # Bits that follow the boundary as far as it is known: the last level asks for one word more.
        source = Scripted([second, third, 0])
        assert door.certain_magnitudes(noise, np.array([first], dtype=np.uint64), source)[0] == n
        assert source.asked == 3


@pytest.mark.parametrize("law", LAWS)
def test_a_neighborhood_of_a_boundary_is_split_at_the_right_word(law):
    noise = law(1000.0)
    n = 700
    boundary = tail_bits(noise.name, 1000.0, n, 63)
    words = np.array([boundary + step for step in range(-200, 201)], dtype=np.uint64)
    answers = door.certain_magnitudes(noise, words, SecretBits())
    assert set(answers[:200].tolist()) == {n}
    assert set(answers[201:].tolist()) == {n - 1}
    assert answers[200] in (n, n - 1)


@pytest.mark.parametrize("law", LAWS)
def test_words_of_zero_reach_far_into_the_tail(law):
    noise = law(1.0)
    source = Scripted([0, 12345])
    value = np.zeros(1, dtype=np.int64)
    door.invert_words(value, noise, np.array([0], dtype=np.uint64), source)
    assert source.asked == 2
    assert is_magnitude(noise.name, 1.0, (12345 << 64) + 1, 63 + 192, int(value[0]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 5.0, 50.0, 256.0])
def test_level_0_is_right_at_both_ends_of_every_interval(law, scale):
    noise = law(scale)
    table = look_up_table(quantile_of(noise), scale)
    known = np.flatnonzero(table[: 2**15] != OPEN)
    assert len(known) > 0.88 * 2**15
    chosen = np.unique(np.concatenate([known[:150], known[-150:], known[:: len(known) // 100]]))
    for i in chosen.tolist():
        assert is_magnitude(noise.name, scale, (i << 64) + 1, 15 + 64, int(table[i]))
        assert is_magnitude(noise.name, scale, ((i + 1) << 64) - 1, 15 + 64, int(table[i]))
    assert np.array_equal(table[2**15 :][known], -table[known])
    assert np.array_equal(table[2**15 :] == OPEN, table[: 2**15] == OPEN)
    assert table[0] == OPEN


@pytest.mark.parametrize("law", LAWS)
def test_what_level_0_leaves_open_goes_on_with_the_same_bits(law):
    noise = law(20.0)
    table = look_up_table(quantile_of(noise), 20.0)
    for pattern in np.flatnonzero(table == OPEN)[::37].tolist():
        # One draw takes a quarter of a word, then 48 more bits of its own, then whole words.
        source = Scripted([pattern, 2**64 - 12345, 77, 78, 79])
        value = np.zeros(1, dtype=np.int64)
        door.add_draws(value, noise, source)
        w = (pattern & (2**15 - 1)) << 48 | (2**48 - 12345)
        assert source.asked >= 2
        assert is_magnitude(
            noise.name, 20.0, (w << 64) + (77 if source.asked > 2 else 1), 127, abs(int(value[0]))
        )
        assert value[0] == 0 or (value[0] < 0) == bool(pattern >> 15)


def test_every_place_may_be_open():
    noise = DiscreteLaplace(20.0)
    table = look_up_table(quantile_of(noise), 20.0)
    patterns = np.full(1000, np.flatnonzero(table == OPEN)[5], dtype=np.uint16)
    values, still_open = np.zeros(1000, dtype=np.int64), np.empty(1000, dtype=np.int64)
    assert look_up(patterns, table, values, still_open) == 1000
    assert np.array_equal(still_open, np.arange(1000))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_the_shift_in_two_floats(law, scale):
    quantile = quantile_of(law(scale))
    high, low = shift_of(quantile, scale)
    with precision(300):
        exact = quantile.shift(arb(scale))
        assert abs(exact - arb(high)) <= abs(exact) * 2**-52
        assert abs(exact - arb(high) - arb(low)) <= abs(exact) * 2**-104


@pytest.mark.parametrize("table", [float_table, double_table])
@pytest.mark.parametrize("quantile", [EXPONENTIAL, HALF_NORMAL], ids=["laplace", "gaussian"])
def test_every_radius_holds_at_the_worst_places_of_its_piece(table, quantile):
    made = table(quantile)
    # The radius is not vacuous: a few units in the last place where W is not tiny.
    assert made.radius[: 8 * PIECES].max() < (2.0**-49 if table is float_table else 2.0**-96)
    if table is float_table:
        check_float_radii(made, quantile)
    else:
        check_double_radii(made, quantile)


def test_a_table_built_at_a_low_precision_still_has_true_radii():
    # Other code of the process may set the precision of ball arithmetic while a table is built.
    with precision(24):
        coarse = build(HALF_NORMAL, FLOAT_DEGREE)
    assert coarse.radius[0] > 2.0**-30
    check_float_radii(coarse, HALF_NORMAL)


def check_float_radii(made, quantile):
    for piece in range(0, OCTAVES * PIECES, 3):
        octave, part = divmod(piece, PIECES)
        low = ((PIECES + part) << 57) >> octave
        high = (((PIECES + part + 1) << 57) >> octave) - 1
        for m in (low, low + 1, (low + high) // 2, high - 1, high):
            got_octave, got_piece, offset = locate(np.uint64(m))
            assert (got_octave, got_piece) == (octave, piece)
            tau = float(offset) * 2.0**-56
            value = polynomial(made.high[piece], tau)
            with precision(256):
                for end in (m, m + 1):
                    exact = quantile.value(arb(end) * arb(2) ** -63) if end < 2**63 else arb(0)
                    assert abs(exact - arb(float(value))) <= arb(made.radius[piece])


@pytest.mark.parametrize("quantile", [EXPONENTIAL, HALF_NORMAL], ids=lambda q: q.name)
def test_the_polynomial_rounds_no_more_than_was_counted(quantile):
    made = float_table(quantile)
    generator = np.random.default_rng(3)
    for piece in range(0, OCTAVES * PIECES, 5):
        coefficients = [Fraction(c) for c in made.high[piece].tolist()]
        bound = abs(coefficients[0]) + 12 * sum(map(abs, coefficients[1:]))
        for tau in (*generator.uniform(-1, 1, 8).tolist(), -1.0, 1.0, 0.0, 2.0**-56):
            exact = sum(c * Fraction(tau) ** n for n, c in enumerate(coefficients))
            found = Fraction(polynomial(made.high[piece], tau))
            assert abs(found - exact) <= Fraction(2) ** -53 * bound * (1 + Fraction(2) ** -10)


def check_double_radii(made, quantile):
    for piece in range(0, OCTAVES * PIECES, 3):
        octave, part = divmod(piece, PIECES)
        low = ((PIECES + part) << 57) >> octave
        high = (((PIECES + part + 1) << 57) >> octave) - 1
        for m in (
            low << 64,
            (low << 64) + 2**64 - 1,
            (low + high) // 2 << 64 | 12345,
            (high << 64) + 2**64 - 1,
        ):
            offset = (m << octave) - (2 * (PIECES + part) + 1) * 2**120
            with precision(300):
                tau = arb(offset) * arb(2) ** -120
                value = arb(0)
                for n in range(DOUBLE_DEGREE, -1, -1):
                    value = value * tau + arb(made.high[piece, n]) + arb(made.low[piece, n])
                for end in (m, m + 1):
                    exact = quantile.value(arb(end) * arb(2) ** -127) if end < 2**127 else arb(0)
                    assert abs(exact - value) <= arb(made.radius[piece])


INSPECT = """
import re
from armslength.laws import RoundedNormal
from armslength.noise.draw import draw
from armslength.noise.inversion import invert_double, invert_float

draw(RoundedNormal(2.0**40), (100_000,))
for kernel in (invert_float, invert_double):
    assert kernel.signatures and not sum(kernel.stats.cache_hits.values())
    for text in kernel.inspect_asm().values():
        assert "mulsd" in text or "fmul" in text
        assert not re.search(r"\\bv?f(n?m(add|sub)|ml[as])", text)
    for text in kernel.inspect_llvm().values():
        assert not re.search(r"\\bf(add|mul|sub) .*(fast|contract|reassoc)", text)
"""


def test_the_machine_code_has_no_fused_operations(tmp_path):
    # A fused multiply-add would break Dekker's exact product, and no test of values might notice for long.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", INSPECT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_pieces_cover_every_magnitude():
    for m in (1, 2**19, 2**20 - 1):
        assert locate(np.uint64(m))[0] >= OCTAVES
    assert locate(np.uint64(0))[0] >= OCTAVES
    for m in (2**20, 2**20 + 1, 2**62, 2**63 - 1):
        octave, piece, offset = locate(np.uint64(m))
        assert octave == 63 - m.bit_length()
        center = (2 * (PIECES + piece % PIECES) + 1) * 2**56
        assert offset == (m << octave) - center


@pytest.mark.parametrize("scale", [2.0**30, 2.0**40])
@pytest.mark.parametrize("law", LAWS)
def test_the_share_that_level_1_leaves_open_is_as_predicted(law, scale):
    noise = law(scale)
    words = np.random.default_rng(4).integers(0, 2**63, 1_000_000, dtype=np.uint64)
    answers = first_level(noise, words)
    table = float_table(quantile_of(noise))
    share = (answers < 0).mean()
    # An interval of length 2E around a spot that is uniform between integers holds an integer with
    # probability 2E; E is scale·radius and the rounding, over pieces as likely as they are wide.
    octaves = np.repeat(np.arange(OCTAVES), PIECES)
    likely = 2.0 ** -(1.0 + octaves) / PIECES
    error = scale * table.radius + 2.0**-50 * scale * np.abs(table.high[:, 0])
    predicted = (likely * np.minimum(1, 2 * error)).sum()
    spread = 5 * np.sqrt(predicted / 1_000_000) + 2e-6
    assert abs(share - predicted) < spread + 0.05 * predicted
