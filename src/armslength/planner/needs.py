"""What would be enough if the answer is no: a larger ε, groups farther apart, more people, or a larger sketch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from armslength.planner.predictions import Option, options, predict
from armslength.planner.situation import LARGEST_COUNT, LARGEST_DISTANCE, Distances, SizeSituation, people_for
from armslength.privacy.exact_numbers import WEAK_EPSILON

LARGEST_EPSILON = 1000.0
_STEP = 4  # every fourth size is close enough
_LARGEST_LIMIT = 2**20


@dataclass(frozen=True)
class Needs:
    """What would be enough, each with everything else unchanged; None if nothing is."""

    epsilon: float | None  # the smallest, to two digits
    distance: float | None  # the smallest, to three digits
    people: int | None  # the smallest number in a group, if the distances come from people
    sketch_dim: int | None  # the size limit, a power of two times the present one


def needs_of(situation: SizeSituation, every_option: Sequence[Option]) -> Needs:
    """The needs, by bisection: errors fall as ε and the distance grow."""
    limit = situation.max_sketch_dim
    choices = [option for option in every_option if option.sketch_dim <= limit]
    largest = {option.family: option.sketch_dim for option in choices}
    sample = [
        option
        for number, option in enumerate(choices)
        if number % _STEP == 0 or option.sketch_dim == largest[option.family]
    ]

    def resolves(**changes: Any) -> bool:
        return any(line.is_resolved for line in predict(sample, replace(situation, **changes)))

    low = situation.distances.low
    distance = smallest(low, LARGEST_DISTANCE, lambda value: resolves(distances=Distances(value, value)))
    people = None
    if situation.people is not None and distance is not None:
        people = people_for(distance, int(situation.protocol.contribution or 1), situation.input_dim)
    return Needs(
        epsilon=enough_epsilon(situation.epsilon, resolves),
        distance=None if distance is None else float(rounded_up(distance, 3)),
        people=people,
        sketch_dim=_larger_limit(situation),
    )


def _larger_limit(situation: SizeSituation) -> int | None:
    """The next larger size limit that would be enough; None if none is up to 2^20."""
    limit = situation.max_sketch_dim
    largest = min(_LARGEST_LIMIT, situation.input_dim or _LARGEST_LIMIT)
    while limit < largest:
        before, limit = limit, min(2 * limit, largest)
        larger = replace(situation, max_sketch_dim=limit)
        if any(
            line.is_resolved and line.is_choice for line in predict(options(larger, above=before), larger)
        ):
            return limit
    return None


def enough_epsilon(epsilon: Fraction, holds: Callable[..., bool]) -> float | None:
    """The smallest larger ε for which holds(epsilon=ε), to two digits; None if there is none up to 1000."""
    value = smallest(float(epsilon), LARGEST_EPSILON, lambda value: holds(epsilon=rounded_up(value, 2)))
    return None if value is None else float(rounded_up(value, 2))


def enough_people(people: int, holds: Callable[..., bool]) -> int | None:
    """The same for holds(people=number), up to 2^40."""
    value = smallest(people, LARGEST_COUNT, lambda value: holds(people=math.ceil(rounded_up(value, 2))))
    return None if value is None else math.ceil(rounded_up(value, 2))


def offers(epsilon: float | None, people: int | None) -> list[str]:
    """Either in words."""
    weak = " (a weak promise)" if (epsilon or 0) > WEAK_EPSILON else ""
    of_epsilon = [] if epsilon is None else [f"ε = {epsilon:g}{weak}"]
    return of_epsilon + ([] if people is None else [f"{people:,} people in each party"])


def smallest(start: float, largest: float, holds: Callable[[float], bool]) -> float | None:
    """The smallest value above start for which a monotone condition holds, within half a percent; None if none up to the largest."""
    if start >= largest or not holds(largest):
        return None
    high = start
    while not holds(high):
        high = min(largest, 2 * high)
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
