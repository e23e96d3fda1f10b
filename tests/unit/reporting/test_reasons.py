"""In what parties differ: what the page says of releases with margins, and at which level."""

import re

import numpy as np
import pytest

import armslength as al
from armslength.answers.explain import Side, can_be_said, explain_sides
from armslength.estimates.prevalence import Prevalence, difference_limits
from armslength.reporting import findings as findings_file
from armslength.reporting import statements
from armslength.reporting.findings import PAIRED, PARTIES, TYPICAL, findings_of
from armslength.reporting.page import page_of
from report_parties import chapters, counted, hospitals, released, votes, with_margins

LOW, HIGH = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]  # Infections, Injuries, (other)
KNOWN = {"level": 0.95, "about": None}


def page_about(sketches, **known):
    return page_of(findings_of(sketches, **{**KNOWN, **known}), sketches, None)


def difference(reasons, first, second):
    """What the page's script makes of two sides; None is the typical party."""
    blocks = (PAIRED, first, PAIRED) if first is not None else (TYPICAL, second, PARTIES)
    return difference_limits(reasons.limits(*blocks[:2]), reasons.limits(blocks[2], second))


def test_an_outlier_comes_with_reasons():
    findings = findings_of(with_margins([LOW] * 6 + [HIGH]), **KNOWN)
    assert findings.outlier_rows == [6]
    assert re.search(r"more with Injuries \(\+\d+\.\d points\)", statements.finding(findings))
    assert statements.reason(findings, 6) == findings.outliers.reasons[6]


def test_a_group_has_what_each_of_its_parties_has():
    """True of any choice of parties, as it is true of each."""
    findings = findings_of(with_margins([LOW] * 5 + [HIGH] * 3, epsilon=8), **KNOWN)
    assert findings.groups == [[0, 1, 2, 3, 4], [5, 6, 7]]
    text = statements.apart(findings, [5, 6, 7])
    assert "more with Injuries" in text
    assert "Infections" not in text
    ends = [float(end) for end in re.findall(r"\+(\d+\.\d)", text)]
    injuries = findings.reasons.names.index("Injuries")
    values = [100 * difference(findings.reasons, None, row)[0][injuries] for row in (5, 6, 7)]
    np.testing.assert_allclose(ends, [min(values), max(values)], atol=0.051)
    assert "Injuries" not in statements.apart(findings, [0, 7])


def without_margins(row):
    return al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals, None, row.spread)


def test_rows_without_margins_cost_only_their_own_reasons():
    hill, *others = with_margins([LOW] * 4 + [HIGH] * 4)
    joined = al.concat([without_margins(hill), *others])
    reasons = findings_of(joined, **KNOWN).reasons
    assert np.isnan(reasons.sides[:, 0]).all()
    assert not np.isnan(reasons.sides[:, 1:]).any()
    page = page_about(joined)
    assert f"Without <bdi>{hill.labels[0]}</bdi>:" in page
    assert "armslength plan" not in page
    nobody = page_about(al.concat([without_margins(hill), *map(without_margins, others[1:]), others[0]]))
    assert "no two were released with the same item groups" in nobody


def test_the_page_names_parties_with_other_settings():
    rows = with_margins([LOW] * 4)
    assert "same settings" not in page_about(rows)
    rng = np.random.default_rng(3)
    one = counted(chapters(epsilon=3), ["odd"], [5000], [[900] * 5], rng)
    same = counted(chapters(), ["a", "b", "c"], [5000] * 3, [[900] * 5] * 3, rng)
    assert "odd: its epsilon differs" in page_about(al.concat([one, same]), about="counts")


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
    finding = statements.finding(findings_of(rows, **KNOWN))
    assert "item groups are inconclusive" in finding
    assert "than the 2 item groups" in finding


def test_where_no_item_group_differs_the_page_says_what_it_can_mean():
    """The two have other items of the same item group."""
    parties = [[[f"B{code}"] for code in range(first, first + 5)] * 400 for first in (0, 5)]
    page = page_about(released(votes(), parties))
    assert statements.NONE_FOUND in page.split("<main")[0]
    assert "--items codes.txt" in page.split('id="parties"')[1].split("</section>")[0]
    assert "--items codes.txt" not in page_about(with_margins([LOW, HIGH])).split("<script")[0]


