"""Budgets: what fits, what is left, whose unit it is, and when a period ends."""

import json
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.ledger.budgets import SPANS, span_of
from armslength.privacy.calibration import gaussian_scale

UNIT = "one patient"


@pytest.fixture
def ledger(tmp_path):
    return al.Ledger(tmp_path / "ledger.sqlite", create=True)


def gaussian(entry, epsilon="1", delta="0.000001"):
    scale = gaussian_scale(1, epsilon, delta).hex()
    return replace(entry, law="gaussian", epsilon=epsilon, delta=delta, scale=scale, sensitivity_squared="1")


def test_a_release_must_fit(ledger, entry):
    ledger.set_budget("visits", "2.5", unit=UNIT)
    ledger.charge(entry, ["a"])
    ledger.charge(entry, ["b"])
    with pytest.raises(al.BudgetError) as caught:
        ledger.charge(entry, ["c"])
    for words in ("'visits'", "epsilon 2.5 at delta 0", "would reach epsilon 3", "epsilon 0.5 is left"):
        assert words in str(caught.value)
    with pytest.raises(al.BudgetError, match=r"epsilon 0\.5 is left"):
        ledger.preview(entry, ["c"])
    assert len(ledger.entries()) == 2
    ledger.charge(replace(entry, epsilon="0.5"), ["c"])  # what is left can be spent, to the last digit
    (spent,) = ledger.spent("visits")
    assert (spent.epsilon, spent.delta, spent.left, spent.releases, spent.method) == (2.5, 0, 0, 3, "sum")
    with pytest.raises(al.BudgetError, match="epsilon 0 is left"):
        ledger.charge(replace(entry, epsilon="0.0001"), ["d"])


def test_who_has_no_budget_where_others_have_one_is_refused(ledger, entry):
    pilot = replace(entry, population="pilot")
    ledger.charge(pilot, ["a"])  # nobody has a budget yet
    ledger.set_budget("visits", 1, unit=UNIT)
    with pytest.raises(al.BudgetError, match="'pilot' has no budget"):
        ledger.charge(pilot, ["b"])
    budget = ledger.set_budget("pilot", None, unit=UNIT)
    assert budget.limit is None
    for label in ("b", "c", "d"):
        ledger.charge(replace(pilot, epsilon="50"), [label])
    (spent,) = ledger.spent("pilot")
    assert (spent.epsilon, spent.left, spent.releases) == (151, None, 4)
    with pytest.raises(al.BudgetError, match="'visits'"):
        ledger.charge(replace(entry, epsilon="2"), ["b"])


@pytest.mark.parametrize(
    "name",
    ["Visits", "vis its", "\uff56isits", "visits\u2800", "visit\ufe0fs", "visit\u017f", "visits\u3164"],
)
def test_a_name_that_looks_like_another_is_refused(ledger, entry, name):
    ledger.set_budget("visits", 1, unit=UNIT)
    ledger.set_budget("pilot", None, unit=UNIT)
    for attempt in (
        lambda: ledger.charge(replace(entry, population=name), ["a"]),
        lambda: ledger.set_budget(name, 5, unit=UNIT),
    ):
        with pytest.raises(al.BudgetError, match="differs from 'visits'"):
            attempt()
    ledger.set_budget("visits2", 1, unit=UNIT)
    assert ledger.entries() == []


def test_a_month_is_released_once_and_the_next_one_needs_no_switch(ledger, entry):
    november, december = (replace(entry, period=month) for month in ("2026-11", "2026-12"))
    ledger.charge(november, ["north"])
    with pytest.raises(al.BudgetError, match="2026-11"):
        ledger.charge(november, ["south", "north"])
    ledger.charge(december, ["north"])
    ledger.charge(november, ["north"], repeat=True)
    assert [line.period for line in ledger.entries()] == ["2026-11", "2026-12", "2026-11"]


@pytest.mark.parametrize("period", ["a b", "x" * 41, "a\nb", "e\u0301"])
def test_a_period_is_a_short_name(ledger, entry, period):
    with pytest.raises(al.ParameterError, match="period must"):
        ledger.charge(replace(entry, period=period), ["a"])


