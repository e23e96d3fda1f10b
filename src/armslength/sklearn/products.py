"""A·x for rows of floats, in float64: **not private**, and nothing is rounded to integers.

A transform's own `apply` is exact and takes integers. These take floats of any size, part by part, so that neither A
nor X is ever copied as a whole; while all sums are integers below 2^53 they are exact too.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import kernel
from armslength.threads import for_blocks, lazy
from armslength.transforms.dense_jl import IndependentEntries
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.hadamard_jl import HadamardJL, walsh
from armslength.transforms.identity import Identity
from armslength.transforms.matrix_jl import MatrixJL
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import Transform, block_rows

# The Walsh-Hadamard transform of rows of floats.


@kernel
def spread_rows(rows: NDArray[np.floating], signs: NDArray[np.int64], product: NDArray[np.float64]) -> None:
    """product = H·D·row in float64, with zeros behind the row, for each row; one row at a time, so none sees another.

    Args:
        rows: n x d, of float32 or float64.
        signs: The diagonal of D.
        product: n x d', d' a power of two.
    """
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        padded = product[i]
        for j in range(width):
            padded[j] = rows[i, j] * signs[j]
        padded[width:] = 0
        walsh(padded)  # written for integers, and compiled here for floats


_COLUMNS_AT_ONCE = 1 << 16
_KEPT_ENTRIES = 1 << 24  # 0.3 GB of a sparse A stay in memory; beyond that columns are made as needed


class FloatProduct(ABC):
    """X·Aᵀ for X of floats: an n x d array, or a `scipy.sparse` matrix by rows."""

    transform: Transform

    def __reduce__(self) -> tuple[Any, ...]:
        """A product travels as its transform; what it has computed stays behind."""
        return float_product, (self.transform,)

    @abstractmethod
    def of(self, X: Any) -> Any:
        """X·Aᵀ in a new array, n x k; each row by itself, up to the rounding of floats."""

    def _empty(self, X: Any) -> NDArray[np.float64]:
        return np.zeros((X.shape[0], self.transform.sketch_dim))


class SameProduct(FloatProduct):
    """For A = I: a copy, sparse if X is."""

    def __init__(self, transform: Identity) -> None:
        self.transform = transform

    def of(self, X: Any) -> Any:
        """X itself, copied."""
        return X.copy()


class SparseProduct(FloatProduct):
    """For a sparse A: products of SciPy's, which sum a row in the order of its columns."""

    def __init__(self, transform: SparseJL | MatrixJL) -> None:
        self.transform: SparseJL | MatrixJL = transform

    def of(self, X: Any) -> NDArray[np.float64]:
        """X·Aᵀ, n x k, dense."""
        return self._of_sparse(X) if sparse.issparse(X) else self._of_dense(X)

    def _of_dense(self, X: NDArray[Any]) -> NDArray[np.float64]:
        product = self._empty(X)
        step = block_rows(_COLUMNS_AT_ONCE)
        for first in range(0, X.shape[1], _COLUMNS_AT_ONCE):
            last = min(first + _COLUMNS_AT_ONCE, X.shape[1])
            kept = self._kept
            columns = self._made(np.arange(first, last)) if kept is None else kept[first:last]
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                product[rows] += X[rows, first:last].astype(np.float64, copy=False) @ columns
        return product

    def _of_sparse(self, X: Any) -> NDArray[np.float64]:
        product = self._empty(X)
        columns = self._kept
        if columns is None:  # those that occur are enough
            used = slice(X.nnz)  # there may be spare room behind the last entry
            present, positions = np.unique(X.indices[used], return_inverse=True)
            columns = self._made(present)
            X = sparse.csr_array((X.data[used], positions, X.indptr), shape=(X.shape[0], len(present)))
        step = block_rows(self.transform.sketch_dim)
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            product[rows] = (X[rows].astype(np.float64) @ columns).toarray()
        return product

    @lazy
    def _kept(self) -> sparse.csr_array | None:
        """Aᵀ by rows, where it fits in memory."""
        width = self.transform.input_dim or 0  # never None: `fit` has learned it
        if isinstance(self.transform, SparseJL) and width * self.transform.sparsity > _KEPT_ENTRIES:
            return None
        return self._made(np.arange(width))

    def _made(self, numbers: NDArray[Any]) -> sparse.csr_array:
        """Columns of A, each as a row of float64: SciPy would convert integers again in each product."""
        by_row: sparse.csr_array = self.transform.columns(numbers).astype(np.float64).T
        return by_row


class DenseProduct(FloatProduct):
    """For a dense A of independent entries: one product of BLAS's for each run of columns."""

    def __init__(self, transform: IndependentEntries) -> None:
        self.transform: IndependentEntries = transform

    def of(self, X: Any) -> NDArray[np.float64]:
        """X·Aᵀ, n x k, dense."""
        product = self._empty(X)
        by_column = X.tocsc() if sparse.issparse(X) else None  # type: ignore[attr-defined]  # every format of SciPy's has it
        for first, columns in self._runs():
            last = first + len(columns)
            if by_column is not None:
                product += by_column[:, first:last].astype(np.float64) @ columns
                continue
            step = block_rows(max(columns.shape))
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                product[rows] += X[rows, first:last].astype(np.float64, copy=False) @ columns
        return product

    def _runs(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """(first, columns), each column as a row."""
        for first, count in self.transform._parts():  # noqa: SLF001  # the runs in which A is made and kept
            yield first, self.transform._columns_from(first, count).astype(np.float64)  # noqa: SLF001  # `columns` makes them one by one


class HadamardProduct(FloatProduct):
    """For A made of a Hadamard matrix: the fast transform, row by row."""

    def __init__(self, transform: HadamardJL | FastJL) -> None:
        self.transform: HadamardJL | FastJL = transform

    def of(self, X: Any) -> NDArray[np.float64]:
        """X·Aᵀ, n x k, dense."""
        product, is_sparse = self._empty(X), sparse.issparse(X)
        signs, padded_dim = self.transform._signs, self.transform.padded_dim  # noqa: SLF001  # D, which `columns` has too, one by one

        def project(start: int, stop: int) -> None:
            rows = X[start:stop].toarray() if is_sparse else np.ascontiguousarray(X[start:stop])
            spread = np.empty((stop - start, padded_dim))
            spread_rows(rows, signs, spread)
            product[start:stop] = self._combined(spread)

        for_blocks(X.shape[0], block_rows(padded_dim), project)
        return product

    def _combined(self, spread: NDArray[np.float64]) -> NDArray[np.float64]:
        """What A takes from H·D·x: P times it, or some of its coordinates."""
        if isinstance(self.transform, FastJL):
            return self.transform.combine(spread)  # type: ignore[arg-type,return-value]  # P multiplies floats as well
        return spread[:, self.transform._sample]  # noqa: SLF001  # which rows of H, which `columns` does not name


def float_product(transform: Transform) -> FloatProduct:
    """The product that suits the transform."""
    if isinstance(transform, Identity):
        return SameProduct(transform)
    if isinstance(transform, IndependentEntries):
        return DenseProduct(transform)
    if isinstance(transform, (HadamardJL, FastJL)):
        return HadamardProduct(transform)
    return SparseProduct(cast("SparseJL | MatrixJL", transform))
