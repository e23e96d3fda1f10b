"""All pairs in tiles: the numbers of the estimates at one level, verdicts that follow from them, and pairs that somebody asks for."""

import pickle
import tracemalloc
from dataclasses import replace
from itertools import islice

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import armslength as al
from armslength.answers import pairs
from report_parties import with_margins

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)
RNG = np.random.default_rng(1)
SIMILARITY = ("similarity", "lower", "upper")
DISTANCE = ("distance", "distance_lower", "distance_upper")


def released(rows, protocol=PROTOCOL, largest=20, prefix="r"):
    data = RNG.integers(0, largest + 1, (rows, 300))
    return al.release(protocol, data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


@pytest.fixture(scope="module")
def mixed():
    """Three mixes of four parties each, some of them small."""
    lines = [[0.1, 0.1, 0.3], [0.1, 0.25, 0.3], [0.1, 0.9, 0.3]]
    return with_margins([lines[row % 3] for row in range(12)], people=[1500, 1500, 1500, 400] * 3)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(pairs, "ROWS", 7)
    monkeypatch.setattr(pairs, "COLUMNS", 11)
    monkeypatch.setattr(pairs, "SMALL", 1)


def lines_of(*arguments, **known):
    return al.compare(*arguments, **known).to_arrow().to_pylist()


def by_pair(lines, *names):
    found = {(row["left"], row["right"]): tuple(row[name] for name in names) for row in lines}
    assert len(found) == len(lines)
    return found


def estimated(estimate, **known):
    return by_pair(estimate.to_arrow(**known).to_pylist(), "value", "lower", "upper")


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("each", [False, True])
def test_tiles_of_counts_are_exactly_what_all_at_once_is(each):
    sketches = released(40)
    found = al.compare(sketches, level=0.9, each=each)
    assert found.about == "counts"
    assert len(list(found)) > 10
    whole = estimated(al.distances(sketches), level=0.9, simultaneous=not each)
    assert by_pair(found.to_arrow().to_pylist(), "distance", "lower", "upper") == whole


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("about", ["populations", "people"])
def test_numbers_are_those_of_the_estimates_for_the_same_question(mixed, about, each):
    found = al.compare(mixed, about=about, level=0.9, each=each, keep=True)
    assert len(list(found)) > 2
    known = {"level": 0.9, "simultaneous": not each}
    lines = found.to_arrow().to_pylist()
    for estimate, names in ((al.distances, DISTANCE), (al.similarities, SIMILARITY)):
        whole = estimated(estimate(mixed, about=about), **known)
        ours = by_pair(lines, *names)
        assert ours.keys() == whole.keys()
        for pair, numbers in ours.items():
            assert numbers == pytest.approx(whole[pair], rel=1e-6, abs=1e-6), (pair, names)


def test_without_a_question_the_strongest_is_asked(mixed):
    assert al.compare(mixed).about == "populations"
    assert al.compare(mixed).to_arrow().equals(al.compare(mixed, about="populations").to_arrow())
    of_people, of_populations = (al.compare(mixed, about=about, keep=True) for about in ("people", None))
    assert of_people.note != of_populations.note
    assert of_people.counts()["differ"] >= of_populations.counts()["differ"]


def test_each_pair_by_itself_has_narrower_intervals(mixed):
    together, each = (by_pair(lines_of(mixed, each=each), *DISTANCE) for each in (False, True))
    assert all(together[pair][1] <= each[pair][1] for pair in together)
    assert all(together[pair][2] > each[pair][2] for pair in together)
    assert al.compare(mixed).scope == "together"


@pytest.mark.usefixtures("small_tiles")
def test_tiles_of_two_sides_with_different_noises_and_shared_ones():
    left = released(20)
    other = released(15, al.Protocol(TRANSFORM, epsilon=3), prefix="s")
    right = al.concat([other, left[3:9], left[0:2] + left[5:7]])
    found = by_pair(lines_of(left, right), "distance", "lower", "upper")
    assert found == estimated(al.distances(left, right), simultaneous=True)
    assert found["r4", "r4"] == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("limit", [None, 0.5, 0.9, 0.99, 1.0])
def test_alike_wins_over_differ_at_the_lower_end_of_the_similarity(mixed, limit):
    words = set()
    for row in lines_of(mixed, alike=limit):
        expected = "differ" if row["distance_lower"] > 0 else "inconclusive"
        if row["lower"] >= (limit or 0.95):
            expected = "alike"
        assert row["verdict"] == expected
        words.add((expected, row["distance_lower"] > 0))
    if limit == 0.5:
        assert ("alike", True) in words  # a difference was found, and it is small
    if limit == 1.0:
        assert words == {("differ", True), ("inconclusive", False)}


def test_the_limit_of_counts_is_a_distance_and_the_verdict_holds_at_it():
    """A pair is alike from its upper end on, and whatever the limit, one that surely differs more is not."""
    a, b = released(1, prefix="a"), released(1, prefix="b")
    ((lower, upper),) = by_pair(lines_of(a, b), "lower", "upper").values()
    assert 0 < lower < upper
    limits = {None: "differ", 0: "differ", np.nextafter(upper, 0): "differ", upper: "alike", 1e9: "alike"}
    for limit, verdict in limits.items():
        assert [row["verdict"] for row in lines_of(a, b, alike=limit)] == [verdict]
    same = al.release(PROTOCOL, np.zeros((2, 300), dtype=int), ledger=al.NO_LEDGER)
    assert [row["verdict"] for row in lines_of(same, level=1 - 1e-9)] == ["inconclusive"]
    assert [row["verdict"] for row in lines_of(same, alike=1e9)] == ["alike"]
    assert [row["verdict"] for row in lines_of(a, a, alike=0)] == ["alike"]  # the same release


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("farthest", [False, True])
def test_top_is_the_sorted_beginning(farthest):
    sketches = released(40)
    whole = sorted(lines_of(sketches), key=lambda row: row["distance"], reverse=farthest)
    assert lines_of(sketches, top=25, farthest=farthest) == whole[:25]
    assert len(lines_of(sketches, top=10**6)) == 780


@pytest.mark.usefixtures("small_tiles")
def test_equal_values_come_in_the_order_of_their_rows():
    same = al.sketch_in_clear(PROTOCOL, np.zeros((30, 300), dtype=int))
    found = [(row["left"], row["right"]) for row in lines_of(same, top=40)]
    first, second = ([(str(row), str(other)) for other in range(row + 1, 30)] for row in (0, 1))
    assert found == first + second[:11]


def test_the_closest_are_ranked_by_their_squares_though_distances_stop_at_0():
    equal = al.release(PROTOCOL, np.zeros((40, 300), dtype=int), ledger=al.NO_LEDGER)
    squares = al.squared_distances(equal).to_arrow().sort_by("value").to_pylist()
    closest = lines_of(equal, top=20)
    assert {row["distance"] for row in closest[:5]} == {0.0}
    assert [row["left"] for row in closest] == [row["left"] for row in squares[:20]]


@pytest.mark.parametrize("verdict", ["differ", "alike", "inconclusive"])
def test_pairs_of_a_verdict(mixed, verdict):
    known = {"alike": 0.97, "level": 0.999}
    whole = lines_of(mixed, **known)
    wanted = [row for row in whole if row["verdict"] == verdict]
    assert 3 < len(wanted) < len(whole)
    assert lines_of(mixed, verdict=verdict, **known) == wanted
    assert al.compare(mixed, **known).counts()[verdict] == len(wanted)
    # the chosen of the top are the top of the chosen
    farthest = sorted(wanted, key=lambda row: -row["distance"])[:3]
    assert lines_of(mixed, verdict=verdict, top=3, farthest=True, **known) == farthest


def test_no_pairs_are_a_table_without_lines():
    for known in ({}, {"top": 3}):
        found = al.compare(released(3), verdict="alike", **known)
        assert found.to_arrow().num_rows == 0
        assert found.to_arrow().schema.equals(found.schema)
        assert sum(found.counts().values()) == 0
        assert str(found)
        assert repr(found)


def test_false_discoveries_are_at_a_level_between_each_and_together(mixed):
    found = {
        name: by_pair(lines_of(mixed, level=0.999, **known), *DISTANCE)
        for name, known in {"together": {}, "fdr": {"fdr": True}, "each": {"each": True}}.items()
    }
    for pair, (value, lower, upper) in found["fdr"].items():
        assert value == found["together"][pair][0]
        assert found["together"][pair][1] <= lower <= found["each"][pair][1]
        assert found["each"][pair][2] <= upper <= found["together"][pair][2]
    assert found["fdr"] != found["together"]
    # Benjamini and Yekutieli: the intervals are at the level for all pairs together, times the number of those that differ
    differ = sum(lower > 0 for _, lower, _ in found["fdr"].values())
    level = 1 - 0.001 * differ / 66
    assert found["fdr"] == {
        pair: pytest.approx(ends, rel=1e-9)
        for pair, ends in estimated(al.distances(mixed, about="populations"), level=level).items()
    }


def peak_memory(work):
    tracemalloc.start()
    try:
        found = work()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_pairs():
    protocol = al.Protocol(al.SparseJL(input_dim=50, sketch_dim=4, sparsity=1, seed="memory"), epsilon=1)
    sketches = al.release(protocol, RNG.integers(0, 9, (20_000, 50)), ledger=al.NO_LEDGER)
    list(al.compare(sketches[:300]))  # tables of quantiles, which are kept
    # 200 million pairs: three gigabytes for one number of each. A few tiles show what one needs.
    most = 20_000**2 * 8 / 25
    found = al.compare(sketches)
    assert found.pairs == 20_000 * 19_999 // 2
    counted, peak = peak_memory(lambda: sum(batch.num_rows for batch in islice(found, 60)))
    assert counted > 800_000
    assert peak < most, f"{peak / 2**20:.0f} MiB"
    # What a notebook shows needs the first tile only.
    text, peak = peak_memory(found._repr_html_)
    assert f"{found.pairs - 10:,} more rows" in text
    assert peak < most, f"{peak / 2**20:.0f} MiB"
    # All pairs of fewer rows: a number of each would be 275 MiB.
    (best,), peak = peak_memory(lambda: list(al.compare(sketches[:6000], top=5)))
    assert best.num_rows == 5
    assert peak < 6000**2 * 8 / 7, f"{peak / 2**20:.0f} MiB"


def _first_only(comparison):
    yield from comparison
    raise AssertionError("more than the first pairs were asked for")


def test_what_is_counted_of_very_many_pairs_is_counted_in_batches(mixed, monkeypatch):
    few = al.compare(mixed)
    counts, head = few.counts(), repr(few)
    monkeypatch.setattr("armslength.answers.compare._MOST_KEPT", 10)
    many = al.compare(mixed)
    assert many.counts() == counts
    assert str(counts["differ"]) in many.summary()
    assert many.most_different() is None
    assert repr(many).splitlines()[1:] == head.splitlines()[2:]  # without the summary
    begun = replace(many, make_batches=lambda: _first_only(few))
    assert repr(begun) == repr(many)
    differ = al.compare(mixed, verdict="differ")
    assert len(differ._head(3)[0]) == 3
    assert len(al.compare(mixed, top=2)._head(3)[0]) == 2


def test_other_libraries_read_it_as_a_stream(mixed):
    found = al.compare(mixed)
    table = found.to_arrow()
    for read in (pa.table(found), pa.RecordBatchReader.from_stream(found).read_all()):
        assert read.equals(table, check_metadata=True)
    frame = pl.DataFrame(found)
    assert frame.columns == table.column_names
    assert frame.rows() == pl.DataFrame(table).rows()
    metadata = {key.decode(): value.decode() for key, value in found.schema.metadata.items()}
    assert metadata == {"about": "populations", "level": "0.95", "scope": "together", "note": found.note}


def test_a_comparison_can_be_sent_to_another_process(mixed):
    found = al.compare(mixed, level=0.9, verdict="differ", top=4, farthest=True)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301  # our own bytes
    assert again.to_arrow().equals(found.to_arrow(), check_metadata=True)
    assert str(again) == str(found)


def test_a_party_without_people_is_inconclusive_and_everything_is_shown(mixed):
    """Where it is asked about by name: pairs within one side are without it, even if small parties are kept."""
    nobody = mixed[3] - mixed[4]
    for known in ({}, {"keep": True}):
        within = al.compare(al.concat([mixed[:3], nobody]), about="people", **known)
        assert within.left == mixed.labels[:3]
        assert within.note.count(nobody.labels[0]) == 1
    found = al.compare(mixed[:3], nobody, about="people")
    lines = found.to_arrow().to_pylist()
    ends = [(row["verdict"], row["distance_lower"], row["distance_upper"]) for row in lines]
    assert ends == [("inconclusive", 0.0, np.inf)] * 3
    assert [(row["similarity"], row["distance"]) for row in lines] == [(None, None)] * 3
    for text in (str(found), repr(found), found._repr_html_()):
        assert "nan" not in text.lower().replace("inconclusive", "")


def test_who_is_in_all_pairs_that_are_inconclusive_is_named():
    rows = with_margins([[0.1, 0.1, 0.3], [0.1, 0.9, 0.3]] * 2 + [[0.1, 0.1, 0.3]], people=[2000] * 4 + [60])
    found = al.compare(rows, alike=0.8, keep=True)
    assert found.counts()["inconclusive"] == 4
    assert "ward 5" in found.summary()
    assert found.most_different() not in (None, ("ward 1", "ward 3"))
    assert "ward" not in al.compare(rows[:4], alike=0.8).summary()


def test_data_in_the_clear_is_noted():
    clear = al.sketch_in_clear(PROTOCOL, np.zeros((1, 300), dtype=int), labels=["query"])
    found = al.compare(released(3), clear)
    assert "not private" in found.note
    assert found.schema.metadata[b"note"].decode() == found.note
    assert "not private" in str(found)
    assert not al.compare(released(3)).note


@pytest.mark.parametrize(
    ("known", "arguments"),
    [
        ({"about": "size"}, {"about"}),
        ({"about": "populations"}, {"about"}),
        ({"about": "people"}, {"about"}),
        ({"level": float("nan")}, {"level"}),
        ({"level": 1.0}, {"level"}),
        ({"top": 0}, {"top"}),
        ({"farthest": True}, {"farthest", "top"}),
        ({"fdr": True, "each": True}, {"fdr", "each"}),
        ({"verdict": "similar"}, {"verdict"}),
        ({"alike": -1}, {"alike"}),
        ({"alike": float("nan")}, {"alike"}),
        ({"alike": "0.9"}, {"alike"}),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(known, arguments):
    with pytest.raises(al.ParameterError) as caught:
        al.compare(released(3), **known)
    assert set(caught.value.arguments) == arguments


@pytest.mark.parametrize("alike", [0, 1.01, -0.5, float("inf")])
def test_a_similarity_is_at_most_1(mixed, alike):
    with pytest.raises(al.ParameterError, match="alike"):
        al.compare(mixed, alike=alike)


def test_one_row_has_no_pairs_within():
    with pytest.raises(al.ParameterError, match="at least 2 rows, got 1"):
        al.compare(released(1))
    with pytest.raises(al.ParameterError, match=r"al\.Sketches"):
        al.compare(np.zeros((3, 32)))
    elsewhere = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="other"), epsilon=1)
    with pytest.raises(al.IncompatibleSketchesError):
        al.compare(released(2), released(2, elsewhere))
