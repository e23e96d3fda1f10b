"""Estimates by hand: values, variances and what shared noise does to them."""

import numpy as np
import pytest

import armslength as al

TRANSFORM = al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x")
LAPLACE = al.Protocol(TRANSFORM, epsilon=1)
GAUSSIAN = al.Protocol(TRANSFORM, epsilon=2, delta=1e-6, noise="gaussian")
X = np.random.default_rng(0).integers(0, 50, (4, 6))
K, UNIT = 8, 0.5  # c² = 1/s


def release(protocol, labels="abcd"):
    return al.release(protocol, X, ledger=al.NO_LEDGER, labels=list(labels))


def by_hand(a, b, kappa2):
    difference = a.values[:, None, :] - b.values[None, :, :]
    return UNIT * ((difference.astype(float) ** 2).sum(axis=2) - K * kappa2)


def test_squared_distances_between_two_parties():
    a, b = release(LAPLACE), release(LAPLACE)
    estimate = al.squared_distances(a, b)
    m2, k4 = LAPLACE.law.second_moment, LAPLACE.law.cumulants.k4
    assert estimate.value == pytest.approx(by_hand(a, b, 2 * m2))
    d = np.maximum(estimate.value, 0)
    expected = 2 / K * d**2 + 4 * (2 * m2 * UNIT) * d + K * (2 * k4 * UNIT**2 + 2 * (2 * m2 * UNIT) ** 2)
    assert estimate.variance == pytest.approx(expected)
    assert estimate.std_error == pytest.approx(np.sqrt(expected))
    assert estimate.labels == (tuple("abcd"), tuple("abcd"))
    assert estimate.pairs == 16


def test_the_paper_s_main_theorem_needs_twice_its_printed_constant():
    # Erratum 1: with b = √s/ε the debias is 4ks/ε², not 2ks/ε². In the limit of a fine grid:
    fine = al.Protocol(
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        al.Arrays(resolution=2.0**-20),
        epsilon=1,
    )
    debias = K * 2 * fine.law.second_moment * fine.unit_squared
    assert debias == pytest.approx(4 * 8 * 2 / 1**2, rel=1e-9)


def test_unequal_noises():
    a, b = release(LAPLACE), release(GAUSSIAN)
    kappa2 = LAPLACE.law.second_moment + GAUSSIAN.law.second_moment
    assert al.squared_distances(a, b).value == pytest.approx(by_hand(a, b, kappa2))


def test_a_clear_query_has_no_noise():
    a, clear = release(LAPLACE), al.sketch_in_clear(LAPLACE, X)
    assert al.squared_distances(a, clear).value == pytest.approx(by_hand(a, clear, LAPLACE.law.second_moment))
    exact = al.squared_distances(clear)
    assert exact.value == pytest.approx(by_hand(clear, clear, 0.0))
    assert exact.variance == pytest.approx(2 / K * exact.value**2)


def test_a_row_against_itself_is_exactly_zero():
    a = release(LAPLACE)
    within = al.squared_distances(a)
    for matrix in (
        within.value,
        within.variance,
        within.interval()[0],
        within.interval()[1],
        al.distances(a).value,
    ):
        assert np.array_equal(np.diag(matrix), np.zeros(4))
    assert not np.diag(within.resolved()).any()
    assert np.array_equal(within.value, within.value.T)
    assert within.pairs == 6
    assert al.squared_distances(a, a[1:]).value[1, 0] == 0


def test_sums_that_share_a_noise_are_the_difference_of_the_rest():
    a, b, c, d = release(LAPLACE)
    shared = al.squared_distances(a + b, b + c)
    plain = al.squared_distances(a, c)
    assert shared.value == pytest.approx(plain.value)
    assert shared.variance == pytest.approx(plain.variance)
    for end, expected in zip(shared.interval(), plain.interval(), strict=True):
        assert end == pytest.approx(expected)
    drift_of_drifts = al.squared_distances(c - b, b - a)  # c − 2b + a
    m2 = LAPLACE.law.second_moment
    raw = ((c.values - 2 * b.values + a.values).astype(float) ** 2).sum()
    assert drift_of_drifts.value[0, 0] == pytest.approx(UNIT * (raw - K * (1 + 4 + 1) * m2))
    k2, k4 = 6 * m2 * UNIT, (1 + 16 + 1) * LAPLACE.law.cumulants.k4 * UNIT**2
    at = max(drift_of_drifts.value[0, 0], 0)
    assert drift_of_drifts.variance[0, 0] == pytest.approx(2 / K * at**2 + 4 * k2 * at + K * (k4 + 2 * k2**2))
    assert al.squared_distances(d, 2 * d - d).value[0, 0] == 0


