"""What every law of noise offers: a symmetric distribution on the integers, in integer units."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength.balls import to_float
from armslength.errors import ParameterError
from armslength.laws.cumulants import Cumulants

_FAR = 1000  # scales: beyond that every probability is below the smallest float


class Law(ABC):
    """A symmetric law on the integers with a scale; every number is in integer units.

    Attributes:
        scale: b of the discrete Laplace, σ of the rounded normal: a float, taken as the exact number it is.
    """

    name: ClassVar[str]
    scale: float

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E[N²], which is the variance κ₂."""

    @property
    @abstractmethod
    def fourth_moment(self) -> float:
        """E[N⁴]."""

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
        """P(N ≤ x) in float64, for quantiles of estimates; `pmf` has the last digit."""

    @abstractmethod
    def _probability(self, magnitude: int) -> arb:
        """P(N = magnitude), for a magnitude of at least 0, in ball arithmetic."""

    def pmf(self, n: Any) -> float | NDArray[np.float64]:
        """P(N = n), correct to the last digit of a float; for an integer or an array of integers."""
        values = np.asarray(n)
        if values.dtype.kind not in "iu":
            raise ParameterError(f"n must be an integer or an array of integers, got {values.dtype}")
        magnitudes, back = np.unique([abs(value) for value in values.ravel().tolist()], return_inverse=True)
        each = [
            to_float(partial(self._probability, magnitude)) if magnitude < _FAR * self.scale else 0.0
            for magnitude in magnitudes.tolist()
        ]
        spread = np.array(each)[back].reshape(values.shape)
        return float(spread) if values.ndim == 0 else spread
