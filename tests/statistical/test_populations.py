"""Answers beyond chance: false alarms, coverage at both ends, and how wide the law is, over public seeds, people and noise.

Pairs of one public seed share some of it, so rates and deviations are means over seeds, with the standard error of such means. A true claim
fails once in a million; sizes are such that nine tenths, and eleven tenths, of the law's deviation are rejected as surely. `python -m audit law`
has the full tables.
"""

import numpy as np
import pytest
from scipy.stats import poisson
from scipy.stats import t as student

from armslength.estimates.intervals import Level
from armslength.estimates.shapes import ALIKE
from drawn_votes import Counted, Pairs, drawn_pairs, vote_protocol
from populations import DATA, Population, bundles, few_are_popular, nhds_party, one_of_three, zipf
from statistical.limits import FALSE_ALARM, WRONG

SEEDS, PARTIES = 24, 100
PEOPLE = 1000  # different ones of a population
LIMIT = student.isf(FALSE_ALARM / 2, SEEDS - 1)  # standard errors of a mean over seeds: 6.7
CLAIMED = {0.05: 1.3, 0.01: 1.5}  # times the rate, at most
SETTINGS = {
    "nhds": (lambda: nhds_party(most=PEOPLE), (2000, 5000), 256, 3),
    "bundles": (lambda: bundles(20, 0.0), (1000, 1000), 256, 1),
    "popular": (lambda: few_are_popular(others=PEOPLE), (5000, 5000), 1024, 1),
}


def population_of(name):
    if name == "nhds" and not (DATA / "nhds2010_diagnoses.parquet").exists():
        pytest.skip("the hospital survey is not beside the project")
    return SETTINGS[name][0]()


def trials(populations, people, k, epsilon, *, seeds=SEEDS, parties=PARTIES, repeats=1, rng=None, **fields):
    """Pairs of samples of two populations, for each public seed."""
    rng = np.random.default_rng(1) if rng is None else rng
    for number in range(seeds):
        items = populations[0].types.shape[1]
        protocol = vote_protocol(items, k, epsilon, f"populations {number}", margin_share="0.3", **fields)
        sides = [Counted.of(protocol, each) for each in dict.fromkeys(populations)]
        yield Pairs.of(*drawn_pairs((sides[0], sides[-1]), people, parties, repeats, rng))


