"""Centers and the noise in them, held against sketches that are added up with the names of their noises."""

import numpy as np
import pytest

import armslength as al
from armslength.estimates.noise_models import row_noises
from armslength.estimates.variance import input_noise_law, variance_curve
from armslength.protocol.sketches import summed
from armslength.randomness.stream import Reader, Stream
from armslength.search import lloyd
from armslength.search.centers import Centers, ClusterSums, NoiseEffect, points
from armslength.search.kernels import choose_centers
from armslength.search.row_survey import Frame, RowNoises
from armslength.search.seeding import first_rows
from statistical.limits import check_variance, draws_for_variance

RNG = np.random.default_rng(11)
SPARSE = al.SparseJL(200, 64, 1, "centers")
OUTPUT = (al.Protocol(SPARSE, 1), al.Protocol(SPARSE, "0.05", dropped_bits=2))
FAST = al.FastJL(200, 32, seed="centers")
INPUT = tuple(
    al.Protocol(FAST, epsilon, delta="1e-6", noise="gaussian", noise_site="input") for epsilon in (1, "0.5")
)


def released(protocols, rows=4):
    parts = [
        protocol.release(
            RNG.integers(0, 9, (rows, 200)),
            labels=[f"{number}.{row}" for row in range(rows)],
            ledger=al.NO_LEDGER,
        )
        for number, protocol in enumerate(protocols)
    ]
    return al.concat(parts)


def framed(sketches):
    block = Frame(sketches.values[0], 0.0).block(sketches.values, sketches.offsets)
    block.fill(0, len(block))
    return block


def one_center(sketches, members):
    block, k2 = framed(sketches), row_noises(sketches).each("k2")
    effect = NoiseEffect.of(sketches.protocols[0])
    sums = ClusterSums.empty(1, block.rows.shape[1])
    for row in members:
        part = Frame(sketches.values[0], 0.0).block(sketches.values[[row]], sketches.offsets[[row]])
        part.fill(0, 1)
        sums.add(part, np.zeros(1, np.int32), k2[[row]])
    return Centers.of(sums, effect), block, k2


