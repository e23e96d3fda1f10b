"""The exact ε of Gaussian noise, single or composed, at a given δ: proved in ball arithmetic, rounded up."""

from fractions import Fraction

from flint import arb, fmpq

from armslength.balls import precision

GRID_BITS = 44  # an answer has this many bits behind its first: it is 2^−44 too large at most
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -60, 60
_MOST_BITS = 4096


def gaussian_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction | None:
    """The smallest number ε of 44 bits for which a Gaussian mechanism is (ε, δ)-DP; None above 2^60.

    Guarantee: δ(μ, ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) is proved to be at most δ, where μ = Δ₂/σ. Releases with μ₁, μ₂, …
    compose to exactly one with μ² = Σμᵢ², whatever they are: a sum of independent normal privacy losses is normal.
    Reference: Balle & Wang 2018, theorem 8; Dong, Roth & Su 2022, corollary 3.3.

    Args:
        mu_squared: μ², the sum of (Δ₂/σ)² over all releases.
        delta: δ, above 0.
    """
    if mu_squared == 0 or is_private_enough(mu_squared, Fraction(0), delta):
        return Fraction(0)
    # The answers form one fixed grid, k·2^(e−44), so that a larger μ never has a smaller answer.
    exponent = 0
    while exponent <= _LARGEST_EXPONENT and not is_private_enough(mu_squared, _power(exponent), delta):
        exponent += 1
    if exponent > _LARGEST_EXPONENT:
        return None
    while exponent > _SMALLEST_EXPONENT and is_private_enough(mu_squared, _power(exponent - 1), delta):
        exponent -= 1
    step = _power(exponent - 1 - GRID_BITS)
    too_small, enough = 1 << GRID_BITS, 2 << GRID_BITS  # `enough` has been proved to be enough
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if is_private_enough(mu_squared, middle * step, delta):
            enough = middle
        else:
            too_small = middle
    return enough * step


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
    return False  # too close to tell: claim less


def ball(number: Fraction) -> arb:
    """The rational as a ball around it, at the precision that is set."""
    return arb(fmpq(number.numerator, number.denominator))


def _normal_cdf(x: arb) -> arb:
    """Φ(x), with its relative digits kept in the tail."""
    return (-x / arb(2).sqrt()).erfc() / 2


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
