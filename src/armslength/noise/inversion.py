"""Certified inversion: the integer floor(scale·Q(W) + shift), or the statement that it is not yet certain.

Level 1 knows 63 bits of W and computes in float64; level 2 knows 127 bits and computes in double-double.
An answer is given only if the proved error cannot change it. Theorem and bounds: docs/noise.md.
"""

import math

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel, leading_zeros
from armslength.noise.double_double import add, multiply, two_sum
from armslength.noise.tables import DOUBLE_DEGREE, OCTAVES, PIECE_BITS

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
def polynomial(a: NDArray[np.float64], tau: float) -> float:
    """a₀ + τ·(a₁ + a₂τ + … + a₈τ⁷), the bracket by Estrin's scheme: pairs, then pairs of pairs.

    Horner's rule has eight products and sums that wait for each other, and a processor sees only a few draws ahead. The
    rounding that `tables.py` counts is that of these operations, in this order.
    """
    squared = tau * tau
    low = (a[1] + a[2] * tau) + (a[3] + a[4] * tau) * squared
    high = (a[5] + a[6] * tau) + (a[7] + a[8] * tau) * squared
    return float(a[0] + (low + high * (squared * squared)) * tau)


@kernel
def invert_float(
    words: NDArray[np.uint64],
    coefficients: NDArray[np.float64],
    radius: NDArray[np.float64],
    scale: float,
    shift: float,
    values: NDArray[np.int64],
    still_open: NDArray[np.int64],
) -> int:
    """Level 1: adds to the values and lists the places that are still open; how many those are."""
    opened = 0
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
            still_open[opened] = i
            opened += 1
    return opened


@kernel
def invert_double(
    words: NDArray[np.uint64],
    more_words: NDArray[np.uint64],
    high: NDArray[np.float64],
    low: NDArray[np.float64],
    radius: NDArray[np.float64],
    scale: float,
    shift: tuple[float, float],
    magnitudes: NDArray[np.int64],
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
