"""From a family and a size to numbers: the exact variance curve, and what follows from it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from armslength.errors import ParameterError
from armslength.estimates.variance import VarianceCurve, curve_of
from armslength.laws.cumulants import Cumulants
from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.laws.law import Law
from armslength.laws.rounded_normal import RoundedNormal
from armslength.planner.families import Family
from armslength.planner.sensitivities import typical_operator_norm_squared, typical_sensitivities
from armslength.planner.situation import Situation
from armslength.planner.tails import chebyshev, failure_bound
from armslength.privacy.calibration import gaussian_scale
from armslength.scales import LARGEST_SCALE, SMALLEST_SCALE
from armslength.transforms.base import Transform

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
