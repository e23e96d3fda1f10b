"""Plans with margins: which share and bound, what they show, what they cost, and the protocol that comes of it."""

import re
from fractions import Fraction
from itertools import pairwise

import pytest

import armslength as al

KNOWN = {
    "by": "shape",
    "epsilon": 1,
    "people": 3000,
    "contribution": 5,
    "one_group": True,
    "unit": "one patient",
}
PREFIXES = {"prefix": ["S", "T", "I"], "group": ["Injuries", "Injuries", "Heart"]}


def plan(**known):
    return al.plan(**{**KNOWN, "item_groups": 20, "max_sketch_dim": 256, **known})


def by_bound_and_share(margins):
    return {(each.contribution, each.share): each.seen for each in margins.settings}


def test_more_noise_shows_less():
    seen = by_bound_and_share(plan().situation.margins)
    shares, bounds = sorted({share for _, share in seen}), sorted({bound for bound, _ in seen})
    assert bounds == [1, 2, 3, 5]
    for bound in bounds:
        assert all(seen[bound, less] > seen[bound, more] for less, more in pairwise(shares))
    for share in shares:
        assert all(seen[few, share] < seen[many, share] for few, many in pairwise(bounds))


def test_the_smallest_share_that_shows_nearly_as_much():
    margins = plan().situation.margins
    best, seen = margins.recommended, by_bound_and_share(margins)
    largest = Fraction("0.3")
    assert best in margins.settings
    assert best.seen <= 1.25 * seen[best.contribution, largest]
    assert all(
        value > 1.25 * seen[best.contribution, largest]
        for (bound, share), value in seen.items()
        if bound == best.contribution and share < best.share
    )
    # with many people chance is all there is: the smallest share is enough, and everything counts
    many = plan(people=10**6).situation.margins
    assert (many.recommended.share, many.recommended.contribution) == (Fraction("0.1"), 5)
    assert many.recommended.seen == pytest.approx(many.chance, rel=0.05)


def test_what_is_given_is_taken():
    margins = plan(margin_share="0.12", margin_contribution=4).situation.margins
    assert [(each.share, each.contribution) for each in margins.settings] == [(Fraction("0.12"), 4)]
    record = {"age": [18, 40], "sex": ["F", "M"]}
    of_record = plan(item_groups=None, margins=["age", "sex"], record=record, contribution=None)
    assert of_record.protocol.margin_contribution == 2
    assert {each.contribution for each in of_record.situation.margins.settings} == {2}


def test_one_group_shows_more():
    several = plan(one_group=False).situation.margins
    assert several.alone < several.recommended.seen
    assert "--one-group" in several.text
    alone = plan().situation.margins
    assert alone.alone is None
    assert "--one-group" not in alone.text


def test_the_protocol_has_the_margins():
    made = plan(item_groups=None, margins=PREFIXES)
    best, protocol = made.situation.margins.recommended, made.protocol
    assert protocol.margins.names == ("Heart", "Injuries", "(other)")
    assert (protocol.margin_share, protocol.margin_contribution) == (best.share, best.contribution)
    assert protocol.sketch_epsilon == 1 - protocol.total_share - best.share
    # what the plan predicts of mixes is with the noise that is left for them
    assert made.recommended.pair.law.scale == pytest.approx(protocol.law.scale)


def test_the_price_is_what_the_sketches_lose():
    known = {"epsilon": "0.1", "people": 30_000}
    with_margins, without = plan(margin_share="0.3", **known), plan(item_groups=None, **known)
    assert with_margins.seen < without.seen
    assert "Without margins you would see" in " ".join(str(with_margins).split())
    assert "margins" not in str(without)
    assert without.situation.margins is None


def test_item_groups_without_a_list_make_no_protocol():
    with pytest.raises(al.ParameterError, match="must list the item groups"):
        _ = plan().protocol


def test_margins_that_show_nothing_are_not_recommended():
    hidden = plan(people=100, concentration=1.0)
    assert hidden.seen is not None
    margins = hidden.situation.margins
    assert margins.recommended.seen is None
    assert "noise hides them" in margins.text
    assert not hidden.resolvable
    assert "Recommended:" not in str(hidden)
    with pytest.raises(al.NotResolvableError, match="10 points takes"):
        _ = hidden.protocol
    record = {"age": [18, 40], "sex": ["F", "M"]}
    known = {"item_groups": None, "record": record, "margins": ["age", "sex"], "contribution": None}
    of_record = plan(people=100, concentration=1.0, one_group=False, **known)
    assert "--one-group" in of_record.refusal


def test_what_is_needed_is_enough():
    needs = plan(people=100, concentration=1.0).situation.margins.needs
    people = int(re.search(r"([\d,]+) people", needs)[1].replace(",", ""))
    for factor, is_enough in ((1, True), (0.9, False)):
        seen = [each.seen for each in plan(people=int(factor * people)).situation.margins.settings]
        assert (min(filter(None, seen)) <= 0.1) is is_enough


def test_margins_that_cost_nothing_are_said_to():
    text = str(plan(people=10**7, beyond_chance=True, contribution=1))
    assert "margins cost nothing that you would see" in " ".join(text.split())


@pytest.mark.parametrize(
    "known",
    [
        {"item_groups": 1},
        {"margins": PREFIXES},
        {"margin_contribution": 6},
        {"margin_share": "0.6", "total_share": "0.5"},
        {"item_groups": None, "margin_share": "0.1"},
        {"by": "size"},
    ],
    ids=str,
)
def test_plans_that_are_refused(known):
    with pytest.raises(al.ParameterError):
        plan(**known)
