"""Nearest rows: the ranking of all pairs at once, whatever the tiles and the noises are, and what could truly be nearest."""

import numpy as np
import pytest

import armslength as al
from armslength.answers import pairs
from report_parties import with_margins

TRANSFORM = al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="nearest")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1)
RNG = np.random.default_rng(2)


def released(rows, protocol=PROTOCOL, largest=20, prefix="r"):
    data = RNG.integers(0, largest + 1, (rows, 300))
    return al.release(protocol, data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


@pytest.fixture(params=[False, True], ids=["one tile", "many tiles"])
def tiles(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(pairs, "SMALL", 1)
        monkeypatch.setattr(pairs, "ROWS", 4)
        monkeypatch.setattr(pairs, "COLUMNS", 5)


def naive(queries, index, count, level, *, within=False, each=False):
    """(indices, lower, upper, possible, candidates) from all pairs at once."""
    estimate = al.squared_distances(queries, index)
    others = len(index) - within
    # Bonferroni by hand: the two-sided level of one among so many pairs, each of them once
    pairs = others * (1 if each else len(queries)) / (2 if within and not each else 1)
    lower, upper = al.distances(queries, index).interval(1 - (1 - level) / pairs)
    rows = []
    for row, values in enumerate(estimate.value):
        allowed = [column for column in range(len(index)) if not (within and column == row)]
        order = sorted(allowed, key=lambda column: (values[column], column))
        possible = {c for c in allowed if lower[row, c] <= min(upper[row, d] for d in allowed)}
        rows.append((order[:count], lower[row], upper[row], possible, min(len(possible), count + 1)))
    return rows


def check(found, expected):
    for row, (order, lower, upper, possible, candidates) in enumerate(expected):
        assert found.indices[row].tolist() == order
        np.testing.assert_allclose(found.distance[row, :, 1], lower[order], rtol=1e-9)
        np.testing.assert_allclose(found.distance[row, :, 2], upper[order], rtol=1e-9)
        assert (found.verdict[row] == np.where(lower[order] > 0, "differ", "inconclusive")).all()
        assert found.possible[row].tolist() == [column in possible for column in order]
        assert found.candidates[row] == candidates


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(("count", "each"), [(1, False), (3, True), (40, False)])
def test_against_an_index_of_different_noises(count, each):
    queries = released(9)
    index = al.concat(
        [
            released(8, prefix="a"),
            released(8, al.Protocol(TRANSFORM, epsilon="0.05"), prefix="b"),
            released(3) * 0.5,
        ]
    )
    found = al.nearest(queries, index, count=count, level=0.8, each=each)
    check(found, naive(queries, index, count, 0.8, each=each))
    assert (found.about, found.each, found.similarity) == ("counts", each, None)
    assert found.indices.shape == (9, min(count, 19))
    assert found.labels[4][0] == index.labels[found.indices[4, 0]]
    value = al.distances(queries, index).value
    assert np.array_equal(found.distance[..., 0], np.take_along_axis(value, found.indices, axis=1))


def test_noise_is_taken_away_before_ranking():
    # A very noisy row, 14 away in every coordinate, is as near as its noise alone would have it; a precise one, 5 away, is not.
    query, precise = released(1), released(1)
    noisy = released(1, al.Protocol(TRANSFORM, epsilon="0.1"))
    noisy, precise = (
        al.Sketches(query.values + away, [name], row.noises, row.protocols)
        for row, away, name in ((noisy, 14, "noisy"), (precise, 5, "precise"))
    )
    found = al.nearest(query, al.concat([precise, noisy]))
    assert found.labels == (("noisy", "precise"),)
    assert found.distance[0, 0, 0] == 0
    assert found.distance[0, 1, 0] > 0


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("each", [False, True])
def test_within_one_set_nobody_is_its_own_neighbor(each):
    sketches = released(14, largest=3)
    found = al.nearest(sketches, count=5, level=0.9, each=each)
    check(found, naive(sketches, sketches, 5, 0.9, within=True, each=each))
    assert not (found.indices == np.arange(14)[:, None]).any()
    assert al.nearest(sketches, count=50).indices.shape == (14, 13)


def test_a_clear_neighbor_is_sure_and_said_so():
    x = np.zeros((4, 300), dtype=int)
    x[1, :] = 1
    x[2:, :150] = 500
    x[3, 200:] = 500
    sketches = al.release(PROTOCOL, x, labels=["a", "b", "c", "d"], ledger=al.NO_LEDGER)
    found = al.nearest(sketches, count=2)
    assert found.labels[0][0] == "b"
    assert found.surely_nearest[0]
    assert found.candidates[0] == 1
    assert found.verdict[0, 1] == "differ"
    assert found.possible[0].tolist() == [True, False]
    assert found.best_rank[0].tolist() == [1, 2]
    assert found.worst_rank[0, 0] == 1


def test_equal_parties_cannot_be_told_and_are_said_so():
    sketches = al.release(PROTOCOL, np.zeros((9, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.nearest(sketches, count=2, level=0.99999999)
    assert not found.surely_nearest.any()
    assert found.possible.all()
    assert (found.verdict == "inconclusive").all()
    assert str(found).count("could be nearest") == 18


def test_lines_and_notes():
    clear = al.sketch_in_clear(PROTOCOL, np.zeros((1, 300), dtype=int), labels=["query"])
    found = al.nearest(clear, released(5), count=3)
    lines = found.to_arrow().to_pylist()
    assert [line["rank"] for line in lines] == [1, 2, 3]
    assert lines[0]["query"] == "query"
    assert lines[1]["label"] == found.labels[0][1]
    assert [line["best_rank"] for line in lines] == found.best_rank[0].tolist()
    assert [line["worst_rank"] for line in lines] == found.worst_rank[0].tolist()
    assert "not private" in found.note
    assert str(found).endswith(found.note)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"count": 0}, "count must be an integer"),
        ({"level": 1.0}, "level must"),
        ({"index": "file.parquet"}, r"index must be al\.Sketches"),
        ({"about": "size"}, "about"),
        ({"about": "people"}, "about"),
    ],
)
def test_wrong_arguments_are_refused(known, message):
    with pytest.raises(al.ParameterError, match=message):
        al.nearest(released(3), **known)


def test_one_row_alone_has_no_neighbor():
    with pytest.raises(al.ParameterError, match="must have at least 2 rows"):
        al.nearest(released(1))
    other = al.Protocol(al.SparseJL(input_dim=300, sketch_dim=32, sparsity=1, seed="elsewhere"), epsilon=1)
    with pytest.raises(al.IncompatibleSketchesError, match="seed"):
        al.nearest(released(1), released(2, other))


@pytest.mark.parametrize("about", ["counts", "people"])
@pytest.mark.parametrize("clear_first", [False, True])
def test_rows_in_the_clear_are_noted_wherever_they_are(about, clear_first):
    rule = al.Protocol(TRANSFORM, al.Arrays(total_share="0.5"), epsilon=1)
    clear = al.sketch_in_clear(rule, np.ones((3, 300), dtype=int), labels=["c1", "c2", "c3"])
    noisy = released(5, rule)
    index = al.concat([clear, noisy] if clear_first else [noisy, clear])
    note = al.nearest(released(2, rule), index, count=1, about=about).note
    assert note.count("not private") == 1
    assert "private" not in al.nearest(released(2, rule), noisy, count=1, about=about).note


@pytest.mark.parametrize("about", ["counts", "people"])
def test_numbers_too_large_to_measure_are_refused(about):
    rule = al.Protocol(TRANSFORM, al.Arrays(total_share="0.5"), epsilon=1)
    rows, large = released(3, rule), released(3, rule)
    for _ in range(5):
        large = large * 2.0**59
    for queries, index, name in ((rows, large, "index"), (large, rows, "queries"), (large, None, "queries")):
        with pytest.raises(al.ParameterError, match=f"{name} has numbers"):
            al.nearest(queries, index, count=1, about=about)


def test_similarities_are_those_of_the_estimates():
    sketches = with_margins(
        [[0.1, 0.1, 0.3], [0.1, 0.2, 0.3], [0.1, 0.9, 0.3], [0.1, 0.12, 0.3]], people=[2000, 900, 900, 2000]
    )
    found = al.nearest(sketches, count=3, level=0.9)
    assert found.about == "populations"
    for estimate, numbers in ((al.similarities, found.similarity), (al.distances, found.distance)):
        whole = estimate(sketches)
        ends = np.stack([whole.value, *whole.interval(0.9, simultaneous=True)], axis=-1)
        expected = np.take_along_axis(ends, found.indices[..., None], axis=1)
        np.testing.assert_allclose(numbers, expected, rtol=1e-6, atol=1e-6)
    least = found.similarity[..., 1]
    expected = np.where(found.distance[..., 1] > 0, "differ", "inconclusive")
    assert (found.verdict == np.where(least >= 0.95, "alike", expected)).all()
    assert {"differ", "alike"} <= set(found.verdict.ravel().tolist())
    table = found.to_arrow()
    assert table["similarity"].to_pylist() == found.similarity[..., 0].ravel().tolist()
    assert table["verdict"].to_pylist() == found.verdict.ravel().tolist()
