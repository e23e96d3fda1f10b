"""How much noise (ε, δ) needs, and the exact ε of Gaussian noise: exact rationals and ball arithmetic, rounded toward more noise."""

import math
from bisect import bisect_left
from fractions import Fraction
from typing import Any

from flint import arb, fmpq
from scipy.special import log_ndtr

from armslength._flint import precision
from armslength.checks import integer, short_repr
from armslength.errors import ParameterError
from armslength.laws import LARGEST_SCALE, SMALLEST_SCALE
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon

GRID_BITS = 44  # bits of an answer after its first: it is at most 2^−44 too large
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -60, 60
_LARGEST_GUESSED = 30  # the exponent up to which every comparison can be decided
_MOST_BITS = 4096
_LARGEST_SENSITIVITY = 2**126
_LARGEST_EPSILON = 1000


def laplace_scale(l1_sensitivity: int, epsilon: Any) -> float:
    """The smallest float b ≥ Δ₁/ε (and ≥ 0.01), in integer units.

    Guarantee: discrete Laplace noise of this scale on an integer vector whose neighbors differ by at most
    Δ₁ in ℓ1 norm is ε-DP. The comparison is between exact rationals.
    Reference: paper, lemma Laplace mechanism.
    """
    sensitivity = integer("l1_sensitivity", l1_sensitivity, at_least=1, at_most=_LARGEST_SENSITIVITY)
    return _in_range(_float_at_least(sensitivity / checked_epsilon(epsilon)), "laplace")


def gaussian_scale(l2_sensitivity_squared: int, epsilon: Any, delta: Any) -> float:
    """A σ that satisfies the analytic Gaussian mechanism, within 2^−48 of the smallest; in integer units.

    Guarantee: rounded normal noise of this σ on an integer vector whose neighbors differ by at most Δ₂ in
    ℓ2 norm is (ε, δ)-DP: a proved upper bound on the exact δ of (σ, ε) is at most δ.
    Reference: Balle & Wang 2018, theorem 8; erratum 8 on why not the paper's own lemma.
    """
    name = "l2_sensitivity_squared"
    squared = integer(name, l2_sensitivity_squared, at_least=1, at_most=_LARGEST_SENSITIVITY)
    exact_epsilon, exact_delta = checked_epsilon(epsilon), checked_delta(delta)
    if exact_delta == 0:
        raise ParameterError(
            "delta must be above 0 for Gaussian noise, got 0; take Laplace noise, or a delta", "delta"
        )
    if exact_epsilon > _LARGEST_EPSILON:
        raise ParameterError(
            f"epsilon must be at most {_LARGEST_EPSILON} for Gaussian noise, got {short_repr(epsilon)}",
            "epsilon",
        )

    def is_enough(sigma: float) -> bool:
        return is_private_enough(squared / Fraction(sigma) ** 2, exact_epsilon, exact_delta)

    enough = min(math.sqrt(squared), LARGEST_SCALE)
    while not is_enough(enough):
        if enough > LARGEST_SCALE:
            return _in_range(enough, "gaussian")  # raises
        enough *= 2
    too_little = enough / 2
    while enough > SMALLEST_SCALE / 2 and is_enough(too_little):
        enough, too_little = too_little, too_little / 2
    # Bisection keeps one invariant: `enough` has been proved to be enough.
    while enough - too_little > enough * 2**-48:
        middle = (enough + too_little) / 2
        if is_enough(middle):
            enough = middle
        else:
            too_little = middle
    return _in_range(enough, "gaussian")


def gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction | None:
    """The smallest number ε of 44 bits for which a Gaussian mechanism is (ε, δ)-DP; None above 2^60.

    Guarantee: δ(μ, ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) is proved to be at most δ, where μ = Δ₂/σ. Releases with μ₁, μ₂, …
    compose to exactly one with μ² = Σμᵢ²: a sum of independent normal privacy losses is normal. δ must be above 0.
    Reference: Balle & Wang 2018, theorem 8; Dong, Roth & Su 2022, corollary 3.3.
    """

    def is_enough(epsilon: Fraction) -> bool:
        return is_private_enough(mu_squared, epsilon, delta)

    if mu_squared == 0 or is_enough(Fraction(0)):
        return Fraction(0)
    # The answers form one fixed grid, k·2^(e−44), so that a larger μ never has a smaller answer.
    exponent = 0
    while exponent <= _LARGEST_EXPONENT and not is_enough(Fraction(2) ** exponent):
        exponent += 1
    if exponent > _LARGEST_EXPONENT:
        return None
    while exponent > _SMALLEST_EXPONENT and is_enough(Fraction(2) ** (exponent - 1)):
        exponent -= 1
    step = Fraction(2) ** (exponent - 1 - GRID_BITS)
    # Bisection returns a place that has been proved to be enough, as has the end of the grid.
    grid = range((1 << GRID_BITS) + 1, (2 << GRID_BITS) + 1)
    low, high = 0, len(grid) - 1
    if exponent <= _LARGEST_GUESSED:  # floats say where to begin, and nothing else
        mu, log_delta = math.sqrt(max(float(mu_squared), 1e-300)), math.log(max(float(delta), 1e-300))
        guess = bisect_left(grid, True, hi=high, key=lambda k: _seems_enough(mu, k * float(step), log_delta))
        before, after, width = guess - 1, guess, 1
        while after < high and not is_enough(grid[after] * step):
            before, after, width = after, min(high, after + width), 2 * width
        while before >= 0 and is_enough(grid[before] * step):
            after, before, width = before, before - width, 2 * width
        low, high = max(low, before + 1), after
    return grid[bisect_left(grid, True, low, high, key=lambda k: is_enough(k * step))] * step


def _seems_enough(mu: float, epsilon: float, log_delta: float) -> bool:
    """`is_private_enough` in floats, which decide nothing."""
    upper, lower = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu))
    share = -math.expm1(min(epsilon + lower - upper, 0.0))  # of the upper tail, that is left
    return share == 0 or upper + math.log(share) <= log_delta


def is_private_enough(mu_squared: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the exact δ of the Gaussian mechanism at ε is provably at most delta."""
    bits = 128
    while bits <= _MOST_BITS:
        with precision(bits):
            mu, e = ball(mu_squared).sqrt(), ball(epsilon)
            exact = _normal_cdf(mu / 2 - e / mu) - e.exp() * _normal_cdf(-mu / 2 - e / mu)
            bound = ball(delta)
            if exact <= bound:
                return True
            if exact > bound:
                return False
        bits *= 2
    return False  # too close to decide: claim less


def ball(number: Fraction) -> arb:
    """A ball around the rational, at the present precision."""
    return arb(fmpq(number.numerator, number.denominator))


def _normal_cdf(x: arb) -> arb:
    """Φ(x), accurate in the tail."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _float_at_least(number: Fraction) -> float:
    """The smallest float that is at least the number."""
    if number > LARGEST_SCALE:
        return math.inf
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def _in_range(scale: float, law: str) -> float:
    """The scale, raised to the smallest that is supported."""
    if not scale <= LARGEST_SCALE:
        raise ParameterError(
            f"the {law} noise would have a scale above 2^40; "
            "take a larger epsilon, a smaller sensitivity, or a coarser resolution",
            "epsilon",
            "resolution",
        )
    return max(scale, SMALLEST_SCALE)
