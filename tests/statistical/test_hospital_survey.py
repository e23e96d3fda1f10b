"""The hospital survey, released a few times as a plan recommends: what is found of it, and what is not.

`python -m audit law_nhds` has more releases, equal parties and an odd one. A release misses something in 4 ± 7 percent of its pairs, so
that a mean of six above 25 percent is rarer than one in a million; 95 percent for each difference alone would miss in most pairs.
"""

from itertools import combinations

import numpy as np
import pytest
from audit.law_nhds import (
    FACTOR,
    LEVEL,
    MIDWEST,
    called,
    counted,
    groups_hold,
    planned,
    reasons,
    releases,
    survey,
)

import armslength as al
from populations import DATA

pytestmark = pytest.mark.skipif(
    not (DATA / "nhds2010_diagnoses.parquet").exists(), reason="the hospital survey is not beside the project"
)


@pytest.fixture(scope="module")
def released():
    protocol = planned("survey 3")
    return list(releases(protocol, counted(protocol), 6))


@pytest.mark.parametrize("beyond_chance", [True, False])
def test_differences_are_found_and_seldom_missed(released, beyond_chance):
    found = [reasons(rows, survey().prevalence, beyond_chance=beyond_chance) for rows in released]
    assert np.mean([each.missed for each in found]) < 0.25
    assert np.mean([each.found for each in found]) > 215
    assert sum(each.wrong for each in found) <= 20
    each_alone = [reasons(rows, survey().prevalence, beyond_chance=False, level=0.0) for rows in released]
    assert np.mean([each.missed for each in each_alone]) > 0.25


def test_they_are_what_explain_says(released):
    rows, data = released[0], survey()
    expected = reasons(rows, data.prevalence, beyond_chance=True)
    found = 0
    for a, b in combinations(data.large, 2):
        answer = al.explain(rows[data.parties[a]], rows[data.parties[b]], level=LEVEL)
        named = [group != "(other)" for group in answer.item_groups]
        found += np.count_nonzero(((answer.lower > 0) | (answer.upper < 0))[named])
    assert found == expected.found


def test_an_outlier_is_called_and_nobody_else(released):
    calls = [called(rows) for rows in released]
    ratios = dict(zip(survey().parties, survey().ratios, strict=True))
    assert sum(MIDWEST in names for names in calls) >= 2  # of six, each with a chance of at least 0.9
    assert all(ratios[name] > FACTOR for names in calls for name in names)


def test_no_group_has_two_parties_that_differ(released):
    assert all(groups_hold(rows) for rows in released[:2])
