"""armslength: compare populations that may not be shared.

Every public name is loaded on first use, so that `import armslength` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armslength.version import __version__

if TYPE_CHECKING:
    from armslength.answers.alike import Alike, Closer, alike, closer
    from armslength.answers.cluster import Clusters, cluster
    from armslength.answers.compare import compare
    from armslength.answers.drift import Drift, drift
    from armslength.answers.nearest import Nearest, nearest
    from armslength.answers.outliers import Outliers, outliers
    from armslength.answers.plane import Plane, plane
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
    from armslength.estimates.distances import (
        distances,
        squared_distances,
        squared_norms,
        valid_squared_distances,
    )
    from armslength.estimates.estimate import Estimate
    from armslength.estimates.known_norms import squared_distances_with_norms
    from armslength.estimates.products import cosines, inner_products
    from armslength.estimates.shapes import shape_distances, totals
    from armslength.ledger.ledger import NO_LEDGER, Ledger
    from armslength.planner.plan import Plan, plan
    from armslength.protocol.protocol import Protocol
    from armslength.release.release import sketch_in_clear
    from armslength.reporting.page import report
    from armslength.sketches.collection import Collection, open_collection
    from armslength.sketches.sketch_file import load
    from armslength.sketches.sketches import Sketches, concat
    from armslength.transforms.dense_jl import GaussianJL, SignJL
    from armslength.transforms.fast_jl import FastJL
    from armslength.transforms.hadamard_jl import HadamardJL
    from armslength.transforms.identity import Identity
    from armslength.transforms.matrix_jl import MatrixJL
    from armslength.transforms.sparse_jl import SparseJL

__all__ = [
    "Alike",
    "ArmslengthError",
    "BudgetError",
    "Closer",
    "Clusters",
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
    "Plane",
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
    "plane",
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
    "Alike": "armslength.answers.alike",
    "ArmslengthError": "armslength.errors",
    "BudgetError": "armslength.errors",
    "Closer": "armslength.answers.alike",
    "Clusters": "armslength.answers.cluster",
    "Collection": "armslength.sketches.collection",
    "CorruptFileError": "armslength.errors",
    "Drift": "armslength.answers.drift",
    "Estimate": "armslength.estimates.estimate",
    "FastJL": "armslength.transforms.fast_jl",
    "FormatError": "armslength.errors",
    "GaussianJL": "armslength.transforms.dense_jl",
    "HadamardJL": "armslength.transforms.hadamard_jl",
    "Identity": "armslength.transforms.identity",
    "IncompatibleSketchesError": "armslength.errors",
    "InputError": "armslength.errors",
    "Ledger": "armslength.ledger.ledger",
    "MatrixJL": "armslength.transforms.matrix_jl",
    "NO_LEDGER": "armslength.ledger.ledger",
    "Nearest": "armslength.answers.nearest",
    "NotResolvableError": "armslength.errors",
    "Outliers": "armslength.answers.outliers",
    "ParameterError": "armslength.errors",
    "Plan": "armslength.planner.plan",
    "Plane": "armslength.answers.plane",
    "Protocol": "armslength.protocol.protocol",
    "SignJL": "armslength.transforms.dense_jl",
    "Sketches": "armslength.sketches.sketches",
    "SparseJL": "armslength.transforms.sparse_jl",
    "UnsupportedVersionError": "armslength.errors",
    "Verification": "armslength.sketches.verify",
    "alike": "armslength.answers.alike",
    "closer": "armslength.answers.alike",
    "cluster": "armslength.answers.cluster",
    "compare": "armslength.answers.compare",
    "concat": "armslength.sketches.sketches",
    "cosines": "armslength.estimates.products",
    "distances": "armslength.estimates.distances",
    "drift": "armslength.answers.drift",
    "implausible": "armslength.sketches.plausibility",
    "inner_products": "armslength.estimates.products",
    "load": "armslength.sketches.sketch_file",
    "nearest": "armslength.answers.nearest",
    "open_collection": "armslength.sketches.collection",
    "outliers": "armslength.answers.outliers",
    "plan": "armslength.planner.plan",
    "plane": "armslength.answers.plane",
    "report": "armslength.reporting.page",
    "shape_distances": "armslength.estimates.shapes",
    "sketch_in_clear": "armslength.release.release",
    "squared_distances": "armslength.estimates.distances",
    "squared_distances_with_norms": "armslength.estimates.known_norms",
    "squared_norms": "armslength.estimates.distances",
    "totals": "armslength.estimates.shapes",
    "valid_squared_distances": "armslength.estimates.distances",
    "verify": "armslength.sketches.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'armslength' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
