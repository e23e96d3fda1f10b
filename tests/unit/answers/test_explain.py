"""explain: what it ranks and says, what it refuses, the typical party, and many pairs at once."""

import os
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.answers.explain import (
    Side,
    explain_rows,
    explain_sides,
    typical_of,
    undercounts,
)
from armslength.estimates.intervals import Level
from armslength.estimates.typical import TypicalParties
from armslength.protocol.neighbors import VOTE
from armslength.sketches.noises import Noises
from report_parties import CHAPTERS, chapters, counted

P = chapters()
NAMES = P.margins.names  # Births, Circulatory, Infections, Injuries, (other)
LABELS = ["north", "harbor", "hill"]
PEOPLE = [40_000, 50_000, 30_000]
SURELY = 1 - 1e-6


def said(a, b, **known):
    """What explain says of rows that are not of one object."""
    return explain_rows(Side.of(a), Side.of(b), **known)


def sampled(protocol, labels, people, shares, rng):
    """Rows of people who are samples of populations with these prevalences."""
    return counted(protocol, labels, people, rng.binomial(np.array(people)[:, None], shares), rng)


@pytest.fixture(scope="module")
def parties():
    usual = [0.02, 0.31, 0.05, 0.12, 0.2]
    shares = [usual, [0.02, 0.25, 0.05, 0.22, 0.2], usual]
    return sampled(P, LABELS, PEOPLE, shares, np.random.default_rng(1))


def test_differences_come_first_with_the_clearest_at_the_top(parties):
    found = al.explain(parties, "north", "harbor", level=SURELY)
    assert found.labels == ("north", "harbor")
    assert sorted(found.item_groups) == sorted(NAMES)
    assert found.item_groups[:2] == ("Injuries", "Circulatory")
    assert found.verdict == ("more", "fewer", *["inconclusive"] * 3)
    assert found.found == 2
    assert found.difference[:2] == pytest.approx([0.1, -0.06], abs=0.03)
    assert (found.lower < found.difference).all()
    assert (found.difference < found.upper).all()
    evidence = np.abs(found.difference) / np.where(
        found.difference > 0, found.difference - found.lower, found.upper - found.difference
    )
    assert (np.diff(evidence) <= 1e-9).all()
    assert found.people == tuple(parties.totals[[0, 1]] / VOTE)
    assert found.a == pytest.approx(found.b - found.difference, abs=1e-12)


def test_the_other_way_round_more_is_fewer(parties):
    found = al.explain(parties, "north", "harbor")
    turned = al.explain(parties, "harbor", "north")
    assert found.item_groups == turned.item_groups
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.lower == pytest.approx(-found.upper)
    assert [{"more": "fewer", "fewer": "more"}.get(each, each) for each in turned.verdict] == list(
        found.verdict
    )


def test_in_words(parties):
    found = al.explain(parties, "north", "harbor", level=SURELY)
    text = str(found)
    largest = max(np.abs(found.lower[2:]).max(), np.abs(found.upper[2:]).max())
    assert found.largest == largest
    assert f"{100 * largest:.1f} points" in text
    assert text.index("Injuries") < text.index("Circulatory")
    assert f"{found.similarity[0]:.2f}" in text
    assert text.count("▇") > 10
    assert "Births" not in text
    assert [each.split(" (")[0] for each in found.reasons()] == [
        "more with Injuries",
        "fewer with Circulatory",
    ]
    assert found.reasons(1) == found.reasons()[:1]
    nothing = al.explain(parties, "north", "hill", level=SURELY)
    assert nothing.found == 0
    assert nothing.reasons() == []
    assert f"{100 * nothing.largest:.1f} points" in str(nothing)
    assert 0 < nothing.largest < 0.5


def test_as_a_table_in_a_notebook_and_in_a_pickle(parties):
    found = al.explain(parties, "north", "harbor")
    table = found.to_arrow()
    assert table.column_names == ["item_group", "a", "b", "difference", "lower", "upper", "verdict"]
    metadata = table.schema.metadata
    assert (metadata[b"a"], metadata[b"b"], metadata[b"about"]) == (b"north", b"harbor", b"populations")
    ends = f"{100 * found.lower[0]:+.1f} to {100 * found.upper[0]:+.1f}".replace("-", "−")
    for text in (repr(found), found._repr_html_()):
        assert "Injuries" in text
        assert ends in text
        assert f"{100 * found.b[0]:.1f} %" in text
    assert "<th>harbor</th>" in found._repr_html_()
    assert "b: points" in repr(replace(found, labels=("north", "points")))
    assert "a: north" in repr(replace(found, labels=("north", "north")))
    assert pickle.loads(pickle.dumps(found)).to_arrow().equals(table)  # noqa: S301  # our own bytes
    assert found.to_pandas().shape == (5, 7)


