"""Intervals of single items miss as often as stated, with one block exactly, whatever the data is.

Sizes: a rate p is told from 0.9 and 1.1 of it by (1 − p)/p·(2·LIMIT/0.1)² trials. On real data the claim is a bound, and the
test rejects more misses than a binomial law with that bound has in all but FALSE_ALARM of all runs.
"""

import math
import os
from statistics import NormalDist

import numpy as np
import pytest
from scipy import sparse
from scipy.special import betainc
from scipy.stats import binom

import armslength as al
from armslength.estimates.item_intervals import item_intervals
from armslength.ingest.sums import Sums
from armslength.protocol.neighbors import VOTE
from armslength.releasing.release import finished, noised
from drawn_votes import Counted, vote_protocol
from drawn_votes import released as drawn
from flat_protocol import flat_protocol
from populations import DATA, independent
from populations import zipf as mix_of_zipf
from sides import items_explained
from statistical.limits import FALSE_ALARM, LIMIT, WRONG

ERROR = 0.2  # of the trials on data


def zipf(items, power=1.1, people=20_000):
    """Two parties: the same counts by Zipf's law, of different items."""
    counts = (people / np.arange(1, items + 1) ** power).astype(np.int64)
    return np.stack([counts, np.random.default_rng(5).permutation(counts)])


def loaded(name):
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name} is not beside the project")
    with np.load(path, allow_pickle=False) as z:
        matrix = sparse.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
        return matrix, {key: z[key] for key in z.files if key not in ("data", "indices", "indptr", "shape")}


def sums(matrix, party, labels):
    return np.stack(
        [np.asarray(matrix[np.flatnonzero(party == label)].sum(axis=0)).ravel() for label in labels]
    )


def people(name):
    """Two parties: the items of each person, 0 or 1, and how many such people there are."""
    if name == "zipf":
        counts = zipf(4000)
    elif name == "babynames":
        births, about = loaded("babynames_state_year")
        counts = sums(births[about["year"] == 2020], about["state"][about["year"] == 2020], ["NJ", "MA"])
    else:
        key, file = ("country", "retail_customers") if name == "retail" else ("region", "eicu_demo_stays")
        everybody, about = loaded(file)
        regions, sizes = np.unique(about[key], return_counts=True)
        names = ["Germany", "United Kingdom"] if name == "retail" else regions[np.argsort(-sizes)[:2]]
        has_items = np.diff(everybody.indptr) > 0
        one_each = [(everybody[(about[key] == name) & has_items] > 0).astype(np.int64) for name in names]
        return [(matrix, np.ones(matrix.shape[0], dtype=np.int64)) for matrix in one_each]
    return [(sparse.eye_array(counts.shape[1], dtype=np.int64, format="csr"), line) for line in counts]


def parties(name):
    """The counts of two parties."""
    return np.stack([often @ matrix for matrix, often in people(name)])


