"""From a family and a size to predictions: the exact variance curve, and what follows from it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from scipy.special import ndtri

from armslength.errors import ParameterError
from armslength.estimates.intervals import IntervalRule, Level, interval_rule
from armslength.estimates.pair_noise import PairNoise
from armslength.estimates.variance import ErrorModel, VarianceCurve, curve_of
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal
from armslength.planner.failure_bounds import chebyshev, failure_bound, pair_moments, usual_median
from armslength.planner.families import Family
from armslength.planner.situation import Situation, bounded_sensitivity
from armslength.privacy.calibration import gaussian_scale
from armslength.privacy.exact_numbers import decimal_text
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import fresh_seed
from armslength.transforms.transform import Transform

_REFERENCE_SENSITIVITY = 2**20  # a squared sensitivity: σ is proportional to its root
_BYTES_OF_AN_INTEGER = 8
_ROOM = 0.75  # at most, for q·√a


@dataclass(frozen=True)
class Option:
    """One size of a family, and its sensitivity: ℓ1 for Laplace, ℓ2 for Gaussian noise."""

    family: Family
    transform: Transform  # under some seed
    sensitivity: float
    is_exact: bool  # whether every seed has this sensitivity


@dataclass(frozen=True)
class Prediction:
    """The noise of each party and the variance of an estimate in data units, of an option under one ε."""

    law: Law
    curve: VarianceCurve

    def relative_error(self, distance: float) -> float:
        """The standard error of the squared distance, divided by it."""
        return math.sqrt(self.curve.at_point(distance**2)) / distance**2


@dataclass(frozen=True)
class Configuration:
    """One line of a plan: a way to release, with its predicted error of the squared distance in data units."""

    label: str
    sketch_dim: int
    noise: str  # "laplace", "gaussian" or "bits"
    relative_error: float  # std_error divided by the squared distance
    relative_error_high: float
    std_error: float  # at the smallest distance of interest
    std_error_high: float  # at the largest
    smallest_distance: float  # whose square is as large as its standard error
    bytes: int  # of one released row
    additions: int | None  # of integers for one vector; None if its length is unknown
    set_up: int  # operations on the matrix to make a protocol, of about a nanosecond each
    guarantee: str  # in words
    failure_bound: float | None  # proved bound on missing the target, over all pairs; None without a target
    is_choice: bool  # may be recommended: within the size limit, and not only for comparison
    is_exact: bool  # holds for every seed; otherwise for a median matrix
    has_upper_end: bool  # whether intervals have useful upper ends; without them it is not recommended
    curve: VarianceCurve
    option: Option | None  # None for randomized response

    @property
    def baseline(self) -> str:
        """Its usual name, if it is a baseline; else empty."""
        return "" if self.option is None else self.option.family.baseline

    def protocol(self, situation: Situation, seed: str | None = None) -> Protocol:
        """The protocol of this configuration, calibrated exactly. A matrix without a formula is scanned now."""
        if self.option is None:
            raise ParameterError(f"{self.label} must be run elsewhere: armslength does not release it")
        family = self.option.family
        return Protocol(
            family.build(sketch_dim=self.sketch_dim, seed=fresh_seed() if seed is None else seed),
            epsilon=situation.epsilon,
            delta=situation.delta if family.noise == "gaussian" else 0,
            noise=family.noise,
            noise_site=family.noise_site,
            max_norm=family.max_norm,
            **situation.fields,
        )


def options(family: Family, situation: Situation) -> list[Option]:
    """All sizes of a family, with their sensitivities."""
    norm, radius = situation.neighbors.norm, math.sqrt(situation.neighbors.radius_squared)
    transforms = [family.build(sketch_dim=size, seed="plan") for size in family.sizes]
    if family.max_norm is not None:
        protocol, max_norm = situation.protocol, family.max_norm
        return [
            Option(family, each, bounded_sensitivity(protocol, each, max_norm), True) for each in transforms
        ]
    typical = [each.typical_sensitivity(norm, family.noise, family.noise_site) for each in transforms]
    return [
        Option(family, transform, radius * sensitivity, is_exact)
        for transform, (sensitivity, is_exact) in zip(transforms, typical, strict=True)
    ]


def predict(option: Option, situation: Situation, epsilon: Fraction) -> Prediction | None:
    """The prediction for an option under this ε, of which totals take their share; None if its noise would be out of range."""
    family = option.family
    for_sketches = epsilon * (1 - situation.total_share)
    if family.noise == "laplace":
        scale = option.sensitivity / float(for_sketches)
    else:
        scale = option.sensitivity * unit_sigma(for_sketches, situation.delta)
    if not scale <= LARGEST_SCALE:
        return None
    law = law_of(family.noise, max(scale, SMALLEST_SCALE))
    pair = Cumulants(2 * law.cumulants.k2, 2 * law.cumulants.k4)
    return Prediction(law, curve_of(option.transform, family.noise_site, situation.resolution, pair))


def configuration_of(option: Option, prediction: Prediction, situation: Situation) -> Configuration:
    """An option as a line of the plan."""
    transform, family = option.transform, option.family
    return _configuration(
        prediction.curve,
        situation,
        label=family.label,
        sketch_dim=transform.sketch_dim,
        noise=family.noise,
        bytes=_BYTES_OF_AN_INTEGER * transform.sketch_dim,
        additions=transform.operations(situation.density),
        set_up=sum(transform.setup_operations(situation.neighbors.norm, family.noise_site).values()),
        failure_bound=failure_of(option, prediction, situation),
        is_choice=family.is_choice and transform.sketch_dim <= situation.max_sketch_dim,
        is_exact=option.is_exact,
        option=option,
    )


def failure_of(option: Option, prediction: Prediction, situation: Situation) -> float | None:
    """A bound on how often a pair misses the target at the smallest distance, where it is worst; None without a target."""
    target = situation.target
    if target is None:
        return None
    squared = situation.distances.low**2
    unit = situation.resolution**2 * float(option.transform.scale_squared)
    one = failure_bound(option.transform, prediction.law, unit, prediction.curve, squared, target.distortion)
    return min(1.0, situation.pairs * one)


def randomized_response(situation: Situation) -> Configuration | None:
    """The line of randomized response; None unless vectors are binary."""
    d = situation.input_dim
    if not situation.binary or d is None or float(situation.epsilon) > 300:
        return None
    # Warner 1965: d(1 − ρ⁴)/(4ρ⁴) with ρ = tanh(ε/2). 1 − ρ⁴ = (1 + ρ²)/cosh²(ε/2) does not round to 0.
    half = float(situation.epsilon) / 2
    rho_squared = math.tanh(half) ** 2
    curve = VarianceCurve(0.0, 0.0, d * (1 + rho_squared) / (4 * math.cosh(half) ** 2 * rho_squared**2))
    failure = None
    if situation.target is not None:
        one = chebyshev(curve, situation.distances.low**2, situation.target.distortion)
        failure = min(1.0, situation.pairs * one)
    return _configuration(
        curve,
        situation,
        label="randomized response (not ours)",
        sketch_dim=d,
        noise="bits",
        bytes=-(-d // 8),
        additions=d,
        set_up=0,
        failure_bound=failure,
        is_choice=False,
        is_exact=True,
        option=None,
    )


def smallest_resolved_distance(protocol: Protocol, pairs: int = 1) -> float:
    """The distance at which about half of all pairs are resolved at 95 percent (over all pairs), in data units."""
    rule = _protocol_rule(protocol)
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
def law_of(name: str, scale: float) -> Law:
    """The law of "laplace" or "gaussian" noise."""
    return DiscreteLaplace(scale) if name == "laplace" else RoundedNormal(scale)


def _configuration(curve: VarianceCurve, situation: Situation, *, noise: str, **others: Any) -> Configuration:
    """The configuration with its errors at the distances of interest."""
    low, high = situation.distances.low**2, situation.distances.high**2
    std_error, std_error_high = (math.sqrt(curve.at_point(squared)) for squared in (low, high))
    delta = f", δ={float(situation.delta):g}" if noise == "gaussian" else ""
    return Configuration(
        relative_error=std_error / low,
        relative_error_high=std_error_high / high,
        std_error=std_error,
        std_error_high=std_error_high,
        smallest_distance=smallest_distance(curve),
        guarantee=f"ε={decimal_text(situation.epsilon)}{delta}",
        noise=noise,
        has_upper_end=has_upper_end(curve.a, situation.pairs),
        curve=curve,
        **others,
    )


def _protocol_rule(protocol: Protocol) -> IntervalRule:
    """The rule for intervals of two parties under this protocol."""
    noise = PairNoise.sum_of(((protocol.law, protocol.dropped_bits, 1.0),) * 2)
    return interval_rule(ErrorModel.of(protocol), noise)
