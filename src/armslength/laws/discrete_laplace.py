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
        """κ₂ = 2α/(1−α)² and κ₄ = 2α(1 + 4α + α²)/(1−α)⁴, without cancellation."""
        a = self._ratio
        return Cumulants(self.second_moment, 2 * a * (1 + 4 * a + a * a) / self._gap**4)

    @property
    def higher_cumulants(self) -> tuple[float, float]:
        """κ₆ and κ₈: κ_n = 2·Σ m^(n−1)·α^m, by the Eulerian polynomials."""
        a = self._ratio
        sixth = 1 + a * (26 + a * (66 + a * (26 + a)))
        eighth = 1 + a * (120 + a * (1191 + a * (2416 + a * (1191 + a * (120 + a)))))
        return 2 * a * sixth / self._gap**6, 2 * a * eighth / self._gap**8

    def cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 − α^(n+1)/(1+α) at n = ⌊x⌋ ≥ 0, and by symmetry below."""
        n = np.floor(x)
        upper = np.exp(-(np.where(n >= 0, n, -n - 1) + 1) / self.scale) / (1 + self._ratio)
        return np.where(n >= 0, 1 - upper, upper)

    def upper_quantile(self, tail: float) -> int:
        """The smallest n ≥ 0 with P(N > n) ≤ tail: α^(n+1)/(1+α) ≤ tail."""
        exact = -self.scale * (math.log(tail) + math.log1p(self._ratio)) - 1
        # one part in 2^40 upward covers the rounding of this line
        return max(0, math.ceil(exact + abs(exact) * 2.0**-40))

    def _probability(self, magnitude: int) -> arb:
        """tanh(1/2b)·e^(−|n|/b)."""
        b = arb(self.scale)
        return (1 / (2 * b)).tanh() * (-magnitude / b).exp()