def votes(name):
    """The votes of two parties in grid units: each person's are split evenly over their items, in whole units."""
    return np.stack([(often * (VOTE // np.diff(matrix.indptr))) @ matrix for matrix, often in people(name)])


def released(counts, transform, **fields):
    protocol = flat_protocol(transform, **fields)
    return al.release(protocol, counts, labels=["a", "b"], ledger=al.NO_LEDGER)


def released_votes(counts, transform, **fields):
    """What an event table would release of these votes. How long they are does not matter here, beyond the noise that it gives totals."""
    protocol = flat_protocol(transform, contribution="vote", unit="one person", **fields)
    spread = np.zeros((2, 1 + protocol.releases_norm), dtype=np.int64)
    exact = Sums(transform.apply(counts), counts.sum(axis=1), "events", spread=spread)
    return finished(protocol, noised(protocol, exact), ["a", "b"], release=os.urandom(16))


def check_rate(happened, expected):
    """The rate of independent trials is the one expected, and neither 0.9 nor 1.1 of it."""
    happened, expected = np.asarray(happened, dtype=float), np.asarray(expected)
    error = happened.std() / math.sqrt(len(happened))
    assert abs(happened.mean() - expected.mean()) < LIMIT * error
    for factor in WRONG:
        assert abs(happened.mean() - factor * expected.mean()) > LIMIT * error, "too few trials to tell"


def check_bound(misses, trials, rate):
    """No more misses than the rate explains."""
    assert misses <= binom.isf(FALSE_ALARM, trials, rate), f"{misses} of {trials}"


@pytest.mark.parametrize("has_difference", [True, False])
def test_one_block_misses_exactly_as_often_as_stated(has_difference):
    # Also the rate of false discoveries where nothing differs: then a miss is an interval without 0.
    count, k, error = 15, 400, 0.8
    counts = zipf(1000) if has_difference else zipf(1000)[[0, 0]]
    truth = counts[1] - counts[0]
    missed, expected = [], []
    for trial in range(2_600):  # (1 − 0.8)/0.8·9,570 = 2,400
        transform = al.SparseJL(input_dim=1000, sketch_dim=k, seed=f"items {trial}")
        rows = released(counts, transform, epsilon="0.02")
        found = item_intervals([rows[1] - rows[0]], np.arange(count), error)
        alone = np.bincount(found.bins, minlength=k)[found.bins] == 1
        if not alone.all():
            # What a bin shows is the sum of its items.
            total = np.bincount(found.bins, weights=found.signs * truth[:count], minlength=k)
            wanted = found.signs * total[found.bins]
        else:
            wanted = truth[:count]
        missed.append(((wanted < found.lower) | (wanted > found.upper)).any())
        bins = len(set(found.bins.tolist()))
        none = np.cumprod((k - bins - np.arange(k - bins)) / (k - np.arange(k - bins)))
        expected.append(1 - none[np.flatnonzero(1 - none <= error)[-1]])
    check_rate(missed, expected)


def test_most_of_three_blocks_miss_exactly_as_often_as_stated():
    # Many items at a large error, so that few trials are enough. A list this short has bins of its own in nearly all blocks.
    count, blocks, each, error = 20, 3, 200, 8.0
    counts = zipf(1000)
    truth = (counts[1] - counts[0])[:count]
    misses, expected = [], []
    for trial in range(1_500):
        transform = al.SparseJL(
            input_dim=1000, sketch_dim=blocks * each, sparsity=blocks, seed=f"items {trial}"
        )
        rows = released(counts, transform, epsilon="0.05", delta="1e-6", noise="gaussian")
        found = item_intervals([rows[1] - rows[0]], np.arange(count), error)
        misses.append(((truth < found.lower) | (truth > found.upper)).mean())
        places = transform.signed_rows(np.arange(count)).astype(int)
        places = np.where(places < 0, -1 - places, places)
        members = np.bincount(places.ravel(), minlength=blocks * each)
        clear = (members[places] == 1).sum(axis=1)
        free = (members.reshape(blocks, each) == 0).sum(axis=1).mean()
        expected.append(np.mean([rate_of(int(c), error / count, free) for c in clear]))
    check_rate(misses, expected)


def rate_of(clear, error, free):
    """2·P(Bin(c, p/2) ≥ majority) at the largest rank L = p·(free + 1) with at most this error; by search."""
    majority = clear // 2 + 1
    rates = 2 * betainc(majority, clear - majority + 1, np.arange(int(free) + 1) / (free + 1) / 2)
    return rates[np.flatnonzero(rates <= error)[-1]]


SKETCHES = {
    "one block": {"sketch_dim": 3000},
    "balanced": {"sketch_dim": 3000, "construction": "balanced"},
    "three blocks": {"sketch_dim": 1500, "sparsity": 3},
}


def with_ties(answer, truth):
    """For each item of an answer what its interval is of: what is true of it, and of all that are tied with it."""
    wanted = truth[np.array(list(map(int, answer.items)))].astype(float)
    for place, ties in enumerate(answer.ties):
        wanted[place] += sum(truth[int(item)] * (1 if way == "more" else -1) for item, way in ties)
    return wanted


@pytest.mark.parametrize("asked", ["amounts", "votes", "shares of votes"])
@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("name", ["zipf", "babynames", "retail", "eicu"])
def test_misses_on_data_are_at_most_as_many_as_stated(name, sketch, asked):
    counts = parties(name) if asked == "amounts" else votes(name)
    by_shape = asked == "shares of votes"
    unit = counts.sum(axis=1, keepdims=True) if by_shape else VOTE if asked == "votes" else 1
    truth = np.diff(counts / unit, axis=0)[0]
    popular = np.argsort(-counts.sum(axis=0), kind="stable")
    items = popular[1:121:2]  # half of the popular ones: the others are large, and in any bin
    trials, misses = 150, 0
    for trial in range(trials):
        transform = al.SparseJL(input_dim=counts.shape[1], seed=f"items {trial}", **SKETCHES[sketch])
        if asked == "amounts":
            rows = released(counts, transform, epsilon=1, contribution=1)
        else:
            rows = released_votes(
                counts, transform, epsilon=4, total_share="0.1"
            )  # 94 people are in one party
        answer = items_explained(
            rows["a"], rows["b"], items, level=1 - ERROR, about="people" if by_shape else "counts"
        )
        wanted = with_ties(answer, truth)
        misses += bool(((wanted < answer.lower) | (wanted > answer.upper)).any())
    check_bound(misses, trials, ERROR)


@pytest.mark.parametrize("sketch", SKETCHES)
def test_beyond_chance_samples_of_one_population_miss_at_most_as_often_as_stated(sketch):
    """The truth is 0. Of the people counted it is not: with hardly any noise, nearly all samples differ."""
    population, rng, trials = (
        independent(np.full(300, 4), mix_of_zipf(1.0, 300)),
        np.random.default_rng(8),
        60,
    )
    misses = {"populations": 0, "people": 0}
    for trial in range(trials):
        known = {"sparsity": 1} | SKETCHES[sketch]
        protocol = vote_protocol(300, epsilon=100, seed=f"items {trial}", **known)
        a, b = drawn(protocol, Counted.of(protocol, population).drawn(rng, 400, 2))
        for about in misses:
            answer = items_explained(a, b, range(0, 120, 2), level=1 - ERROR, about=about)
            misses[about] += bool(((answer.lower > 0) | (answer.upper < 0)).any())
    check_bound(misses["populations"], trials, ERROR)
    assert misses["people"] > binom.isf(FALSE_ALARM, trials, ERROR)


def test_normal_intervals_would_miss_too_often():
    counts, count, error = parties("zipf"), 300, 0.05
    truth = counts[1] - counts[0]
    items = np.argsort(-counts.sum(axis=0), kind="stable")[1 : 2 * count : 2]
    trials, misses, by_normal = 200, 0, 0
    for trial in range(trials):
        transform = al.SparseJL(input_dim=counts.shape[1], sketch_dim=20 * count, seed=f"items {trial}")
        rows = released(counts, transform, epsilon=1, contribution=1)
        found = item_intervals([rows["b"] - rows["a"]], items, error)
        total = np.bincount(found.bins, weights=found.signs * truth[items], minlength=20 * count)
        wanted = found.signs * total[found.bins]
        misses += bool(((wanted < found.lower) | (wanted > found.upper)).any())
        reach = -NormalDist().inv_cdf(error / count / 2) * (rows["b"] - rows["a"]).values.std()
        by_normal += bool((np.abs(wanted - found.value) > reach).any())
    check_bound(misses, trials, error)
    assert by_normal > binom.isf(FALSE_ALARM, trials, error)


@pytest.mark.parametrize("name", ["zipf", "babynames"])
def test_a_whole_vocabulary_with_three_blocks(name):
    counts = parties(name)
    truth = counts[1] - counts[0]
    largest = set(np.argsort(-np.abs(truth))[:10].tolist())
    trials, misses, hits = 40, 0, 0
    for trial in range(trials):
        transform = al.SparseJL(input_dim=counts.shape[1], sketch_dim=6144, sparsity=3, seed=f"items {trial}")
        rows = released(counts, transform, epsilon=1, contribution=1)
        answer = items_explained(rows["a"], rows["b"], range(counts.shape[1]), level=1 - ERROR)
        numbers = np.array(list(map(int, answer.items)))
        misses += bool(((truth[numbers] < answer.lower) | (truth[numbers] > answer.upper)).any())
        told = {
            number
            for number, verdict in zip(numbers.tolist(), answer.verdict, strict=True)
            if verdict in ("more", "fewer")
        }
        hits += len(largest & told)
    check_bound(misses, trials, ERROR)
    assert hits >= 6 * trials  # most of the ten that differ most, of all there are


def test_shares_with_coarse_totals():
    counts = parties("zipf") // 40 + 1
    truth = counts[1] / counts[1].sum() - counts[0] / counts[0].sum()
    trials, misses = 150, 0
    for trial in range(trials):
        transform = al.SparseJL(input_dim=counts.shape[1], sketch_dim=600, sparsity=3, seed=f"items {trial}")
        # the noise of a total has a scale of 1/(ε·share) = 500 where totals are about 8,000
        rows = released(counts, transform, epsilon="0.1", contribution=1, total_share="0.02")
        try:
            answer = items_explained(rows["a"], rows["b"], range(30), level=1 - ERROR, about="people")
        except al.NotResolvableError:
            continue  # a total that may be 0: nothing was said, so nothing was wrong
        wanted = truth[list(map(int, answer.items))]
        misses += bool(((wanted < answer.lower) | (wanted > answer.upper)).any())
    check_bound(misses, trials, ERROR)
