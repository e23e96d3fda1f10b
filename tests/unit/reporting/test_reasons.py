"""In what parties differ: what the page says of releases with margins, and at which level."""

import re

import numpy as np
import pytest

import armslength as al
from armslength.answers.explain import Side, explain_sides, explain_typical, typical_of
from armslength.estimates.prevalence import Limits, difference_limits
from armslength.reporting import findings as findings_file
from armslength.reporting import statements
from armslength.reporting.findings import TYPICAL, findings_of
from armslength.reporting.page import page_of
from report_parties import chapters, counted, hospitals, released, votes, with_margins

LOW, HIGH = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]  # Infections, Injuries, (other)
KNOWN = {"level": 0.95, "simultaneous": True}


def page_about(sketches, **known):
    return page_of(findings_of(sketches, **{**KNOWN, **known}), sketches, None)


def test_groups_and_the_farthest_pairs_come_with_reasons():
    findings = findings_of(with_margins([LOW] * 4 + [HIGH] * 4), **KNOWN)
    assert findings.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    groups, farthest, *_ = statements.statements(findings)
    first, second = groups.text.split("</li>")[:2]
    assert "Injuries" not in first  # it would say the same of the two, who are everybody
    assert re.search(r"more with Injuries \(\+\d+\.\d points\)", second)
    assert len(re.findall(r"Injuries \([+−]\d+\.\d points\)", farthest.text)) == 3
    assert "Infections" not in groups.text + farthest.text


def test_an_outlier_comes_with_reasons():
    findings = findings_of(with_margins([LOW] * 6 + [HIGH]), **KNOWN)
    assert findings.outlier_rows == [6]
    outliers = next(
        text for _, heading, text in statements.statements(findings) if heading == "Unlike the others"
    )
    assert re.search(
        r"<bdi>ward 7</bdi>: at least \d.* times as far .*; similarity 0\.\d+ \(.*\)"
        r"<a class=.reasons. [^>]*>more with Injuries \(\+\d+\.\d points\)",
        outliers,
    )


def test_groups_and_outliers_are_set_against_the_typical_party():
    """One odd party with most of the people is one of seven; against all others it would decide alone."""
    findings = findings_of(with_margins([LOW] * 6 + [HIGH] * 2, [1000] * 7 + [15_000]), **KNOWN)
    group = findings.groups[0]
    assert group == (0, 1, 2, 3, 4, 5)
    shown = findings.reasons.explanations[TYPICAL, group]
    choices = 1 + 2 + 8  # two groups; each against the typical party; eight parties against theirs
    expected = explain_typical(findings.sketches, group, level=1 - 0.05 / 2 / choices)
    assert shown.labels[0] == "the typical party"
    np.testing.assert_allclose(shown.lower, expected.lower)
    row = findings.reasons.explanations[TYPICAL, (6, 7)]
    names = findings.reasons.names
    typical = typical_of(findings.sketches, [6, 7])
    people = typical.weights @ findings.sketches.totals[:6]
    expected = typical.weights @ findings.sketches.margins[:6, names.index("Injuries")] / people
    assert row.a[row.item_groups.index("Injuries")] == pytest.approx(expected)


def test_each_of_three_groups_comes_with_reasons():
    groups, *_ = statements.statements(
        findings_of(with_margins([LOW] * 3 + [HIGH] * 3 + [[0.4, 0.1, 0.3]] * 3), **KNOWN)
    )
    assert re.search(r"fewer with Injuries \(−\d+\.\d points\)", groups.text)
    assert re.search(r"more with Infections \(\+\d+\.\d points\)", groups.text)
    assert groups.text.count('class="reasons"') == 3


def without_margins(row):
    return al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals, None, row.spread)


