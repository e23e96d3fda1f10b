"""Bad arguments: one clear line each, whatever comes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import armslength as al
from armslength.transforms.registry import build_transform

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.integers(), max_size=3),
    st.complex_numbers(),
    st.just(np.nan),
    st.just(np.array([1, 2])),
    st.just(object()),
    st.decimals(),
)


def one_clear_line(error):
    message = str(error)
    assert isinstance(error, al.ArmslengthError)
    assert message
    assert "\n" not in message
    assert len(message) < 300
    assert "must" in message


def refuses_or_works(build):
    """The call either works or explains itself; nothing else may come out."""
    try:
        build()
    except al.ArmslengthError as error:
        one_clear_line(error)


@given(JUNK, JUNK, JUNK, JUNK, JUNK, JUNK)
def test_sparse_jl_refuses_junk(d, k, s, seed, construction, t):
    refuses_or_works(lambda: al.SparseJL(d, 12, 3, "x", "block", 16))
    refuses_or_works(lambda: al.SparseJL(10, k, 1, "x", "block", 16))
    refuses_or_works(lambda: al.SparseJL(10, 12, s, "x", "block", 16))
    refuses_or_works(lambda: al.SparseJL(10, 12, 3, seed, "block", 16))
    refuses_or_works(lambda: al.SparseJL(10, 12, 3, "x", construction, 16))
    refuses_or_works(lambda: al.SparseJL(10, 12, 3, "x", "block", t))


@given(JUNK, JUNK, JUNK, JUNK)
def test_other_transforms_refuse_junk(d, k, seed, last):
    for transform in (al.HadamardJL, al.GaussianJL, al.SignJL, al.FastJL):
        refuses_or_works(lambda t=transform: t(d, 1, "x"))
        refuses_or_works(lambda t=transform: t(10, k, "x"))
        refuses_or_works(lambda t=transform: t(10, 4, seed))
    refuses_or_works(lambda: al.FastJL(10, 4, "x", last))
    refuses_or_works(lambda: al.SignJL(10, 4, "x", last))
    refuses_or_works(lambda: al.Identity(d))


@given(JUNK, JUNK, JUNK)
def test_matrix_jl_refuses_junk(matrix, scale, coefficients):
    refuses_or_works(lambda: al.MatrixJL(matrix, 1.0))
    refuses_or_works(lambda: al.MatrixJL([[1]], scale))
    refuses_or_works(lambda: al.MatrixJL([[1]], 1.0, variance_coefficients=coefficients))


@given(JUNK)
def test_apply_columns_and_threads_refuse_junk(junk):
    fixed, vocabulary = al.SparseJL(3, 4, seed="x"), al.SparseJL(None, 4, seed="x")
    refuses_or_works(lambda: fixed.apply(junk))
    refuses_or_works(lambda: fixed.columns(junk))
    refuses_or_works(lambda: vocabulary.columns(junk))
    refuses_or_works(lambda: vocabulary.apply([[1]], items=junk))
    refuses_or_works(lambda: fixed.apply([[1, 2, 3]], threads=junk))


@given(st.text(), st.dictionaries(st.text(max_size=9), JUNK, max_size=3))
def test_registry_refuses_junk(name, parameters):
    refuses_or_works(lambda: build_transform(name, parameters))
    refuses_or_works(lambda: build_transform("SparseJL", parameters))
    refuses_or_works(lambda: build_transform("MatrixJL", parameters))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (
            lambda: al.SparseJL(10, 64, 7, "x"),
            "sparsity must divide sketch_dim, got sparsity=7, sketch_dim=64",
        ),
        (lambda: al.SparseJL(10, 0, 1, "x"), "sketch_dim must be an integer from 1"),
        (lambda: al.SparseJL(0, 4, 1, "x"), "input_dim must be an integer from 1"),
        (lambda: al.SparseJL(-3, 4, 1, "x"), "got -3"),
        (lambda: al.SparseJL(10, 4, 5, "x"), "sparsity must be an integer from 1 to 4"),
        (lambda: al.SparseJL(10, 4, 1, 7), "seed must be a string, got 7; try seed='7'"),
        (lambda: al.SparseJL(10, 4, 1, ""), "1 to 256 bytes"),
        (lambda: al.SparseJL(10, 4, 1, "\ud800"), "lone surrogate"),
        (lambda: al.SparseJL(10, 4, 1, "\u0378"), "characters assigned in Unicode"),
        (lambda: al.SparseJL(10, 4, 1, "x", "blocks"), "must be one of 'block', 'graph', 'balanced'"),
        (lambda: al.SparseJL(None, 4, 1, "x", "balanced"), "fixed input_dim"),
        (lambda: al.SparseJL(10, 4, 1, "x", independence=3), "independence must be an integer from 4"),
        (lambda: al.HadamardJL(10, 17, "x"), "at most 16"),
        (lambda: al.FastJL(10, 4, "x", math.nan), "density must be a number above 0 and at most 1"),
        (lambda: al.MatrixJL([[0.5]], 1.0), "matrix must hold integers, got float64"),
        (lambda: al.MatrixJL(sparse.eye_array(3), 1.0), "matrix must hold integers"),
        (lambda: al.MatrixJL([[2**31 + 1]], 1.0), "at most 2^31"),
        (lambda: al.MatrixJL(np.array([[2**64 - 1]], dtype=np.uint64), 1.0), "at most 2^31"),
        (lambda: al.MatrixJL([[1]], math.nan), "scale must be"),
        (lambda: al.MatrixJL(np.zeros((0, 3), dtype=int), 1.0), "an entry"),
        (lambda: al.SparseJL(None, 4, seed="x").matrix(), "open vocabulary"),
        (lambda: al.SparseJL(None, 4, seed="x").apply([[1]]), "items must name"),
        (lambda: al.SparseJL(1, 4, seed="x").apply([[1]], items=["a"]), "items must be left out"),
    ],
)
def test_bad_parameters_say_what_to_do(build, says):
    with pytest.raises(al.ParameterError) as caught:
        build()
    one_clear_line(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([[0.5, 1.0, 2.0]], "X must hold integers, got float64"),
        ([[math.nan, 1.0, 2.0]], "X must hold integers"),
        ([1, 2, 3], "2 dimensions"),
        ([[1, 2]], "3 columns"),
        ([[1 + 2j, 0, 0]], "complex"),
        (np.array([["a", "b", "c"]]), "X must hold integers"),
        (sparse.csr_array(np.array([[0.5, 0, 0]])), "X must hold integers"),
    ],
)
def test_bad_input_never_shows_its_values(X, says):
    for transform in (
        al.SparseJL(3, 4, seed="x"),
        al.HadamardJL(3, 4, "x"),
        al.GaussianJL(3, 4, "x"),
        al.Identity(3),
    ):
        with pytest.raises(al.InputError) as caught:
            transform.apply(X)
        one_clear_line(caught.value)
        assert says in str(caught.value)
        assert "0.5" not in str(caught.value)


def test_a_broken_sparse_matrix_is_refused():
    broken = sparse.csr_array(np.eye(3, dtype=int))
    broken.indices = np.array([0, 1, 99])
    with pytest.raises(al.InputError, match="valid sparse matrix"):
        al.SparseJL(3, 4, seed="x").apply(broken)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (["a", 1], "all strings or all integers"),
        ([1.5], "all strings or all integers"),
        ([True], "all strings or all integers"),
        ("abc", "a sequence"),
        ([2**63], "fit int64"),
        (np.array([2**64 - 1], dtype=np.uint64), "fit int64"),
        (["secret\ud800"], "lone surrogate"),
        (["secret\u0378"], "characters assigned"),
        ([None], "all strings or all integers"),
        (np.array([["a"]]), "all strings or all integers"),
    ],
)
def test_bad_items_say_what_to_do_and_stay_private(items, says):
    with pytest.raises(al.InputError) as caught:
        al.SparseJL(None, 4, seed="x").columns(items)
    one_clear_line(caught.value)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_column_numbers_out_of_range_are_refused():
    for bad in ([-1], [3], [[0]], ["a"], [0.0]):
        with pytest.raises(al.InputError):
            al.SparseJL(3, 4, seed="x").columns(bad)


def test_cards_are_for_people():
    for transform in (
        al.SparseJL(10, 4, seed="trial"),
        al.SparseJL(None, 4, seed="trial"),
        al.MatrixJL([[1]], 1.0),
    ):
        card = transform.card()
        assert transform.name in card
        assert "sensitivity" in card
    assert "open vocabulary" in al.SparseJL(None, 4, seed="trial").card()
