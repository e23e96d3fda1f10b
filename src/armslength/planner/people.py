"""From people to distances: what n people with C items each can look like, as a squared distance of two groups."""

import math
from dataclasses import dataclass
from typing import Any

from armslength.checks import integer, number, shown
from armslength.errors import ParameterError

LARGEST_DISTANCE = 1e30
LARGEST_COUNT = 2**40


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


def distances_of_interest(
    distance: Any, people: Any, contribution: int | None, input_dim: int | None
) -> Distances:
    """The range that was given, or the one of that many people."""
    if (distance is None) == (people is None):
        raise ParameterError("distance or people must be given, and not both: how far apart are the groups?")
    if people is None:
        return _given(distance)
    count = integer("people", people, at_least=1, at_most=LARGEST_COUNT)
    if contribution is None:
        raise ParameterError("contribution must go with people: how many items may one person contribute?")
    if input_dim == 1:
        raise ParameterError("input_dim must be at least 2 with people, got 1: two groups share no item")
    return of_people(count, contribution, input_dim)


def of_people(people: int, contribution: int, input_dim: int | None) -> Distances:
    """Two groups of n people with C items each: from √(2nC), all items distinct, to √2·nC, all on one item.

    Where there are fewer than 2nC coordinates, items cannot all be distinct: spread evenly, they are 2nC/√d apart.
    """
    items = people * contribution
    low, high = math.sqrt(2 * items), math.sqrt(2) * items
    spread = "all items are distinct"
    if input_dim is not None and 2 * items > input_dim:
        low = min(high, 2 * items / math.sqrt(input_dim))
        spread = f"all items are spread evenly over the {input_dim:,} coordinates"
    items_each = f"{contribution:,} item{'s' * (contribution > 1)} each"
    assumption = (
        f"two groups of {people:,} people with {items_each}, no item in both groups: {low:,.4g} apart if "
        f"{spread}, {high:,.4g} if each group has all of its items on one"
    )
    return Distances(low, high, assumption, people)


def people_for(distance: float, contribution: int, input_dim: int | None) -> int | None:
    """How many people make groups that far apart at the least; None where it would be more than there are."""
    squared = distance**2
    items = squared / 2
    if input_dim is not None:
        items = min(items, math.sqrt(squared * input_dim) / 2)
    needed = math.ceil(items / contribution)
    return needed if needed <= LARGEST_COUNT else None


def _given(distance: Any) -> Distances:
    ends = distance if isinstance(distance, (tuple, list)) else (distance, distance)
    if len(ends) != 2:
        raise ParameterError(f"distance must be a number or a range (low, high), got {shown(distance)}")
    low, high = (number("distance", end, above=1e-30, at_most=LARGEST_DISTANCE) for end in ends)
    if low > high:
        raise ParameterError(f"distance must be a range (low, high) with low <= high, got {shown(distance)}")
    return Distances(low, high)
