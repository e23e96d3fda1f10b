"""Calibration over a grid: never less noise, never a smaller ε, than dp-accounting and 100-digit decimals ask for, and hardly more."""

import math
from contextlib import AbstractContextManager
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import dp_accounting
import mpmath
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import DiscreteLaplacePrivacyLoss

from armslength.errors import ParameterError
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.privacy.composition import compose, gaussian_loss, pure_loss
from audit.parallel import in_processes
from audit.sections import Check, Section

EPSILONS = ("0.0001", "0.001", "0.01", "0.03", "0.1", "0.3", "1", "2", "4.5", "8", "16", "50", "200", "700")
DELTAS = ("1e-100", "1e-30", "1e-15", "1e-12", "1e-9", "1e-6", "1e-3", "0.1", "0.5", "0.9")
SQUARES = (1, 3, 50, 10**6, 10**12 + 1, 10**24)  # of the last, many scales are beyond 2^40
SENSITIVITIES = (1, 2, 7, 400, 10**6 + 3, 10**9)
HAIR = Fraction(1, 2**46)  # σ is within 2^−48 of the smallest, by a bisection in floats
_PEER_ROUNDING = 1e-9  # relative: the peer searches in floats, to 1e-12 of σ
_STEP = 1e-3


class Point(NamedTuple):
    """A Gaussian release: ε and δ as they are written, and Δ₂²."""

    epsilon: str
    delta: str
    squared: int


class Worth(NamedTuple):
    """What our σ is worth.

    Attributes:
        is_enough: Whether the exact δ of σ is at most δ, in 100 digits.
        is_least: Whether that of σ less a hair is above δ.
        to_peer: σ as a multiple of dp-accounting's.
        peer_epsilon: dp-accounting's ε of our σ, as a multiple of ε.
    """

    is_enough: bool
    is_least: bool
    to_peer: float
    peer_epsilon: float


class Calibrated(NamedTuple):
    """A point of the grid.

    Attributes:
        has_scale: Whether a σ up to 2^40 is enough, by 100 digits. None is below 0.01: ε would have to be above 4,000.
        worth: What our σ is worth; None where our code refuses.
    """

    has_scale: bool
    worth: Worth | None


class Mix(NamedTuple):
    """Several releases: how many are Gaussian (each ε = 1, δ = 1e-6), how many Laplace of which ε, and the δ of all."""

    gaussians: int
    laplaces: int
    epsilon: str
    delta: str


def exact_delta(sigma: Fraction, squared: int, epsilon: str) -> mpmath.mpf:
    """Balle & Wang's δ of the Gaussian mechanism, at the precision in force."""
    ratio = mpmath.sqrt(squared) * sigma.denominator / sigma.numerator
    e = mpmath.mpf(epsilon)
    return mpmath.ncdf(ratio / 2 - e / ratio) - mpmath.exp(e) * mpmath.ncdf(-ratio / 2 - e / ratio)


def has_scale(point: Point) -> bool:
    """Whether the largest σ is enough for a point: what our code says has no part in it."""
    with _digits(point):
        largest = exact_delta(Fraction(LARGEST_SCALE), point.squared, point.epsilon)
        return bool(largest <= mpmath.mpf(point.delta))


def calibrated(point: Point) -> Calibrated:
    """One point of the grid."""
    try:
        sigma = gaussian_scale(point.squared, point.epsilon, point.delta)
    except ParameterError:
        return Calibrated(has_scale(point), None)
    return Calibrated(has_scale(point), _worth(point, sigma))


def _worth(point: Point, sigma: float) -> Worth:
    with _digits(point):
        wanted = mpmath.mpf(point.delta)
        is_enough = exact_delta(Fraction(sigma), point.squared, point.epsilon) <= wanted
        is_least = exact_delta(Fraction(sigma) * (1 - HAIR), point.squared, point.epsilon) > wanted
    unit = sigma / math.sqrt(point.squared)
    epsilon, delta = float(point.epsilon), float(point.delta)
    return Worth(
        bool(is_enough),
        bool(is_least),
        unit / float(dp_accounting.get_sigma_gaussian(epsilon, delta)),
        float(dp_accounting.get_epsilon_gaussian(unit, delta)) / epsilon,
    )


def _digits(point: Point) -> AbstractContextManager[None]:
    """The two terms of δ cancel down to δ: as many digits as that takes, and a hundred more."""
    digits = 100 + math.ceil(float(point.epsilon)) - math.floor(math.log10(float(point.delta)))
    context: AbstractContextManager[None] = mpmath.workdps(digits)
    return context


def laplace_is_right(sensitivity: int, epsilon: str) -> bool:
    """Whether b is the smallest float that is enough, and dp-accounting says the same of discrete Laplace noise.

    Beyond the range of scales: whether it is refused.
    """
    exact = sensitivity / Fraction(epsilon)
    try:
        b = laplace_scale(sensitivity, epsilon)
    except ParameterError:
        return exact > LARGEST_SCALE
    if b == SMALLEST_SCALE:
        return exact <= Fraction(b)
    peer = DiscreteLaplacePrivacyLoss(1 / b, sensitivity)
    return (
        Fraction(math.nextafter(b, 0)) < exact <= Fraction(b)
        and peer.get_delta_for_epsilon(float(epsilon) * (1 + _PEER_ROUNDING)) == 0
        and peer.get_delta_for_epsilon(float(epsilon) * 0.99) > 0
    )


