"""Which configuration is recommended, what it promises, and what the words claim for it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import armslength as al
from armslength.planner.counts import recommended_of
from armslength.planner.plan import protocol_of
from armslength.planner.predictions import predict


def test_a_target_buys_sparsity_only_where_it_pays():
    easy = al.plan(100_000, epsilon=10, distance=200, distortion=0.3, failure_probability=0.05)
    hard = al.plan(100_000, epsilon=10, distance=200, distortion=0.2, failure_probability=0.01)
    assert "s=1" in easy.recommended.label
    assert "s=4" in hard.recommended.label
    assert easy.recommended.failure_bound <= 0.05
    assert hard.recommended.failure_bound <= 0.01
    too_hard = al.plan(100_000, epsilon=10, distance=200, distortion=0.01, failure_probability=0.01)
    assert not too_hard.resolvable
    assert too_hard.needs.epsilon is None
    assert "cannot be promised" in str(too_hard)
    larger = too_hard.needs.sketch_dim
    assert f"a sketch of up to {larger:,} numbers" in str(too_hard).replace("\n", " ")
    known = {"epsilon": 10, "distance": 200, "distortion": 0.01, "failure_probability": 0.01}
    assert al.plan(100_000, max_sketch_dim=larger, **known).resolvable
    assert not al.plan(100_000, max_sketch_dim=larger // 2, **known).resolvable
    hopeless = al.plan(None, epsilon=1, distance=5, distortion=1e-6, failure_probability=0.1)
    assert "no ε up to 1000 is enough" not in str(hopeless)  # groups far enough apart would do
    limited = al.plan(3, epsilon=1, distance=1, max_sketch_dim=1)
    assert limited.needs.epsilon is None


def test_pairs_share_the_failure_probability():
    one, many = (
        al.plan(None, epsilon=2, distance=300, distortion=0.5, failure_probability=0.9, parties=parties)
        for parties in (None, 5)
    )
    of_one, of_many = (next(predict([one.recommended], plan.situation)) for plan in (one, many))
    assert of_many.failure_bound == pytest.approx(10 * of_one.failure_bound)
    assert many.seen_distance > one.seen_distance


@pytest.mark.parametrize("parties", [None, 25])
def test_half_of_all_pairs_differ_where_the_plan_says(parties):
    # 20,000 pairs, fresh columns as fresh seeds: half of them within 4.9 standard errors, and a percent for the approximation.
    plan = al.plan(None, epsilon=1, distance=30, seed="x", items="int64", parties=parties)
    m, rows = 40, 20_000
    value = round(plan.seen_distance * 100 / math.sqrt(m))
    fine = al.plan(
        None, epsilon=1, distance=3000, radius=100, seed="x", items="int64", parties=parties
    )  # the same in hundredths
    assert fine.seen_distance == pytest.approx(100 * plan.seen_distance, rel=0.03)
    entries = np.full(rows * m, value), np.arange(rows * m), np.arange(0, rows * m + 1, m)
    X = sparse.csr_array(entries, shape=(rows, rows * m))
    protocol = protocol_of(fine.situation, fine.recommended, "x")
    a = al.release(protocol, X, items=range(rows * m), ledger=al.NO_LEDGER)
    b = al.release(protocol, sparse.csr_array((rows, 1), dtype=int), items=[0], ledger=al.NO_LEDGER)
    told = al.squared_norms(a - b).resolved(1 - 0.05 / plan.situation.pairs).mean()
    assert abs(told - 0.5) < 4.9 * math.sqrt(0.25 / rows) + 0.01
    assert plan.recommended.smallest_distance < plan.seen_distance


def test_what_can_be_resolved_is_not_given_away_for_a_smaller_sketch():
    # Around the edge for open vocabularies at ε = 1, about 6.22; an error that is 1 percent larger moves it by 0.04.
    seen = set()
    for distance in np.linspace(6.05, 6.4, 16):
        plan = al.plan(None, epsilon=1, distance=float(distance))
        best = min(line.relative_error for line in plan.settings if line.is_choice)
        assert plan.resolvable is (best <= 1)
        seen.add(plan.resolvable)
    assert seen == {True, False}


def test_a_target_over_a_range_is_promised_at_its_low_end():
    low, whole = (
        al.plan(None, epsilon=2, distance=distance, distortion=0.5, failure_probability=0.2, seed="x")
        for distance in (40, (40, 4000))
    )
    assert low.recommended.failure_bound == whole.recommended.failure_bound > 0.01
    assert low.recommended.sketch_dim == whole.recommended.sketch_dim


def test_an_easy_target_changes_nothing():
    free = al.plan(None, epsilon=1, distance=60)
    easy = al.plan(None, epsilon=1, distance=60, distortion=0.9, failure_probability=0.9)
    assert easy.recommended.sketch_dim == free.recommended.sketch_dim
    assert easy.recommended.label == free.recommended.label


def test_among_equals_the_trusted_and_the_simple_come_first():
    plan = al.plan(300, epsilon=1, delta=1e-6, distance=20)
    line = plan.recommended
    gaussian = replace(line, noise="gaussian", transform=replace(line.transform, sketch_dim=1))
    smaller = replace(line, transform=replace(line.transform, sketch_dim=line.sketch_dim - 1))
    no_sizes = []
    for others, expected in (([gaussian], line), ([smaller], smaller)):
        assert recommended_of([*others, line], no_sizes) is expected
    identity = replace(line, transform=al.Identity(input_dim=round(1.2 * line.sketch_dim)))
    assert recommended_of([line, identity], no_sizes) is identity
    large = replace(line, transform=al.Identity(input_dim=2 * line.sketch_dim))
    assert recommended_of([line, large], no_sizes) is line
    worse = replace(smaller, relative_error=1.02 * line.relative_error)
    assert recommended_of([line, worse], no_sizes) is line


def test_what_will_mostly_be_missed_is_said():
    # Between the distance where the error is 100 percent and the one where half of all pairs differ.
    plan = al.plan(None, epsilon=1, distance=7)
    assert plan.resolvable
    assert plan.seen_distance > 7
    assert "you will miss" in plan.summary
    assert "you will miss" not in al.plan(None, epsilon=1, distance=30).summary
