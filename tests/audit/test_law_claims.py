"""What the audit of the law of votes says of its figures: every claim can fail."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audit.law_cells import Covered, Found, Setting
from audit.law_nhds import MIDWEST, Reasons, _section

from audit import law

SETTING = Setting(1000, 1000, 256, "1")
GOOD_MULTIPLES = (0.9, 0.8, 1.0, 0.9, 0.9, 1.5)
FOUND = Found("NHDS", SETTING, "0.3", 61_440, GOOD_MULTIPLES, (0.02, 0.05, 0.3, 0.02, 0.05, 0.3), 1.05)
COVERED = Covered("NHDS", SETTING, 2000, (0.01, 0.02), (0.0, 0.02), 0.003, 0.8, 1.1)


def held(cells=(), different=(), counted=()):
    return [
        check.holds
        for check in law.section([FOUND, *cells], [FOUND], [COVERED, *different], [COVERED, *counted]).checks
    ]


def test_all_hold():
    assert held() == [True] * 8


@pytest.mark.parametrize(("claim", "multiple"), list(enumerate((1.5, 1.8, 4.2) * 2)))
def test_too_many_alarms_fail(claim, multiple):
    multiples = tuple(multiple if number == claim else good for number, good in enumerate(GOOD_MULTIPLES))
    assert held([replace(FOUND, multiples=multiples)]) == [number != claim for number in range(8)]
    assert all(held([replace(FOUND, multiples=multiples, errors=(1.0,) * 6)]))  # too few pairs to tell


@pytest.mark.parametrize("similarity", [(0.0, 0.05), (0.05, 0.0)])
def test_too_many_misses_fail(similarity):
    assert held(different=[replace(COVERED, similarity=similarity)]) == [True] * 6 + [False, True]
    assert held(counted=[replace(COVERED, distance=(0.05, 0.0))]) == [True] * 7 + [False]


def test_the_table_has_a_line_for_each_population():
    other = replace(FOUND, multiples=(0.5, 0.8, 1.0, 0.9, 0.9, 10.0))
    table = law.section([FOUND, other], [], [COVERED], [replace(COVERED, similarity=())]).rows
    assert table[0] == ("NHDS", "0.50 to 0.90", "0.80", "1.00", "0.90", "0.90", "1.50 to 10.00", "1.05")
    assert table[1][1:] == ("1.0 % missed", "2.0 % missed", "", "0.0 % missed", "2.0 % missed", "", "1.10")
    assert len(table) == 3
    assert {len(row) for row in table} == {8}


SURVEY = SimpleNamespace(
    parties=(MIDWEST, "ordinary"), people=np.array([1279, 5000]), ratios=np.array([3.0, 1.0])
)
PROTOCOL = SimpleNamespace(
    margin_share=0.3, margin_contribution=10, transform=SimpleNamespace(sketch_dim=256)
)
GOOD = {
    "about": {
        name: [Reasons(0.05, 2, 240, 0)]
        for name in ("populations, as drawn again", "populations", "people counted")
    },
    "outliers": [{MIDWEST}] * 200,
    "equal": [set()],
    "odd": [{MIDWEST, "ordinary"}],
    "holds": [True],
}


def survey_held(monkeypatch, **changed):
    monkeypatch.setattr("audit.law_nhds.survey", lambda: SURVEY)
    return [check.holds for check in _section(PROTOCOL, **(GOOD | changed)).checks]


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        ({"about": GOOD["about"] | {"people counted": [Reasons(0.09, 2, 240, 0)]}}, 0),
        ({"about": GOOD["about"] | {"populations": [Reasons(0.05, 2, 229, 0)]}}, 1),
        ({"about": GOOD["about"] | {"populations": [Reasons(0.05, 2, 240, 3)]}}, 2),
        ({"outliers": [{MIDWEST}] * 156 + [set()] * 44}, 3),
        ({"outliers": [{MIDWEST}] * 199 + [{MIDWEST, "ordinary"}]}, 4),
        ({"equal": [{"ordinary"}]}, 5),
        ({"odd": [{"ordinary"}]}, 6),
        ({"holds": [False]}, 7),
    ],
)
def test_each_claim_about_the_survey_can_fail(monkeypatch, changed, claim):
    assert survey_held(monkeypatch) == [True] * 8
    assert survey_held(monkeypatch, **changed) == [number != claim for number in range(8)]
