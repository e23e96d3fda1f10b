"""What a plan chooses from, and what it predicts: each transform that can be the best, at every useful size, with its exact variance curve.

`GaussianJL`, `SignJL` and `FastJL` cannot: `HadamardJL` and `SparseJL` have no larger variance and no larger sensitivity.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Self

from scipy.special import ndtri

from armslength.errors import ParameterError
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.pair_noise import PairNoise
from armslength.estimates.variance import ErrorModel, VarianceCurve, curve_of
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal
from armslength.planner.failure_bounds import failure_bound, pair_moments, usual_median
from armslength.planner.situation import Distances, Situation, Target
from armslength.privacy.calibration import gaussian_scale
from armslength.protocol.protocol import Protocol
from armslength.transforms.hadamard_jl import LARGEST_PADDED_DIM, HadamardJL, padded_dimension
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import LARGEST_SKETCH_DIM, Transform

SPARSITIES = (1, 2, 4, 8, 16, 32)
_FOR_ITEMS = 3  # the fewest of which most can agree
_SIZES_IN_AN_OCTAVE = 32
_REFERENCE_SENSITIVITY = 2**20  # a squared sensitivity: σ is proportional to its root
_LARGEST_SPREAD = 0.75  # of q·√a, for useful upper ends


@dataclass(frozen=True, kw_only=True)
class CountSituation(Situation):
    """What a plan about counts is made for."""

    resolution: Fraction
    total_share: Fraction
    contribution: int | None  # events of one person; None for arrays
    distances: Distances
    target: Target | None

    @property
    def laws(self) -> list[str]:
        """The laws of noise that give the guarantee; event tables have Laplace noise."""
        return ["laplace", "gaussian"] if self.delta > 0 and self.contribution is None else ["laplace"]

    def curve_of(self, line: "CountSetting") -> list[tuple[float, float]]:
        """The relative error of each size of this family."""
        sizes = [option for option in options(self) if option.family == line.family]
        return [(size.sketch_dim, size.relative_error) for size in predict(sizes, self)]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way to release."""

    transform: Transform  # under some seed; they all have this sensitivity
    noise: str  # "laplace" or "gaussian"
    sensitivity: float  # in integer units: ℓ1 for Laplace, ℓ2 for Gaussian noise

    @classmethod
    def of(cls, grid_radius: int, transform: Transform, noise: str) -> Self:
        """With the sensitivity for neighbors that are so far apart."""
        if noise == "laplace":
            sensitivity = float(grid_radius) * transform.l1_sensitivity
        else:
            sensitivity = float(grid_radius) * math.sqrt(transform.l2_sensitivity_squared)
        return cls(transform=transform, noise=noise, sensitivity=sensitivity)

    @property
    def label(self) -> str:
        """The transform in words."""
        return self.transform.label

    @property
    def family(self) -> tuple[str, str]:
        """What settings that differ only in their size have in common."""
        return self.label, self.noise

    @property
    def sketch_dim(self) -> int:  # noqa: D102
        return self.transform.sketch_dim

    def law(self, epsilon: Fraction, delta: Fraction) -> Law | None:
        """The law of the noise; None if it would be out of range."""
        unit = 1 / float(epsilon) if self.noise == "laplace" else unit_sigma(epsilon, delta)
        scale = self.sensitivity * unit
        return _law(self.noise, max(scale, SMALLEST_SCALE)) if scale <= LARGEST_SCALE else None


@dataclass(frozen=True, kw_only=True)
class CountSetting(Setting):
    """One line of a plan about counts: a way to release, with its predicted error of the squared distance in data units."""

    curve: VarianceCurve
    relative_error: float  # standard error over squared distance, at the smallest distance of interest
    relative_error_high: float  # at the largest
    smallest_distance: float  # whose square is as large as its standard error
    failure_bound: float | None  # proved bound on missing the target, over all pairs; None without a target
    is_choice: bool  # may be recommended: within the size limit
    has_upper_end: bool  # whether intervals have useful upper ends; without them it is not recommended
    meets_target: bool  # or there is none

    @property
    def is_histogram(self) -> bool:
        """Whether nothing is projected."""
        return not self.transform.projects

    @property
    def is_seen(self) -> bool:
        """Whether the standard error is below the squared distance, intervals have upper ends, and the target is met."""
        return self.relative_error <= 1 and self.has_upper_end and self.meets_target


def options(situation: CountSituation, above: int = 0) -> list[Setting]:
    """All that the noise of this situation allows, with more than so many numbers; sizes of one family are together, and rise."""
    return [
        Setting.of(situation.grid_radius, build(sketch_dim=size, seed="plan"), noise)
        for build, sizes in _transforms(situation)
        for noise in situation.laws
        for size in sizes
        if size > above
    ]


