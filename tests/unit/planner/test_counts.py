"""Plans about counts: every line predicts exactly what its protocol does, and the list is whole and ranked."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import pytest

import armslength as al
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants
from armslength.planner.plan import protocol_of
from armslength.planner.predictions import Setting, predict, sizes_up_to, smallest_distance
from flat_protocol import flat_protocol

SITUATIONS = {
    "counts": {"input_dim": 300, "epsilon": 1, "delta": 1e-6, "distance": (20, 500)},
    "pure": {"input_dim": 300, "epsilon": 2, "distance": 20},
    "open": {"epsilon": 1, "delta": 1e-6, "distance": 30},
    "events": {
        "input_dim": 5000,
        "epsilon": 1,
        "distance": (55, 2100),
        "contribution": 3,
        "relation": "replace",
    },
    "many items": {
        "input_dim": 5000,
        "epsilon": 1,
        "delta": 1e-6,
        "distance": (420, 21_000),
        "contribution": 30,
        "relation": "replace",
    },
    "reals": {
        "input_dim": 100,
        "epsilon": 1,
        "delta": 1e-6,
        "radius": "0.5",
        "resolution": "auto",
        "distance": 10,
    },
    "coarse": {"input_dim": 100, "epsilon": 1, "radius": 8, "resolution": 4, "distance": 200},
}


@pytest.fixture(params=list(SITUATIONS))
def plan(request):
    return al.plan(**SITUATIONS[request.param], seed="x", max_sketch_dim=512)


def exact_curve(protocol):
    """What estimates of two releases of this protocol state as their variance."""
    noise = protocol.law.cumulants
    return ErrorModel.of(protocol).variance_curve(Cumulants(2 * noise.k2, 2 * noise.k4))


def test_every_line_predicts_what_its_protocol_does(plan):
    for line in plan.settings:
        protocol = protocol_of(plan.situation, line, "x")
        assert protocol.transform.sketch_dim == line.sketch_dim
        stated, squared = exact_curve(protocol), plan.situation.distances.low**2
        near = math.sqrt(stated.at_point(squared)) / squared
        assert line.relative_error == pytest.approx(near, rel=1e-9), line.label
        high = plan.situation.distances.high**2
        far = math.sqrt(stated.at_point(high)) / high
        assert line.relative_error_high == pytest.approx(far, rel=1e-9), line.label


def test_the_recommended_line_is_within_a_percent_of_the_best_and_becomes_a_protocol(plan):
    best = min(line.relative_error for line in plan.settings if line.is_choice)
    assert plan.resolvable
    assert plan.recommended.relative_error <= 1.01 * best
    assert plan.recommended in plan.settings
    protocol = plan.protocol
    assert protocol.transform.sketch_dim == plan.recommended.sketch_dim <= 512
    assert protocol.epsilon == plan.situation.epsilon
    assert protocol.delta == (plan.situation.delta if protocol.noise == "gaussian" else 0)
    assert protocol.grid_radius == plan.situation.grid_radius
    assert protocol.transform.parameters().get("seed", "x") == "x"


def test_the_list_is_ranked(plan):
    errors = [line.relative_error for line in plan.settings]
    assert errors == sorted(errors)
    labels = " ".join(line.label for line in plan.settings)
    assert "SparseJL" in labels
    if plan.situation.input_dim is not None:
        assert "Identity (noisy histogram)" in labels
        assert "HadamardJL" in labels
    assert plan.to_arrow().num_rows == len(plan.settings)
    assert sum(plan.to_arrow()["is_recommended"].to_pylist()) == 1


def test_more_sizes_would_not_help():
    # Every size, against the 32 in an octave that a plan looks at.
    plan = al.plan(300, epsilon=1, delta=1e-6, distance=25, max_sketch_dim=300)
    for line in plan.settings:
        if line is plan.recommended:
            continue
        transform = line.transform
        step = transform.parameters().get("sparsity", 1)
        sizes = range(step, 301, step) if transform.projects else ()
        resized = [replace(transform, sketch_dim=size) for size in sizes] or [transform]
        every_size = [Setting.of(plan.situation.grid_radius, each, line.noise) for each in resized]
        lines = predict(every_size, plan.situation)
        every = [each.relative_error for each in lines if each.has_upper_end]
        assert line.relative_error <= min(every) * (1 + 1 / 4000), line.label


def test_sizes():
    assert sizes_up_to(70) == (*range(1, 65), 66, 68, 70)
    assert sizes_up_to(5) == (1, 2, 3, 4, 5)
    for limit, multiple in ((1000, 1), (4096, 8), (7, 3), (70_000, 32)):
        sizes = sizes_up_to(limit, multiple)
        assert sizes == tuple(sorted(set(sizes)))
        assert sizes[-1] == limit // multiple * multiple
        assert all(size % multiple == 0 for size in sizes)
        assert all(b <= a * (1 + 1 / 32) + multiple for a, b in pairwise(sizes))


def test_the_worst_relative_error_of_a_range_is_at_its_low_end(plan):
    low, high = plan.situation.distances.low, plan.situation.distances.high
    for line in plan.settings:
        between = [low * (high / low) ** (step / 7) for step in range(8)]
        errors = [math.sqrt(line.curve.at_point(d**2)) / d**2 for d in between]
        assert max(errors) == pytest.approx(errors[0])
        assert errors == sorted(errors, reverse=True)


def test_the_smallest_distance_is_its_own_standard_error(plan):
    for line in plan.settings:
        d = line.smallest_distance
        if math.isfinite(d):
            assert math.sqrt(line.curve.at_point(d**2)) == pytest.approx(d**2)
            assert smallest_distance(line.curve) == d


def test_the_seed_is_kept_and_a_fresh_one_is_printed():
    assert al.plan(None, epsilon=1, distance=20, seed="ours").protocol.transform.seed == "ours"
    fresh = al.plan(None, epsilon=1, distance=20)
    assert fresh.seed in str(fresh)
    assert fresh.protocol.transform.seed == fresh.seed


@pytest.mark.parametrize(
    "known",
    [
        {"delta": "1e-6", "distance": 25},
        {"distance": 200, "max_sketch_dim": 100},
        {"delta": "0.1", "distance": 1000, "max_sketch_dim": 200},
    ],
    ids=str,
)
def test_no_transform_that_is_left_out_would_be_better(known):
    plan = al.plan(300, epsilon=1, **known)
    builds = {
        "GaussianJL": partial(al.GaussianJL, input_dim=300),
        "SignJL dense": partial(al.SignJL, input_dim=300),
        "SignJL sparse": partial(al.SignJL, input_dim=300, construction="sparse"),
        "FastJL": partial(al.FastJL, input_dim=300),
        "SparseJL s=2": partial(al.SparseJL, input_dim=300, sparsity=2),
        "SparseJL graph": partial(al.SparseJL, input_dim=300, sparsity=2, construction="graph"),
    }
    sizes = sizes_up_to(plan.situation.max_sketch_dim if "max_sketch_dim" in known else 300, 2)
    for (label, build), law in product(builds.items(), plan.situation.laws):
        transforms = [build(sketch_dim=size, seed="x") for size in sizes]
        every_size = [Setting.of(plan.situation.grid_radius, transform, law) for transform in transforms]
        lines = predict(every_size, plan.situation)
        errors = [line.relative_error for line in lines if line.has_upper_end]
        assert min(errors) > plan.recommended.relative_error / 1.01, label


@pytest.mark.parametrize(("d", "k"), [(60, 16), (60, 50), (300, 256)])
def test_noise_on_the_input_is_no_better_than_a_hadamard_transform(d, k):
    fields = {"epsilon": 1, "delta": "1e-6", "noise": "gaussian"}
    fast = flat_protocol(al.FastJL(input_dim=d, sketch_dim=k, seed="x"), noise_site="input", **fields)
    hadamard = flat_protocol(al.HadamardJL(input_dim=d, sketch_dim=k, seed="x"), **fields)
    for squared in (1.0, 1e3, 1e6):
        assert exact_curve(fast).at_point(squared) > 0.99 * exact_curve(hadamard).at_point(squared)


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"epsilon": 11, "distance": 60, "contribution": 2}, "ε is above 10"),
        ({"epsilon": 2, "distance": 60, "contribution": 2}, ""),
        (
            {"epsilon": 2, "distance": 60, "contribution": 2, "delta": "0.002"},
            "",
        ),  # which Laplace noise does not spend
        ({"epsilon": 2, "distance": 2000, "delta": "0.002", "max_sketch_dim": 64}, "δ is above 0.001"),
        ({"epsilon": 2, "distance": 2000, "delta": "0.001", "max_sketch_dim": 64}, ""),
    ],
)
def test_weak_promises_are_called_weak(known, why):
    plan = al.plan(100, **known)
    gaussian = next((line for line in plan.settings if line.noise == "gaussian"), None)
    plan = plan if gaussian is None else replace(plan, recommended=gaussian)
    assert why in plan.weakness
    assert ("WARNING: This is a weak promise" in str(plan)) == bool(why)
    pure = next(line for line in plan.settings if line.noise == "laplace")
    assert bool(replace(plan, recommended=pure).weakness) == (known["epsilon"] > 10)


def test_what_would_be_needed_is_called_weak_where_it_is():
    assert "(a weak promise)" in al.plan(epsilon="0.1", distance=20, contribution=100).refusal
    assert "(a weak promise)" not in al.plan(epsilon="0.1", distance=45, contribution=5).refusal


def test_a_plan_for_counts_bounds_them():
    made = al.plan(epsilon=1, distance=80, contribution=3, seed="x").protocol
    assert (made.contribution, made.votes) == (3, False)


def test_event_tables_are_planned_with_laplace_noise_alone():
    known = {"epsilon": 1, "delta": "1e-6", "seed": "x"}
    tables = al.plan(distance=1100, contribution=30, **known)
    assert {line.noise for line in tables.settings} == {"laplace"}
    assert "(pure)" in str(tables)
    arrays = al.plan(distance=1100, **known)
    assert {line.noise for line in arrays.settings} == {"laplace", "gaussian"}
