"""What the page says in words, for findings that are made up and for real ones: each claim is true of the numbers."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import armslength as al
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, Remedy, findings_of
from armslength.reporting.page import page_of
from report_parties import CODES, hospital_counts, hospitals, protocol_of, sketches_of, with_margins

LOW, HIGH = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]  # Infections, Injuries, (other)
MIXED = [LOW] * 5 + [[0.1, 0.25, 0.3], HIGH]


def made_up(distance, half_width, labels=None):
    """Findings with these distances, and intervals that reach this far to both sides."""
    distance = np.array(distance, dtype=float)
    lower, upper = np.maximum(distance - half_width, 0), distance + half_width
    names = tuple(labels or "abcdef"[: len(distance)])
    return Findings(
        labels=names,
        level=0.95,
        each=False,
        about="counts",
        alike=None,
        squared=distance**2,
        lower=lower,
        upper=upper,
        clusters=None,
        plane=None,
        outliers=None,
        in_clear=(False,) * len(names),
    )


APART = [[0, 10, 50], [10, 0, 90], [50, 90, 0]]


def words(markup):
    """The text of markup."""
    return unescape(re.sub(r"<[^>]*>", " ", markup))


def lines_of(page):
    """The cells of each party's line, as text, by label."""
    rows = re.findall(r"<tr data-party=.*?</tr>|<tr class=.left-out.*?</tr>", page, re.DOTALL)
    cells = [
        [" ".join(words(cell).split()) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows
    ]
    return {row[0].removesuffix(" IN CLEAR"): [cell for cell in row[1:] if cell] for row in cells}


ASKED = [
    pytest.param(lambda: with_margins(MIXED, epsilon=8), {}, id="populations"),
    pytest.param(lambda: with_margins(MIXED, epsilon=8), {"about": "people", "level": 0.9}, id="people"),
    pytest.param(lambda: with_margins(MIXED), {"about": "populations", "each": True}, id="each"),
    pytest.param(lambda: with_margins(MIXED), {"about": "populations", "alike": 0.8}, id="alike"),
    pytest.param(lambda: hospitals(7, epsilon=0.2), {"about": "counts"}, id="counts"),
    pytest.param(lambda: hospitals(7, epsilon=0.2), {"about": "counts", "alike": 60.0}, id="counts alike"),
]


@pytest.mark.parametrize(("make", "asked"), ASKED)
def test_the_verdicts_are_those_of_compare(make, asked):
    sketches = make()
    findings = findings_of(sketches, **{"about": None, "level": 0.95, **asked})
    counts = al.compare(sketches, **asked).counts()
    assert {word: findings.count(word) for word in counts} == counts
    page = page_of(findings, sketches, None)
    letters = re.search(r'"verdicts":"(\w+)"', page)[1].lower()
    assert {word: letters.count(word[0]) for word in counts} == counts
    facts = words(page.split('class="figures"')[1].split("</dl>")[0])
    for word, count in counts.items():
        assert (f"{count} {word}" in facts) == (count > 0)


@pytest.mark.parametrize(("make", "asked"), ASKED)
def test_the_line_of_each_party_is_that_of_outliers(make, asked):
    sketches = make()
    findings = findings_of(sketches, **{"about": None, "level": 0.95, **asked})
    lines = lines_of(page_of(findings, sketches, None))
    expected = al.outliers(sketches, **{name: asked[name] for name in asked if name != "each"})
    assert list(lines)[: expected.is_outlier.sum()] == [
        expected.labels[row] for row in expected.ranking if expected.is_outlier[row]
    ]
    for row, label in enumerate(expected.labels):
        cells = lines[label]
        if expected.people is not None:
            assert cells.pop(0).startswith(f"{max(expected.people[row], 0):,.0f} ")
        badge, number, *reasons = cells
        assert badge.startswith(expected.verdict[row])
        is_same = expected.verdict[row] == "alike" and expected.distance[row, 1] <= 0
        assert ("not identical" in badge) == (expected.verdict[row] == "alike" and not is_same)
        assert ("outlier" in badge) == expected.is_outlier[row]
        assert number == expected.number_words(row)
        if reasons:
            assert expected.reasons[row].startswith(reasons[0])


@pytest.mark.parametrize(("make", "asked"), ASKED)
def test_the_main_finding_names_who_stands_out_or_the_farthest(make, asked):
    sketches = make()
    findings = findings_of(sketches, **{"about": None, "level": 0.95, **asked})
    text = words(statements.finding(findings))
    outliers = al.outliers(sketches, **{name: asked[name] for name in asked if name != "each"})
    if outliers.is_outlier.any():
        named = {label for label in sketches.labels if label in text}
        assert named <= {outliers.labels[row] for row in np.flatnonzero(outliers.is_outlier)}
        assert named
    numbers = re.search(r"([\d,]+) of ([\d,]+) pairs differ", text)
    if numbers:
        assert int(numbers[1]) == al.compare(sketches, **asked).counts()["differ"]
        assert int(numbers[2]) == len(findings.pairs[0])


@pytest.mark.parametrize(("make", "asked"), ASKED)
def test_groups_and_order_are_those_of_cluster(make, asked):
    sketches = make()
    findings = findings_of(sketches, **{"about": None, "level": 0.95, **asked})
    tree = al.cluster(sketches, **{name: asked[name] for name in asked if name != "each"})
    np.testing.assert_array_equal(findings.clusters.differ, tree.differ)
    np.testing.assert_array_equal(findings.clusters.linkage, tree.linkage)
    text = page_of(findings, sketches, None).split('id="groups"')[1].split("</section>")[0]
    listed = [words(item).split() for item in re.findall("<li>.*?</li>", text)]
    for rows, item in zip([group for group in tree.group_rows() if len(group) > 1], listed, strict=False):
        assert all(sketches.labels[row] in " ".join(item) for row in rows)


def test_a_pair_that_is_alike_and_not_identical_is_alike():
    """One with a difference beyond chance that is surely small."""
    sketches = with_margins([LOW, LOW, [0.1, 0.13, 0.3]], people=40_000, epsilon=50)
    findings = findings_of(sketches, about=None, level=0.95)
    both = findings.is_verdict("alike") & (findings.lower > 0)
    assert both[findings.pairs].any()
    letters = re.search(r'"verdicts":"(\w+)"', page_of(findings, sketches, None))[1]
    assert letters.count("A") == both[findings.pairs].sum()
    assert letters.count("d") == al.compare(sketches).counts()["differ"]


def test_parties_with_too_few_people_stand_at_the_end_of_the_table():
    sketches = with_margins([LOW] * 4 + [HIGH, LOW], [2000] * 3 + [3] + [2000] * 2)
    findings = findings_of(sketches, about=None, level=0.95)
    page = page_of(findings, sketches, None)
    lines = lines_of(page)
    assert list(lines)[-1] == "ward 4"
    people = al.totals(sketches)
    assert lines["ward 4"][0].startswith(f"about {max(people.value[3], 0):,.0f} ± ")
    assert page.count("ward 4") == 1
    assert "ward 4" not in findings.labels


def test_long_tables_fold_all_but_the_first():
    sketches = hospitals(40)
    page = page_of(findings_of(sketches, about=None, level=0.95), sketches, None)
    first, rest = page.split("<details>")[0], page.split("<details>")[1].split("</details>")[0]
    assert first.count("<tr data-party=") + rest.count("<tr data-party=") == 40
    assert rest.count("<tr data-party=") == 20


@pytest.mark.parametrize(("width", "verdict"), [(1, "differ"), (10, "inconclusive")])
def test_two_parties_have_one_verdict(width, verdict):
    findings = made_up([[0, 9], [9, 0]], width)
    assert findings.count(verdict) == 1
    text = statements.finding(findings)
    assert verdict in text
    assert findings.number_words(0, 1) in text


def test_no_pair_is_named_as_different_that_is_not():
    assert made_up(APART, 500).farthest_pair is None
    assert "<bdi>" not in statements.finding(made_up(APART, 500))
    # b and c are the farthest, but a and c surely are
    noisy = made_up(APART, [[0, 1, 1], [1, 0, 60], [1, 60, 0]])
    assert noisy.farthest_pair == (0, 2)
    apart = np.array(APART) / 100
    alike = replace(
        made_up(APART, 5), likeness=(1 - apart, 0.98 - apart, 1 - apart), about="people", alike=0.95
    )
    assert alike.farthest_pair == (1, 2)
    nearly = replace(alike, likeness=(1 - apart / 10, 0.99 - apart / 10, 1 - apart / 10))
    assert nearly.verdict[0, 1] == "alike"


def test_inconclusive_pairs_come_with_a_reason_and_a_remedy():
    for remedy, expected in (
        (Remedy(0.9, 2.0, 3.0), ("noise", "2 times the ε", "3 times the people")),
        (Remedy(0.1, None, 5.0), ("chance", "5 times the people")),
        (Remedy(0.1, None, None), ("may be alike",)),
    ):
        text = statements.inconclusive(replace(made_up(APART, 500), remedy=remedy))
        assert all(word in text for word in expected)
    assert statements.inconclusive(made_up(APART, 1)) == ""


def test_a_party_in_all_inconclusive_pairs_is_named():
    findings = made_up(APART, [[0, 60, 60], [60, 0, 1], [60, 1, 0]])
    assert findings.in_all_inconclusive == 0
    assert "<bdi>a</bdi>" in statements.inconclusive(findings)
    assert made_up(APART, 500).in_all_inconclusive is None


def test_labels_are_escaped():
    findings = made_up(APART, 5, labels=["<b>", "x & y", '"c"'])
    assert "<bdi>x &amp; y</bdi>" in statements.finding(findings)
    one = made_up(APART, [[0, 60, 60], [60, 0, 1], [60, 1, 0]], labels=["<b>", "x & y", '"c"'])
    assert "<bdi>&lt;b&gt;</bdi>" in statements.inconclusive(one)


def test_the_reading_follows_what_was_computed():
    sketches = hospitals(3)
    findings = findings_of(sketches, level=0.9, each=True, about="counts")
    text = " ".join(statements.claims(findings, sketches))
    assert "Size counts" in text
    assert "64" in text  # 4√256
    assert "10 in 100" in text
    together = " ".join(statements.claims(replace(findings, each=False, about="people"), sketches))
    assert "128" in together
    assert "people counted" in together
    assert "in 100" not in together
    assert "random sample" in " ".join(statements.claims(replace(findings, about="populations"), sketches))


def test_the_privacy_statement():
    sketches = hospitals(4)
    text = promise.statement(sketches)
    assert "Whether one patient is in" in text
    assert "2.72 times" in text
    assert "all 4 released rows" in text
    assert "up to 4 " in text
    assert promise.alarm(sketches, sketches.labels) == ""
    cards = promise.cards(sketches)
    assert "1-differentially private" in cards
    assert sketches.protocol.fingerprint in cards
    assert cards.count("<article") == 1


def test_sums_have_spent_what_their_releases_have():
    protocol = al.Protocol(
        al.SparseJL(input_dim=9, sketch_dim=4, seed="months"), epsilon=1, unit="one patient"
    )
    rows = np.ones((2, 9), dtype=int)
    months = [al.release(protocol, rows, labels=["a", "b"], ledger=al.NO_LEDGER) for _ in range(12)]
    year = months[0]
    for month in months[1:]:
        year += month
    text = promise.statement(year)
    assert "up to 12 released rows" in text
    assert "all 24 released rows" in text
    assert "up to 24 " in text
    assert "up to 12." in promise.statement(year[0])


def test_every_protocol_has_its_card():
    first, second = hospitals(3), hospitals(2, epsilon=3)
    normal = sketches_of(hospital_counts(1, 1), ["n"], protocol_of(2, delta="1e-6", noise="gaussian"))
    mixed = al.concat([first, second, normal])
    cards = promise.cards(mixed)
    assert cards.count("<article") == 3
    assert "(2, 0.000001)-differentially private" in cards
    assert promise.epsilons(mixed) == "ε = 1 to 3"
    assert promise.deltas(mixed) == "δ at most 1e-06"
    assert "δ = 0.000001" in promise.statement(mixed)


def test_clear_data_is_shouted():
    sketches = hospitals(2)
    clear = al.sketch_in_clear(sketches.protocol, np.ones((1, CODES), dtype=np.int64), labels=["<query>"])
    both = al.concat([sketches, clear])
    alarm = promise.alarm(both, both.labels)
    assert "NOT PRIVATE" in alarm
    assert "<bdi>&lt;query&gt;</bdi>" in alarm
    assert "None of this holds for the parties in the clear" in promise.statement(both)
    assert "No privacy is promised" in promise.statement(clear)
    assert promise.cards(clear) == ""


@pytest.mark.parametrize(
    ("relation", "words_of_it"), [("add_remove", "Whether one patient"), ("replace", "Whatever the data")]
)
def test_the_relation_is_in_the_statement(relation, words_of_it):
    sketches = sketches_of(hospital_counts(2, 1), ["a", "b"], protocol_of(relation=relation))
    assert words_of_it in promise.statement(sketches)


def test_a_page_of_two_relations_promises_neither_of_all_rows():
    added, replaced = (
        sketches_of(hospital_counts(2, 1), names, protocol_of(relation=relation))
        for names, relation in ((["a", "b"], "add_remove"), (["c", "d"], "replace"))
    )
    text = promise.statement(al.concat([added, replaced]))
    assert "Whether one patient" not in text
    assert "Whatever the data" not in text


def test_a_weak_promise_is_called_weak_and_what_was_released_stands_on_the_card():
    strong = hospitals(2)
    weak = sketches_of(hospital_counts(2, 1), ["a", "b"], protocol_of(11))
    assert "weak promise" in promise.statement(weak)
    assert "weak promise" in promise.statement(al.concat([strong, weak]))
    assert "weak promise" not in promise.statement(strong)
    normal = sketches_of(hospital_counts(1, 1), ["n"], protocol_of(2, delta="0.01", noise="gaussian"))
    assert "weak promise" in promise.statement(normal)


def test_one_protocol_has_a_card_for_each_kind_of_source():
    protocol = al.Protocol(al.Identity(input_dim=3), al.Counts(2), epsilon=1, unit="one patient")
    rows = al.release(protocol, np.zeros((2, 3), int), labels=["a", "b"], ledger=al.NO_LEDGER)
    stream = al.stream(protocol, label="c", ledger=al.NO_LEDGER).release()
    cards = promise.cards(al.concat([rows, stream]))
    assert cards.count("<article") == 2
    assert "<dd>rows</dd>" in cards
    assert "<dd>stream</dd>" in cards
