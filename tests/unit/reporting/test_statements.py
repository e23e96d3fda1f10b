"""What the page says in words, for findings that are made up and for real ones."""

from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, findings_of
from report_parties import CODES, hospital_counts, hospitals, protocol_of, sketches_of


def made_up(distance, half_width, labels=None):
    """Findings with these distances, and intervals that reach this far to both sides."""
    distance = np.array(distance, dtype=float)
    lower, upper = np.maximum(distance - half_width, 0), distance + half_width
    names = tuple(labels or "abcdef"[: len(distance)])
    together = lower, upper
    return Findings(
        names,
        0.95,
        True,
        "size",
        distance**2,
        lower,
        upper,
        together,
        None,
        None,
        None,
        (False,) * len(names),
    )


APART = [[0, 10, 50], [10, 0, 90], [50, 90, 0]]


def said(findings):
    return {heading: (sure, text) for sure, heading, text in statements.statements(findings)}


def test_sure_extremes_are_called_sure():
    told = said(made_up(APART, 5))
    assert told["Most alike"] == (
        True,
        "<bdi>a</bdi> and <bdi>b</bdi>: 10.0 (interval 5.0 to 15.0). Surely the closest pair of all.",
    )
    assert told["Farthest apart"][0]
    assert "<bdi>b</bdi> and <bdi>c</bdi>: 90.0" in told["Farthest apart"][1]
    assert told["What can be told apart"] == (
        True,
        "3 pairs of 3 (100%) have a distance that is surely above 0, at 95%, all intervals together.",
    )


def test_rivals_are_counted():
    told = said(made_up(APART, 21))
    assert told["Most alike"][1].endswith("The two are not told apart. 1 other pair could truly be as close.")
    assert told["Farthest apart"][1].endswith("1 other pair could truly be as far apart.")
    assert not told["Most alike"][0]
    assert (
        "1 pair is <em>not resolved</em>: that is no sign of being alike" in told["What can be told apart"][1]
    )


def test_touching_intervals_are_rivals_and_others_are_not():
    assert made_up(APART, 20).closest() == (0, 1, 1)
    assert made_up(APART, 19.9).closest() == (0, 1, 0)
    assert made_up(APART, 20).farthest() == (1, 2, 1)


def test_candidates_for_the_nearest():
    np.testing.assert_array_equal(made_up(APART, 5).candidates, [1, 1, 1])
    np.testing.assert_array_equal(made_up(APART, 20).candidates, [2, 1, 2])
    np.testing.assert_array_equal(made_up(APART, 20).nearest, [1, 0, 0])


def test_the_first_sentence():
    assert "All 3 pairs are told apart." in statements.lead(made_up(APART, 5))
    assert "2 of 3 pairs are told apart; for the others the noise" in statements.lead(made_up(APART, 21))
    assert "None of the 3 pairs is told apart" in statements.lead(made_up(APART, 500))
    assert "The two are told apart." in statements.lead(made_up([[0, 9], [9, 0]], 1))
    assert "does not let the two be told apart" in statements.lead(made_up([[0, 9], [9, 0]], 10))


def test_labels_are_escaped():
    findings = made_up(APART, 5, labels=["<b>", "x & y", '"c"'])
    text = " ".join(text for _, _, text in statements.statements(findings))
    assert "<bdi>&lt;b&gt;</bdi>" in text
    assert "<bdi>x &amp; y</bdi>" in text


def test_two_parties_have_one_distance():
    told = said(made_up([[0, 9], [9, 0]], 1))
    assert list(told) == ["What can be told apart", "The distance"]
    assert told["The distance"] == (True, "<bdi>a</bdi> and <bdi>b</bdi>: 9.00 (interval 8.00 to 10.00).")


def test_groups_and_outliers_of_real_sketches():
    counts = hospital_counts(9, 2)
    counts[8, 1000:] += 200  # unlike all others
    findings = findings_of(
        sketches_of(counts, list("abcdefghi"), protocol_of(10)), level=0.9, simultaneous=True, by="size"
    )
    told = said(findings)
    assert told["Unlike the rest"][0]
    assert told["Unlike the rest"][1].startswith("<bdi>i</bdi>: at least ")
    groups = findings.clustering.flat()
    assert (np.bincount(groups) > 1).any()
    assert "closer inside than to anybody outside" in told["Groups"][1]
    noisy = findings_of(hospitals(6, epsilon=0.05), level=0.95, simultaneous=True, by="size")
    assert said(noisy)["Groups"] == (False, "No group is sure: the error bars leave the whole tree open.")
    assert "No party is surely more than 1.5 times" in said(noisy)["Unlike the rest"][1]


