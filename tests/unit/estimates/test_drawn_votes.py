"""The fast simulator of votes adds up the same integers as the naive reference and as a release of a table."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.estimates.intervals import Level
from armslength.estimates.shapes import squared_shape_distances
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from drawn_votes import Counted, Pairs, drawn_pairs, released, vote_protocol
from populations import Population, bundles
from reference import votes

ITEMS, PEOPLE = 40, 90
KEY = bytes(range(32))


def drawn(seed=1, types=30):
    """Types of people with 1 to 12 items, and how many of each there are."""
    rng = np.random.default_rng(seed)
    lists = [rng.choice(ITEMS, size, replace=False) for size in rng.integers(1, 13, types)]
    population = Population.of_lists(lists, ITEMS)
    return population, population.draw(rng, PEOPLE, 1)


def events_of(population, counts):
    """(person, group, item) of all people."""
    kinds = np.repeat(np.arange(len(counts)), counts)
    lists = np.split(population.types.indices, population.types.indptr[1:-1])
    return [
        (f"person {number}", "all", int(item)) for number, kind in enumerate(kinds) for item in lists[kind]
    ]


@pytest.mark.parametrize("sparsity", [1, 2])
def test_sums_are_those_of_the_naive_reference(sparsity):
    protocol = vote_protocol(ITEMS, 16, 1, "drawn", sparsity=sparsity)
    population, counts = drawn()
    signs = protocol.transform.apply(np.eye(ITEMS, dtype=np.int64)).T
    projection = votes.Projection(sparsity, lambda items: signs[:, list(items)].sum(axis=1).tolist())
    (row,) = votes.votes(events_of(population, counts[0]), ["all"], projection, KEY, share=Fraction(1))
    ours = Counted.of(protocol, population).sums(counts, np.random.default_rng(2))
    assert ours.values[0].tolist() == row.values
    assert (ours.totals[0], ours.spread[0, 0]) == (row.people, row.squares)
    assert ours.spread[0, 1] == pytest.approx(row.norm, rel=1e-6)


def test_sums_are_those_of_a_table():
    names = [f"item {number}" for number in range(ITEMS)]
    protocol = al.Protocol(
        al.SparseJL(input_dim=ITEMS, sketch_dim=16, seed="drawn", sparsity=1),
        al.Votes(total_share="0.1"),
        epsilon=1,
        unit="one person",
        vocabulary=names,
    )
    population, counts = drawn(3)
    person, group, item = zip(*events_of(population, counts[0]), strict=True)
    table = pa.table({"person": person, "group": group, "item": [names[number] for number in item]})
    job = TableJob.of(
        table, protocol, EventColumns("person", "item"), public_groups_of(None, None, "all"), vocabulary=names
    )
    theirs = job.sums(KEY)
    ours = Counted.of(protocol, population).sums(counts, np.random.default_rng(2))
    for name in ("values", "totals"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    assert ours.spread[0, 0] == theirs.spread[0, 0]
    assert ours.spread[0, 1] == pytest.approx(theirs.spread[0, 1], rel=1e-6)


def test_rows_are_released_again_further_on():
    protocol = vote_protocol(ITEMS, 16, 10**6, "drawn", margin_share="0.3")
    population, _ = drawn()
    rng = np.random.default_rng(4)
    sums = Counted.of(protocol, population).drawn(rng, PEOPLE, 3)
    rows = released(protocol, sums, 2, step=1)
    order = [0, 1, 2, 1, 2, 0]
    for name, scale in (("values", protocol.law.scale), ("totals", 3 * protocol.spread_law.scale)):
        noise = getattr(rows, name) - getattr(sums, name)[order]
        assert np.abs(noise).max() < 50 * scale
        assert np.unique(noise).size > 1
    assert (sums.values[0] != sums.values[1]).any()


@pytest.mark.parametrize("tail", [0.05, 0.05 / 276])
def test_pairs_are_those_of_the_estimates(tail):
    # parties of which the number of people may be 0, is coarse, or is sure
    protocol = vote_protocol(ITEMS, 16, "0.5", "drawn")
    population, _ = drawn()
    counted = Counted.of(protocol, population), Counted.of(protocol, bundles(4, 0.5, ITEMS))
    rng = np.random.default_rng(5)
    # of 300 people, noise decides at which level there surely are some
    for people in (60, 300, 400, 2000, 30_000):
        a, b = drawn_pairs(counted, (people, 30_000), 6, 1, rng)
        pairs = Pairs.of(a, b)
        rule = squared_shape_distances(a, b, beyond_chance=True).rule
        for ours, theirs in zip(pairs.interval(tail), rule.interval(Level(tail, "asymptotic")), strict=True):
            np.testing.assert_allclose(ours, np.diag(theirs), rtol=1e-9)
        likeness = al.similarities(a, b, about="populations").rule
        level = Level(tail, "asymptotic")
        for ours, theirs in zip(pairs.similarity(level), likeness.interval(level), strict=True):
            np.testing.assert_allclose(ours, np.diag(theirs), rtol=1e-9)
