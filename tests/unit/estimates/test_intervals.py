"""Intervals: their shape, their edges, and the exact law at zero."""

import numpy as np
import pytest
from scipy.special import gammaincinv, ndtr, ndtri

import armslength as al
from armslength.estimates import pair_noise, quantiles
from armslength.estimates.intervals import IntervalRule, Level, pair_intervals
from armslength.estimates.pair_noise import PairNoise, PairNoises, noise_with_kurtosis
from armslength.estimates.quantiles import estimate_quantiles, null_quantile
from armslength.estimates.variance import ErrorModel
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.sketches.sketches import sum_rows
from exact_laws import pmf

PROTOCOL = al.Protocol(al.SparseJL(input_dim=100, sketch_dim=16, sparsity=1, seed="x"), epsilon=1)


def noise_of(protocol, coefficients=(1.0, -1.0)):
    return PairNoise.of((protocol, c) for c in coefficients)


def rule_of(protocol, coefficients=(1.0, -1.0)):
    noise = noise_of(protocol, coefficients)
    unit, k = protocol.unit_squared, protocol.transform.sketch_dim
    return IntervalRule(
        noise, ErrorModel.of(protocol).variance_curve(noise.cumulants), k, noise.cumulants.k2 * unit
    )


def test_an_interval_is_every_distance_that_could_have_given_the_estimate():
    rule = rule_of(PROTOCOL)
    level = Level.of(0.95, "asymptotic", 1)
    estimates = np.array([-500.0, -50.0, 0.0, 30.0, 100.0, 1000.0, 1e5])
    lower, upper = rule.interval(estimates, level)
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e7, 20001)])
    above_quantile, below_quantile = rule._quantiles(grid, level)
    deviation = np.sqrt(rule.curve.at(grid))
    above, below = grid + above_quantile * deviation, grid - below_quantile * deviation
    for estimate, low, high in zip(estimates, lower, upper, strict=True):
        # below 0, the upper end is that of an estimate of 0
        inside = grid[(estimate <= above) & (max(estimate, 0.0) >= below)]
        assert low == pytest.approx(inside[0], rel=3e-3, abs=2e-3)
        assert high == pytest.approx(inside[-1], rel=3e-3)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 3e12])
def test_ends_solve_their_equations_and_do_not_depend_on_other_estimates(unit):
    rule, level = rule_of(PROTOCOL), Level.of(0.95, "asymptotic", 1)
    estimates = np.geomspace(1.01 * rule.smallest_resolved(level), 1e9, 3001)
    lower, upper = rule.interval(estimates * unit, level, 0.0, unit)
    for end, sign, which in (lower / unit, 1, 0), (upper / unit, -1, 1):
        quantile = rule._quantiles(end, level)[which]
        assert end + sign * quantile * np.sqrt(rule.curve.at(end)) == pytest.approx(estimates, rel=1e-4)
    part = slice(7, 2000, 3)
    few = rule.interval(estimates[part] * unit, level, np.zeros(len(estimates[part])), unit)
    assert np.array_equal(few, (lower[part], upper[part]))


def test_slack_and_estimates_that_are_not_finite():
    rule, level = rule_of(PROTOCOL), Level.of(0.95, "asymptotic", 1)
    (lower, _), (_, upper) = np.transpose(rule.interval(np.array([900.0, 1100.0]), level))
    assert np.array_equal(np.ravel(rule.interval(np.array([1000.0]), level, 100.0)), (lower, upper))
    lower, upper = rule.interval(np.array([np.inf, -np.inf, np.nan, 1e100]), level)
    assert np.array_equal(lower[:3], [0, 0, np.nan], equal_nan=True)
    assert np.array_equal(upper[:3], [np.inf, np.inf, np.nan], equal_nan=True)
    assert lower[3] < 1e100 < upper[3]


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_slack_or_a_unit_that_is_not_finite_reads_nothing_outside_of_the_tables(bad):
    rule, level = rule_of(PROTOCOL), Level.of(0.95, "asymptotic", 1)
    values, ones = np.array([1000.0, 1000.0, 0.0, -1000.0]), np.ones(4)
    expected = np.transpose(rule.interval(values[:1], level, 1.0))[0]
    for slack, unit in [
        (np.array([1.0, bad, bad, bad]), ones),
        (ones, np.array([1.0, bad, bad, bad])),
        (np.array([1.0, bad, bad, bad]), np.array([1.0, bad, bad, bad])),
    ]:
        with np.errstate(invalid="ignore"):
            lower, upper = rule.interval(values, level, slack, unit)
        assert np.array_equal([lower[0], upper[0]], expected)
        assert (np.isnan(lower[1:]) | (lower[1:] == 0)).all()
        assert (np.isnan(upper[1:]) | np.isinf(upper[1:])).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = rule.interval(values, level, ones, np.array([1.0, 0.0, 0.0, 0.0]))
    assert np.array_equal([lower[0], upper[0]], expected)
    assert (np.isnan(upper[1:]) | np.isinf(upper[1:])).all()


