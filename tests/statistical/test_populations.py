"""Answers beyond chance: false alarms, coverage, and the part of chance, over seeds, samples and noise.

A trial is a pair of parties whose people are samples of two populations. A count of wrong answers is accepted up to five standard
errors above what is claimed: 3e-7 for a claim that is just true.
"""

from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.estimates.intervals import Level
from armslength.estimates.shapes import squared_shape_distances
from armslength.sketches.sketches import Sketches

ITEMS = 500
SEEDS = 60
TAILS = (0.05, 0.01, 0.05 / 276)


def zipf(exponent):
    weights = 1.0 / np.arange(1, ITEMS + 1) ** exponent
    return weights / weights.sum()


def bundled(mix, contribution):
    """Types of people: the items in bundles of C, each as popular as its first; the largest correlation there can be."""
    types = np.zeros((ITEMS // contribution, ITEMS))
    for number in range(len(types)):
        types[number, number * contribution : (number + 1) * contribution] = 1
    chances = mix[::contribution][: len(types)]
    return types, chances / chances.sum()


def counts(rng, people, mix, contribution, rows, *, in_bundles):
    if not in_bundles:  # items of a person are independent
        return rng.poisson(people * contribution * mix, (rows, ITEMS))
    types, chances = bundled(mix, contribution)
    return rng.multinomial(people, chances, rows) @ types.astype(np.int64)


def as_events(sketches):
    """The same rows as if an event table had been released: what each person adds is as bounded."""
    releases = tuple((protocol, "events") for protocol, _ in sketches.noises.releases)
    noises = replace(sketches.noises, releases=releases)
    return Sketches(sketches.values, sketches.labels, noises, sketches.protocols, sketches.totals)


def protocol_of(seed, contribution, k, epsilon=1):
    transform = al.SparseJL(input_dim=ITEMS, sketch_dim=k, seed=seed)
    return al.Protocol(
        transform, epsilon=epsilon, contribution=contribution, unit="one person", total_share="0.1"
    )


def trials(draw, contribution, k, pairs, level, epsilon=1):
    """(estimate, lower, upper) of independent pairs, over many public seeds."""
    answers = []
    for seed in range(SEEDS):
        protocol = protocol_of(f"populations {seed}", contribution, k, epsilon)
        a, b = (as_events(protocol.release(draw(pairs, side), ledger=al.NO_LEDGER)) for side in (0, 1))
        estimate = squared_shape_distances(a, b, beyond_chance=True)
        ends = estimate.interval(level)
        answers.append([np.diag(each) for each in (estimate.value, *ends)])
    return [np.concatenate(each) for each in zip(*answers, strict=True)]


def most(rate, number):
    return rate * number + 5 * np.sqrt(rate * (1 - rate) * number)


@pytest.mark.parametrize(
    ("exponent", "contribution", "people", "k", "in_bundles"),
    [
        (0.9, 1, 3_000, 64, False),
        (1.2, 1, 20_000, 256, False),
        (1.2, 5, 3_000, 128, False),
        (0.9, 5, 20_000, 256, True),
        (0.0, 20, 50_000, 256, True),  # here chance is nearly all, and a person's items go together
    ],
)
def test_equal_populations_are_rarely_told_apart(exponent, contribution, people, k, in_bundles):
    # Rates of 5 and 1 percent from independent pairs; that of one among 276 pairs from all pairs of a seed, which share rows, so
    # that five standard errors are counted twice as large. 1.3, 1.5 and 2.5 times the rate are what is claimed.
    rng = np.random.default_rng(1)
    mix, pairs = zipf(exponent), 40
    wrong = dict.fromkeys(TAILS, 0)
    for seed in range(SEEDS):
        protocol = protocol_of(f"populations {seed}", contribution, k)
        a, b = (
            as_events(
                protocol.release(
                    counts(rng, people, mix, contribution, pairs, in_bundles=in_bundles), ledger=al.NO_LEDGER
                )
            )
            for _ in range(2)
        )
        rule = squared_shape_distances(a, b, beyond_chance=True).rule
        for tail in TAILS:
            lower, _ = rule.interval(Level(tail, "asymptotic"))
            wrong[tail] += np.count_nonzero((lower if tail == TAILS[-1] else np.diag(lower)) > 0)
    number = SEEDS * pairs
    assert wrong[0.05] <= most(1.3 * 0.05, number)
    assert wrong[0.01] <= most(1.5 * 0.01, number)
    rare = 2.5 * TAILS[-1] * number * pairs
    assert wrong[TAILS[-1]] <= rare + 10 * np.sqrt(rare)


def test_the_counts_of_equal_populations_are_told_apart():
    # so that the test above could fail: the same pairs differ, if chance is not taken away
    rng = np.random.default_rng(2)
    protocol = al.Protocol(
        al.SparseJL(input_dim=ITEMS, sketch_dim=256, seed="counts"),
        epsilon=1,
        contribution=1,
        unit="u",
        total_share="0.1",
    )
    a, b = (
        as_events(
            protocol.release(counts(rng, 20_000, zipf(1.2), 1, 50, in_bundles=False), ledger=al.NO_LEDGER)
        )
        for _ in range(2)
    )
    assert (np.diag(squared_shape_distances(a, b).interval(0.9)[0]) > 0).mean() > 0.5


def test_chance_is_what_is_taken_away():
    # one item a person: then it is known exactly
    rng = np.random.default_rng(3)
    people, mix = 4_000, zipf(0.9)
    value, *_ = trials(
        lambda rows, _: counts(rng, people, mix, 1, rows, in_bundles=False), 1, 256, 40, 0.95, epsilon=5
    )
    chance = 2 * (1 - mix @ mix) / people
    error = value.std() / np.sqrt(len(value))
    assert abs(value.mean()) < 5 * error
    for wrong in (0.9, 1.1):
        assert abs(value.mean() + (1 - wrong) * chance) > 5 * error


def test_a_swap_of_popular_items_is_covered():
    rng = np.random.default_rng(4)
    people, mix = 20_000, zipf(0.9)
    other = mix.copy()
    other[:2] = mix[1::-1]
    truth = ((mix - other) ** 2).sum()
    _, lower, upper = trials(
        lambda rows, side: counts(rng, people, (mix, other)[side], 1, rows, in_bundles=False),
        1,
        4096,
        25,
        0.95,
    )
    number = SEEDS * 25
    assert np.count_nonzero((lower > truth) | (upper < truth)) <= most(0.05, number)
    for wrong in (0.5, 2.0):
        assert np.count_nonzero((lower > wrong * truth) | (upper < wrong * truth)) > most(0.05, number)


@pytest.mark.parametrize(("contribution", "in_bundles"), [(1, False), (20, True)])
def test_the_likeness_of_two_mixes_is_covered(contribution, in_bundles):
    rng = np.random.default_rng(6)
    given = [zipf(0.9), (zipf(0.9) + np.roll(zipf(0.9), 2 * contribution)) / 2]
    mixes = given
    if in_bundles:
        types = [bundled(mix, contribution) for mix in given]
        mixes = [chances @ each / contribution for each, chances in types]
    truth = mixes[0] @ mixes[1] / np.sqrt((mixes[0] @ mixes[0]) * (mixes[1] @ mixes[1]))
    people = 20_000 // contribution
    misses, pairs = 0, 25
    for seed in range(SEEDS):
        transform = al.SparseJL(input_dim=ITEMS, sketch_dim=512, seed=f"likeness {seed}")
        protocol = al.Protocol(
            transform, epsilon=3, contribution=contribution, unit="one person", total_share="0.1"
        )
        a, b = (
            as_events(
                protocol.release(
                    counts(rng, people, mix, contribution, pairs, in_bundles=in_bundles), ledger=al.NO_LEDGER
                )
            )
            for mix in given
        )
        lower, upper = (np.diag(end) for end in al.shape_cosines(a, b, beyond_chance=True).interval(0.95))
        misses += np.count_nonzero((lower > truth) | (upper < truth))
    assert misses <= most(0.05, SEEDS * pairs)
    assert 0.2 < truth < 0.95


def test_sums_of_two_months_with_the_same_people_are_rarely_told_apart():
    # Both months count the same sample: taken for two samples, chance would be half of what it is.
    rng = np.random.default_rng(8)
    wrong = naive = 0
    pairs = 25
    for seed in range(SEEDS):
        protocol = protocol_of(f"months {seed}", 1, 256, 3)
        sums = []
        for _ in range(2):
            sample = counts(rng, 5_000, zipf(1.0), 1, pairs, in_bundles=False)
            months = [as_events(protocol.release(sample, ledger=al.NO_LEDGER)) for _ in range(2)]
            sums.append(months[0] + months[1])
        rule = squared_shape_distances(*sums, beyond_chance=True).rule
        wrong += np.count_nonzero(np.diag(rule.interval(Level(0.05, "asymptotic"))[0]) > 0)
        law = rule.law
        halved = [
            replace(side, people=2 * side.people, chance=side.chance / 2) for side in (law.rows, law.columns)
        ]
        as_others = replace(law, rows=halved[0], columns=halved[1])
        naive += np.count_nonzero(np.diag(as_others.interval(0.05)[0]) > 0)
    assert wrong <= most(0.05, SEEDS * pairs)
    assert naive > most(0.05, SEEDS * pairs)  # so that the test could fail


def test_power_is_near_that_of_the_counts_without_noise():
    # What chance alone hides cannot be seen at all; beyond that, privacy costs little for parties of this size.
    rng = np.random.default_rng(9)
    mix = zipf(0.9)
    other = mix * np.where(np.arange(ITEMS) % 2, 1.15, 0.85)
    other /= other.sum()
    found = {}
    for epsilon in (1, 100):
        seen = 0
        for seed in range(SEEDS // 2):
            protocol = protocol_of(f"power {seed}", 1, 512, epsilon)
            a, b = (
                as_events(
                    protocol.release(counts(rng, 20_000, each, 1, 20, in_bundles=False), ledger=al.NO_LEDGER)
                )
                for each in (mix, other)
            )
            lower, _ = squared_shape_distances(a, b, beyond_chance=True).rule.interval(
                Level(0.05, "asymptotic")
            )
            seen += np.count_nonzero(np.diag(lower) > 0)
        found[epsilon] = seen / (SEEDS // 2 * 20)
    assert found[100] > 0.9
    assert found[1] > 0.9 * found[100]


def test_mixes_without_a_common_item_are_never_called_alike():
    # So few people that noise and chance are often all of a row's length.
    rng = np.random.default_rng(10)
    alike, pairs = 0, 20
    for seed in range(SEEDS // 2):
        protocol = protocol_of(f"nothing in common {seed}", 1, 256)
        mixes = np.repeat(np.eye(2), ITEMS // 2, axis=1) / (ITEMS // 2)
        a, b = (
            as_events(
                protocol.release(counts(rng, 150, mix, 1, pairs, in_bundles=False), ledger=al.NO_LEDGER)
            )
            for mix in mixes
        )
        alike += np.count_nonzero(al.shape_cosines(a, b, beyond_chance=True).interval(0.95)[0] >= 0.95)
    assert alike == 0
