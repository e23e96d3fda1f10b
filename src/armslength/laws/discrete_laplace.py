"""The discrete Laplace law: P(n) = (1−α)/(1+α)·α^|n| with α = e^(−1/b). The noise of pure ε-DP."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength.laws.cumulants import Cumulants
from armslength.laws.law import Law
from armslength.scales import checked_scale


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """The discrete Laplace law of scale b, in integer units.

    Guarantee: the probabilities of integers n and n+j differ by a factor of at most e^(|j|/b), so noise of
    scale Δ₁/ε on an integer vector of ℓ1 sensitivity Δ₁ is ε-DP.
    Reference: paper, lemma Laplace mechanism; Ghosh, Roughgarden & Sundararajan 2009.

    Args:
        scale: b, from 0.01 to 2^40.
    """

    name: ClassVar[str] = "laplace"

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    @property
    def _ratio(self) -> float:
        """α = e^(−1/b)."""
        return math.exp(-1 / self.scale)

    @property
    def _gap(self) -> float:
        """1 − α, without cancellation."""
        return -math.expm1(-1 / self.scale)

    @property
    def second_moment(self) -> float:
        """E[N²] = 2α/(1−α)²."""
        return 2 * self._ratio / self._gap**2

    @property
    def fourth_moment(self) -> float:
        """E[N⁴] = 2α(1 + 10α + α²)/(1−α)⁴."""
        a = self._ratio
        return 2 * a * (1 + 10 * a + a * a) / self._gap**4

    @property
    def cumulants(self) -> Cumulants:
        """κ_n = 2α·E_n(α)/(1−α)^n with the Eulerian polynomials E_n: N is a difference of two geometrics."""
        a, gap = self._ratio, self._gap
        return Cumulants(
            2 * a / gap**2,
            2 * a * _polynomial(a, (1, 4, 1)) / gap**4,
            2 * a * _polynomial(a, (1, 26, 66, 26, 1)) / gap**6,
            2 * a * _polynomial(a, (1, 120, 1191, 2416, 1191, 120, 1)) / gap**8,
        )

    def cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 − α^(n+1)/(1+α) at n = ⌊x⌋ ≥ 0, and by symmetry below."""
        n = np.floor(x)
        upper = np.exp(-(np.where(n >= 0, n, -n - 1) + 1) / self.scale) / (1 + self._ratio)
        return np.where(n >= 0, 1 - upper, upper)

    def _probability(self, magnitude: int) -> arb:
        """tanh(1/2b)·e^(−|n|/b)."""
        b = arb(self.scale)
        return (1 / (2 * b)).tanh() * (-magnitude / b).exp()


def _polynomial(a: float, coefficients: tuple[int, ...]) -> float:
    return sum(coefficient * a**power for power, coefficient in enumerate(coefficients))