def test_below_zero_the_upper_end_is_that_of_zero():
    given = np.array([-1e6, -1.0, 0.0, 1.0])
    lower, upper = rule_of(PROTOCOL).interval(given, Level.of(0.95, "asymptotic", 1))
    assert (lower == 0).all()
    assert upper[0] == upper[1] == upper[2] > 0
    assert upper[3] > upper[2]


def test_no_upper_end_where_the_projection_is_too_coarse():
    # q²a ≥ 1: with k = 4 rows and a high level, no distance is too large.
    rule = rule_of(al.Protocol(al.SparseJL(input_dim=100, sketch_dim=4, sparsity=1, seed="x"), epsilon=1))
    _, upper = rule.interval(np.array([10.0, 1e4]), Level.of(0.999, "asymptotic", 1))
    assert np.isinf(upper).all()


def test_intervals_grow_with_the_level_and_with_the_number_of_pairs():
    sketches = al.release(PROTOCOL, np.eye(5, 100, dtype=int) * 60, ledger=al.NO_LEDGER)
    estimate = al.squared_distances(sketches)
    last = None
    for level in (0.5, 0.8, 0.95, 0.99, 0.9999):
        lower, upper = estimate.interval(level)
        assert (lower <= upper).all()
        if last is not None:
            assert (lower <= last[0]).all()
            assert (upper >= last[1]).all()
        last = lower, upper
    single, all_pairs = estimate.interval(0.9), estimate.interval(0.9, simultaneous=True)
    assert (all_pairs[0] <= single[0]).all()
    for end, expected in zip(all_pairs, estimate.interval(1 - 0.1 / 10), strict=True):
        assert end == pytest.approx(expected)
    assert (estimate.resolved(0.9) >= estimate.resolved(0.9, simultaneous=True)).all()


def test_guaranteed_is_chebyshev():
    rule = rule_of(PROTOCOL)
    value = np.array([5000.0])
    lower, upper = rule.interval(value, Level.of(0.9, "guaranteed", 1))
    for end in (lower, upper):
        if np.isfinite(end[0]) and end[0] > 0:
            assert (value[0] - end[0]) ** 2 == pytest.approx(10 * float(rule.curve.at(end[0])), rel=1e-3)
    spread = rule.interval(value, Level.of(0.9, "asymptotic", 1))
    assert lower < spread[0]
    assert upper > spread[1]


def exact_null_tail(law, k, value):
    """P(Σ (η−μ)² > value) by direct convolution of two laws on the integers."""
    reach = int(60 * law.scale)
    one = pmf(law, np.arange(-reach, reach + 1))
    difference = np.convolve(one, one)
    square = np.zeros((2 * reach) ** 2 + 1)
    np.add.at(square, np.arange(-2 * reach, 2 * reach + 1) ** 2, difference)
    square = square[: value + 1]
    total = np.array([1.0])
    for _ in range(k):
        total = np.convolve(total, square)[: value + 1]
    return 1 - total.sum()


@pytest.mark.parametrize("tail", [0.1, 0.025, 1e-4])
def test_the_law_at_zero_is_exact(tail):
    protocol = al.Protocol(
        al.SparseJL(input_dim=100, sketch_dim=8, sparsity=1, seed="x"), epsilon=2
    )  # scale 0.5
    noise = noise_of(protocol)
    deviate = -ndtri(tail)
    k2, k4 = noise.cumulants.k2, noise.cumulants.k4
    threshold = 8 * k2 + null_quantile(noise, 8, deviate) * np.sqrt(8 * (k4 + 2 * k2**2))
    last = int(np.floor(threshold))
    # The threshold lies between two integers: the sum exceeds it with at most the tail, and one less would not do.
    assert threshold - last == pytest.approx(0.5, abs=1e-6)
    assert exact_null_tail(protocol.law, 8, last) <= tail
    assert exact_null_tail(protocol.law, 8, last - 1) > tail


