"""Flat clusters: planted ones are found whatever the noises, in blocks of any size, and the same again from the same seed."""

import tracemalloc

import numpy as np
import pytest

import armslength as al
from armslength.estimates.noise_models import row_noises
from armslength.protocol.provenance import Released
from armslength.search.flat_clusters import MOST_CLUSTERS

TRANSFORM = al.SparseJL(300, 64, 1, "flat clusters")
CENTERS = np.random.default_rng(5).integers(0, 12, (8, 300))


class InBlocks:
    """Rows that are read a few at a time: never more than so many, and the last block of each round is short."""

    def __init__(self, sketches, most):
        self._sketches, self._most = sketches, most
        self.protocols = sketches.protocols
        self.asked = 0

    def __len__(self):
        return len(self._sketches)

    def blocks(self, rows):
        self.asked += 1
        return self._sketches.blocks(min(rows, self._most))

    def rows(self, numbers):
        return self._sketches.rows(numbers)


def planted(epsilons, each, clusters=8, seed=0, **options):
    """Rows at eight centers, `each` of them for every ε; and at which center each row is."""
    truth = np.random.default_rng(seed).integers(0, clusters, each * len(epsilons))
    parts = [
        al.Protocol(TRANSFORM, epsilon, **options).release(
            CENTERS[truth[part * each : (part + 1) * each]],
            labels=[f"{part}.{row}" for row in range(each)],
            ledger=al.NO_LEDGER,
        )
        for part, epsilon in enumerate(epsilons)
    ]
    return al.concat(parts), truth


def adjusted_rand(a, b):
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    both, first, second = (
        (each * (each - 1) / 2).sum() for each in (table, table.sum(axis=0), table.sum(axis=1))
    )
    by_chance = first * second / (len(a) * (len(a) - 1) / 2)
    return (both - by_chance) / ((first + second) / 2 - by_chance)


