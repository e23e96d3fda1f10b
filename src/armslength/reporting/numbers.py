"""Numbers as the page writes them: one style for all distances, so that columns can be compared by eye."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-4


@dataclass(frozen=True)
class NumberStyle:
    """How distances are written.

    Attributes:
        decimals: Digits after the point; None writes powers of ten.
    """

    decimals: int | None

    @classmethod
    def of(cls, distances: NDArray[np.float64]) -> "NumberStyle":
        """The style that gives the median of these distances three digits."""
        positive = distances[np.isfinite(distances) & (distances > 0)]
        typical = float(np.median(positive)) if len(positive) else 1.0
        if not _SMALLEST_PLAIN <= typical < _LARGEST_PLAIN:
            return cls(None)
        return cls(max(0, 2 - math.floor(math.log10(typical))))

    def text(self, value: float) -> str:
        """One number; infinity has its sign. The script of the page writes numbers in the same way."""
        if math.isinf(value):
            return "∞"
        if self.decimals is None:
            return "0" if value == 0 else f"{value:.2e}"
        return f"{value:,.{self.decimals}f}"

    def interval(self, lower: float, upper: float) -> str:
        """Both ends, with "to" between them."""
        return f"{self.text(lower)} to {self.text(upper)}"


def percent(share: float) -> str:
    """A share as whole percents, which says 100% and 0% only of all and of nothing."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 <= share < 1:
        return "over 99%"
    return f"{share:.0%}"


def level_text(level: float) -> str:
    """A level such as 0.95 as 95%."""
    return f"{100 * level:.10g}%"
