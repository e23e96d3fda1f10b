"""A proved upper bound on ‖A‖², the squared operator norm of an integer matrix: how far ℓ2 neighbors can be apart.

‖A‖² is the largest eigenvalue of the Gram matrix G = A·Aᵀ, whose entries are integers and exact in float64. A
number t bounds it if t·I − G is positive semidefinite, and a Cholesky decomposition that runs to its end proves that up to
its rounding errors (Rump 2006, corollary 2.4): whatever the order of its sums, with or without fused operations,

    λ_min(M) ≥ −γ/(1−γ)·tr(M),   γ = (k+1)u/(1 − (k+1)u),   u = 2^−53,

for a float matrix M of k rows whose decomposition had no negative pivot. M = (1−2^−20)t·I − G is such a matrix, and
2^−20·t is five hundred times that error for k ≤ 4096: enough for the rounding of M's diagonal and any underflow too.
"""

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength.errors import ParameterError

LARGEST_GRAM = 4096
LARGEST_WORK = 2**40  # multiplications: a minute or two
LARGEST_SCAN = 2**28  # columns that are made to count bins: half a minute
_SIGNIFICANT_BITS = 8
_UNIT = 1 << (_SIGNIFICANT_BITS - 1)
_SLACK = 2.0**-20
_LARGEST_ENTRY = 2.0**44


def operator_norm_bound(
    parts: Iterable[NDArray[np.signedinteger] | sparse.csc_array], sketch_dim: int
) -> Fraction:
    """The smallest number of eight significant bits, and at least 1, that is proved to be at least ‖A‖², for A in groups of columns.

    Eight bits, so that two machines whose last digits differ get the same number: it is at most 0.8 percent too large.
    """
    gram = np.zeros((sketch_dim, sketch_dim))
    for part in parts:
        columns = part.astype(np.float64)
        product = columns @ columns.T
        gram += product.toarray() if sparse.issparse(product) else product
    # No partial sum exceeds the largest entry of the diagonal (Cauchy-Schwarz): below 2^53 all of them are exact.
    diagonal = float(np.diag(gram).max())
    if not diagonal < _LARGEST_ENTRY:
        raise ParameterError(
            "the matrix must have rows of a squared norm below 2^44 for norm='l2', got a longer row"
        )
    # The largest eigenvalue lies between the largest entry of the diagonal and the largest absolute row sum.
    row_sum = float(np.abs(gram).sum(axis=1).max())
    low = _index(max(1, int(diagonal)))
    high = next(index for index in count(low) if _value(index) * (1 - 2 * _SLACK) >= row_sum)
    indices = range(low, high)
    return _value(low + bisect_left(indices, True, key=lambda index: _is_proved(gram, float(_value(index)))))


def check_gram_size(sketch_dim: int, work: float) -> None:
    """Refuses a Gram matrix of so many multiplications that it would take many minutes, before anything is computed."""
    if sketch_dim > LARGEST_GRAM or work > LARGEST_WORK:
        raise ParameterError(
            f"norm='l2' must have a smaller matrix for this transform, got {sketch_dim} rows (at most {LARGEST_GRAM}) or too "
            "many columns; try HadamardJL, Identity, or balanced SparseJL with sparsity=1"
        )


def _is_proved(gram: NDArray[np.float64], bound: float) -> bool:
    """Whether bound·I − G is proved to be positive semidefinite."""
    shifted = -gram
    shifted[np.diag_indices_from(shifted)] += bound * (1 - _SLACK)
    if not (np.diag(shifted) > 0).all():
        return False
    try:
        factor = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return bool((np.diag(factor) > 0).all())  # NaN fails


def _index(number: int) -> int:
    """The number of the largest number of eight significant bits that is at most this whole one; 0 for 1."""
    return (number.bit_length() - 1) * _UNIT + (number * _UNIT >> (number.bit_length() - 1)) - _UNIT


def _value(index: int) -> Fraction:
    """The number of eight significant bits with that number; they go on 1, 129/128, …, 2, 130/64, …."""
    exponent, remainder = divmod(index, _UNIT)
    return Fraction((_UNIT + remainder) << exponent, _UNIT)
