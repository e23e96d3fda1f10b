"""What the page says in words, for findings that are made up and for real ones."""

import re
from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, Remedy, findings_of
from report_parties import CODES, hospital_counts, hospitals, protocol_of, sketches_of


def made_up(distance, half_width, labels=None):
    """Findings with these distances, and intervals that reach this far to both sides."""
    distance = np.array(distance, dtype=float)
    lower, upper = np.maximum(distance - half_width, 0), distance + half_width
    names = tuple(labels or "abcdef"[: len(distance)])
    return Findings(
        labels=names,
        level=0.95,
        simultaneous=True,
        by="size",
        squared=distance**2,
        lower=lower,
        upper=upper,
        joint_interval=(lower, upper),
        clusters=None,
        plane=None,
        outliers=None,
        in_clear=(False,) * len(names),
    )


APART = [[0, 10, 50], [10, 0, 90], [50, 90, 0]]


def test_extremes_are_those_that_are_supported():
    _, farthest, closest, resolution = statements.statements(made_up(APART, 5))
    assert not closest.is_sure
    assert "<bdi>" not in closest.text  # all pairs are told apart
    assert farthest.text.index("<bdi>b</bdi> and <bdi>c</bdi>: distance 90.0") < farthest.text.index("50.0")
    assert resolution.is_sure
    assert "3 pairs of 3 (100%)" in resolution.text
    assert "95%" in resolution.text


def test_pairs_that_are_not_told_apart_are_not_among_the_farthest():
    _, farthest, closest, resolution = statements.statements(made_up(APART, 21))
    assert farthest.text.count("<li>") == 2
    assert "<bdi>a</bdi> and <bdi>b</bdi>: distance 10.0 (0.0 to 31.0), not told apart" in closest.text
    assert closest.text.count("<li>") == 1
    assert "1 pair is" in resolution.text
    _, farthest, *_ = statements.statements(made_up(APART, 500))
    assert not farthest.is_sure
    assert "<bdi>" not in farthest.text


def test_the_farthest_pairs_come_in_the_order_of_the_numbers_shown():
    noisy = made_up(
        APART, [[0, 1, 1], [1, 0, 60], [1, 60, 0]]
    )  # b and c are the farthest, but a and c surely are
    _, farthest, *_ = statements.statements(noisy)
    assert noisy.surest_pairs(1, is_closest=False) == [(0, 2)]
    assert farthest.text.index("90.0") < farthest.text.index("50.0") < farthest.text.index("10.0")
    apart = np.array(APART) / 100
    alike = replace(made_up(APART, 5), likeness=(1 - apart, 0.98 - apart, 1 - apart))
    assert alike.surest_pairs(3, is_closest=False) == [(1, 2), (0, 2), (0, 1)]
    assert alike.surest_pairs(3, is_closest=True) == []
    nearly = replace(alike, likeness=(1 - apart / 10, 0.99 - apart / 10, 1 - apart / 10))
    assert nearly.surest_pairs(3, is_closest=True) == [(0, 1)]


def test_open_pairs_come_with_a_reason_and_a_remedy():
    for remedy, words in (
        (Remedy(0.9, 2.0, 3.0), ("noise", "2 times the ε", "3 times the people")),
        (Remedy(0.1, None, 5.0), ("chance", "5 times the people")),
        (Remedy(0.1, None, None), ("may truly be alike",)),
    ):
        *_, resolution = statements.statements(replace(made_up(APART, 500), remedy=remedy))
        assert all(word in resolution.text for word in words)


def test_likeness_is_shown_and_counts_as_an_answer():
    cosines = np.array([[1, 0.99, 0.2], [0.99, 1, 0.3], [0.2, 0.3, 1]])
    findings = replace(
        made_up(APART, 21), by="shape", beyond_chance=True, likeness=(cosines, cosines - 0.02, cosines + 0.01)
    )
    *_, closest, resolution = statements.statements(findings)
    assert resolution.is_sure
    assert "similarity 0.99 (0.97 to 1.00), surely alike" in closest.text
    assert "1 is alike" in statements.lead(findings)