def test_names_from_elsewhere_are_escaped_in_html():
    used = chapters(margins={"x": "<script>", "y": "$a$"})
    found = said(*counted(used, ["a&b", "c"], [900, 900], [[5, 5, 5]] * 2, np.random.default_rng(2)))
    assert "<script>" not in found._repr_html_()


def test_a_plot_has_a_bar_for_each_item_group(parties):
    pytest.importorskip("matplotlib").use("Agg")
    axes = al.explain(parties, "north", "harbor").plot()
    assert len([patch for patch in axes.patches if patch.get_width()]) == len(NAMES)
    assert [tick.get_text() for tick in axes.get_yticklabels()][:2] == ["Injuries", "Circulatory"]
    many = chapters(margins={f"i{number}": f"group {number}" for number in range(200)})
    counts = np.full((2, 201), 30)
    axes = said(*counted(many, ["a", "b"], [900, 900], counts, np.random.default_rng(3))).plot()
    assert len(axes.get_yticklabels()) <= 60


def test_several_rows_are_one_side(parties):
    both = parties[["north", "hill"]]
    found = al.explain(parties, ["north", "hill"], "harbor", level=SURELY)
    assert found.labels[0] == "north and hill"
    assert found.people[0] == both.totals.sum() / VOTE
    assert "north and hill have" in str(al.explain(parties, "harbor", ["north", "hill"], level=SURELY))
    one = said(both[0] + both[1], parties["harbor"], level=SURELY)
    assert one.lower == pytest.approx(found.lower)
    # The rest as a difference: what cancels is gone.
    rest = sum(parties) - parties["harbor"]
    assert said(rest, parties["harbor"], level=SURELY).upper == pytest.approx(found.upper)
    twice = al.concat(
        [parties[["north"]], counted(P, ["far"], [40_000], [[9000] * 5], np.random.default_rng(7))]
    )
    assert "two releases" in said(twice, parties["harbor"]).note
    assert "two releases" not in al.explain(parties, "north", "harbor").note


def test_chance_makes_intervals_wider_and_is_said(parties):
    chance = al.explain(parties, "north", "harbor")
    counted = al.explain(parties, "north", "harbor", about="people")
    widths = [dict(zip(each.item_groups, each.upper - each.lower, strict=True)) for each in (chance, counted)]
    assert all(widths[0][name] > widths[1][name] for name in NAMES)
    assert (chance.about, counted.about) == ("populations", "people")
    assert chance.note != counted.note


def test_protocols_may_differ_in_noise_and_in_nothing_that_is_counted(parties):
    rng = np.random.default_rng(4)
    counts = [[800, 12_000, 2000, 5000, 8000]]
    noisier = counted(chapters(epsilon="0.5"), ["far"], [40_000], counts, rng)
    assert said(parties["north"], noisier).item_groups
    finer = counted(chapters(margin_share="0.6"), ["near"], [40_000], counts, rng)
    assert said(parties["north"], al.concat([noisier, finer])).item_groups
    other = counted(chapters(margin_contribution=1), ["far"], [40_000], counts, rng)
    with pytest.raises(al.ParameterError, match="count the same"):
        said(parties["north"], other)
    other = counted(chapters(margins={"A": "Another"}), ["far"], [40_000], [[800, 900]], rng)
    with pytest.raises(al.ParameterError, match="margins"):
        said(parties["north"], other)


def test_what_are_no_people_is_refused(parties):
    north, harbor = parties["north"], parties["harbor"]
    for a, b in (
        (2 * north, harbor),
        (north / 2, harbor),
        (north - harbor, parties["hill"]),
        (parties[["north", "north"]], harbor),
        (north, harbor - harbor),
    ):
        with pytest.raises(al.ParameterError, match="each row once"):
            said(a, b)
    for a, b in (
        (north, north),
        (parties, harbor),
        (parties[["north", "hill"]], parties[["harbor", "hill"]]),
    ):
        with pytest.raises(al.ParameterError, match="release in common"):
            said(a, b)


