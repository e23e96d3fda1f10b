"""Each building block of the public randomness against the second implementation."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from armslength.errors import InputError
from armslength.randomness import sampling
from armslength.randomness.hashing import (
    PRIME,
    canonical,
    hash_coefficients,
    hash_value,
    item_words,
    multiply_add,
    scaled_to,
    uniform_field_elements,
)
from armslength.randomness.sampling import (
    ACHLIOPTAS_TABLE,
    NORMAL_TABLE,
    NORMAL_TAILS,
    _shuffle_down,
    sparse_normal_table,
    uniform_permutation,
    uniform_sample,
)
from armslength.randomness.seeds import Stream, derive_key
from reference import spec

SEED, PURPOSE = "trial-2026", "a test"
BELOW_PRIME = st.integers(0, PRIME - 1)


def split(number):
    return np.uint64(number >> 64), np.uint64(number & (2**64 - 1))


def join(words):
    return int(words[0]) << 64 | int(words[1])


@given(st.text(min_size=1, max_size=9, alphabet=st.characters(codec="utf-8", exclude_categories=["Cn"])))
def test_keys(seed):
    assert derive_key(seed, PURPOSE) == spec.key(seed, PURPOSE)


def test_words_and_bits_at_any_position():
    stream, naive = Stream(SEED, PURPOSE), spec.Stream(SEED, PURPOSE)
    for start, count in [(0, 10), (1, 10), (7, 1), (2, 0), (123, 5)]:
        assert stream.words(start, count).tolist() == [naive.word(i) for i in range(start, start + count)]
    for start, count in [(0, 200), (63, 3), (64, 64), (1000, 1)]:
        assert stream.bits(start, count).tolist() == [naive.bit(i) for i in range(start, start + count)]


def test_positions_far_beyond_the_start():
    # Block 2^33: a 32-bit counter would have come back to the start.
    far = Stream(SEED, PURPOSE).words(2**34, 1)[0]
    assert far == spec.Stream(SEED, PURPOSE).word(2**34)
    assert far != Stream(SEED, PURPOSE).words(0, 1)[0]


@given(st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1)))
@example("é")
@example("é")
@example("")
def test_items(item):
    try:
        words = item_words([item])
    except InputError:
        with pytest.raises(ValueError, match=r"."):
            spec.item_number(item)
        return
    assert join(words[0]) == spec.item_number(item)


def test_items_from_arrays_ranges_and_lists_agree():
    for listed, other in [
        ([1, 2, -3], np.array([1, 2, -3], dtype=np.int16)),
        ([0, 1, 2], range(3)),
        (["a", "é"], np.array(["a", "é"])),
        (["a", "é"], np.array(["a", "é"], dtype=object)),
    ]:
        assert np.array_equal(item_words(listed), item_words(other))
    assert item_words([]).shape == (0, 2)
    assert item_words(["a"])[0, 0] < 2**56


@given(BELOW_PRIME, BELOW_PRIME, BELOW_PRIME)
@example(PRIME - 1, PRIME - 1, PRIME - 1)
@example(2**127 - 2**64, 2**127 - 2**64, 0)
@example(2**64 - 1, 2**64 - 1, 1)
def test_field_arithmetic(a, x, c):
    # Numba hands words to Python as plain ints, which the next kernel would read as signed.
    high, low = multiply_add(*split(a), *split(x), *split(c))
    assert join(canonical(np.uint64(high), np.uint64(low))) == (a * x + c) % PRIME


@given(st.integers(0, 2**127))
@example(PRIME)
@example(2**127)
def test_canonical_form(number):
    assert join(canonical(*split(number))) == number % PRIME


@given(BELOW_PRIME, st.integers(1, 2**62))
@example(PRIME - 1, 2**62)
def test_buckets(value, bound):
    assert scaled_to(*split(value), np.uint64(bound)) == value * bound >> 127


@pytest.mark.parametrize("t", [4, 5, 16, 64])
def test_hash_functions(t):
    coefficients = hash_coefficients(SEED, PURPOSE, 3, t)
    for number in range(3):
        naive = spec.Hash(SEED, f"{PURPOSE} {number}", t)
        for x in (0, 1, 2**64 - 1, 2**120 - 1, spec.item_number("é")):
            assert join(hash_value(coefficients[number], *split(x))) == naive.value(x)


def test_the_prime_itself_is_rejected_and_the_next_pair_taken():
    class Scripted:
        def __init__(self, words):
            self.rest = words

        def take(self, count):
            taken, self.rest = self.rest[:count], self.rest[count:]
            return np.array(taken, dtype=np.uint64)

    ones = 2**64 - 1
    reader = Scripted([1, 2, ones, ones, 3, 2**63 + 4, ones, 5, 6, 7])
    elements = [join(row) for row in uniform_field_elements(reader, 3)]
    assert elements == [1 + (2 << 64), 3 + (4 << 64), ones + (5 << 64)]


@pytest.mark.parametrize("d", [1, 2, 3, 10, 1000])
def test_permutations(d):
    assert uniform_permutation(SEED, PURPOSE, d).tolist() == spec.permutation(SEED, PURPOSE, d)


def test_permutations_reject_words_and_go_on():
    # For three remaining, 2^64 mod 3 = 1: only the word 0 is rejected, and it costs its turn.
    start = np.arange(3)
    remaining = _shuffle_down(start, 3, np.array([0, 0, 2**63], dtype=np.uint64))
    assert remaining == 2
    assert start.tolist() == [0, 2, 1]


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_permutations_in_pieces_of_words(at_once, monkeypatch):
    monkeypatch.setattr(sampling, "_WORDS_AT_ONCE", at_once)
    assert uniform_permutation(SEED, PURPOSE, 50).tolist() == spec.permutation(SEED, PURPOSE, 50)


def test_a_permutation_longer_than_one_piece_is_one():
    assert np.array_equal(np.sort(uniform_permutation(SEED, PURPOSE, 150_000)), np.arange(150_000))


@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 2), (3, 8), (8, 8), (50, 1024)])
def test_samples(k, d):
    assert uniform_sample(SEED, PURPOSE, k, d).tolist() == spec.sample(SEED, PURPOSE, k, d)


def test_rejections_do_happen_in_the_same_places():
    # At this size 2^64 mod size is close to size itself: one word in three is rejected.
    size = 2**64 // 3 + 100
    drawn = uniform_sample(SEED, PURPOSE, 40, size).tolist()
    naive = spec.Stream(SEED, PURPOSE)
    moved, expected, words = {}, [], 0
    for i in range(40):
        bound = size - i
        while True:
            product = naive.next_word() * bound
            words += 1
            if product % 2**64 >= 2**64 % bound:
                break
        j = i + (product >> 64)
        expected.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    assert drawn == expected
    assert words > 45


def test_normal_table_twice_over():
    assert list(NORMAL_TAILS) == spec.normal_table()
    before, ctx.prec = ctx.prec, 256
    try:
        for m, value in enumerate(NORMAL_TAILS):
            tail = arb(2) ** 63 * (arb(2 * m + 1) / (24 * arb(2).sqrt())).erfc()
            assert tail.floor().unique_fmpz() == value
    finally:
        ctx.prec = before
    with mpmath.workdps(50):
        assert mpmath.erfc((len(NORMAL_TAILS) + 0.5) / (12 * mpmath.sqrt(2))) * 2**63 < 1


@pytest.mark.parametrize("a", [1, 5, 14, 2081903, 2**31, 2**32])
def test_sparse_normal_tables(a):
    assert list(sparse_normal_table(a).tails) == spec.sparse_normal_table(a)


def test_values_and_moments_of_tables():
    words = Stream(SEED, PURPOSE).words(0, 4000)
    edges = [0, 1, 2**64 - 1, 2**64 - 2] + [
        2 * (2**63 - tail) + j for tail in NORMAL_TAILS for j in (-2, -1, 0, 1)
    ]
    words = np.concatenate([words, np.array(edges, dtype=np.uint64)])
    for table in (NORMAL_TABLE, sparse_normal_table(2**29), sparse_normal_table(1), ACHLIOPTAS_TABLE):
        naive = [spec.through_table(list(table.tails), word) for word in words.tolist()]
        assert table.values(words).tolist() == naive
        second, fourth = spec.moments(list(table.tails))
        assert (table.second_moment, table.kurtosis) == (second, fourth / second**2)


def test_achlioptas_table_keeps_its_kurtosis_at_most_three():
    assert list(ACHLIOPTAS_TABLE.tails) == spec.achlioptas_table()
    assert Fraction(3) - Fraction(1, 2**60) < ACHLIOPTAS_TABLE.kurtosis <= 3
