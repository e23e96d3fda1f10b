"""One verdict: the same pair has the same one in every answer; and parties with too few people, which are named and change nothing."""

from functools import partial

import numpy as np
import pytest

import armslength as al
from armslength.answers.pairs import VERDICTS, alike_limit, verdicts
from report_parties import with_margins

MIXES = [[0.1, 0.1, 0.3], [0.1, 0.16, 0.3], [0.1, 0.9, 0.3], [0.12, 0.1, 0.35]]
INF = np.inf


@pytest.fixture(scope="module")
def parties():
    """Some alike, some that differ, some of which nothing is known."""
    people = [2500, 1200, 2500, 500, 2500, 900, 300, 2500, 1200, 700]
    return with_margins([MIXES[row % 4] for row in range(10)], people=people)


@pytest.fixture(scope="module")
def with_few():
    """Eight of them, and one of three people."""
    names = [f"large {row}" for row in range(8)]
    lines = [MIXES[row % 4] for row in range(8)]
    return with_margins([*lines, MIXES[2]], people=[2500] * 8 + [3], labels=[*names, "few"])


@pytest.mark.parametrize(
    ("lower", "upper", "similarity", "limit", "verdict"),
    [
        (0.0, 0.1, 0.95, 0.95, "alike"),
        (0.0, 0.1, np.nextafter(0.95, 0), 0.95, "inconclusive"),
        (0.1, 0.2, 0.95, 0.95, "alike"),  # wins
        (0.1, 0.2, 0.94, 0.95, "differ"),
        (0.0, INF, 0.0, 0.95, "inconclusive"),
        (0.1, 0.2, None, None, "differ"),
        (0.0, 0.0, None, None, "inconclusive"),
        (0.0, 0.0, None, 0.0, "alike"),
        (5.0, 9.0, None, 9.0, "alike"),
        (5.0, 9.0, None, np.nextafter(9.0, 0), "differ"),
        (0.0, INF, None, 1e300, "inconclusive"),
    ],
)
def test_the_rule(lower, upper, similarity, limit, verdict):
    ends = [None if end is None else np.array([end]) for end in (lower, upper, similarity)]
    assert verdicts(*ends, limit).tolist() == [verdict]


def test_of_a_truth_only_one_verdict_can_be_wrong():
    """If intervals hold, "differ" is said of no equal parties, and "alike" of none that are less similar than the limit."""
    rng = np.random.default_rng(1)
    distance = rng.choice([0.0, 0.1, 0.5], 3000)
    similarity = np.where(distance == 0, 1.0, rng.uniform(0, 1, 3000))
    lower, upper = distance * rng.uniform(0, 1, 3000), distance + rng.uniform(0, 1, 3000)
    words = verdicts(lower, upper, similarity * rng.uniform(0, 1, 3000), 0.9)
    assert set(words) == set(VERDICTS)
    assert (distance[words == "differ"] > 0).all()
    assert (similarity[words == "alike"] >= 0.9).all()


def test_the_default_limit_is_a_similarity_and_counts_have_none():
    assert (alike_limit(None, "populations"), alike_limit(None, "people")) == (0.95, 0.95)
    assert alike_limit(None, "counts") is None
    assert alike_limit(40, "counts") == 40


def by_pair(comparison):
    """The verdict of each pair, from both sides."""
    found = {}
    for row in comparison.to_arrow().to_pylist():
        found[row["left"], row["right"]] = found[row["right"], row["left"]] = row["verdict"]
    return found


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("about", ["populations", "people", "counts"])
def test_a_pair_has_the_same_verdict_in_every_answer(parties, about, level):
    known = {"about": about, "level": level, "keep": True}
    found = by_pair(al.compare(parties, **known))
    clusters = al.cluster(parties, **known)
    for i, left in enumerate(clusters.labels):
        for j, right in enumerate(clusters.labels):
            assert clusters.differ[i, j] == (i != j and found[left, right] == "differ")
    for rows in clusters.group_rows():
        names = [clusters.labels[row] for row in rows]
        assert all(found[a, b] != "differ" for a in names for b in names if a != b)
    nearest = al.nearest(parties, count=9, **known)
    for query, labels, words in zip(nearest.queries, nearest.labels, nearest.verdict.tolist(), strict=True):
        assert [found[query, label] for label in labels] == words
    if level == 0.95 and about != "counts":
        assert {"differ", "inconclusive", "alike"} == set(found.values())


