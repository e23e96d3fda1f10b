"""In what parties differ: what the page says of releases with margins, and at which level."""

import re

import numpy as np
import pytest

import armslength as al
from armslength.answers.explain import explain_pairs
from armslength.estimates.prevalence import difference_limits
from armslength.reporting import findings as findings_file
from armslength.reporting import statements
from armslength.reporting.findings import findings_of
from armslength.reporting.page import page_of
from margin_rows import item_groups, margin_protocol, rows_with_margins
from report_parties import hospitals, with_margins

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
        text for _, heading, text in statements.statements(findings) if heading == "Unlike the rest"
    )
    assert re.search(
        r"<bdi>ward 7</bdi><a class=.reasons. [^>]*>more with Injuries \(\+\d+\.\d points\)</a>", outliers
    )


def test_each_of_three_groups_comes_with_reasons():
    groups, *_ = statements.statements(
        findings_of(with_margins([LOW] * 3 + [HIGH] * 3 + [[0.4, 0.1, 0.3]] * 3), **KNOWN)
    )
    assert re.search(r"fewer with Injuries \(−\d+\.\d points\)", groups.text)
    assert re.search(r"more with Infections \(\+\d+\.\d points\)", groups.text)
    assert groups.text.count('class="reasons"') == 3


def without_margins(row):
    return al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals)


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
    rest, group = (1, 2, 3), (4, 5, 6, 7)
    found, expected = reasons.explanations[((0, *rest), group)], alone.explanations[((0, 1, 2), (3, 4, 5, 6))]
    assert found.labels == expected.labels
    assert np.array_equal(found.difference, expected.difference)
    page = page_about(joined)
    assert f"Without <bdi>{hill.labels[0]}</bdi>:" in page
    assert "armslength plan --margins" not in page
    nobody = page_about(al.concat([without_margins(hill), *map(without_margins, others[1:]), others[0]]))
    assert "no two were released with the same item groups" in nobody


def test_the_page_names_parties_with_other_settings():
    rows = with_margins([LOW] * 4)
    page = page_about(rows)
    assert "same settings" not in page
    one = rows_with_margins(margin_protocol(epsilon=3), [[1, 2, 3, 400]], ["odd"])
    same = rows_with_margins(margin_protocol(), [[1, 2, 3, 400]] * 3, ["a", "b", "c"])
    page = page_about(al.concat([one, same]), by="size")
    assert "odd: its epsilon differs" in page


def test_the_limit_on_item_groups_is_named_where_many_people_reach_it():
    page = page_about(with_margins([[0.5, 0.6, 0.8], [0.1, 0.1, 0.1], LOW]))
    assert "many people reach that in <bdi>ward 1</bdi>." in page
    assert "many people reach" not in page_about(with_margins([LOW, HIGH]))


def test_the_number_of_choices_is_named():
    page = page_about(with_margins([LOW, LOW, LOW], labels=["a", "ward’s b", "c"]))
    assert "of all 6 choices of this page together" in page  # three pairs, and each against the rest
    assert "choices of this page together" not in page_about(with_margins([LOW, LOW]))


def test_two_parties():
    distance, _ = statements.statements(findings_of(with_margins([LOW, HIGH]), **KNOWN))
    assert "<bdi>ward 2</bdi> has more with Injuries (+" in distance.text
    distance, _ = statements.statements(findings_of(with_margins([LOW, LOW]), **KNOWN))
    assert "Injuries" not in distance.text


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_the_level_is_for_all_pairs_that_can_be_chosen(count, simultaneous):
    """Half of the error is for pairs of parties, but for two parties, which have no groups and no rest."""
    sketches = with_margins([LOW, HIGH, LOW, HIGH, LOW][:count])
    found = findings_of(sketches, level=0.9, simultaneous=simultaneous).reasons
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if simultaneous:
        level = 0.9 if count == 2 else 0.95
        expected = explain_pairs(sketches, [((i,), (j,)) for i, j in pairs], level=level)
    else:
        expected = [al.explain(sketches[[i]], sketches[[j]], level=0.9) for i, j in pairs]
    for (i, j), answer in zip(pairs, expected, strict=True):
        ends = difference_limits(tuple(found.sides[0, i]), tuple(found.sides[0, j]))
        order = [sketches.margin_names.index(name) for name in answer.item_groups]
        for mine, theirs in zip(ends, (answer.difference, answer.lower, answer.upper), strict=True):
            np.testing.assert_allclose(np.clip(mine[order], -1, 1), theirs, rtol=1e-9)


def test_groups_and_single_parties_share_the_other_half():
    sketches = with_margins([LOW] * 4 + [HIGH] * 4)
    found = findings_of(sketches, **KNOWN)
    one, other = found.groups
    choices = 1 + 2 + 8  # two groups; each against the rest; eight parties against the rest
    (expected,) = explain_pairs(sketches, [(one, other)], level=1 - 0.05 / 2 / choices)
    shown = found.reasons.explanations[one, other]
    np.testing.assert_allclose(shown.lower, expected.lower)
    ends = difference_limits(tuple(found.reasons.sides[0, 8]), tuple(found.reasons.sides[0, 9]))
    np.testing.assert_allclose(np.sort(ends[1]), np.sort(expected.lower))


def test_about_the_people_counted_chance_is_no_error():
    sketches = with_margins([LOW, HIGH])
    beyond, counted = (
        findings_of(sketches, **KNOWN, beyond_chance=each).reasons.explanations[(0,), (1,)]
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
    assert "cannot be said of these rows" in page


def test_so_many_item_groups_cannot_be_chosen_from(monkeypatch):
    monkeypatch.setattr(findings_file, "_MOST_NUMBERS", 17)
    page = page_about(with_margins([LOW, HIGH]))
    assert '"margins":null' in page
    assert "armslength explain</code> compares any two" in page


def test_names_of_item_groups_are_text():
    names = ["<script>alert(1)</script>", "x & {{style}}"]
    protocol = margin_protocol(margins=item_groups({"prefix": ["A", "S"], "group": names}))
    rows = [[0, 5000, 0, 9000], [0, 100, 0, 9000]]
    page = page_about(rows_with_margins(protocol, rows, ["a", "b"]))
    assert "alert(1)</script>" not in page
    assert "x &amp; {{style}}" in page
