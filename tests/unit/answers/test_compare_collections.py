"""Comparing rows that are in files: the same pairs and the same numbers as in memory, and labels from the blocks."""

import numpy as np
import pytest

import armslength as al
from armslength.answers import pairs
from armslength.sketches import sketch_format
from armslength.sketches.sketch_file import Collection

TRANSFORM = al.SparseJL(input_dim=50, sketch_dim=16, sparsity=1, seed="compare collections")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, total_share="0.2")
OTHER = al.Protocol(TRANSFORM, epsilon=3, total_share="0.2")
RNG = np.random.default_rng(8)


def released(rows, protocol, prefix):
    data = RNG.integers(0, 50, (rows, 50))
    return protocol.release(data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same rows in memory and in files with small row groups, the second half under another noise."""
    folder = tmp_path_factory.mktemp("rows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch_format, "_GROUP_ROWS", 6)
        released(33, PROTOCOL, "a").save(folder / "a.parquet")
        released(18, OTHER, "b").save(folder / "b.parquet")
        released(1, OTHER, "c").save(folder / "c.parquet")
    collection = al.open_collection(folder)
    return collection, collection.to_sketches()


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(pairs, "ROWS", 7)
    monkeypatch.setattr(pairs, "COLUMNS", 11)
    monkeypatch.setattr(pairs, "LEFT_ROWS", 17)
    monkeypatch.setattr(pairs, "SMALL", 1)


def lines(*arguments, **known):
    table = al.compare(*arguments, **known).read_all()
    return table.to_pylist(), table.schema.metadata


def in_order(rows):
    return sorted(rows, key=lambda row: (row["left"], row["right"]))


KNOWN = [
    {},
    {"quantity": "squared-distance", "simultaneous": True, "level": 0.9},
    {"method": "guaranteed", "above": 100.0},
    {"below": 200.0, "possibly": True},
]


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_pairs_within(known, both):
    collection, sketches = both
    found, said = lines(collection, **known)
    expected, same = lines(sketches, **known)
    assert in_order(found) == in_order(expected)
    assert len(found) == len({(row["left"], row["right"]) for row in found}) > 0
    assert said == same


@pytest.mark.parametrize("known", KNOWN[::3], ids=str)
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 0)], ids=["files", "left", "right"])
def test_two_sides(left, right, known, both):
    sides = both[left], both[right]
    found, said = lines(*sides, **known)
    expected, same = lines(both[1], both[1], **known)
    assert in_order(found) == in_order(expected)
    assert said == same


def close(found, expected):
    names = ("value", "lower", "upper")
    return all(
        (mine["left"], mine["right"]) == (theirs["left"], theirs["right"])
        and np.allclose([mine[n] for n in names], [theirs[n] for n in names], rtol=1e-9)
        for mine, theirs in zip(in_order(found), in_order(expected), strict=True)
    )


def test_inner_products(both):
    collection, sketches = both
    known = {"quantity": "inner-product"}
    assert close(lines(collection, **known)[0], lines(sketches, **known)[0])


def test_shapes(both, monkeypatch):
    monkeypatch.setattr(pairs, "COLUMNS", 40)
    collection, sketches = both
    few = al.open_collection([file.path for file in collection.files[1:]])
    found, said = lines(sketches[:1], few, by="shape")
    assert close(found, lines(sketches[:1], sketches[33:], by="shape")[0])
    assert len(found) == 19
    assert said[b"note"].startswith(b"about the mixes")


@pytest.mark.parametrize("farthest", [False, True])
def test_the_top_comes_in_order(farthest, both):
    collection, sketches = both
    for arguments in ((), (sketches,), (collection,)):
        known = {"top": 30, "farthest": farthest}
        against = tuple(sketches for _ in arguments)
        assert lines(collection, *arguments, **known)[0] == lines(sketches, *against, **known)[0]


def test_equal_values_come_in_the_order_of_their_rows(tmp_path):
    zeros = np.zeros((15, 50), dtype=int)
    for name in "ab":
        labels = [f"{name}{row}" for row in range(15)]
        al.sketch_in_clear(PROTOCOL, zeros, labels=labels).save(tmp_path / f"{name}.parquet")
    collection = al.open_collection(tmp_path)
    found, said = lines(collection, top=40)
    names = list(collection.each_label())
    pairs = [(row["left"], row["right"]) for row in found]
    assert pairs == [(names[0], other) for other in names[1:]] + [(names[1], other) for other in names[2:13]]
    assert b"in the clear" in said[b"note"]


def test_few_rows_come_in_their_order(both, monkeypatch):
    monkeypatch.setattr(pairs, "SMALL", 1024)
    collection, sketches = both
    assert lines(collection) == lines(sketches)


def test_each_block_is_read_as_often_as_it_must_be(both, monkeypatch):
    collection, sketches = both
    asked = []
    reading = Collection.blocks
    monkeypatch.setattr(
        Collection,
        "blocks",
        lambda self, rows, first=0: asked.append((rows, first)) or reading(self, rows, first),
    )
    lines(sketches, collection)
    assert asked == [(11, 0)]  # what is in memory meets every block, and each is read once
    asked.clear()
    lines(collection)
    assert asked == [(17, 0), (11, 17), (11, 34), (11, 51), (11, 52)]


def test_sides_that_cannot_be_compared(both, tmp_path):
    collection, _ = both
    elsewhere = al.Protocol(al.SparseJL(input_dim=50, sketch_dim=16, sparsity=1, seed="elsewhere"), epsilon=1)
    released(1, elsewhere, "e").save(tmp_path / "e.parquet")
    one = al.open_collection(tmp_path)
    with pytest.raises(al.IncompatibleSketchesError, match="seed"):
        al.compare(collection, one)
    with pytest.raises(al.ParameterError, match="a must have at least 2 rows, got 1"):
        al.compare(one)
    with pytest.raises(al.ParameterError, match=r"b must be al\.Sketches"):
        al.compare(collection, np.zeros((3, 16)))
