"""How many people a party needs before any answer about it can be expected, by its protocol alone."""

import math
from collections.abc import Callable

from armslength.estimates.prevalence import Noise
from armslength.laws import DiscreteLaplace
from armslength.planner.item_groups import seen_from, tail_of_group
from armslength.planner.needs import rounded_up, smallest
from armslength.planner.predictions import smallest_resolved_distance
from armslength.planner.situation import LARGEST_COUNT
from armslength.planner.typical_pair import Mix, TypicalPair, Votes, typical_mix
from armslength.protocol.protocol import Protocol

_TAIL = 0.025  # of each end of an interval at 95 percent, of one pair
_LARGER = 10  # times as many people has the party that it is compared with


def least_people(protocol: Protocol) -> int:
    """From how many people on a party is found to differ from one of ten times as many, to two digits; 0 if that cannot be predicted.

    The two are the only pair, and have no item in common, and items as in a plan; or, with item groups, an item group that 40 points
    more of the people have. With fewer people, answers about a party are inconclusive. Plans, `show` and `check` all say this number.
    """
    if protocol.contribution is None or protocol.transform.variance_coefficients is None:
        return 0
    mix = typical_mix(protocol.record, protocol.transform.input_dim)
    if protocol.total_law is None or protocol.spread_law is None:
        # D² = 2(nC)²·Σp²
        distance = smallest_resolved_distance(protocol)
        each = 1 if isinstance(protocol.contribution, str) else protocol.contribution
        return _in_two_digits(max(1.0, distance / math.sqrt(2 * mix.concentration) / each))
    count = 0 if protocol.margins is None else len(protocol.margins.names)
    return least_people_of(Votes.of(protocol), mix, protocol.margin_law, count)


def least_people_of(votes: Votes, mix: Mix, group_law: DiscreteLaplace | None, group_count: int) -> int:
    """The same for votes that are released in this way.

    Args:
        votes: How votes are released.
        mix: The mix of a party.
        group_law: The noise of a count of an item group; None without item groups.
        group_count: How many item groups there are.
    """

    def profile_seen(people: float) -> bool:
        return TypicalPair(mix, _sizes(people), _TAIL, True, votes).seen_from() is not None

    if group_law is None:
        return _in_two_digits(_fewest(profile_seen))
    noises = (Noise(group_law, 1),), (Noise(votes.total_law, 1), Noise(votes.spread_law, 1))
    tail = tail_of_group(group_count)

    def group_seen(people: float) -> bool:
        return seen_from(_sizes(people), *noises, tail) is not None

    return _in_two_digits(min(_fewest(profile_seen), _fewest(group_seen)))


def _sizes(people: float) -> tuple[int, int]:
    return math.ceil(people), _LARGER * math.ceil(people)


def _fewest(holds: Callable[[float], bool]) -> float:
    """The smallest number of people for which a monotone condition holds; infinity if there is none."""
    if holds(1):
        return 1
    people = smallest(1, LARGEST_COUNT, holds)
    return math.inf if people is None else people


def _in_two_digits(people: float) -> int:
    return 0 if people > LARGEST_COUNT else math.ceil(rounded_up(people, 2))
