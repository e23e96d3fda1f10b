"""All pairs in tiles: the same numbers as all at once, in bounded memory; and the pairs that somebody asks for."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest

import armslength as al
from armslength.answers import pairs

PROTOCOL = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare"), epsilon=1)
RNG = np.random.default_rng(1)


def released(rows, protocol=PROTOCOL, largest=20, prefix="r"):
    data = RNG.integers(0, largest + 1, (rows, 300))
    return al.release(protocol, data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(pairs, "ROWS", 7)
    monkeypatch.setattr(pairs, "COLUMNS", 11)
    monkeypatch.setattr(pairs, "SMALL", 1)


def table(*arguments, **known):
    return al.compare(*arguments, **known).read_all()


def by_pair(lines):
    rows = lines.to_pylist()
    found = {
        (row["left"], row["right"]): (row["value"], row["lower"], row["upper"], row["resolved"])
        for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("method", ["asymptotic", "guaranteed"])
def test_tiles_are_exactly_what_all_at_once_is(simultaneous, method):
    sketches = released(40)
    known = {"method": method, "simultaneous": simultaneous}
    whole = by_pair(al.distances(sketches).to_arrow(0.9, **known))
    assert len(list(al.compare(sketches))) > 10
    assert by_pair(table(sketches, level=0.9, **known)) == whole


@pytest.mark.usefixtures("small_tiles")
def test_tiles_of_two_sides_with_different_noises_and_shared_ones():
    left = released(20)
    other = released(
        15,
        al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="compare"), epsilon=3),
        prefix="s",
    )
    right = al.concat([other, left[3:9], left[0:2] + left[5:7]])
    whole = by_pair(al.distances(left, right).to_arrow())
    assert by_pair(table(left, right)) == whole
    assert whole["r4", "r4"] == (0.0, 0.0, 0.0, False)


@pytest.mark.parametrize(
    ("quantity", "function"),
    [
        ("squared-distance", al.squared_distances),
        ("inner-product", al.inner_products),
        ("cosine", al.cosines),
    ],
)
def test_other_quantities(quantity, function):
    sketches = released(12)
    assert by_pair(table(sketches, quantity=quantity)) == by_pair(function(sketches).to_arrow())


def test_few_rows_come_in_the_order_of_distances():
    sketches = released(30)
    whole = al.distances(sketches).to_arrow()
    assert table(sketches).equals(whole.replace_schema_metadata(table(sketches).schema.metadata))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("farthest", [False, True])
def test_top_is_the_sorted_beginning(farthest):
    sketches = released(40)
    whole = al.distances(sketches).to_arrow().to_pylist()
    whole.sort(key=lambda row: row["value"], reverse=farthest)
    assert table(sketches, top=25, farthest=farthest).to_pylist() == whole[:25]
    assert table(sketches, top=10**6).num_rows == 780


@pytest.mark.usefixtures("small_tiles")
def test_equal_values_come_in_the_order_of_their_rows():
    same = al.sketch_in_clear(PROTOCOL, np.zeros((30, 300), dtype=int))
    pairs = [(row["left"], row["right"]) for row in table(same, top=40).to_pylist()]
    assert pairs == [("0", str(other)) for other in range(1, 30)] + [
        ("1", str(other)) for other in range(2, 13)
    ]


def test_the_closest_are_ranked_by_their_squares_though_distances_stop_at_0():
    equal = al.release(PROTOCOL, np.zeros((40, 300), dtype=int), ledger=al.NO_LEDGER)
    squares = al.squared_distances(equal).to_arrow().sort_by("value").to_pylist()
    closest = table(equal, top=20).to_pylist()
    assert {row["value"] for row in closest[:5]} == {0.0}
    assert [row["left"] for row in closest] == [row["left"] for row in squares[:20]]


def test_limits_are_sure_or_possible():
    sketches = al.concat([released(10, largest=large, prefix=f"{large} ") for large in (5, 25, 125)])
    whole = table(sketches).to_pylist()
    limit = float(np.median([row["value"] for row in whole]))
    for known, rule in [
        ({"below": limit}, lambda row: row["upper"] <= limit),
        ({"below": limit, "possibly": True}, lambda row: row["lower"] <= limit),
        ({"above": limit}, lambda row: row["lower"] > limit),
        ({"above": limit, "possibly": True}, lambda row: row["upper"] > limit),
    ]:
        wanted = [row for row in whole if rule(row)]
        assert 0 < len(wanted) < len(whole)
        assert table(sketches, **known).to_pylist() == wanted
    # the chosen of the top are the top of the chosen
    sure = [row for row in whole if row["upper"] <= limit * 1.2]
    best = sorted(sure, key=lambda row: row["value"])[:3]
    assert table(sketches, below=limit * 1.2, top=3).to_pylist() == best


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
    # 200 million pairs: three gigabytes for one number of each. A fortieth of them shows what a tile needs.
    some = islice(al.compare(sketches), 400)
    counted, peak = peak_memory(lambda: sum(batch.num_rows for batch in some))
    assert counted > 5_000_000
    assert peak < 20_000**2 * 8 / 25, f"{peak / 2**20:.0f} MiB"
    # All pairs of fewer rows: a number of each would be 275 MiB.
    (best,), peak = peak_memory(lambda: list(al.compare(sketches[:6000], top=5)))
    assert best.num_rows == 5
    assert peak < 6000**2 * 8 / 7, f"{peak / 2**20:.0f} MiB"


def test_what_is_said_of_it():
    clear = al.sketch_in_clear(PROTOCOL, np.zeros((1, 300), dtype=int), labels=["query"])
    (batch,) = al.compare(released(3), clear, simultaneous=True)
    said = batch.schema.metadata
    assert said[b"note"] == b"data in the clear is part of it: not private"
    assert said[b"simultaneous"] == b"true"
    (batch,) = al.compare(released(3), quantity="cosine")
    assert batch.schema.metadata[b"note"].startswith(b"approximate")


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"quantity": "angle"}, "quantity must be one of"),
        ({"beyond_chance": True}, "needs by='shape'"),
        ({"level": float("nan")}, "level must be"),
        ({"top": 0}, "top must be an integer"),
        ({"farthest": True}, "needs top"),
        ({"possibly": True}, "needs below or above"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(known, message):
    with pytest.raises(al.ParameterError, match=message):
        al.compare(released(3), **known).read_next_batch()


def test_one_row_has_no_pairs_within():
    with pytest.raises(al.ParameterError, match="a must have at least 2 rows, got 1"):
        al.compare(released(1))
    with pytest.raises(al.ParameterError, match=r"a must be al\.Sketches"):
        al.compare(np.zeros((3, 32)))
