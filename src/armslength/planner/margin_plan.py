"""What margins will show, before there is any data: differences in prevalence, by the share of ε for them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.estimates.prevalence import Noise, Prevalence, difference_limits
from armslength.laws import DiscreteLaplace
from armslength.planner.needs import enough_epsilon, enough_people, offers
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.margins import Margins, checked_groups, margins_of
from armslength.protocol.neighbors import VOTE, margin_law, margin_sensitivity, scalar_laws
from armslength.protocol.protocol import Protocol

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
NO_NOISE: tuple[Noise, ...] = (Noise(DiscreteLaplace(0.5), 1),)  # next to none: half a grid unit


@dataclass(frozen=True)
class MarginPlan:
    """What margins will show of two typical parties.

    Attributes:
        item_groups: How many there are, with (other).
        contribution: How many item groups of a person count in full.
        shares: The shares of ε that the plan chooses from.
        share: The smallest that shows nearly as much as the largest; the largest if that shows nothing.
        relation: That of the protocol.
        margins: The item groups; None where only their number is known.
    """

    item_groups: int
    contribution: int
    shares: tuple[Fraction, ...]
    share: Fraction
    relation: str
    margins: Margins | None

    @property
    def protocol_fields(self) -> dict[str, Any]:
        """The arguments of the protocol."""
        if self.margins is None:
            raise ParameterError(
                "a protocol needs the list of item groups: give margins, not item_groups",
                "margins",
                "item_groups",
            )
        shared = {"margins": self.margins, "margin_share": self.share}
        return {**shared, "margin_contribution": self.contribution}

    def seen(
        self, people: tuple[int, int], epsilon: Fraction, total_share: Fraction, share: Fraction | None = None
    ) -> float | None:
        """The smallest difference in prevalence that is seen in nine of ten cases; None above 40 points."""
        sensitivity = margin_sensitivity(self.contribution, self.item_groups, self.relation)
        law = margin_law(sensitivity, epsilon * (self.share if share is None else share))
        scalars = tuple(Noise(each, 1) for each in scalar_laws(epsilon * total_share, self.relation))
        return seen_from(people, (Noise(law, 1),), scalars, self._tail)

    def chance(self, people: tuple[int, int]) -> float | None:
        """What would be seen without any noise."""
        return seen_from(people, NO_NOISE, NO_NOISE, self._tail)

    def needs(self, people: int, epsilon: Fraction, total_share: Fraction) -> str:
        """What would show 10 points, each with everything else unchanged."""

        def is_seen(people: int = people, epsilon: Fraction = epsilon) -> bool:
            difference = self.seen((people, people), epsilon, total_share, self.shares[-1])
            return difference is not None and difference <= WANTED

        texts = offers(enough_epsilon(epsilon, is_seen), enough_people(people, is_seen))
        return " or ".join(texts) or "more than any ε up to 1000"

    @property
    def _tail(self) -> float:
        return margin_tail(self.item_groups)


def margin_tail(item_groups: int) -> float:
    """Of each end of an interval at 95 percent, for all item groups of a pair together."""
    return (1 - _LEVEL) / 2 / item_groups


def points(difference: float) -> str:
    """A difference of shares, in points."""
    text = f"{100 * difference:.2g}"
    return f"{text} point{'s' * (text != '1')}"


def margin_plan(  # noqa: PLR0913  # the settings of margins, and what they depend on
    protocol: Protocol,
    people: int,
    total_share: Fraction,
    items_per_person: float,
    *,
    margins: Any,
    item_groups: Any,
    margin_share: Any,
    margin_contribution: Any,
    item_groups_per_person: Any,
) -> MarginPlan | None:
    """The plan for item groups that are listed, or for that many; None where there are none.

    Args:
        protocol: A small one with the same neighbors, without margins.
        people: How many each party has.
        total_share: The share of ε for the number of people.
        items_per_person: How many different items a person typically has.
        margins: The item groups, as for a protocol.
        item_groups: How many there are, where they are not listed.
        margin_share: None: chosen here.
        margin_contribution: None: so many that nearly everybody counts in full: a third more than a person typically has items, and
            two more at least; or twice as many as item groups; all of a record.
        item_groups_per_person: How many a person typically has; None: not known.
    """
    share = exact_number("margin_share", margin_share or 0)
    named = None if margins is None else margins_of(checked_groups(margins), protocol.record)
    if named is None and item_groups is None:
        if share or margin_contribution is not None:
            names = "margin_share", "margin_contribution", "margins"
            raise ParameterError("margin_share and margin_contribution need margins", *names)
        if item_groups_per_person is not None:
            names = "item_groups_per_person", "margins", "item_groups"
            raise ParameterError("item_groups_per_person needs margins or item_groups", *names)
        return None
    if not 0 <= share < 1:
        raise ParameterError(
            f"margin_share must be at least 0 and below 1, got {float(share):g}", "margin_share"
        )
    if named is not None and item_groups is not None:
        raise ParameterError("margins cannot be combined with item_groups", "margins", "item_groups")
    count = integer("item_groups", len(named.names) if named else item_groups, at_least=2, at_most=_MOST)
    of_record = named is not None and named.rule == "record"
    if item_groups_per_person is None:
        typical = Fraction(f"{items_per_person:.6g}")
        most = max(_ROOM * typical, typical + _LEAST_ROOM)
    else:
        typical_groups = number("item_groups_per_person", item_groups_per_person, above=0, at_most=_MOST)
        most = _ROOM_OF_GROUPS * Fraction(f"{typical_groups:.6g}")
    bound = len(named.columns) if named is not None and of_record else min(count, math.ceil(most))
    if margin_contribution is not None:
        bound = integer("margin_contribution", margin_contribution, at_least=1, at_most=count)
    shares = (share,) if share else SHARES
    plan = MarginPlan(count, bound, shares, shares[-1], protocol.relation, named)

    def seen(share: Fraction) -> float:
        return plan.seen((people, people), protocol.epsilon, total_share, share) or math.inf

    enough = _HARDLY_MORE * seen(shares[-1])
    if math.isinf(enough):
        return plan
    return replace(plan, share=next(share for share in shares if seen(share) <= enough))


def seen_from(
    people: tuple[int, int], margins: tuple[Noise, ...], scalars: tuple[Noise, ...], tail: float
) -> float | None:
    """The difference in prevalence whose interval is above 0 in nine of ten cases, for two parties of so many people; None above 40 points.

    Its lower end is a half-width below the estimate, which is itself low by 1.28 standard deviations in one of ten cases. Nobody has more
    item groups than count in full, as nearly nobody has.

    Args:
        people: Of the two parties.
        margins: The noises of a count.
        scalars: The noises of the number of people.
        tail: Of each end of an interval.
    """
    difference = 0.0
    sizes = np.array(people, dtype=np.float64)
    of_count, of_people = (
        sum(each.often * each.law.second_moment for each in noises) / VOTE**2 for noises in (margins, scalars)
    )
    for _ in range(3):  # it hardly changes after the second time
        shares = PREVALENCE + np.array([-difference, difference]) / 2
        limits = []
        for size, share in zip(sizes, shares, strict=True):
            party = Prevalence(np.array([size * share]), 0.0, float(size), margins, scalars)
            if not party.has_people(tail):
                return None
            limits.append(party.limits(tail))
        # of the end that is the estimate's: the undercount, whose noise is a quarter of that of a count, is in one of them
        noise = of_count * np.array([1 + 1 / 16, 1]) + of_people * shares**2
        variance = float((shares * (1 - shares) / sizes + noise / sizes**2).sum())
        estimate, low, _ = difference_limits(*limits)
        difference = float((estimate - low)[0]) + _NINE_OF_TEN * math.sqrt(variance)
        if not difference <= 2 * PREVALENCE:
            return None
    return difference
