"""One line of a plan: a configuration, and everything that is predicted of it."""

import math
from dataclasses import dataclass

from armslength.errors import ParameterError
from armslength.estimates.variance import VarianceCurve
from armslength.planner.costs import additions, bytes_of_a_row
from armslength.planner.predict import Member, Prediction, failure_of, relative_error, smallest_distance
from armslength.planner.situation import Situation
from armslength.planner.tails import chebyshev
from armslength.privacy.parameters import written
from armslength.protocol.protocol import Protocol
from armslength.protocol.work import matrix_work
from armslength.randomness.seeds import fresh_seed
from armslength.transforms.base import Transform


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
            situation.epsilon,
            situation.delta if family.noise == "gaussian" else 0,
            family.noise,
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
