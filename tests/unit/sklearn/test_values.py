"""What comes out is c·A·x: the matrix of the transform, the float type of the input, each row by itself."""

import numpy as np
import pytest
from scipy import sparse

import armslength as al
from armslength import sklearn as transformers
from armslength.transforms import dense_jl, hadamard_jl, transform
from statistical.limits import LIMIT, check_mean

N, D, K = 23, 37, 16

ESTIMATORS = {
    "sparse": transformers.SparseJLTransformer(K),
    "sparse s=4": transformers.SparseJLTransformer(K, sparsity=4, construction="balanced"),
    "sparse graph": transformers.SparseJLTransformer(K, sparsity=3, construction="graph"),
    "hadamard": transformers.HadamardJLTransformer(K),
    "fast": transformers.FastJLTransformer(K, density=0.3),
    "gaussian": transformers.GaussianJLTransformer(K),
    "sign": transformers.SignJLTransformer(K),
    "sign sparse": transformers.SignJLTransformer(K, construction="sparse"),
}
BLAS = {"gaussian", "sign", "sign sparse"}  # its rounding depends on how many rows there are
each = pytest.mark.parametrize("name", list(ESTIMATORS))


def reals():
    X = np.random.default_rng(1).standard_normal((N, D))
    X[X < -0.5] = 0
    return X


def expected(estimator, X):
    matrix = estimator.transform_.matrix()
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    return estimator.transform_.scale * (X @ dense.T)


@pytest.fixture(params=["whole", "in parts"])
def sizes(request, monkeypatch):
    """As it is, and with everything cut into parts that no size divides."""
    if request.param == "in parts":
        monkeypatch.setattr(transform, "_FLOAT_COLUMNS", 5)
        monkeypatch.setattr(dense_jl, "_ENTRIES_AT_ONCE", 5 * K)
        monkeypatch.setattr(hadamard_jl, "_STEP_ENTRIES", 256)


@each
@pytest.mark.usefixtures("sizes")
def test_dense_rows_are_multiplied_by_the_matrix(name):
    X = reals()
    estimator = ESTIMATORS[name].fit(X)
    for given in (X, np.asfortranarray(X), X[:0:-1]):
        assert estimator.transform(given) == pytest.approx(expected(estimator, given), rel=1e-12, abs=1e-12)


@each
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
def test_sparse_rows_are_multiplied_by_the_matrix(name, form):
    X = reals()
    estimator = ESTIMATORS[name].fit(getattr(sparse, form)(X))
    found = estimator.transform(getattr(sparse, form)(X))
    assert sparse.issparse(found) == (name == "identity")
    found = found.toarray() if sparse.issparse(found) else found
    assert found == pytest.approx(expected(estimator, X), rel=1e-12, abs=1e-12)


def test_spare_room_and_duplicates_of_a_sparse_matrix():
    estimator = transformers.SparseJLTransformer(K).fit(np.ones((1, D)))
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([3, 3, 9]), np.array([0, 3])), shape=(1, D))
    plain = np.zeros((1, D))
    plain[0, [3, 9]] = 3, 4
    assert estimator.transform(X) == pytest.approx(expected(estimator, plain))
    X.data, X.indices = np.append(X.data, 99.0), np.append(X.indices, 10**6)
    assert estimator.transform(X) == pytest.approx(expected(estimator, plain))


@each
def test_float32_is_the_float64_result_rounded_once(name):
    X = reals().astype(np.float32)
    estimator = ESTIMATORS[name].fit(X)
    found = estimator.transform(X)
    assert found.dtype == np.float32
    exact = estimator.transform(X.astype(np.float64))
    assert exact.dtype == np.float64
    assert np.array_equal(found, exact.astype(np.float32))
    sparse_found = estimator.transform(sparse.csr_array(X))
    assert sparse_found.dtype == np.float32


@each
def test_a_row_does_not_know_the_others(name):
    X = reals()
    estimator = ESTIMATORS[name].fit(X)
    together = estimator.transform(X)
    alone = np.concatenate([estimator.transform(X[i : i + 1]) for i in range(N)])
    if name in BLAS:
        assert alone == pytest.approx(together, rel=1e-12, abs=1e-12)
    else:
        assert np.array_equal(alone, together)


@each
def test_the_space_is_that_of_a_protocol_with_the_same_transform(name):
    counts = np.random.default_rng(2).integers(0, 1000, (N, D))
    estimator = ESTIMATORS[name].fit(counts)
    protocol = al.Protocol(estimator.transform_, epsilon=1, delta="1e-6")
    clear = al.sketch_in_clear(protocol, counts)
    assert np.array_equal(estimator.transform(counts), clear.values * estimator.transform_.scale)


def test_the_transform_is_the_one_that_a_user_would_build():
    X = np.ones((2, D))
    assert transformers.SparseJLTransformer(8, sparsity=2, seed="trial").fit(X).transform_ == al.SparseJL(
        input_dim=D, sketch_dim=8, sparsity=2, seed="trial"
    )
    assert transformers.HadamardJLTransformer(8).fit(X).transform_ == al.HadamardJL(
        input_dim=D, sketch_dim=8, seed="armslength"
    )
    assert transformers.FastJLTransformer(8).fit(X).transform_ == al.FastJL(
        input_dim=D, sketch_dim=8, seed="armslength"
    )
    assert transformers.GaussianJLTransformer(8).fit(X).transform_ == al.GaussianJL(
        input_dim=D, sketch_dim=8, seed="armslength"
    )
    assert transformers.SignJLTransformer(8, seed="a", construction="sparse").fit(X).transform_ == al.SignJL(
        input_dim=D, sketch_dim=8, seed="a", construction="sparse"
    )


@pytest.mark.parametrize("kind", ["SparseJL", "HadamardJL", "FastJL", "GaussianJL", "SignJL"])
def test_squared_distances_are_kept_in_the_mean_over_seeds(kind):
    pair = np.random.default_rng(3).standard_normal((2, 100))
    difference = pair[0] - pair[1]
    l2_squared, l4_fourth = float((difference**2).sum()), float((difference**4).sum())
    build = getattr(transformers, f"{kind}Transformer")
    variance = build(32).fit(pair).transform_.norm_variance(l2_squared, l4_fourth)
    # A tenth of the mean is two limits wide, and a tenth more against chance.
    seeds = int(1.1 * (2 * LIMIT / 0.1) ** 2 * variance / l2_squared**2) + 1
    found = np.empty(seeds)
    for number in range(seeds):
        left, right = build(32, seed=f"distances {number}").fit_transform(pair)
        found[number] = ((left - right) ** 2).sum()
    check_mean(found, l2_squared, variance)
