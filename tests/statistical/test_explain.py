"""How often `explain` is wrong, and how much it finds, against the same test without privacy.

Item groups of one trial share the noise of the number of people, so rates are means over trials, with the standard error of such
means. An end that misses with probability r is 0.9 or 1.1 times as far away at another rate, which LIMIT standard errors must tell
apart: at r = 0.025 the rates are 0.039 and 0.016, and (2·LIMIT)²·r/(0.025 − 0.016)² = 27,000 item groups are enough.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import armslength as al
from armslength.estimates.prevalence import Prevalence, difference_limits
from armslength.laws import DiscreteLaplace, RoundedNormal
from margin_rows import noise, protocol, sampled
from statistical.limits import LIMIT, WRONG

NONE = DiscreteLaplace(0.01)  # not 0 once in 10^43


def side(n, p, law, often, rng, *, chance=True):
    """One side with an item group for each prevalence; n people in so many rows."""
    counts = rng.binomial(n, p) if chance else np.rint(n * np.asarray(p))
    drawn = noise(law, (often, len(p) + 1), rng).sum(axis=0)
    return Prevalence(counts + drawn[:-1].astype(float), float(n + drawn[-1]), ((law, often),), chance)


def missed(trials, tail, case, p, law, often=(1, 1), *, chance=True, factors=(1.0,)):
    """For each factor on the distances, and each end: the shares of item groups of each trial that are missed."""
    rng = np.random.default_rng(20)
    (n_a, n_b), (p_a, p_b) = case, p
    truth = p_b - p_a if chance else np.rint(n_b * p_b) / n_b - np.rint(n_a * p_a) / n_a
    shares = np.empty((len(factors), 2, trials))
    for trial in range(trials):
        sides = zip((n_a, n_b), (p_a, p_b), often, strict=True)
        a, b = (side(n, q, law, count, rng, chance=chance).limits(tail) for n, q, count in sides)
        value, lower, upper = difference_limits(a, b)
        for place, factor in enumerate(factors):
            shares[place, 0, trial] = (value + factor * (lower - value) > truth).mean()
            shares[place, 1, trial] = (value + factor * (upper - value) < truth).mean()
    return shares


def error(shares):
    return shares.std(axis=-1) / np.sqrt(shares.shape[-1])


@pytest.mark.parametrize(
    ("law", "often"),
    [(DiscreteLaplace(40), (1, 1)), (RoundedNormal(80), (1, 1)), (DiscreteLaplace(30), (4, 4))],
    ids=["laplace", "gaussian", "sums"],
)
def test_each_end_misses_as_often_as_it_says(law, often):
    tail, p = 0.025, (np.linspace(0.15, 0.5, 200), np.linspace(0.2, 0.4, 200))
    rates = missed(250, tail, (200_000, 90_000), p, law, often, factors=(1.0, *WRONG))
    right, *wrong = rates
    means, errors = right.mean(axis=-1), error(right)
    assert (np.abs(means - tail) < LIMIT * errors).all(), means / tail
    for shares in wrong:
        assert (np.abs(shares.mean(axis=-1) - tail) > LIMIT * error(shares)).all(), "too few trials to tell"


CASES = [  # people of a and b, prevalence in a and b, noise
    ((30, 30), (0.5, 0.5), DiscreteLaplace(1)),
    ((30, 1000), (0.1, 0.1), DiscreteLaplace(2)),
    ((100, 100), (0.02, 0.02), DiscreteLaplace(2)),
    ((100, 3000), (0.97, 0.5), RoundedNormal(4)),
    ((1000, 1000), (0.001, 0.001), DiscreteLaplace(30)),
    ((1000, 1000), (0.0, 1.0), DiscreteLaplace(10)),
    ((1000, 400), (0.98, 0.98), RoundedNormal(20)),
    ((1000, 100_000), (0.08, 0.05), DiscreteLaplace(40)),
    ((10**6, 10**6), (1e-5, 1e-5), DiscreteLaplace(3)),
    ((10**6, 3000), (0.2, 0.2), RoundedNormal(60)),
    ((10**6, 10**6), (1e-4, 3e-4), NONE),
]


@pytest.mark.parametrize(("people", "shares", "law"), CASES)
@pytest.mark.parametrize("chance", [True, False], ids=["populations", "people counted"])
def test_no_end_misses_more_often_than_it_says(people, shares, law, chance):
    # Small parties, prevalences near 0 and 1, noise as large as the counts: a rate at most nominal, in a far tail, too.
    p = tuple(np.full(400, each) for each in shares)
    # An end 0.9 times as far away would miss 0.039 and 0.0027, above the limits of 0.032 and 0.0022.
    for tail, trials in ((0.025, 30), (0.001, 40)):
        rates = missed(trials, tail, people, p, law, chance=chance)[0]
        # Rare misses hide their own variance: it is at least that of as many independent item groups at the rate.
        spread = np.maximum(error(rates), np.sqrt(tail / (400 * trials)))
        assert (rates.mean(axis=-1) < tail + LIMIT * spread).all(), rates.mean(axis=-1) / tail


@pytest.mark.parametrize("often", [(5, 5), (1, 5)], ids=["five and five", "one and five"])
@pytest.mark.parametrize("law", [DiscreteLaplace(25), RoundedNormal(40)], ids=["laplace", "gaussian"])
def test_sums_of_rows_lie_in_their_intervals(law, often):
    p = np.array([0.01, 0.2, 0.6])
    rates = missed(200, 0.02, (4000, 9000), (p.repeat(60), p[::-1].repeat(60)), law, often)[0]
    assert (rates.mean(axis=-1) < 0.02 + LIMIT * error(rates)).all()


def test_with_refusals_as_no_claim_nothing_is_missed_more_often():
    # Of the answers given it would be more: a party that is mostly refused is answered where its n̂ is too large.
    law, tail, groups, trials = DiscreteLaplace(40), 0.025, 20, 500
    rng, p = np.random.default_rng(23), np.full(groups, 0.98)
    shares, answered = np.zeros((2, trials)), 0
    for trial in range(trials):
        sides = [side(n, p, law, 1, rng) for n in (1000, 300)]
        if all(each.has_people(0.0005) for each in sides):
            _, lower, upper = difference_limits(*(each.limits(tail) for each in sides))
            shares[:, trial] = (lower > 0).mean(), (upper < 0).mean()
            answered += 1
    assert 0.5 * trials < answered < 0.9 * trials
    assert (shares.mean(axis=-1) < tail + LIMIT * error(shares)).all()


USUAL = np.concatenate([np.geomspace(0.001, 0.4, 19), [0.9]])
GROUPS = {f"i{number}": f"group {number}" for number in range(len(USUAL) - 1)}


@pytest.mark.parametrize(
    ("people", "epsilons", "noises"),
    [
        ((300, 800), (40, 40), {}),
        ((5000, 20_000), (1, 1), {}),
        ((5000, 20_000), (4, 1), {}),
        ((200_000, 100_000), (40, 40), {}),
        ((20_000, 20_000), (1, 1), {"noise": "gaussian", "delta": "1e-6"}),
    ],
    ids=["small", "noise", "two noises", "hardly any noise", "gaussian"],
)
def test_one_population_has_no_differences(people, epsilons, noises):
    level, trials = 0.8, 150
    rng = np.random.default_rng(21)
    first, second = (protocol(epsilon=epsilon, margins=GROUPS, **noises) for epsilon in epsilons)
    false = naive = 0
    for _ in range(trials):
        a = sampled(first, ["a"], people[:1], USUAL, rng)
        b = sampled(second, ["b"], people[1:], USUAL, rng)
        false += al.explain(a, b, level=level).found > 0
        naive += al.explain(a, b, level=level, beyond_chance=False).found > 0
    rate = 1 - level
    allowed = rate * trials + LIMIT * np.sqrt(rate * level * trials)
    assert false <= allowed
    if min(epsilons) == 40:
        assert naive > allowed  # chance is most of the error here


@pytest.mark.parametrize(
    ("law", "often"), [(RoundedNormal(64), 1), (DiscreteLaplace(16), 8)], ids=["gaussian", "laplace"]
)
def test_privacy_costs_as_much_power_as_its_noise_says(law, often):
    """The standard error grows by √(1 + Σ(1+p²)v/n² / Σp(1−p)/n), and power falls to Φ(δ/SE − z)."""
    trials, groups, tail = 100, 200, 0.025 / 20
    n, p_a, z = np.array([60_000, 40_000]), 0.2, -ndtri(tail)
    chance_only = np.sqrt(p_a * (1 - p_a) * (1 / n).sum())
    step = z * chance_only * 1.2
    p = np.array([p_a, p_a + step])
    variance = often * law.second_moment
    chance, privacy = (p * (1 - p) / n).sum(), ((1 + p**2) * variance / n**2).sum()
    ratio = np.sqrt(1 + privacy / chance)
    assert 1.1 < ratio < 1.4
    rng = np.random.default_rng(22)
    found, widths = [], []
    for used, count in ((law, often), (NONE, 1)):
        each, reach = [], []
        for _ in range(trials):
            sides = [
                side(m, np.full(groups, q), used, count, rng).limits(tail) for m, q in zip(n, p, strict=True)
            ]
            value, lower, _ = difference_limits(*sides)
            each.append((lower > 0).mean())
            reach.append((value - lower).mean())
        found.append(np.array(each))
        widths.append(np.mean(reach))
    assert widths[0] / widths[1] == pytest.approx(ratio, rel=0.02)
    for share, scale in zip(found, (ratio, 1.0), strict=True):
        power = ndtr(step / (scale * np.sqrt(chance)) - z)
        assert abs(share.mean() - power) < LIMIT * error(share), (share.mean(), power)
        for factor in WRONG:
            assert abs(share.mean() - factor * power) > LIMIT * error(share), "too few trials to tell"