def test_resolved_uses_the_law_at_zero():
    sketches = al.release(PROTOCOL, np.zeros((40, 100), dtype=int), ledger=al.NO_LEDGER)
    estimate = al.squared_distances(sketches)
    noise = noise_of(PROTOCOL)
    deviate = -ndtri(0.05 / 2)
    curve = ErrorModel.of(PROTOCOL).variance_curve(noise.cumulants)
    threshold = null_quantile(noise, 16, deviate) * np.sqrt(curve.c)
    off_diagonal = ~np.eye(40, dtype=bool)
    assert np.array_equal(estimate.resolved(0.95)[off_diagonal], (estimate.value > threshold)[off_diagonal])


def test_far_from_zero_the_law_is_chi_square():
    table = estimate_quantiles(noise_of(PROTOCOL), 16)
    upper, lower = table.at(np.array([1.0]), 2.0)
    assert upper[0] == pytest.approx((2 * gammaincinv(8, ndtr(2.0)) - 16) / np.sqrt(32), rel=1e-3)
    assert lower[0] == 2.0  # never narrower than normal


def test_quantiles_are_smooth_between_zero_and_far():
    table = estimate_quantiles(noise_of(PROTOCOL), 64)
    share = np.linspace(0, 1, 200)
    upper, lower = table.at(share, 3.0)
    assert (upper >= 3.0).all()
    assert (lower >= 3.0).all()
    assert np.abs(np.diff(upper)).max() < 0.15


@pytest.mark.parametrize("coefficients", [(1.0, -2.0, 1.0), (0.37, -1.9), (1.0,)])
@pytest.mark.parametrize(
    "protocol",
    [PROTOCOL, al.Protocol(PROTOCOL.transform, epsilon=1e-6), al.Protocol(PROTOCOL.transform, epsilon=1, delta=1e-6, noise="gaussian")],
    ids=["small", "large", "gaussian"],
)  # fmt: skip
def test_any_combination_of_noises_has_quantiles(coefficients, protocol):
    table = estimate_quantiles(noise_of(protocol, coefficients).normalized(), 16)
    upper, lower = table.at(np.array([0.0, 0.3, 1.0]), 2.5)
    assert ((upper >= 2.5) & (upper < 8)).all()
    assert ((lower >= 2.5) & (lower < 4)).all()


@pytest.mark.parametrize("level", [0, 1, -1, 2, np.nan, "0.9", None, True])
def test_bad_levels(level):
    estimate = al.squared_distances(al.release(PROTOCOL, np.eye(2, 100, dtype=int), ledger=al.NO_LEDGER))
    with pytest.raises(al.ParameterError, match="level must"):
        estimate.interval(level)


def test_bad_method_and_too_small_a_tail():
    estimate = al.squared_distances(al.release(PROTOCOL, np.eye(2, 100, dtype=int), ledger=al.NO_LEDGER))
    with pytest.raises(al.ParameterError, match="method must be one of"):
        estimate.interval(0.9, method="normal")
    with pytest.raises(al.ParameterError, match="1e-12"):
        estimate.interval(1 - 1e-14)


@pytest.mark.parametrize("epsilon", [5, 10, 12, 20, 100, 1000])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_large_epsilon_needs_no_large_memory(epsilon, noise):
    # Noise that is nearly always 0 and then as large as many standard deviations.
    protocol = al.Protocol(
        al.SparseJL(input_dim=100, sketch_dim=256, sparsity=1, seed="x"),
        epsilon=epsilon,
        delta=1e-6,
        noise=noise,
    )
    sketches = al.release(protocol, np.eye(3, 100, dtype=int) * 9, ledger=al.NO_LEDGER)
    lower, upper = al.squared_distances(sketches).interval(1 - 1e-9)  # a fair miss would be one in 10^9
    truth = 162.0 * (1 - np.eye(3))
    assert (lower <= truth + 1e-9).all()
    assert (upper >= truth - 1e-9).all()


def test_scaled_sketches_need_no_large_memory_and_no_long_time():
    protocol = al.Protocol(al.GaussianJL(input_dim=1000, sketch_dim=64, seed="x"), epsilon=1, delta=1e-6)
    counts = np.random.default_rng(0).poisson(5, (12, 1000))
    sketches = al.release(protocol, counts, ledger=al.NO_LEDGER)
    shapes = al.concat(
        [row * (1 / total) for row, total in zip(sketches, counts.sum(axis=1).tolist(), strict=True)]
    )
    lower, upper = al.squared_distances(shapes).interval(0.95)
    assert (lower <= upper).all()
    assert np.isfinite(lower).all()
    mixed = al.squared_distances(sketches[0] + 0.001 * sketches[1], sketches[2]).interval(0.9)
    assert mixed[0] <= mixed[1]