def _transforms(situation: CountSituation) -> Iterator[tuple[Callable[..., Transform], Iterable[int]]]:
    """(build, sizes) of each kind of transform; called as build(sketch_dim=size, seed=…)."""
    d, limit = situation.input_dim, situation.max_sketch_dim
    largest = limit if d is None else min(limit, d)
    sparsities = SPARSITIES if situation.listed_items is None else (*SPARSITIES, _FOR_ITEMS)
    for construction, s in product(("block", "balanced"), sparsities):
        if s > largest or (construction == "balanced" and (d is None or d * s > LARGEST_DEALT)):
            continue
        build = partial(SparseJL, input_dim=d, sparsity=s, construction=construction)
        yield build, sizes_up_to(largest, s)
    if d is not None and d <= LARGEST_PADDED_DIM:
        yield partial(HadamardJL, input_dim=d), sizes_up_to(min(limit, padded_dimension(d)))
    if d is not None and d <= LARGEST_SKETCH_DIM:
        yield lambda **_: Identity(input_dim=d), (d,)


def sizes_up_to(limit: int, multiple: int = 1) -> tuple[int, ...]:
    """Every size to 32, then 32 in each doubling, and the limit; multiples of a sparsity.

    The variance is A/k + B + C·k in the size, so steps of 1/32 lose less than one part in 4000 of it.
    """
    sizes = {limit}
    size = 1
    while size <= limit:
        sizes.add(size)
        size += max(1, 2 ** (size.bit_length() - 1) // _SIZES_IN_AN_OCTAVE)
    multiples = {max(1, size // multiple) * multiple for size in sizes}
    return tuple(sorted(size for size in multiples if size <= limit))


def predict(options: Iterable[Setting], situation: CountSituation) -> Iterator[CountSetting]:
    """The options as lines of a plan, without those whose noise would be out of range."""
    epsilon = situation.epsilon * (1 - situation.total_share)
    step, target = float(situation.resolution), situation.target
    low, high = situation.distances.low**2, situation.distances.high**2
    for option in options:
        law = option.law(epsilon, situation.delta)
        if law is None:
            continue
        curve = curve_of(
            option.transform, "output", step, Cumulants(2 * law.cumulants.k2, 2 * law.cumulants.k4)
        )
        failure = None
        if target is not None:
            unit = step**2 * float(option.transform.scale_squared)
            one = failure_bound(option.transform, law, unit, curve, low, target.distortion)
            failure = min(1.0, situation.pairs * one)
        yield CountSetting(
            transform=option.transform,
            noise=option.noise,
            sensitivity=option.sensitivity,
            curve=curve,
            relative_error=math.sqrt(curve.at_point(low)) / low,
            relative_error_high=math.sqrt(curve.at_point(high)) / high,
            smallest_distance=smallest_distance(curve),
            failure_bound=failure,
            is_choice=option.sketch_dim <= situation.max_sketch_dim,
            has_upper_end=has_upper_end(curve.a, situation.pairs),
            meets_target=failure is None or target is None or failure <= target.failure_probability,
        )


def smallest_resolved_distance(protocol: Protocol, pairs: int = 1) -> float:
    """The distance from which on about half of all pairs are found to differ at 95 percent (over all pairs), in data units."""
    of_pair = PairNoise.sum_of(((protocol.law, 1.0),) * 2)
    rule = interval_rule(ErrorModel.of(protocol), of_pair)
    needed = rule.smallest_resolved(Level.of(0.95, "asymptotic", pairs))
    if protocol.noise_site == "input":
        return math.sqrt(needed)
    noise, k = pair_moments(protocol.law, protocol.unit_squared), protocol.transform.sketch_dim
    low, high = needed, 4 * needed
    for _ in range(40):
        middle = (low + high) / 2
        below = usual_median(k, rule.curve, noise, middle) < needed
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(high)


def has_upper_end(a: float, pairs: int) -> bool:
    """Whether upper ends at 95 percent (over all pairs) are at most twice the distance where noise is small.

    There V(D) = aD², and the upper end is D̂/(1 − q√a). Coarser projections soon have no upper end at all.
    """
    return -float(ndtri(Level.of(0.95, "asymptotic", pairs).tail)) * math.sqrt(a) <= _LARGEST_SPREAD


def smallest_distance(curve: VarianceCurve) -> float:
    """The distance whose square D is its own standard error: D² = aD² + bD + c; infinity if there is none."""
    if curve.a >= 1:
        return math.inf
    remainder = 1 - curve.a
    return math.sqrt((curve.b + math.sqrt(curve.b**2 + 4 * remainder * curve.c)) / (2 * remainder))


@lru_cache(maxsize=256)
def unit_sigma(epsilon: Fraction, delta: Fraction) -> float:
    """σ of the analytic Gaussian mechanism at sensitivity 1; infinity where it is out of range."""
    for reference in (_REFERENCE_SENSITIVITY, 1):
        try:
            return gaussian_scale(reference, epsilon, delta) / math.sqrt(reference)
        except ParameterError:
            continue  # out of range at that sensitivity
    return math.inf


@lru_cache(maxsize=4096)
def _law(name: str, scale: float) -> Law:
    return DiscreteLaplace(scale) if name == "laplace" else RoundedNormal(scale)
