"""What item groups will show, before there is any data: differences in prevalence, by the share of ε for them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.estimates.prevalence import Noise, Prevalence, difference_limits
from armslength.laws import DiscreteLaplace
from armslength.planner.needs import Needs, enough_epsilon, enough_people
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.margins import Margins, checked_groups, margins_of
from armslength.protocol.neighbors import VOTE, margin_law, margin_sensitivity, scalar_laws
from armslength.protocol.record import Record

SHARES = tuple(map(Fraction, ("0.1", "0.2", "0.3")))
PREVALENCE = 0.2  # of the item groups that a plan speaks of, on average over both parties
WANTED = 0.1  # the difference in prevalence for which a plan says what is needed
_LEVEL = 0.95
_NINE_OF_TEN = 1.2816  # standard deviations
_HARDLY_MORE = 1.25  # of the difference that is seen: then a smaller share is better
# Times the typical items of a person, and at least so many more; times item groups: so many count in full. Of NHDS, eICU's diagnoses and
# retail, 0 to 4.5 % had more.
_ROOM, _LEAST_ROOM, _ROOM_OF_GROUPS = Fraction(4, 3), 2, 2
_MOST = 10_000


@dataclass(frozen=True)
class ItemGroups:
    """The item groups of a plan, and what they will show of two typical parties.

    Attributes:
        count: How many there are, with (other).
        contribution: How many item groups of a person count in full.
        shares: The shares of ε that the plan chooses from.
        share: The smallest that shows nearly as much as the largest; the largest if that shows nothing.
        relation: That of the protocol.
        listed: The item groups; None where only their number is known.
        beyond_chance: Whether it is about populations.
    """

    count: int
    contribution: int
    shares: tuple[Fraction, ...]
    share: Fraction
    relation: str
    listed: Margins | None
    beyond_chance: bool

    def law(self, epsilon: Fraction, share: Fraction | None = None) -> DiscreteLaplace:
        """The noise of a count, with this share of ε or the chosen one."""
        sensitivity = margin_sensitivity(self.contribution, self.count, self.relation)
        return margin_law(sensitivity, epsilon * (self.share if share is None else share))

    def seen(
        self, people: tuple[int, int], epsilon: Fraction, total_share: Fraction, share: Fraction | None = None
    ) -> float | None:
        """The smallest difference in prevalence that is seen in nine of ten cases; None above 40 points."""
        scalars = tuple(Noise(each, 1) for each in scalar_laws(epsilon * total_share, self.relation))
        noise = (Noise(self.law(epsilon, share), 1),)
        return seen_from(people, noise, scalars, tail_of_group(self.count), beyond_chance=self.beyond_chance)

    def chance(self, people: tuple[int, int]) -> float | None:
        """What would be seen without any noise."""
        if not self.beyond_chance:
            return 0.0
        return seen_from(people, (), (), tail_of_group(self.count))

    def needs(self, people: int, epsilon: Fraction, total_share: Fraction) -> Needs:
        """What would show 10 points, each with everything else unchanged."""

        def is_seen(people: int = people, epsilon: Fraction = epsilon) -> bool:
            difference = self.seen((people, people), epsilon, total_share, self.shares[-1])
            return difference is not None and difference <= WANTED

        return Needs(epsilon=enough_epsilon(epsilon, is_seen), people=enough_people(people, is_seen))


def tail_of_group(count: int) -> float:
    """Of each end of an interval at 95 percent, for all item groups of a pair together."""
    return (1 - _LEVEL) / 2 / count


def planned_groups(  # noqa: PLR0913  # what was asked of item groups, and what they depend on
    source: Any,
    share: Any,
    contribution: Any,
    per_person: Any,
    *,
    record: Record | None,
    relation: str,
    people: int,
    epsilon: Fraction,
    total_share: Fraction,
    items_per_person: float,
    beyond_chance: bool,
) -> ItemGroups | None:
    """The plan for item groups; None where there are none.

    Args:
        source: The list of item groups, as for a protocol, or how many there will be.
        share: Their share of ε; 0: chosen here.
        contribution: How many count in full; None: so many that nearly everybody counts in full: a third more than a person typically has
            items, and two more at least; or twice as many as item groups; all of a record.
        per_person: How many item groups a person typically has; None: not known.
        record: What becomes of the columns of a record.
        relation: That of the protocol.
        people: How many each party has.
        epsilon: ε of a release.
        total_share: The share of ε for the number of people.
        items_per_person: How many different items a person typically has.
        beyond_chance: Whether it is about populations.
    """
    fixed = exact_number("item_groups_share", share)
    if source is None:
        for name, value in (
            ("item_groups_share", fixed or None),
            ("item_groups_limit", contribution),
            ("item_groups_per_person", per_person),
        ):
            if value is not None:
                raise ParameterError(f"{name} needs item_groups", name, "item_groups")
        return None
    if not 0 <= fixed < 1 - total_share:
        raise ParameterError(
            f"item_groups_share must be at least 0, and with total_share below 1, got {float(fixed):g}: profiles get the rest",
            *("item_groups_share", "total_share"),
        )
    is_number = isinstance(source, int)
    listed = None if is_number else margins_of(checked_groups(source), record)
    count = len(listed.names) if listed else integer("item_groups", source, at_least=2, at_most=_MOST)
    if per_person is None:
        typical = Fraction(f"{items_per_person:.6g}")
        most = max(_ROOM * typical, typical + _LEAST_ROOM)
    else:
        typical_groups = number("item_groups_per_person", per_person, above=0, at_most=_MOST)
        most = _ROOM_OF_GROUPS * Fraction(f"{typical_groups:.6g}")
    bound = len(listed.columns) if listed and listed.rule == "record" else min(count, math.ceil(most))
    if contribution is not None:
        bound = integer("item_groups_limit", contribution, at_least=1, at_most=count)
    shares = (fixed,) if fixed else tuple(each for each in SHARES if each + total_share < 1)
    if not shares:
        raise ParameterError(
            "total_share leaves too little of ε for item groups", "total_share", "item_groups"
        )
    groups = ItemGroups(count, bound, shares, shares[-1], relation, listed, beyond_chance)

    def seen(share: Fraction) -> float:
        return groups.seen((people, people), epsilon, total_share, share) or math.inf

    enough = _HARDLY_MORE * seen(shares[-1])
    if math.isinf(enough):
        return groups
    return replace(groups, share=next(share for share in shares if seen(share) <= enough))


def seen_from(
    people: tuple[int, int],
    counts: tuple[Noise, ...],
    scalars: tuple[Noise, ...],
    tail: float,
    *,
    beyond_chance: bool = True,
) -> float | None:
    """The difference in prevalence whose interval is above 0 in nine of ten cases, for two parties of so many people; None above 40 points.

    Its lower end is a half-width below the estimate, which is itself low by 1.28 standard deviations in one of ten cases. Nobody has more
    item groups than count in full, as nearly nobody has.

    Args:
        people: Of the two parties.
        counts: The noises of a count.
        scalars: The noises of the number of people.
        tail: Of each end of an interval.
        beyond_chance: Whether it is about populations, not only about the people counted.
    """
    difference = 0.0
    sizes = np.array(people, dtype=np.float64)
    of_count, of_people = (
        sum(each.often * each.law.second_moment for each in noises) / VOTE**2 for noises in (counts, scalars)
    )
    for _ in range(3):  # it hardly changes after the second time
        shares = PREVALENCE + np.array([-difference, difference]) / 2
        limits = []
        for size, share in zip(sizes, shares, strict=True):
            party = Prevalence(np.array([size * share]), 0.0, float(size), counts, scalars, beyond_chance)
            if not party.has_people(tail):
                return None
            limits.append(party.limits(tail))
        # of the end that is the estimate's: the undercount, whose noise is a quarter of that of a count, is in one of them
        noise = of_count * np.array([1 + 1 / 16, 1]) + of_people * shares**2
        chance = shares * (1 - shares) / sizes * beyond_chance
        variance = float((chance + noise / sizes**2).sum())
        estimate, low, _ = difference_limits(*limits)
        difference = float((estimate - low)[0]) + _NINE_OF_TEN * math.sqrt(variance)
        if not difference <= 2 * PREVALENCE:
            return None
    return difference
