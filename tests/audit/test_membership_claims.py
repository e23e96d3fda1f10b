"""What the audit of membership says of its figures: every claim can fail."""

import math
from dataclasses import replace

import pytest
from audit.membership import Found
from audit.trade_off import Promise, TradeOff

from audit import membership, whole_path

GOOD = TradeOff(1.0, 0.97, 0.0099, 0.0001, 0.008, crosses=False)
WEAK = TradeOff(1.3, 1.2, 0.03, 0.0001, 0.02, crosses=True)
PURE = Found("pure", Promise(1.0, 0.0), True, 10, GOOD, WEAK)
NORMAL = Found("normal", Promise(1.0, 0.01), True, 10, GOOD, WEAK)
LOOSE = Found("loose", Promise(1.0, 0.01), False, 10, replace(GOOD, epsilon=-math.inf, delta=0.001), None)


def held(found, faults=(True, True), dependence=((False, True),), *, quick=False):
    """Whether each claim holds."""
    section = membership._section(found, list(faults), list(dependence), quick=quick)
    return [check.holds for check in section.checks]


def test_all_hold():
    assert held([PURE, NORMAL, LOOSE]) == [True] * 7


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        (replace(LOOSE, honest=replace(GOOD, crosses=True)), 0),
        (replace(PURE, honest=replace(GOOD, epsilon_low=0.94)), 1),
        (replace(NORMAL, honest=replace(GOOD, delta=0.0089)), 2),
        (replace(NORMAL, weakened=GOOD), 3),
        (replace(PURE, weakened=None), 3),
    ],
)
def test_one_fails(changed, claim):
    found = held([PURE, NORMAL, LOOSE, changed])
    assert found == [number != claim for number in range(7)]


def test_a_fault_that_is_not_seen_fails():
    assert held([PURE, NORMAL], [True, False]) == [True] * 5 + [False, True]


@pytest.mark.parametrize("dependence", [(True, True), (False, False)])
def test_dependence_that_is_not_seen_or_seen_where_there_is_none_fails(dependence):
    assert held([PURE, NORMAL], dependence=[(False, True), dependence]) == [True] * 6 + [False]


def test_a_quick_run_says_how_many_cases_it_left_out():
    section = membership._section([PURE], [True, True], [(False, True)], quick=True)
    assert section.checks[0].found == f"1 of 1 stay below; there are {len(membership.all_cases())} cases"


def test_a_quick_run_claims_only_what_few_releases_can_show():
    assert held([replace(PURE, honest=replace(GOOD, epsilon_low=0.1)), NORMAL], quick=True) == [True] * 4


def test_a_case_is_printed():
    assert membership._row(NORMAL) == (
        "normal", "1", "1.000", "0.970", "0.01", "0.00990 ± 0.00010", "0.00800", "1.200",
    )  # fmt: skip
    assert membership._row(LOOSE)[2] == "below 0"
    assert membership._row(PURE)[5:7] == ("", "")
    assert len(membership._row(PURE)) == len(membership.HEADS)


def stories(**changed):
    """Trade-offs of every story and fault; the promise of the stories is ε = 2."""
    good, weak = replace(GOOD, epsilon_low=1.8), replace(WEAK, epsilon_low=2.3)
    trials = whole_path.all_trials()
    found = {(story, fault): good if fault == whole_path.HONEST else weak for story, fault in trials}
    return found | changed.get("changed", {})


def story_claims(found, *, refused=True, quick=False):
    return [check.holds for check in whole_path._section(found, 10, refused=refused, quick=quick).checks]


def test_the_claims_of_the_whole_path():
    assert story_claims(stories()) == [True] * 4
    assert story_claims(stories(), quick=True) == [True] * 2
    assert story_claims(stories(), refused=False) == [True, False, True, True]
    crossing = {(3, whole_path.HONEST): replace(GOOD, crosses=True, epsilon_low=1.8)}
    assert story_claims(stories(changed=crossing)) == [False, True, True, True]
    far = {(1, whole_path.HONEST): replace(GOOD, epsilon_low=1.69)}
    assert story_claims(stories(changed=far)) == [True, True, False, True]
    faults = [trial for trial in whole_path.all_trials() if trial[1] != whole_path.HONEST]
    assert {name for _, name in faults} == {
        whole_path.UNBOUNDED, whole_path.EVERY_GROUP, whole_path.UNCOVERED, whole_path.WEAKLY
    }  # fmt: skip
    for fault in faults:
        assert story_claims(stories(changed={fault: GOOD})) == [True, True, True, False]
    # a story that is not tight need not come close
    hidden = [number for number, story in enumerate(whole_path.all_stories()) if not story.tight]
    far = {(story, whole_path.HONEST): replace(GOOD, epsilon_low=0.5) for story in hidden}
    assert len(far) == 2
    assert story_claims(stories(changed=far)) == [True] * 4