def test_two_parties_have_the_reasons_of_explain():
    sketches = with_margins([LOW, HIGH])
    findings = findings_of(sketches, **KNOWN)
    expected = al.explain(sketches, *sketches.labels)
    np.testing.assert_array_equal(findings.reasons.pair.lower, expected.lower)
    assert all(reason in statements.finding(findings) for reason in expected.reasons())
    assert "Injuries" not in statements.finding(findings_of(with_margins([LOW, LOW]), **KNOWN))


def test_parties_that_are_too_small_for_a_page_of_two_are_refused():
    with pytest.raises(al.NotResolvableError, match="too few people"):
        findings_of(with_margins([LOW] * 2, [2000, 3]), level=0.95, about="people")


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("each", [True, False])
def test_the_level_is_for_all_pairs_that_can_be_chosen(count, each):
    """The pairs that a page or its reader chooses are chosen among all, by the same data."""
    sketches = with_margins([LOW, HIGH, LOW, HIGH, LOW][:count])
    found = findings_of(sketches, level=0.9, about=None, each=each).reasons
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if each:
        expected = [al.explain(sketches, sketches.labels[i], sketches.labels[j], level=0.9) for i, j in pairs]
    else:
        expected = explain_sides([*map(Side.of, sketches)], pairs, about="populations", level=0.9)
    for (i, j), answer in zip(pairs, expected, strict=True):
        order = [sketches.margin_names.index(name) for name in answer.item_groups]
        for mine, theirs in zip(
            difference(found, i, j), (answer.difference, answer.lower, answer.upper), strict=True
        ):
            np.testing.assert_allclose(np.clip(mine[order], -1, 1), theirs, rtol=1e-9)


def test_what_sets_parties_apart_from_the_typical_party_is_said_at_the_level_of_all_parties():
    """As al.outliers says it: not of all pairs, of which there are many more."""
    sketches = with_margins([LOW] * 6 + [HIGH] * 2, [1000] * 7 + [15_000])
    found = findings_of(sketches, **KNOWN).reasons
    for row, label in enumerate(sketches.labels):
        expected = al.explain(sketches, label, level=1 - 0.05 / len(sketches))
        order = [found.names.index(name) for name in expected.item_groups]
        ends = difference(found, None, row)
        np.testing.assert_allclose(np.clip(ends[1][order], -1, 1), expected.lower, rtol=1e-9)
        np.testing.assert_allclose(np.clip(ends[2][order], -1, 1), expected.upper, rtol=1e-9)


def test_many_pairs_do_not_make_parties_too_small():
    """That a party has people is doubtful once, and not once for each of its pairs."""
    sketches = with_margins([LOW] * 30, [46] + [2000] * 29, epsilon=4)
    findings = findings_of(sketches, level=0.95, about="people", keep=True)
    assert findings.left_out == ()
    assert not np.isnan(findings.reasons.sides).any()
    people = Prevalence.of(sketches[[0]], beyond_chance=False)
    assert not can_be_said(people, 0.05 / 2 / len(findings.reasons.names) / findings.reasons.choices)


def test_about_the_people_counted_chance_is_no_error():
    sketches = with_margins([LOW, HIGH])
    beyond, counted = (
        findings_of(sketches, level=0.95, about=about).reasons.pair for about in ("populations", "people")
    )
    assert (counted.upper - counted.lower < beyond.upper - beyond.lower).all()


def test_releases_without_margins_say_how_to_get_them():
    page = page_about(hospitals(3), about="counts")
    assert "armslength plan" in page
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
    rows = counted(protocol, ["a", "b"], [9000] * 2, [[0, 8000, 0], [8000, 100, 0]], rng)
    page = page_about(rows)
    assert "alert(1)</script>" not in page
    assert "x &amp; {{style}}" in page
