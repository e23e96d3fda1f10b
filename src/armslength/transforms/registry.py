"""The transforms by name: how a document names one, and how it is built again."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from scipy import sparse

from armslength.checks import one_of
from armslength.errors import ParameterError
from armslength.transforms.dense_jl import GaussianJL, SignJL
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.matrix_jl import MatrixJL
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import Transform

TRANSFORMS: Mapping[str, type[Transform]] = {
    transform.name: transform
    for transform in (FastJL, GaussianJL, HadamardJL, Identity, MatrixJL, SignJL, SparseJL)
}


def build_transform(name: Any, parameters: Any) -> Transform:
    """The transform of that name from its `parameters()`; every rule of its class is checked again."""
    built = TRANSFORMS[one_of("transform", name, tuple(TRANSFORMS))]
    expected = _MATRIX_FIELDS if built is MatrixJL else {field.name for field in fields(built)}  # type: ignore[arg-type]  # all others are dataclasses
    if not isinstance(parameters, Mapping) or set(parameters) != expected:
        raise ParameterError(
            f"parameters of {name} must be its own ({', '.join(sorted(expected))}), got others"
        )
    return _matrix_jl(parameters) if built is MatrixJL else built(**parameters)


_MATRIX_FIELDS = {
    "sketch_dim",
    "input_dim",
    "column_starts",
    "row_numbers",
    "entries",
    "scale",
    "variance_coefficients",
}


def _matrix_jl(parameters: Mapping[str, Any]) -> MatrixJL:
    """A `MatrixJL` from the lists of a document, each number of which must be a whole one."""
    lists = [parameters[name] for name in ("entries", "row_numbers", "column_starts")]
    shape = (parameters["sketch_dim"], parameters["input_dim"])
    whole = [*shape, *(number for values in lists if isinstance(values, list) for number in values)]
    if not all(isinstance(values, list) for values in lists) or not all(
        type(number) is int for number in whole
    ):
        raise ParameterError("MatrixJL must have lists of whole numbers, got something else")
    try:
        arrays = [np.array(values, dtype=np.int64) for values in lists]
        by_column = sparse.csc_array((arrays[0], arrays[1], arrays[2]), shape=shape)
        by_column.check_format(full_check=True)
    except (ValueError, OverflowError, TypeError, IndexError):
        raise ParameterError("MatrixJL must have entries that fit its shape, got others") from None
    return MatrixJL(
        by_column, scale=parameters["scale"], variance_coefficients=parameters["variance_coefficients"]
    )
