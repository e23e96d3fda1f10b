"""What is known before there is any data: sizes, privacy, distances of interest, limits. All of it is public."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from armslength.checks import integer, number, short_repr
from armslength.errors import ParameterError
from armslength.estimates.item_intervals import measures_items
from armslength.transforms.transform import LARGEST_SKETCH_DIM, Transform

LARGEST_DISTANCE = 1e30
LARGEST_COUNT = 2**40
USUAL_LARGEST = 4096  # numbers a party
LARGEST_FOR_ITEMS = 2**16  # the same, where listed items are to be explained
MOST_LISTED = 2**24
ITEM_ERROR = 0.049  # of 0.05: the rest is for totals


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a plan is made for; the arguments of `plan`, checked."""

    about: str  # "populations", "people" or "counts"
    input_dim: int | None  # None for an open vocabulary
    epsilon: Fraction
    delta: Fraction
    parties: int | None
    max_sketch_dim: int
    listed_items: int | None  # how many `al.explain` will be asked about
    grid_radius: int  # how far neighbors are apart, in grid units
    fields: Mapping[str, Any]  # the arguments of the protocol that a plan does not choose

    @property
    def pairs(self) -> int:
        """How many pairs are compared; 1 if the number of parties is not known."""
        return 1 if self.parties is None else self.parties * (self.parties - 1) // 2

    def delta_of(self, noise: str) -> Fraction:
        """δ of this noise."""
        return self.delta if noise == "gaussian" else Fraction(0)

    def explains(self, transform: Transform) -> bool:
        """Whether sketches of this transform can tell all listed items apart."""
        return self.listed_items is None or measures_items(transform, self.listed_items, ITEM_ERROR)

    @property
    def cannot_explain(self) -> str:
        """Why a plan for so many listed items is refused."""
        count = self.listed_items or 0
        return (
            f"{count:,} listed items take a sketch of {math.ceil(count / ITEM_ERROR) + 1:,} numbers, or of 3,000 with sparsity 3, "
            f"and a sketch may have {self.max_sketch_dim:,}; allow a larger sketch, or list fewer items"
        )


@dataclass(frozen=True)
class Distances:
    """The distances of interest, in data units. At the smallest, every configuration has its largest relative error."""

    low: float
    high: float


@dataclass(frozen=True)
class Target:
    """A Johnson-Lindenstrauss target: |estimate − D| ≤ α·D, except with probability β."""

    distortion: float
    failure_probability: float


def checked_sizes(listed_items: Any, max_sketch_dim: Any, input_dim: int | None) -> tuple[int | None, int]:
    """How many items will be listed, and the largest sketch; None for as large as that takes, within limits."""
    count = None
    if listed_items is not None:
        count = integer("listed_items", listed_items, at_least=1, at_most=MOST_LISTED)
    if max_sketch_dim is not None:
        return count, integer("max_sketch_dim", max_sketch_dim, at_least=1, at_most=LARGEST_SKETCH_DIM)
    enough = [] if count is None else [math.ceil(count / ITEM_ERROR) + 1, input_dim or 0]
    return count, max(USUAL_LARGEST, *(size for size in [0, *enough] if size <= LARGEST_FOR_ITEMS))


def checked_ends(name: str, value: Any) -> tuple[Any, Any]:
    """The ends of a range, which may be a single number."""
    ends = value if isinstance(value, (tuple, list)) else (value, value)
    if len(ends) != 2:
        raise ParameterError(f"{name} must be a number or a range (low, high), got {short_repr(value)}", name)
    return ends[0], ends[1]


def check_order(name: str, low: float, high: float) -> None:
    """Refuse a range whose ends are in the wrong order."""
    if low > high:
        raise ParameterError(
            f"{name} must be a range (low, high) with low <= high, got ({low:g}, {high:g})", name
        )


def checked_people(people: Any) -> tuple[int, int, int]:
    """(smallest, typical, largest) number of people; of a range, the typical one is its geometric middle."""
    low, high = (
        integer("people", end, at_least=1, at_most=LARGEST_COUNT) for end in checked_ends("people", people)
    )
    check_order("people", low, high)
    return low, round(math.sqrt(low * high)), high


def checked_distances(distance: Any) -> Distances:
    """The distances of interest."""
    low, high = (
        number("distance", end, above=1e-30, at_most=LARGEST_DISTANCE)
        for end in checked_ends("distance", distance)
    )
    check_order("distance", low, high)
    return Distances(low, high)


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
