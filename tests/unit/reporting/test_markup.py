"""How numbers are written, and what the page's script reads."""

import base64
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import armslength as al
from armslength.errors import plural
from armslength.reporting.drawings import round_step
from armslength.reporting.findings import findings_of
from armslength.reporting.markup import NumberStyle, share_text
from armslength.reporting.page import safe_json, script_numbers
from report_parties import hospital_counts, hospitals, protocol_of


@pytest.mark.parametrize(
    ("typical", "value", "text"),
    [
        (300.0, 1234.4, "1,234"),
        (30.0, 31.26, "31.3"),
        (3.0, 0.0, "0.00"),
        (0.02, 0.0123, "0.0123"),
        (1e9, 1.5e9, "1.50e+09"),
        (1e9, 0.0, "0"),
        (1e-7, 2.25e-7, "2.25e-07"),
        (30.0, math.inf, "∞"),
    ],
)
def test_one_style_for_all_numbers(typical, value, text):
    assert NumberStyle.of(np.array([typical, 0.0, math.inf])).text(value) == text


def test_without_any_distance_there_is_a_style_too():
    assert NumberStyle.of(np.zeros(3)).text(0.0) == "0.00"


def test_shares_are_all_or_nothing_only_if_they_are():
    shares = (0.0, 0.001, 0.5, 0.999, 1.0)
    assert [share_text(share) for share in shares] == ["0 %", "under 1 %", "50 %", "over 99 %", "100 %"]
    assert plural(1, "pair") == "1 pair"
    assert plural(2000, "party", "parties") == "2,000 parties"


@pytest.mark.parametrize(
    ("most", "step"), [(1.0, 1.0), (9.9, 5.0), (30, 20), (0.2, 0.2), (1e-7, 1e-7), (0, 0)]
)
def test_steps_are_round(most, step):
    assert round_step(most) == pytest.approx(step)


def test_json_cannot_end_its_element():
    document = ["</script><!--", "&amp;", "\u2028", "é"]
    text = safe_json(document)
    assert not set("<>&\u2028") & set(text)
    assert "é" in text
    assert json.loads(text) == document


def unpacked(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@pytest.mark.parametrize("about", ["counts", "people"])
def test_the_script_gets_the_estimates(about):
    protocol = protocol_of(10, total_share="0.2")
    sketches = al.release(protocol, hospital_counts(5, 2), labels=list("abcde"), ledger=al.NO_LEDGER)
    findings = findings_of(sketches, level=0.9, about=about)
    document = json.loads(script_numbers(findings))
    pairs = np.triu_indices(5, 1)
    for name, number in zip(("value", "lower", "upper"), findings.numbers, strict=True):
        np.testing.assert_allclose(unpacked(document[name]), number[pairs], rtol=1e-6)
    if about == "people":
        np.testing.assert_allclose(unpacked(document["distance"]), findings.distance[pairs], rtol=1e-6)
    assert document["similar"] == (about == "people")
    assert sorted(document["order"]) == [0, 1, 2, 3, 4]
    assert document["clear"] == []


def test_negative_squares_infinite_ends_and_tiny_lower_ends_survive():
    findings = findings_of(hospitals(2), level=0.9, about="counts")
    one = np.array([[0.0, 1.0], [1.0, 0.0]])
    findings = replace(findings, squared=-9 * one, lower=1e-60 * one, upper=np.where(one > 0, np.inf, 0.0))
    document = json.loads(script_numbers(findings))
    assert unpacked(document["value"]) == [-3]
    assert unpacked(document["lower"]) > 0
    assert unpacked(document["upper"]) == [np.inf]
    assert findings.axis == (0.0, 1.0)


def test_colors_run_over_pairs_with_a_verdict_and_stop_before_a_far_one():
    findings = findings_of(hospitals(6), level=0.9, about="counts")
    distance = np.full((6, 6), 10.0)
    lower = np.full((6, 6), 5.0)
    distance[0, 1], lower[0, 1] = 2.0, 0.0
    assert replace(findings, squared=distance**2, lower=lower).color_range == (10.0, 10.0)
    distance[0, 2] = 1000.0
    low, high = replace(findings, squared=distance**2, lower=lower).color_range
    assert low == 10.0
    assert high < 1000


def test_a_small_difference_of_similarities_is_not_dark():
    findings = findings_of(hospitals(6), level=0.9, about="counts")
    near = np.full((6, 6), 0.99)
    findings = replace(findings, likeness=(near, near - 0.001, near + 0.001), alike=0.95)
    assert findings.color_range == (0.0, 0.1)
    assert replace(findings, likeness=(near / 2, near / 2, near / 2)).color_range[1] > 0.5
