"""What several releases about the same people cost together: exact rationals, proved bounds, no float decides.

Rounded normal noise on integers is post-processing of normal noise on them, for one release and for several together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength._flint import precision
from armslength.privacy.calibration import GRID_BITS, ball, gaussian_epsilon

# α − 1 = 2^(j/64), from 2^−10 to 2^16. Every order gives a valid bound; a finer grid would gain less than 1e-4 of it.
_ORDERS: NDArray[np.float64] = 1.0 + np.exp2(np.arange(-640, 1025) / 64)
_LARGEST = Fraction(10**100)  # for floats that choose an order; beyond it all orders are equally bad
_NEARLY_BEST = 1e-9  # relative; far more than the error of floats, so the best order is among those proved
_BITS = 256
_MU_BITS = 80
_STEPS = 12


@dataclass(frozen=True)
class Loss:
    """What one release costs."""

    epsilon: Fraction  # the whole ε, at its own δ
    delta: Fraction  # 0 for a pure release
    pure: Fraction  # the part of ε without a δ: all of it for a pure release, that of the totals beside Gaussian noise
    mu_squared: Fraction  # (Δ₂/σ)² of its Gaussian noise; 0 for a pure release


@dataclass(frozen=True)
class Guarantee:
    """A proved (ε, δ) of several releases together."""

    epsilon: Fraction
    delta: Fraction  # at most the one that was allowed
    method: str  # the proof: "sum", "gaussian" or "renyi"


def pure_loss(epsilon: Fraction) -> Loss:
    """The loss of an ε-DP release."""
    return Loss(epsilon, Fraction(0), epsilon, Fraction(0))


def gaussian_loss(
    epsilon: Fraction, delta: Fraction, sensitivity_squared: int, sigma: Fraction, totals_epsilon: Fraction
) -> Loss:
    """The loss of a release with Gaussian noise at (ε − totals_epsilon, δ) and, beside it, totals under pure DP."""
    return Loss(epsilon, delta, totals_epsilon, _rounded_up(Fraction(sensitivity_squared) / sigma**2))


def compose(losses: Iterable[Loss], delta: Fraction) -> Guarantee | None:
    """The smallest ε of three proofs for all releases together at a δ of at most `delta`; None if there is no proof at this δ.

    The plain sum; all Gaussian noise as one exact curve at μ² = Σμᵢ², with all pure ε added; and Rényi divergences of one order.

    Guarantee: releases with these losses are together (ε, δ)-DP, even if each was chosen in view of those before. The order
    does not matter, and one more release never makes ε smaller.
    """
    losses = list(losses)
    proofs = []
    own_delta = sum((loss.delta for loss in losses), Fraction(0))
    if own_delta <= delta:
        proofs.append(Guarantee(sum((loss.epsilon for loss in losses), Fraction(0)), own_delta, "sum"))
    if delta > 0:
        pure = Counter(loss.pure for loss in losses if loss.pure)
        mu_squared = sum((loss.mu_squared for loss in losses), Fraction(0))
        exact = gaussian_epsilon(mu_squared, delta) if mu_squared else None
        if exact is not None:
            added = sum((epsilon * count for epsilon, count in pure.items()), Fraction(0))
            proofs.append(Guarantee(added + exact, delta, "gaussian"))
        if pure or mu_squared:
            proofs.append(Guarantee(renyi_epsilon(pure, mu_squared, delta), delta, "renyi"))
    return min(proofs, key=lambda proof: (proof.epsilon, proof.delta), default=None)


def largest_pure_epsilon(losses: Iterable[Loss], epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ε of one more pure release that keeps the total within (ε, δ), to about 1e-4, rounded down; 0 if none does."""
    losses = list(losses)
    so_far = compose(losses, delta)
    if so_far is None or so_far.epsilon >= epsilon:
        return Fraction(0)
    fits, too_much = epsilon - so_far.epsilon, epsilon  # a pure ε can be added to any proof
    if not _within([*losses, pure_loss(fits)], epsilon, delta):
        fits = Fraction(0)  # by a last bit
    if fits == too_much:
        return fits
    for _ in range(_STEPS):
        middle = (fits + too_much) / 2
        if _within([*losses, pure_loss(middle)], epsilon, delta):
            fits = middle
        else:
            too_much = middle
    return fits