@pytest.mark.parametrize("factor", [2.0**-59, 2.0**59])
def test_extreme_multiples_end(factor):
    sketches = al.release(PROTOCOL, np.eye(2, 100, dtype=int) * 60, ledger=al.NO_LEDGER) * factor
    lower, upper = al.squared_distances(sketches).interval(0.9)
    assert (lower <= upper).all()


@pytest.mark.parametrize("k", [1, 2, 5000, 200_000])
def test_few_and_many_coordinates(k):
    noise = noise_of(al.Protocol(al.SparseJL(input_dim=100, sketch_dim=k, sparsity=1, seed="x"), epsilon=1))
    upper, lower = estimate_quantiles(noise.normalized(), k).at(np.array([0.0, 0.5, 1.0]), 3.0)
    assert ((upper >= 3) & (upper < 40)).all()
    assert ((lower >= 3) & (lower < 4)).all()


def test_approximate_intervals_guarantee_nothing():
    sketches = al.release(PROTOCOL, np.eye(2, 100, dtype=int) * 60, ledger=al.NO_LEDGER)
    with pytest.raises(al.ParameterError, match="approximate interval"):
        al.inner_products(sketches).interval(0.9, method="guaranteed")


def test_the_exact_law_is_for_multiples_of_one_noise():
    other = al.Protocol(PROTOCOL.transform, epsilon="0.9")
    mixed = [PROTOCOL, other]
    for coefficients in [(1.0, -1.0), (0.5, -1.0), (3.0, 1.0, -2.0), ()]:
        assert noise_of(PROTOCOL, coefficients).has_one_law
    for noise in (
        noise_of(PROTOCOL, (1.0, -1.0, 0.001)),
        noise_of(PROTOCOL, (1.0, -0.7)),
        PairNoise.of((source, 1.0) for source in mixed),
    ):
        assert not noise.has_one_law


@pytest.mark.parametrize("kurtosis", [0.0, 0.5, 1.5, 2.9, 3.0, 3.5, 4.0, 30.0, 1e9])
def test_a_noise_that_stands_for_others_has_variance_1_and_their_kurtosis(kurtosis):
    noise = noise_with_kurtosis(kurtosis)
    assert noise.cumulants.k2 == pytest.approx(1, rel=1e-9)
    assert noise.cumulants.k4 == pytest.approx(kurtosis, rel=1e-4, abs=1e-4)


LAWS = {
    "two small": (("laplace", 1.0), ("laplace", 1.1)),
    "small and large": (("laplace", 1.0), ("laplace", 5.0)),
    "tiny": (("laplace", 0.5), ("laplace", 0.7)),
    "nearly always 0": (("laplace", 0.2), ("laplace", 0.25)),
    "large": (("laplace", 100.0), ("laplace", 130.0)),
    "laplace and gaussian": (("laplace", 3.0), ("gaussian", 4.0)),
    "three": (("laplace", 2.0), ("laplace", 3.0), ("laplace", 9.0)),
}


@pytest.mark.parametrize("k", [8, 64, 256])
@pytest.mark.parametrize("name", LAWS)
def test_different_noises_are_never_resolved_too_soon(name, k):
    """Against the exact law at 0 of noises that are not multiples of one another."""
    laws = [
        DiscreteLaplace(scale) if kind == "laplace" else RoundedNormal(scale) for kind, scale in LAWS[name]
    ]
    noise = PairNoise.sum_of(tuple((law, 1.0) for law in laws))
    protocol = al.Protocol(al.SparseJL(input_dim=100, sketch_dim=k, sparsity=1, seed="x"), epsilon=1)
    noises = PairNoises.of([noise], np.zeros(4001, dtype=np.int64))
    deviation = np.sqrt(k * (noise.cumulants.k4 + 2 * noise.cumulants.k2**2))
    value = np.linspace(0, 40, 4001) * deviation
    for level in (0.9, 0.95, 0.99, 1 - 1e-5):
        lower, _ = pair_intervals(ErrorModel.of(protocol), noises, value, Level.of(level, "asymptotic", 1))
        found = value[np.argmax(lower > 0)]
        exact = null_quantile(noise, k, -ndtri((1 - level) / 2)) * deviation
        # Sums of squares are whole numbers, and the exact threshold lies half a step behind the last that is not rare.
        assert exact - 0.5 <= found
        assert found <= exact * (1.5 if name == "nearly always 0" else 1.12) + 1 + 0.01 * deviation


