"""The ε of many small releases at a given δ, by Rényi divergences: proved in ball arithmetic, rounded up."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength.balls import precision
from armslength.privacy.gaussian_curve import GRID_BITS, ball

# α − 1 = 2^(j/64), from 2^−10 to 2^16. Every order gives a valid bound; a finer grid would gain less than 1e-4 of it.
_ORDERS: NDArray[np.float64] = 1.0 + np.exp2(np.arange(-640, 1025) / 64)
_LARGEST = Fraction(10**100)  # for floats that pick an order: beyond it all orders are as bad
_NEARLY_BEST = 1e-9  # relative: far more than floats are off, so that the best order is among those proved
_BITS = 256


def renyi_epsilon(pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction) -> Fraction:
    """An ε for which the releases together are (ε, δ)-DP: the smallest over a fixed grid of orders α.

    Guarantee: divergences of order α add up under adaptive composition. A Gaussian release has αμ²/2. One that is ε-DP has at
    most that of randomized response, log((e^(αε) + e^((1−α)ε))/(1 + e^ε))/(α − 1), which is at most αε²/2, the bound of zCDP, and
    at most ε. A total of τ at order α is (τ + log(1 − 1/α) − log(αδ)/(α − 1), δ)-DP. The value at the chosen α is proved.
    Reference: Bun & Steinke 2016; Kairouz, Oh & Viswanath 2015, for randomized response as the worst case; Canonne, Kamath & Steinke 2020,
    proposition 12, for the conversion.

    Args:
        pure: How many releases there are of each pure ε.
        mu_squared: μ², the sum over all Gaussian releases.
        delta: δ, above 0.
    """
    estimates = _float_epsilons(pure, mu_squared, delta)
    best = estimates.min()
    nearly = np.flatnonzero(estimates <= best + _NEARLY_BEST * max(abs(best), 1e-6))
    return min(proved_epsilon(pure, mu_squared, delta, Fraction(float(_ORDERS[i]))) for i in nearly)


def _float_epsilons(
    pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction
) -> NDArray[np.float64]:
    """ε at all orders, in floats: they pick the order and decide nothing."""
    above_one = _ORDERS - 1
    total = _ORDERS * (float(min(mu_squared, _LARGEST)) / 2)
    for epsilon, count in pure.items():
        e = float(min(epsilon, _LARGEST))
        rest = np.log1p(np.exp(-(1 + 2 * above_one) * e)) - np.log1p(np.exp(-e))
        total += count * (e + rest / above_one)
    log_delta = float(np.log(float(delta))) if float(delta) > 0 else -750.0
    converted: NDArray[np.float64] = (
        total + np.log(above_one / _ORDERS) - (log_delta + np.log(_ORDERS)) / above_one
    )
    return converted


def proved_epsilon(
    pure: Mapping[Fraction, int], mu_squared: Fraction, delta: Fraction, order: Fraction
) -> Fraction:
    """An upper bound on ε at one order, rounded up to 44 bits; at least 0."""
    with precision(_BITS):
        alpha, above_one = ball(order), ball(order - 1)
        total = alpha * ball(mu_squared) / 2
        for epsilon, count in pure.items():
            e = ball(epsilon)
            # e^(αε) would be large: it is taken out of the sum.
            rest = (-(alpha + above_one) * e).exp().log1p() - (-e).exp().log1p()
            total += count * (e + rest / above_one)
        return _rounded_up(total + (above_one / alpha).log() - (ball(delta) * alpha).log() / above_one)


def _rounded_up(number: arb) -> Fraction:
    """The ball's upper end, rounded up to 44 bits behind its first; 0 if it lies below."""
    mantissa, exponent = number.upper().mid().man_exp()
    top = int(mantissa)
    if top <= 0:
        return Fraction(0)
    excess = max(0, top.bit_length() - 1 - GRID_BITS)
    return Fraction(-(-top >> excess)) * Fraction(2) ** (int(exponent) + excess)
