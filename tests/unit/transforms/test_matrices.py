"""Every transform against the second implementation, which follows only the written specification."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armslength as al
from armslength.protocol.schema import build_transform
from armslength.randomness import sampling
from armslength.transforms import dense_jl, hadamard_jl, sparse_jl
from reference import spec
from reference.transforms import CASES, dense


@pytest.fixture(params=list(CASES))
def case(request):
    build, specified = CASES[request.param]
    return build(), np.array(specified())


def test_matrix_is_the_specified_one(case):
    transform, specified = case
    matrix = transform.matrix()
    assert matrix.dtype == np.int64
    assert np.array_equal(dense(matrix), specified)


def test_any_column_alone_is_the_same(case):
    transform, specified = case
    for j in range(transform.input_dim):
        assert np.array_equal(dense(transform.columns([j])), specified[:, [j]])
    order = [transform.input_dim - 1, 0, 0]
    assert np.array_equal(dense(transform.columns(order)), specified[:, order])


def test_sensitivities_are_the_largest_columns(case):
    transform, specified = case
    assert transform.l1_sensitivity == np.abs(specified).sum(axis=0).max()
    assert transform.l2_sensitivity_squared == (specified**2).sum(axis=0).max()
    assert type(transform.l1_sensitivity) is int
    assert type(transform.l2_sensitivity_squared) is int


def test_a_transform_is_built_again_from_its_parameters(case):
    transform, _ = case
    again = build_transform(transform.name, transform.parameters())
    assert again == transform
    assert hash(again) == hash(transform)
    assert np.array_equal(dense(again.matrix()), dense(transform.matrix()))


def test_a_transform_cannot_be_changed():
    transform = al.SparseJL(input_dim=10, sketch_dim=4, seed="x")
    with pytest.raises(AttributeError):
        transform.seed = "y"


def test_open_vocabulary_of_strings_and_ids():
    items = ["", "a", "A", " a", "0042", "42", "é", "🜁", "x" * 1000]
    transform = al.SparseJL(sketch_dim=12, sparsity=3, seed="trial-2026")
    assert np.array_equal(
        dense(transform.columns(items)), spec.sparse_jl(items, 12, 3, 16, "trial-2026", "block")
    )
    graph = al.SparseJL(sketch_dim=12, sparsity=3, seed="trial-2026", construction="graph")
    ids = [0, 1, -1, 2**63 - 1, -(2**63), 2**61 - 1, 2**61]
    assert np.array_equal(dense(graph.columns(ids)), spec.sparse_jl(ids, 12, 3, 16, "trial-2026", "graph"))


def test_open_vocabulary_joins_strings_that_mean_the_same_and_no_others():
    transform = al.SparseJL(sketch_dim=2**20, sparsity=1, seed="x")
    composed, decomposed, other = (dense(transform.columns([item])) for item in ("é", "é", "e"))
    assert np.array_equal(composed, decomposed)
    assert not np.array_equal(composed, other)


def test_ids_that_agree_modulo_a_small_prime_stay_apart():
    transform = al.SparseJL(sketch_dim=2**20, sparsity=1, seed="x")
    pairs = transform.columns([5, 5 + 2**61 - 1]).tocoo()
    assert len(set(pairs.coords[0].tolist())) == 2


def test_a_fixed_dimension_is_the_open_vocabulary_of_its_column_numbers():
    fixed, open_vocabulary = (
        al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="x"),
        al.SparseJL(sketch_dim=8, sparsity=2, seed="x"),
    )
    assert np.array_equal(dense(fixed.matrix()), dense(open_vocabulary.columns(range(20))))


def test_balanced_bins_are_equal_to_within_one():
    matrix = dense(
        al.SparseJL(input_dim=1003, sketch_dim=64, sparsity=2, seed="x", construction="balanced").matrix()
    )
    sizes = np.abs(matrix).sum(axis=1)
    assert sizes.max() - sizes.min() <= 1


def test_a_fresh_seed_is_made_where_none_is_given():
    first, second = (
        al.SparseJL(input_dim=10, sketch_dim=4),
        al.SparseJL(input_dim=10, sketch_dim=4, seed=None),
    )
    assert first.seed != second.seed
    assert len(first.seed) == 32


BIG = """
import re
import numpy as np
import armslength as al
transform = {build}
x = np.zeros((1, {size}), dtype=np.int8)
x[0, [0, 70_000, -1]] = [1, -2, 3]
got = transform.apply(x)[0]
part = transform.columns([0, 70_000, {size} - 1])
part = part.toarray() if hasattr(part, "toarray") else part
assert np.array_equal(got, part @ [1, -2, 3])
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.parametrize(
    ("build", "size", "megabytes"),
    [
        ('al.SparseJL(input_dim={size}, sketch_dim=1024, seed="x")', 10_000_000, 700),
        (
            'al.SparseJL(input_dim={size}, sketch_dim=1024, sparsity=3, seed="x", construction="graph")',
            3_000_000,
            400,
        ),
        ('al.SparseJL(input_dim={size}, sketch_dim=1024, sparsity=8, seed="x")', 3_000_000, 400),
        (
            'al.SparseJL(input_dim={size}, sketch_dim=1024, sparsity=8, seed="x", construction="balanced")',
            3_000_000,
            550,
        ),
        ('al.HadamardJL(input_dim={size}, sketch_dim=64, seed="x")', 10_000_000, 900),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_millions_of_dimensions_fit_in_little_memory(build, size, megabytes):
    # k x d bytes alone would be 3 or 10 GB.
    done = subprocess.run(
        [sys.executable, "-c", BIG.format(build=build.format(size=size), size=size)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < megabytes


def test_parts_make_the_same_matrices_as_the_whole(monkeypatch):
    monkeypatch.setattr(hadamard_jl, "_WORDS_AT_ONCE", 40)
    monkeypatch.setattr(sampling, "_WORDS_AT_ONCE", 7)
    monkeypatch.setattr(dense_jl, "_ENTRIES_AT_ONCE", 30)
    monkeypatch.setattr(sparse_jl, "_COLUMNS_AT_ONCE", 5)
    for build, specified in CASES.values():
        transform, expected = build(), np.array(specified())
        assert np.array_equal(dense(transform.matrix()), expected)
        assert transform.l1_sensitivity == np.abs(expected).sum(axis=0).max()
        assert transform.l2_sensitivity_squared == (expected**2).sum(axis=0).max()


def test_a_fast_transform_whose_squares_could_overflow_is_refused(monkeypatch):
    transform = al.FastJL(input_dim=64, sketch_dim=4, seed="x", density=1.0)
    published = transform._published.copy()
    published.data[:] = 2**26
    monkeypatch.setitem(transform.__dict__, "_published", published)
    with pytest.raises(al.ParameterError, match="smaller density"):
        transform.l2_sensitivity_squared  # noqa: B018  # the access is the test
