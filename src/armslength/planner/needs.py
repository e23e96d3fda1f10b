"""What would be enough if the answer is no: a larger ε, groups farther apart, more people, or a larger sketch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from armslength.planner.families import families
from armslength.planner.predictions import Option, failure_of, has_upper_end, options, predict
from armslength.planner.situation import LARGEST_DISTANCE, Distances, Situation, people_for

LARGEST_EPSILON = 1000.0
_STEP = 4  # every fourth size is close enough
_LARGEST_LIMIT = 2**20
_LAST_SIZES = 32  # of a family; the limit before did not have them


@dataclass(frozen=True)
class Needs:
    """What would be enough, each with everything else unchanged; None if nothing is."""

    epsilon: float | None  # the smallest, to two digits
    distance: float | None  # the smallest, to three digits
    people: int | None  # the smallest number in a group, if the distances come from people
    sketch_dim: int | None  # the size limit, a power of two times the present one


def needs_of(situation: Situation, every_option: Sequence[Option]) -> Needs:
    """The needs, by bisection: errors fall as ε and the distance grow."""
    limit = situation.max_sketch_dim
    choices = [each for each in every_option if each.family.is_choice and each.transform.sketch_dim <= limit]
    sample = [
        option
        for number, option in enumerate(choices)
        if number % _STEP == 0 or option.transform.sketch_dim == option.family.sizes[-1]
    ]
    distance = situation.distances.low
    resolves = partial(is_resolved, sample, situation)
    epsilon = smallest(
        float(situation.epsilon), LARGEST_EPSILON, lambda value: resolves(rounded_up(value, 2), distance)
    )
    enough = smallest(distance, LARGEST_DISTANCE, partial(resolves, situation.epsilon))
    people = None
    if situation.distances.people is not None and enough is not None:
        people = people_for(enough, situation.fields["contribution"], situation.input_dim)
    return Needs(
        None if epsilon is None else float(rounded_up(epsilon, 2)),
        None if enough is None else float(rounded_up(enough, 3)),
        people,
        _larger_limit(situation),
    )


def _larger_limit(situation: Situation) -> int | None:
    """The next larger size limit that would be enough, for transforms that need no scan; None if none is up to 2^20."""
    limit, distance = situation.max_sketch_dim, situation.distances.low
    most = min(_LARGEST_LIMIT, situation.input_dim or _LARGEST_LIMIT)
    while limit < most:
        limit = min(2 * limit, most)
        larger = replace(situation, max_sketch_dim=limit)
        candidates = [
            option
            for family in families(larger)
            if family.is_choice and family.sizes[-1] <= limit
            for option in options(replace(family, sizes=family.sizes[-_LAST_SIZES:]), larger)
            if not option.transform.scan_work
        ]
        if is_resolved(candidates, larger, situation.epsilon, distance):
            return limit
    return None


def is_resolved(
    candidates: Sequence[Option], situation: Situation, epsilon: Fraction, distance: float
) -> bool:
    """Whether an option has upper ends, a standard error below the squared distance, and meets the target if there is one."""
    there = replace(situation, distances=Distances(distance, distance))
    for option in candidates:
        prediction = predict(option, there, epsilon)
        if prediction is None or prediction.relative_error(distance) > 1:
            continue
        if not has_upper_end(prediction.curve.a, situation.pairs):
            continue
        failure = failure_of(option, prediction, there)
        if there.target is None or there.target.is_promised(failure, is_exact=option.is_exact):
            return True
    return False


def smallest(start: float, most: float, holds: Callable[[float], bool]) -> float | None:
    """The smallest value above start for which a monotone condition holds, within half a percent; None if none up to most."""
    if start >= most or not holds(most):
        return None
    high = start
    while not holds(high):
        high = min(most, 2 * high)
    low = max(start, high / 2)
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def rounded_up(value: float, digits: int) -> Fraction:
    """The next larger decimal of so many digits, exactly."""
    exponent = math.floor(math.log10(value)) - digits + 1
    step = Fraction(10) ** exponent
    return math.ceil(Fraction(value) / step) * step
