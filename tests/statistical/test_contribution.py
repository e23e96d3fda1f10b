"""The noise of the histogram of items per person, and the intervals that rest on it."""

import math

import numpy as np
import pytest

import armslength as al
from armslength.estimates.contribution_quantiles import EDGES, QUANTILES, _largest_deviation, bucket_counts
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.release.contribution import histogram_protocol
from armslength.release.release import release
from statistical.limits import LIMIT, WRONG, check_variance, draws_for_variance

BUCKETS = len(EDGES) + 1


def noises(protocol, trials):
    """Noise of so many histograms, through the door by which every histogram leaves."""
    sums = Sums(np.zeros((trials, BUCKETS), dtype=np.int64), None, "events")
    return release(protocol, sums, None, open_account(al.NO_LEDGER, "")).values


@pytest.mark.parametrize(("epsilon", "relation", "scale"), [("0.1", "add_remove", 10), ("0.5", "replace", 4)])
def test_the_noise_is_that_of_the_sensitivity(epsilon, relation, scale):
    # a discrete Laplace of scale b: variance 2α/(1−α)², kurtosis below 6 + 1/(2b²)
    draws = noises(
        histogram_protocol(epsilon, relation, "one patient"), draws_for_variance(6.1) // BUCKETS + 1
    )
    ratio = math.exp(-1 / scale)
    check_variance(draws.ravel(), 0, 2 * ratio / (1 - ratio) ** 2)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", 3])
def test_all_deviations_together_are_missed_as_often_as_stated(epsilon):
    # the rate at 0.9 and 1.1 of the limit is about 9 and 3 percent: 20,000 trials tell both from 5, with the simulation's own error
    protocol, trials, level = histogram_protocol(epsilon, "add_remove", "one patient"), 20_000, 0.95
    limit = _largest_deviation(protocol.law, BUCKETS, level) * math.sqrt(protocol.law.second_moment)
    below = np.cumsum(noises(protocol, trials).astype(np.float64), axis=1)
    worst = np.zeros(trials)
    j = np.arange(1, BUCKETS)
    for q in np.linspace(0, 1, 401):
        error = below[:, :-1] - q * below[:, -1:]
        worst = np.maximum(
            worst, (np.abs(error) / np.sqrt((1 - q) ** 2 * j + q**2 * (BUCKETS - j))).max(axis=1)
        )
    error = LIMIT * math.sqrt(level * (1 - level) * (1 / trials + 1 / 100_000))
    slack = 0.002  # the grid of q, and ties of a discrete law
    assert (worst > limit).mean() - (1 - level) < error + slack
    assert protocol.law.scale < 1 or (1 - level) - (worst > limit).mean() < error + slack
    for factor in (
        WRONG if protocol.law.scale > 1 else ()
    ):  # else few values are possible, and 1.1 may be the same one
        assert abs((worst > factor * limit).mean() - (1 - level)) > error + slack


@pytest.mark.parametrize("times", [100, 1000])
def test_intervals_hold_the_quantiles_and_the_answer_is_near(times):
    # misses: at most 5 percent of 400 runs is 20 ± 4.4; a rate of 5 percent passes 42 with probability below 1e-6
    protocol, trials = histogram_protocol("0.1", "add_remove", "one patient"), 400
    people = times * 10
    totals = np.ceil(np.random.default_rng(1).lognormal(1.5, 1, people))
    truth = bucket_counts(totals)
    places = [int(np.searchsorted(np.cumsum(truth), q * people)) for q in QUANTILES]
    edges = [*EDGES, math.inf]
    missed, shares_missed, far = 0, 0, 0
    for noise in noises(protocol, trials):
        result = al.ContributionQuantiles(truth + noise, protocol.law)
        rows, shares = result.to_arrow().to_pylist(), result.shares()
        truths = np.cumsum(truth)[:-1] / people
        shares_missed += not np.all(
            (shares["lower"].to_numpy() <= truths) & (truths <= shares["upper"].to_numpy())
        )
        missed += any(
            not row["lower"] <= edges[place] <= row["upper"] for row, place in zip(rows, places, strict=True)
        )
        far += abs(edges.index(rows[2]["items"]) - places[2]) > 1
    assert missed <= 42
    assert shares_missed <= 42
    assert far <= 42  # of the 90 percent quantile, at the least number of people with which it is trusted
