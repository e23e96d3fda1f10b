"""How many people a party needs before any answer about it can be expected, by its protocol alone."""

import math
from collections.abc import Callable
from dataclasses import replace

from armslength.planner.margin_plan import seen_from
from armslength.planner.needs import rounded_up, smallest
from armslength.planner.predictions import smallest_resolved_distance
from armslength.planner.situation import LARGEST_COUNT
from armslength.planner.typical_pair import Mix, TypicalPair
from armslength.protocol.protocol import Protocol

_TAIL = 0.025  # of each end of an interval at 95 percent, of one pair
_ITEMS, _MOST_ITEMS = 1000, 100_000  # as in a plan by shape


def least_people(protocol: Protocol) -> int:
    """From how many people on two parties of equal size can be told apart, to two digits; 0 if that cannot be predicted.

    They have no item in common, and items by Zipf's law, as in a plan; or, with margins, an item group that 40 points more of the people
    have. Every person has as many items as count. With fewer people or items, answers about a party are inconclusive.
    """
    if protocol.contribution is None or protocol.transform.variance_coefficients is None:
        return 0
    items = min(protocol.transform.input_dim or _ITEMS, _MOST_ITEMS)
    mix = Mix.zipf(items, protocol.contribution)
    if protocol.total_law is not None:
        sizes = 1, protocol.contribution, _TAIL
        pair = TypicalPair(mix, *sizes, False, protocol.transform, protocol.law, protocol.total_law)
        numbers = [_fewest(lambda people: replace(pair, people=people).seen_from() is not None)]
    else:
        numbers = [_for_sizes(smallest_resolved_distance(protocol), mix, protocol.contribution)]
    if protocol.margins is not None and protocol.margin_law is not None:
        law, tail = protocol.margin_law, _TAIL / len(protocol.margins.names)
        numbers.append(_fewest(lambda people: seen_from(people, law, tail) is not None))
    people = min(numbers)
    return 0 if people > LARGEST_COUNT else math.ceil(rounded_up(people, 2))


def _fewest(holds: Callable[[int], bool]) -> float:
    """The smallest number of people for which a monotone condition holds; infinity if there is none."""
    if holds(1):
        return 1
    people = smallest(1, LARGEST_COUNT, lambda number: holds(math.ceil(number)))
    return math.inf if people is None else math.ceil(people)


def _for_sizes(distance: float, mix: Mix, contribution: int) -> float:
    """How many people make two parties without a common item that far apart."""
    # D² = 2(nC)²·Σp², and at least 2nC where people count once
    total = min(distance / math.sqrt(2 * mix.concentration), distance**2 / 2)
    return max(1, total / contribution)
