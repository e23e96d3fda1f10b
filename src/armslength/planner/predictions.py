"""From a family and a size to numbers: the exact variance curve, and what follows from it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from armslength.errors import ParameterError
from armslength.estimates.intervals import IntervalRule, Level, interval_rule
from armslength.estimates.pair_noise import PairNoise, Part
from armslength.estimates.variance import VarianceCurve, curve_of
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE, Cumulants, DiscreteLaplace, Law, RoundedNormal
from armslength.planner.failure_bounds import chebyshev, failure_bound, pair_moments, usual_median
from armslength.planner.families import Family
from armslength.planner.situation import Situation
from armslength.privacy.calibration import gaussian_scale
from armslength.privacy.exact_numbers import written
from armslength.protocol.protocol import Protocol
from armslength.protocol.work_budget import matrix_work
from armslength.randomness.seeds import fresh_seed
from armslength.transforms.transform import Transform
from armslength.transforms.typical_norms import (
    additions,
    bytes_of_a_row,
    typical_operator_norm_squared,
    typical_sensitivities,
)

_REFERENCE = 2**20  # a squared sensitivity: σ is proportional to its root


@dataclass(frozen=True)
class Member:
    """One size of a family, and how far neighbors move its integers.

    Attributes:
        family: What it belongs to.
        transform: The transform, under a seed that does not matter.
        sensitivity: Of the integers that noise is added to: ℓ1 for Laplace, ℓ2 for Gaussian noise.
        is_exact: Whether every seed has this sensitivity.
    """

    family: Family
    transform: Transform
    sensitivity: float
    is_exact: bool


@dataclass(frozen=True)
class Prediction:
    """What a member does under one ε.

    Attributes:
        law: The noise of each party.
        curve: The variance of an estimate, in data units.
    """

    law: Law
    curve: VarianceCurve

    def relative_error(self, distance: float) -> float:
        """The standard error of the squared distance, divided by it."""
        return relative_error(self.curve, distance)


def members(family: Family, situation: Situation) -> list[Member]:
    """All sizes of a family, with their sensitivities; whatever ε is."""
    return [_member(family, family.build(size, seed="plan"), situation) for size in family.sizes]


def _member(family: Family, transform: Transform, situation: Situation) -> Member:
    neighbors = situation.neighbors
    radius = math.sqrt(neighbors.radius_squared)
    if family.noise_site == "input":
        padded: int = transform.padded_dim  # type: ignore[attr-defined]  # input noise is for FastJL alone
        return Member(family, transform, radius * math.sqrt(padded), True)
    if neighbors.norm == "l2":
        norm, is_exact = typical_operator_norm_squared(transform)
        return Member(family, transform, radius * math.sqrt(norm), is_exact)
    typical = typical_sensitivities(transform)
    sensitivity = typical.l1 if family.noise == "laplace" else math.sqrt(typical.l2_squared)
    return Member(family, transform, radius * sensitivity, typical.is_exact)


def predict(member: Member, situation: Situation, epsilon: Fraction) -> Prediction | None:
    """The exact curve of a member under this ε, less what totals take of it; None where its noise would be out of range."""
    family = member.family
    for_sketches = epsilon * (1 - situation.total_share)
    if family.noise == "laplace":
        scale = member.sensitivity / float(for_sketches)
    else:
        scale = member.sensitivity * unit_sigma(for_sketches, situation.delta)
    if not scale <= LARGEST_SCALE:
        return None
    law = _law(family.noise, max(scale, SMALLEST_SCALE))
    pair = Cumulants(2 * law.cumulants.k2, 2 * law.cumulants.k4)
    return Prediction(law, curve_of(member.transform, family.noise_site, situation.resolution, pair))


def failure_of(member: Member, prediction: Prediction, situation: Situation) -> float | None:
    """A bound on how often one of the pairs misses the target, at the smallest distance, where it is worst."""
    target = situation.target
    if target is None:
        return None
    squared = situation.distances.low**2
    if member.family.noise_site == "input":
        one = chebyshev(prediction.curve, squared, target.distortion)
    else:
        unit = situation.resolution**2 * float(member.transform.scale_squared)
        one = failure_bound(
            member.transform, prediction.law, unit, prediction.curve, squared, target.distortion
        )
    return min(1.0, situation.pairs * one)


def relative_error(curve: VarianceCurve, distance: float) -> float:
    """The standard error of the squared distance, divided by it."""
    return math.sqrt(curve.at_point(distance**2)) / distance**2


def smallest_distance(curve: VarianceCurve) -> float:
    """The distance whose squared distance is its own standard error: D² = aD² + bD + c; infinity if there is none."""
    if curve.a >= 1:
        return math.inf
    rest = 1 - curve.a
    return math.sqrt((curve.b + math.sqrt(curve.b**2 + 4 * rest * curve.c)) / (2 * rest))


@lru_cache(maxsize=4096)
def _law(name: str, scale: float) -> Law:
    return DiscreteLaplace(scale) if name == "laplace" else RoundedNormal(scale)


@lru_cache(maxsize=256)
def unit_sigma(epsilon: Fraction, delta: Fraction) -> float:
    """σ of the analytic Gaussian mechanism at sensitivity 1; infinity where it is out of range."""
    for reference in (_REFERENCE, 1):
        try:
            return gaussian_scale(reference, epsilon, delta) / math.sqrt(reference)
        except ParameterError:
            continue  # out of range at that sensitivity
    return math.inf


# One line of a plan: a configuration, and everything that is predicted of it.


@dataclass(frozen=True)
class Configuration:
    """A way to release, with its predicted error at the distances of interest; all in data units.

    Attributes:
        label: What it is.
        sketch_dim: k.
        noise: "laplace", "gaussian" or "bits".
        relative_error: The standard error of the squared distance at the smallest distance of interest, divided by it.
        relative_error_high: The same at the largest.
        std_error: The standard error of the squared distance at the smallest distance of interest.
        std_error_high: The same at the largest.
        smallest_distance: Where the standard error of the squared distance is as large as it.
        bytes: Of one released row.
        additions: Of integers, for one vector; None where its length is unknown.
        set_up: Work on the matrix before there is a protocol, in operations of about a nanosecond.
        guarantee: What is guaranteed, in words.
        failure_bound: A proved bound on missing the target, over all pairs; None without a target.
        is_choice: Whether it may be recommended: one of ours that is within the size limit.
        is_exact: Whether the prediction holds for every seed; otherwise for a median matrix.
        curve: The variance of the squared distance.
        member: Where it comes from; None for what is not ours.
    """

    label: str
    sketch_dim: int
    noise: str
    relative_error: float
    relative_error_high: float
    std_error: float
    std_error_high: float
    smallest_distance: float
    bytes: int
    additions: int | None
    set_up: int
    guarantee: str
    failure_bound: float | None
    is_choice: bool
    is_exact: bool
    curve: VarianceCurve
    member: Member | None

    @property
    def baseline(self) -> str:
        """What people call it, where others are compared with it; else empty."""
        return "" if self.member is None else self.member.family.baseline

    def is_of(self, *kinds: type[Transform]) -> bool:
        """Whether its transform is one of these."""
        return self.member is not None and isinstance(self.member.transform, kinds)

    def protocol(self, situation: Situation, seed: str | None = None) -> Protocol:
        """The protocol of this configuration, calibrated exactly; a matrix without a formula is scanned now."""
        if self.member is None:
            raise ParameterError(f"{self.label} must be run elsewhere: armslength releases no such thing")
        family = self.member.family
        return Protocol(
            family.build(self.sketch_dim, seed=fresh_seed() if seed is None else seed),
            epsilon=situation.epsilon,
            delta=situation.delta if family.noise == "gaussian" else 0,
            noise=family.noise,
            noise_site=family.noise_site,
            **situation.fields,
        )


def configuration_of(member: Member, prediction: Prediction, situation: Situation) -> Configuration:
    """A member of a family as a line of the plan."""
    transform, family = member.transform, member.family
    is_gaussian = family.noise == "gaussian"
    return Configuration(
        label=family.label,
        sketch_dim=transform.sketch_dim,
        noise=family.noise,
        **_errors(prediction.curve, situation),
        bytes=bytes_of_a_row(transform),
        additions=additions(transform, situation.density),
        set_up=matrix_work(transform, situation.neighbors.norm, family.noise_site),
        guarantee=_guarantee(situation, delta=float(situation.delta) if is_gaussian else None),
        failure_bound=failure_of(member, prediction, situation),
        is_choice=family.is_choice and transform.sketch_dim <= situation.max_sketch_dim,
        is_exact=member.is_exact,
        curve=prediction.curve,
        member=member,
    )


def randomized_response(situation: Situation) -> Configuration | None:
    """The line of randomized response, where vectors are binary."""
    d = situation.input_dim
    if not situation.binary or d is None or float(situation.epsilon) > 300:
        return None
    # Warner 1965: d(1 − ρ⁴)/(4ρ⁴) with ρ = tanh(ε/2). 1 − ρ⁴ = (1 + ρ²)/cosh²(ε/2) does not round to 0.
    half = float(situation.epsilon) / 2
    kept = math.tanh(half) ** 2
    curve = VarianceCurve(0.0, 0.0, d * (1 + kept) / (4 * math.cosh(half) ** 2 * kept**2))
    failure = None
    if situation.target is not None:
        one = chebyshev(curve, situation.distances.low**2, situation.target.distortion)
        failure = min(1.0, situation.pairs * one)
    return Configuration(
        label="randomized response (not ours)",
        sketch_dim=d,
        noise="bits",
        **_errors(curve, situation),
        bytes=-(-d // 8),
        additions=d,
        set_up=0,
        guarantee=_guarantee(situation, delta=None),
        failure_bound=failure,
        is_choice=False,
        is_exact=True,
        curve=curve,
        member=None,
    )


def _errors(curve: VarianceCurve, situation: Situation) -> dict[str, float]:
    """What follows from the variance at the distances of interest."""
    low, high = situation.distances.low, situation.distances.high
    return {
        "relative_error": relative_error(curve, low),
        "relative_error_high": relative_error(curve, high),
        "std_error": math.sqrt(curve.at_point(low**2)),
        "std_error_high": math.sqrt(curve.at_point(high**2)),
        "smallest_distance": smallest_distance(curve),
    }


def _guarantee(situation: Situation, delta: float | None) -> str:
    epsilon = written(situation.epsilon)
    return f"ε={epsilon}" if delta is None else f"ε={epsilon}, δ={delta:g}"


# From which distance on two parties under a protocol are told from equal ones.


# An end is missing where q·√a ≥ 1, with a of about 2/k; no level that is allowed has a q of 10.
_SURELY_BOUNDED = 200


def is_bounded(protocol: Protocol, distance: float, pairs: int = 1) -> bool:
    """Whether an estimate of this distance has an upper end at 95 percent (over all pairs): too coarse a projection has none."""
    if protocol.transform.sketch_dim > _SURELY_BOUNDED:
        return True
    rule = _rule(protocol)
    _, upper = rule.interval(np.array([distance**2]), Level.of(0.95, "spread", pairs))
    return bool(np.isfinite(upper[0]))


def _rule(protocol: Protocol) -> IntervalRule:
    """How estimates of two parties under this protocol become intervals."""
    part = Part(protocol.law.name, protocol.law.scale, protocol.dropped_bits, 1.0)
    return interval_rule(protocol, PairNoise((part, part), (protocol.law, protocol.law)))


def told_apart_from(protocol: Protocol, pairs: int = 1) -> float:
    """The distance at which about half of all pairs are told apart from 0 at 95 percent (over all pairs), in data units."""
    rule = _rule(protocol)
    needed = rule.smallest_resolved(Level.of(0.95, "spread", pairs))
    if protocol.noise_site == "input":
        return math.sqrt(needed)
    noise, k = pair_moments(protocol.law, protocol.unit_squared), protocol.transform.sketch_dim
    low, high = needed, 4 * needed
    for _ in range(40):
        middle = (low + high) / 2
        below = usual_median(k, rule.curve, noise, middle) < needed
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(high)