def test_rows_without_margins_cost_only_their_own_reasons():
    hill, *others = with_margins([LOW] * 4 + [HIGH] * 4)
    joined = al.concat([without_margins(hill), *others])
    groups, farthest, *_ = statements.statements(findings_of(joined, **KNOWN))
    assert "more with Injuries (+" in groups.text
    assert farthest.text.count("more with Injuries (+") >= 2
    reasons = findings_of(joined, **KNOWN).reasons
    assert np.isnan(reasons.sides[:2, 0]).all()
    assert not np.isnan(reasons.sides[:, 1:]).any()
    alone = findings_of(al.concat(others), **KNOWN).reasons
    found, expected = reasons.explanations[TYPICAL, (4, 5, 6, 7)], alone.explanations[TYPICAL, (3, 4, 5, 6)]
    assert found.labels == expected.labels
    np.testing.assert_allclose(found.difference, expected.difference)
    page = page_about(joined)
    assert f"Without <bdi>{hill.labels[0]}</bdi>:" in page
    assert "armslength plan --margins" not in page
    nobody = page_about(al.concat([without_margins(hill), *map(without_margins, others[1:]), others[0]]))
    assert "no two were released with the same item groups" in nobody


def test_the_page_names_parties_with_other_settings():
    rows = with_margins([LOW] * 4)
    assert "same settings" not in page_about(rows)
    rng = np.random.default_rng(3)
    one = counted(chapters(epsilon=3), ["odd"], [5000], [[900] * 5], rng)
    same = counted(chapters(), ["a", "b", "c"], [5000] * 3, [[900] * 5] * 3, rng)
    assert "odd: its epsilon differs" in page_about(al.concat([one, same]), by="size")


def test_shares_that_are_too_small_are_named():
    rng = np.random.default_rng(4)
    page = page_about(counted(chapters(), ["a", "b"], [50_000] * 2, [[9000] * 5] * 2, rng, [2000, 0]))
    assert "more than 2 item groups, and count in part in each" in page
    assert "up to about 4.0 points too small in <bdi>a</bdi>." in page
    assert "count in part" not in page_about(with_margins([LOW, HIGH]))


def test_where_the_bound_bites_too_much_the_page_says_so():
    rows = counted(
        chapters(), ["a", "b"], [50_000] * 2, [[20_000, 5000], [5000, 20_000]], np.random.default_rng(5), 9000
    )
    distance, *_ = statements.statements(findings_of(rows, **KNOWN))
    assert "People have more item groups than margin_contribution=2 lets count." in distance.text


def test_without_a_reason_the_page_says_what_it_can_mean():
    """The two have other items of the same item group."""
    parties = [[[f"B{code}"] for code in range(first, first + 5)] * 400 for first in (0, 5)]
    rows = released(votes(), parties)
    distance, *_ = statements.statements(findings_of(rows, **KNOWN))
    assert distance.is_sure
    assert "No item group surely differs." in distance.text
    assert '"unexplained":"Noise may hide a difference, or it is in items within item groups' in page_about(
        rows
    )


def test_parties_that_are_too_small_are_named_once():
    findings = findings_of(with_margins([LOW] * 4 + [HIGH], [2000] * 4 + [3]), **KNOWN)
    assert findings.left_out == ("ward 5",)
    assert "ward 5" not in findings.labels
    page = page_of(findings, findings.sketches, None)
    assert page.count("ward 5") == 1
    with pytest.raises(al.NotResolvableError, match="too few people"):
        findings_of(with_margins([LOW] * 2, [2000, 3]), about="people", **KNOWN)


def test_equal_parties_have_neither_groups_nor_outliers():
    findings = findings_of(with_margins([LOW] * 5), level=1 - 1e-6, simultaneous=True)
    groups, _, outliers, *_ = statements.statements(findings)
    assert findings.groups == ()
    assert "No two parties are found to differ" in groups.text
    assert "No party is surely more than 1.5 times" in outliers.text
    page_of(findings, findings.sketches, None)


def test_the_number_of_choices_is_named():
    page = page_about(with_margins([LOW, LOW, LOW], labels=["a", "ward’s b", "c"]))
    assert "of all 6 choices of this page together" in page  # three pairs, and each against the typical party
    assert "choices of this page together" not in page_about(with_margins([LOW, LOW]))


def test_two_parties():
    distance, _ = statements.statements(findings_of(with_margins([LOW, HIGH]), **KNOWN))
    assert "<bdi>ward 2</bdi> has more with Injuries (+" in distance.text
    distance, _ = statements.statements(findings_of(with_margins([LOW, LOW]), **KNOWN))
    assert "Injuries" not in distance.text


