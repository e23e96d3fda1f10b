"""The two quantile functions that noise is drawn through, in ball arithmetic and as tables of polynomials.

With W uniform in (0, 1), −ln W is exponential, and √2·erfc⁻¹(W) is the magnitude of a standard normal. In a table, each octave
2^(−1−o) ≤ W < 2^−o is cut into 32 pieces W = center + half·τ, each with a Taylor polynomial in τ and a radius that bounds all errors.
The proof, bound by bound: docs/noise.md, section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from armslength._flint import precision, upper_float
from armslength.laws import Law

PIECE_BITS = 5
PIECES = 1 << PIECE_BITS
OCTAVES = 43  # W below 2^−43 goes to ball arithmetic
FLOAT_DEGREE = 8
DOUBLE_DEGREE = 17

_FLOAT_UNIT = 2.0**-53  # the relative error of one IEEE operation
_DOUBLE_UNIT = 2.0**-100  # of one double-double operation; the theorems have 2^−102
_FLOAT_BITS = 63  # how many bits of W the first word reveals; its 64th is the sign
_DOUBLE_BITS = 127
_SLACK = 1 + 2.0**-20  # over the arithmetic of the radius itself


@dataclass(frozen=True)
class Quantile:
    """A falling function Q of W in (0, 1), and how a law is made of it: ± floor(scale·Q(W) + shift)."""

    name: str  # of the law
    value: Callable[[arb], arb]
    # Coefficients of Q(w + half·τ) in τ up to a degree; for a ball w, enclosures over all of it
    taylor: Callable[[arb, arb, int], list[arb]]
    shift: Callable[[arb], arb]  # of a scale
    tail: Callable[[arb, int], arb]  # P(magnitude ≥ n): the W at which the magnitude passes from n to n − 1


@dataclass(frozen=True)
class QuantileTable:
    """Polynomials and radii of all pieces; piece number = 32·octave + part."""

    high: NDArray[np.float64]  # pieces x (degree + 1), the coefficients as floats
    low: NDArray[np.float64]  # what the floats leave over, for double-double
    radius: NDArray[np.float64]  # for each piece, how far the evaluated polynomial can be from the quantile


_tables: dict[tuple[str, int], QuantileTable] = {}


def float_table(quantile: Quantile) -> QuantileTable:
    """The table for float64 and the 63 bits of W in the first word."""
    return _cached_table(quantile, FLOAT_DEGREE)


def double_table(quantile: Quantile) -> QuantileTable:
    """The table for double-double and 127 bits of W."""
    return _cached_table(quantile, DOUBLE_DEGREE)


def _cached_table(quantile: Quantile, degree: int) -> QuantileTable:
    """The table, made once for the process. Threads that ask at the same time wait for the first."""
    key = quantile.name, degree
    if key not in _tables:
        with precision(256):
            if key not in _tables:
                _tables[key] = build(quantile, degree)
    return _tables[key]


def build(quantile: Quantile, degree: int) -> QuantileTable:
    """A new table at the present precision. Any precision gives true radii, a low one large radii."""
    double = degree == DOUBLE_DEGREE
    unit, revealed_bits = (_DOUBLE_UNIT, _DOUBLE_BITS) if double else (_FLOAT_UNIT, _FLOAT_BITS)
    count = OCTAVES * PIECES
    high, low = np.zeros((count, degree + 1)), np.zeros((count, degree + 1))
    radius = np.empty(count)
    for piece in range(count):
        octave, part = divmod(piece, PIECES)
        lowest = arb(2) ** (-1 - octave)
        center = lowest * (2 * (PIECES + part) + 1) / (2 * PIECES)
        half = lowest / (2 * PIECES)
        at_center = quantile.taylor(center, half, degree)
        over_piece = quantile.taylor(arb(center, half), half, degree + 1)
        high[piece] = [float(exact.mid()) for exact in at_center]
        left = [exact - arb(first) for exact, first in zip(at_center, high[piece].tolist(), strict=True)]
        if double:
            low[piece] = [float(rest.mid()) for rest in left]
            left = [rest - arb(second) for rest, second in zip(left, low[piece].tolist(), strict=True)]
        # The last revealed bit of W is worth this power of two in τ, whose unit is the half-width of the piece.
        last_bit = octave + 2 + PIECE_BITS - revealed_bits
        radius[piece] = _radius(at_center, left, over_piece, unit, last_bit)
    for array in (high, low, radius):
        array.flags.writeable = False
    return QuantileTable(high, low, radius)


def _radius(
    at_center: list[arb], left: list[arb], over_piece: list[arb], unit: float, last_bit: int
) -> float:
    """The sum of the five bounds of docs/noise.md, section 3, rounded up.

    `left` is what the stored coefficients leave over of those at the center; `over_piece` has one degree more than they.
    """
    sizes = [upper_float(abs(exact)) * (1 + 2.0**-50) for exact in at_center]
    partial_sums = [sum(sizes[n:]) for n in range(len(sizes))]  # bounds on Horner's partial results

    remainder = upper_float(abs(over_piece[-1]))
    coefficients = sum(upper_float(abs(rest)) for rest in left)
    argument = unit * sum(n * size for n, size in enumerate(sizes))
    if unit == _FLOAT_UNIT:
        # Estrin's scheme: ten roundings at most touch a coefficient, one the product with τ, one the last sum.
        roundings = partial_sums[0] + 11 * partial_sums[1]
    else:
        # Horner's rule: a product and a sum in each step
        roundings = partial_sums[0] + 2 * sum(partial_sums[1:])
    evaluation = unit * roundings * (1 + 2.0**-10)
    unrevealed = upper_float(abs(over_piece[1])) * 2.0**last_bit
    return (remainder + coefficients + argument + evaluation + unrevealed) * _SLACK


@lru_cache(maxsize=64)
def shift_of(quantile: Quantile, scale: float) -> tuple[float, float]:
    """The shift as the sum of two floats: the first within 2^−53 of it relatively, both within 2^−104."""
    bits = 256
    while True:
        with precision(bits):
            exact = quantile.shift(arb(scale))
            high = float(exact.mid())
            low = float((exact - arb(high)).mid())
            # proved, not assumed: other code may have set the precision
            first, both = abs(exact - arb(high)), abs(exact - arb(high) - arb(low))
            if first <= abs(exact) * 2**-52 and both <= abs(exact) * 2**-104:
                return high, low
        bits *= 2


def _exponential(w: arb) -> arb:
    """−ln w."""
    return -w.log()


def _exponential_taylor(w: arb, half: arb, degree: int) -> list[arb]:
    """−ln(w + half·τ) = −ln w + Σ (−half/w)^n·τ^n / n."""
    ratio = -half / w
    power = arb(1)
    coefficients = [_exponential(w)]
    for n in range(1, degree + 1):
        power *= ratio
        coefficients.append(power / n)
    return coefficients


def _half_normal(w: arb) -> arb:
    """√2·erfc⁻¹(w); over a ball, from its two ends."""
    return arb(2).sqrt() * w.lower().erfcinv().union(w.upper().erfcinv())


def _half_normal_taylor(w: arb, half: arb, degree: int) -> list[arb]:
    """By the differential equation z″ = z·z′² of z(τ) = √2·erfc⁻¹(w + half·τ)."""
    z = _half_normal(w)
    density = 2 * (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
    coefficients = [z, -half / density]
    slopes = [coefficients[1]]  # the series of z′
    slopes_squared: list[arb] = []  # the series of z′²
    for n in range(degree - 1):
        slopes_squared.append(sum((slopes[i] * slopes[n - i] for i in range(n + 1)), arb(0)))
        product = sum((coefficients[i] * slopes_squared[n - i] for i in range(n + 1)), arb(0))
        coefficients.append(product / ((n + 1) * (n + 2)))
        slopes.append((n + 2) * coefficients[n + 2])
    return coefficients[: degree + 1]


def _exponential_shift(scale: arb) -> arb:
    """b·ln(2/(1+α)), α = e^(−1/b): with it P(magnitude ≥ n) is 2α^n/(1+α), and 0 has its right probability at once."""
    return scale * (2 / (1 + (-1 / scale).exp())).log()


def _exponential_tail(scale: arb, n: int) -> arb:
    """2α^n/(1+α)."""
    return 2 * (-n / scale).exp() / (1 + (-1 / scale).exp())


def _half_normal_shift(_scale: arb) -> arb:
    """½, for rounding."""
    return arb(0.5)


def _half_normal_tail(scale: arb, n: int) -> arb:
    """erfc((n − ½)/(σ√2))."""
    return ((2 * n - 1) / (2 * arb(2).sqrt() * scale)).erfc()


EXPONENTIAL = Quantile("laplace", _exponential, _exponential_taylor, _exponential_shift, _exponential_tail)
HALF_NORMAL = Quantile("gaussian", _half_normal, _half_normal_taylor, _half_normal_shift, _half_normal_tail)


def quantile_of(law: Law) -> Quantile:
    """The quantile function that the law is drawn through."""
    return EXPONENTIAL if law.name == EXPONENTIAL.name else HALF_NORMAL
