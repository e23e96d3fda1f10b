"""From a family and a size to predictions: the exact variance curve, and what follows from it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scipy.special import ndtri

from armslength.errors import ParameterError
from armslength.estimates.intervals import Level, interval_rule
from armslength.estimates.pair_noise import PairNoise
from armslength.estimates.variance import ErrorModel, VarianceCurve, curve_of
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal
from armslength.planner.failure_bounds import failure_bound, pair_moments, usual_median
from armslength.planner.families import Family
from armslength.planner.situation import Situation, SizeSituation, bounded_sensitivity
from armslength.privacy.calibration import gaussian_scale
from armslength.protocol.protocol import Protocol
from armslength.transforms.transform import Transform

_REFERENCE_SENSITIVITY = 2**20  # a squared sensitivity: σ is proportional to its root
_ROOM = 0.75  # at most, for q·√a


@dataclass(frozen=True)
class Option:
    """One size of a family, and its sensitivity: ℓ1 for Laplace, ℓ2 for Gaussian noise."""

    family: Family
    transform: Transform  # under some seed; they all have this sensitivity
    sensitivity: float


@dataclass(frozen=True)
class Configuration:
    """One line of a plan: a way to release, with its predicted error of the squared distance in data units."""

    option: Option
    label: str
    sketch_dim: int
    noise: str  # "laplace" or "gaussian"
    relative_error: (
        float  # standard error divided by the squared distance, at the smallest distance of interest
    )
    relative_error_high: float  # at the largest
    smallest_distance: float  # whose square is as large as its standard error
    failure_bound: float | None  # proved bound on missing the target, over all pairs; None without a target
    is_choice: bool  # may be recommended: within the size limit
    has_upper_end: bool  # whether intervals have useful upper ends; without them it is not recommended
    meets_target: bool  # or there is none
    curve: VarianceCurve

    @property
    def is_histogram(self) -> bool:
        """Whether nothing is projected."""
        return not self.option.transform.projects

    @property
    def is_resolved(self) -> bool:
        """Whether the standard error is below the squared distance, intervals have upper ends, and the target is met."""
        return self.relative_error <= 1 and self.has_upper_end and self.meets_target

    def protocol(self, situation: Situation, seed: str) -> Protocol:
        """The protocol of this configuration."""
        family = self.option.family
        transform = family.build(sketch_dim=self.sketch_dim, seed=seed)
        return situation.protocol_of(transform, self.noise, max_norm=family.max_norm)


def options(family: Family, situation: Situation) -> list[Option]:
    """All sizes of a family, with their sensitivities."""
    transforms = (family.build(sketch_dim=size, seed="plan") for size in family.sizes)
    return [
        Option(family, each, sensitivity_of(situation.protocol, each, family.noise, family.max_norm))
        for each in transforms
    ]


def sensitivity_of(protocol: Protocol, transform: Transform, noise: str, max_norm: Fraction | None) -> float:
    """The sensitivity that this noise is calibrated to, in integer units."""
    if max_norm is not None:
        return bounded_sensitivity(protocol, transform, max_norm)
    if noise == "laplace":
        of_one = float(transform.l1_sensitivity)
    else:
        of_one = math.sqrt(transform.sensitivity_squared(protocol.neighbors.norm, "output"))
    return math.sqrt(protocol.neighbors.radius_squared) * of_one


def calibrated_law(noise: str, sensitivity: float, epsilon: Fraction, delta: Fraction) -> Law | None:
    """The law of the noise; None if it would be out of range."""
    scale = sensitivity * (1 / float(epsilon) if noise == "laplace" else unit_sigma(epsilon, delta))
    return _law(noise, max(scale, SMALLEST_SCALE)) if scale <= LARGEST_SCALE else None


def predict(options: Iterable[Option], situation: SizeSituation) -> Iterator[Configuration]:
    """The options as lines of a plan, without those whose noise would be out of range."""
    epsilon = situation.epsilon * (1 - situation.protocol.total_share)
    step, target = float(situation.protocol.resolution), situation.target
    low, high = situation.distances.low**2, situation.distances.high**2
    for option in options:
        family, transform = option.family, option.transform
        law = calibrated_law(family.noise, option.sensitivity, epsilon, situation.delta)
        if law is None:
            continue
        pair = Cumulants(2 * law.cumulants.k2, 2 * law.cumulants.k4)
        curve = curve_of(transform, "output", step, pair)
        failure = None
        if target is not None:
            unit = step**2 * float(transform.scale_squared)
            one = failure_bound(transform, law, unit, curve, low, target.distortion)
            failure = min(1.0, situation.pairs * one)
        yield Configuration(
            option,
            family.label,
            transform.sketch_dim,
            family.noise,
            relative_error=math.sqrt(curve.at_point(low)) / low,
            relative_error_high=math.sqrt(curve.at_point(high)) / high,
            smallest_distance=smallest_distance(curve),
            failure_bound=failure,
            is_choice=transform.sketch_dim <= situation.max_sketch_dim,
            has_upper_end=has_upper_end(curve.a, situation.pairs),
            meets_target=failure is None or target is None or failure <= target.failure_probability,
            curve=curve,
        )


def smallest_resolved_distance(protocol: Protocol, pairs: int = 1) -> float:
    """The distance at which about half of all pairs are resolved at 95 percent (over all pairs), in data units."""
    of_pair = PairNoise.sum_of(((protocol.law, protocol.dropped_bits, 1.0),) * 2)
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
    return -float(ndtri(Level.of(0.95, "asymptotic", pairs).tail)) * math.sqrt(a) <= _ROOM


def smallest_distance(curve: VarianceCurve) -> float:
    """The distance whose square D is its own standard error: D² = aD² + bD + c; infinity if there is none."""
    if curve.a >= 1:
        return math.inf
    rest = 1 - curve.a
    return math.sqrt((curve.b + math.sqrt(curve.b**2 + 4 * rest * curve.c)) / (2 * rest))


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
