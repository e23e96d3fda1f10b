"""Exact search: the same answers as from all pairs at once, to the last bit, whatever the numbers are."""

import os

import numpy as np
import pytest

import armslength as al
from armslength.answers import candidates, nearest
from armslength.estimates import distances
from armslength.estimates.intervals import Level
from armslength.sketches.noises import Noises

RNG = np.random.default_rng(5)
HUGE = 2**62


def protocol(coordinates, epsilon="1", **known):
    return al.Protocol(
        al.SparseJL(input_dim=4096, sketch_dim=coordinates, sparsity=1, seed="exact search"),
        epsilon=epsilon,
        **known,
    )


def made(values, rule=None, prefix="r"):
    """Sketches with these numbers, whatever they are."""
    numbers = np.ascontiguousarray(values, dtype=np.int64)
    noises = Noises.fresh(os.urandom(16 * len(numbers)), rule or protocol(numbers.shape[1]), "rows")
    labels = [f"{prefix}{row}" for row in range(len(numbers))]
    return al.Sketches(numbers, labels, noises, [noises.releases[0][0]])


def drawn(rows, coordinates=17, scale=40.0, **known):
    return made(np.rint(RNG.normal(0, scale, (rows, coordinates))), **known)


def check(queries, index, count=4, level=0.9, **known):
    """Compares with every pair, measured one by one; returns what was found."""
    within = index is None
    found = al.nearest(queries, index, count, level, **known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            distances, "_products_will_do", lambda *_: False
        )  # pair by pair, as exact search measures
        estimate = al.squared_distances(queries, queries if within else index)
    others = estimate.value.shape[1] - within
    count = min(count, others)
    lower, upper = estimate.rule.interval(Level.of(level, known.get("method", "asymptotic"), others))
    for row, value in enumerate(estimate.value):
        rest = np.delete(np.arange(len(value)), [row] if within else [])
        order = rest[np.lexsort((rest, value[rest]))][:count]
        assert found.indices[row].tolist() == order.tolist()
        np.testing.assert_array_equal(found.value[row], np.sqrt(np.maximum(value[order], 0)))
        np.testing.assert_array_equal(found.lower[row], np.sqrt(lower[row, order]))
        np.testing.assert_array_equal(found.upper[row], np.sqrt(upper[row, order]))
        least = upper[row, rest].min()
        assert found.possible[row].tolist() == (lower[row, order] <= least).tolist()
        assert found.candidates[row] == min((lower[row, rest] <= least).sum(), count + 1)
        nearer = [(upper[row, order] < lower[row, answer]).sum() for answer in order]
        possibly = [(lower[row, rest] <= upper[row, answer]).sum() for answer in order]
        assert found.best_rank[row].tolist() == [1 + each for each in nearer]
        assert found.worst_rank[row].tolist() == np.minimum(possibly, count + 1).tolist()
    return found


@pytest.fixture
def no_tiles(monkeypatch):
    def refuse(*_):
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(nearest, "_search_tiles", refuse)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(candidates, "ROWS", 70)
    monkeypatch.setattr(nearest, "_ROWS", 150)