def test_tenths_add_up_exactly(ledger, entry):
    ledger.set_budget("visits", 1, unit=UNIT)
    for number in range(10):
        ledger.charge(replace(entry, epsilon="0.1"), [str(number)])
    with pytest.raises(al.BudgetError):
        ledger.charge(replace(entry, epsilon="1e-100"), ["more"])


def test_what_is_spent_is_rounded_up_and_what_is_left_down(ledger, entry):
    ledger.set_budget("visits", 1, unit=UNIT)
    ledger.charge(replace(entry, epsilon="1/3"), ["a"])
    (spent,) = ledger.spent()
    assert (spent.epsilon, spent.left) == (0.333334, 0.666)
    with pytest.raises(al.BudgetError, match=r"reach epsilon 1\.00034; epsilon 0\.666 is left"):
        ledger.charge(replace(entry, epsilon="0.667"), ["b"])
    ledger.charge(replace(entry, epsilon="0.666"), ["b"])


def test_what_is_left_is_left_under_every_budget(ledger, entry):
    ledger.set_budget("visits", "1.5", unit=UNIT)
    ledger.set_budget("visits", 1, unit=UNIT, per="month")
    ledger.charge(replace(entry, epsilon="0.75"), ["a"])
    with pytest.raises(al.BudgetError, match=r"in all\).* epsilon 0\.25 is left"):
        ledger.charge(entry, ["b"])


def test_gaussian_releases_compose_better_than_their_sum(ledger, entry):
    ledger.set_budget("visits", 4, 1e-6, unit=UNIT)
    for number in range(12):
        ledger.charge(gaussian(entry), [str(number)])
    with pytest.raises(al.BudgetError, match=r"reach epsilon 4\."):
        ledger.charge(gaussian(entry), ["one more"])
    # Plain sums would end after one: two deltas are more than the budget's.
    (spent,) = ledger.spent()
    assert spent.method == "gaussian"
    assert spent.delta == 1e-6
    assert 0 < spent.left < 4 - spent.epsilon + 0.01


def test_a_gaussian_release_may_spend_the_whole_budget(ledger, entry):
    ledger.set_budget("visits", 1, "1e-6", unit=UNIT)
    ledger.charge(gaussian(entry), ["a"])
    assert ledger.spent()[0].left == 0


def test_a_pure_budget_refuses_gaussian_noise(ledger, entry):
    ledger.set_budget("visits", 100, unit=UNIT)
    with pytest.raises(al.BudgetError, match="has no delta, which Gaussian noise needs"):
        ledger.charge(gaussian(entry), ["a"])
    assert ledger.entries() == []


def test_a_pure_budget_over_earlier_gaussian_noise_has_nothing_left(ledger, entry):
    ledger.charge(gaussian(entry), ["a"])
    ledger.set_budget("visits", 100, unit=UNIT)
    (spent,) = ledger.spent()
    assert (spent.epsilon, spent.method, spent.left) == (None, "", 0)
    with pytest.raises(al.BudgetError, match="reach a delta beyond it; epsilon 0 is left"):
        ledger.charge(entry, ["b"])


@pytest.mark.parametrize(("name", "value"), [("unit", "one visit"), ("relation", "replace")])
def test_another_unit_or_relation_is_refused(ledger, entry, name, value):
    ledger.set_budget("visits", 2, unit=UNIT)
    with pytest.raises(al.BudgetError, match=f"{name} must be .* got '{value}'; only equal"):
        ledger.charge(replace(entry, **{name: value}), ["a"])
    arguments = {"unit": UNIT, name: value}
    with pytest.raises(al.BudgetError, match=f"{name} must be"):
        ledger.set_budget("visits", 2, per="month", **arguments)
    # Nothing has been charged, so a slip can be mended …
    assert getattr(ledger.set_budget("visits", 2, **arguments), name) == value
    ledger.charge(replace(entry, **{name: value}), ["a"])
    # … and afterwards it cannot.
    with pytest.raises(al.BudgetError, match=f"{name} must be '{value}' as in a release"):
        ledger.set_budget("visits", 2, unit=UNIT)


