"""Shortlists: what they keep of tiles and pairs is what all pairs together would say, and merging costs what was met."""

from types import SimpleNamespace

import numpy as np
import pytest

from armslength.answers import shortlist as module
from armslength.answers.shortlist import Shortlist, Smallest

RNG = np.random.default_rng(11)
STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers():
    RNG.bit_generator.state = STATE  # whatever has run before


def tile(queries, rows, step=1.0):
    """(value, lower, upper) of all pairs, with many ties where steps are large."""
    value = np.rint(RNG.normal(9, 3, (queries, rows)) / step) * step
    width = RNG.integers(1, 4, (queries, rows)) * 1.0
    return value, value - width, value + width


def add_tile(shortlist, tile, first_query=0, first_number=0):
    """Adds all pairs of a tile, except those whose lower end is infinity."""
    rows, columns = np.nonzero(tile[1] != np.inf)
    shortlist.add(rows + first_query, columns + first_number, *(each[rows, columns] for each in tile))


def part(whole, queries, rows):
    return tuple(each[queries, rows] for each in whole)


def naive(whole, count):
    """(indices, candidates, best ranks, worst ranks) from all pairs; a pair that does not count is infinity."""
    results = []
    for value, lower, upper in zip(*whole, strict=True):
        there = np.flatnonzero(lower != np.inf)
        order = there[np.lexsort((there, value[there]))][:count]
        candidates = min((lower[there] <= upper[there].min()).sum(), count + 1)
        best = [1 + (upper[order] < lower[row]).sum() for row in order]
        worst = [min((lower[there] <= upper[row]).sum(), count + 1) for row in order]
        results.append((order.tolist(), candidates, best, worst))
    return results


def check(shortlist, whole):
    found = SimpleNamespace(**shortlist.answers())
    for row, (order, candidates, best, worst) in enumerate(naive(whole, shortlist.count)):
        assert found.indices[row].tolist() == order
        assert found.candidates[row] == candidates
        assert found.best_rank[row].tolist() == best
        assert found.worst_rank[row].tolist() == worst
        np.testing.assert_array_equal(found.value[row], whole[0][row, order])


@pytest.mark.parametrize("step", [0.001, 3.0])
def test_tiles_and_pairs_in_any_order(step):
    whole = tile(20, 60, step)
    shortlist = Shortlist(20, 4)
    queries, numbers = (each.ravel() for each in np.mgrid[0:20, 40:60])
    mixed = RNG.permutation(len(queries))
    queries, numbers = queries[mixed], numbers[mixed]
    shortlist.add(queries, numbers, *part(whole, queries, numbers))
    for rows in (slice(12, 20), slice(0, 6), slice(6, 12)):
        for columns in (slice(15, 40), slice(0, 15)):
            add_tile(shortlist, part(whole, rows, columns), rows.start, columns.start)
    check(shortlist, whole)


def test_merging_a_tile_leaves_all_other_queries_alone(monkeypatch):
    queries, count, sizes, sort = 2048, 3, [], np.lexsort

    def counted(keys):
        sizes.append(keys[0].size)
        return sort(keys)

    monkeypatch.setattr(module.np, "lexsort", counted)
    whole = tile(queries, 20)
    shortlist = Shortlist(queries, count)
    for columns in (slice(0, 10), slice(10, 20)):
        for first in range(0, queries, 256):
            add_tile(shortlist, part(whole, slice(first, first + 256), columns), first, columns.start)
    assert max(sizes) <= 256 * (10 + count + 1)
    check(shortlist, whole)


def test_ends_that_meet_up_to_rounding_leave_a_row_possible():
    above = 1 + 2.0**-45
    shortlist = Shortlist(1, 2)
    add_tile(shortlist, (np.array([[0.9, 1.1]]), np.array([[0.5, above]]), np.array([[1.0, 2.0]])))
    found = SimpleNamespace(**shortlist.answers())
    assert found.candidates.tolist() == [2]
    assert found.possible.tolist() == [[True, True]]
    assert found.best_rank.tolist() == [[1, 1]]
    assert found.worst_rank.tolist() == [[2, 2]]


def test_a_pair_that_does_not_count_is_no_answer_and_no_candidate():
    # All that is known is infinite but for the lower ends: a pair that is not there must not stand in for one that is.
    whole = tuple(np.full((3, 3), each) for each in (np.inf, 4.0, np.inf))
    for each in whole:
        np.fill_diagonal(each, np.inf)
    shortlist = Shortlist(3, 2)
    add_tile(shortlist, whole)
    found = SimpleNamespace(**shortlist.answers())
    assert found.indices.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert found.candidates.tolist() == [2, 2, 2]


def test_of_equal_rows_the_first_are_answers():
    equal = np.ones((2, 300))
    shortlist = Shortlist(2, 3)
    add_tile(shortlist, (equal, equal - 1, equal + 1))
    assert shortlist.answers()["indices"].tolist() == [[0, 1, 2]] * 2
    several = Shortlist(1, 2)
    numbers = np.array([7, 5, 6, 4])
    several.add(np.zeros(4, dtype=np.int64), numbers, np.ones(4), np.zeros(4), np.ones(4))
    assert several.answers()["indices"].tolist() == [[4, 5]]


def test_no_rank_is_worse_than_the_worst_one():
    value = np.array([1.0, 4.0, np.inf])
    shortlist = Shortlist(1, 3)
    shortlist.add(np.zeros(3, dtype=np.int64), np.arange(3), value, value, value)
    found = SimpleNamespace(**shortlist.answers())
    assert found.best_rank.tolist() == [[1, 2, 3]]
    assert found.worst_rank.tolist() == [[1, 2, 3]]


def test_the_smallest_of_many_in_any_portions():
    n, kept = 7, 5
    values = RNG.integers(0, 12, (n, 90)) * 1.0
    smallest, start = Smallest(n, kept), 0
    for step in (1, 2, 40, 7, 40):
        rows = np.arange(start, start + step)
        there = RNG.random((n, step)) < 0.9
        values[:, rows] = np.where(there, values[:, rows], np.inf)
        i, j = np.nonzero(there)
        smallest.add(i, rows[j], values[i, rows[j]])
        start += step
    order = np.argsort(values, axis=1, kind="stable")[:, :kept]
    assert smallest.number.tolist() == order.tolist()
    assert np.array_equal(smallest.key, np.take_along_axis(values, order, axis=1))
