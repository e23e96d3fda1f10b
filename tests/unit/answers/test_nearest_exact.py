"""Nearest rows: the same answers as from all pairs at once, to the last bit, whatever the numbers are."""

import os

import numpy as np
import pytest

import armslength as al
from armslength.answers import nearest, pairs
from armslength.estimates import distances
from armslength.estimates.intervals import Level
from armslength.sketches.noises import Noises
from flat_protocol import flat_protocol

RNG = np.random.default_rng(5)
HUGE = 2**62


def protocol(coordinates, epsilon="1", **known):
    return flat_protocol(
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


def check(queries, index, count=4, level=0.9):
    """Compares with every pair, measured one by one; returns what was found."""
    within = index is None
    with pytest.MonkeyPatch.context() as patch:
        # Pair by pair: what a product of matrices rounds depends on its size.
        patch.setattr(distances, "_products_will_do", lambda *_: False)
        found = al.nearest(queries, index, count=count, level=level, each=True)
        estimate = al.squared_distances(queries, queries if within else index)
    others = estimate.value.shape[1] - within
    count = min(count, others)
    lower, upper = estimate.rule.interval(Level.of(level, "asymptotic", others))
    for row, value in enumerate(estimate.value):
        rest = np.delete(np.arange(len(value)), [row] if within else [])
        order = rest[np.lexsort((rest, value[rest]))][:count]
        assert found.indices[row].tolist() == order.tolist()
        ends = np.maximum(value[order], 0), lower[row, order], upper[row, order]
        np.testing.assert_array_equal(found.distance[row].T, np.sqrt(ends))
        least = upper[row, rest].min()
        assert found.possible[row].tolist() == (lower[row, order] <= least).tolist()
        assert found.candidates[row] == min((lower[row, rest] <= least).sum(), count + 1)
        nearer = [(upper[row, order] < lower[row, answer]).sum() for answer in order]
        possibly = [(lower[row, rest] <= upper[row, answer]).sum() for answer in order]
        assert found.best_rank[row].tolist() == [1 + each for each in nearer]
        assert found.worst_rank[row].tolist() == np.minimum(possibly, count + 1).tolist()
    return found


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    for name, rows in (("SMALL", 1), ("ROWS", 12), ("COLUMNS", 150)):
        monkeypatch.setattr(pairs, name, rows)


SIDES = {
    "plain": lambda: (drawn(20), drawn(900)),
    "one query": lambda: (drawn(1), drawn(100)),
    "one row": lambda: (drawn(9), drawn(1)),
    "ties": lambda: (drawn(20, scale=0.5), drawn(900, scale=0.5)),
    "all equal": lambda: (made(np.zeros((13, 17))), made(np.zeros((300, 17)))),
    "all 64 bits": lambda: (
        made(RNG.integers(-HUGE, HUGE, (8, 17)) * 2),
        made(RNG.integers(-HUGE, HUGE, (400, 17)) * 2),
    ),
    "around the wrap": lambda: (
        made((RNG.integers(0, 99, (8, 17), dtype=np.uint64) + 2**63 - 50).view(np.int64)),
        made((RNG.integers(0, 99, (400, 17), dtype=np.uint64) + 2**63 - 50).view(np.int64)),
    ),
    "fractions": lambda: (drawn(9) * 0.3, drawn(400) * 0.7),
    "whole and fractions": lambda: (drawn(9), drawn(400) * 0.7),
    "many equal rows": lambda: (
        drawn(8),
        made(np.rint(RNG.normal(0, 40, (6, 17)))[RNG.integers(0, 6, 700)]),
    ),
    "one coordinate": lambda: (drawn(9, 1), drawn(200, 1)),
    "two coordinates": lambda: (drawn(9, 2), drawn(200, 2)),
    "many coordinates": lambda: (drawn(7, 1500), drawn(100, 1500)),
    "three noises": lambda: (
        al.concat([drawn(9), drawn(8, rule=protocol(17, "0.3"), prefix="q")]),
        al.concat([drawn(150), drawn(120, rule=protocol(17, "0.2"), scale=200.0, prefix="b"), drawn(90) * 3]),
    ),
}


@pytest.mark.parametrize("name", SIDES)
def test_the_same_as_from_all_pairs(name):
    check(*SIDES[name]())


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


@pytest.mark.parametrize("count", [1, 2, 33, 299, 300, 1000])
def test_any_number_of_answers(count):
    check(drawn(5), drawn(300), count)
    check(drawn(40, scale=1.0), None, count)


def test_within():
    check(drawn(200), None, 6)


def test_rows_that_share_a_noise_with_a_query():
    index = drawn(160)
    queries = al.concat([index[5], drawn(3, prefix="q"), index[140] - index[20], index[5] + index[159]])
    check(queries, index, 5)
    check(index[7:12] * 2, al.concat([index, drawn(40, prefix="q")]), 5)
    check(al.concat([index[:30], index[3] + index[4], index[3] * 2]), None, 5)


def test_when_everything_shares_a_noise():
    index = drawn(160)
    changes = index[1:] - index[0]
    check(changes[:80], changes, 5)
    check(changes[:80], None, 5)


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


@pytest.mark.parametrize("name", WITHOUT_NOISE)
def test_a_row_without_noise_is_not_its_own_neighbor(name):
    check(WITHOUT_NOISE[name](), None)


def test_a_pair_that_shares_two_noises_is_one_pair():
    a, b = drawn(1), drawn(1, prefix="b")
    pairs = (a + b).noises.shared_pairs(al.concat([drawn(1), a - b]).noises)
    assert [each.tolist() for each in pairs] == [[0], [1]]
    check(al.concat([a + b, drawn(2, prefix="q")]), al.concat([a - b, drawn(9, prefix="r")]), 3)


def test_few_pairs_get_an_interval_where_noises_are_few(monkeypatch):
    counts, intervals = [], nearest.pair_intervals

    def counted(model, noises, value, level):
        counts.append(value.size)
        return intervals(model, noises, value, level)

    monkeypatch.setattr(nearest, "pair_intervals", counted)
    monkeypatch.setattr(pairs, "ROWS", 100)
    monkeypatch.setattr(pairs, "COLUMNS", 300)
    found = al.nearest(*SIDES["three noises"](), count=4)
    assert sum(counts) <= 17 * 2 * 3 * 5  # of 17 queries in two tiles: five of each of three noises
    assert found.indices.shape == (17, 4)


def test_no_tile_has_all_pairs(monkeypatch):
    sizes, squares = [], distances.all_squares

    def watched(left, right, tolerance):
        sizes.append(len(left) * len(right))
        return squares(left, right, tolerance)

    monkeypatch.setattr(distances, "all_squares", watched)
    monkeypatch.setattr(pairs, "SMALL", 50)
    al.nearest(drawn(3000, 2), count=2)
    assert max(sizes) <= pairs.ROWS * pairs.COLUMNS
    assert sum(sizes) < 0.6 * 3000**2  # each pair once, and the tiles of the diagonal
