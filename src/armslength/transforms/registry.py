"""The transforms by name: how a document names one, and how it is built again."""

from collections.abc import Mapping
from typing import Any

from armslength.checks import one_of
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
    return TRANSFORMS[one_of("transform", name, tuple(TRANSFORMS))].from_parameters(parameters)