def test_units_without_a_budget_stand_apart(ledger, entry):
    ledger.charge(entry, ["a"])
    ledger.charge(replace(entry, unit="one visit", epsilon="3"), ["b"])
    assert [(spent.unit, spent.epsilon, spent.budget, spent.left) for spent in ledger.spent("visits")] == [
        (UNIT, 1, None, None),
        ("one visit", 3, None, None),
    ]


def test_budgets_of_several_spans_hold_together(ledger, entry, set_clock):
    set_clock("2026-01-30 12:00:00")
    ledger.set_budget("visits", 3, unit=UNIT)
    ledger.set_budget("visits", 2, unit=UNIT, per="month")
    ledger.charge(entry, ["a"])
    ledger.charge(entry, ["b"])
    with pytest.raises(
        al.BudgetError,
        match=r"per month\).* epsilon 0 is left .* until 2026-02-01T00:00:00\+00:00; .*wait",
    ):
        ledger.charge(entry, ["c"])
    set_clock("2026-02-01 00:00:00")
    with pytest.raises(al.BudgetError, match=r"in all.* epsilon 1 is left for"):  # of the 2 of the month
        ledger.charge(replace(entry, epsilon="1.5"), ["c"])
    ledger.charge(entry, ["c"])
    in_all, january, february = ledger.spent("visits", past=True)
    assert (in_all.per, in_all.epsilon, in_all.left, in_all.start) == (None, 3, 0, None)
    assert (january.epsilon, january.left, january.releases) == (2, None, 2)
    assert (january.start, january.end) == ("2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00")
    assert (february.epsilon, february.left, february.budget.epsilon) == (1, 1, "2")
    assert ledger.spent("visits") == [in_all, february]


def test_without_a_total_budget_the_total_is_still_told(ledger, entry, set_clock):
    set_clock("2026-01-30 12:00:00")
    ledger.set_budget("visits", 2, unit=UNIT, per="day")
    ledger.charge(entry, ["a"])
    set_clock("2026-02-20 12:00:00")
    ledger.charge(entry, ["b"])
    assert [(spent.per, spent.epsilon) for spent in ledger.spent()] == [(None, 2), ("day", 1)]


def test_a_clock_that_goes_back_frees_nothing(ledger, entry, set_clock):
    set_clock("2026-02-01 00:00:00")
    ledger.set_budget("visits", 1, unit=UNIT, per="month")
    ledger.charge(entry, ["a"])
    for earlier in ("2026-01-15 00:00:00", "1970-01-01 00:00:00"):
        set_clock(earlier)
        with pytest.raises(al.BudgetError, match="until 2026-03-01"):
            ledger.charge(entry, ["b"])
    set_clock("2026-03-01 00:00:00")
    ledger.charge(entry, ["b"])
    assert [spent.epsilon for spent in ledger.spent() if spent.per] == [1]


def test_a_budget_holds_the_clock_as_a_line_does(ledger, entry, set_clock):
    set_clock("2026-02-01 00:00:00")
    ledger.set_budget("visits", 1, unit=UNIT, per="month")
    set_clock("2026-01-15 00:00:00")
    assert ledger.charge(entry, ["a"]).time == "2026-02-01T00:00:00+00:00"


def test_budgets_are_raised_and_lowered_and_leave_a_trace(ledger, entry, set_clock):
    set_clock("2026-01-01 00:00:00")
    ledger.set_budget("visits", 1, unit=UNIT)
    ledger.charge(entry, ["a"])
    set_clock("2026-01-02 00:00:00")
    ledger.set_budget("visits", 2, "1e-6", unit=UNIT)
    ledger.charge(entry, ["b"])
    set_clock("2026-01-03 00:00:00")
    ledger.set_budget("visits", "0.5", unit=UNIT)
    with pytest.raises(al.BudgetError, match="epsilon 0 is left"):
        ledger.charge(replace(entry, epsilon="0.01"), ["c"])
    history = [(b.epsilon, b.delta, b.time[:10]) for b in ledger.budgets("visits", past=True)]
    assert history == [
        ("1", "0", "2026-01-01"),
        ("2", "0.000001", "2026-01-02"),
        ("0.5", "0", "2026-01-03"),
    ]
    assert [b.epsilon for b in ledger.budgets()] == ["0.5"]
    assert ledger.budgets("others") == []


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"epsilon": float("nan")}, "epsilon must"),
        ({"delta": 1}, "delta must"),
        ({"population": "a\nb"}, "population must"),
        ({"unit": None}, "unit must"),
        ({"per": "moon"}, "per must"),
        ({"epsilon": 0}, "epsilon must"),
        ({"population": ""}, "population is missing"),
        ({"relation": "swap"}, "relation must"),
        ({"per": ""}, "per must"),
    ],
)
def test_bad_budgets(ledger, tmp_path, arguments, match):
    with pytest.raises(al.ParameterError, match=match):
        ledger.set_budget(**{"population": "visits", "epsilon": 1, "unit": UNIT, **arguments})
    assert list(tmp_path.iterdir()) == []