def test_multiples_scale_everything():
    a, b = release(LAPLACE), release(LAPLACE)
    plain, scaled = al.squared_distances(a, b), al.squared_distances(a * 0.5, b * 0.5)
    assert scaled.value == pytest.approx(plain.value / 4)
    assert scaled.variance == pytest.approx(plain.variance / 16)
    lower, upper = plain.interval()
    assert scaled.interval()[0] == pytest.approx(lower / 4, rel=2e-3, abs=0.05)
    assert scaled.interval()[1] == pytest.approx(upper / 4, rel=2e-3)


def test_squared_norms():
    a = release(LAPLACE)
    estimate = al.squared_norms(a)
    m2 = LAPLACE.law.second_moment
    assert estimate.value == pytest.approx(UNIT * ((a.values.astype(float) ** 2).sum(axis=1) - K * m2))
    d = np.maximum(estimate.value, 0)
    k2, k4 = m2 * UNIT, LAPLACE.law.cumulants.k4 * UNIT**2
    assert estimate.variance == pytest.approx(2 / K * d**2 + 4 * k2 * d + K * (k4 + 2 * k2**2))
    assert estimate.to_arrow().column_names == ["label", "value", "lower", "upper", "resolved", "in_clear"]


def test_inner_products_subtract_only_noise_that_is_shared():
    a, b = release(LAPLACE), release(LAPLACE)
    m2 = LAPLACE.law.second_moment
    product = UNIT * (a.values.astype(float) @ b.values.T)
    assert al.inner_products(a, b).value == pytest.approx(product)
    own = al.inner_products(a)
    assert own.value == pytest.approx(UNIT * (a.values.astype(float) @ a.values.T - K * m2 * np.eye(4)))
    assert np.diag(own.value) == pytest.approx(al.squared_norms(a).value)
    assert "approximate" in own.note


def test_inner_product_variance_is_that_of_a_norm_on_the_diagonal():
    a = release(LAPLACE)
    assert np.diag(al.inner_products(a).variance) == pytest.approx(al.squared_norms(a).variance)


def test_similarity_is_of_profiles_alone():
    with pytest.raises(al.ParameterError, match="profiles"):
        al.similarities(release(LAPLACE), about="counts")


def test_only_squared_quantities_have_a_variance():
    a = release(LAPLACE)
    for estimate in (al.distances(a), al.distances(a, release(LAPLACE))):
        with pytest.raises(al.ParameterError, match="squared quantities"):
            estimate.variance  # noqa: B018  # the access is the test


def test_distances_are_roots_of_squared_distances():
    a, b = release(LAPLACE), release(GAUSSIAN)
    squared, plain = al.squared_distances(a, b), al.distances(a, b)
    assert plain.value == pytest.approx(np.sqrt(np.maximum(squared.value, 0)))
    for end, squared_end in zip(plain.interval(0.9), squared.interval(0.9), strict=True):
        assert end == pytest.approx(np.sqrt(squared_end))


def test_tables_list_each_pair_once():
    a = release(LAPLACE)
    table = al.squared_distances(a).to_arrow(0.99, simultaneous=True)
    assert table.num_rows == 6
    pairs = list(zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True))
    assert pairs == [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
    assert table.schema.metadata[b"quantity"] == b"squared distances"
    frame = al.distances(a, release(LAPLACE, "wxyz")).to_pandas()
    assert len(frame) == 16
    assert list(frame.columns) == ["left", "right", "value", "lower", "upper", "resolved", "in_clear"]


def test_what_is_no_sketch_is_refused():
    for ask in (al.squared_distances, al.squared_norms, al.inner_products, al.similarities, al.distances):
        with pytest.raises(al.ParameterError, match=r"al\.Sketches"):
            ask(X)


@pytest.mark.parametrize("size", [1, 2**20, 2**24, 2**26, 2**40, 2**62])
def test_distances_are_the_same_by_products_and_by_differences(size):
    # Products are used only while every sum is an integer that float64 holds exactly.
    protocol = al.Protocol(al.Identity(input_dim=6), epsilon=1)
    base = np.random.default_rng(1).integers(-9, 9, (5, 6))
    sketches = al.sketch_in_clear(protocol, size + base)
    expected = ((base[:, None] - base[None]) ** 2).sum(-1)
    assert np.array_equal(al.squared_distances(sketches).value, expected)