def renyi_epsilon(pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction) -> Fraction:
    """An ε for which the releases together are (ε, δ)-DP: the smallest over a fixed grid of orders α.

    Guarantee: divergences of order α add up under adaptive composition. A Gaussian release has αμ²/2. One that is ε-DP has at
    most that of randomized response, log((e^(αε) + e^((1−α)ε))/(1 + e^ε))/(α − 1), which is at most αε²/2, the bound of zCDP, and
    at most ε. A total of τ at order α is (τ + log(1 − 1/α) − log(αδ)/(α − 1), δ)-DP. The value at the chosen α is proved.
    `pure` counts the releases of each pure ε; δ must be above 0.
    Reference: Bun & Steinke 2016; Kairouz, Oh & Viswanath 2015, for randomized response as the worst case; Canonne, Kamath & Steinke 2020,
    proposition 12, for the conversion.
    """
    estimates = _float_epsilons(pure, mu_squared, delta)
    best = estimates.min()
    nearly = np.flatnonzero(estimates <= best + _NEARLY_BEST * max(abs(best), 1e-6))
    return min(proved_epsilon(pure, mu_squared, delta, Fraction(float(_ORDERS[i]))) for i in nearly)


def proved_epsilon(
    pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction, order: Fraction
) -> Fraction:
    """An upper bound on ε at one order, rounded up to 44 bits; at least 0."""
    with precision(_BITS):
        alpha, above_one = ball(order), ball(order - 1)
        total = alpha * ball(mu_squared) / 2
        for epsilon, count in pure.items():
            e = ball(epsilon)
            # e^(αε) would be large, so it is factored out.
            rest = (-(alpha + above_one) * e).exp().log1p() - (-e).exp().log1p()
            total += count * (e + rest / above_one)
        return _ball_rounded_up(total + (above_one / alpha).log() - (ball(delta) * alpha).log() / above_one)


def _float_epsilons(
    pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction
) -> NDArray[np.float64]:
    """ε at all orders, in floats. They choose the order and decide nothing."""
    above_one = _ORDERS - 1
    total = _ORDERS * (float(min(mu_squared, _LARGEST)) / 2)
    for epsilon, count in pure.items():
        e = float(min(epsilon, _LARGEST))
        rest = np.log1p(np.exp(-(1 + 2 * above_one) * e)) - np.log1p(np.exp(-e))
        total += count * (e + rest / above_one)
    log_delta = float(np.log(float(delta))) if float(delta) > 0 else -750.0
    total += np.log(above_one / _ORDERS) - (log_delta + np.log(_ORDERS)) / above_one
    return total


def _within(losses: list[Loss], epsilon: Fraction, delta: Fraction) -> bool:
    together = compose(losses, delta)
    return together is not None and together.epsilon <= epsilon


def _rounded_up(number: Fraction) -> Fraction:
    """The number rounded up to 80 bits: sums of many exact quotients would grow without limit."""
    shift = _MU_BITS - (number.numerator.bit_length() - number.denominator.bit_length())
    scaled = number * Fraction(2) ** shift
    return Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift


def _ball_rounded_up(number: arb) -> Fraction:
    """The ball's upper end, rounded up to 44 bits after its first; 0 if it is negative."""
    mantissa, exponent = number.upper().mid().man_exp()
    top = int(mantissa)
    if top <= 0:
        return Fraction(0)
    excess = max(0, top.bit_length() - 1 - GRID_BITS)
    return Fraction(-(-top >> excess)) * Fraction(2) ** (int(exponent) + excess)
