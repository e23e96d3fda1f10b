"""Margins of released rows: they add up as rows do, go to files and back, and no file can have others than its protocols say."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.laws import DiscreteLaplace
from armslength.protocol.neighbors import VOTE
from armslength.sketches import card, plausibility, sketch_format
from armslength.sketches import verify as verification
from armslength.sketches.parquet_footer import read_row_groups
from armslength.sketches.plausibility import FALSE_ALARM, implausible
from armslength.sketches.sketch_format import DIGEST_KEY, KEY, Layout
from armslength.sketches.sketches import sum_rows
from margin_rows import TRANSFORM, item_groups, many_groups, margin_protocol, rows_with_margins
from sealed import write_sealed

PROTOCOL = margin_protocol()
LESS = margin_protocol(epsilon="0.5")
OTHERS = margin_protocol(margins=item_groups({"prefix": ["A", "B"], "group": ["Infections", "Injuries"]}))
NONE = al.Protocol(TRANSFORM, al.Votes(total_share="0.1"), epsilon=1, unit="one patient")
COUNTS = [[10, 20, 30, 4], [0, 5, 900, 100], [7, 7, 7, 0]]  # of three item groups, and what is left out
REPLACE = margin_protocol(relation="replace", margin_contribution=3)


@pytest.fixture
def rows():
    return rows_with_margins(PROTOCOL, COUNTS, ["a", "b", "c"])


@pytest.fixture
def path(rows, tmp_path):
    rows.save(tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def without_margins(count, labels=None):
    """Rows of nobody, under a protocol without margins."""
    nobody = pa.table({name: pa.array([], pa.string()) for name in ("who", "where", "what")})
    labels = labels or [f"n{number}" for number in range(count)]
    columns = {"person": "who", "item": "what", "group": "where", "public_groups": labels}
    return al.release(NONE, nobody, ledger=al.NO_LEDGER, **columns)


# In memory


def test_margins_are_linear(rows):
    other = rows_with_margins(LESS, COUNTS, ["d", "e", "f"])
    a, b = rows.margins, other.margins
    for made, expected in (
        (rows + other, a + b),
        (rows - other, a - b),
        (rows - other[0], a - b[:1]),
        (-rows, -a),
        (3 * rows, 3 * a),
        (0.5 * rows, 0.5 * a),
        (rows / 4, a / 4),
        (sum(rows), a.sum(axis=0, keepdims=True)),
        (sum_rows(rows, "all"), a.sum(axis=0, keepdims=True)),
        (al.concat([rows, other]), np.vstack([a, b])),
        (al.concat([rows, 0.5 * other]), np.vstack([a, 0.5 * b])),
        (rows[["c", "a"]], a[[2, 0]]),
        (rows[1:], a[1:]),
        (rows[[]], a[:0]),
        (list(rows)[1], a[1:2]),
    ):
        assert made.margins.dtype == expected.dtype == made.values.dtype
        assert np.array_equal(made.margins, expected)
        assert made.margin_names == ("Infections", "Injuries", "(other)")


def test_rows_without_margins_or_with_others_leave_none(rows):
    for other in (
        rows_with_margins(OTHERS, COUNTS),  # the same names, by another rule
        without_margins(3),
        al.sketch_in_clear(PROTOCOL, np.zeros((3, 1), dtype=int), items=["x"]),
    ):
        for made in (rows + other, other - rows, al.concat([rows, other]), al.concat([other, rows])):
            assert made.margins is None
            assert made.margin_names == ()
        assert len(al.squared_distances(rows, other).value) == 3


def test_rows_keep_the_margins_that_most_have_when_they_are_joined_with_others(rows, tmp_path):
    bare = without_margins(2, ["x", "y"])
    other = rows_with_margins(OTHERS, COUNTS[:2], ["v", "w"])
    joined = al.concat([bare, other, rows])
    for number, part in enumerate((bare, other, rows)):
        part.save(tmp_path / f"{number}.parquet")
    again = pickle.loads(pickle.dumps(joined))  # noqa: S301  # of our own
    assert again.equals(joined)
    assert al.load(tmp_path).equals(joined)
    assert np.array_equal(joined.with_margins, [False] * 4 + [True] * 3)
    for made in (joined, again, al.load(tmp_path)):
        for chosen in (made[["c", "a"]], made[4:][[2, 0]], made[made.with_margins][[2, 0]]):
            assert np.array_equal(chosen.margins, rows.margins[[2, 0]])
            assert chosen.margins.dtype == np.int64
            assert chosen.margin_names == rows.margin_names
        assert np.array_equal(sum_rows(made[["a", "b"]], "both").margins, [rows.margins[:2].sum(axis=0)])
        assert made[["a", "x"]].margins is None
        assert sum_rows(made, "all").margins is None


def test_the_same_item_groups_by_two_tables_are_not_the_same_margins():
    one, two = (
        rows_with_margins(margin_protocol(margins={"S1": "Injuries", item: "Infections"}), COUNTS)
        for item in ("A1", "A2")
    )
    assert one.margin_names == two.margin_names
    assert (one + two).margins is None


def test_they_are_part_of_what_equals_and_pickle_see(rows):
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301  # of our own
    assert again.equals(rows)
    known = rows.values, rows.labels, rows.noises, rows.protocols, rows.totals
    changed = al.Sketches(*known, rows.margins + 1, rows.spread)
    without = al.Sketches(*known, spread=rows.spread)
    assert not changed.equals(rows)
    assert not without.equals(rows)
    assert not rows.equals(without)
    with pytest.raises(ValueError, match="read-only"):
        rows.margins[0, 0] = 1


def test_as_tables(rows):
    table = rows.to_arrow()
    assert table.column_names == ["label", "values", "total", "spread", "margins", "in_clear"]
    assert table["margins"].to_pylist() == rows.margins.tolist()
    assert rows.to_pandas()["margins"].tolist()[0].tolist() == rows.margins[0].tolist()
    assert "people" in repr(rows)


def test_arrays_streams_and_sketches_in_clear_have_none():
    ones = np.ones((1, 1), dtype=int)
    with pytest.raises(al.ParameterError, match="arrays and streams"):
        al.release(PROTOCOL, ones, items=["A"], ledger=al.NO_LEDGER)
    with pytest.raises(al.ParameterError, match="arrays and streams"):
        al.stream(PROTOCOL, label="a", ledger=al.NO_LEDGER)
    assert al.sketch_in_clear(PROTOCOL, ones, items=["A"]).margins is None


# In files


@pytest.mark.parametrize("protocol", [PROTOCOL, LESS, REPLACE], ids=["margins", "less", "replace"])
def test_files_give_them_back(protocol, tmp_path, monkeypatch):
    monkeypatch.setattr(sketch_format, "_GROUP_ROWS", 2)
    rows = rows_with_margins(protocol, COUNTS)
    for number, made in enumerate((rows, rows / 3, rows - rows[1], rows[[]], sum(rows))):
        file = tmp_path / f"{number}.parquet"
        made.save(file)
        assert al.load(file).equals(made)
        assert al.load(file).margin_names == rows.margin_names


def test_files_are_joined_as_concat_does(rows, tmp_path):
    parts = [rows, rows_with_margins(LESS, COUNTS), 0.5 * rows, rows_with_margins(OTHERS, COUNTS)]
    for number, part in enumerate(parts):
        part.save(tmp_path / f"{number}.parquet")
    files = [tmp_path / f"{number}.parquet" for number in range(4)]
    for count, is_shared in ((2, True), (3, True), (4, False)):
        joined = al.concat(parts[:count])
        assert (joined.margins is not None) == is_shared
        assert al.load(files[:count]).equals(joined)
        joined.save(tmp_path / "joined.parquet")
        assert al.load(tmp_path / "joined.parquet").equals(joined)


def test_many_item_groups_make_small_row_groups(tmp_path, monkeypatch):
    protocol = margin_protocol(margins=many_groups(9999))
    rows = rows_with_margins(protocol, np.zeros((3, 10_001)))
    monkeypatch.setattr(sketch_format, "_GROUP_BYTES", 2 * 8 * 10_017)
    rows.save(tmp_path / "s.parquet")
    assert pq.ParquetFile(tmp_path / "s.parquet").metadata.num_row_groups == 2
    assert al.load(tmp_path / "s.parquet").equals(rows)


def with_column(table, column):
    place = table.schema.get_field_index("margins")
    return table.set_column(place, pa.field("margins", column.type, nullable=False), column)


def lists(numbers, kind=None):
    """A column of lists, as a file has it."""
    numbers = np.array(numbers)
    element = pa.field("element", kind or pa.from_numpy_dtype(numbers.dtype), nullable=False)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(numbers.ravel(), element.type), type=pa.list_(element, numbers.shape[1])
    )


def nulls(table):
    """One number, or the whole list of one row, that is missing."""
    kind = pa.list_(pa.field("element", pa.int64()), 4)
    column = pa.array([[1, None, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], kind)
    place = table.schema.get_field_index("margins")
    return table.set_column(place, pa.field("margins", kind), column)


FORGED = {
    "too few": lambda table: with_column(table, lists(np.ones((3, 3), dtype=int))),
    "too many": lambda table: with_column(table, lists(np.ones((3, 5), dtype=int))),
    "one number": lambda table: with_column(table, pa.array([1, 2, 3])),
    "text": lambda table: with_column(table, pa.array(["1", "2", "3"])),
    "other lists": lambda table: with_column(table, pa.array([[1, 2, 3, 4]] * 3)),
    "small numbers": lambda table: with_column(table, lists(np.ones((3, 4), dtype=int), pa.int32())),
    "fractions beside whole values": lambda table: with_column(table, lists(np.full((3, 4), 0.5))),
    "missing": nulls,
    "another place": lambda table: table.select(["label", "values", "margins", "noise", "in_clear"]),
    "twice": lambda table: table.append_column(table.schema.field("margins"), table["margins"]),
}


@pytest.mark.parametrize("name", FORGED)
def test_margins_of_another_shape_are_refused(name, path):
    write_sealed(FORGED[name](pq.read_table(path)), path)
    with pytest.raises(CorruptFileError, match=r"s\.parquet ") as refused:
        al.load(path)
    assert "\n" not in str(refused.value)
    assert not al.verify(path).holds


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_none_are_refused(rows, number, path):
    (0.5 * rows).save(path)
    table = pq.read_table(path)
    margins = 0.5 * rows.margins
    margins[1, 2] = number
    write_sealed(with_column(table, lists(margins)), path)
    with pytest.raises(CorruptFileError, match="margins that are not finite"):
        al.load(path)


def test_one_edited_number_is_noticed(rows, path):
    table = pq.read_table(path)
    margins = rows.margins.copy()
    margins[1, 2] += 1
    edited = with_column(table, lists(margins))
    pq.write_table(edited.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(CorruptFileError, match="edited"):
        al.load(path)


@pytest.mark.parametrize("protocols", [[NONE], [PROTOCOL, NONE], [PROTOCOL, OTHERS]])
def test_margins_go_with_protocols_that_all_have_them(protocols, rows, path):
    """The protocols of a file are replaced by others of the same space."""
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[KEY])
    releases = [(protocol, "events") for protocol in protocols]
    head["protocols"] = [protocol.document() for protocol in protocols]
    head["sources"] = ["events"] * len(protocols)
    head["card"] = card.release_card(releases, in_clear=False)
    write_sealed(table, path, head=head)
    with pytest.raises(CorruptFileError, match="has margins"):
        al.load(path)
    write_sealed(table.drop_columns("margins"), path, head=head)
    assert np.array_equal(al.load(path).values, rows.values)


@pytest.mark.parametrize("missing", ["total", "spread"])
def test_a_spread_goes_with_people_who_vote(missing, path):
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[KEY])
    plain = al.Protocol(TRANSFORM, al.Votes(), epsilon=1, unit="one patient")
    if missing == "spread":
        head["protocols"] = [plain.document()]
        head["card"] = card.release_card([(plain, "events")], in_clear=False)
        table = table.drop_columns("margins")
    else:
        table = table.drop_columns("total")
    write_sealed(table, path, head=head)
    with pytest.raises(CorruptFileError, match="has a spread"):
        al.load(path)


@pytest.mark.parametrize("source", ["rows", "stream"])
def test_only_tables_are_released_with_margins(source, path):
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[KEY])
    head["sources"] = [source]
    head["card"] = card.release_card([(PROTOCOL, source)], in_clear=False)
    write_sealed(table, path, head=head)
    with pytest.raises(CorruptFileError, match="not of an event table"):
        al.load(path)


def test_the_footer_must_count_them(path):
    """By the footer alone: four of them in each row, each as large as any other number."""
    file = sketch_format.FileHeader(((PROTOCOL, "events"),), (PROTOCOL,), {})
    assert sketch_format.margin_width(file.protocols) == 4
    layout = Layout(16, True, True, spread_width=2, margin_width=4)
    with path.open("rb") as handle:
        groups = read_row_groups(handle)
    sketch_format.check_size(groups, layout, 2**30)
    for totals, spread, width in (
        (True, 2, 3),
        (True, 2, 5),
        (True, 2, 0),
        (False, 2, 4),
        (True, 0, 4),
        (True, 1, 4),
    ):
        with pytest.raises(CorruptFileError, match="column"):
            sketch_format.check_size(groups, Layout(16, True, totals, spread, width), 2**30)
    entries = 3 * (1 + 16 + 3 + 1 + 1 + 2 + 4)
    announced = max(groups[0].unpacked, 16 * entries, 192 * 3)
    sketch_format.check_size(groups, layout, announced)
    with pytest.raises(CorruptFileError, match="unpack"):
        sketch_format.check_size(groups, layout, announced - 1)


# verify


def states(path, **given):
    return {check.subject: check.state for check in al.verify(path, **given).checks}


@pytest.mark.parametrize("protocol", [PROTOCOL, REPLACE, margin_protocol(margin_contribution=1)])
def test_a_true_file_holds(protocol, tmp_path):
    rows_with_margins(protocol, COUNTS).save(tmp_path / "s.parquet")
    assert al.verify(tmp_path / "s.parquet", protocol=protocol).holds
    assert states(tmp_path / "s.parquet")["margins"] == "holds"


def test_margins_that_were_taken_away_are_missed(rows, path):
    table = pq.read_table(path)
    write_sealed(table.drop_columns("margins"), path)
    found = al.verify(path)
    assert [check.subject for check in found.checks if check.state == "fails"] == ["margins"]
    al.concat([rows, rows_with_margins(OTHERS, COUNTS)]).save(path)  # nobody took these away
    assert al.verify(path).holds


@pytest.mark.parametrize("agreed", [NONE, OTHERS], ids=["none", "others"])
def test_other_margins_than_agreed_are_named(agreed, rows, path):
    found = {check.subject: check for check in al.verify(path, protocol=agreed).checks}["agreement"]
    assert found.state == "fails"
    assert "margins" in found.words
    rows_with_margins(OTHERS, COUNTS).save(path)
    assert states(path, protocol=OTHERS)["agreement"] == "holds"
    without_margins(1).save(path)
    found = {check.subject: check for check in al.verify(path, protocol=rows.protocol).checks}["agreement"]
    assert (found.state, "margins" in found.words) == ("fails", True)


@pytest.mark.parametrize("protocol", [PROTOCOL, REPLACE], ids=["add_remove", "replace"])
@pytest.mark.parametrize("less", [{"margins_epsilon": 2}, {"margins_epsilon": Fraction(101, 100)}])
def test_too_little_noise_on_margins_fails(protocol, less):
    """A protocol whose noise was not made for what it says: by half of its ε, or by a hundredth."""
    assert verification.check_calibration(protocol).state == "holds"
    fields = {name: getattr(protocol, name) / factor for name, factor in less.items()}
    weaker = object.__new__(al.Protocol)
    vars(weaker).update(vars(protocol), **fields)
    assert verification.check_calibration(weaker).state == "fails"


# Plausibility

WIDE = {
    "all count": margin_protocol(margins=many_groups(127), margin_contribution=128),
    "few count": margin_protocol(margins=many_groups(127), margin_contribution=2, relation="replace"),
}


def sent(rows, margins):
    known = rows.values, rows.labels, rows.noises, rows.protocols, rows.totals
    return al.Sketches(*known, np.asarray(margins), rows.spread)


def reasons(sketches):
    return {finding.reason for finding in implausible(sketches)}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("people", ["nobody", "some", "everybody"])
def test_true_margins_are_not_flagged(name, people):
    """300 rows each: six cases at a false alarm of 1e-9 each."""
    counts = np.zeros((300, 129), dtype=np.int64)
    if people != "nobody":
        counts[:, :-1] = np.random.default_rng(2).integers(0, 10_000, 300)[:, None]
        if people == "some":
            shares = np.random.default_rng(3).random((300, 129))
            counts = (shares * counts[:, :1]).astype(np.int64)
    assert implausible(rows_with_margins(WIDE[name], counts)) == []


@pytest.mark.parametrize("name", WIDE)
def test_margins_with_too_little_noise_are_flagged(name):
    rows = rows_with_margins(WIDE[name], np.zeros((20, 129)))
    for margins in (rows.margins // 8, np.zeros_like(rows.margins), rows.margins * 1000):
        assert {finding.row for finding in implausible(sent(rows, margins))} == set(range(20))
        assert all(reason.startswith("margins") for reason in reasons(sent(rows, margins)))


def test_numbers_of_people_that_cannot_be_are_flagged(rows):
    margins = rows.margins.copy()
    margins[1, 0] = -10_000 * VOTE
    margins[2, 1] = 10_000 * VOTE
    assert {(finding.row, finding.reason) for finding in implausible(sent(rows, margins))} == {
        (1, plausibility._NO_COUNTS),
        (2, plausibility._NO_COUNTS),
    }


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("people", [0, 1000])
def test_the_bound_on_numbers_of_people_holds_and_is_not_far_off(name, people):
    """At the data that comes nearest to it, and at a limit at which false alarms can be counted: at most 2 of 2,000, 15 once in 10^8."""
    protocol, limit = WIDE[name], 1e-3
    counts = np.full((2000, 129), people)
    counts[:, -1] = 0
    rows = rows_with_margins(protocol, counts)
    totals = rows.totals - people * VOTE // 2  # people with half a vote: their items are more than half of R
    assert plausibility._no_counts(protocol, rows.margins, totals, limit).sum() <= 15
    shifted = rows.margins.copy()
    shifted[:, 3] += (people > 0) * 120 * int(protocol.margin_law.scale) - (people == 0) * 25 * int(
        protocol.margin_law.scale
    )
    shifted[:, 3] += (people > 0) * 80 * int(protocol.spread_law.scale)
    assert plausibility._no_counts(protocol, shifted, totals, limit).mean() > 0.95


@pytest.mark.parametrize("alike", [False, True])
def test_the_bound_on_votes_holds_and_is_not_far_off(alike):
    """Nobody, or people with the same items: the same limit and numbers as for margins."""
    limit, scale = 1e-3, int(PROTOCOL.spread_law.scale)
    counts = np.zeros((2000, 4), dtype=np.int64)
    counts[:, 0] = 1000 * alike
    rows = rows_with_margins(PROTOCOL, counts)
    totals, spread = rows.totals.astype(float), rows.spread.astype(float)
    assert plausibility._no_votes(PROTOCOL, totals, spread, limit).sum() <= 15
    for column, moved in ((0, -30), (1, -30), (1, 30)):
        forged = spread.copy()
        forged[:, column] += moved * scale - (moved < 0) * spread[:, column]
        totals_less = totals - spread[:, 0] + forged[:, 0]
        assert plausibility._no_votes(PROTOCOL, totals_less, forged, limit).mean() > 0.95
    assert plausibility._no_votes(PROTOCOL, spread[:, 0] - 30 * scale, spread, limit).mean() > 0.95


def test_forged_numbers_of_votes_are_flagged(rows):
    spread, known = rows.spread.copy(), (rows.values, rows.labels, rows.noises, rows.protocols)
    spread[1, 1] = 10_000 * VOTE
    forged = al.Sketches(*known, rows.totals, rows.margins, spread)
    assert {(finding.row, finding.reason) for finding in implausible(forged)} == {(1, plausibility._NO_VOTES)}


def test_copies_fractions_and_a_noise_that_is_used_twice_are_flagged():
    rows = rows_with_margins(WIDE["all count"], np.zeros((3, 129)))
    assert {finding.row for finding in implausible(sent(rows, rows.margins[[0, 1, 0]]))} == {0, 2}
    fractions = rows.margins + 0.25 * np.eye(3, 129)[[0, 0, 1]] * [[1], [0], [0]]
    (finding,) = implausible(sent(rows, fractions))
    assert (finding.row, "whole" in finding.reason) == (0, True)
    assert implausible(3 * (rows / 3)) == []
    assert implausible(0.5 * rows) == []
    again = al.concat([rows, sent(rows, rows.margins + np.arange(129))])
    assert "same noise" in "".join(reasons(again))


def test_false_alarms_are_shared_with_margins(monkeypatch):
    limits = []
    monkeypatch.setattr(plausibility, "_reasons", lambda *known: limits.append(known[-1]) or [])
    implausible(rows_with_margins(PROTOCOL, COUNTS))
    assert limits == [FALSE_ALARM / 27] * 2


def test_numbers_at_the_ends_of_their_range_are_flagged_and_harm_nothing(rows):
    ends = np.full((3, 4), -(2**63))
    ends[1], ends[2, :2] = 2**63 - 1, 2**63 - 1
    for margins in (ends, ends.astype(float), 1e15 * ends):
        assert {finding.row for finding in implausible(sent(rows, margins))} == {0, 1, 2}


# The card


def test_facts_of_margins():
    facts = card.release_facts(PROTOCOL, "events")["margins"]
    assert facts == {
        "item_groups": 3,
        "rule": "prefix",
        "contribution": 2,
        "epsilon": "0.2",
        "sensitivity": str(PROTOCOL.margin_sensitivity),
        "scale": PROTOCOL.margin_law.scale.hex(),
    }
    # two of three item groups, and four times the third of a vote that somebody in all of them lacks
    assert float.fromhex(facts["scale"]) / VOTE == pytest.approx(5 * (2 + 4 / 3))
    assert "margins" not in card.release_facts(NONE, "events")


@pytest.mark.parametrize("name", list(card.release_facts(PROTOCOL, "events")["margins"]))
def test_one_changed_fact_of_margins_is_refused(name):
    made = card.release_card([(PROTOCOL, "events")], in_clear=False)
    made["releases"][0]["margins"] = {**made["releases"][0]["margins"], name: "another"}
    with pytest.raises(CorruptFileError, match="release card"):
        card.check_card(made, [(PROTOCOL, "events")])


def test_the_page_says_what_margins_tell_and_promise():
    page = dict(card.officer_page(PROTOCOL, "events"))
    words = page["What the margins tell"]
    for said in (
        "Infections, Injuries",
        "±50, 19 times out of 20",
        "more than 2 item groups",
        "at most 3.34 people",
        "1.23 times",
        "ε = 0.2",
    ):
        assert said in words, said
    assert "δ" not in words
    assert "margins" not in " ".join(dict(card.officer_page(NONE, "events")).values())
    paragraph = card.guarantee_in_words(PROTOCOL, "events")
    assert "0.2 is spent on margins, with discrete Laplace noise of scale 16.6 votes" in paragraph


def test_long_lists_of_item_groups_are_cut_on_the_page():
    words = dict(card.officer_page(margin_protocol(margins=many_groups(500)), "events"))[
        "What the margins tell"
    ]
    assert "00019 and 480 more" in words
    assert "00020" not in words


@pytest.mark.parametrize("scale", [0.01, 0.3, 15.0, 88.0])
def test_margin_of_error(scale):
    law = DiscreteLaplace(VOTE * scale)
    people = card._margin_of_error(law)
    assert law.cdf(np.array([VOTE * people]))[0] >= 0.975
    assert people == 0 or law.cdf(np.array([VOTE * (people - 1.0)]))[0] < 0.975


def test_a_file_of_margins_has_no_number_of_the_data_in_its_head(tmp_path):
    heads = []
    for counts in (COUNTS, np.zeros((3, 4))):
        rows_with_margins(PROTOCOL, counts).save(tmp_path / "s.parquet")
        file = pq.read_schema(tmp_path / "s.parquet").metadata
        heads.append({key: value for key, value in file.items() if key != DIGEST_KEY})
    assert heads[0] == heads[1]
