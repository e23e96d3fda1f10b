"""What margins will show, before there is any data: differences in prevalence, by share of ε and by how many item groups of a person count."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from armslength.checks import integer
from armslength.errors import ParameterError, plural
from armslength.estimates.prevalence import Prevalence, difference_limits
from armslength.laws import DiscreteLaplace, Law
from armslength.planner.needs import enough_epsilon, enough_people, offers
from armslength.planner.plan_page import share_table
from armslength.privacy.calibration import laplace_scale
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.margins import Margins, checked_margin_bounds, checked_margins
from armslength.protocol.neighbors import margin_sensitivity
from armslength.protocol.protocol import Protocol

SHARES = tuple(map(Fraction, ("0.1", "0.15", "0.2", "0.25", "0.3")))
PREVALENCE = 0.2  # of the item groups that a plan speaks of, on average over both parties
WANTED = 0.1  # the difference in prevalence for which a plan says what is needed
_BOUNDS = (1, 2, 3, 5, 10, 20, 50)
_LEVEL = 0.95
_NINE_OF_TEN = 1.2816  # standard deviations
_HARDLY_MORE = 1.25  # of the difference that is seen: then a smaller share is better
_LITTLE_MORE = 1.5  # of the same: then it is better to count more item groups of a person
_MOST = 10_000
NO_NOISE = DiscreteLaplace(0.5)  # next to none: half a person


@dataclass(frozen=True)
class MarginSetting:
    """One share of ε and one bound, and what they show."""

    share: Fraction
    contribution: int
    seen: float | None  # the smallest difference in prevalence that is seen in nine of ten cases


@dataclass(frozen=True)
class MarginPlan:
    """What margins will show of two parties.

    Attributes:
        item_groups: How many there are, with (other).
        settings: All shares and bounds that were asked for.
        recommended: The smallest share that sees nearly as much as the largest, with the largest bound that costs little.
        chance: What would be seen without any noise.
        alone: What would be seen if each person counted in one group only; None if that is so, or if nothing would be.
        needs: What would show 10 points, where nothing is seen.
        fields: The arguments of the protocol, without those that are recommended; None where the item groups are not listed.
    """

    item_groups: int
    settings: tuple[MarginSetting, ...]
    recommended: MarginSetting
    chance: float | None
    alone: float | None
    needs: str
    fields: dict[str, Any] | None

    @property
    def protocol_fields(self) -> dict[str, Any]:
        """The arguments of the protocol."""
        if self.fields is None:
            raise ParameterError(
                "margins must list the item groups for a protocol, got their number alone; give the list, or leave out item_groups"
            )
        best = self.recommended
        return {**self.fields, "margin_share": best.share, "margin_contribution": best.contribution}

    @property
    def text(self) -> str:
        """What is seen, in words."""
        best = self.recommended
        if best.seen is None:
            return f"no differences of item groups below 40 points: noise hides them. To see 10 points takes {self.needs}"
        hidden = "" if self.chance is None else f" Chance alone would hide {points(self.chance)}."
        alone = ""
        if self.alone is not None and self.alone <= 0.9 * best.seen:
            alone = f" With --one-group: {points(self.alone)}."
        return (
            f"those that {points(best.seen)} more or fewer of the people have, in 9 of 10 cases, where a fifth have them on average "
            f"(beyond chance, 95 % for all {self.item_groups:,} item groups of a pair together).{hidden}{alone}"
        )

    @property
    def setting_text(self) -> str:
        """The recommended share and bound."""
        share, groups = 100 * float(self.recommended.share), plural(self.recommended.contribution, "group")
        return f"{share:g} % of ε to count people by item group, at most {groups} of each person"

    def table(self) -> list[str]:
        """What is seen, by bound and share."""
        cells = []
        for setting in self.settings:
            text = "-" if setting.seen is None else f"{100 * setting.seen:.2g}"
            cells.append((str(setting.contribution), setting.share, text, setting is self.recommended))
        return share_table(
            "Points of difference in prevalence that are seen, by how many item groups of a person count and share of ε for margins "
            "(-: above 40):",
            "item groups of a person",
            cells,
        )


def points(difference: float) -> str:
    """A difference of shares, in points."""
    text = f"{100 * difference:.2g}"
    return f"{text} point{'s' * (text != '1')}"


def margin_plan(
    protocol: Protocol,
    people: int,
    margins: Any,
    item_groups: Any,
    margin_share: Any,
    margin_contribution: Any,
) -> MarginPlan | None:
    """The plan for item groups that are listed, or for that many; None where there are none.

    It takes margins to have Laplace noise; where the protocol finds that Gaussian noise is less, they show more.

    Args:
        protocol: A small one with the same neighbors, without margins.
        people: How many each party has.
        margins: The item groups, as for a protocol.
        item_groups: How many there are, where they are not listed.
        margin_share: 0: chosen here.
        margin_contribution: None: chosen here, except for a record.
    """
    share = exact_number("margin_share", margin_share)
    named = checked_margins(margins, protocol.record)
    if named is None and item_groups is None:
        checked_margin_bounds(None, share, margin_contribution, None, None, "")
        return None
    if not 0 <= share < 1:
        raise ParameterError(f"margin_share must be at least 0 and below 1, got {float(share):g}")
    if named is not None and item_groups is not None:
        raise ParameterError(
            "margins or item_groups must be given, got both; give --margins or --item-groups, not both"
        )
    count = integer("item_groups", len(named.names) if named else item_groups, at_least=2, at_most=_MOST)
    bounds = _bounds(protocol, named, count, margin_contribution)
    tail = (1 - _LEVEL) / 2 / count

    def seen(
        share: Fraction,
        bound: int,
        *,
        people: int = people,
        epsilon: Fraction = protocol.epsilon,
        one_group: bool = protocol.one_group,
    ) -> float | None:
        limits = bound, protocol.contribution or 1, protocol.resolution, protocol.relation
        sensitivity = margin_sensitivity(*limits, one_group=one_group)
        return seen_from(people, DiscreteLaplace(laplace_scale(sensitivity, epsilon * share)), tail)

    shares = (share,) if share else SHARES
    settings = {
        (bound, share): MarginSetting(share, bound, seen(share, bound))
        for bound in bounds
        for share in shares
    }
    enough = _LITTLE_MORE * min(_gap(settings[bound, shares[-1]]) for bound in bounds)
    bound = max(bound for bound in bounds if _gap(settings[bound, shares[-1]]) <= enough)
    enough = _HARDLY_MORE * _gap(settings[bound, shares[-1]])
    best = next(settings[bound, share] for share in shares if _gap(settings[bound, share]) <= enough)
    alone = None if protocol.one_group else seen(best.share, best.contribution, one_group=True)
    needs = "" if best.seen is not None else _needs(protocol, people, partial(seen, shares[-1], bounds[0]))
    fields = None if named is None else {"margins": named}
    chance = seen_from(people, NO_NOISE, tail)
    return MarginPlan(count, tuple(settings.values()), best, chance, alone, needs, fields)


def _needs(protocol: Protocol, people: int, seen: Callable[..., float | None]) -> str:
    """What would show 10 points, each with everything else unchanged; of a protocol for several groups, also with one group."""

    def needed(**changes: Any) -> str:
        def is_seen(**others: Any) -> bool:
            return (seen(**changes, **others) or math.inf) <= WANTED

        texts = offers(enough_epsilon(protocol.epsilon, is_seen), enough_people(people, is_seen))
        return " or ".join(texts) or "more than any ε up to 1000"

    if protocol.one_group:
        return needed()
    row = " (where people have one row each, it costs nothing)" if protocol.record is not None else ""
    return f"{needed()}; with --one-group{row} {needed(one_group=True)}"


def _bounds(protocol: Protocol, margins: Margins | None, count: int, bound: Any) -> list[int]:
    """How many item groups of a person may count: as asked for, as the record says, or several numbers."""
    contribution = protocol.contribution or 1
    if bound is not None:
        return [integer("margin_contribution", bound, at_least=1, at_most=contribution)]
    if margins is not None and margins.rule == "record":
        return [min(len(margins.columns), contribution)]
    largest = min(contribution, count)
    return sorted({bound for bound in _BOUNDS if bound < largest} | {min(largest, 2 * _BOUNDS[-1])})


def _gap(setting: MarginSetting) -> float:
    return math.inf if setting.seen is None else setting.seen


def seen_from(people: int, law: Law, tail: float) -> float | None:
    """The difference in prevalence whose interval is above 0 in nine of ten cases, for two parties of so many people; None above 40 points.

    Its lower end is a half-width below the estimate, which is itself low by 1.28 standard deviations in one of ten cases.
    """
    difference = 0.0
    for _ in range(3):  # it hardly changes after the second time
        shares = PREVALENCE + np.array([-difference, difference]) / 2
        party = Prevalence(people * shares, float(people), ((law, 1),))
        value, lower, upper = party.limits(tail)
        a, b = ((value[[side]], lower[[side]], upper[[side]]) for side in (0, 1))
        noise = law.second_moment / people**2 * (1 + shares**2)
        variance = float((shares * (1 - shares) / people + noise).sum())
        estimate, low, _ = difference_limits(a, b)
        difference = float((estimate - low)[0]) + _NINE_OF_TEN * math.sqrt(variance)
        if not difference <= 2 * PREVALENCE:
            return None
    return difference
