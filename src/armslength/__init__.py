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
    from armslength.estimates.contribution_quantiles import ContributionQuantiles
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
    from armslength.release.contribution import contribution_quantiles
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
    "ContributionQuantiles",
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
    "contribution_quantiles",
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
    name: f"armslength.{module}"
    for module, names in {
        "answers.alike": "Alike Closer alike closer",
        "answers.cluster": "Clusters cluster",
        "answers.compare": "compare",
        "answers.drift": "Drift drift",
        "answers.nearest": "Nearest nearest",
        "answers.outliers": "Outliers outliers",
        "answers.plane": "Plane plane",
        "errors": "ArmslengthError BudgetError CorruptFileError FormatError IncompatibleSketchesError InputError NotResolvableError ParameterError UnsupportedVersionError",
        "estimates.contribution_quantiles": "ContributionQuantiles",
        "estimates.distances": "distances squared_distances squared_norms valid_squared_distances",
        "estimates.estimate": "Estimate",
        "estimates.known_norms": "squared_distances_with_norms",
        "estimates.products": "cosines inner_products",
        "estimates.shapes": "shape_distances totals",
        "ledger.ledger": "Ledger NO_LEDGER",
        "planner.plan": "Plan plan",
        "protocol.protocol": "Protocol",
        "release.contribution": "contribution_quantiles",
        "release.release": "sketch_in_clear",
        "reporting.page": "report",
        "sketches.collection": "Collection open_collection",
        "sketches.plausibility": "implausible",
        "sketches.sketch_file": "load",
        "sketches.sketches": "Sketches concat",
        "sketches.verify": "Verification verify",
        "transforms.dense_jl": "GaussianJL SignJL",
        "transforms.fast_jl": "FastJL",
        "transforms.hadamard_jl": "HadamardJL",
        "transforms.identity": "Identity",
        "transforms.matrix_jl": "MatrixJL",
        "transforms.sparse_jl": "SparseJL",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'armslength' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
