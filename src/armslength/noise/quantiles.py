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
        shift: The shift of a scale.
        tail: P(magnitude ≥ n) for a scale and n ≥ 1: the W at which the magnitude passes from n to n − 1.
    """

    name: str
    value: Callable[[arb], arb]
    taylor: Callable[[arb, arb, int], list[arb]]
    shift: Callable[[arb], arb]
    tail: Callable[[arb, int], arb]


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


def _exponential_shift(scale: arb) -> arb:
    """b·ln(2/(1+α)), α = e^(−1/b): with it P(magnitude ≥ n) is 2α^n/(1+α), and 0 has its right probability at once."""
    return scale * (2 / (1 + (-1 / scale).exp())).log()


def _exponential_tail(scale: arb, n: int) -> arb:
    """2α^n/(1+α)."""
    return 2 * (-n / scale).exp() / (1 + (-1 / scale).exp())


def _half_normal_shift(_scale: arb) -> arb:
    """½, for rounding."""
    return arb(0.5)


def _half_normal_tail(scale: arb, n: int) -> arb:
    """erfc((n − ½)/(σ√2))."""
    return ((2 * n - 1) / (2 * arb(2).sqrt() * scale)).erfc()


EXPONENTIAL = Quantile("laplace", _exponential, _exponential_taylor, _exponential_shift, _exponential_tail)
HALF_NORMAL = Quantile("gaussian", _half_normal, _half_normal_taylor, _half_normal_shift, _half_normal_tail)


def quantile_of(law: Law) -> Quantile:
    """The quantile function that the law is drawn through."""
    return {quantile.name: quantile for quantile in (EXPONENTIAL, HALF_NORMAL)}[law.name]
