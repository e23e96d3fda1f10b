"""The two quantile functions that noise is drawn through, in ball arithmetic.

With W uniform in (0, 1): −ln W is exponential, and √2·erfc⁻¹(W) is the magnitude of a standard normal.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from armslength.laws.law import Law


@dataclass(frozen=True)
class Quantile:
    """A falling function Q of W in (0, 1), and how a law is made of it: ± floor(scale·Q(W) + shift).

    Attributes:
        name: The name of the law.
        value: Q(w).
        taylor: Coefficients of Q(w + half·τ) in τ up to a degree; for a ball w, enclosures over all of it.
        shift: ½ where the law rounds, 0 where it floors.
        redraw_minus_zero: Whether a negative zero is drawn anew. The floor needs it: +0 and −0 would each
            have the probability that 0 should have once.
    """

    name: str
    value: Callable[[arb], arb]
    taylor: Callable[[arb, arb, int], list[arb]]
    shift: float
    redraw_minus_zero: bool


def _exponential(w: arb) -> arb:
    """−ln w."""
    return -w.log()


def _exponential_taylor(w: arb, half: arb, degree: int) -> list[arb]:
    """−ln(w + half·τ) = −ln w + Σ (−half/w)^n·τ^n / n."""
    ratio = -half / w
    power = arb(1)
    coefficients = [_exponential(w)]
    for n in range(1, degree + 1):
        power *= ratio
        coefficients.append(power / n)
    return coefficients


def _half_normal(w: arb) -> arb:
    """√2·erfc⁻¹(w); over a ball, from its two ends."""
    return arb(2).sqrt() * w.lower().erfcinv().union(w.upper().erfcinv())


def _half_normal_taylor(w: arb, half: arb, degree: int) -> list[arb]:
    """By the differential equation z″ = z·z′² of z(τ) = √2·erfc⁻¹(w + half·τ)."""
    z = _half_normal(w)
    density = 2 * (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
    coefficients = [z, -half / density]
    slopes = [coefficients[1]]  # the series of z′
    slopes_squared: list[arb] = []  # the series of z′²
    for n in range(degree - 1):
        slopes_squared.append(sum((slopes[i] * slopes[n - i] for i in range(n + 1)), arb(0)))
        bent = sum((coefficients[i] * slopes_squared[n - i] for i in range(n + 1)), arb(0))
        coefficients.append(bent / ((n + 1) * (n + 2)))
        slopes.append((n + 2) * coefficients[n + 2])
    return coefficients[: degree + 1]


EXPONENTIAL = Quantile("laplace", _exponential, _exponential_taylor, shift=0.0, redraw_minus_zero=True)
HALF_NORMAL = Quantile("gaussian", _half_normal, _half_normal_taylor, shift=0.5, redraw_minus_zero=False)


def quantile_of(law: Law) -> Quantile:
    """The quantile function that the law is drawn through."""
    return {quantile.name: quantile for quantile in (EXPONENTIAL, HALF_NORMAL)}[law.name]