def composed(mix: Mix) -> float:
    """Our ε of a mix of releases, as a multiple of what privacy loss distributions, rounded down, say."""
    sigma = gaussian_scale(1, "1", "1e-6")
    gaussian = gaussian_loss(Fraction(1), Fraction("1e-6"), 1, Fraction(sigma), Fraction(0))
    losses = [gaussian] * mix.gaussians + [pure_loss(Fraction(mix.epsilon))] * mix.laplaces
    ours = compose(losses, Fraction(mix.delta))
    if ours is None:
        raise AssertionError("a mix with a δ has a proof")
    rounding = {
        "pessimistic_estimate": False,
        "value_discretization_interval": _STEP,
        "use_connect_dots": False,
    }
    parts = []
    if mix.gaussians:
        parts.append(pld.from_gaussian_mechanism(sigma / math.sqrt(mix.gaussians), **rounding))
    if mix.laplaces:
        single = pld.from_laplace_mechanism(1 / float(mix.epsilon), **rounding)
        parts.append(single.self_compose(mix.laplaces))
    together = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
    return float(ours.epsilon) / float(together.get_epsilon_for_delta(float(mix.delta)))


def audit(quick: bool) -> Section:
    """Gaussian and Laplace scales, then composition."""
    step = 11 if quick else 1
    points = [Point(*each) for each in product(EPSILONS, DELTAS, SQUARES)][::step]
    found = in_processes(calibrated, points, "Gaussian scales")
    laplace = [laplace_is_right(*pair) for pair in product(SENSITIVITIES, EPSILONS)]
    mixes = [
        Mix(*each)
        for each in product((0, 1, 3, 10, 30), (0, 1, 5, 20, 100), ("0.1", "1"), ("1e-9", "1e-6", "1e-3"))
        if each[0] + each[1] > 0 and (each[1] or each[2] == "1")
    ][::step]
    ratios = in_processes(composed, mixes, "composition")
    worths = [one.worth for one in found if one.worth is not None]
    rows = (
        ("Gaussian σ", f"{len(worths):,}", _span([one.to_peer for one in worths])),
        ("ε of our σ, by dp-accounting", f"{len(worths):,}", _span([one.peer_epsilon for one in worths])),
        ("ε of several releases", f"{len(ratios):,}", _span(ratios)),
    )
    checks = (
        *gaussian_checks(found),
        _all_of(
            "Laplace scales are the smallest sufficient floats, and dp-accounting agrees; scales beyond 2^40 are refused",
            laplace,
        ),
        Check(
            "our cost of several releases is never below that of privacy loss distributions, and at most a third above",
            all(1 <= ratio <= 4 / 3 for ratio in ratios),
            f"{min(ratios):.4f} to {max(ratios):.4f} times, {len(ratios)} mixes",
        ),
    )
    return Section(
        "Calibration",
        f"Our scales are compared with dp-accounting over a grid of ε from {EPSILONS[0]} to {EPSILONS[-1]}, δ from {DELTAS[0]} "
        f"to {DELTAS[-1]} and sensitivities. A 100-digit computation, not our code, decides whether a point has a scale "
        "between 0.01 and 2^40. Our code must give a scale there and nowhere else. dp-accounting computes in floats, so the "
        "exact δ is also computed in 100 digits. The ledger's composition is compared with privacy loss distributions, "
        "rounded down, for mixes of Gaussian and Laplace releases.",
        ("what", "points", "ours relative to theirs"),
        rows,
        checks,
    )


def gaussian_checks(found: list[Calibrated]) -> tuple[Check, ...]:
    """What must hold at the points of the grid; a point inside the range without an answer fails every claim about it."""
    inside = [one.worth for one in found if one.has_scale]
    right = sum(one.has_scale == (one.worth is not None) for one in found)
    return (
        Check(
            "our code gives a scale exactly where one up to 2^40 is enough",
            right == len(found) and 0 < len(inside) < len(found),
            f"right at {right:,} of {len(found):,} points, of which {len(inside):,} have one",
        ),
        _all_of(
            "the exact δ of our σ is at most δ, in 100 digits",
            [one is not None and one.is_enough for one in inside],
        ),
        _all_of(
            "the exact δ of σ·(1 − 2^−46) is above δ", [one is not None and one.is_least for one in inside]
        ),
        _all_of(
            "our σ differs from dp-accounting's by at most its rounding of 1e-9",
            [one is not None and abs(one.to_peer - 1) <= _PEER_ROUNDING for one in inside],
        ),
    )


def _all_of(claim: str, held: list[bool]) -> Check:
    return Check(claim, all(held), f"at {sum(held):,} of {len(held):,} points")


def _span(ratios: list[float]) -> str:
    return f"{min(ratios) - 1:+.1e} to {max(ratios) - 1:+.1e}" if ratios else ""
