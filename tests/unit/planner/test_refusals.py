"""From people to distances, and where the answer is no: with what would be needed, in one line."""

import math

import pytest

import armslength as al


def test_people_are_distances():
    plan = al.plan(10_000, epsilon=1, people=500, contribution=4)
    low, high = plan.situation.distances.low, plan.situation.distances.high
    assert low == pytest.approx(math.sqrt(2 * 500 * 4))
    assert high == pytest.approx(math.sqrt(2) * 500 * 4)
    assert "500 people" in str(plan).replace("\n", " ")
    assert plan.protocol.contribution == 4


def test_few_coordinates_hold_items_together():
    plan = al.plan(2, epsilon="0.1", people=500, contribution=1)
    assert plan.situation.distances.low == pytest.approx(math.sqrt(2) * 500)
    assert plan.resolvable
    assert "evenly" in str(plan).replace("\n", " ")


def test_what_was_needed_is_enough_and_a_tenth_less_is_not():
    refused = al.plan(1000, epsilon=1, people=5, contribution=2)
    assert not refused.resolvable
    needs = refused.needs
    assert al.plan(1000, epsilon=needs.epsilon, people=5, contribution=2).resolvable
    assert not al.plan(1000, epsilon=0.9 * needs.epsilon, people=5, contribution=2).resolvable
    assert al.plan(1000, epsilon=1, people=needs.people, contribution=2).resolvable
    assert not al.plan(1000, epsilon=1, people=int(0.8 * needs.people), contribution=2).resolvable
    assert al.plan(1000, epsilon=1, distance=needs.distance, contribution=2).resolvable
    # The same where the coordinates are too few for distinct items, and where the size limit is what holds it back.
    few = al.plan(9, epsilon="0.05", people=60, contribution=2).needs
    assert al.plan(9, epsilon="0.05", people=few.people, contribution=2).resolvable
    assert not al.plan(9, epsilon="0.05", people=int(0.8 * few.people), contribution=2).resolvable
    small = al.plan(100, epsilon=0.1, distance=5, max_sketch_dim=20).needs
    assert al.plan(100, epsilon=small.epsilon, distance=5, max_sketch_dim=20).resolvable
    assert al.plan(None, epsilon=1, distance=5, max_sketch_dim=2).needs.epsilon is None
    assert not al.plan(1000, epsilon=1, distance=0.9 * needs.distance, contribution=2).resolvable
    with pytest.raises(
        al.NotResolvableError, match=f"cannot be resolved.*ε = {needs.epsilon:g} or {needs.people} people"
    ):
        _ = refused.protocol


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_dim": 100, "epsilon": 500, "distance": 5},
        {"input_dim": 1, "epsilon": 1, "delta": "1e-6", "distance": 100},
        {"input_dim": 3, "epsilon": "1e-6", "delta": "0.9", "distance": 1e9, "pairs": 10**10},
        {"input_dim": 100, "epsilon": 1, "distance": 50, "distortion": 1e-4, "failure_probability": 0.1},
        {"input_dim": 100, "epsilon": 1000, "distance": 1e-29},
        {"input_dim": None, "epsilon": 1000, "distance": 1e29, "delta": "1e-150"},
        {"input_dim": 2**40, "epsilon": 1, "distance": 100},
        {
            "input_dim": 70_000,
            "epsilon": 1,
            "delta": "1e-6",
            "max_sketch_dim": 16384,
            "distance": 5000,
        },
    ],
)
def test_unusual_situations_are_planned_and_told(arguments):
    plan = al.plan(**arguments)
    text = str(plan)
    assert "nan" not in text
    assert ("cannot be" in text.partition("configuration")[0]) is not plan.resolvable
    if plan.resolvable:
        assert plan.protocol.transform.sketch_dim == plan.recommended.sketch_dim


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "either distance or people"),
        ({"distance": 1, "people": 3}, "either distance or people"),
        ({"people": 3, "by": "size"}, "people needs contribution"),
        ({"people": 0, "contribution": 1}, "people must be"),
        ({"distance": (5, 2)}, "low <= high"),
        ({"distance": math.nan}, "distance must be"),
        ({"distance": 9, "epsilon": 0}, "epsilon must be above 0"),
        ({"distance": 9, "distortion": 0.1}, "give both"),
        ({"distance": 9, "distortion": 0, "failure_probability": 0.1}, "distortion must be"),
        ({"distance": 9, "noise": "laplace"}, "remove noise="),
    ],
)
def test_bad_arguments_give_one_clear_line(arguments, says):
    with pytest.raises(al.ParameterError) as caught:
        al.plan(**{"input_dim": 100, "epsilon": 1, **arguments})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["contributions", "transform", "noise"])
@pytest.mark.parametrize("by", ["size", "shape"])
def test_an_argument_that_a_plan_does_not_have_is_named(name, by):
    with pytest.raises(al.ParameterError, match=name):
        al.plan(epsilon=1, people=3000, contribution=5, by=by, **{name: 3})
