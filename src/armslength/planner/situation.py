"""What is known before there is any data: sizes, privacy, distances of interest, limits. All of it is public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.planner.people import Distances, distances_of_interest
from armslength.protocol.neighbors import GridNeighbors
from armslength.protocol.protocol import Protocol
from armslength.transforms.base import LARGEST_SKETCH_DIM, Transform, checked_input_dim
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL


@dataclass(frozen=True)
class Target:
    """A wish of the Johnson-Lindenstrauss kind: |estimate − D| ≤ α·D, except with probability β."""

    distortion: float
    failure_probability: float

    def is_promised(self, failure_bound: float | None, *, is_exact: bool) -> bool:
        """Whether a bound is a promise of this target: one for a median matrix is a prediction, and promises nothing."""
        return is_exact and failure_bound is not None and failure_bound <= self.failure_probability


@dataclass(frozen=True)
class Situation:
    """What a plan is made for.

    Attributes:
        input_dim: d; None for an open vocabulary.
        epsilon: ε, exactly.
        delta: δ, exactly.
        neighbors: Who must not be told apart, in grid units.
        radius: The same in data units: how far one unit of protection moves the data.
        resolution: γ, the unit of the grid.
        distances: What is to be estimated, in data units.
        max_sketch_dim: The largest sketch that may be recommended.
        target: A wish for the tails, or None.
        density: The share of coordinates that are not zero, for costs; None: unknown.
        pairs: How many pairs are to hold together.
        total_share: The share of ε that goes to totals.
        binary: Whether vectors hold only 0 and 1, one of which one unit changes.
        fields: What else the protocol will hold.
    """

    input_dim: int | None
    epsilon: Fraction
    delta: Fraction
    neighbors: GridNeighbors
    radius: float
    resolution: float
    distances: Distances
    max_sketch_dim: int
    target: Target | None
    density: float | None
    pairs: int
    total_share: Fraction
    binary: bool
    fields: Mapping[str, Any]


def checked_situation(  # noqa: PLR0913  # one argument for each thing that may be known
    *,
    input_dim: Any,
    epsilon: Any,
    delta: Any,
    distance: Any,
    people: Any,
    max_sketch_dim: Any,
    distortion: Any,
    failure_probability: Any,
    density: Any,
    pairs: Any,
    binary: Any,
    fields: Mapping[str, Any],
) -> Situation:
    """The situation, every rule of a protocol checked by making one."""
    dimension = None if input_dim is None else checked_input_dim(input_dim)
    like = Protocol(_smallest_transform(dimension, fields["norm"]), epsilon, delta, **fields)
    if not isinstance(binary, bool):
        raise ParameterError("binary must be True or False, got something else")
    if binary and (dimension is None or like.norm != "l1" or like.radius != 1):
        raise ParameterError("binary must go with a fixed input_dim and radius 1: one unit changes one bit")
    return Situation(
        input_dim=dimension,
        epsilon=like.epsilon,
        delta=like.delta,
        neighbors=like.neighbors,
        radius=float(like.radius),
        resolution=float(like.resolution),
        distances=distances_of_interest(distance, people, like.contribution, dimension),
        max_sketch_dim=integer("max_sketch_dim", max_sketch_dim, at_least=1, at_most=LARGEST_SKETCH_DIM),
        target=_checked_target(distortion, failure_probability),
        density=None if density is None else number("density", density, above=0.0, at_most=1.0),
        pairs=integer("pairs", pairs, at_least=1, at_most=10**10),
        total_share=like.total_share,
        binary=binary,
        fields=dict(fields),
    )


def _smallest_transform(input_dim: int | None, norm: Any) -> Transform:
    """A transform whose sensitivities cost nothing: it carries the fields of the protocol through their checks."""
    if norm != "l2":
        return SparseJL(input_dim, 1, seed="plan")
    if input_dim is None:
        raise ParameterError("input_dim must be fixed with norm='l2', got an open vocabulary")
    if input_dim <= LARGEST_SKETCH_DIM:
        return Identity(input_dim)
    return SparseJL(input_dim, LARGEST_SKETCH_DIM, 1, "plan", "balanced")


def _checked_target(distortion: Any, failure_probability: Any) -> Target | None:
    if distortion is None and failure_probability is None:
        return None
    if distortion is None or failure_probability is None:
        raise ParameterError("distortion and failure_probability must be given together, got one of them")
    return Target(
        number("distortion", distortion, above=1e-9, at_most=1e6),
        number("failure_probability", failure_probability, above=1e-15, at_most=1.0),
    )
