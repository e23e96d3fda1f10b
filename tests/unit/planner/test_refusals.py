"""Plans about counts where the answer is no: with what would be needed, in one line. And arguments that do not go together."""

import math

import pytest

import armslength as al


def test_what_was_needed_is_enough_and_a_tenth_less_is_not():
    refused = al.plan(1000, epsilon=1, distance=4, contribution=2)
    assert not refused.resolvable
    needs = refused.needs
    assert al.plan(1000, epsilon=needs.epsilon, distance=4, contribution=2).resolvable
    assert not al.plan(1000, epsilon=0.9 * needs.epsilon, distance=4, contribution=2).resolvable
    assert al.plan(1000, epsilon=1, distance=needs.distance, contribution=2).resolvable
    assert not al.plan(1000, epsilon=1, distance=0.9 * needs.distance, contribution=2).resolvable
    # The same where the coordinates are few, and where the size limit is what holds it back.
    few = al.plan(9, epsilon="0.05", distance=40, contribution=2).needs
    assert al.plan(9, epsilon="0.05", distance=few.distance, contribution=2).resolvable
    assert not al.plan(9, epsilon="0.05", distance=0.9 * few.distance, contribution=2).resolvable
    small = al.plan(100, epsilon=0.1, distance=5, max_sketch_dim=20).needs
    assert al.plan(100, epsilon=small.epsilon, distance=5, max_sketch_dim=20).resolvable
    assert al.plan(None, epsilon=1, distance=5, max_sketch_dim=2).needs.epsilon is None
    with pytest.raises(
        al.NotResolvableError,
        match=f"nothing would be seen.*ε = {needs.epsilon:g} or a distance of {needs.distance:g}",
    ):
        _ = refused.protocol


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_dim": 100, "epsilon": 500, "distance": 5},
        {"input_dim": 1, "epsilon": 1, "delta": "1e-6", "distance": 100},
        {"input_dim": 3, "epsilon": "1e-6", "delta": "0.9", "distance": 1e9, "parties": 10**5},
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
    assert ("would be seen" in text or "cannot be promised" in text) is not plan.resolvable
    if plan.resolvable:
        assert plan.protocol.transform.sketch_dim == plan.recommended.sketch_dim


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "people is missing"),
        ({"about": "counts"}, "distance is missing"),
        ({"contribution": 1}, "distance is missing"),
        ({"about": "people"}, "people is missing"),
        ({"about": "shape"}, "about must be one of"),
        (
            {"distance": 1, "people": 3},
            "people is for plans about populations, and distance for plans about counts",
        ),
        ({"contribution": 1, "people": 3}, "people is for plans about populations, and contribution"),
        (
            {"about": "counts", "people": 3, "distance": 9},
            "leave out people: it is for plans about populations or people",
        ),
        ({"about": "counts", "item_groups": 3, "distance": 9}, "leave out item_groups"),
        (
            {"about": "populations", "people": 3, "distance": 9},
            "leave out distance: it is for plans about counts",
        ),
        ({"about": "people", "people": 3000, "delta": "1e-6"}, "leave out delta"),
        ({"about": "people", "people": 3000, "resolution": 1}, "leave out resolution"),
        ({"people": 0}, "people must be"),
        ({"distance": (5, 2)}, "low <= high"),
        ({"distance": (1, 2, 3)}, "a range"),
        ({"distance": math.nan}, "distance must be"),
        ({"distance": 9, "epsilon": 0}, "epsilon must be above 0"),
        ({"distance": 9, "parties": 1}, "parties must be"),
        ({"distance": 9, "radius": 0}, "radius must be above 0"),
        ({"distance": 9, "radius": 2, "contribution": 3}, "leave out radius"),
        ({"distance": 9, "relation": "swap"}, "relation must be one of"),
        ({"distance": 9, "total_share": 1}, "total_share must be"),
        ({"distance": 900, "unit": "two\nlines"}, "unit must be"),
        ({"distance": 900, "contribution": 2, "value_range": (0, 5)}, "value_range"),
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


@pytest.mark.parametrize("name", ["contributions", "by", "margins", "pairs", "transform", "noise"])
@pytest.mark.parametrize("known", [{"people": 3000}, {"distance": 300}], ids=str)
def test_an_argument_that_a_plan_does_not_have_is_named(name, known):
    with pytest.raises(al.ParameterError, match=name):
        al.plan(epsilon=1, **known, **{name: 3})
