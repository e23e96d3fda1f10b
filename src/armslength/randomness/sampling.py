"""Uniform permutations, samples without replacement, and integer laws from tables (specification, sections 5 and 6)."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from armslength._numba import Int64s, Words, kernel, mul_wide
from armslength.randomness.seeds import Stream
from armslength.threads import cached_attribute

_WORDS_AT_ONCE = 1 << 16
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_GUIDE_BITS = 10
_GUIDE_SHIFT = np.uint64(63 - _GUIDE_BITS)

# ⌊2^63 · P(|12·Z| > m + ½)⌋ for m = 0, 1, …; literals, so that no mathematics library stands between a seed and a matrix
# fmt: off
NORMAL_TAILS = (
    8916827982395494487, 8305863732733057529, 7701227017879992120, 7106990903219724069,
    6527015759729200229, 5964874412060325139, 5423786924802193896, 4906566981671616334,
    4415581280707132854, 3952722787560626382, 3519398091873154016, 3116528531299615424,
    2744564214267726921, 2403509611830276354, 2092959020892508775, 1812139938707016744,
    1559962237623469560, 1335070988385525306, 1135900842104846322, 960730032403912454,
    807732283122411721, 675025183976530764, 560713906255666875, 462929453129287743,
    379860956216985944, 309781826205911531, 251069828242898302, 202221373971973976,
    161860496472223673, 128743100436409988, 101757159162428243, 79919566165054563,
    62370348079488114, 48364913756540806, 37264959270739895, 28528577159640998,
    21700037286303898, 16399622167706330, 12313816338317318, 9186071123419345,
    6808295789132479, 5013165101565391, 3667282655581987, 2665198973914940,
    1924252809104313, 1380182380357663, 983439271826567, 696130117489867,
    489508699482561, 341942459010334, 237281553187477, 163564533979285,
    112001692404130, 76184485187184, 51476780869786, 34550604178608,
    23035413249292, 15255599244281, 10035808622809, 6557863315572,
    4256536965720, 2744301329828, 1757461837012, 1117934122474,
    706350568795, 443298059237, 276337965630, 171100906638,
    105227440181, 64278928170, 39000415164, 23503305292,
    14068440279, 8364086407, 4939067158, 2896833818,
    1687535372, 976407968, 561122129, 320279914,
    181571154, 102236861, 57175553, 31758076,
    17520147, 9599749, 5224195, 2823678,
    1515815, 808186, 427966, 225081,
    117571, 60995, 31427, 16082,
    8174, 4126, 2068, 1029,
    509, 250, 122, 59,
    28, 13, 6, 3,
    1,
)
# fmt: on


def uniform_permutation(seed: str, purpose: str, size: int) -> Int64s:
    """A uniform permutation of 0 … size−1, by Fisher and Yates."""
    stream = Stream(seed, purpose)
    permutation = np.arange(size, dtype=np.int64)
    remaining = size
    while remaining > 1:
        words = stream.take(min(remaining - 1, _WORDS_AT_ONCE))
        remaining = _shuffle_down(permutation, remaining, words)
    return permutation


def uniform_sample(seed: str, purpose: str, count: int, size: int) -> Int64s:
    """`count` of 0 … size−1 without replacement, in the order drawn; memory grows with count alone."""
    stream = Stream(seed, purpose)
    swaps: dict[int, int] = {}
    sample: list[int] = []
    while len(sample) < count:
        for word in stream.take(count - len(sample)).tolist():
            position = len(sample)
            high, low = divmod(word * (size - position), 2**64)
            if low < 2**64 % (size - position):
                continue
            index = position + high
            sample.append(swaps.get(index, index))
            swaps[index] = swaps.get(position, position)
    return np.array(sample, dtype=np.int64)


@dataclass(frozen=True)
class SymmetricTable:
    """The law with P(|value| > m) = tails[m] / 2^63, symmetric about 0."""

    tails: tuple[int, ...]

    @cached_attribute
    def second_moment(self) -> Fraction:
        """E[value²], exactly."""
        return Fraction(sum((2 * m + 1) * tail for m, tail in enumerate(self.tails)), 2**63)

    @cached_attribute
    def kurtosis(self) -> Fraction:
        """E[value⁴] / E[value²]², exactly."""
        fourth = Fraction(sum(((m + 1) ** 4 - m**4) * tail for m, tail in enumerate(self.tails)), 2**63)
        return fourth / self.second_moment**2

    @property
    def largest(self) -> int:
        """The largest magnitude; it fits a signed byte."""
        return len(self.tails)

    @cached_attribute
    def _thresholds(self) -> Words:
        return np.array([2**63 - tail for tail in self.tails], dtype=np.uint64)

    @cached_attribute
    def _guide(self) -> Int64s:
        """The magnitude at the lower end of each of 2^10 equal parts, where the search starts."""
        starts = np.arange(2**_GUIDE_BITS, dtype=np.uint64) << _GUIDE_SHIFT
        return np.searchsorted(self._thresholds, starts, side="right")

    def values(self, words: Words) -> NDArray[np.int8]:
        """The values of the words, in their order."""
        values = np.empty(len(words), dtype=np.int8)
        _look_up(words, self._thresholds, self._guide, values)
        return values


NORMAL_TABLE = SymmetricTable(NORMAL_TAILS)  # a normal variable of standard deviation 12, rounded
SIGN_TABLE = SymmetricTable((2**63,))  # +1 or −1
# +1, 0, −1 with probabilities 1/6, 2/3, 1/6, up to 2^−63. Rounded up: the kurtosis stays at most 3, so the variance
# without the fourth norm stays an upper bound.
ACHLIOPTAS_TABLE = SymmetricTable((-(-(2**63) // 3),))


@cache
def sparse_normal_table(density_numerator: int) -> SymmetricTable:
    """The normal table with probability density_numerator / 2^32, else 0."""
    tails = (density_numerator * tail >> 32 for tail in NORMAL_TAILS)
    return SymmetricTable(tuple(tail for tail in tails if tail > 0))


@kernel
def _shuffle_down(permutation: Int64s, remaining: int, words: Words) -> int:
    """Swaps from the top down until the words are used up; returns the size of the part that is still in order."""
    for word in words:
        bound = np.uint64(remaining)
        high, low = mul_wide(word, bound)
        # 2^64 mod bound, in words
        if low < (_ZERO - bound) % bound:
            continue
        last = remaining - 1
        permutation[last], permutation[high] = permutation[high], permutation[last]
        remaining = last
    return remaining


@kernel
def _look_up(words: Words, thresholds: Words, guide: Int64s, values: NDArray[np.int8]) -> None:
    """values[i] = sign · #{m : word ≫ 1 ≥ thresholds[m]}, found upward from the guide."""
    for i in range(len(words)):
        position = words[i] >> _ONE
        magnitude = guide[position >> _GUIDE_SHIFT]
        while magnitude < len(thresholds) and position >= thresholds[magnitude]:
            magnitude += 1
        values[i] = -magnitude if words[i] & _ONE else magnitude