def limits_of(reasons, block, side):
    """What the page knows of a side, from which its script makes differences."""
    value, lower, upper = reasons.sides[block, side]
    return Limits(value, value + reasons.missing[block, side], lower, upper)


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_the_level_is_for_all_pairs_that_can_be_chosen(count, simultaneous):
    """Half of the error is for pairs of parties, but for two parties, which have no groups and no typical party."""
    sketches = with_margins([LOW, HIGH, LOW, HIGH, LOW][:count])
    found = findings_of(sketches, level=0.9, simultaneous=simultaneous).reasons
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if simultaneous:
        level = 0.9 if count == 2 else 0.95
        expected = explain_sides([*map(Side.of, sketches)], pairs, about="populations", level=level)
    else:
        expected = [al.explain(sketches[[i]], sketches[[j]], level=0.9) for i, j in pairs]
    for (i, j), answer in zip(pairs, expected, strict=True):
        ends = difference_limits(limits_of(found, 0, i), limits_of(found, 0, j))
        order = [sketches.margin_names.index(name) for name in answer.item_groups]
        for mine, theirs in zip(ends, (answer.difference, answer.lower, answer.upper), strict=True):
            np.testing.assert_allclose(np.clip(mine[order], -1, 1), theirs, rtol=1e-9)


def test_groups_and_single_parties_share_the_other_half():
    sketches = with_margins([LOW] * 4 + [HIGH] * 4)
    found = findings_of(sketches, **KNOWN)
    choices = 1 + 2 + 8  # two groups; each against the typical party; eight parties against theirs
    sides = [Side.of(sketches, rows) for rows in found.groups]
    (expected,) = explain_sides(sides, [(0, 1)], about="populations", level=1 - 0.05 / 2 / choices)
    ends = difference_limits(limits_of(found.reasons, 0, 8), limits_of(found.reasons, 0, 9))
    np.testing.assert_allclose(np.sort(ends[1]), np.sort(expected.lower))
    for row in (2, 8):  # a party and a group against the typical party
        rows = (row,) if row < 8 else found.groups[0]
        expected = explain_typical(sketches, rows, level=1 - 0.05 / 2 / choices)
        ends = difference_limits(limits_of(found.reasons, 2, row), limits_of(found.reasons, 1, row))
        np.testing.assert_allclose(np.sort(ends[2]), np.sort(expected.upper))


def test_about_the_people_counted_chance_is_no_error():
    sketches = with_margins([LOW, HIGH])
    beyond, counted = (
        findings_of(sketches, **KNOWN, about="populations" if each else "people").reasons.explanations[
            (0,), (1,)
        ]
        for each in (None, False)
    )
    assert (counted.upper - counted.lower < beyond.upper - beyond.lower).all()


def test_releases_without_margins_say_how_to_get_them():
    page = page_about(hospitals(3), by="size")
    assert "armslength plan --margins" in page
    assert 'id="differs-table"' not in page


def test_rows_that_share_a_release_are_not_explained():
    sketches = with_margins([LOW, HIGH, LOW])
    page = page_about(al.concat([sketches, sketches[0] + sketches[1]]))
    assert "These rows cannot say what sets parties apart" in page


def test_so_many_item_groups_cannot_be_chosen_from(monkeypatch):
    monkeypatch.setattr(findings_file, "_MOST_NUMBERS", 17)
    page = page_about(with_margins([LOW, HIGH]))
    assert '"margins":null' in page
    assert "armslength explain</code> compares any two" in page


def test_names_of_item_groups_are_text():
    names = {"A": "<script>alert(1)</script>", "S": "x & {{style}}"}
    protocol = votes(margins=names)
    rng = np.random.default_rng(6)
    rows = counted(protocol, ["a", "b"], [9000] * 2, [[0, 5000, 0], [0, 100, 0]], rng)
    page = page_about(rows)
    assert "alert(1)</script>" not in page
    assert "x &amp; {{style}}" in page
