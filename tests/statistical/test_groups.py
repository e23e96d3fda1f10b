"""Groups and outliers beyond chance: parties of one population, true groups, and one odd party with most of the people.

A count of wrong answers is accepted up to what a rate of 5 percent makes once in a million. Each trial has a public seed of its own.
"""

from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom

import armslength as al
from armslength.ingest.sums import Sums
from drawn_votes import Counted, released, vote_protocol
from populations import Population, independent, zipf
from statistical.limits import FALSE_ALARM

ERROR, TRIALS, ITEMS, PEOPLE = 0.05, 40, 400, 400


def most(rate, trials):
    """How many may be wrong."""
    return binom.isf(FALSE_ALARM, trials, rate)


@lru_cache
def population(shift):
    """People with five items by Zipf's law, which begins at another item."""
    return independent(np.full(PEOPLE, 5), np.roll(zipf(0.8, ITEMS), shift), shift)


def mixed(other, share):
    """The first population, of which a share is replaced by another."""
    lists = [
        row
        for each in (population(0), other)
        for row in np.split(each.types.indices, each.types.indptr[1:-1])
    ]
    return Population.of_lists(lists, ITEMS, np.repeat([1 - share, share], PEOPLE))


def trials(parties, count=TRIALS, epsilon=1):
    """Releases of parties, each a population and a number of people."""
    rng = np.random.default_rng(18)
    for number in range(count):
        protocol = vote_protocol(ITEMS, 256, epsilon, f"groups {number}")
        kinds = {each: Counted.of(protocol, each) for each, _ in parties}
        rows = [kinds[each].drawn(rng, people, 1) for each, people in parties]
        arrays = [
            np.concatenate([getattr(row, name) for row in rows]) for name in ("values", "totals", "spread")
        ]
        yield released(protocol, Sums(arrays[0], arrays[1], "events", spread=arrays[2]))


SIZES = np.geomspace(500, 40_000, 12).astype(int).tolist()


def test_equal_parties_are_seldom_found_to_differ_or_called():
    differ = called = 0
    for rows in trials([(population(0), people) for people in SIZES]):
        tree = al.cluster(rows, about="populations")
        differ += tree.differ.any()
        called += al.outliers(rows, about="populations").is_outlier.any()
    assert max(differ, called) <= most(ERROR, TRIALS)


@pytest.mark.parametrize("groups", [2, 3])
def test_true_groups_are_found_and_hold_no_two_parties_that_differ(groups):
    kinds = [population(shift) for shift in (0, 100, 200)[:groups]]
    parties = [(kinds[number % groups], people) for number, people in enumerate([4000, 8000, 20_000] * 3)]
    kind = np.arange(9) % groups
    complete = wrong = 0
    for rows in trials(parties, 30):
        tree = al.cluster(rows, about="populations")
        number = tree.flat()
        same = np.equal.outer(number, number)
        assert not (tree.differ & same).any()
        truth = np.equal.outer(kind, kind)
        complete += (same == truth).all()
        wrong += (tree.differ & truth).any()
    assert complete >= 24
    assert wrong <= most(ERROR, 30)


def test_one_odd_party_with_most_of_the_people_hides_nobody():
    # by all other people together, the large odd party would be what everybody is compared with
    ordinary = [mixed(population(100 + number), 0.05) for number in range(10)]
    small = mixed(population(200), 0.6)
    sizes = [*SIZES[1:11], 5000]
    odd_people = int(1.5 * sum(sizes))
    parties = [*zip([*ordinary, small], sizes, strict=True), (mixed(population(300), 0.6), odd_people)]
    called = np.zeros(len(parties), dtype=int)
    for rows in trials(parties, 20):
        found = al.outliers(rows, about="populations")
        called[[rows.labels.index(name) for name in found.labels]] += found.is_outlier
    assert (called[10:] >= 16).all()
    assert called[:10].sum() <= most(ERROR, 20)