def plain_k_means(rows, count, rng):
    """k-means++ and Lloyd on sketches as if they were data."""
    chosen = [rows[rng.integers(len(rows))]]
    squares = ((rows - chosen[0]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        chosen.append(rows[rng.choice(len(rows), p=squares / squares.sum())])
        squares = np.minimum(squares, ((rows - chosen[-1]) ** 2).sum(axis=1))
    centers = np.array(chosen)
    for _ in range(15):
        numbers = ((rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)).argmin(
            axis=1
        )
        for cluster in set(numbers.tolist()):
            centers[cluster] = rows[numbers == cluster].mean(axis=0)
    return numbers


def same(a, b):
    for name in ("numbers", "margin", "sizes", "radius", "center_distances", "centers", "center_noise"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert (a.inertia, a.passes, a.converged) == (b.inertia, b.passes, b.converged)


def test_planted_clusters_are_found_with_a_noise_for_each_group_of_rows():
    # The least distance of two centers in the sketch is 65: at ε = 0.4 that is 9 standard deviations of noise to the middle.
    sketches, truth = planted(("0.4", 1, 4), 300)
    found = al.cluster(InBlocks(sketches, 128), count=8)
    assert adjusted_rand(truth, found.numbers) == 1.0
    assert found.converged
    assert found.passes == 1  # all rows were the sample, whose clusters are known to the first pass
    assert found.sizes.sum() == 900
    assert found.margin.min() > 2
    _, firsts = np.unique(found.numbers, return_index=True)
    assert (np.diff(firsts) > 0).all()  # numbered in the order of their first rows
    # Rows of one cluster are equal: its radius is noise about 0, and centers are as far apart as the planted ones.
    order = [truth[first] for first in firsts]
    true = np.sqrt(((CENTERS[order][:, None] - CENTERS[order]) ** 2).sum(axis=2))
    away = ~np.eye(8, dtype=bool)
    assert (np.abs(found.center_distances / np.where(away, true, 1) - 1)[away] < 0.75).all()


def test_noise_levels_make_no_clusters():
    # Half of the rows have 100 times the variance. Plain k-means++ begins at one of those with probability 0.75 each time, and such a
    # row stays alone, for its distance to itself is 0: no such row in three trials of eight draws has probability 1e-13. Ours puts a
    # quiet row, 30 standard deviations from other centers, where it belongs; of those a cluster has 125, below 60 with 1e-9.
    plain = []
    for seed in range(3):
        sketches, truth = planted((1, "0.1"), 1000, seed=seed)
        quiet = slice(0, 1000)
        found = al.cluster(sketches, count=8, seed=str(seed))
        assert adjusted_rand(truth[quiet], found.numbers[quiet]) == 1.0
        assert found.sizes.min() > 60
        numbers = plain_k_means(sketches.values.astype(float), 8, np.random.default_rng(seed))
        plain.append(adjusted_rand(truth[quiet], numbers[quiet]))
    assert min(plain) < 0.9


@pytest.mark.parametrize("most", [1, 47, 48, 500])
def test_blocks_of_any_size_give_the_same_numbers(most):
    sketches, _ = planted((1, "0.2"), 300)
    found = al.cluster(InBlocks(sketches, most), count=11)
    same(found, al.cluster(sketches, count=11))


def test_a_sample_begins_and_all_rows_decide(monkeypatch):
    monkeypatch.setattr("armslength.search.flat_clusters._LEAST_SAMPLE", 100)
    sketches, truth = planted((1, "0.5"), 500)
    rows = InBlocks(sketches, 333)
    found = al.cluster(rows, count=8)
    assert adjusted_rand(truth, found.numbers) == 1.0
    assert rows.asked == 1 + found.passes
    assert found.sizes.tolist() == np.bincount(found.numbers).tolist()


def test_seeds_decide_and_nothing_else_does():
    sketches = al.Protocol(TRANSFORM, 1).release(np.zeros((200, 300), dtype=int), ledger=al.NO_LEDGER)
    same(al.cluster(sketches, count=5, seed="a"), al.cluster(sketches, count=5, seed="a"))
    others = {al.cluster(sketches, count=5, seed=seed).numbers.tobytes() for seed in "abcdef"}
    assert len(others) > 1


def moved(sketches, values):
    return al.Sketches(values, sketches.labels, sketches.provenance, sketches.protocols)


def test_it_does_not_matter_where_integers_have_wrapped():
    sketches, _ = planted((1,), 400)
    found = al.cluster(sketches, count=8)
    wrapped = al.cluster(moved(sketches, sketches.values + np.int64(2**63 - 3)), count=8)
    for name in ("numbers", "margin", "radius", "center_distances"):
        assert np.array_equal(getattr(found, name), getattr(wrapped, name))
    assert found.inertia == wrapped.inertia


def test_what_rows_have_in_common_costs_no_digits():
    sketches, _ = planted((1,), 400)
    far = sketches.values + np.random.default_rng(1).integers(-(2**50), 2**50, 64)
    same_rows = al.cluster(moved(sketches, far), count=8)
    found = al.cluster(sketches, count=8)
    assert np.array_equal(found.margin, same_rows.margin)


def test_a_row_far_away_does_not_cost_the_others_their_digits():
    sketches, truth = planted((1,), 400)
    values = sketches.values.copy()
    values[0] += 2**45
    found = al.cluster(moved(sketches, values), count=9)
    assert found.sizes[0] == 1
    assert adjusted_rand(truth[1:], found.numbers[1:]) == 1.0


@pytest.mark.parametrize("most", [47, 500])
def test_groups_far_away_are_told_apart_as_groups_nearby_are(most):
    # Two groups of 50 rows, 1,000 apart and 2^40 from the others: 2^80 − 2^80 would leave no digit of the noise's 30.
    sketches = al.Protocol(TRANSFORM, 1).release(np.zeros((400, 300), dtype=int), ledger=al.NO_LEDGER)
    near, far = sketches.values.copy(), sketches.values.copy()
    near[350:, :8], far[350:, :8] = near[350:, :8] + 1000, far[350:, :8] + 1000
    near[300:, 8:16], far[300:, 8:16] = near[300:, 8:16] + 2000, far[300:, 8:16] + 2**40
    expected, found = (al.cluster(InBlocks(moved(sketches, each), most), count=3) for each in (near, far))
    assert found.numbers.tolist() == expected.numbers.tolist() == np.repeat([0, 1, 2], [300, 50, 50]).tolist()
    np.testing.assert_allclose(found.radius**2, expected.radius**2, atol=1e-3)
    assert found.inertia == pytest.approx(expected.inertia, abs=0.1)
    assert found.center_distances[1, 2] == pytest.approx(expected.center_distances[1, 2], rel=1e-9)


def test_fractions_of_sketches_have_the_same_clusters():
    sketches, truth = planted((1,), 400)
    whole, half = (al.cluster(each, count=8) for each in (sketches, sketches * 0.5))
    assert half.numbers.tolist() == whole.numbers.tolist()
    np.testing.assert_allclose(half.margin, whole.margin, rtol=1e-5)
    np.testing.assert_allclose(half.center_distances, whole.center_distances / 2, rtol=1e-9)
    np.testing.assert_allclose(half.centers, whole.centers / 2, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(half.center_noise, whole.center_noise / 4, rtol=1e-9)
    assert adjusted_rand(truth, half.numbers) == 1.0


@pytest.mark.parametrize("stop", [{}, {"passes": 1}, {"tolerance": 1.0}])
def test_what_is_said_of_clusters_is_what_it_is_said_to_be(stop, monkeypatch):
    monkeypatch.setattr(
        "armslength.search.flat_clusters._LEAST_SAMPLE", 100
    )  # so that rows change in the last pass
    sketches, _ = planted(("0.05",), 300, dropped_bits=2)
    found = al.cluster(sketches, count=3, **stop)
    assert not stop or found.converged == ("tolerance" in stop)
    unit = sketches.protocol.unit_squared
    k2 = row_noises(sketches).each("k2")[0]
    read = sketches.values + sketches.offsets[:, None]
    within = []
    for cluster in range(found.count):
        members = read[found.numbers == cluster]
        np.testing.assert_allclose(found.centers[cluster], members.mean(axis=0), atol=1e-9)
        raw = ((members - members.mean(axis=0)) ** 2).sum()
        within.append(unit * (raw - 64 * k2 * (len(members) - 1)))
        assert found.radius[cluster] ** 2 * len(members) == pytest.approx(max(within[-1], 0))
        assert found.center_noise[cluster] == pytest.approx(k2 / len(members))
    apart = ((found.centers[:, None] - found.centers) ** 2).sum(axis=2)
    noise = 64 * (found.center_noise[:, None] + found.center_noise)
    expected = np.sqrt(unit * np.maximum(apart - noise, 0)) * (1 - np.eye(found.count))
    np.testing.assert_allclose(found.center_distances, expected, rtol=1e-9)
    assert found.inertia == pytest.approx(sum(within))


class Endless:
    """Rows that are made when they are read."""

    def __init__(self, rows):
        self._rows = rows
        self._protocol = al.Protocol(TRANSFORM, 1)
        self.protocols = (self._protocol,)

    def __len__(self):
        return self._rows

    def blocks(self, rows):
        for first in range(0, self._rows, rows):
            count = min(rows, self._rows - first)
            rng = np.random.default_rng(first)
            values = rng.integers(-3, 4, (count, 64)) + 40 * (np.arange(count) % 4)[:, None]
            yield al.Sketches(
                values, None, Released.of(rng.bytes(16 * count), self._protocol), self.protocols
            )


def test_memory_grows_by_twenty_bytes_a_row(monkeypatch):
    monkeypatch.setattr("armslength.search.flat_clusters._NUMBERS_AT_ONCE", 1 << 15)
    monkeypatch.setattr("armslength.search.flat_clusters._LEAST_SAMPLE", 256)
    al.cluster(Endless(3000), count=4)
    rows = 200_000  # of 512 bytes each
    tracemalloc.start()
    try:
        found = al.cluster(Endless(rows), count=4)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.sizes.min() > 0.24 * rows
    assert peak < 24 * rows


def test_the_last_pass_is_told():
    sketches = al.Protocol(TRANSFORM, 1).release(np.zeros((600, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.cluster(sketches, count=40, passes=1, tolerance=1.0)
    assert (found.passes, found.converged) == (1, True)
    assert "converged after 1 pass\n" in str(found)


def test_rows_that_go_round_in_circles_are_stopped(monkeypatch):
    monkeypatch.setattr("armslength.search.lloyd.PATIENCE", 0)
    sketches = al.Protocol(TRANSFORM, 1).release(np.zeros((600, 300), dtype=int), ledger=al.NO_LEDGER)
    found = al.cluster(sketches, count=40)
    assert (found.passes, found.converged) == (1, False)
    assert "stopped after 1 pass\n" in str(found)


def test_a_cluster_for_all_rows_and_one_for_each():
    data = np.random.default_rng(1).integers(0, 90, (30, 300))
    sketches = al.Protocol(TRANSFORM, 1).release(data, ledger=al.NO_LEDGER)
    one = al.cluster(sketches, count=1)
    assert one.sizes.tolist() == [30]
    assert np.isinf(one.margin).all()
    assert "from cluster" not in str(one)
    each = al.cluster(sketches, count=30)
    assert each.numbers.tolist() == list(range(30))
    assert each.radius.max() < 1e-3


def test_clusters_that_the_rows_do_not_show_are_left_out():
    clear = al.sketch_in_clear(al.Protocol(TRANSFORM, 1), np.ones((5, 300), dtype=int))
    found = al.cluster(clear, count=2)
    assert (found.count, found.asked) == (1, 2)
    assert found.numbers.tolist() == [0] * 5
    assert "5 rows in 1 clusters (2 were asked for)" in str(found)
    assert "not private" in found.note


def test_lines_for_each_row():
    sketches, _ = planted((1,), 50)
    found = al.cluster(sketches, count=3)
    batches = list(found.batches(sketches, 20))
    assert [batch.num_rows for batch in batches] == [20, 20, 10]
    lines = [line for batch in batches for line in batch.to_pylist()]
    assert [line["label"] for line in lines] == list(sketches.labels)
    assert [line["cluster"] for line in lines] == found.numbers.tolist()
    assert [line["margin"] for line in lines] == found.margin.tolist()
    with pytest.raises(al.ParameterError, match="rows must be the 50 that were clustered, got 49"):
        next(found.batches(sketches[:49]))
    with pytest.raises(al.ParameterError, match="at_once must be an integer"):
        next(found.batches(sketches, 0))


def test_lines_are_read_in_blocks_that_fit_into_memory():
    rows = Endless(100)
    found = al.cluster(rows, count=2)
    asked = []

    class Asked(Endless):
        def blocks(self, rows):
            asked.append(rows)
            return super().blocks(rows)

    assert sum(batch.num_rows for batch in found.batches(Asked(100))) == 100
    assert list(found.batches(Asked(100), 30))[3].num_rows == 10
    assert asked == [2**20 // 64, 30]


def test_what_a_few_early_rows_are_is_not_forgotten():
    protocol = al.Protocol(TRANSFORM, 1)
    clear = al.sketch_in_clear(protocol, np.ones((5, 300), dtype=int), labels=list("abcde"))
    noisy = protocol.release(np.zeros((20, 300), dtype=int), ledger=al.NO_LEDGER)
    for rows in ([clear, noisy], [noisy, clear]):
        assert "not private" in al.cluster(InBlocks(al.concat(rows), 5), count=2).note


def test_a_collection_of_few_rows_has_a_tree():
    sketches, _ = planted((1,), 20)
    tree = al.cluster(InBlocks(sketches, 7))
    assert isinstance(tree, al.Clustering)
    assert np.array_equal(tree.linkage, al.cluster(sketches).linkage)


def test_wrong_arguments_are_refused():
    sketches, _ = planted((1,), 20)
    for arguments, message in [
        ({"count": 0}, "count must be an integer from 1 to 20, got 0"),
        ({"count": 21}, "count must be an integer from 1 to 20, got 21"),
        ({"count": True}, "count must be an integer"),
        ({"count": 2, "by": "shape"}, "by must be left out with count: it is for the tree, got 'shape'"),
        ({"count": 2, "linkage": "single"}, "linkage must be left out with count"),
        ({"count": 2, "level": 0.9}, "level must be left out with count"),
        ({"count": 2, "method": "guaranteed"}, "method must be left out with count"),
        ({"count": 2, "seed": 3}, "seed must be a string"),
        ({"count": 2, "passes": 0}, "passes must be"),
        ({"count": 2, "tolerance": -0.1}, "tolerance must be"),
        ({"seed": "s"}, "seed must be left out without count: it is for flat clusters"),
        ({"passes": 3}, "passes must be left out without count"),
        ({"tolerance": 0.5}, "tolerance must be left out without count"),
    ]:
        with pytest.raises(al.ParameterError, match=message):
            al.cluster(sketches, **arguments)
    for wrong in ("files", sketches.values):
        with pytest.raises(al.ParameterError, match=r"sketches must be al\.Sketches or a collection of them"):
            al.cluster(wrong, count=1)
    with pytest.raises(al.ParameterError, match="at least 1 row, got 0"):
        al.cluster(sketches[:0], count=1)
    with pytest.raises(al.ParameterError, match=f"from 1 to {MOST_CLUSTERS}"):
        al.cluster(Endless(10_000), count=MOST_CLUSTERS + 1)


def test_rows_that_share_noise_are_refused():
    sketches, _ = planted((1,), 20)
    for shared in (sketches.rows([0, 1, 1]), al.concat([sketches, sketches[3] + sketches[4]])):
        with pytest.raises(
            al.ParameterError, match="rows that share one; leave out repeated and combined rows"
        ):
            al.cluster(shared, count=2)
    pairs = sketches[:10] + sketches[10:]
    assert al.cluster(pairs, count=2).sizes.sum() == 10
