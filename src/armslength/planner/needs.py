"""What would be needed, where the answer is no: a larger ε, groups further apart, or more people."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from armslength.planner.families import families
from armslength.planner.predictions import Member, failure_of, members, predict
from armslength.planner.situation import LARGEST_DISTANCE, Distances, Situation, people_for

_LARGEST_EPSILON = 1000.0
_EVERY = 4  # sizes: enough to tell what would be needed
_LARGEST_LIMIT = 2**20
_LAST_SIZES = 32  # of a family: those that the limit before did not have


@dataclass(frozen=True)
class Needs:
    """What would be enough, each with everything else as it is; None where nothing is.

    Attributes:
        epsilon: The smallest ε, to two digits.
        distance: The smallest distance, to three digits.
        people: How many people a group must have, at the least, where the distances come from people.
        sketch_dim: The size limit that would be enough, a power of two times the one given.
    """

    epsilon: float | None
    distance: float | None
    people: int | None
    sketch_dim: int | None


def needs_of(situation: Situation, sized: Sequence[Member]) -> Needs:
    """The needs, by bisection: errors fall as ε and the distance grow.

    Args:
        situation: As it is.
        sized: Every size of every family; those that may be recommended count.
    """
    limit = situation.max_sketch_dim
    choices = [member for member in sized if member.family.is_choice and member.transform.sketch_dim <= limit]
    some = [
        member
        for number, member in enumerate(choices)
        if number % _EVERY == 0 or member.transform.sketch_dim == member.family.sizes[-1]
    ]
    distance = situation.distances.low
    epsilon = _smallest(
        float(situation.epsilon),
        _LARGEST_EPSILON,
        lambda value: is_resolved(some, situation, _rounded_up(value, 2), distance),
    )
    enough = _smallest(
        distance, LARGEST_DISTANCE, lambda value: is_resolved(some, situation, situation.epsilon, value)
    )
    people = None
    if situation.distances.people is not None and enough is not None:
        people = people_for(enough, situation.fields["contribution"], situation.input_dim)
    return Needs(
        None if epsilon is None else float(_rounded_up(epsilon, 2)),
        None if enough is None else float(_rounded_up(enough, 3)),
        people,
        _larger_limit(situation),
    )


def _larger_limit(situation: Situation) -> int | None:
    """The next larger size limit that would be enough, among the transforms that need no scan; None up to 2^20."""
    limit, distance = situation.max_sketch_dim, situation.distances.low
    most = min(_LARGEST_LIMIT, situation.input_dim or _LARGEST_LIMIT)
    while limit < most:
        limit = min(2 * limit, most)
        there = replace(situation, max_sketch_dim=limit)
        enough = [
            member
            for family in families(there)
            if family.is_choice and family.sizes[-1] <= limit
            for member in members(replace(family, sizes=family.sizes[-_LAST_SIZES:]), there)
            if not member.transform.scan_work
        ]
        if is_resolved(enough, there, situation.epsilon, distance):
            return limit
    return None


def is_resolved(
    candidates: Sequence[Member], situation: Situation, epsilon: Fraction, distance: float
) -> bool:
    """Whether some member has a standard error below the squared distance, and meets the target if there is one."""
    there = replace(situation, distances=Distances(distance, distance))
    for member in candidates:
        prediction = predict(member, there, epsilon)
        # A projection whose own error is all of the distance resolves nothing, however the last digit rounds.
        if prediction is None or prediction.curve.a >= 1 or prediction.relative_error(distance) > 1:
            continue
        failure = failure_of(member, prediction, there)
        if there.target is None or there.target.is_promised(failure, is_exact=member.is_exact):
            return True
    return False


def _smallest(start: float, most: float, holds: Callable[[float], bool]) -> float | None:
    """The smallest value above start for which a rising condition holds, within a half percent; None: not up to most."""
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


def _rounded_up(value: float, digits: int) -> Fraction:
    """The next decimal of so few digits, exactly."""
    exponent = math.floor(math.log10(value)) - digits + 1
    step = Fraction(10) ** exponent
    return math.ceil(Fraction(value) / step) * step