def test_rows_without_margins_and_rows_in_the_clear_are_refused(parties):
    north = parties["north"]
    hill = parties["hill"].noises
    bare = al.Sketches(north.values, ["bare"], hill, north.protocols, north.totals, None, north.spread)
    for a, b in ((north, bare), (bare, north), (bare, bare)):
        with pytest.raises(al.ParameterError, match="margins"):
            said(a, b)
    used = al.Protocol(north.transform, al.Votes(total_share="0.1"), epsilon=1)
    counts = np.zeros((2, 256), dtype=np.int64)
    without = Noises.fresh(os.urandom(32), used, "events")
    others = al.Sketches(counts, ["mill", "dale"], without, [used], counts[:, 0], None, counts[:, :2])
    with pytest.raises(al.ParameterError, match=r"^mill and dale were released without margins"):
        said(north, others)
    joined = al.concat([parties, others])
    with pytest.raises(al.ParameterError, match=r"^dale was released without margins"):
        said(joined["north"], joined[["harbor", "dale"]])
    assert al.explain(joined, "north", "harbor").found
    summed = joined["north"] + joined["dale"]
    with pytest.raises(al.ParameterError, match=r"^north \+ dale was released without margins"):
        said(summed, joined["harbor"])
    clear = al.Sketches(
        north.values,
        ["clear"],
        type(north.noises).none(1, in_clear=True),
        north.protocols,
        north.totals,
        north.margins,
    )
    with pytest.raises(al.ParameterError, match="in the clear"):
        said(parties["hill"], clear)


@pytest.mark.parametrize(
    ("sides", "known", "argument"),
    [
        (("north", []), {}, "b"),
        (([], "north"), {}, "a"),
        (("north", "north"), {}, "b"),
        ((["north", "hill"], ["harbor", "hill"]), {}, "b"),
        ((LABELS,), {}, "a"),
        *((("north", "hill"), {"level": level}, "level") for level in (0, 1, 2, np.nan, "0.9", None, True)),
        *((("north", "hill"), {"about": about}, "about") for about in ("counts", "size", 1)),
    ],
)
def test_wrong_arguments_are_refused(parties, sides, known, argument):
    with pytest.raises(al.ParameterError) as caught:
        al.explain(parties, *sides, **known)
    assert argument in caught.value.arguments


def test_labels_are_looked_up(parties):
    with pytest.raises(KeyError, match="harbor"):
        al.explain(parties, "north", "harbour")
    with pytest.raises(KeyError):
        al.explain(parties, ["north", "dale"], "hill")
    with pytest.raises(al.ParameterError, match=r"al\.Sketches"):
        al.explain(parties.values, "north", "hill")
    with pytest.raises(al.ParameterError, match="at least 2 rows"):
        al.explain(parties["north"], "north")


def test_the_similarity_is_that_of_both_sides(parties):
    for about in ("populations", "people"):
        found = al.explain(parties, "north", "harbor", about=about, level=0.9)
        expected = al.similarities(parties["north"], parties["harbor"], about=about)
        ends = [end[0, 0] for end in (expected.value, *expected.interval(0.9))]
        assert found.similarity == pytest.approx(ends)
    typical = al.explain(parties, "north", level=0.9)
    ends = TypicalParties.of(parties, beyond_chance=True).similarities(Level.of(0.9, "asymptotic", 1))
    assert typical.similarity == pytest.approx([end[0] for end in ends])


@pytest.mark.parametrize("people", [-200, 0, 3])
def test_nothing_is_said_of_hardly_anybody(parties, people):
    hill = parties["hill"]
    margins, totals = VOTE * np.array([[1, 2, 0, 0, 1, 0]]), VOTE * np.array([people])
    few = al.Sketches(hill.values, ["few"], hill.noises, (P,), totals, margins, hill.spread)
    with pytest.raises(
        al.NotResolvableError, match=rf"too few people.*few has about {max(0, people)}, with noise of ±\d"
    ):
        said(parties["north"], few)
    with pytest.raises(al.NotResolvableError, match="too few people"):
        said(few, parties["north"], about="people")


