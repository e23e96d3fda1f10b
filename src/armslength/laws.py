"""The laws of noise: symmetric distributions on the integers, with their moments and probabilities."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.threads import cached_attribute

# The range of scales for which every proof in docs/noise.md holds.
SMALLEST_SCALE = 0.01
LARGEST_SCALE = 2.0**40
# For larger σ, E[N²] and E[N⁴] of a rounded normal differ from the smooth formulas by a factor of at most
# 1 + e^(−2π²σ²)·σ⁴·10³ (Poisson summation): 1e-30 at σ = 2.
_SMOOTH_FROM = 2.0


@dataclass(frozen=True)
class Cumulants:
    """κ₂ and κ₄ of a symmetric law; they add for independent noises."""

    k2: float = 0.0
    k4: float = 0.0

    def __add__(self, other: "Cumulants") -> "Cumulants":
        return Cumulants(self.k2 + other.k2, self.k4 + other.k4)

    def times(self, coefficient: float) -> "Cumulants":
        """The cumulants of coefficient·noise."""
        square = coefficient * coefficient
        return Cumulants(self.k2 * square, self.k4 * square * square)


@dataclass(frozen=True)
class Law(ABC):
    """A symmetric law on the integers with a scale; every number is in integer units."""

    name: ClassVar[str]
    scale: float  # b of the discrete Laplace, σ of the rounded normal: the exact number that the float is

    def __post_init__(self) -> None:
        scale: Any = self.scale
        is_number = isinstance(scale, (int, float, np.floating)) and not isinstance(scale, bool)
        if not is_number or not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise ParameterError(
                f"scale must be a number from {SMALLEST_SCALE} to 2^40, got {short_repr(scale)}", "scale"
            )
        object.__setattr__(self, "scale", float(scale))

    @property
    def second_moment(self) -> float:
        """E[N²], which is the variance κ₂."""
        return self.cumulants.k2

    @property
    def fourth_moment(self) -> float:
        """E[N⁴] = κ₄ + 3κ₂²."""
        return self.cumulants.k4 + 3 * self.cumulants.k2**2

    @property
    @abstractmethod
    def cumulants(self) -> Cumulants:
        """κ₂ = E[N²] and κ₄ = E[N⁴] − 3·E[N²]²."""

    @property
    @abstractmethod
    def higher_cumulants(self) -> tuple[float, float]:
        """κ₆ and κ₈: what the fourth moment of an estimate needs beyond κ₂ and κ₄."""

    @abstractmethod
    def cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(N ≤ x) in float64, for quantiles of estimates."""


class DiscreteLaplace(Law):
    """The discrete Laplace law of scale b, in integer units: P(n) = (1−α)/(1+α)·α^|n| with α = e^(−1/b).

    Guarantee: the probabilities of integers n and n+j differ by a factor of at most e^(|j|/b), so noise of
    scale Δ₁/ε on an integer vector of ℓ1 sensitivity Δ₁ is ε-DP.
    Reference: paper, lemma Laplace mechanism; Ghosh, Roughgarden & Sundararajan 2009.

    Args:
        scale: b, from 0.01 to 2^40.
    """

    name: ClassVar[str] = "laplace"

    @property
    def _ratio(self) -> float:
        """α = e^(−1/b)."""
        return math.exp(-1 / self.scale)

    @property
    def _gap(self) -> float:
        """1 − α, without cancellation."""
        return -math.expm1(-1 / self.scale)

    @property
    def cumulants(self) -> Cumulants:
        """κ₂ = 2α/(1−α)² and κ₄ = 2α(1 + 4α + α²)/(1−α)⁴, without cancellation."""
        a = self._ratio
        return Cumulants(2 * a / self._gap**2, 2 * a * (1 + 4 * a + a * a) / self._gap**4)

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


class RoundedNormal(Law):
    """round(σZ) for a true standard normal Z, in integer units.

    Guarantee: v + round(σZ) = round(v + σZ) for an integer v, so the noise is post-processing of the
    Gaussian mechanism, whose theorem applies as it stands.
    Reference: Balle & Wang 2018, theorem 8 (the analytic Gaussian mechanism).

    Args:
        scale: σ, from 0.01 to 2^40.
    """

    name: ClassVar[str] = "gaussian"

    @cached_attribute
    def _tails(self) -> list[float]:
        """P(|N| ≥ n) for n = 1, 2, … as far as a float can tell them from 0; for small σ."""
        last = math.ceil(27 * math.sqrt(2) * self.scale) + 1
        return [math.erfc((n - 0.5) / (self.scale * math.sqrt(2))) for n in range(1, last + 1)]

    @property
    def cumulants(self) -> Cumulants:
        """κ₂ = E[N²] and κ₄ = E[N⁴] − 3·E[N²]²: σ² + 1/12, and −1/120 of the rounding alone, once σ is not small."""
        if self.scale >= _SMOOTH_FROM:
            return Cumulants(self.scale**2 + 1 / 12, -1 / 120)
        k2 = self._moment(2)
        return Cumulants(k2, self._moment(4) - 3 * k2**2)

    @property
    def higher_cumulants(self) -> tuple[float, float]:
        """κ₆ and κ₈, which are those of the rounding alone, 1/252 and −1/240, once σ is not small."""
        if self.scale >= _SMOOTH_FROM:
            return 1 / 252, -1 / 240
        k2, k4 = self.cumulants.k2, self.cumulants.k4
        k6 = self._moment(6) - 15 * k4 * k2 - 15 * k2**3
        return k6, self._moment(8) - 28 * k6 * k2 - 35 * k4**2 - 210 * k4 * k2**2 - 105 * k2**4

    def cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Φ((⌊x⌋ + ½)/σ)."""
        return np.asarray(ndtr((np.floor(x) + 0.5) / self.scale))

    def _moment(self, power: int) -> float:
        """E[N^power] = Σ (n^power − (n−1)^power)·P(|N| ≥ n), for an even power and a small σ."""
        tails = enumerate(self._tails, start=1)
        return math.fsum((n**power - (n - 1) ** power) * tail for n, tail in tails)