@pytest.mark.parametrize("protocols", [OUTPUT, INPUT], ids=["output", "input"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_distances_to_a_center_are_debiased_by_the_noise_that_is_left(protocols, size):
    sketches = released(protocols)
    members = list(range(2, 2 + size))
    centers, block, k2 = one_center(sketches, members)
    own = np.array([0 if row in members else -1 for row in range(len(sketches))], np.int32)
    found = centers.nearest(block, own, k2)
    mean = summed(sketches.rows(members), "mean") / size
    expected = al.squared_distances(sketches, mean)
    unit = sketches.protocols[0].unit_squared
    np.testing.assert_allclose(found.value * unit, expected.value[:, 0], rtol=1e-9, atol=1e-6 * unit)
    np.testing.assert_allclose(centers.second, row_noises(mean).each("k2"))


def test_distances_between_centers_are_debiased_and_not_negative():
    sketches = released(OUTPUT)
    block, k2 = framed(sketches), row_noises(sketches).each("k2")
    effect = NoiseEffect.of(sketches.protocols[0])
    sums = ClusterSums.empty(3, 64)
    chosen = np.array([0, 0, 1, 1, 1, 2, 2, 2], np.int32)
    sums.add(block, chosen, k2)
    means = al.concat(
        [summed(sketches.rows(np.flatnonzero(chosen == j)), str(j)) / (2 + (j > 0)) for j in range(3)]
    )
    expected = al.distances(means).value
    unit = np.sqrt(sketches.protocols[0].unit_squared)
    np.testing.assert_allclose(Centers.of(sums, effect).distances() * unit, expected, rtol=1e-9)
    equal = Centers(np.zeros((2, 64)), np.ones(2), np.ones(2), effect)
    assert equal.distances().tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("protocols", [OUTPUT, INPUT], ids=["output", "input"])
def test_the_deviation_is_that_of_equal_rows(protocols):
    protocol = protocols[0]
    noise = released(protocols[:1], 1)
    cumulants = row_noises(noise).groups[0][0].cumulants
    found = NoiseEffect.of(protocol).deviation(np.array([cumulants.k2]), np.array([cumulants.k4]))
    if protocol.noise_site == "input":
        expected = input_noise_law(protocol.transform, cumulants, 1.0)[1]
    else:
        expected = variance_curve(protocol, cumulants).c / protocol.unit_squared**2
    assert found[0] == pytest.approx(np.sqrt(expected))


def test_a_margin_is_in_standard_deviations_of_the_rows_noise():
    # Two centers that have no noise, and equal rows between them: signed margins have variance 1 about the true difference.
    rows = draws_for_variance(3.1)
    sketches = OUTPUT[0].release(np.zeros((rows, 200), dtype=int), ledger=al.NO_LEDGER)
    k2 = row_noises(sketches).each("k2")
    effect = NoiseEffect.of(OUTPUT[0])
    means = np.zeros((2, 64))
    means[0, :32], means[1] = 3.0, -1.0
    block = Frame(np.zeros(64, np.int64), 0.0).block(sketches.values, sketches.offsets)
    found = Centers(means, np.full(2, 1e9), np.zeros(2), effect).nearest(
        block, np.full(rows, -1, np.int32), k2
    )
    signed = np.where(found.chosen == 0, 1.0, -1.0) * found.margin
    deviation = 2 * np.sqrt(k2[0] * ((means[0] - means[1]) ** 2).sum())
    check_variance(signed, (64 - 9 * 32) / deviation, 1.0)


def test_of_equal_centers_the_first_is_chosen_and_the_margin_is_0():
    means = np.zeros((3, 8))
    means[0] = 5.0
    block = Frame(np.zeros(8, np.int64), 0.0).block(np.zeros((2, 8), np.int64), np.zeros(2))
    centers = Centers(means, np.ones(3), np.zeros(3), NoiseEffect(8, 8, 16))
    found = centers.nearest(block, np.array([-1, 2], np.int32), np.zeros(2))
    assert found.chosen.tolist() == [1, 1]
    assert found.margin.tolist() == [0, 0]


def test_a_row_that_no_center_is_near_to_has_no_value_of_another():
    # Squares of 1e200 are infinite: the first center, at an infinite distance, and not what was in memory.
    squares, square, value = np.full((2, 3), np.inf), np.zeros(2), np.zeros(2)
    chosen, margin = np.full(2, -1, np.int32), np.ones(2, np.float32)
    own, none = np.full(2, -1, np.int32), np.zeros(3)
    choose_centers(
        squares, own, np.ones(2), (none, np.ones(3)), np.ones((3, 3)), chosen, (square, value), margin
    )
    assert chosen.tolist() == [0, 0]
    assert value.tolist() == [np.inf, np.inf]
    assert margin.tolist() == [0, 0]  # nothing says which center is nearer


@pytest.mark.parametrize(("own_square", "other_square", "stays"), [(0.0, 0.0, True), (10.0, 11.5, False)])
def test_a_row_below_zero_to_two_centers_stays_where_it_is(own_square, other_square, stays):
    # Four rows of κ₂ = 1 and k = 8: the own estimate is 0 − 8·(1/4 + 1 − 2/4) = −6, the other −8. To the mean of the other three
    # it is −6/(3/4)² = −10.7: a row that left would come back at once. Above zero the smaller estimate is taken: 4 and 3.5.
    means = np.zeros((2, 8))
    means[:, 0] = np.sqrt(own_square), -np.sqrt(other_square)
    block = Frame(np.zeros(8, np.int64), 0.0).block(np.zeros((1, 8), np.int64), np.zeros(1))
    centers = Centers(means, np.array([4.0, 1e9]), np.array([0.25, 0.0]), NoiseEffect(8, 8, 16))
    found = centers.nearest(block, np.zeros(1, np.int32), np.ones(1))
    assert found.chosen[0] == (0 if stays else 1)
    assert found.value[0] == pytest.approx(-6 if stays else 3.5)


@pytest.mark.parametrize("k2", [0.0, 1.0, 1e6])
def test_rounding_is_lost_in_the_noise_however_far_rows_and_centers_are(k2):
    rng = np.random.default_rng(6)
    effect = NoiseEffect(64, 64, 128)
    for bits in range(48):
        rows = rng.integers(-9, 10, (100, 64)) << rng.integers(0, bits + 1, (100, 1))
        rows[50:] += rng.integers(-(2**bits), 2**bits + 1, 64)
        rows[99] = 0
        means = rows[[3, 60, 99]] + rng.integers(-9, 10, (3, 64))
        block = Frame(np.zeros(64, np.int64), 0.0).block(rows, np.zeros(100))
        block.fill(0, 100)
        centers = Centers(means.astype(float), np.ones(3), np.full(3, k2), effect)
        found = centers.squares_to(block, 0, 3, np.full(100, k2))
        differences = (rows[:, None] - means).astype(object)
        exact = (differences**2).sum(axis=2).astype(float)
        allowed = 1e-6 * k2 * np.sqrt(128) + 1e-12 * exact
        assert (np.abs(found - exact) <= allowed).all()


def clear_noises(rows):
    return RowNoises(np.zeros(rows, np.int32), np.zeros(1), np.zeros(1))


def test_an_empty_cluster_gets_the_farthest_row():
    values = np.array([[0], [1], [2], [100], [103]], np.int64).repeat(8, axis=1)
    block = Frame(np.zeros(8, np.int64), 0.0).block(values, np.zeros(5))
    block.fill(0, 5)
    begun = ClusterSums(block.rows[:2].copy(), np.array([1.0, 0.0]), np.zeros(2))
    numbers = np.array([0, -1, -1, -1, -1], np.int32)
    ended = lloyd.run(
        lambda: iter((block,)),
        clear_noises(5),
        Centers.of(begun, NoiseEffect(8, 8, 16)),
        numbers,
        passes=20,
        tolerance=0.0,
    )
    assert ended.numbers.tolist() == [0, 0, 0, 1, 1]
    assert ended.converged
    np.testing.assert_allclose(ended.centers.means[:, 0], [1.0, 101.5])
    np.testing.assert_allclose(ended.sums.sizes, [3, 2])


def test_passes_go_on_while_an_empty_cluster_can_be_filled():
    # No row changes in the first pass, and all may: the second cluster is filled nevertheless.
    values = np.array([[0], [1], [2], [100], [103]], np.int64).repeat(8, axis=1)
    block = Frame(np.zeros(8, np.int64), 0.0).block(values, np.zeros(5))
    block.fill(0, 5)
    begun = ClusterSums.empty(2, 8)
    begun.add(block, np.zeros(5, np.int32), np.zeros(5))
    ended = lloyd.run(
        lambda: iter((block,)),
        clear_noises(5),
        Centers.of(begun, NoiseEffect(8, 8, 16)),
        np.zeros(5, np.int32),
        passes=20,
        tolerance=0.5,
    )
    assert ended.sums.sizes.tolist() == [3, 2]
    assert ended.converged


def test_passes_end_when_for_ten_of_them_no_fewer_rows_have_changed():
    # Rows that are elsewhere in every second reading change their clusters for ever: all in the first pass, two in each after it.
    here, there = np.array([[0, 90, 10, 80], [0, 90, 80, 10]], np.int64)
    readings = 0

    def blocks():
        nonlocal readings
        readings += 1
        values = (here if readings % 2 else there)[:, None].repeat(8, axis=1)
        yield Frame(np.zeros(8, np.int64), 0.0).block(values, np.zeros(4))

    begun = ClusterSums(np.array([[0.0] * 8, [90.0] * 8]), np.ones(2), np.zeros(2))
    centers, numbers = Centers.of(begun, NoiseEffect(8, 8, 16)), np.full(4, -1, np.int32)
    ended = lloyd.run(blocks, clear_noises(4), centers, numbers, passes=50, tolerance=0.0)
    assert not ended.converged
    assert ended.passes == readings == 2 + 10


def test_an_empty_cluster_gets_no_row_that_noise_alone_has_moved():
    values = np.random.default_rng(2).normal(size=(50, 64))
    block = Frame(np.zeros(64), 0.0).block(values, np.zeros(50))
    begun = ClusterSums(np.array([values[0], np.zeros(64)]), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    numbers = np.full(50, -1, np.int32)
    numbers[0] = 0
    noises = RowNoises(np.zeros(50, np.int32), np.ones(1), np.zeros(1))
    effect = NoiseEffect(64, 64, 128)
    ended = lloyd.run(
        lambda: iter((block,)), noises, Centers.of(begun, effect), numbers, passes=20, tolerance=0.0
    )
    assert ended.converged
    assert ended.sums.sizes.tolist() == [50, 0]


def test_noisy_rows_are_not_where_clusters_begin():
    # Two groups of 30 rows; 40 rows have noise that would hide them, and by far the largest squared distances.
    quiet = np.zeros((60, 64))
    quiet[30:] = 10.0
    noisy = RNG.normal(0, 300, (40, 64))
    block = Frame(np.zeros(64), 0.0).block(np.concatenate([quiet, noisy]), np.zeros(100))
    block.fill(0, 100)
    k2 = np.repeat([1.0, 90_000.0], [60, 40])
    for seed in range(20):
        words = Reader(Stream(str(seed), "test"))
        chosen = first_rows(block, k2, np.zeros(100), NoiseEffect(64, 64, 128), 2, words)
        assert sorted(row // 30 for row in chosen) == [0, 1]


def test_of_two_rows_at_one_place_the_quieter_is_where_a_cluster_begins():
    # 30 rows at 0, 30 about 20, and 40 at 20 with a hundred times the noise: those are nearest to all, by the estimates alone.
    rows = np.zeros((100, 64))
    rows[30:] = 20.0
    rows[30:60] += np.random.default_rng(4).choice([-2.0, 2.0], (30, 64))
    block = Frame(np.zeros(64), 0.0).block(rows, np.zeros(100))
    block.fill(0, 100)
    k2 = np.repeat([1.0, 100.0], [60, 40])
    quiet = 0
    for seed in range(40):
        words = Reader(Stream(str(seed), "test"))
        chosen = first_rows(block, k2, np.zeros(100), NoiseEffect(64, 64, 128), 2, words)
        quiet += max(chosen) < 60
    assert quiet >= 36  # all but those in which no quiet row was drawn; by the estimates alone 34


def test_a_row_that_is_chosen_is_at_no_distance_from_itself():
    # The first row is the quietest. Of the others, on its two sides, the noisy one has the larger upper end, so it is the better choice
    # whenever one of two draws finds it: 3 times in 4. With its own noise counted against it, it would be so 1 time in 4.
    k2 = np.array([0.5, 100.0, 1.0])
    rows = np.zeros((3, 64))
    rows[1:, 0] = np.sqrt(101_000 + 64 * (k2[0] + k2[1])), -np.sqrt(100_000 + 64 * (k2[0] + k2[2]))
    block = Frame(np.zeros(64), 0.0).block(rows, np.zeros(3))
    block.fill(0, 3)
    noisy = 0
    for seed in range(60):
        words = Reader(Stream(str(seed), "test"))
        first, second = first_rows(block, k2, np.zeros(3), NoiseEffect(64, 64, 128), 2, words)
        assert first == 0
        noisy += second == 1
    assert noisy > 30


def test_a_row_that_moves_takes_all_of_itself_along():
    sketches = released(OUTPUT)
    block, k2 = framed(sketches), row_noises(sketches).each("k2")
    chosen = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32)
    moved, expected = ClusterSums.empty(2, 64), ClusterSums.empty(2, 64)
    moved.add(block, chosen, k2)
    moved.move(block.rows[5], k2[5], 0, 1)
    chosen[5] = 1
    expected.add(block, chosen, k2)
    for name in ("sums", "sizes", "second"):
        np.testing.assert_allclose(getattr(moved, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_points_are_clusters_of_one_row():
    sketches = released(OUTPUT)
    block, k2 = framed(sketches), row_noises(sketches).each("k2")
    effect = NoiseEffect.of(OUTPUT[0])
    found = points(block, np.array([6, 1]), k2, effect)
    expected = al.squared_distances(sketches, sketches.rows([6, 1])).value / OUTPUT[0].unit_squared
    raw = found.squares_to(block, 0, 1, k2) - effect.added * (k2[:, None] + found.second)
    raw[[6, 1], [0, 1]] = 0.0
    np.testing.assert_allclose(raw, expected, rtol=1e-9, atol=1e-6)