def test_nothing_is_said_where_noise_could_hide_nearly_any_difference():
    """Noise in the number of 200 people has a deviation of about 30, and that in a count is about as large."""
    noisy = chapters(epsilon="0.5", total_share="0.6", margin_share="0.02")
    few = counted(noisy, ["few", "many"], [400, 40_000], [[40] * 5, [4000] * 5], np.random.default_rng(1))
    with pytest.raises(
        al.NotResolvableError,
        match=r"^too few people to say: noise could hide differences of up to \d+ points between few and many; .*item_groups_share",
    ):
        al.explain(few, "few", "many")
    (text,) = explain_sides([*map(Side.of, few)], [(0, 1)], about="populations", level=0.95)
    assert text.split(":")[0] == "too few people to say"


def test_many_pairs_are_like_one_at_a_stricter_level(parties):
    few = counted(P, ["few"], [0], [[0] * 5], np.random.default_rng(5))
    sides = [*map(Side.of, parties), Side.of(parties, [1, 2]), Side.of(few)]
    pairs = [*combinations(range(3), 2), (0, 3)]
    found = explain_sides(sides, pairs, about="populations", level=0.96)
    one = al.explain(parties, "north", "harbor", level=1 - 0.04 / 4)
    assert found[0].item_groups == one.item_groups
    assert found[0].lower == pytest.approx(one.lower)
    assert found[0].level == 0.96
    assert found[3].labels == ("north", "harbor and hill")
    assert explain_sides(sides, [], about="populations", level=0.9) == []
    some = explain_sides(sides, [(0, 1), (0, 4)], about="populations", level=SURELY)
    assert some[0].found
    assert "too few people" in some[1]


def test_the_typical_party_is_the_average_of_the_others_up_to_the_median(parties):
    """North, of 40,000 people, against harbor, of 50,000, who weigh like 40,000, and hill, of 30,000."""
    side = typical_of(parties, [0])
    assert side.weights == pytest.approx([0.8, 1], abs=0.01)
    found = al.explain(parties, "north", about="people", level=SURELY)
    assert found.labels == ("the typical party", "north")
    assert found.people[0] == pytest.approx(70_000, rel=0.01)
    expected = side.weights @ parties.margins[1:, :-1] / (side.weights @ parties.totals[1:])
    for name, share in zip(NAMES, expected, strict=True):
        assert found.a[found.item_groups.index(name)] == pytest.approx(share)
    # Those of weight 1 are as if added up.
    equal = counted(P, LABELS, [40_000] * 3, [[4_000] * 5] * 3, np.random.default_rng(8))
    equal = al.Sketches(
        equal.values, LABELS, equal.noises, (P,), np.full(3, 40_000 * VOTE), equal.margins, equal.spread
    )
    mine, theirs = al.explain(equal, "north"), al.explain(equal, ["harbor", "hill"], "north")
    assert mine.lower == pytest.approx(theirs.lower)
    assert mine.upper == pytest.approx(theirs.upper)


def test_a_large_odd_party_hardly_moves_the_typical_party():
    counts = [[1000, 1000]] * 4 + [[95_000, 1000]]
    rows = counted(P, list("abcde"), [10_000] * 4 + [100_000], counts, np.random.default_rng(9))
    found = al.explain(rows, "a", level=SURELY)
    births = found.item_groups.index("Births")
    # 0.1 in three parties of 10,000, and 0.95 in one that weighs as much
    assert found.a[births] == pytest.approx((3 * 0.1 + 0.95) / 4, abs=0.01)


def test_the_typical_party_is_without_those_that_are_too_small_or_have_no_item_groups(parties):
    rng = np.random.default_rng(10)
    tiny = counted(P, ["tiny"], [0], [[0] * 5], rng)
    other = counted(chapters(margin_contribution=1), ["dale"], [50_000], [[5_000] * 5], rng)
    whole = al.explain(parties, "north", level=SURELY)
    for more in (tiny, other):
        found = al.explain(al.concat([parties, more]), "north", level=SURELY)
        assert found.labels == whole.labels
        assert found.note.count(more.labels[0]) == 1
        assert more.labels[0] not in whole.note
        assert found.item_groups == whole.item_groups
        assert found.lower == pytest.approx(whole.lower)
    with pytest.raises(al.NotResolvableError, match="too few people"):
        al.explain(al.concat([parties, tiny]), "tiny")