FAR = np.full((400, 17), 2**24)
SIDES = {
    "plain": lambda: (drawn(20), drawn(900)),
    "one query": lambda: (drawn(1), drawn(100)),
    "one row": lambda: (drawn(9), drawn(1)),
    "ties": lambda: (drawn(20, scale=0.5), drawn(900, scale=0.5)),
    "all equal": lambda: (made(np.zeros((13, 17))), made(np.zeros((300, 17)))),
    "equal to each other": lambda: (made(np.full((13, 17), 9)), made(np.full((300, 17), -7))),
    "all 64 bits": lambda: (
        made(RNG.integers(-HUGE, HUGE, (8, 17)) * 2),
        made(RNG.integers(-HUGE, HUGE, (400, 17)) * 2),
    ),
    "around the wrap": lambda: (
        made((RNG.integers(0, 99, (8, 17), dtype=np.uint64) + 2**63 - 50).view(np.int64)),
        made((RNG.integers(0, 99, (400, 17), dtype=np.uint64) + 2**63 - 50).view(np.int64)),
    ),
    "two far groups": lambda: (
        made(RNG.integers(-9, 9, (8, 17)) + HUGE // 4 * (-1) ** np.arange(8)[:, None]),
        made(RNG.integers(-9, 9, (400, 17)) + HUGE // 4 * (-1) ** np.arange(400)[:, None]),
    ),
    "far from the queries": lambda: (drawn(8, scale=2.0), made(FAR + RNG.integers(-1, 2, FAR.shape))),
    "lengths of all sizes": lambda: (
        made(np.rint(RNG.normal(0, 1, (12, 17)) * 2.0 ** np.arange(0, 60, 5)[:, None])),
        made(np.rint(RNG.normal(0, 1, (600, 17)) * 2.0 ** (np.arange(600) % 60)[:, None])),
    ),
    "one large coordinate": lambda: (
        made(np.rint(RNG.normal(0, 3, (8, 17))) + 10**6 * np.eye(17)[:8]),
        made(np.rint(RNG.normal(0, 3, (400, 17))) + 10**6 * np.eye(17)[np.arange(400) % 17]),
    ),
    "fractions": lambda: (drawn(9) * 0.3, drawn(400) * 0.7),
    "whole and fractions": lambda: (drawn(9), drawn(400) * 0.7),
    # Distances that differ by one or not at all, beside lengths of which float32 and float64 lose that.
    "near ties far out": lambda: (
        made(2**20 + RNG.integers(0, 2, (8, 17)) - 2**21 * (np.arange(8) % 2)[:, None]),
        made(2**20 + RNG.integers(0, 2, (600, 17)) - 2**21 * (np.arange(600) % 2)[:, None]),
    ),
    "near ties very far out": lambda: (
        made(2**40 + RNG.integers(0, 2, (8, 17)) - 2**41 * (np.arange(8) % 2)[:, None]),
        made(2**40 + RNG.integers(0, 2, (600, 17)) - 2**41 * (np.arange(600) % 2)[:, None]),
    ),
    "ties of different rows": lambda: (
        made(np.zeros((5, 17))),
        made(RNG.permuted(np.tile(np.arange(17) * 10**5, (500, 1)), axis=1) * RNG.choice([-1, 1], (500, 17))),
    ),
    "values that cancel": lambda: (
        made(RNG.integers(-3, 4, (8, 17)) + RNG.integers(-HUGE, HUGE, 17) // 4),
        made(RNG.integers(-3, 4, (400, 17)) + RNG.integers(-HUGE, HUGE, (2, 17))[np.arange(400) % 2] // 4),
    ),
    "many equal rows": lambda: (
        drawn(8),
        made(np.rint(RNG.normal(0, 40, (6, 17)))[RNG.integers(0, 6, 700)]),
    ),
    "a first query far away": lambda: (
        made(np.rint(RNG.normal(0, 40, (9, 17))) + 2**55 * (np.arange(9) == 0)[:, None]),
        made(np.rint(RNG.normal(0, 40, (400, 17))) + 2**55 * (np.arange(400) % 50 == 0)[:, None]),
    ),
    "nearer and nearer": lambda: (
        made(np.zeros((3, 17))),
        made(np.arange(900, 0, -1)[:, None] + np.zeros((1, 17))),
    ),
    "one coordinate": lambda: (drawn(9, 1), drawn(200, 1)),
    "two coordinates": lambda: (drawn(9, 2), drawn(200, 2)),
    "many coordinates": lambda: (drawn(7, 1500), drawn(100, 1500)),
    "three noises": lambda: (
        al.concat([drawn(9), drawn(8, rule=protocol(17, "0.3"), prefix="q")]),
        al.concat([drawn(150), drawn(120, rule=protocol(17, "0.2"), scale=200.0, prefix="b"), drawn(90) * 3]),
    ),
}


@pytest.mark.usefixtures("no_tiles", "small_parts")
@pytest.mark.parametrize("name", SIDES)
def test_the_same_as_from_all_pairs(name):
    check(*SIDES[name]())


@pytest.mark.usefixtures("no_tiles", "small_parts")
@pytest.mark.parametrize("seed", range(12))
def test_the_same_as_from_all_pairs_whatever_is_drawn(seed):
    # Clusters of any size at any distance, of several noises, some rows equal, some in the queries too.
    generator = np.random.default_rng(seed)
    coordinates = int(generator.integers(1, 30))
    centers = generator.integers(-HUGE, HUGE, (4, coordinates)) >> generator.integers(0, 62, (4, 1))
    sides = []
    for rows in (9, 250):
        spread = generator.integers(-HUGE, HUGE, (rows, coordinates)) >> generator.integers(50, 63)
        values = centers[generator.integers(0, 4, rows)] + spread[generator.integers(0, rows, rows)]
        rules = [protocol(coordinates, epsilon) for epsilon in ("1", "0.1")]
        halves = (made(part, rule) for part, rule in zip(np.array_split(values, 2), rules, strict=True))
        sides.append(al.concat([half.rows(range(len(half))) for half in halves]))
    check(*sides, count=int(generator.integers(1, 20)))
    check(al.concat([sides[0], sides[1][::50]]), sides[1], 5)


@pytest.mark.usefixtures("no_tiles", "small_parts")
@pytest.mark.parametrize("name", ["plain", "near ties far out"])
def test_float64_where_float32_tells_too_little_apart(monkeypatch, name):
    kinds, floats = set(), candidates.Origin.float_rows

    def watched(self, values, kind):
        kinds.add(kind)
        return floats(self, values, kind)

    monkeypatch.setattr(candidates.Origin, "float_rows", watched)
    check(*SIDES[name]())
    assert kinds == ({np.float32} if name == "plain" else {np.float32, np.float64})


@pytest.mark.usefixtures("no_tiles")
@pytest.mark.parametrize("count", [1, 2, 33, 299, 300, 1000])
def test_any_number_of_answers(count):
    check(drawn(5), drawn(300), count)
    check(drawn(40, scale=1.0), None, count)


@pytest.mark.usefixtures("no_tiles", "small_parts")
def test_guaranteed_intervals_and_within():
    check(drawn(7), drawn(200), method="guaranteed")
    check(drawn(200), None, 6)


@pytest.mark.usefixtures("no_tiles", "small_parts")
def test_rows_that_share_a_noise_with_a_query():
    index = drawn(160)
    queries = al.concat([index[5], drawn(3, prefix="q"), index[140] - index[20], index[5] + index[159]])
    check(queries, index, 5)
    check(index[7:12] * 2, al.concat([index, drawn(40, prefix="q")]), 5)
    check(al.concat([index[:30], index[3] + index[4], index[3] * 2]), None, 5)


@pytest.mark.usefixtures("small_parts")
def test_when_everything_shares_a_noise():
    index = drawn(160)
    changes = index[1:] - index[0]
    check(changes[:80], changes, 5)
    check(changes[:80], None, 5)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("most", [0, 1, 2])
def test_more_noises_than_the_search_keeps_apart(monkeypatch, most):
    monkeypatch.setattr(candidates, "MOST_NOISES", most)
    check(*SIDES["three noises"]())
    check(drawn(170), None)


class Folder(al.Collection):
    """Rows that are read when they are needed, and never all at once."""

    def __init__(self, parts):
        self._parts = parts
        self.protocols = tuple(p for part in parts for p in part.protocols)

    def __len__(self):
        return sum(len(part) for part in self._parts)

    def blocks(self, rows):
        assert rows > 0
        for part in self._parts:
            yield from part.blocks(rows)

    def rows(self, numbers):
        return al.concat(self._parts).rows(numbers)


@pytest.mark.usefixtures("small_parts")
def test_an_index_that_is_read_block_by_block():
    parts = [drawn(170), drawn(30, prefix="s") * 0.5, drawn(100, prefix="t")]
    clear = al.sketch_in_clear(protocol(17), np.ones((1, 4096), dtype=int), labels=["clear"])
    queries, folder = drawn(9), Folder([*parts, clear])
    found, expected = (al.nearest(queries, index, 7) for index in (folder, al.concat([*parts, clear])))
    assert found.labels == expected.labels
    assert found.note == expected.note != ""
    for name in ("indices", "value", "lower", "upper", "candidates", "worst_rank"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    with pytest.raises(al.ParameterError, match="at least 1 row"):
        al.nearest(queries, Folder([parts[0][:0]]))


def test_work_is_reported_as_it_is_done(monkeypatch):
    done = []
    monkeypatch.setattr(candidates, "ROWS", 64)
    search = candidates.Candidates(drawn(5), 3, Level.of(0.9, "asymptotic", 200), within=False)
    assert search.search(drawn(200), 0, nearest.Shortlist(5, 3), done.append)
    assert sum(done) == 5 * 200
    assert max(done) == 5 * 64


def in_clear(rows, prefix="c"):
    data = RNG.integers(0, 9, (rows, 4096))
    return al.sketch_in_clear(protocol(17), data, labels=[f"{prefix}{row}" for row in range(rows)])


WITHOUT_NOISE = {
    "clear": lambda: in_clear(160),
    "noisy and clear": lambda: al.concat([drawn(160), in_clear(30)]),
    "clear and noisy": lambda: al.concat([in_clear(30), drawn(160)]),
    "nothing of a row": lambda: al.concat([drawn(40), drawn(9, prefix="z") * 0]),
    "released twice": lambda: made(np.zeros((2, 17))).rows([0, 1, 0, 1, 1]),
}


@pytest.mark.usefixtures("no_tiles", "small_parts")
@pytest.mark.parametrize("name", WITHOUT_NOISE)
def test_a_row_without_noise_is_not_its_own_neighbor(name):
    check(WITHOUT_NOISE[name](), None)


@pytest.mark.usefixtures("no_tiles", "small_parts")
def test_within_one_set_no_pair_of_noises_is_searched(monkeypatch):
    sketches = drawn(200)
    monkeypatch.setattr(Noises, "shared_pairs", None)  # must not be reached
    found = al.nearest(sketches, None, 3)
    assert not (found.indices == np.arange(200)[:, None]).any()


def test_a_pair_that_shares_two_noises_is_one_pair():
    a, b = drawn(1), drawn(1, prefix="b")
    pairs = (a + b).noises.shared_pairs(al.concat([drawn(1), a - b]).noises)
    assert [each.tolist() for each in pairs] == [[0], [1]]
    check(al.concat([a + b, drawn(2, prefix="q")]), al.concat([a - b, drawn(9, prefix="r")]), 3)


def test_noises_are_counted_over_all_blocks(monkeypatch):
    monkeypatch.setattr(candidates, "MOST_NOISES", 2)
    search = candidates.Candidates(drawn(3), 2, Level.of(0.9, "asymptotic", 30), within=False)
    shortlist = nearest.Shortlist(3, 2)
    blocks = [drawn(9, rule=protocol(17, epsilon)) for epsilon in ("1", "0.5", "0.25", "1")]
    searched = [search.search(block, 9 * number, shortlist, int) for number, block in enumerate(blocks)]
    assert searched == [True, True, False, True]
