"""The rounded normal law: N = round(σZ), Z a standard normal. The noise of (ε, δ)-DP."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import ndtr

from armslength.laws.cumulants import Cumulants
from armslength.laws.law import Law
from armslength.lazy import lazy
from armslength.scales import checked_scale

# From here on, E[N²] and E[N⁴] differ from the smooth formulas by a factor of 1 + e^(−2π²σ²)·σ⁴·10³ at
# the most (Poisson summation): 1e-30 at σ = 2.
_SMOOTH_FROM = 2.0


@dataclass(frozen=True)
class RoundedNormal(Law):
    """round(σZ) for a true standard normal Z, in integer units.

    Guarantee: v + round(σZ) = round(v + σZ) for an integer v, so the noise is post-processing of the
    Gaussian mechanism, whose theorem applies as it stands.
    Reference: Balle & Wang 2018, theorem 8 (the analytic Gaussian mechanism).

    Args:
        scale: σ, from 0.01 to 2^40.
    """

    name: ClassVar[str] = "gaussian"

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))

    @lazy
    def _tails(self) -> list[float]:
        """P(|N| ≥ n) for n = 1, 2, … as far as a float can tell them from 0; for small σ."""
        last = math.ceil(27 * math.sqrt(2) * self.scale) + 1
        return [math.erfc((n - 0.5) / (self.scale * math.sqrt(2))) for n in range(1, last + 1)]

    @property
    def second_moment(self) -> float:
        """E[N²] = Σ (2n−1)·P(|N| ≥ n), which is σ² + 1/12 once σ is not small."""
        if self.scale >= _SMOOTH_FROM:
            return self.scale**2 + 1 / 12
        return self._moment(2)

    @property
    def fourth_moment(self) -> float:
        """E[N⁴] = Σ (n⁴−(n−1)⁴)·P(|N| ≥ n), which is 3σ⁴ + σ²/2 + 1/80 once σ is not small."""
        if self.scale >= _SMOOTH_FROM:
            return 3 * self.scale**4 + self.scale**2 / 2 + 1 / 80
        return self._moment(4)

    @property
    def cumulants(self) -> Cumulants:
        """κ₂ = E[N²] and κ₄ = E[N⁴] − 3·E[N²]², which is −1/120, that of the rounding alone, once σ is not small."""
        if self.scale >= _SMOOTH_FROM:
            return Cumulants(self.second_moment, -1 / 120)
        return Cumulants(self.second_moment, self.fourth_moment - 3 * self.second_moment**2)

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

    def _probability(self, magnitude: int) -> arb:
        """Φ((n+½)/σ) − Φ((n−½)/σ), by the complementary error function, so that tails keep their digits."""
        unit = 2 * arb(2).sqrt() * arb(self.scale)
        if magnitude == 0:
            return (1 / unit).erf()
        return (((2 * magnitude - 1) / unit).erfc() - ((2 * magnitude + 1) / unit).erfc()) / 2