def test_two_sides_have_the_same_verdicts_too(parties):
    left, right = parties[:4], parties[4:]
    for each in (False, True):
        found = by_pair(al.compare(left, right, each=each))
        nearest = al.nearest(left, right, count=6, each=each)
        for query, labels, words in zip(
            nearest.queries, nearest.labels, nearest.verdict.tolist(), strict=True
        ):
            # each query by itself is with all of its pairs
            expected = found if not each else by_pair(al.compare(parties[query], right))
            assert [expected[query, label] for label in labels] == words


@pytest.mark.parametrize("alike", [0.6, 0.9, 0.99])
def test_another_limit_moves_both_compare_and_groups(parties, alike):
    found = by_pair(al.compare(parties, alike=alike))
    clusters = al.cluster(parties, alike=alike)
    differ = np.array(
        [[found.get((left, right)) == "differ" for right in clusters.labels] for left in clusters.labels]
    )
    assert (clusters.differ == differ).all()


def test_parties_that_differ_hardly_are_in_one_group_if_they_are_alike():
    """Of large parties a small difference is found; alike wins."""
    rows = with_margins([MIXES[0]] * 3 + [[0.1, 0.25, 0.3]] * 3, 4000)
    assert al.cluster(rows, alike=1).flat().tolist() == [0, 0, 0, 1, 1, 1]
    assert al.cluster(rows).flat().tolist() == [0] * 6


def numbers_of(answer, labels):
    """What an answer says of these parties."""
    rows = answer.to_arrow().to_pylist()
    names = [name for name in ("party", "left", "right", "query", "label") if name in rows[0]]
    return [
        {name: value for name, value in row.items() if name != "in_clear"}
        for row in rows
        if all(row[name] in labels for name in names)
    ]


ALONE = {
    "compare": partial(al.compare, each=True),
    "nearest": partial(al.nearest, each=True, count=7),
    "outliers": al.outliers,
}


@pytest.mark.parametrize("answer", ALONE)
def test_a_tiny_party_changes_nothing_that_is_said_of_the_others(with_few, answer):
    large = with_few.labels[:8]
    whole, rest = (numbers_of(ALONE[answer](rows), large) for rows in (with_few, with_few[:8]))
    assert len(whole) == len(rest) > 7
    for ours, theirs in zip(whole, rest, strict=True):
        assert ours == {
            name: pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
            for name, value in theirs.items()
        }


def test_a_tiny_party_moves_no_tree_and_makes_no_group(with_few):
    whole, rest = al.cluster(with_few), al.cluster(with_few[:8])
    np.testing.assert_allclose(whole.linkage, rest.linkage)
    assert whole.labels == rest.labels
    assert (whole.differ == rest.differ).all()


@pytest.mark.parametrize("answer", ["compare", "nearest", "outliers", "cluster"])
def test_a_tiny_party_is_named_once_and_kept_if_asked(answer):
    function = getattr(al, answer)
    people = [2500] * 5 + [60, 3]  # of 60 people is known that there are some, and nothing else
    rows = with_margins(
        [MIXES[0]] * 7, people=people, labels=[*"abcde", "sixty", "three"], epsilon=1, total_share="0.5"
    )
    left_out, kept = function(rows), function(rows, keep=True)
    name = {"compare": "left", "nearest": "queries"}.get(answer, "labels")
    labels = {each: set(getattr(found, name)) for each, found in (("left out", left_out), ("kept", kept))}
    assert labels["left out"] == set("abcde")
    assert labels["kept"] == {*"abcde", "sixty"}  # what nobody may be in has no profile
    assert (left_out.note.count("sixty"), left_out.note.count("three")) == (1, 1)
    assert (kept.note.count("sixty"), kept.note.count("three")) == (0, 1)
    # of counts, all are kept
    assert "sixty" not in function(rows, about="counts").note


@pytest.mark.parametrize(
    ("answer", "least"), [("compare", 2), ("nearest", 2), ("outliers", 3), ("cluster", 2)]
)
def test_too_few_parties_are_refused_by_name(answer, least):
    rows = with_margins([MIXES[0]] * 4, people=[2500] * (least - 1) + [3] * (5 - least))
    with pytest.raises(al.NotResolvableError) as caught:
        getattr(al, answer)(rows, about="populations")
    assert all(label in str(caught.value) for label in rows.labels[least - 1 :])
