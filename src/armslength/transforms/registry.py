"""The transforms by name: how a document names one, and how it is built again."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from armslength.checks import one_of, shown
from armslength.errors import ParameterError
from armslength.transforms.base import Transform
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.gaussian_jl import GaussianJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.matrix_jl import MatrixJL
from armslength.transforms.sign_jl import SignJL
from armslength.transforms.sparse_jl import SparseJL

TRANSFORMS: Mapping[str, type[Transform]] = {
    transform.name: transform
    for transform in (FastJL, GaussianJL, HadamardJL, Identity, MatrixJL, SignJL, SparseJL)
}


def build_transform(name: str, parameters: Mapping[str, Any]) -> Transform:
    """The transform of that name from its `parameters()`; every rule of its class is checked again."""
    built = TRANSFORMS[one_of("transform", name, tuple(TRANSFORMS))]
    try:
        if built is MatrixJL:
            return _matrix_jl(**parameters)
        return built(**parameters)
    except TypeError:
        raise ParameterError(
            f"parameters of {name} must be its own, got {shown(sorted(parameters))}"
        ) from None


def _matrix_jl(
    *,
    sketch_dim: int,
    input_dim: int,
    column_starts: list[int],
    row_numbers: list[int],
    entries: list[int],
    scale: float,
    variance_coefficients: tuple[float, float] | None,
) -> MatrixJL:
    try:
        by_column = sparse.csc_array(
            (np.array(entries, dtype=np.int64), np.array(row_numbers), np.array(column_starts)),
            shape=(sketch_dim, input_dim),
        )
        by_column.check_format()
    except (ValueError, OverflowError):
        raise ParameterError("MatrixJL must have entries that fit its shape, got others") from None
    return MatrixJL(by_column, scale, variance_coefficients=variance_coefficients)
