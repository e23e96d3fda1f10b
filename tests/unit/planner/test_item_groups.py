"""Plans with item groups: which share and bound, what they show, what they cost, and the protocol that comes of it."""

import re
from fractions import Fraction
from itertools import pairwise

import pytest

import armslength as al
from armslength.planner.item_groups import SHARES
from armslength.planner.plan_words import similarity

KNOWN = {
    "epsilon": 1,
    "people": 3000,
    "items_per_person": 5,
    "unit": "one patient",
    "max_sketch_dim": 64,
    "seed": "x",
}
PREFIXES = {"prefix": ["S", "T", "I"], "group": ["Injuries", "Injuries", "Heart"]}
RECORD = {"age": [18, 40], "sex": ["F", "M"]}
OF_RECORD = {"items_per_person": None, "record": RECORD, "item_groups": ["age", "sex"]}


def plan(**known):
    return al.plan(**{**KNOWN, "item_groups": 20, **known})


def seen(margins, share, people=3000, epsilon=1):
    return margins.seen((people, people), Fraction(epsilon), Fraction("0.1"), share) or float("inf")


def test_more_noise_shows_less():
    bounds = [plan(item_groups_limit=bound).situation.item_groups for bound in (1, 4, 8, 20)]
    for margins in bounds:
        assert all(seen(margins, less) > seen(margins, more) for less, more in pairwise(SHARES))
    for share in SHARES:
        assert all(seen(few, share) < seen(many, share) for few, many in pairwise(bounds))


@pytest.mark.parametrize("people", [3000, 10_000, 40_000, 100_000, 10**6])
def test_the_smallest_share_that_shows_nearly_as_much(people):
    made = plan(people=people)
    margins = made.situation.item_groups
    least = seen(margins, SHARES[-1], people)
    assert seen(margins, margins.share, people) <= 1.25 * least
    assert all(seen(margins, share, people) > 1.25 * least for share in SHARES if share < margins.share)
    assert made.item_groups_seen == seen(margins, margins.share, people)
    chance = margins.chance((people, people))
    assert chance < made.item_groups_seen
    if people == 10**6:
        assert margins.share == SHARES[0]
        assert made.item_groups_seen < 1.25 * chance


@pytest.mark.parametrize(
    ("known", "bound"),
    [
        ({"items_per_person": 7}, 10),
        ({"items_per_person": 1}, 3),
        ({"items_per_person": 3}, 5),
        ({"items_per_person": None}, 7),
        ({"items_per_person": 40}, 20),
        ({"item_groups_per_person": 5}, 10),
        ({"item_groups_per_person": 2.2}, 5),
        ({"item_groups_limit": 4}, 4),
        (OF_RECORD, 2),
    ],
    ids=str,
)
def test_nearly_everybody_counts_in_full(known, bound):
    made = plan(**known)
    assert made.situation.item_groups.contribution == bound
    assert f"Up to {bound} item groups of a person count in full; people with more weigh less" in words(made)


def words(made):
    return " ".join(str(made).split())


def test_a_given_share_is_kept():
    made = plan(item_groups_share="0.12")
    assert made.situation.item_groups.share == Fraction("0.12")
    assert "78 % profile, 12 % item groups, 10 % number of people" in words(made)
    assert "by share of ε for item groups" in words(plan())


def test_the_protocol_has_the_margins():
    made = plan(item_groups=PREFIXES)
    margins, protocol = made.situation.item_groups, made.protocol
    assert protocol.margins.names == ("Heart", "Injuries", "(other)")
    assert (protocol.margin_share, protocol.margin_contribution) == (margins.share, margins.contribution)
    assert protocol.sketch_epsilon == 1 - protocol.total_share - margins.share
    # what the plan predicts of profiles is with the noise that is left for them
    assert made.recommended.votes.law == protocol.law


def test_the_price_is_what_profiles_lose():
    with_margins, without = (
        plan(epsilon="0.3", people=20_000),
        plan(epsilon="0.3", people=20_000, item_groups=None),
    )
    assert with_margins.seen < without.seen
    assert re.search(rf"0 % - {similarity(without.seen)}\d? ", words(with_margins))
    assert "item groups" not in str(without)
    assert without.situation.item_groups is None
    assert without.item_groups_seen is None


def test_item_groups_without_a_list_make_no_protocol():
    with pytest.raises(al.ParameterError, match="needs the list of item groups"):
        _ = plan().protocol


def test_margins_that_show_nothing_are_not_recommended():
    hidden = plan(people=500)
    assert hidden.seen is not None
    assert hidden.item_groups_seen is None
    assert not hidden.resolvable
    assert "Recommended:" not in str(hidden)
    with pytest.raises(al.NotResolvableError, match="10 points take"):
        _ = hidden.protocol


def test_what_is_needed_is_enough():
    refusal = plan(people=500).refusal
    people = int(re.search(r"([\d,]+) people in each party", refusal)[1].replace(",", ""))
    for factor, is_enough in ((1, True), (0.9, False)):
        number = int(factor * people)
        margins = plan(people=number).situation.item_groups
        assert (seen(margins, SHARES[-1], number) <= 0.1) is is_enough


@pytest.mark.parametrize(
    "known",
    [
        {"item_groups": 1},
        {"item_groups": True},
        {"item_groups_limit": 21},
        {"item_groups_share": "0.6", "total_share": "0.5"},
        {"total_share": "0.95"},
        {"item_groups": None, "item_groups_share": "0.1"},
        {"item_groups": None, "item_groups_limit": 3},
        {"item_groups": None, "item_groups_per_person": 3},
        {"about": "counts"},
    ],
    ids=str,
)
def test_plans_that_are_refused(known):
    with pytest.raises(al.ParameterError):
        plan(**known)
