"""How often `explain` is wrong, and how much it finds, against the same test without privacy.

Item groups of one trial share the noise of the number of people, so rates are means over trials, with the standard error of such
means. An end that misses with probability r is 0.9 or 1.1 times as far away at another rate, which LIMIT standard errors must tell
apart: at r = 0.025 the rates are 0.039 and 0.016, and (2·LIMIT)²·r/(0.025 − 0.016)² = 27,000 item groups are enough.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import nhds
from armslength.estimates.prevalence import Noise, Prevalence, difference_limits
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE
from margin_rows import noise, of_people, protocol, rows, sampled
from sides import explained
from statistical.limits import LIMIT, WRONG


def laplace(people):
    """Laplace noise whose scale is so many people."""
    return DiscreteLaplace(people * VOTE)


NONE = DiscreteLaplace(0.01)  # not 0 once in 10^43


class Released(NamedTuple):
    """How sides are released: the noise of each count and of four times the undercount, those of the number of people, and how many rows."""

    margin: DiscreteLaplace
    people: tuple[DiscreteLaplace, ...]
    often: tuple[int, int] = (1, 1)  # of both sides

    def noises(self, often):
        return (Noise(self.margin, often),), tuple(Noise(law, often) for law in self.people)


NO_NOISE = Released(NONE, (NONE, NONE))


class Undercount(NamedTuple):
    """The share of the people that are missing in the counts of people who have all item groups, and how much of that the counts lack."""

    share: float = 0.0
    lacking: tuple[float, float] = (
        0.0,
        0.0,
    )  # of both sides: 1 if these people have the item groups that are looked at, 0 if they do not


NO_UNDERCOUNT = Undercount()


def side(n, p, used, often, rng, *, chance=True, missing=0.0, lacking=0.0):
    """One side with an item group for each prevalence; n people in so many rows."""
    counts = rng.binomial(n, p) if chance else np.rint(n * np.asarray(p))
    undercount = rng.binomial(n, missing) if chance else round(n * missing)
    of_counts, of_people = used.noises(often)
    drawn = noise(used.margin, (often, len(p) + 1), rng).sum(axis=0) / VOTE
    total = n + sum(noise(law, often, rng).sum() for law in used.people) / VOTE
    known = undercount + drawn[-1] / 4
    counted = counts - lacking * np.minimum(undercount, counts)
    return Prevalence(counted + drawn[:-1], known, total, of_counts, of_people, chance)


def missed(trials, tail, case, p, used, *, undercount=NO_UNDERCOUNT, chance=True, factors=(1.0,)):
    """For each factor on the distances, and each end: the shares of item groups of each trial that are missed."""
    rng = np.random.default_rng(20)
    (n_a, n_b), (p_a, p_b) = case, p
    truth = p_b - p_a if chance else np.rint(n_b * p_b) / n_b - np.rint(n_a * p_a) / n_a
    shares = np.empty((len(factors), 2, trials))
    for trial in range(trials):
        sides = zip(case, p, used.often, undercount.lacking, strict=True)
        a, b = (
            side(n, q, used, count, rng, chance=chance, missing=undercount.share, lacking=lacking).limits(
                tail
            )
            for n, q, count, lacking in sides
        )
        _, lower, upper = difference_limits(a, b)
        least, most = b.least - a.most, b.most - a.least
        for place, factor in enumerate(factors):
            shares[place, 0, trial] = (least + factor * (lower - least) > truth).mean()
            shares[place, 1, trial] = (most + factor * (upper - most) < truth).mean()
    return shares


def error(shares):
    return shares.std(axis=-1) / np.sqrt(shares.shape[-1])


ONE_ROW = Released(laplace(40), (laplace(15), laplace(30)))
FOUR_ROWS = Released(laplace(30), (laplace(10), laplace(20)), (4, 4))
ENDS = {  # how sides are released, who is missing in the counts, and which ends must be exact
    "one row": (ONE_ROW, NO_UNDERCOUNT, (0, 1)),
    "sums": (FOUR_ROWS, NO_UNDERCOUNT, (0, 1)),
    # The undercount is all missing on one side, and not at all on the other: the difference is as far from what is counted as it can be.
    "all missing in a": (ONE_ROW, Undercount(0.04, (1, 0)), (0,)),
    "all missing in b": (FOUR_ROWS, Undercount(0.04, (0, 1)), (1,)),
}


@pytest.mark.parametrize("case", ENDS)
def test_each_end_misses_as_often_as_it_says(case):
    # Chance is most of the error, so that two sides add up like normal errors.
    used, undercount, exact = ENDS[case]
    tail, p = 0.025, (np.linspace(0.15, 0.5, 400), np.linspace(0.2, 0.4, 400))
    rates = missed(160, tail, (200_000, 90_000), p, used, undercount=undercount, factors=(1.0, *WRONG))
    right, *wrong = rates
    means, errors = right.mean(axis=-1), error(right)
    for end in range(2):
        if end in exact:
            assert abs(means[end] - tail) < LIMIT * errors[end], means / tail
            for shares in wrong:
                apart = abs(shares[end].mean() - tail)
                assert apart > LIMIT * error(shares[end]), "too few trials to tell"
        else:
            assert means[end] < tail


CASES = [  # people of a and b, prevalence in a and b, scale of the noise in people
    ((30, 30), (0.5, 0.5), 1),
    ((30, 1000), (0.1, 0.1), 2),
    ((100, 100), (0.02, 0.02), 2),
    ((100, 3000), (0.97, 0.5), 3),
    ((1000, 1000), (0.001, 0.001), 30),
    ((1000, 1000), (0.0, 1.0), 10),
    ((1000, 400), (0.98, 0.98), 15),
    ((1000, 100_000), (0.08, 0.05), 40),
    ((10**6, 10**6), (1e-5, 1e-5), 3),
    ((10**6, 3000), (0.2, 0.2), 40),
    ((10**6, 10**6), (1e-4, 3e-4), 0),
]
MISSING = {
    "nobody missing": NO_UNDERCOUNT,
    "all missing in a": Undercount(0.03, (1, 0)),
    "all missing in b": Undercount(0.03, (0, 1)),
}


@pytest.mark.parametrize(("people", "shares", "scale"), CASES)
@pytest.mark.parametrize("undercount", MISSING)
@pytest.mark.parametrize("chance", [True, False], ids=["populations", "people counted"])
def test_no_end_misses_more_often_than_it_says(people, shares, scale, undercount, chance):
    # Small parties, prevalences near 0 and 1, noise as large as the counts: a rate at most nominal, in a far tail, too.
    p = tuple(np.full(400, each) for each in shares)
    # A third of the noise of the number of people is that of T − Q.
    used = Released(laplace(scale), (laplace(scale / 3), laplace(2 * scale / 3))) if scale else NO_NOISE
    # An end 0.9 times as far away would miss 0.039 and 0.0027, above the limits of 0.032 and 0.0022.
    for tail, trials in ((0.025, 30), (0.001, 40)):
        rates = missed(trials, tail, people, p, used, undercount=MISSING[undercount], chance=chance)[0]
        # Rare misses hide their own variance: it is at least that of as many independent item groups at the rate.
        spread = np.maximum(error(rates), np.sqrt(tail / (400 * trials)))
        assert (rates.mean(axis=-1) < tail + LIMIT * spread).all(), rates.mean(axis=-1) / tail


@pytest.mark.parametrize("often", [(5, 5), (1, 5)], ids=["five and five", "one and five"])
@pytest.mark.parametrize("undercount", MISSING)
def test_sums_of_rows_lie_in_their_intervals(undercount, often):
    p = np.array([0.05, 0.2, 0.6])
    used = Released(laplace(25), (laplace(8), laplace(16)), often)
    sides = p.repeat(60), p[::-1].repeat(60)
    rates = missed(100, 0.02, (4000, 9000), sides, used, undercount=MISSING[undercount])[0]
    assert (rates.mean(axis=-1) < 0.02 + LIMIT * error(rates)).all()


def test_with_refusals_as_no_claim_nothing_is_missed_more_often():
    # Of the answers given it would be more: a party that is mostly refused is answered where its n̂ is too large.
    used = Released(laplace(40), (laplace(19), laplace(38)))
    tail, groups, trials = 0.025, 20, 300
    rng, p = np.random.default_rng(23), np.full(groups, 0.98)
    shares, answered = np.zeros((2, trials)), 0
    for trial in range(trials):
        sides = [side(n, p, used, 1, rng) for n in (1000, 300)]
        if all(each.has_people(0.0005) for each in sides):
            _, lower, upper = difference_limits(*(each.limits(tail) for each in sides))
            shares[:, trial] = (lower > 0).mean(), (upper < 0).mean()
            answered += 1
    assert 0.5 * trials < answered < 0.9 * trials
    assert (shares.mean(axis=-1) < tail + LIMIT * error(shares)).all()


@pytest.mark.parametrize("beyond_chance", [True, False])
def test_the_average_of_rows_lies_in_its_interval(beyond_chance):
    """The typical party: rows with weights, whose shares differ. The noise of counts is most for rare item groups, that of the people for frequent ones."""
    tail, trials, each = 0.02, 300, 10
    names = {f"i{number}": f"{number:02}" for number in range(2 * each - 1)}
    used = protocol(epsilon=2, margins=names, margin_share="0.5", total_share="0.05")
    rng, people = np.random.default_rng(24), np.array([3000, 1500, 9000, 2000])
    weights = np.array([0.5, 1.0, 1 / 6, 0.75])
    p = np.hstack([rng.uniform(0.02, 0.06, (len(people), each)), rng.uniform(0.8, 1.0, (len(people), each))])
    shares = np.empty((2, 2, trials))  # of both ends, rare and frequent item groups
    for trial in range(trials):
        counts = rng.binomial(people[:, None], p)
        of_rows = rows(used, list("abcd"), people, counts, rng)
        average = Prevalence.of(of_rows, beyond_chance=beyond_chance, weights=weights).limits(tail)
        true = (weights * people) @ (p if beyond_chance else counts / people[:, None]) / (weights @ people)
        misses = np.array([average.lower > true, average.upper < true])
        shares[..., trial] = misses.reshape(2, 2, each).mean(axis=-1)
    assert (shares.mean(axis=-1) < tail + LIMIT * error(shares)).all()
    assert (shares.mean(axis=(0, 2)) > tail / 10).all()  # cautious, but not absurdly


USUAL = np.concatenate([np.geomspace(0.001, 0.4, 19), [0.9]])
GROUPS = {f"i{number}": f"group {number}" for number in range(len(USUAL) - 1)}


@pytest.mark.parametrize(
    ("people", "epsilons"),
    [
        ((300, 800), (40, 40)),
        ((5000, 20_000), (1, 1)),
        ((5000, 20_000), (4, 1)),
        ((200_000, 100_000), (40, 40)),
    ],
    ids=["small", "noise", "two noises", "hardly any noise"],
)
def test_one_population_has_no_differences(people, epsilons):
    level, trials = 0.8, 100
    rng = np.random.default_rng(21)
    first, second = (protocol(epsilon=epsilon, margins=GROUPS) for epsilon in epsilons)
    false = naive = 0
    for _ in range(trials):
        a = sampled(first, ["a"], people[:1], USUAL, rng)
        b = sampled(second, ["b"], people[1:], USUAL, rng)
        false += explained(a, b, level=level).found > 0
        naive += explained(a, b, level=level, about="people").found > 0
    rate = 1 - level
    allowed = rate * trials + LIMIT * np.sqrt(rate * level * trials)
    assert false <= allowed
    if min(epsilons) == 40:
        assert naive > allowed  # chance is most of the error here


# Of the first, 0.2 % of the people are missing in counts with G = 6 at most, and of the second 3.6 %; with 8, 0.0 and 0.6 %.
PARTIES = ("Midwest", "for-profit"), ("South", "government")


@pytest.mark.parametrize("beyond_chance", [True, False])
@pytest.mark.parametrize("bound", [6, 8, 19])
def test_plain_shares_are_covered_however_many_item_groups_people_have(bound, beyond_chance):
    """Stays of two parties of the hospital survey, with 1 to 12 of 19 chapters each."""
    chapters = [nhds.chapters_of(party) for party in PARTIES]
    names = {f"i{number}": f"{number:02}" for number in range(chapters[0].shape[1])}
    used = protocol(epsilon=8, margins=names, margin_contribution=bound)
    rng, level, trials, people = np.random.default_rng(25), 0.8, 50, 20_000
    # with the undercount, and where it matters most as if there were none
    missed = dict.fromkeys([True, False] if bound == 6 else [True], 0)
    for _ in range(trials):
        drawn = [each[rng.integers(0, len(each), people)] for each in chapters]
        shares = [each.mean(axis=0) for each in (chapters if beyond_chance else drawn)]
        truth = np.append(shares[1] - shares[0], 0.0)  # nobody has anything else
        for knows in missed:
            a, b = (
                of_people(used, [name], [each], rng, knows_undercount=knows)
                for name, each in zip("ab", drawn, strict=True)
            )
            found = explained(a, b, level=level, about="populations" if beyond_chance else "people")
            order = [used.margins.names.index(name) for name in found.item_groups]
            missed[knows] += ((found.lower > truth[order]) | (truth[order] > found.upper)).any()
    allowed = (1 - level) * trials + LIMIT * np.sqrt((1 - level) * level * trials)
    assert missed[True] <= allowed
    assert missed.get(False, trials) > allowed


EIGHT_ROWS = Released(laplace(16), (laplace(8), laplace(14)), (8, 8))


def errors_of(n, p, used):
    """(chance, privacy): their variances in the difference of two prevalences of these people."""
    # of the counts, of the undercount where something could be missing, and of the number of people
    margin, people = (
        np.array(used.often) * sum(law.second_moment for law in laws) / VOTE**2
        for laws in ((used.margin,), used.people)
    )
    return (p * (1 - p) / n).sum(), ((margin * np.array([1 + 1 / 16, 1]) + p**2 * people) / n**2).sum()


@pytest.mark.parametrize(
    ("used", "p"),
    [
        (EIGHT_ROWS, (0.2, 0.21)),
        (Released(laplace(16), (laplace(8), laplace(14)), (4, 20)), (0.3, 0.1)),
        (Released(laplace(5), (laplace(10), laplace(20)), (8, 8)), (0.8, 0.9)),
    ],
    ids=["eight rows", "more rows", "noise in the number of people"],
)
def test_intervals_widen_as_the_noise_says(used, p):
    n, p, tail = np.array([60_000, 40_000]), np.array(p), 0.025 / 20
    chance, privacy = errors_of(n, p, used)
    rng, widths = np.random.default_rng(22), []
    for released in (used, NO_NOISE):
        each = []
        for _ in range(10):
            noises = zip(n, p, released.often, strict=True)
            a, b = (side(m, np.full(50, q), released, often, rng).limits(tail) for m, q, often in noises)
            each.append((b.least - a.most - difference_limits(a, b)[1]).mean())
        widths.append(np.mean(each))
    ratio = np.sqrt(1 + privacy / chance)
    assert 1.1 < ratio < 1.5
    assert widths[0] / widths[1] == pytest.approx(ratio, rel=0.02)


def test_only_the_end_that_an_undercount_moves_has_its_noise():
    # which is a quarter of that of a count
    often = 60  # so many noises that their sum is normal
    people = side(
        10**6, np.full(1, 0.3), Released(laplace(500), (NONE, NONE)), often, np.random.default_rng(26)
    )
    known = replace(people, beyond_chance=False).limits(0.025 / 20)
    ratio = (known.upper - known.most) / (known.least - known.lower)
    assert ratio[0] == pytest.approx(np.sqrt(1 + 1 / 16), rel=0.003)


def test_privacy_costs_as_much_power_as_its_noise_says():
    """Power falls to Φ(δ/SE − z), with a standard error that privacy makes √(1 + privacy/chance) times as large."""
    trials, groups, tail = 100, 400, 0.025 / 20
    n, p_a, z = np.array([60_000, 40_000]), 0.2, -ndtri(tail)
    step = 1.4 * z * np.sqrt(p_a * (1 - p_a) * (1 / n).sum())
    p = np.array([p_a, p_a + step])
    chance, privacy = errors_of(n, p, EIGHT_ROWS)
    rng = np.random.default_rng(22)
    for used, variance in ((EIGHT_ROWS, chance + privacy), (NO_NOISE, chance)):
        shares = []
        for _ in range(trials):
            noises = zip(n, p, used.often, strict=True)
            a, b = (side(m, np.full(groups, q), used, often, rng).limits(tail) for m, q, often in noises)
            shares.append((difference_limits(a, b)[1] > 0).mean())
        share, power = np.array(shares), ndtr(step / np.sqrt(variance) - z)
        assert abs(share.mean() - power) < LIMIT * error(share), (share.mean(), power)
        for factor in WRONG:
            assert abs(share.mean() - factor * power) > LIMIT * error(share), "too few trials to tell"
