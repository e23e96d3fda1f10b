"""armslength: compare populations that may not be shared.

Every public name is loaded on first use, so that `import armslength` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armslength.version import __version__

if TYPE_CHECKING:
    from armslength.errors import (
        ArmslengthError,
        BudgetError,
        CorruptFileError,
        FormatError,
        IncompatibleSketchesError,
        InputError,
        NotResolvableError,
        ParameterError,
        UnsupportedVersionError,
    )
    from armslength.estimates.control_variate import squared_distances_with_norms
    from armslength.estimates.distances import distances
    from armslength.estimates.inner_products import cosines, inner_products
    from armslength.estimates.result import Estimate
    from armslength.estimates.shapes import shape_distances
    from armslength.estimates.squared_distances import squared_distances, squared_norms
    from armslength.estimates.totals import totals
    from armslength.estimates.valid_distances import valid_squared_distances
    from armslength.ledger.ledger import NO_LEDGER, Ledger
    from armslength.planner.plan import Plan, plan
    from armslength.protocol.clear import sketch_in_clear
    from armslength.protocol.files import load
    from armslength.protocol.protocol import Protocol
    from armslength.protocol.sketches import Sketches, concat
    from armslength.reporting.page import report
    from armslength.search.alike import Alike, alike
    from armslength.search.closer import Closer, closer
    from armslength.search.cluster import Clustering, cluster
    from armslength.search.collection import Collection, open_collection
    from armslength.search.compare import compare
    from armslength.search.drift import Drift, drift
    from armslength.search.nearest import Nearest, nearest
    from armslength.search.outliers import Outliers, outliers
    from armslength.tables.release_table import release_table
    from armslength.transforms.fast_jl import FastJL
    from armslength.transforms.gaussian_jl import GaussianJL
    from armslength.transforms.hadamard_jl import HadamardJL
    from armslength.transforms.identity import Identity
    from armslength.transforms.matrix_jl import MatrixJL
    from armslength.transforms.sign_jl import SignJL
    from armslength.transforms.sparse_jl import SparseJL

__all__ = [
    "Alike",
    "ArmslengthError",
    "BudgetError",
    "Closer",
    "Clustering",
    "Collection",
    "CorruptFileError",
    "Drift",
    "Estimate",
    "FastJL",
    "FormatError",
    "GaussianJL",
    "HadamardJL",
    "Identity",
    "IncompatibleSketchesError",
    "InputError",
    "Ledger",
    "MatrixJL",
    "NO_LEDGER",
    "Nearest",
    "NotResolvableError",
    "Outliers",
    "ParameterError",
    "Plan",
    "Protocol",
    "SignJL",
    "Sketches",
    "SparseJL",
    "UnsupportedVersionError",
    "Verification",
    "__version__",
    "alike",
    "closer",
    "cluster",
    "compare",
    "concat",
    "cosines",
    "distances",
    "drift",
    "implausible",
    "inner_products",
    "load",
    "nearest",
    "open_collection",
    "outliers",
    "plan",
    "release_table",
    "report",
    "shape_distances",
    "sketch_in_clear",
    "squared_distances",
    "squared_distances_with_norms",
    "squared_norms",
    "totals",
    "valid_squared_distances",
    "verify",
]

_HOME = {
    "Alike": "armslength.search.alike",
    "ArmslengthError": "armslength.errors",
    "BudgetError": "armslength.errors",
    "Closer": "armslength.search.closer",
    "Clustering": "armslength.search.cluster",
    "Collection": "armslength.search.collection",
    "CorruptFileError": "armslength.errors",
    "Drift": "armslength.search.drift",
    "Estimate": "armslength.estimates.result",
    "FastJL": "armslength.transforms.fast_jl",
    "FormatError": "armslength.errors",
    "GaussianJL": "armslength.transforms.gaussian_jl",
    "HadamardJL": "armslength.transforms.hadamard_jl",
    "Identity": "armslength.transforms.identity",
    "IncompatibleSketchesError": "armslength.errors",
    "InputError": "armslength.errors",
    "Ledger": "armslength.ledger.ledger",
    "MatrixJL": "armslength.transforms.matrix_jl",
    "NO_LEDGER": "armslength.ledger.ledger",
    "Nearest": "armslength.search.nearest",
    "NotResolvableError": "armslength.errors",
    "Outliers": "armslength.search.outliers",
    "ParameterError": "armslength.errors",
    "Plan": "armslength.planner.plan",
    "Protocol": "armslength.protocol.protocol",
    "SignJL": "armslength.transforms.sign_jl",
    "Sketches": "armslength.protocol.sketches",
    "SparseJL": "armslength.transforms.sparse_jl",
    "UnsupportedVersionError": "armslength.errors",
    "Verification": "armslength.protocol.verify",
    "alike": "armslength.search.alike",
    "closer": "armslength.search.closer",
    "cluster": "armslength.search.cluster",
    "compare": "armslength.search.compare",
    "concat": "armslength.protocol.sketches",
    "cosines": "armslength.estimates.inner_products",
    "distances": "armslength.estimates.distances",
    "drift": "armslength.search.drift",
    "implausible": "armslength.protocol.plausible",
    "inner_products": "armslength.estimates.inner_products",
    "load": "armslength.protocol.files",
    "nearest": "armslength.search.nearest",
    "open_collection": "armslength.search.collection",
    "outliers": "armslength.search.outliers",
    "plan": "armslength.planner.plan",
    "release_table": "armslength.tables.release_table",
    "report": "armslength.reporting.page",
    "shape_distances": "armslength.estimates.shapes",
    "sketch_in_clear": "armslength.protocol.clear",
    "squared_distances": "armslength.estimates.squared_distances",
    "squared_distances_with_norms": "armslength.estimates.control_variate",
    "squared_norms": "armslength.estimates.squared_distances",
    "totals": "armslength.estimates.totals",
    "valid_squared_distances": "armslength.estimates.valid_distances",
    "verify": "armslength.protocol.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'armslength' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