def test_releases_are_charged_by_their_protocols(ledger):
    ledger.set_budget("visits", 2, "1e-6", unit=UNIT)
    data = np.ones((1, 8), dtype=int)
    laplace = al.Protocol(al.Identity(input_dim=8), epsilon=1, unit=UNIT)
    gaussian = al.Protocol(al.Identity(input_dim=8), epsilon="0.7", delta="1e-6", noise="gaussian", unit=UNIT)
    al.release(laplace, data, labels=["a"], population="visits", ledger=ledger)
    al.release(gaussian, data, labels=["b"], population="visits", ledger=ledger)
    with pytest.raises(al.BudgetError, match="does not fit the budget"):
        al.release(laplace, data, labels=["c"], population="visits", ledger=ledger)
    with pytest.raises(al.BudgetError, match="does not fit the budget"):
        al.stream(laplace, label="c", population="visits", ledger=ledger)
    with pytest.raises(al.BudgetError, match="unit must be 'one patient'"):
        al.release(
            al.Protocol(al.Identity(input_dim=8), epsilon="0.1"), data, population="visits", ledger=ledger
        )
    (spent,) = ledger.spent()
    assert 1.69 < spent.epsilon <= 1.7
    assert json.dumps(astuple(spent))  # plain numbers and text


@pytest.mark.parametrize(
    ("per", "moment", "start", "end"),
    [
        ("day", "2024-02-28T23:59:59", "2024-02-28", "2024-02-29"),
        ("day", "2024-12-31T00:00:00", "2024-12-31", "2025-01-01"),
        ("week", "2026-11-15T13:00:00", "2026-11-09", "2026-11-16"),
        ("week", "2026-11-16T00:00:00", "2026-11-16", "2026-11-23"),
        ("month", "2024-02-29T10:00:00", "2024-02-01", "2024-03-01"),
        ("month", "2026-12-31T23:59:59", "2026-12-01", "2027-01-01"),
        ("quarter", "2026-03-31T23:59:59", "2026-01-01", "2026-04-01"),
        ("quarter", "2026-11-15T00:00:00", "2026-10-01", "2027-01-01"),
        ("year", "2024-02-29T00:00:00", "2024-01-01", "2025-01-01"),
    ],
)
def test_calendar_spans(per, moment, start, end):
    found = span_of(per, datetime.fromisoformat(moment).replace(tzinfo=UTC))
    assert [edge.isoformat()[:19] for edge in found] == [f"{start}T00:00:00", f"{end}T00:00:00"]


@given(st.sampled_from(SPANS), st.integers(-(10**10), 10**11))
def test_spans_follow_each_other_without_a_gap(per, seconds):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    start, end = span_of(per, moment)
    assert start <= moment < end
    assert span_of(per, end)[0] == end
    assert span_of(per, start) == (start, end)


def test_numbers_are_written_as_in_protocols(ledger):
    protocol = al.Protocol(al.Identity(input_dim=4), epsilon="1/3", delta="1.25e-9", noise="gaussian")
    budget = ledger.set_budget("p", "1/3", delta="1.25e-9", unit="one patient")
    assert (budget.epsilon, budget.delta) == ("1/3", "0.00000000125")
    assert [protocol.document()[name] for name in ("epsilon", "delta")] == [budget.epsilon, budget.delta]
