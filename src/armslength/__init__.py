"""armslength: compare populations that may not be shared.

Every public name is loaded on first use, so that `import armslength` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armslength.version import __version__ as __version__

if TYPE_CHECKING:
    from armslength.answers.cluster import cluster as cluster
    from armslength.answers.compare import compare as compare
    from armslength.answers.drift import drift as drift
    from armslength.answers.explain import explain as explain
    from armslength.answers.nearest import nearest as nearest
    from armslength.answers.outliers import outliers as outliers
    from armslength.errors import ArmslengthError as ArmslengthError
    from armslength.errors import BudgetError as BudgetError
    from armslength.errors import FormatError as FormatError
    from armslength.errors import IncompatibleSketchesError as IncompatibleSketchesError
    from armslength.errors import InputError as InputError
    from armslength.errors import NotResolvableError as NotResolvableError
    from armslength.errors import ParameterError as ParameterError
    from armslength.estimates.distances import inner_products as inner_products
    from armslength.estimates.distances import squared_distances as squared_distances
    from armslength.estimates.distances import squared_norms as squared_norms
    from armslength.estimates.estimate import Estimate as Estimate
    from armslength.estimates.questions import distances as distances
    from armslength.estimates.questions import similarities as similarities
    from armslength.estimates.totals import totals as totals
    from armslength.ingest.sources import Source as Source
    from armslength.ledger.ledger import NO_LEDGER as NO_LEDGER
    from armslength.ledger.ledger import Ledger as Ledger
    from armslength.planner.plan import Plan as Plan
    from armslength.planner.plan import plan as plan
    from armslength.protocol.contribution import Arrays as Arrays
    from armslength.protocol.contribution import Counts as Counts
    from armslength.protocol.contribution import Votes as Votes
    from armslength.protocol.margins import ItemGroups as ItemGroups
    from armslength.protocol.protocol import Protocol as Protocol
    from armslength.protocol.record import record_items as record_items
    from armslength.releasing.release import release as release
    from armslength.releasing.release import sketch_in_clear as sketch_in_clear
    from armslength.releasing.stream import stream as stream
    from armslength.reporting.page import report as report
    from armslength.sketches.sketch_file import load as load
    from armslength.sketches.sketches import Sketches as Sketches
    from armslength.sketches.sketches import concat as concat
    from armslength.sketches.verify import verify as verify
    from armslength.transforms.dense_jl import GaussianJL as GaussianJL
    from armslength.transforms.dense_jl import SignJL as SignJL
    from armslength.transforms.hadamard_jl import FastJL as FastJL
    from armslength.transforms.hadamard_jl import HadamardJL as HadamardJL
    from armslength.transforms.identity import Identity as Identity
    from armslength.transforms.sparse_jl import SparseJL as SparseJL

_HOME = {
    name: f"armslength.{module}"
    for module, names in {
        "answers.cluster": "cluster",
        "answers.compare": "compare",
        "answers.drift": "drift",
        "answers.explain": "explain",
        "answers.nearest": "nearest",
        "answers.outliers": "outliers",
        "errors": "ArmslengthError BudgetError FormatError IncompatibleSketchesError InputError NotResolvableError ParameterError",
        "estimates.distances": "inner_products squared_distances squared_norms",
        "estimates.estimate": "Estimate",
        "estimates.questions": "distances similarities",
        "estimates.totals": "totals",
        "ingest.sources": "Source",
        "ledger.ledger": "Ledger NO_LEDGER",
        "planner.plan": "Plan plan",
        "protocol.contribution": "Arrays Counts Votes",
        "protocol.margins": "ItemGroups",
        "protocol.protocol": "Protocol",
        "protocol.record": "record_items",
        "releasing.release": "release sketch_in_clear",
        "releasing.stream": "stream",
        "reporting.page": "report",
        "sketches.sketch_file": "load",
        "sketches.sketches": "Sketches concat",
        "sketches.verify": "verify",
        "transforms.dense_jl": "GaussianJL SignJL",
        "transforms.hadamard_jl": "FastJL HadamardJL",
        "transforms.identity": "Identity",
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
