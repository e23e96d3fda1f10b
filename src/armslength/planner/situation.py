"""What is known before there is any data: sizes, privacy, distances of interest, limits. All of it is public."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armslength.checks import integer, number, shown
from armslength.errors import ParameterError
from armslength.protocol.neighbors import GridNeighbors
from armslength.protocol.protocol import Protocol
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import LARGEST_SKETCH_DIM, Transform, checked_input_dim

# From people to distances: what n people with C items each can look like, as a squared distance of two groups.


LARGEST_DISTANCE = 1e30
LARGEST_COUNT = 2**40


@dataclass(frozen=True)
class Distances:
    """The distances of interest, in data units.

    Attributes:
        low: The smallest: every configuration has its worst relative error there.
        high: The largest.
        assumption: Where they come from, in words; empty if they were given.
        people: How many people a group has, if the distances come from that.
    """

    low: float
    high: float
    assumption: str = ""
    people: int | None = None


def distances_of_interest(
    distance: Any, people: Any, contribution: int | None, input_dim: int | None
) -> Distances:
    """The range that was given, or the one of that many people."""
    if (distance is None) == (people is None):
        raise ParameterError("distance or people must be given, and not both: how far apart are the groups?")
    if people is None:
        return _given(distance)
    count = integer("people", people, at_least=1, at_most=LARGEST_COUNT)
    if contribution is None:
        raise ParameterError("contribution must go with people: how many items may one person contribute?")
    if input_dim == 1:
        raise ParameterError("input_dim must be at least 2 with people, got 1: two groups share no item")
    return of_people(count, contribution, input_dim)


def of_people(people: int, contribution: int, input_dim: int | None) -> Distances:
    """Two groups of n people with C items each: from √(2nC), all items distinct, to √2·nC, all on one item.

    Where there are fewer than 2nC coordinates, items cannot all be distinct: spread evenly, they are 2nC/√d apart.
    """
    items = people * contribution
    low, high = math.sqrt(2 * items), math.sqrt(2) * items
    spread = "all items are distinct"
    if input_dim is not None and 2 * items > input_dim:
        low = min(high, 2 * items / math.sqrt(input_dim))
        spread = f"all items are spread evenly over the {input_dim:,} coordinates"
    items_each = f"{contribution:,} item{'s' * (contribution > 1)} each"
    assumption = (
        f"two groups of {people:,} people with {items_each}, no item in both groups: {low:,.4g} apart if "
        f"{spread}, {high:,.4g} if each group has all of its items on one"
    )
    return Distances(low, high, assumption, people)


def people_for(distance: float, contribution: int, input_dim: int | None) -> int | None:
    """How many people make groups that far apart at the least; None where it would be more than there are."""
    squared = distance**2
    items = squared / 2
    if input_dim is not None:
        items = min(items, math.sqrt(squared * input_dim) / 2)
    needed = math.ceil(items / contribution)
    return needed if needed <= LARGEST_COUNT else None


def _given(distance: Any) -> Distances:
    ends = distance if isinstance(distance, (tuple, list)) else (distance, distance)
    if len(ends) != 2:
        raise ParameterError(f"distance must be a number or a range (low, high), got {shown(distance)}")
    low, high = (number("distance", end, above=1e-30, at_most=LARGEST_DISTANCE) for end in ends)
    if low > high:
        raise ParameterError(f"distance must be a range (low, high) with low <= high, got {shown(distance)}")
    return Distances(low, high)


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
    like = Protocol(_smallest_transform(dimension, fields["norm"]), epsilon=epsilon, delta=delta, **fields)
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
        return SparseJL(input_dim=input_dim, sketch_dim=1, seed="plan")
    if input_dim is None:
        raise ParameterError("input_dim must be fixed with norm='l2', got an open vocabulary")
    if input_dim <= LARGEST_SKETCH_DIM:
        return Identity(input_dim=input_dim)
    return SparseJL(
        input_dim=input_dim, sketch_dim=LARGEST_SKETCH_DIM, sparsity=1, seed="plan", construction="balanced"
    )


def _checked_target(distortion: Any, failure_probability: Any) -> Target | None:
    if distortion is None and failure_probability is None:
        return None
    if distortion is None or failure_probability is None:
        raise ParameterError("distortion and failure_probability must be given together, got one of them")
    return Target(
        number("distortion", distortion, above=1e-9, at_most=1e6),
        number("failure_probability", failure_probability, above=1e-15, at_most=1.0),
    )
