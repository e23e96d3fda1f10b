"""The exact integers of votes at their limits: nothing wraps, nothing is rounded twice, whatever is kept as bins or as a matrix."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.ingest import sums
from armslength.ingest.sums import Bins, Norms, Squares, joined_bins, norm_of, starts_of, vote_sums
from armslength.protocol.neighbors import VOTE, margin_sensitivity
from armslength.protocol.protocol import MOST_WITH_NORM

COARSE = 2**16
LARGEST = 2**63 - 1


def exact_norm(matrix, sparsity):
    """F of a symmetric matrix by its upper triangle, with Python's own integers."""
    squares = [
        (1 if i == j else 2) * int(matrix[i, j]) ** 2
        for i in range(len(matrix))
        for j in range(i, len(matrix))
    ]
    return isqrt(sum(squares)) // (sparsity * 2**12)


@given(st.integers(1, 6), st.sampled_from([1, 2, 3, 64]), st.data())
def test_the_norm_of_a_matrix_is_exact(width, sparsity, data):
    near = st.sampled_from([2**31, 2**32, 2**53, 2**62, LARGEST]).flatmap(
        lambda n: st.integers(n - 3, min(n + 3, LARGEST))
    )
    numbers = st.lists(
        st.integers(-LARGEST, LARGEST) | near | st.integers(-9, 9), min_size=width**2, max_size=width**2
    )
    matrix = np.array(data.draw(numbers), dtype=np.int64).reshape(width, width)
    assert norm_of(matrix, sparsity) == exact_norm(matrix, sparsity)


def test_the_largest_matrix_wraps_nowhere():
    matrix = np.full((MOST_WITH_NORM, MOST_WITH_NORM), LARGEST, dtype=np.int64)
    assert norm_of(matrix, 1) == MOST_WITH_NORM * LARGEST // 2**12


def test_numbers_of_one_person_are_so_small_that_64_bits_hold_a_group():
    """The largest of each, for the fewest and the most items: 2^31 people, and more for sums, do not wrap."""
    for items in (1, 3, 5000, COARSE, VOTE):
        for sparsity in (1, 4):
            # all items in the same bins, so that they add up
            columns = np.tile(np.arange(sparsity, dtype=np.int32), (items, 1))
            starts, groups = np.array([0, items]), np.zeros(items, dtype=np.int32)
            _, squares, _, _, _, values = vote_sums(starts, groups, columns, np.array([True]), sparsity)
            weight = VOTE // items
            assert squares.tolist() == [weight**2 * items**2 * sparsity // (sparsity * VOTE)]
            assert squares[0] <= weight * items <= VOTE
            coarse = COARSE // items
            assert values.tolist() == ([coarse * items] * sparsity if coarse else [])
            assert (coarse * items) ** 2 * (2**31 - 1) <= LARGEST
    # T, Q and values of a group, its margins, and what the noise covers
    people = 2**40
    assert people * 4 * VOTE <= LARGEST
    assert margin_sensitivity(10_000, 10_000, "replace") < LARGEST


def test_items_that_cancel_leave_nothing_but_their_mass():
    columns = np.array([[3], [-1 - 3]], dtype=np.int32)
    voters, squares, sampled, starts, bins, _ = vote_sums(
        np.array([0, 2]), np.zeros(2, dtype=np.int32), columns, np.array([True]), 8
    )
    assert (voters.tolist(), squares.tolist(), sampled.tolist()) == ([0], [0], [0])
    assert (starts.tolist(), bins.tolist()) == ([0, 0], [])


def test_a_group_of_too_many_sampled_people_is_refused(monkeypatch):
    bins = Bins(
        *(np.array(each, dtype=np.int32) for each in ([0, 0],)),
        starts_of(np.array([1, 1])),
        *2 * [np.array([1, 2], dtype=np.int32)],
    )
    monkeypatch.setattr(sums, "_MOST_PEOPLE", 4)
    squares = Squares(8)
    squares.add(bins, np.array([0, 1]))
    squares.add(bins, np.array([0]))
    with pytest.raises(al.InputError, match="or more"):
        squares.add(bins, np.array([1]))


def people_of(generator, count, groups, width, most):
    """Some people with bins, of several groups."""
    sizes = generator.integers(0, most + 1, count)
    bins = np.concatenate(
        [np.zeros(0, int), *(generator.choice(width, size, replace=False) for size in sizes)]
    )
    values = generator.integers(-COARSE, COARSE + 1, len(bins))
    of_people = generator.integers(0, groups, count).astype(np.int32)
    return Bins(of_people, starts_of(sizes), bins.astype(np.int32), values.astype(np.int32))


@pytest.mark.parametrize("most_bins", [1, 100, 10**6])
@pytest.mark.parametrize("width", [4, 40])
def test_norms_are_those_of_the_sum_of_all_squares(monkeypatch, most_bins, width):
    """However many people wait as bins, and however many groups have a matrix."""
    monkeypatch.setattr(sums, "_MOST_BINS", most_bins)
    generator = np.random.default_rng(width)
    parts = [people_of(generator, count, 5, width, min(width, 9)) for count in (30, 0, 1, 200, 20)]
    norms = Norms(width, 2)
    for part in parts:
        norms.add(part)
    together = joined_bins(parts)
    expected = []
    for group in range(7):  # nobody is in the last ones
        matrix = np.zeros((width, width), dtype=object)
        for person in np.flatnonzero(together.groups == group):
            entries = slice(together.starts[person], together.starts[person + 1])
            vector = np.zeros(width, dtype=object)
            vector[together.bins[entries]] = together.values[entries].tolist()
            matrix += np.outer(vector, vector)
        expected.append(exact_norm(matrix, 2))
    assert norms.norms(7).tolist() == expected
    assert expected[0] > 0 == expected[6]
