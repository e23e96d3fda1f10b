"""apply equals matrix() @ x modulo 2^64: for every type, layout, chunking and thread count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import armslength as al
from armslength.transforms import dense_jl, sparse_jl
from armslength.transforms import transform as transform_module
from armslength.transforms.integer_rows import integer_rows
from reference.transforms import CASES, dense

TYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]
BUILT = {name: build() for name, (build, _) in CASES.items()}


def modular(X, matrix):
    """X·Aᵀ modulo 2^64, in Python integers, as int64."""
    exact = np.array(X.tolist(), dtype=object).reshape(X.shape) @ dense(matrix).T.astype(object)
    return np.array(
        [[(int(v) + 2**63) % 2**64 - 2**63 for v in row] for row in exact], dtype=np.int64
    ).reshape(len(X), matrix.shape[0])


@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
def test_every_integer_type_over_its_whole_range(name, dtype, data):
    transform = BUILT[name]
    X = data.draw(arrays.arrays(dtype, (2, transform.input_dim)))
    assert np.array_equal(transform.apply(X), modular(X, transform.matrix()))


@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("dtype", TYPES)
def test_extremes_of_every_type_dense_and_sparse(name, dtype):
    transform = BUILT[name]
    extremes = [False, True] if dtype is np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    X = np.array([[value] * transform.input_dim for value in extremes], dtype=dtype)
    expected = modular(X, transform.matrix())
    assert np.array_equal(transform.apply(X), expected)
    assert np.array_equal(transform.apply(np.asfortranarray(X)), expected)
    assert np.array_equal(transform.apply(sparse.csr_array(X)), expected)


@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("dtype", TYPES)
def test_every_sparse_format_of_every_type_at_its_extremes(name, dtype):
    transform = BUILT[name]
    extremes = [False, True] if dtype is np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    X = np.random.default_rng(1).choice(np.array(extremes, dtype=dtype), (3, transform.input_dim))
    expected = modular(X, transform.matrix())
    for layout in FORMATS:
        for coordinates in (sparse.coo_array(X), sparse.coo_matrix(X)):
            assert np.array_equal(transform.apply(coordinates.asformat(layout)), expected), layout


@pytest.mark.parametrize("name", list(BUILT))
def test_duplicate_entries_add_up_in_int64(name):
    transform = BUILT[name]
    last = transform.input_dim - 1
    entries = (np.array([127, 127, 127], dtype=np.int8), (np.array([0, 0, 0]), np.array([last] * 3)))
    X = sparse.coo_array(entries, shape=(1, transform.input_dim))
    expected = 381 * dense(transform.columns([last])).T
    assert np.array_equal(transform.apply(X), expected)
    rows = sparse.csr_array(
        (entries[0], np.array([last] * 3), np.array([0, 3])), shape=(1, transform.input_dim)
    )
    assert np.array_equal(transform.apply(rows), expected)


@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_in_any_order_are_neither_sorted_nor_copied(name, dtype):
    transform = BUILT[name]
    rng = np.random.default_rng(5)
    width = transform.input_dim
    places = rng.integers(0, width, 60)  # neither in order nor each once
    limits = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = rng.integers(*limits, 60, dtype=np.uint8 if dtype is np.bool_ else dtype, endpoint=True).astype(
        dtype
    )
    X = sparse.csr_array((values, places, np.array([0, 25, 25, 60])), shape=(3, width))
    rows = integer_rows(X, width)
    assert np.shares_memory(rows.columns, X.indices)
    assert np.shares_memory(rows.values, X.data)
    summed = np.zeros((3, width), dtype=object)
    for row, place, value in zip([0] * 25 + [2] * 35, places, values.tolist(), strict=True):
        summed[row, place] += int(value)
    assert np.array_equal(transform.apply(X), modular(summed, transform.matrix()))


@pytest.mark.parametrize("name", list(BUILT))
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("entries_at_once", [1, 100, 1 << 20])
def test_any_thread_count_and_chunking(name, threads, entries_at_once, monkeypatch):
    transform = CASES[name][0]()
    X = np.random.default_rng(2).integers(-(2**62), 2**62, (23, transform.input_dim))
    expected = modular(X, transform.matrix())
    monkeypatch.setattr(transform_module, "_BLOCK_ENTRIES", entries_at_once)
    monkeypatch.setattr(dense_jl, "_ENTRIES_AT_ONCE", entries_at_once)
    monkeypatch.setattr(sparse_jl, "_COLUMNS_AT_ONCE", entries_at_once)
    monkeypatch.setattr(sparse_jl, "_KEPT_ENTRIES", entries_at_once)
    fresh = CASES[name][0]()
    for view in (X, X[::-1][::-1], np.asfortranarray(X), sparse.csr_array(X)):
        assert np.array_equal(fresh.apply(view, threads=threads), expected)


def test_strided_and_read_only_and_big_endian_input():
    transform = al.SparseJL(input_dim=10, sketch_dim=4, sparsity=2, seed="x")
    wide = np.arange(60).reshape(3, 20)
    wide.flags.writeable = False
    expected = modular(wide[:, ::2], transform.matrix())
    assert np.array_equal(transform.apply(wide[:, ::2]), expected)
    assert np.array_equal(transform.apply(wide[:, ::2].astype(">i4")), expected)


def test_no_rows_at_all():
    for transform in BUILT.values():
        assert transform.apply(np.zeros((0, transform.input_dim), dtype=int)).shape == (
            0,
            transform.sketch_dim,
        )
        empty = sparse.csr_array((0, transform.input_dim), dtype=int)
        assert transform.apply(empty).shape == (0, transform.sketch_dim)


@pytest.mark.parametrize("name", list(BUILT))
@given(data=st.data())
def test_linear_modulo_two_to_the_64(name, data):
    transform = BUILT[name]
    X, Y = (data.draw(arrays.arrays(np.int64, (1, transform.input_dim))) for _ in range(2))
    assert np.array_equal(transform.apply(X + Y), transform.apply(X) + transform.apply(Y))
    assert np.array_equal(transform.apply(3 * X), 3 * transform.apply(X))


@given(st.lists(st.text(), min_size=1, max_size=6), st.integers(1, 3))
def test_open_vocabulary_applies_by_name_whatever_the_order(items, rows):
    transform = al.SparseJL(sketch_dim=12, sparsity=3, seed="x")
    try:
        matrix = transform.columns(items)
    except al.InputError:
        return
    X = np.arange(rows * len(items)).reshape(rows, -1)
    expected = X @ dense(matrix).T
    assert np.array_equal(transform.apply(X, items=items), expected)
    assert np.array_equal(transform.apply(X[:, ::-1], items=items[::-1]), expected)
    assert np.array_equal(transform.apply(sparse.csr_array(X), items=items), expected)


def test_products_beyond_float64_are_still_exact():
    transform = al.GaussianJL(input_dim=40, sketch_dim=8, seed="x")
    for size in (2**45, 2**46, 2**47, 2**52, 2**53, 2**62):
        X = np.full((2, 40), size, dtype=np.int64)
        X[1] *= -1
        X[:, 0] += 1
        assert np.array_equal(transform.apply(X), modular(X, transform.matrix()))
