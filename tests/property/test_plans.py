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
        "pairs": draw(st.sampled_from([1, 276, 10**10])),
    }
    how = draw(st.sampled_from(["people", "radius", "real"]))
    if how == "people":
        known |= {"people": draw(st.integers(1, 10**6)), "contribution": draw(st.integers(1, 100))}
    else:
        known["distance"] = draw(NUMBERS | st.tuples(NUMBERS, NUMBERS).map(lambda ends: tuple(sorted(ends))))
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
    choices = [line for line in plan.configurations if line.is_choice and line.has_upper_end]
    target = plan.situation.target
    if target is not None:
        choices = [line for line in choices if line.failure_bound <= target.failure_probability]
    best = min((line.relative_error for line in choices), default=math.inf)
    assert plan.resolvable is (best <= 1)
    assert plan.recommended.sketch_dim <= known["max_sketch_dim"]
    for line in plan.configurations:
        assert line.relative_error * (1 + 1e-9) >= line.relative_error_high >= 0
        assert math.isfinite(line.relative_error)
        assert line.failure_bound is None or 0 <= line.failure_bound <= 1
    if plan.resolvable:
        assert plan.recommended.relative_error <= 1.01 * best
        return
    text = str(plan)
    assert "cannot be" in text
    needs = plan.needs
    if needs.sketch_dim is not None:
        assert al.plan(**{**known, "max_sketch_dim": needs.sketch_dim}).resolvable
    if needs.epsilon is not None:
        assert needs.epsilon >= plan.situation.epsilon
        assert al.plan(**{**known, "epsilon": needs.epsilon}).resolvable
    if needs.people is not None:
        assert al.plan(**{**known, "people": needs.people}).resolvable
    elif needs.distance is not None:
        high = max(needs.distance, plan.situation.distances.high)
        moved = {key: value for key, value in known.items() if key != "people"}
        assert al.plan(**{**moved, "distance": (needs.distance, high)}).resolvable
