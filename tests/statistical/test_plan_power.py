"""The power that a plan predicts, and that of releases of hospital stays.

Parties are stays drawn from two parties of the survey, whose concentration and typical number of diagnoses the typical party of the plan is given.
For each public seed, ROWS samples of each party are counted, get fresh noise for each ε, and are compared in all pairs: their share told
apart, averaged over seeds, has the standard error that the seeds show. It is at most SPREAD, so that a prediction that is off by
TOLERANCE + 2·LIMIT·SPREAD is found with probability 1 − 1e-6.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import sparse

import armslength as al
import nhds
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.shapes import squared_shape_distances
from armslength.planner.least_people import least_people
from armslength.planner.typical_pair import DIFFERENT, Mix
from statistical.limits import LIMIT

SEEDS, ROWS = 100, 6
SPREAD = 0.025
TOLERANCE = 0.1
PARTIES = 12
EPSILONS = ("0.5", "1", "3")
NE_GOV, S_GOV = ("Northeast", "government"), ("South", "government")
S_NP, W_NP, MW_NP = ("South", "non-profit"), ("West", "non-profit"), ("Midwest", "non-profit")
MW_FP, S_FP = ("Midwest", "for-profit"), ("South", "for-profit")


def protocol(sketch_dim, epsilon, seed):
    codes = nhds.stays_of(S_NP).shape[1]
    transform = al.SparseJL(input_dim=codes, sketch_dim=sketch_dim, construction="block", seed=seed)
    return al.Protocol(transform, al.Votes(total_share="0.1"), epsilon=epsilon, unit="one stay")


def is_found(a, b, tail):
    """Whether lower ends are above 0, without looking for the ends."""
    rule = squared_shape_distances(a, b, beyond_chance=True).rule
    equal, level = np.zeros(rule.law.inner.shape), Level(tail, METHODS[0])
    have_people = np.logical_and.outer(*(side.totals.is_positive(level) for side in rule.sides))
    return have_people & ~rule.law.is_coarse(equal, tail) & (rule.law.value > rule.law.limits(equal, tail)[1])


@lru_cache(maxsize=4)
def measured(pair, people, sketch_dim):
    """For each ε, (the share of pairs found to differ, its standard error)."""
    rng, tail = np.random.default_rng(31), 0.025 / (PARTIES * (PARTIES - 1) / 2)
    told = np.empty((len(EPSILONS), SEEDS))
    for seed in range(SEEDS):
        transform = protocol(sketch_dim, 1, f"power {seed}").transform
        sums = [nhds.Counted.of(nhds.stays_of(party), transform).drawn(rng, people, ROWS) for party in pair]
        for number, epsilon in enumerate(EPSILONS):
            a, b = (nhds.released(protocol(sketch_dim, epsilon, f"power {seed}"), side) for side in sums)
            told[number, seed] = is_found(a, b, tail).mean()
    return dict(
        zip(EPSILONS, zip(told.mean(axis=1), told.std(axis=1) / math.sqrt(SEEDS), strict=True), strict=True)
    )


def predicted(pair, people, sketch_dim, epsilon):
    """What a plan says whose typical party has the concentration of two parties, and how far apart they are."""
    p, q = (nhds.mix_of(party) for party in pair)
    items = np.mean([np.median(np.diff(nhds.stays_of(party).indptr)) for party in pair])
    concentration = math.sqrt((p @ p) * (q @ q))
    plan = al.plan(
        people=people,
        epsilon=epsilon,
        parties=PARTIES,
        items_per_person=float(items),
        total_share="0.1",
        max_sketch_dim=sketch_dim,
    )
    usual = plan.situation.mix
    mix = Mix.of_concentration(
        concentration, max(usual.items, math.ceil(2 / concentration)), float(items) ** DIFFERENT
    )
    (transform,) = (each for each in plan.situation.transforms() if each.sketch_dim == sketch_dim)
    setting = replace(plan.situation, mix=mix).setting(transform, Fraction("0.1"))
    return setting.pair.power(1 - ((p - q) ** 2).sum() / (2 * concentration))


CASES = [
    ((NE_GOV, S_GOV), 1000, 256),
    ((S_NP, W_NP), 3000, 1024),
    ((MW_NP, S_NP), 3000, 256),
    ((MW_FP, S_FP), 1000, 256),  # whose concentrations differ most
]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pairs_are_told_apart_where_lower_ends_are_above_0(epsilon):
    # also where totals are too coarse for how far apart they are
    (pair, people, sketch_dim), tail = CASES[-1], 0.0005
    made = protocol(sketch_dim, epsilon, "ends")
    sums = [nhds.Counted.of(nhds.stays_of(party), made.transform) for party in pair]
    a, b = (nhds.released(made, side.drawn(np.random.default_rng(1), people, 20)) for side in sums)
    lower, _ = squared_shape_distances(a, b, beyond_chance=True).rule.interval(Level(tail, METHODS[0]))
    assert ((lower > 0) == is_found(a, b, tail)).all()
    assert (lower > 0).any()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("pair", "people", "sketch_dim"), CASES)
def test_the_predicted_power_is_that_of_releases(pair, people, sketch_dim, epsilon):
    share, error = measured(pair, people, sketch_dim)[epsilon]
    assert error < SPREAD
    assert abs(share - predicted(pair, people, sketch_dim, epsilon)) < TOLERANCE + LIMIT * error


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2])
@pytest.mark.parametrize(("pair", "people", "sketch_dim"), CASES[:3])
def test_that_of_other_numbers_of_people_is_not(pair, people, sketch_dim, factor):
    wrong = 0
    for epsilon, (share, error) in measured(pair, people, sketch_dim).items():
        other = predicted(pair, round(factor * people), sketch_dim, epsilon)
        wrong += abs(share - other) > TOLERANCE + LIMIT * error
    assert wrong


@pytest.mark.parametrize("epsilon", ["0.3", "3"])
def test_parties_with_fewer_people_than_are_needed_are_not_told_apart(epsilon):
    # from parties of ten times the size that share no diagnosis with them
    stays = nhds.stays_of(S_NP)
    nothing = sparse.csr_array(stays.shape, dtype=np.int64)
    sides = [sparse.hstack(parts, format="csr") for parts in ([stays, nothing], [nothing, stays])]
    kind = {"input_dim": 2 * stays.shape[1], "sketch_dim": 512, "construction": "block"}
    rng, told = np.random.default_rng(31), {1.0: [], 0.5: []}
    for seed in range(20):
        transform = al.SparseJL(**kind, seed=f"least {seed}")
        made = al.Protocol(transform, al.Votes(total_share="0.1"), epsilon=epsilon, unit="one stay")
        least = least_people(made)
        counted = [nhds.Counted.of(side, transform) for side in sides]
        for factor, shares in told.items():
            people = round(factor * least), round(10 * factor * least)
            sums = (side.drawn(rng, number, ROWS) for side, number in zip(counted, people, strict=True))
            shares.append(is_found(*(nhds.released(made, each) for each in sums), 0.025).mean())
    for factor, expected in ((1.0, 0.9), (0.5, 0.0)):
        error = np.std(told[factor]) / math.sqrt(len(told[factor]))
        assert error < 0.05
        assert abs(np.mean(told[factor]) - expected) < TOLERANCE + LIMIT * error