def error(means):
    """Of their mean, by which it may deviate once in a million."""
    return LIMIT * means.std(axis=0, ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("name", list(SETTINGS))
def test_equal_populations_are_rarely_told_apart(name):
    population, (_, people, k, epsilon) = population_of(name), SETTINGS[name]
    alarms = {tail: [] for tail in CLAIMED}
    for pairs in trials((population, population), people, k, epsilon, repeats=4):
        for tail in CLAIMED:
            alarms[tail].append(pairs.is_told_apart(tail).mean())
    for tail, times in CLAIMED.items():
        rates = np.array(alarms[tail])
        assert rates.mean() <= times * tail + error(rates), f"{rates.mean() / tail:.2f} times {tail}"
        assert rates.mean() + error(rates) > 0.2 * tail, "too careful"  # or the test could not fail


FEW = {  # rows that are mostly noise, beside rows that have hardly any; and where totals of votes are all that chance leaves
    "nhds": (SETTINGS["nhds"][0], (255, 17_000)),
    "bundles": (SETTINGS["bundles"][0], (255, 17_000)),
    "three": (one_of_three, (1280, 5000)),
}
ENDS = {0.025: 1.3, 0.005: 1.5, 0.025 / 66: 2.5}  # times the rate, at most: of pairs with no party in common


@pytest.mark.parametrize("name", list(FEW))
def test_equal_populations_are_rarely_less_similar_than_1(name):
    make, people = FEW[name]
    population = make() if name == "three" else population_of(name)
    below, pairs = dict.fromkeys(ENDS, 0), 0
    for each in trials((population, population), people, 256, 1, parties=400):
        pairs += len(each.law.inner)
        for tail in ENDS:
            below[tail] += np.count_nonzero(each.similarity(Level(tail, "asymptotic"))[1] < 1)
    for tail, times in ENDS.items():
        limit = poisson.isf(FALSE_ALARM, times * tail * pairs)
        assert below[tail] <= limit, f"{below[tail] / tail / pairs:.2f} times {tail}"
    assert below[0.025] > 0.2 * 0.025 * pairs, "too careful"  # or the test could not fail


def test_without_chance_equal_populations_are_told_apart():
    # so that the tests above could fail: samples differ
    population = bundles(20, 0.0)
    protocol = vote_protocol(population.types.shape[1], 256, 3, "counts")
    sides = (Counted.of(protocol, population),) * 2
    rows = drawn_pairs(sides, (1000, 1000), 50, 1, np.random.default_rng(2))
    assert Pairs.of(*rows, beyond_chance=False).is_told_apart(0.01).mean() > 0.5
    assert Pairs.of(*rows).is_told_apart(0.01).mean() < 0.2


def test_the_law_is_as_wide_as_the_estimates():
    # of bundles, the law knows exactly how far chance reaches, but for the noise of F
    population = bundles(20, 0.0)
    ratios, means = [], []
    for pairs in trials((population, population), (1000, 1000), 256, 1, parties=600):
        zero = np.zeros_like(pairs.law.value)
        variance = pairs.law.moments(zero)[0].mean()
        means.append(pairs.law.value.mean() / np.sqrt(variance))
        ratios.append((pairs.law.value**2).mean() / variance)
    ratios, means = np.array(ratios), np.array(means)
    assert abs(means.mean()) < error(means)
    assert abs(ratios.mean() - 1) < error(ratios)
    for factor in WRONG:
        assert abs(ratios.mean() / factor**2 - 1) > error(ratios / factor**2), "too few pairs to tell"


def differing(name):
    """Two populations that differ."""
    if name == "nhds":
        population_of(name)
        return nhds_party("Midwest for-profit", PEOPLE), nhds_party("South for-profit", PEOPLE)
    if name == "bundles":
        chances = zipf(0.5, 100)
        shifted = (chances + np.roll(chances, 3)) / 2
        types = bundles(20, 0.0).types
        return Population.of(types, chances), Population.of(types, shifted)
    # people with few items have others than people with many, and are more frequent in one of both
    rng = np.random.default_rng(7)
    few = [rng.choice(50, 2, replace=False) for _ in range(500)]
    many = [50 + rng.choice(450, 15, replace=False) for _ in range(500)]
    return tuple(
        Population.of_lists(few + many, 500, np.repeat([share, 1 - share], 500)) for share in (0.4, 0.5)
    )


DIFFERING = {
    "nhds": ((1279, 5000), 256, 1),
    "bundles": ((5000, 5000), 256, 3),
    "sizes": ((10_000, 10_000), 512, 1),
}


def misses(ends, truth):
    """The shares of intervals that are above and below the truth."""
    lower, upper = ends
    return [(lower > truth).mean(), (upper < truth).mean()]


@pytest.mark.parametrize("name", list(DIFFERING))
def test_both_ends_cover_a_true_difference(name):
    populations, (people, k, epsilon) = differing(name), DIFFERING[name]
    p, q = (each.profile() for each in populations)
    distance, cosine = ((p - q) ** 2).sum(), p @ q / np.sqrt((p @ p) * (q @ q))
    tail, level = 0.025, Level(0.025, "asymptotic")
    missed = {"distance": [], "similarity": [], "third": [], "three times": []}
    for pairs in trials(populations, people, k, epsilon, seeds=40, parties=40):
        ends, likeness = pairs.interval(tail), pairs.similarity(level)
        missed["distance"].append(misses(ends, distance))
        missed["similarity"].append(misses(likeness, cosine))
        for wrong, factor in (("third", 1 / 3), ("three times", 3)):
            missed[wrong].append(
                [sum(misses(ends, factor * distance)), sum(misses(likeness, 1 - factor * (1 - cosine)))]
            )
    rates = {name: np.array(each) for name, each in missed.items()}
    for kind in ("distance", "similarity"):
        assert (rates[kind].mean(axis=0) <= tail + error(rates[kind])).all()
    for wrong in ("third", "three times"):
        assert (rates[wrong].mean(axis=0) > 2 * tail + error(rates[wrong])).all(), "too few pairs to tell"


def test_profiles_without_a_common_item_are_never_called_alike():
    # so few people that noise and chance are often all of a row's length
    halves = [Population.of_lists([[item] for item in range(start, start + 250)], 500) for start in (0, 250)]
    alike = [
        np.count_nonzero(pairs.similarity(Level(0.025, "asymptotic"))[0] >= ALIKE)
        for pairs in trials(tuple(halves), (1000, 1000), 256, 1)
    ]
    assert sum(alike) == 0
