"""armslength: compare populations that may not be shared.

Every public name is loaded on first use, so that `import armslength` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armslength.errors import ArmslengthError, InputError, ParameterError
    from armslength.transforms.fast_jl import FastJL
    from armslength.transforms.gaussian_jl import GaussianJL
    from armslength.transforms.hadamard_jl import HadamardJL
    from armslength.transforms.identity import Identity
    from armslength.transforms.matrix_jl import MatrixJL
    from armslength.transforms.sign_jl import SignJL
    from armslength.transforms.sparse_jl import SparseJL

__version__ = "0.1.0.dev0"

__all__ = [
    "ArmslengthError",
    "FastJL",
    "GaussianJL",
    "HadamardJL",
    "Identity",
    "InputError",
    "MatrixJL",
    "ParameterError",
    "SignJL",
    "SparseJL",
    "__version__",
]

_HOME = {
    "ArmslengthError": "armslength.errors",
    "FastJL": "armslength.transforms.fast_jl",
    "GaussianJL": "armslength.transforms.gaussian_jl",
    "HadamardJL": "armslength.transforms.hadamard_jl",
    "Identity": "armslength.transforms.identity",
    "InputError": "armslength.errors",
    "MatrixJL": "armslength.transforms.matrix_jl",
    "ParameterError": "armslength.errors",
    "SignJL": "armslength.transforms.sign_jl",
    "SparseJL": "armslength.transforms.sparse_jl",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'armslength' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
