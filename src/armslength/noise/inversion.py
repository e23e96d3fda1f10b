"""Certified inversion: the integer floor(scale·Q(W) + shift), or a mark that it is not yet certain.

Four levels reveal more and more bits of the same W. An answer is given only if the proved error cannot change it: docs/noise.md.
"""

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from armslength._flint import precision
from armslength._numba import Floats, Int64s, Words, kernel, leading_zeros
from armslength.noise.quantile_tables import DOUBLE_DEGREE, OCTAVES, PIECE_BITS, Quantile

LARGEST_SMALL_SCALE = 256.0  # for level 0: one interval in 22 is open, and magnitudes fit 16 bits
OPEN = np.int16(-(2**15))
_INTERVALS = 1 << 15

_FREE_BITS = 62 - PIECE_BITS  # below the leading one and the piece's bits
_FREE_SHIFT = np.uint64(_FREE_BITS)
_FREE_MASK = np.uint64(2**_FREE_BITS - 1)
_PIECE_MASK = np.uint64(2**PIECE_BITS - 1)
_MIDDLE = np.int64(2 ** (_FREE_BITS - 1))
_TO_TAU = 1.0 / 2 ** (_FREE_BITS - 1)  # a power of two
_MAGNITUDE_MASK = np.uint64(2**63 - 1)
_LOW_32 = np.uint64(2**32 - 1)
_32 = np.uint64(32)
_SIGN_SHIFT = np.uint64(63)

_FLOAT_ROUNDING = 2.0**-50  # of the shift, the product, the sum and the two comparisons
_DOUBLE_ROUNDING = 2.0**-98
_SPLITTER = 134217729.0  # 2^27 + 1
_MAGNITUDE_BITS = 63


class BitSource(Protocol):
    """A source of uniform words; tests bring their own to reach the rare paths."""

    def words(self, count: int) -> Words:
        """The next words, each one new."""
        ...


@lru_cache(maxsize=32)
def look_up_table(quantile: Quantile, scale: float) -> NDArray[np.int16]:
    """Level 0: the signed value of each of 2^16 patterns (the sign is the highest bit), or OPEN; from the law's tail alone."""
    magnitudes = np.zeros(_INTERVALS, dtype=np.int16)
    is_open = np.zeros(_INTERVALS, dtype=bool)
    is_open[0] = True
    with precision(192):
        n = 0
        while True:
            n += 1
            exact = quantile.tail(arb(scale), n) * _INTERVALS
            first, last = (int(end.floor().unique_fmpz() or 0) for end in (exact.lower(), exact.upper()))
            # Every W below the boundary gives at least n, every W above it less. Intervals that could hold it are open.
            magnitudes[:first] = n
            is_open[first : last + 1] = True
            if first == 0:
                break
    table = np.concatenate([magnitudes, -magnitudes])
    table[np.concatenate([is_open, is_open])] = OPEN
    table.flags.writeable = False
    return table


@kernel
def look_up(
    patterns: NDArray[np.uint16], table: NDArray[np.int16], values: Int64s, still_open: Int64s
) -> int:
    """Adds to the values and lists the positions that are still open; returns how many there are."""
    count = 0
    for i in range(len(patterns)):
        value = table[patterns[i]]
        if value == OPEN:
            still_open[count] = i
            count += 1
        else:
            values[i] += value
    return count


@kernel
def invert_float(
    words: Words,
    coefficients: Floats,
    radius: Floats,
    scale: float,
    shift: float,
    values: Int64s,
    still_open: Int64s,
) -> int:
    """Level 1: adds to the values and lists the positions that are still open; returns how many there are."""
    count = 0
    for i in range(len(words)):
        octave, piece, offset = locate(words[i] & _MAGNITUDE_MASK)
        certain = False
        if octave < OCTAVES:
            quantile = polynomial(coefficients[piece], np.float64(offset) * _TO_TAU)
            target = scale * quantile + shift
            error = scale * radius[piece] + _FLOAT_ROUNDING * abs(target)
            # The true value is never below 0, so neither is its floor.
            answer = math.floor(max(target - error, 0.0))
            certain = answer == math.floor(target + error)
            if certain:
                values[i] += -np.int64(answer) if words[i] >> _SIGN_SHIFT else np.int64(answer)
        if not certain:
            still_open[count] = i
            count += 1
    return count