def test_from_a_table_to_what_differs():
    rng = np.random.default_rng(6)
    events = {"person": [], "item": [], "group": []}
    truth = []
    for party, injured in (("north", 0.1), ("harbor", 0.3)):
        has = rng.random((3000, 2)) < (injured, 0.4)
        has[:, 1] |= ~has[:, 0]  # everybody has an item
        truth.append(has.mean(axis=0))
        who, which = np.nonzero(has)
        events["person"] += [f"{party} {number}" for number in who]
        events["item"] += np.array(["S72", "I10"])[which].tolist()
        events["group"] += [party] * len(who)
    used = chapters(epsilon=8, unit="one patient")
    known = {"person": "person", "item": "item", "group": "group", "public_groups": ["north", "harbor"]}
    released = al.release(used, pa.table(events), item_groups=CHAPTERS, ledger=al.NO_LEDGER, **known)
    counted = al.explain(released, "north", "harbor", about="people", level=SURELY)
    for name, change in zip(("Injuries", "Circulatory"), truth[1] - truth[0], strict=True):
        row = counted.item_groups.index(name)
        assert counted.lower[row] < change < counted.upper[row]
    found = al.explain(released, "north", "harbor", level=SURELY)
    assert found.item_groups[0] == "Injuries"
    assert found.verdict[0] == "more"


def test_shares_that_are_too_small_are_said_and_allowed_for():
    """Of harbor's people, 4 % may be missing in each count; of hill's, none."""
    people, counts = [50_000] * 3, [[5_000] * 5, [20_000] * 5, [15_000] * 5]
    each = counted(P, LABELS, people, counts, np.random.default_rng(2), [0, 2_000, 0])
    note = al.explain(each, "north", "harbor").note
    assert "more than 2 item groups, and count in part in each" in note
    assert "4.0 points in harbor too small" in note
    assert "count in part" not in al.explain(each, "north", "hill").note
    bound, shares = undercounts(each)
    assert bound == 2
    assert shares == pytest.approx([0, 0.04, 0], abs=0.005)
    exact = counted(P, LABELS, people, counts, np.random.default_rng(2))
    wide, narrow = (al.explain(rows, "north", "harbor", about="people") for rows in (each, exact))
    lines = [
        dict(zip(found.item_groups, zip(found.lower, found.upper, strict=True), strict=True))
        for found in (wide, narrow)
    ]
    for name in NAMES:
        assert lines[0][name][1] - lines[1][name][1] == pytest.approx(0.04, abs=0.01)
        assert lines[0][name][0] - lines[1][name][0] == pytest.approx(0, abs=0.01)


def test_where_very_many_people_count_in_part_no_difference_is_named():
    each = counted(P, LABELS, [50_000] * 3, [[9_000] * 5] * 3, np.random.default_rng(2), [0, 5_000, 0])
    with pytest.raises(
        al.NotResolvableError,
        match=r"more than the 2 item groups.*: in harbor shares.*item_groups_limit=5",
    ):
        al.explain(each, "north", "harbor")
    assert al.explain(each, "north", "hill").item_groups


def test_noise_alone_is_no_undercount():
    """Said of a small party with a probability of 0.001: of 600, at most seven, but for 2e-6."""
    people, counts = [300] * 600, [[30] * 5] * 600
    each = counted(P, [f"p{number}" for number in range(600)], people, counts, np.random.default_rng(3))
    _, shares = undercounts(each)
    assert np.count_nonzero(shares) <= 7
    raw = each.margins[:, -1] / 4 / each.totals
    assert (raw > 0.005).sum() > 60


def test_a_record_whose_columns_all_count_misses_nobody():
    record = al.Protocol(
        al.SparseJL(sketch_dim=64, seed="record"),
        al.Votes(
            record={"sex": ["F", "M"]}, total_share="0.1", item_groups=al.ItemGroups(["sex"], share="0.4")
        ),
        epsilon=1,
        unit="one patient",
    )
    people = pa.table({"id": [str(n) for n in range(4000)], "sex": ["F", "M"] * 2000})
    a, b = (al.release(record, people, person="id", label=name, ledger=al.NO_LEDGER) for name in "ab")
    assert "count in part" not in said(a, b).note
