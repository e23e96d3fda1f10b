"""MatrixJL: any integer matrix and scale that the user brings (the paper's general result)."""

import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength.checks import integer, number, short_repr
from armslength.errors import ParameterError
from armslength.threads import cached_attribute
from armslength.transforms import work_units as work
from armslength.transforms.integer_rows import Rows, SparseRows, plain_array, sparse_entries
from armslength.transforms.operator_norm import check_gram_size, operator_norm_bound
from armslength.transforms.transform import (
    LARGEST_SKETCH_DIM,
    Transform,
    check_names,
    checked_input_dim,
    largest_column_norms,
)

LARGEST_ENTRY = 2**31
_LISTS = ("entries", "row_numbers", "column_starts")
_FIELDS = {"sketch_dim", "input_dim", "scale", "variance_coefficients", *_LISTS}


class MatrixJL(Transform):
    """A public integer matrix A of yours, and the scale c that makes c·A length-preserving.

    Guarantee: the sensitivities are exact, by a scan of A. That E‖c·A·z‖² = ‖z‖² is for you to know; without
    it, distances are those of c·A·z.
    Reference: paper, general lemmas on any transform with the length-preserving property.

    Args:
        matrix: k x d, of an integer type, dense or scipy.sparse; entries of at most 2^31 in magnitude.
        scale: c > 0.
        variance_coefficients: (a, b) of Var‖Sz‖² = a‖z‖₂⁴ − b‖z‖₄⁴, a ≥ 0, a ≥ b, over your randomness; None if
            you do not know: then estimates carry no variance.
    """

    name: ClassVar[str] = "MatrixJL"

    def __init__(
        self, matrix: Any, *, scale: float, variance_coefficients: tuple[float, float] | None = None
    ) -> None:
        self._by_column = _checked_matrix(matrix)
        k, d = self._by_column.shape
        self.sketch_dim = integer("sketch_dim", k, at_least=1, at_most=LARGEST_SKETCH_DIM)
        self.input_dim = checked_input_dim(d)
        self._scale = number("scale", scale, above=0.0, at_most=sys.float_info.max)
        self._variance_coefficients = _checked_coefficients(variance_coefficients)
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_frozen" in self.__dict__:
            raise AttributeError(f"a transform cannot be changed; make a new one to change {name}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixJL) and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash((self.name, self.sketch_dim, self.input_dim, self._scale))

    def __repr__(self) -> str:
        return f"MatrixJL(<{self.sketch_dim} x {self.input_dim} matrix>, scale={self._scale!r})"

    @property
    def scale_squared(self) -> Fraction:
        """c², exactly."""
        return Fraction(self._scale) ** 2

    @property
    def scale(self) -> float:
        """c, as it was given."""
        return self._scale

    @cached_attribute
    def column_norms(self) -> tuple[int, int]:
        """(Δ₁, Δ₂²), by a scan of all columns."""
        return largest_column_norms(self._by_column)

    @cached_attribute
    def operator_norm_squared(self) -> Fraction:
        """‖A‖², by a proved bound."""
        check_gram_size(self.sketch_dim, self._gram_products)
        return operator_norm_bound([self._by_column], self.sketch_dim)

    @property
    def scan_work(self) -> int:
        """One step for each entry that is there."""
        return work.SCANNED_ENTRY * self._by_column.nnz

    @property
    def operator_norm_work(self) -> int:
        """The products of entries in one column, the Gram matrix, and the proofs of its bound."""
        k = self.sketch_dim
        return work.FULL_PRODUCT * self._gram_products + work.GRAM_ENTRY * k**2 + work.proof_work(k)

    def columns_work(self, count: int) -> int:
        """One step for each column, and for each entry that is there."""
        return work.SCANNED_ENTRY * (count + self._by_column.nnz)

    @property
    def _gram_products(self) -> int:
        return int((np.diff(self._by_column.indptr).astype(float) ** 2).sum())

    @property
    def variance_coefficients(self) -> tuple[float, float] | None:
        """As they were given."""
        return self._variance_coefficients

    def columns(self, items: Any) -> sparse.csc_array:
        """The columns of A at these column numbers, k x len(items)."""
        return self._by_column[:, self.column_numbers(items)]

    def _project(self, rows: Rows, start: int, stop: int) -> NDArray[np.int64]:
        product: NDArray[np.int64]
        if isinstance(rows, SparseRows):
            product = (rows.matrix(start, stop) @ self._by_column.T).toarray()
        else:
            product = (self._by_column @ rows.block(start, stop).T.astype(np.int64)).T
        return product

    def parameters(self) -> Mapping[str, Any]:
        """The entries of A by column, as lists, and the other arguments."""
        return {
            "sketch_dim": self.sketch_dim,
            "input_dim": self.input_dim,
            "column_starts": self._by_column.indptr.tolist(),
            "row_numbers": self._by_column.indices.tolist(),
            "entries": self._by_column.data.tolist(),
            "scale": self._scale,
            "variance_coefficients": self._variance_coefficients,
        }

    @classmethod
    def from_parameters(cls, parameters: Any) -> Self:
        """The transform from the lists of a document, each number of which must be a whole one."""
        check_names(cls, parameters, _FIELDS)
        lists = [parameters[name] for name in _LISTS]
        shape = (parameters["sketch_dim"], parameters["input_dim"])
        whole = [*shape, *(number for values in lists if isinstance(values, list) for number in values)]
        all_lists = all(isinstance(values, list) for values in lists)
        if not all_lists or not all(type(number) is int for number in whole):
            raise ParameterError("MatrixJL must have lists of whole numbers, got something else")
        try:
            arrays = [np.array(values, dtype=np.int64) for values in lists]
            by_column = sparse.csc_array((arrays[0], arrays[1], arrays[2]), shape=shape)
            by_column.check_format(full_check=True)
        except (ValueError, OverflowError, TypeError, IndexError):
            raise ParameterError("MatrixJL must have entries that fit its shape, got others") from None
        return cls(
            by_column, scale=parameters["scale"], variance_coefficients=parameters["variance_coefficients"]
        )

    def _card_parameters(self) -> Mapping[str, Any]:
        return {"entries that are not zero": self._by_column.nnz}


def _checked_matrix(matrix: Any) -> sparse.csc_array:
    """The matrix by columns in int64, duplicates added up, if it holds integers that are not too large."""
    is_sparse = sparse.issparse(matrix)
    array: Any = matrix if is_sparse else plain_array(matrix, "matrix")
    if array.ndim != 2 or 0 in array.shape:
        raise ParameterError(f"matrix must have 2 dimensions and an entry, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise ParameterError(
            f"matrix must hold integers, got {array.dtype}; round it, and put its unit into scale"
        )
    rows, columns, entries = sparse_entries(array if is_sparse else sparse.coo_array(array))
    # Before the cast to int64: a uint64 entry of 2^64 − 1 must not come back as −1.
    if entries.size and (int(entries.max()) > LARGEST_ENTRY or int(entries.min()) < -LARGEST_ENTRY):
        raise ParameterError("matrix must have entries of at most 2^31 in magnitude, got a larger one")
    by_column = sparse.coo_array((entries.astype(np.int64), (rows, columns)), shape=array.shape).tocsc()
    by_column.sum_duplicates()
    by_column.eliminate_zeros()
    if np.abs(by_column.data).max(initial=0) > LARGEST_ENTRY:
        raise ParameterError(
            "matrix must have entries of at most 2^31 in magnitude, got a larger sum of duplicates"
        )
    for part in (by_column.data, by_column.indices, by_column.indptr):
        part.flags.writeable = False
    return by_column


def _checked_coefficients(coefficients: Any) -> tuple[float, float] | None:
    if coefficients is None:
        return None
    try:
        a, b = (float(number) for number in coefficients)
    except (TypeError, ValueError, OverflowError):
        a, b = math.nan, math.nan
    if not (0 <= a < math.inf and -math.inf < b <= a):
        raise ParameterError(
            f"variance_coefficients must be two finite numbers a ≥ 0, a ≥ b, got {short_repr(coefficients)}"
        )
    return a, b
