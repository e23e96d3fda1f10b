"""Symmetric tables: integer laws with exact moments, drawn one word at a time (specification, section 6)."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel
from armslength.lazy import lazy
from armslength.randomness.normals import NORMAL_TAILS

_GUIDE_BITS = 10
_GUIDE_SHIFT = np.uint64(63 - _GUIDE_BITS)
_ONE = np.uint64(1)


@dataclass(frozen=True)
class SymmetricTable:
    """The law with P(|value| > m) = tails[m] / 2^63, symmetric about 0."""

    tails: tuple[int, ...]

    @lazy
    def second_moment(self) -> Fraction:
        """E[value²], exactly."""
        return Fraction(sum((2 * m + 1) * tail for m, tail in enumerate(self.tails)), 2**63)

    @lazy
    def fourth_moment(self) -> Fraction:
        """E[value⁴], exactly."""
        steps = ((m + 1) ** 4 - m**4 for m in range(len(self.tails)))
        return Fraction(sum(step * tail for step, tail in zip(steps, self.tails, strict=True)), 2**63)

    @property
    def kurtosis(self) -> Fraction:
        """E[value⁴] / E[value²]², exactly."""
        return self.fourth_moment / self.second_moment**2

    @property
    def largest(self) -> int:
        """The largest magnitude; it fits a signed byte."""
        return len(self.tails)

    @lazy
    def _thresholds(self) -> NDArray[np.uint64]:
        return np.array([2**63 - tail for tail in self.tails], dtype=np.uint64)

    @lazy
    def _guide(self) -> NDArray[np.int64]:
        """The magnitude at the lower end of each of 2^10 equal parts: where the search may start."""
        starts = np.arange(2**_GUIDE_BITS, dtype=np.uint64) << _GUIDE_SHIFT
        return np.searchsorted(self._thresholds, starts, side="right")

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.int8]:
        """The values of the words, in their order."""
        values = np.empty(len(words), dtype=np.int8)
        _look_up(words, self._thresholds, self._guide, values)
        return values


@kernel
def _look_up(
    words: NDArray[np.uint64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.int64],
    values: NDArray[np.int8],
) -> None:
    """values[i] = sign · #{m : word ≫ 1 ≥ thresholds[m]}, searched upward from the guide."""
    for i in range(len(words)):
        position = words[i] >> _ONE
        magnitude = guide[position >> _GUIDE_SHIFT]
        while magnitude < len(thresholds) and position >= thresholds[magnitude]:
            magnitude += 1
        values[i] = -magnitude if words[i] & _ONE else magnitude


@cache
def normal_table() -> SymmetricTable:
    """The rounded normal variable of standard deviation 12."""
    return SymmetricTable(NORMAL_TAILS)


@cache
def sparse_normal_table(density_numerator: int) -> SymmetricTable:
    """The normal table with probability density_numerator / 2^32, else 0."""
    tails = (density_numerator * tail >> 32 for tail in NORMAL_TAILS)
    return SymmetricTable(tuple(tail for tail in tails if tail > 0))


@cache
def achlioptas_table() -> SymmetricTable:
    """+1, 0, −1 with probabilities 1/6, 2/3, 1/6, up to 2^−63.

    The tail is rounded up, so that the kurtosis stays at most 3 and the variance without the fourth
    norm stays an upper bound.
    """
    return SymmetricTable((-(-(2**63) // 3),))