def test_candidates_for_the_nearest():
    np.testing.assert_array_equal(made_up(APART, 5).candidates, [1, 1, 1])
    np.testing.assert_array_equal(made_up(APART, 20).candidates, [2, 1, 2])
    np.testing.assert_array_equal(made_up(APART, 20).nearest, [1, 0, 0])


def test_the_first_sentence_counts_the_pairs_that_are_told_apart():
    assert "All 3 pairs" in statements.lead(made_up(APART, 5))
    assert "2 of 3 pairs" in statements.lead(made_up(APART, 21))
    assert "None of the 3 pairs" in statements.lead(made_up(APART, 500))
    resolved, hidden = (statements.lead(made_up([[0, 9], [9, 0]], width)) for width in (1, 10))
    assert "cannot be said" in hidden
    assert "cannot be said" not in resolved


def test_labels_are_escaped():
    findings = made_up(APART, 5, labels=["<b>", "x & y", '"c"'])
    text = " ".join(text for _, _, text in statements.statements(findings))
    assert "<bdi>&lt;b&gt;</bdi>" in text
    assert "<bdi>x &amp; y</bdi>" in text


def test_two_parties_have_one_distance():
    distance, _ = statements.statements(made_up([[0, 9], [9, 0]], 1))
    assert distance.is_sure
    assert "<bdi>a</bdi> and <bdi>b</bdi>: distance 9.00 (8.00 to 10.00)" in distance.text


def test_groups_and_outliers_of_real_sketches():
    counts = hospital_counts(9, 2)
    counts[4:8] = counts[:4]
    counts[8, 1000:] += 200  # unlike all others
    sketches = sketches_of(counts, list("abcdefghi"), protocol_of(10))
    findings = findings_of(sketches, level=0.9, simultaneous=True, about="counts")
    groups, _, outliers, *_ = statements.statements(findings)
    assert outliers.is_sure
    assert "<li><bdi>i</bdi>: at least " in outliers.text
    assert findings.groups
    for group in findings.groups:
        assert "".join(f"<bdi>{sketches.labels[row]}</bdi>" for row in group) in re.sub(
            ", | and ", "", groups.text
        )
    noisy = findings_of(hospitals(6, epsilon=0.05), level=0.95, simultaneous=True, about="counts")
    groups, _, outliers, *_ = statements.statements(noisy)
    assert not groups.is_sure
    assert "<bdi>" not in groups.text
    assert not outliers.is_sure
    assert "<bdi>" not in outliers.text


@pytest.mark.parametrize("epsilon", [0.2, 10])
def test_one_estimate_gives_the_answers_of_cluster_and_outliers(epsilon):
    sketches = hospitals(9, epsilon=epsilon)
    findings = findings_of(sketches, level=0.9, simultaneous=False, about="counts")
    tree, outliers = al.cluster(sketches, level=0.9), al.outliers(sketches, 0.9)
    np.testing.assert_array_equal(findings.clusters.linkage, tree.linkage)
    np.testing.assert_array_equal(findings.clusters.differ, tree.differ)
    assert (findings.clusters.order, findings.clusters.note) == (tree.order, tree.note)
    for name in ("distance", "lower", "upper", "usual", "is_outlier"):
        np.testing.assert_allclose(getattr(findings.outliers, name), getattr(outliers, name), rtol=1e-12)


def test_limits_follow_what_was_computed():
    sketches = hospitals(3)
    findings = findings_of(sketches, level=0.9, simultaneous=False, about="counts")
    text = " ".join(statements.limits(findings, sketches))
    assert "Size counts" in text
    assert "64" in text  # 4√256
    assert "10 in 100" in text
    together = " ".join(statements.limits(replace(findings, simultaneous=True, by="shape"), sketches))
    assert "128" in together
    assert "people counted" in together
    sampled = replace(findings, by="shape", beyond_chance=True)
    assert "random sample" in " ".join(statements.limits(sampled, sketches))
    assert "in 100" not in together


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
