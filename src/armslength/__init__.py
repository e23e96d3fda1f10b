"""armslength: compare populations that may not be shared.

Every public name is loaded on first use, so that `import armslength` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armslength.version import __version__ as __version__

if TYPE_CHECKING:
    from armslength.answers.alike import Alike as Alike, alike as alike
    from armslength.answers.cluster import Clusters as Clusters, cluster as cluster
    from armslength.answers.compare import compare as compare
    from armslength.answers.drift import Drift as Drift, drift as drift
    from armslength.answers.nearest import Nearest as Nearest, nearest as nearest
    from armslength.answers.outliers import Outliers as Outliers, outliers as outliers
    from armslength.answers.plane import Plane as Plane, plane as plane
    from armslength.errors import (
        ArmslengthError as ArmslengthError,
        BudgetError as BudgetError,
        CorruptFileError as CorruptFileError,
        FormatError as FormatError,
        IncompatibleSketchesError as IncompatibleSketchesError,
        InputError as InputError,
        NotResolvableError as NotResolvableError,
        ParameterError as ParameterError,
        UnsupportedVersionError as UnsupportedVersionError,
    )
    from armslength.estimates.contribution_quantiles import ContributionQuantiles as ContributionQuantiles
    from armslength.estimates.distances import (
        distances as distances,
        squared_distances as squared_distances,
        squared_norms as squared_norms,
        valid_squared_distances as valid_squared_distances,
    )
    from armslength.estimates.estimate import Estimate as Estimate
    from armslength.estimates.products import cosines as cosines, inner_products as inner_products
    from armslength.estimates.shapes import (
        shape_cosines as shape_cosines,
        shape_distances as shape_distances,
        totals as totals,
    )
    from armslength.ledger.ledger import NO_LEDGER as NO_LEDGER, Ledger as Ledger
    from armslength.planner.plan import Plan as Plan, plan as plan
    from armslength.planner.shape_plan import ShapePlan as ShapePlan
    from armslength.protocol.protocol import Protocol as Protocol
    from armslength.release.contribution import contribution_quantiles as contribution_quantiles
    from armslength.release.release import sketch_in_clear as sketch_in_clear
    from armslength.reporting.page import report as report
    from armslength.sketches.collection import Collection as Collection, open_collection as open_collection
    from armslength.sketches.plausibility import implausible as implausible
    from armslength.sketches.sketch_file import load as load
    from armslength.sketches.sketches import Sketches as Sketches, concat as concat
    from armslength.sketches.verify import Verification as Verification, verify as verify
    from armslength.transforms.dense_jl import GaussianJL as GaussianJL, SignJL as SignJL
    from armslength.transforms.fast_jl import FastJL as FastJL
    from armslength.transforms.hadamard_jl import HadamardJL as HadamardJL
    from armslength.transforms.identity import Identity as Identity
    from armslength.transforms.matrix_jl import MatrixJL as MatrixJL
    from armslength.transforms.sparse_jl import SparseJL as SparseJL

_HOME = {
    name: f"armslength.{module}"
    for module, names in {
        "answers.alike": "Alike alike",
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
        "estimates.products": "cosines inner_products",
        "estimates.shapes": "shape_cosines shape_distances totals",
        "ledger.ledger": "Ledger NO_LEDGER",
        "planner.plan": "Plan plan",
        "planner.shape_plan": "ShapePlan",
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
__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605  # that is a list


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'armslength' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