def test_limits_follow_what_was_computed():
    sketches = hospitals(3)
    findings = findings_of(sketches, level=0.9, simultaneous=False, by="size")
    text = " ".join(statements.limits(findings, sketches))
    assert "Size counts" in text
    assert "about 64 or more" in text  # 4√256
    assert "some miss: about 10 in 100" in text
    together = " ".join(statements.limits(replace(findings, simultaneous=True, by="shape"), sketches))
    assert "about 128 or more" in together
    assert "Size does not count" in together
    assert "some miss" not in together


def test_the_privacy_statement():
    sketches = hospitals(4)
    text = promise.statement(sketches)
    assert "whether one patient is in it or not" in text
    assert "e<sup>1</sup> ≈ 2.72 times" in text
    assert (
        "in two releases, up to 2; and somebody in all 4 rows, if each was released by itself, up to 4."
        in text
    )
    assert promise.alarm(sketches, sketches.labels) == ""
    cards = promise.cards(sketches)
    assert "All rows of one release together are 1-differentially private" in cards
    assert sketches.protocol.fingerprint in cards
    assert cards.count("<article") == 1


def test_sums_have_spent_what_their_releases_have():
    protocol = al.Protocol(
        al.SparseJL(input_dim=9, sketch_dim=4, seed="months"), epsilon=1, unit="one patient"
    )
    rows = np.ones((2, 9), dtype=int)
    months = [protocol.release(rows, labels=["a", "b"], ledger=al.NO_LEDGER) for _ in range(12)]
    year = months[0]
    for month in months[1:]:
        year += month
    text = promise.statement(year)
    assert "made of up to 12 released rows: somebody in all of those has spent up to 12." in text
    assert "all 24 rows that these are made of, if each was released by itself, up to 24." in text
    one = promise.statement(year[0])
    assert "A person in this release has spent" not in one
    assert "up to 12." in one


def test_every_protocol_has_its_card():
    first, second = hospitals(3), hospitals(2, epsilon=3)
    normal = sketches_of(hospital_counts(1, 1), ["n"], protocol_of(2, delta="1e-6", noise="gaussian"))
    mixed = al.concat([first, second, normal])
    cards = promise.cards(mixed)
    assert cards.count("<article") == 3
    assert "<dt>Rows</dt><dd>3</dd>" in cards
    assert "(2, 0.000001)-differentially private" in cards
    assert promise.epsilons(mixed) == "ε = 1 to 3"
    assert promise.deltas(mixed) == "δ at most 1e-06"
    assert "a probability of at most 1e-06" in promise.statement(mixed)


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
    ("relation", "words_of_it"), [("add_remove", "is in it or not"), ("replace", "whatever the data")]
)
def test_the_relation_is_in_the_statement(relation, words_of_it):
    sketches = sketches_of(hospital_counts(2, 1), ["a", "b"], protocol_of(relation=relation))
    assert words_of_it in promise.statement(sketches)


def test_a_weak_promise_is_called_weak_and_what_was_released_stands_on_the_card():
    strong = hospitals(2)
    weak = sketches_of(hospital_counts(2, 1), ["a", "b"], protocol_of(11))
    assert "weak promise" in promise.statement(weak)
    assert "weak promise" in promise.statement(al.concat([strong, weak]))
    assert "weak promise" not in promise.statement(strong)
    normal = sketches_of(hospital_counts(1, 1), ["n"], protocol_of(2, delta="0.01", noise="gaussian"))
    assert "weak promise" in promise.statement(normal)


def test_one_protocol_has_a_card_for_each_kind_of_source():
    protocol = al.Protocol(al.Identity(input_dim=3), epsilon=1, contribution=2, unit="one patient")
    rows = protocol.release(np.zeros((2, 3), int), labels=["a", "b"], ledger=al.NO_LEDGER)
    stream = protocol.stream(label="c", ledger=al.NO_LEDGER).release()
    cards = promise.cards(al.concat([rows, stream]))
    assert cards.count("<article") == 2
    assert "<dt>Rows</dt><dd>2</dd><dt>Released</dt><dd>prepared rows" in cards
    assert "<dt>Rows</dt><dd>1</dd><dt>Released</dt><dd>a stream" in cards
