"""From people to distances: what n people with C items each can look like, as a squared distance of two groups."""

import math
from dataclasses import dataclass
from typing import Any

from armslength.checks import integer, number, shown
from armslength.errors import ParameterError

LARGEST_DISTANCE = 1e30


@dataclass(frozen=True)
class Distances:
    """The distances of interest, in data units.

    Attributes:
        low: The smallest: every configuration has its worst relative error there.
        high: The largest.
        assumption: Where they come from, in words; empty if they were given.
        people: How many people a group has, if the distances come from that.
    """

    low: float
    high: float
    assumption: str = ""
    people: int | None = None


def distances_of_interest(distance: Any, people: Any, contribution: int | None) -> Distances:
    """The range that was given, or the one of that many people."""
    if (distance is None) == (people is None):
        raise ParameterError("distance or people must be given, and not both: how far apart are the groups?")
    if people is None:
        return _given(distance)
    count = integer("people", people, at_least=1, at_most=2**40)
    if contribution is None:
        raise ParameterError("contribution must go with people: how many items may one person contribute?")
    return of_people(count, contribution)


def of_people(people: int, contribution: int) -> Distances:
    """Two groups of n people with C items each: from √(2nC), all items distinct, to √2·nC, all on one item."""
    items = people * contribution
    low, high = math.sqrt(2 * items), math.sqrt(2) * items
    items_each = f"{contribution:,} item{'s' * (contribution > 1)} each"
    assumption = (
        f"two groups of {people:,} people with {items_each}, no item in both groups: {low:,.4g} apart if all "
        f"items are distinct, {high:,.4g} if each group has all of its items on one"
    )
    return Distances(low, high, assumption, people)


def _given(distance: Any) -> Distances:
    ends = distance if isinstance(distance, (tuple, list)) else (distance, distance)
    if len(ends) != 2:
        raise ParameterError(f"distance must be a number or a range (low, high), got {shown(distance)}")
    low, high = (number("distance", end, above=0.0, at_most=LARGEST_DISTANCE) for end in ends)
    if low > high:
        raise ParameterError(f"distance must be a range (low, high) with low <= high, got {shown(distance)}")
    return Distances(low, high)