@kernel
def invert_double(
    words: Words,
    more_words: Words,
    high: Floats,
    low: Floats,
    radius: Floats,
    scale: float,
    shift: tuple[float, float],
    magnitudes: Int64s,
) -> None:
    """Level 2: the magnitude for each pair of words, or −1 where it is still not certain."""
    for i in range(len(words)):
        octave, piece, offset = locate(words[i] & _MAGNITUDE_MASK)
        magnitudes[i] = -1
        if octave >= OCTAVES:
            continue
        # τ = offset·2^−56 + more·2^(octave−120), in four exact parts of at most 32 bits
        tau_high, tau_low = two_sum(
            math.ldexp(np.float64(offset >> 32), 33 - _FREE_BITS),
            math.ldexp(np.float64(offset & 0xFFFFFFFF), 1 - _FREE_BITS),
        )
        more_high, more_low = two_sum(
            math.ldexp(np.float64(more_words[i] >> _32), octave - 31 - _FREE_BITS),
            math.ldexp(np.float64(more_words[i] & _LOW_32), octave - 63 - _FREE_BITS),
        )
        tau_high, tau_low = add(tau_high, tau_low, more_high, more_low)
        total_high, total_low = high[piece, DOUBLE_DEGREE], low[piece, DOUBLE_DEGREE]
        for n in range(DOUBLE_DEGREE - 1, -1, -1):
            total_high, total_low = multiply(total_high, total_low, tau_high, tau_low)
            total_high, total_low = add(total_high, total_low, high[piece, n], low[piece, n])
        total_high, total_low = multiply(total_high, total_low, scale, 0.0)
        total_high, total_low = add(total_high, total_low, shift[0], shift[1])
        error = scale * radius[piece] + _DOUBLE_ROUNDING * abs(total_high)
        nearest = math.floor(total_high + 0.5)
        # The subtraction is exact, so the distance to the nearest integer keeps its relative digits.
        distance = (total_high - nearest) + total_low
        if distance > error:
            magnitudes[i] = np.int64(nearest)
        elif distance < -error:
            magnitudes[i] = np.int64(nearest) - 1
        elif nearest == 0.0 and distance + error < 1.0:
            magnitudes[i] = 0


def exact_magnitude(quantile: Quantile, scale: float, first: int, second: int, source: BitSource) -> int:
    """Level 3: floor(scale·Q(W) + shift) for the W whose bits begin with these words and go on in the source."""
    revealed = ((first & (2**_MAGNITUDE_BITS - 1)) << 64) | second
    bits = _MAGNITUDE_BITS + 64
    while True:
        with precision(2 * bits + 128):
            # Q falls, so W in (revealed, revealed + 1)·2^−bits puts the answer between these two.
            largest = _floor(quantile, scale, revealed, bits) if revealed else None
            smallest = _floor(quantile, scale, revealed + 1, bits)
            if largest is not None and largest == smallest:
                return int(largest)
        revealed = (revealed << 64) | int(source.words(1)[0])
        bits += 64


def _floor(quantile: Quantile, scale: float, numerator: int, bits: int) -> fmpz | None:
    """floor(scale·Q(numerator·2^−bits) + shift), or None where the ball holds more than one answer."""
    w = arb(numerator) * arb(2) ** -bits
    return (arb(scale) * quantile.value(w) + quantile.shift(arb(scale))).floor().unique_fmpz()


@kernel
def locate(magnitude: np.uint64) -> tuple[int, int, np.int64]:
    """(octave, piece number, offset) of W = magnitude·2^−63; τ is offset·2^−56. Octave 43 and up: no piece."""
    octave = leading_zeros(magnitude) - 1
    if octave >= OCTAVES:
        return octave, 0, np.int64(0)
    normal = magnitude << np.uint64(octave)
    part = (normal >> _FREE_SHIFT) & _PIECE_MASK
    offset = np.int64(normal & _FREE_MASK) - _MIDDLE
    return octave, (octave << PIECE_BITS) + int(part), offset


@kernel
def polynomial(a: Floats, tau: float) -> float:
    """a₀ + τ·(a₁ + a₂τ + … + a₈τ⁷), the bracket by Estrin's scheme: pairs, then pairs of pairs.

    Faster than Horner's rule. The radius of a table counts the rounding of these operations, in this order.
    """
    squared = tau * tau
    low = (a[1] + a[2] * tau) + (a[3] + a[4] * tau) * squared
    high = (a[5] + a[6] * tau) + (a[7] + a[8] * tau) * squared
    return float(a[0] + (low + high * (squared * squared)) * tau)


@kernel
def two_sum(a: float, b: float) -> tuple[float, float]:
    """fl(a+b) and its exact error (Knuth)."""
    total = a + b
    shifted = total - a
    return total, (a - (total - shifted)) + (b - shifted)


@kernel
def quick_two_sum(a: float, b: float) -> tuple[float, float]:
    """fl(a+b) and its exact error, for |a| ≥ |b| (Dekker)."""
    total = a + b
    return total, b - (total - a)


@kernel
def split(a: float) -> tuple[float, float]:
    """a as the exact sum of two floats of at most 26 bits each (Veltkamp)."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


@kernel
def two_product(a: float, b: float) -> tuple[float, float]:
    """fl(a·b) and its exact error (Dekker; no fused operations, which differ between machines)."""
    product = a * b
    a_high, a_low = split(a)
    b_high, b_low = split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


@kernel
def add(a_high: float, a_low: float, b_high: float, b_low: float) -> tuple[float, float]:
    """a + b in double-double (AccurateDWPlusDW: relative error below 3.1·2^−106; Joldes, Muller & Popescu 2017)."""
    high, high_error = two_sum(a_high, b_high)
    low, low_error = two_sum(a_low, b_low)
    high, error = quick_two_sum(high, high_error + low)
    return quick_two_sum(high, low_error + error)


@kernel
def multiply(a_high: float, a_low: float, b_high: float, b_low: float) -> tuple[float, float]:
    """a·b in double-double (DWTimesDW1: relative error below 7·2^−106)."""
    high, error = two_product(a_high, b_high)
    return quick_two_sum(high, error + (a_high * b_low + a_low * b_high))
