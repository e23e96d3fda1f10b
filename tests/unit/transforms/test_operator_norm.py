"""The bound on ‖A‖² is at least the largest eigenvalue of A·Aᵀ, by exact integers, and not much more."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.transforms.operator_norm import LARGEST_GRAM, operator_norm_bound

D, K = 40, 9
TRANSFORMS = [
    al.SparseJL(input_dim=D, sketch_dim=K, sparsity=1, seed="x"),
    al.SparseJL(input_dim=D, sketch_dim=K, sparsity=1, seed="x", construction="balanced"),
    al.SparseJL(input_dim=D, sketch_dim=K, sparsity=3, seed="x"),
    al.SparseJL(input_dim=D, sketch_dim=K, sparsity=3, seed="x", construction="balanced"),
    al.SparseJL(input_dim=D, sketch_dim=K, sparsity=4, seed="x", construction="graph"),
    al.HadamardJL(input_dim=D, sketch_dim=K, seed="x"),
    al.FastJL(input_dim=D, sketch_dim=K, seed="x", density=0.3),
    al.GaussianJL(input_dim=D, sketch_dim=K, seed="x"),
    al.SignJL(input_dim=D, sketch_dim=K, seed="x"),
    al.SignJL(input_dim=D, sketch_dim=K, seed="x", construction="sparse"),
    al.Identity(input_dim=K),
    al.MatrixJL(np.arange(K * D).reshape(K, D) % 13 - 6, scale=0.3),
]


def exact_gram(transform):
    matrix = transform.matrix()
    dense = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix).astype(object)
    return dense @ dense.T


def is_positive_definite(gram, bound):
    """Whether bound·I − G is, by the signs of its leading minors: exact integers."""
    size, exact = len(gram), Fraction(bound)
    shifted = exact.numerator * np.eye(size, dtype=int).astype(object) - exact.denominator * gram
    return all(fmpz_mat(shifted[:n, :n].tolist()).det() > 0 for n in range(1, size + 1))


@pytest.mark.parametrize(
    "transform", TRANSFORMS, ids=lambda t: f"{t.name} {t.parameters().get('construction', '')}"
)
def test_no_vector_is_stretched_further(transform):
    gram, bound = exact_gram(transform), transform.operator_norm_squared
    assert is_positive_definite(gram, bound + Fraction(1, 1000))
    # Not much more than it must be; padding to a power of two and ‖P‖·‖H‖ cost what they cost.
    loose = isinstance(transform, (al.HadamardJL, al.FastJL))
    assert not is_positive_definite(gram, bound * (Fraction(6, 10) if loose else 1 - Fraction(1, 127)))


@given(
    st.integers(1, 7),
    st.integers(1, 9),
    st.sampled_from([1, 3, 1000, 2**15]),
    st.randoms(use_true_random=False),
)
def test_any_integer_matrix(k, d, largest, random):
    matrix = np.array([[random.randint(-largest, largest) for _ in range(d)] for _ in range(k)])
    bound = operator_norm_bound([matrix], k)
    gram = matrix.astype(object) @ matrix.T.astype(object)
    assert is_positive_definite(gram, bound + Fraction(1, 1000))
    # The next number of eight bits is 1/128 to 1/256 smaller.
    assert bound == 1 or not is_positive_definite(gram, bound * (1 - Fraction(1, 127)))


def test_groups_of_columns_add_up():
    matrix = np.random.default_rng(0).integers(-9, 10, (20, 300))
    whole = operator_norm_bound([matrix], 20)
    assert operator_norm_bound([matrix[:, :7], matrix[:, 7:250], matrix[:, 250:]], 20) == whole
    assert operator_norm_bound([np.zeros((3, 5), dtype=int)], 3) == 1


def test_what_cannot_be_bounded_is_refused():
    with pytest.raises(al.ParameterError, match="open vocabulary"):
        _ = al.SparseJL(sketch_dim=8, seed="x").operator_norm_squared
    for transform in (
        al.GaussianJL(input_dim=10, sketch_dim=LARGEST_GRAM + 1, seed="x"),
        al.FastJL(input_dim=10, sketch_dim=LARGEST_GRAM + 1, seed="x"),
        al.SparseJL(input_dim=10, sketch_dim=LARGEST_GRAM + 2, sparsity=2, seed="x"),
    ):
        with pytest.raises(al.ParameterError, match="try HadamardJL"):
            _ = transform.operator_norm_squared
    assert operator_norm_bound([np.array([[2**22 - 1]])], 1) >= (2**22 - 1) ** 2
    with pytest.raises(al.ParameterError, match=r"below 2\^44"):
        operator_norm_bound([np.array([[2**22]])], 1)
    with pytest.raises(al.ParameterError, match=r"below 2\^44"):
        _ = al.MatrixJL(np.full((2, 3), 2**31), scale=1.0).operator_norm_squared
    assert (
        al.SparseJL(input_dim=10, sketch_dim=LARGEST_GRAM + 1, sparsity=1, seed="x").operator_norm_squared
        <= 2
    )


def test_work_that_would_take_an_hour_is_refused_at_once():
    for transform in (
        al.SparseJL(input_dim=2**40, sketch_dim=64, sparsity=1, seed="x"),
        al.SparseJL(input_dim=2**39, sketch_dim=64, sparsity=2, seed="x"),
        al.GaussianJL(input_dim=2**20, sketch_dim=4096, seed="x"),
        al.SignJL(input_dim=2**20, sketch_dim=4096, seed="x"),
        al.FastJL(input_dim=2**20, sketch_dim=4096, seed="x", density=1.0),
    ):
        with pytest.raises(al.ParameterError, match="norm='l2'"):
            _ = transform.operator_norm_squared
    assert (
        al.SparseJL(
            input_dim=2**30, sketch_dim=2**20, sparsity=1, seed="x", construction="balanced"
        ).operator_norm_squared
        == 2**10
    )


def test_small_norms_lose_less_than_a_percent():
    # A whole number would be up to twice too large here.
    assert operator_norm_bound([np.eye(3, dtype=int)], 3) == Fraction(129, 128)
    assert operator_norm_bound([np.ones((2, 2), dtype=int)], 2) == Fraction(129, 32)
