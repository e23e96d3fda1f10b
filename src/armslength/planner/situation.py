"""What is known before there is any data: sizes, privacy, distances of interest, limits. All of it is public."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armslength.checks import integer, number, short_repr
from armslength.errors import ParameterError, plural
from armslength.estimates.item_intervals import measures_items
from armslength.protocol.protocol import Protocol
from armslength.transforms.transform import LARGEST_SKETCH_DIM, Transform

LARGEST_DISTANCE = 1e30
LARGEST_COUNT = 2**40
USUAL_LARGEST = 4096  # numbers a party
LARGEST_FOR_ITEMS = 2**16  # the same, where listed items are to be explained
MOST_EXPLAINED = 2**24
ITEM_ERROR = 0.049  # of 0.05: the rest is for totals


@dataclass(frozen=True)
class Distances:
    """The distances of interest, in data units. At the smallest, every configuration has its largest relative error."""

    low: float
    high: float
    assumption: str = ""  # behind them, in words


@dataclass(frozen=True)
class Target:
    """A Johnson-Lindenstrauss target: |estimate − D| ≤ α·D, except with probability β."""

    distortion: float
    failure_probability: float


@dataclass(frozen=True)
class Situation:
    """What a plan is made for, by size or by shape; the arguments of `plan`, checked."""

    input_dim: int | None  # None for an open vocabulary
    protocol: Protocol  # a small one with the same neighbors
    epsilon: Fraction
    delta: Fraction
    people: int | None  # in a group or party
    pairs: int
    max_sketch_dim: int
    explain: int | None  # how many listed items will be asked about
    fields: Mapping[str, Any]  # the other arguments of the protocol

    @property
    def laws(self) -> list[str]:
        """The laws of noise that give the guarantee; event tables have Laplace noise."""
        both = self.delta > 0 and self.protocol.contribution is None
        return ["laplace", "gaussian"] if both else ["laplace"]

    def delta_of(self, noise: str) -> Fraction:
        """δ of this noise."""
        return self.delta if noise == "gaussian" else Fraction(0)

    def explains(self, transform: Transform) -> bool:
        """Whether all listed items can be told apart by sketches of this transform."""
        return self.explain is None or measures_items(transform, self.explain, ITEM_ERROR)

    @property
    def cannot_explain(self) -> str:
        """Why a plan for so many listed items is refused."""
        count = self.explain or 0
        return (
            f"cannot be resolved: {count:,} listed items take {math.ceil(count / ITEM_ERROR) + 1:,} numbers, or 3,000 with sparsity 3, "
            f"and a sketch may have {self.max_sketch_dim:,}; allow a larger sketch, or list fewer items"
        )


@dataclass(frozen=True)
class SizeSituation(Situation):
    """What a plan by size is made for."""

    distances: Distances
    target: Target | None


def checked_explain(explain: Any, max_sketch_dim: Any, input_dim: int | None) -> tuple[int | None, int]:
    """How many listed items will be asked about, and the largest sketch; None for as large as that takes, within limits."""
    count = None if explain is None else integer("explain", explain, at_least=1, at_most=MOST_EXPLAINED)
    if max_sketch_dim is not None:
        return count, integer("max_sketch_dim", max_sketch_dim, at_least=1, at_most=LARGEST_SKETCH_DIM)
    enough = [] if count is None else [math.ceil(count / ITEM_ERROR) + 1, input_dim or 0]
    return count, max(USUAL_LARGEST, *(size for size in [0, *enough] if size <= LARGEST_FOR_ITEMS))


def distances_of_interest(
    distance: Any, people: int | None, contribution: int | str | None, input_dim: int | None
) -> Distances:
    """The given range, or the range for groups of that many people."""
    if (distance is None) == (people is None):
        raise ParameterError(
            "give either distance or people: how far apart are the groups?", "distance", "people"
        )
    if people is None:
        return _checked_range(distance)
    if not isinstance(contribution, int):
        raise ParameterError(
            "people needs contribution: how many items may one person contribute?", "people", "contribution"
        )
    if input_dim == 1:
        raise ParameterError(
            "input_dim must be at least 2 with people, got 1: two groups share no item", "input_dim", "people"
        )
    # From √(2nC), all items distinct, to √2·nC, all on one item, for two groups of n people with C items each. With
    # fewer than 2nC coordinates, items cannot all be distinct; spread evenly, the groups are 2nC/√d apart.
    items = people * contribution
    low, high = math.sqrt(2 * items), math.sqrt(2) * items
    spread = "all items are distinct"
    if input_dim is not None and 2 * items > input_dim:
        low = min(high, 2 * items / math.sqrt(input_dim))
        spread = f"all items are spread evenly over the {input_dim:,} coordinates"
    assumption = (
        f"two groups of {people:,} people with {plural(contribution, 'item')} each, no item in both "
        f"groups: {low:,.4g} apart if {spread}, {high:,.4g} if each group has all of its items on one; "
        "groups that have items in common are closer, and a plan for votes is the one for them"
    )
    return Distances(low, high, assumption)


def people_for(distance: float, contribution: int, input_dim: int | None) -> int | None:
    """How many people a group needs to be at least that far apart; None for more than 2^40."""
    squared = distance**2
    items = squared / 2
    if input_dim is not None:
        items = min(items, math.sqrt(squared * input_dim) / 2)
    needed = math.ceil(items / contribution)
    return needed if needed <= LARGEST_COUNT else None


def _checked_range(distance: Any) -> Distances:
    ends = distance if isinstance(distance, (tuple, list)) else (distance, distance)
    if len(ends) != 2:
        raise ParameterError(
            f"distance must be a number or a range (low, high), got {short_repr(distance)}", "distance"
        )
    low, high = (number("distance", end, above=1e-30, at_most=LARGEST_DISTANCE) for end in ends)
    if low > high:
        raise ParameterError(
            f"distance must be a range (low, high) with low <= high, got {short_repr(distance)}", "distance"
        )
    return Distances(low, high)


def checked_pairs(parties: Any, pairs: Any) -> int:
    """How many pairs there are."""
    if parties is None:
        return 1 if pairs is None else integer("pairs", pairs, at_least=1, at_most=10**10)
    if pairs is not None:
        raise ParameterError("give either parties or pairs, not both", "parties", "pairs")
    count = integer("parties", parties, at_least=2, at_most=10**5)
    return count * (count - 1) // 2


def checked_target(distortion: Any, failure_probability: Any) -> Target | None:
    """The target, if there is one."""
    if distortion is None and failure_probability is None:
        return None
    if distortion is None or failure_probability is None:
        names = "distortion", "failure_probability"
        raise ParameterError("distortion and failure_probability go together: give both", *names)
    return Target(
        number("distortion", distortion, above=1e-9, at_most=1e6),
        number("failure_probability", failure_probability, above=1e-15, at_most=1.0),
    )
