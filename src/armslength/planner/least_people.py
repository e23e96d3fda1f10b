"""How many people a party needs before any answer about it can be expected, by its protocol alone."""

import math
from collections.abc import Callable
from dataclasses import replace

from armslength.estimates.prevalence import Noise
from armslength.planner.margin_plan import margin_tail, seen_from
from armslength.planner.needs import rounded_up, smallest
from armslength.planner.predictions import smallest_resolved_distance
from armslength.planner.situation import LARGEST_COUNT
from armslength.planner.typical_pair import TypicalPair, Votes, typical_mix
from armslength.protocol.protocol import Protocol

_TAIL = 0.025  # of each end of an interval at 95 percent, of one pair
_LARGER = 10  # times as many people has the party that it is compared with

Sizes = tuple[int, int]


def least_people(protocol: Protocol) -> int:
    """From how many people on a party can be told from one of ten times as many, to two digits; 0 if that cannot be predicted.

    They have no item in common, and items as in a plan; or, with margins, an item group that 40 points more of the people
    have. With fewer people, answers about a party are inconclusive.
    """
    if protocol.contribution is None or protocol.transform.variance_coefficients is None:
        return 0
    mix = typical_mix(protocol, protocol.transform.input_dim, None, None)
    if protocol.total_law is None or protocol.spread_law is None:
        # D² = 2(nC)²·Σp²
        distance = smallest_resolved_distance(protocol)
        each = 1 if isinstance(protocol.contribution, str) else protocol.contribution
        return _in_two_digits(max(1.0, distance / math.sqrt(2 * mix.concentration) / each))
    votes = Votes.of(protocol)
    pair = TypicalPair(mix, (1, 1), _TAIL, True, votes)
    if protocol.margins is None or protocol.margin_law is None:
        return least_people_of(pair, None)
    noises = (Noise(protocol.margin_law, 1),), (Noise(protocol.total_law, 1), Noise(protocol.spread_law, 1))
    tail = margin_tail(len(protocol.margins.names))
    return least_people_of(pair, lambda sizes: seen_from(sizes, *noises, tail))


def least_people_of(pair: TypicalPair, margins: Callable[[Sizes], float | None] | None) -> int:
    """The same for a typical pair, and what margins show of parties of these sizes."""

    def sizes(number: float) -> Sizes:
        return math.ceil(number), _LARGER * math.ceil(number)

    numbers = [_fewest(lambda number: replace(pair, people=sizes(number)).seen_from() is not None)]
    if margins is not None:
        numbers.append(_fewest(lambda number: margins(sizes(number)) is not None))
    return _in_two_digits(min(numbers))


def _fewest(holds: Callable[[float], bool]) -> float:
    """The smallest number of people for which a monotone condition holds; infinity if there is none."""
    if holds(1):
        return 1
    people = smallest(1, LARGEST_COUNT, holds)
    return math.inf if people is None else people


def _in_two_digits(people: float) -> int:
    return 0 if people > LARGEST_COUNT else math.ceil(rounded_up(people, 2))
