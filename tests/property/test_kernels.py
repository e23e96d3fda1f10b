"""Every kernel of the hot loops equals the naive loop that it stands for, on all integers and at every size around its tiles."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

import armslength as al
from armslength._numba import kernel, sum_columns, transpose_block
from armslength.ingest.events import _totals
from armslength.threads import for_blocks, for_runs
from armslength.transforms import sparse_jl
from armslength.transforms.hadamard_jl import walsh
from armslength.transforms.integer_rows import DenseRows, SparseRows, contiguous, stored_rows
from armslength.transforms.sparse_jl import add_tiles, list_columns, scatter_dense, scatter_sparse

KINDS = [np.int32, np.int64]


def modular(exact):
    """Python integers as int64, modulo 2^64."""
    return np.array([(int(v) + 2**63) % 2**64 - 2**63 for v in exact.ravel()], dtype=np.int64).reshape(
        exact.shape
    )


def any_integers(generator, kind, shape):
    """Small ones, and the whole range with its ends."""
    limits = np.iinfo(kind)
    whole = generator.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    ends = generator.choice(np.array([limits.min, limits.max, 0, 1], dtype=kind), shape)
    small = generator.integers(max(-9, limits.min), 10, shape).astype(kind)
    return np.choose(generator.integers(0, 3, shape), [whole, ends, small]).astype(kind)


def any_columns(generator, count, sketch_dim, sparsity, kind):
    """(encoded columns, the matrix that they stand for)."""
    encoded = np.empty((count, sparsity), dtype=kind)
    matrix = np.zeros((sketch_dim, count), dtype=object)
    for j in range(count):
        for r, row in enumerate(generator.choice(sketch_dim, sparsity, replace=False).tolist()):
            sign = int(generator.choice([1, -1]))
            encoded[j, r] = row if sign > 0 else -1 - row
            matrix[row, j] = sign
    return encoded, matrix


@pytest.mark.parametrize("kind", KINDS)
def test_transpose_block(kind):
    @kernel
    def transpose(source, target):
        transpose_block(source, 3, 5, target, 2, 7)

    size = 64 // np.dtype(kind).itemsize
    source = np.random.default_rng(0).integers(-(2**31), 2**31, (40, 41)).astype(kind)
    target = np.zeros((43, 39), dtype=kind)
    expected = target.copy()
    expected[2 : 2 + size, 7 : 7 + size] = source[3 : 3 + size, 5 : 5 + size].T
    transpose(source, target)
    assert np.array_equal(target, expected)


@pytest.mark.parametrize("kind", ["i4", "i8", "f4", "f8", ">i4", "i2", "u1"])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (17, 40), (50, 7), (33, 65)])
def test_columns_that_lie_together_become_rows(kind, shape):
    X = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    larger = np.asfortranarray(np.pad(X, 3))
    for columns in (np.asfortranarray(X), larger[3:-3, 3:-3], np.asfortranarray(X[:, ::-1])[:, ::-1]):
        turned = contiguous(columns)
        assert turned.flags.c_contiguous
        assert turned.dtype == X.dtype
        assert np.array_equal(turned, X)


@pytest.mark.parametrize("kind", KINDS)
def test_sum_columns_modulo_2_to_the_64(kind):
    @kernel
    def add(tile, columns, totals):
        sum_columns(tile, columns, 1, 4, 6, totals, 2)

    generator = np.random.default_rng(1)
    tile, columns = any_integers(generator, kind, (9, 16)), np.array([0, 3, 3, 8, 1, 7, 2], dtype=np.int32)
    totals = any_integers(generator, np.int64, (4, 16))
    expected = totals.astype(object)
    exact = tile.astype(object)
    expected[2] += exact[3] + exact[3] + exact[8] - exact[1] - exact[7]
    add(tile, columns, totals)
    assert np.array_equal(totals, modular(expected))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 50),
    width=st.integers(1, 70),
    sketch_dim=st.integers(1, 40),
    data=st.data(),
)
def test_tiles_and_scatter_equal_the_naive_product(kind, seed, n, width, sketch_dim, data):
    generator = np.random.default_rng(seed)
    sparsity = data.draw(st.integers(1, sketch_dim))
    encoded, matrix = any_columns(
        generator, width, sketch_dim, sparsity, data.draw(st.sampled_from([np.int16, np.int32]))
    )
    rows = any_integers(generator, kind, (n, width))
    before = any_integers(generator, np.int64, (n, sketch_dim))
    expected = modular(before.astype(object) + rows.astype(object) @ matrix.T)

    starts, columns = list_columns(encoded, sketch_dim)
    for add in (
        lambda product: add_tiles(
            rows,
            starts,
            columns,
            product,
            np.full((width, 16), 7, dtype=kind),
            np.full((sketch_dim, 16), 7),
            np.full((16, sketch_dim), 7),
        ),
        lambda product: scatter_dense(rows, encoded, product),
        lambda product: scatter_sparse(
            np.arange(0, n * width + 1, width),
            np.tile(np.arange(width, dtype=np.int32), n),
            rows.ravel(),
            encoded,
            product,
        ),
    ):
        product = before.copy()
        add(product)
        assert np.array_equal(product, expected)


@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 32, 64, 128, 1024])
def test_walsh_is_the_hadamard_matrix_modulo_2_to_the_64(length):
    vector = any_integers(np.random.default_rng(length), np.int64, length)
    signs = np.array([[-1 if (i & j).bit_count() % 2 else 1 for j in range(length)] for i in range(length)])
    expected = modular(signs.astype(object) @ vector.astype(object))
    walsh(vector)
    assert np.array_equal(vector, expected)


@pytest.mark.parametrize("rows", [7, 8, 15, 16, 17, 33, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "backward", "read-only"])
def test_rows_around_a_tile_in_every_layout(rows, threads, layout):
    transform = al.SparseJL(input_dim=70, sketch_dim=24, sparsity=3, seed="x", construction="graph")
    X = any_integers(np.random.default_rng(rows), np.int32, (rows, 70))
    forms = {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "backward": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "read-only": X.copy(),
    }
    forms["read-only"].flags.writeable = False
    expected = modular(X.astype(object) @ transform.matrix().toarray().T.astype(object))
    assert np.array_equal(transform.apply(forms[layout], threads=threads), expected)


@pytest.mark.parametrize("kept", [True, False])
def test_more_columns_than_one_tile_and_one_part_hold(monkeypatch, kept):
    monkeypatch.setattr(sparse_jl, "TILE_COLUMNS", 32)
    monkeypatch.setattr(sparse_jl, "_COLUMNS_AT_ONCE", 100)
    if not kept:
        monkeypatch.setattr(sparse_jl, "_KEPT_ENTRIES", 0)
    transform = al.SparseJL(input_dim=257, sketch_dim=8, sparsity=2, seed="x")
    for kind in (np.int8, np.uint32, np.int64):
        X = any_integers(np.random.default_rng(3), kind, (21, 257))
        expected = modular(X.astype(object) @ transform.matrix().toarray().T.astype(object))
        assert np.array_equal(transform.apply(X), expected)


@pytest.mark.parametrize("sketch_dim", [2**15 - 1, 2**15, 2**15 + 1])
@pytest.mark.parametrize("rows", [3, 20])
def test_rows_of_the_sketch_around_15_bits(sketch_dim, rows):
    transform = al.SparseJL(input_dim=90, sketch_dim=sketch_dim, sparsity=1, seed="x", construction="graph")
    X = any_integers(np.random.default_rng(4), np.int16, (rows, 90))
    assert np.array_equal(transform.apply(X), (transform.matrix() @ X.T.astype(np.int64)).T)


@pytest.mark.parametrize(
    ("starts", "columns", "fine"),
    [
        ([0, 2, 4], [0, 3, 1, 2], True),
        ([0, 0, 0], [], True),
        ([0, 2, 4], [3, 0, 1, 2], False),  # not in order
        ([0, 2, 4], [0, 0, 1, 2], False),  # twice
        ([0, 2, 4], [0, 4, 1, 2], False),  # beyond the last column
        ([0, 2, 4], [-1, 3, 1, 2], False),
        ([0, 5, 4], [0, 3, 1, 2], False),  # rows that do not follow each other
        ([0, 2, 400], [0, 3, 1, 2], False),  # entries that are not there
        ([-1, 2, 4], [0, 3, 1, 2], False),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_a_valid_sparse_matrix(starts, columns, fine, kind):
    index = np.int32 if np.dtype(kind).itemsize < 8 else np.int64
    parts = {"indptr": np.array(starts, dtype=index), "indices": np.array(columns, dtype=index)}
    matrix = SimpleNamespace(format="csr", shape=(2, 4), data=np.ones(len(columns)), **parts)
    assert (stored_rows(matrix, any_order=False) is not None) is fine
    follow = starts[0] == 0 and all(a <= b <= len(columns) for a, b in itertools.pairwise(starts))
    inside = follow and all(
        0 <= columns[place] < 4 for a, b in itertools.pairwise(starts) for place in range(a, b)
    )
    assert (stored_rows(matrix, any_order=True) is not None) is inside


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_entries_and_of_amounts_wrap(kind):
    top = np.iinfo(np.int64).max
    columns = np.array([1, 1, 2], dtype=kind)
    dense = SparseRows(np.array([0, 2, 3]), columns, np.array([top, 2, 3]), 3).block(0, 2)
    assert dense.tolist() == [[0, -(2**63) + 1, 0], [0, 0, 3]]
    assert _totals(np.array([0, 1, 0], dtype=kind), np.array([top, 5, 2]), 2).tolist() == [-(2**63) + 1, 5]


@given(total=st.integers(0, 300), block=st.integers(1, 60), threads=st.sampled_from([None, 1, 2, 3, 7]))
def test_blocks_and_runs_cover_everything_once(total, block, threads):
    for cover in (for_blocks, for_runs):
        found = []
        cover(total, block, lambda start, stop, found=found: found.append((start, stop)), threads)
        found.sort()
        assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])][: len(found)]
        assert (found[-1][1] if found else 0) == total
        # every run but the last is whole blocks
        assert all((stop - start) % block == 0 for start, stop in found[:-1])
        assert cover is for_runs or all(stop - start <= block for start, stop in found)


def test_rows_that_are_ready_are_taken_as_they_are():
    transform = al.SparseJL(input_dim=5, sketch_dim=4, sparsity=1, seed="x")
    X = np.arange(10).reshape(2, 5)
    assert np.array_equal(transform.apply(DenseRows(X)), transform.apply(X))
    with pytest.raises(al.InputError, match="must have 5 columns"):
        transform.apply(DenseRows(X[:, :4]))


def test_kernels_release_the_lock_and_start_no_threads_of_their_own():
    import importlib  # noqa: PLC0415  # only this test walks the package
    import pkgutil  # noqa: PLC0415  # the same

    found = {
        value
        for module in pkgutil.walk_packages(al.__path__, "armslength.")
        if not module.name.endswith("__main__")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, Dispatcher)
    }
    assert len(found) > 30
    for each in found:
        assert each.targetoptions.get("nogil") is True
        assert not each.targetoptions.get("parallel")
        assert not each.targetoptions.get("fastmath")
