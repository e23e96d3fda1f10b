"""Quantile functions as tables of polynomials, each piece with a proved error radius.

W is read as an octave 2^(−1−o) ≤ W < 2^−o, cut into 32 equal pieces. On a piece W = center + half·τ with
τ in [−1, 1), and the quantile is a Taylor polynomial in τ: only + and × of IEEE floats. Its radius bounds
all that can be off: the remainder (Lagrange's form over the whole piece, in ball arithmetic), the rounding
of coefficients, of τ and of Horner's rule, and the bits of W that are not yet revealed. The proof, bound
by bound: docs/noise.md, section 3.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength.balls import precision, upper_float
from armslength.noise.quantiles import Quantile

PIECE_BITS = 5
PIECES = 1 << PIECE_BITS
OCTAVES = 43  # W below 2^−43 goes to ball arithmetic
FLOAT_DEGREE = 8
DOUBLE_DEGREE = 17

_FLOAT_UNIT = 2.0**-53  # the relative error of one IEEE operation
_DOUBLE_UNIT = 2.0**-100  # of one double-double operation, with room: the theorems have 2^−102
_FLOAT_BITS = 63  # how many bits of W the first word reveals; its 64th is the sign
_DOUBLE_BITS = 127
_SLACK = 1 + 2.0**-20  # over the arithmetic of the radius itself


@dataclass(frozen=True)
class QuantileTable:
    """Polynomials and radii of all pieces; piece number = 32·octave + part.

    Attributes:
        high: pieces x (degree + 1), the coefficients as floats.
        low: The same shape: what the floats left over, for double-double.
        radius: For each piece, how far the evaluated polynomial can be from the quantile.
    """

    high: NDArray[np.float64]
    low: NDArray[np.float64]
    radius: NDArray[np.float64]


@cache
def float_table(quantile: Quantile) -> QuantileTable:
    """The table for float64 and the 63 bits of W in the first word."""
    return _build(quantile, FLOAT_DEGREE, _FLOAT_UNIT, _FLOAT_BITS)


@cache
def double_table(quantile: Quantile) -> QuantileTable:
    """The table for double-double and 127 bits of W."""
    return _build(quantile, DOUBLE_DEGREE, _DOUBLE_UNIT, _DOUBLE_BITS)


def _build(quantile: Quantile, degree: int, unit: float, revealed_bits: int) -> QuantileTable:
    count = OCTAVES * PIECES
    high = np.empty((count, degree + 1))
    low = np.empty((count, degree + 1))
    radius = np.empty(count)
    with precision(256):
        for piece in range(count):
            octave, part = divmod(piece, PIECES)
            lowest = arb(2) ** (-1 - octave)
            center = lowest * (2 * (PIECES + part) + 1) / (2 * PIECES)
            half = lowest / (2 * PIECES)
            at_center = quantile.taylor(center, half, degree)
            over_piece = quantile.taylor(arb(center, half), half, degree + 1)
            high[piece] = [float(exact.mid()) for exact in at_center]
            left = zip(at_center, high[piece].tolist(), strict=True)
            low[piece] = [float((exact - arb(first)).mid()) for exact, first in left]
            radius[piece] = _radius(at_center, over_piece, unit, octave + 7 - revealed_bits)
    return QuantileTable(high, low, radius)


def _radius(at_center: list[arb], over_piece: list[arb], unit: float, last_bit: int) -> float:
    """The sum of the five bounds of docs/noise.md, section 3, rounded up.

    Args:
        at_center: The Taylor coefficients.
        over_piece: Enclosures of them at every point of the piece, with one degree more.
        unit: The relative error of one operation.
        last_bit: log2 of what the last revealed bit of W is worth in τ.
    """
    sizes = [upper_float(abs(exact)) * (1 + 2.0**-50) for exact in at_center]
    partial_sums = [sum(sizes[n:]) for n in range(len(sizes))]  # bounds on Horner's partial results

    remainder = upper_float(abs(over_piece[-1]))
    coefficients = unit * partial_sums[0]
    argument = unit * sum(n * size for n, size in enumerate(sizes))
    horner = unit * (partial_sums[0] + 2 * sum(partial_sums[1:])) * (1 + 2.0**-10)
    unrevealed = upper_float(abs(over_piece[1])) * 2.0**last_bit
    return (remainder + coefficients + argument + horner + unrevealed) * _SLACK
