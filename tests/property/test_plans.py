"""Plans for situations that nobody thought of: consistent, or refused in one line."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al

NUMBERS = st.floats(-6, 6).map(lambda power: float(f"{10**power:.3g}"))
SIZES = st.none() | st.integers(1, 5) | st.integers(1, 20_000)  # no sketch is larger than 5000


@st.composite
def situations(draw):
    """Mostly what a plan can be made for; extreme in its numbers."""
    known = {
        "input_dim": draw(SIZES),
        "epsilon": draw(NUMBERS),
        "delta": draw(st.sampled_from([0, "1e-9", "1e-6", "0.3"])),
        "max_sketch_dim": draw(st.sampled_from([1, 3, 64, 1000, 5000])),
        "relation": draw(st.sampled_from(["add_remove", "replace"])),
        "parties": draw(st.sampled_from([None, 24, 10**5])),
    }
    how = draw(st.sampled_from(["events", "radius", "real"]))
    known["distance"] = draw(NUMBERS | st.tuples(NUMBERS, NUMBERS).map(lambda ends: tuple(sorted(ends))))
    if how == "events":
        known["contribution"] = draw(st.integers(1, 100))
    if how == "radius":
        known["radius"] = draw(st.integers(1, 1000))
    if how == "real":
        known |= {
            "radius": draw(NUMBERS),
            "resolution": draw(st.sampled_from([0.25, 1024, "auto"])),
            "changed_entries": 3,
        }
    if draw(st.sampled_from([True, False, False])):  # the search for such a target is what takes long
        known |= {"distortion": draw(NUMBERS), "failure_probability": draw(st.floats(1e-6, 1))}
    return known


@settings(max_examples=60)
@given(situations())
def test_a_plan_is_consistent_or_refused_in_one_line(known):
    try:
        plan = al.plan(**known)
    except al.ArmslengthError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either is right
        return
    choices = [line for line in plan.settings if line.is_choice and line.has_upper_end]
    target = plan.situation.target
    if target is not None:
        choices = [line for line in choices if line.failure_bound <= target.failure_probability]
    best = min((line.relative_error for line in choices), default=math.inf)
    assert plan.resolvable is (best <= 1)
    assert plan.recommended.sketch_dim <= known["max_sketch_dim"]
    for line in plan.settings:
        assert line.relative_error * (1 + 1e-9) >= line.relative_error_high >= 0
        assert math.isfinite(line.relative_error)
        assert line.failure_bound is None or 0 <= line.failure_bound <= 1
    if plan.resolvable:
        assert plan.recommended.relative_error <= 1.01 * best
        return
    text = str(plan)
    assert "would be seen" in text or "cannot be promised" in text
    needs = plan.needs
    if needs.sketch_dim is not None:
        assert al.plan(**{**known, "max_sketch_dim": needs.sketch_dim}).resolvable
    if needs.epsilon is not None:
        assert needs.epsilon >= plan.situation.epsilon
        assert al.plan(**{**known, "epsilon": needs.epsilon}).resolvable
    if needs.distance is not None:
        high = max(needs.distance, plan.situation.distances.high)
        assert al.plan(**{**known, "distance": (needs.distance, high)}).resolvable


PEOPLE = st.floats(0, 7).map(lambda power: round(10**power))
RECORD = {"age": [18, 40], "sex": ["F", "M"]}


@st.composite
def populations(draw):
    """The same about populations and people."""
    known = {
        "about": draw(st.sampled_from([None, "populations", "people"])),
        "epsilon": draw(NUMBERS),
        "people": draw(PEOPLE | st.tuples(PEOPLE, PEOPLE).map(lambda ends: tuple(sorted(ends)))),
        "parties": draw(st.none() | st.integers(2, 10**5)),
        "max_sketch_dim": draw(st.sampled_from([1, 3, 64, 300])),
        "relation": draw(st.sampled_from(["add_remove", "replace"])),
        "item_groups": draw(st.none() | st.integers(2, 30)),
    }
    if draw(st.booleans()):
        return known | {"record": RECORD}
    return known | {"input_dim": draw(SIZES), "items_per_person": draw(st.none() | st.floats(0.5, 200))}


@settings(max_examples=40)
@given(populations())
def test_a_plan_about_populations_is_consistent_or_refused_in_one_line(known):
    try:
        plan = al.plan(**known)
    except al.ArmslengthError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either is right
        return
    text = str(plan)
    assert "nan" not in text
    assert ("Nothing would be seen" in text) is not plan.resolvable
    assert plan.recommended.sketch_dim <= known["max_sketch_dim"]
    assert plan.seen == plan.recommended.seen
    if plan.seen is not None and plan.chance is not None:
        assert plan.seen <= plan.chance <= 1
    assert plan.resolvable is (plan.document()["refusal"] is None)
    if plan.has_protocol:
        assert plan.protocol.votes