def test_many_different_noises_need_few_laws():
    generator = np.random.default_rng(3)
    parts = [
        al.release(
            al.Protocol(PROTOCOL.transform, epsilon=str(epsilon)),
            np.eye(1, 100, dtype=int),
            ledger=al.NO_LEDGER,
        )
        for epsilon in generator.uniform(0.3, 3, 40).round(4)
    ]
    quantiles.estimate_quantiles.cache_clear()
    estimate = al.squared_distances(al.concat(parts))
    lower, upper = estimate.interval()
    assert (lower <= upper).all()
    assert quantiles.estimate_quantiles.cache_info().misses < 60  # of 780 pairs
    alone = al.squared_distances(parts[3], parts[9])
    assert np.array_equal(alone.interval(), [lower[3:4, 9:10], upper[3:4, 9:10]])


def test_too_many_exact_laws_are_replaced_by_one_that_stands_for_them(monkeypatch):
    row = al.release(PROTOCOL, np.eye(4, 100, dtype=int), ledger=al.NO_LEDGER)
    rows = al.concat([row[0], 2 * row[1], 3 * row[2], 5 * row[3]])
    estimate = al.squared_distances(rows)
    exact_lower, exact_upper = estimate.interval()
    monkeypatch.setattr(pair_noise, "MOST_LAWS", 3)
    lower, upper = al.squared_distances(rows).interval()
    apart = ~np.eye(4, dtype=bool)
    assert not np.array_equal(lower, exact_lower) or not np.array_equal(upper, exact_upper)
    assert (upper[apart] >= 0.98 * exact_upper[apart]).all()
    assert (lower[apart] <= 1.02 * exact_lower[apart] + 1e-9).all()


def test_a_sum_of_very_many_rows_has_a_law_that_stands_for_it(monkeypatch):
    """An exact one is a convolution for each of its noises, which took half a minute for 20,000."""
    tabulated = []
    made = quantiles._lattice_law
    monkeypatch.setattr(quantiles, "_lattice_law", lambda *known: tabulated.append(known[0]) or made(*known))
    rows = al.release(PROTOCOL, np.zeros((3000, 100), dtype=int), ledger=al.NO_LEDGER)
    sums = al.concat([sum_rows(rows[:1000], "a"), sum_rows(rows[1000:2000], "b"), sum_rows(rows[2000:], "c")])
    lower, upper = al.squared_distances(sums).interval()
    assert (lower <= upper).all()
    assert {len(noise.components) for noise in tabulated} <= {1, 2}


def test_rows_with_very_many_noises_in_common_are_refused():
    """Each pair of 200 sums of the same 300 rows has 600 noises to merge: 12 million, and memory for them."""
    total = sum_rows(al.release(PROTOCOL, np.zeros((300, 100), dtype=int), ledger=al.NO_LEDGER), "all")
    sums = al.concat([number * total for number in range(1, 201)])
    for ask in (al.squared_distances, al.inner_products):
        with pytest.raises(al.ParameterError, match="compare fewer rows"):
            ask(sums).interval()


def test_a_thousand_epsilons_with_two_rows_each_need_few_tables():
    """As a stranger's file may have them: a table for each took minutes."""
    laws = [DiscreteLaplace(1 + number / 1000) for number in range(1000)]
    different = [PairNoise.sum_of(((law, 1.0),)) for law in laws]
    noises = PairNoises.of(different, np.arange(1000))
    assert len(noises.by_law()[0]) < 65
    assert pair_noise._exact_sums(different, different) == {}


def test_the_law_at_0_is_made_once_for_a_table_and_its_exact_quantiles(monkeypatch):
    ratios = []
    made = quantiles._lattice_law
    monkeypatch.setattr(quantiles, "_lattice_law", lambda *known: ratios.append(known[2]) or made(*known))
    noise = noise_of(
        al.Protocol(al.SparseJL(input_dim=300, sketch_dim=24, sparsity=1, seed="once"), epsilon="0.7")
    )
    table = estimate_quantiles(noise, 24)
    for deviate in (1.0, 2.0, 3.0):
        table.at(np.zeros(1), deviate)
    assert ratios.count(0.0) == 1
    assert len(ratios) == len(set(ratios))


@pytest.mark.parametrize("coordinates", [1, 2, 16, 296, 4096])
def test_powers_left_out_are_too_small_for_any_tail(coordinates):
    law = np.diff(ndtr(np.arange(-60.5, 61) / 7))
    squares = np.zeros(3601)
    np.add.at(squares, np.arange(-60, 61) ** 2, law)
    transform = np.fft.rfft(squares, 1 << 17)
    found, expected = quantiles._power(transform, coordinates), transform**coordinates
    assert np.abs(found - expected).max() < 1e-29
    if coordinates > 16:
        assert np.count_nonzero(found) < len(found) / 10
