"""norm_variance: the formulas of the design, at values worked out by hand, and their bounds."""

import math

import numpy as np
import pytest

import armslength as al


def test_sparse_hadamard_and_dense_sign_formulas():
    assert al.SparseJL(input_dim=100, sketch_dim=8, sparsity=2, seed="x").norm_variance(
        5.0, 17.0
    ) == pytest.approx(2 / 8 * (25 - 17))
    assert al.SignJL(input_dim=100, sketch_dim=8, seed="x").norm_variance(5.0, 17.0) == pytest.approx(
        2 / 8 * (25 - 17)
    )
    # d' = 128
    assert al.HadamardJL(input_dim=100, sketch_dim=8, seed="x").norm_variance(5.0, 17.0) == pytest.approx(
        2 / 8 * 120 / 127 * (25 - 17)
    )


def test_balanced_formula_by_counting_pairs():
    # 10 columns in 4 bins: sizes 3, 3, 2, 2, so 6+6+2+2 = 16 ordered pairs of 90 meet, against 90/4
    factor = 4 * 16 / 90
    assert al.SparseJL(
        input_dim=10, sketch_dim=8, sparsity=2, seed="x", construction="balanced"
    ).norm_variance(5.0, 17.0) == pytest.approx(factor * 2 / 8 * 8)
    assert (
        al.SparseJL(input_dim=4, sketch_dim=8, sparsity=2, seed="x", construction="balanced").norm_variance(
            5.0
        )
        == 0.0
    )
    assert (
        al.SparseJL(input_dim=1, sketch_dim=8, sparsity=2, seed="x", construction="balanced").norm_variance(
            5.0
        )
        == 0.0
    )


def test_gaussian_and_sparse_sign_are_two_over_k():
    assert al.GaussianJL(input_dim=10, sketch_dim=8, seed="x").norm_variance(5.0, 17.0) == pytest.approx(
        2 / 8 * 25, rel=1e-6
    )
    assert al.SignJL(input_dim=10, sketch_dim=8, seed="x", construction="sparse").norm_variance(
        5.0, 17.0
    ) == pytest.approx(2 / 8 * 25)


def test_fast_formula_is_that_of_erratum_6():
    q, d, k = 0.25, 64, 8
    expected = (2 * 25 + 3 / d * (1 / q - 1) * (3 * 25 - 2 * 17)) / k
    # The rounded normal's kurtosis differs from 3 by 4e-7.
    assert al.FastJL(input_dim=50, sketch_dim=k, seed="x", density=q).norm_variance(
        5.0, 17.0
    ) == pytest.approx(expected, rel=1e-6)


def test_fast_default_keeps_the_three_over_k_of_the_paper():
    for d in (10, 1000, 10**6):
        assert al.FastJL(input_dim=d, sketch_dim=8, seed="x").norm_variance(1.0) <= 3 / 8


def test_identity():
    assert al.Identity(input_dim=10).norm_variance(5.0, 17.0) == 0.0


@pytest.mark.parametrize(
    "transform",
    [
        al.SparseJL(input_dim=64, sketch_dim=8, sparsity=2, seed="x"),
        al.SparseJL(input_dim=64, sketch_dim=8, sparsity=2, seed="x", construction="balanced"),
        al.HadamardJL(input_dim=64, sketch_dim=8, seed="x"),
        al.FastJL(input_dim=64, sketch_dim=8, seed="x", density=0.1),
        al.FastJL(input_dim=64, sketch_dim=8, seed="x", density=1.0),
        al.GaussianJL(input_dim=64, sketch_dim=8, seed="x"),
        al.SignJL(input_dim=64, sketch_dim=8, seed="x"),
        al.SignJL(input_dim=64, sketch_dim=8, seed="x", construction="sparse"),
    ],
    ids=lambda transform: transform.name,
)
def test_without_the_fourth_norm_it_is_an_upper_bound(transform):
    bound = transform.norm_variance(3.0)
    for l4 in np.linspace(0, 9.0, 20):
        assert 0 <= transform.norm_variance(3.0, l4) <= bound * (1 + 1e-15)


@pytest.mark.parametrize("bad", [(math.nan,), (-1.0,), (math.inf,), (1.0, math.nan), (1.0, 1.1), (1.0, -0.1)])
def test_impossible_norms_are_refused(bad):
    with pytest.raises(al.ParameterError):
        al.SparseJL(input_dim=10, sketch_dim=4, seed="x").norm_variance(*bad)
