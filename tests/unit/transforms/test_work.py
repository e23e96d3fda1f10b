"""Work is counted before it is done: never less than what is then done, and in proportion to it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armslength as al
from armslength.randomness.seeds import Stream
from armslength.transforms import hadamard_jl, sparse_jl
from armslength.transforms.work_units import HASH_STEP
from costly import GROWING

SIZES = st.integers(1, 300)
ROWS = st.integers(1, 12)


@pytest.fixture(scope="module")
def done():
    """What transforms do from here on: words drawn, multiplications of hash functions, steps of Hadamard transforms."""
    counted = Counter()

    def counting(what, amount, function):
        def call(*given, **named):
            counted[what] += amount(*given)
            return function(*given, **named)

        return call

    def hashed(coefficients, *given):
        items = given[-3]
        return len(items) * coefficients.shape[0] * coefficients.shape[1]

    def doubled(*given):
        rows, padded = len(given[0]) - 1, given[3]
        return rows * padded * (padded.bit_length() - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "words", counting("words", lambda *given: given[2], Stream.words))
        for kernel in ("block_columns", "graph_columns", "balanced_columns"):
            patch.setattr(sparse_jl, kernel, counting("hash steps", hashed, getattr(sparse_jl, kernel)))
        scan = hadamard_jl.column_norms_of_walsh
        patch.setattr(hadamard_jl, "column_norms_of_walsh", counting("walsh steps", doubled, scan))
        yield counted


def least(counted):
    """What this takes at the least, in the units of work."""
    return counted["words"] + HASH_STEP * counted["hash steps"] + 0.7 * counted["walsh steps"]


transforms = st.one_of(
    st.builds(
        lambda d, bins, s, construction, t: al.SparseJL(
            input_dim=d, sketch_dim=bins * s, sparsity=s, seed="x", construction=construction, independence=t
        ),
        SIZES,
        ROWS,
        st.integers(1, 4),
        st.sampled_from(sparse_jl.CONSTRUCTIONS),
        st.integers(4, 256),
    ),
    st.builds(
        lambda d, k, q: al.FastJL(input_dim=d, sketch_dim=k, seed="x", density=q),
        SIZES,
        ROWS,
        st.floats(0.01, 1),
    ),
    st.builds(lambda d, k: al.GaussianJL(input_dim=d, sketch_dim=k, seed="x"), SIZES, ROWS),
    st.builds(
        lambda d, k, kind: al.SignJL(input_dim=d, sketch_dim=k, seed="x", construction=kind),
        SIZES,
        ROWS,
        st.sampled_from(["dense", "sparse"]),
    ),
    st.builds(lambda d: al.HadamardJL(input_dim=d, sketch_dim=1, seed="x"), SIZES),
    st.builds(al.Identity, input_dim=SIZES),
)


def did(done, compute):
    done.clear()
    compute()
    return least(done)


@settings(deadline=None, max_examples=150)
@given(transform=transforms, count=st.integers(1, 300))
def test_no_more_is_done_than_was_counted(done, transform, count):
    def fresh():
        build, arguments = transform.__reduce__()
        return build(*arguments)

    scanned, made = fresh(), fresh()
    assert did(done, lambda: (scanned.l1_sensitivity, scanned.l2_sensitivity_squared)) <= transform.scan_work
    items = np.arange(count) % transform.input_dim
    assert did(done, lambda: made.columns(items)) <= transform.columns_work(count)
    if isinstance(transform, al.FastJL):
        traced = fresh()
        assert did(done, lambda: traced.gram_traces) <= transform.traces_work


@pytest.mark.parametrize("name", GROWING)
def test_work_grows_as_what_is_done(name):
    """Twice the columns are about twice the work; twice the rows at most eight times, for a product of matrices."""
    build, _ = GROWING[name]
    most = 8 if "rows" in name else 2.4

    def all_work(size):
        made = build(size)
        parts = [made.scan_work, made.columns_work(16)]
        return sum(parts) + (made.traces_work if isinstance(made, al.FastJL) else 0)

    small, large = all_work(2**20), all_work(2**21)
    assert 1.8 * small <= large <= most * small


def test_what_has_a_formula_is_no_work():
    for transform in (
        al.SparseJL(input_dim=2**40, sketch_dim=2**20, sparsity=16, seed="x"),
        al.SparseJL(sketch_dim=2**20, sparsity=16, seed="x"),
        al.HadamardJL(input_dim=2**28, sketch_dim=2**24, seed="x"),
        al.Identity(input_dim=2**24),
        al.SignJL(input_dim=2**20, sketch_dim=2**14, seed="x"),
    ):
        assert transform.scan_work == 0
