"""Distances under a bound in the sketch: nearly unbiased for people with more items than count, and of the variance that a plan states.

What the bound leaves out of a random run is a random run again, so it moves a distance by far less than a percent. With little noise, the
standard error over fresh matrices and keys is that of the projection, √(2/256) of the distance, so that 300 releases tell it from 0.9 and
1.1 of it. For one matrix the estimate is nearly normal, and `draws_for_variance(4)` rows tell its variance.
"""

import numpy as np

import armslength as al
from armslength.estimates.variance import ErrorModel
from armslength.ingest.sketch_bound import longest_prefix
from armslength.ingest.sums import Sums
from armslength.laws import Cumulants
from armslength.ledger.ledger import open_account
from armslength.release.release import release
from statistical.limits import check_mean, check_variance, draws_for_variance

ITEMS, PEOPLE, CONTRIBUTION, SIZE = 400, 60, 20, 256
GENERATOR = np.random.default_rng(5)
MIXES = [GENERATOR.permutation(1 / np.arange(1, ITEMS + 1)) for _ in range(2)]
HELD = [  # each person has three times as many items as count
    [GENERATOR.choice(ITEMS, 3 * CONTRIBUTION, replace=False, p=mix / mix.sum()) for _ in range(PEOPLE)]
    for mix in MIXES
]


def bounded(seed, epsilon):
    transform = al.SparseJL(input_dim=ITEMS, sketch_dim=SIZE, seed=seed)
    return al.Protocol(transform, epsilon=epsilon, delta="1e-6", contribution=CONTRIBUTION, max_norm="4.9")


def exact_sums(protocol):
    """(A·x of both groups within everybody's bound, the squared distance of the first C items of everybody)."""
    encoded = protocol.transform.signed_rows(range(ITEMS)).astype(np.int64)
    values, counts = np.zeros((2, SIZE), dtype=np.int64), np.zeros((2, ITEMS))
    table, group = np.empty((0, 2), dtype=np.int64), np.zeros(CONTRIBUTION, dtype=np.int64)
    for row, people in enumerate(HELD):
        for items in people:
            first = GENERATOR.permutation(items)[:CONTRIBUTION]
            amounts = np.ones(CONTRIBUTION, dtype=np.int64)
            table = longest_prefix(group, encoded[first], amounts, protocol.sketch_bound, table)
            entries = encoded[first, 0]
            np.add.at(
                values[row],
                np.where(entries >= 0, entries, ~entries),
                np.where(entries >= 0, amounts, -amounts),
            )
            counts[row, first] += 1
    return values, float(((counts[0] - counts[1]) ** 2).sum())


def estimates_of(protocol, values):
    """The estimated squared distance of each pair of rows 2i, 2i+1."""
    sketches = release(protocol, Sums(values, None, "events"), None, open_account(al.NO_LEDGER, ""))
    return al.squared_norms(sketches[::2] - sketches[1::2]).value


def test_people_with_more_items_than_count_do_not_bias_distances():
    ratios = []
    for seed in range(300):
        protocol = bounded(str(seed), 30)
        values, exact = exact_sums(protocol)
        ratios.append(float(estimates_of(protocol, values)[0]) / exact)
    check_mean(np.array(ratios), 1.0, np.var(ratios))


def test_the_variance_is_the_one_stated():
    protocol = bounded("x", 1)
    values, _ = exact_sums(protocol)
    estimates = estimates_of(protocol, np.tile(values, (draws_for_variance(4), 1)))
    projected = float(((values[0] - values[1]) ** 2).sum())
    noise = Cumulants(2 * protocol.law.cumulants.k2, 2 * protocol.law.cumulants.k4)
    curve = ErrorModel.of(protocol).variance_curve(noise)
    check_variance(estimates, projected, curve.b * projected + curve.c)
