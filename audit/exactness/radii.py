"""The true error of each level at the worst places of every piece, as a share of the error that is proved for it."""

from dataclasses import dataclass

import mpmath
import numpy as np
from scipy import special

from armslength.laws import Law
from armslength.noise.inversion import (
    _DOUBLE_ROUNDING,
    _FLOAT_ROUNDING,
    add,
    locate,
    multiply,
    polynomial,
    two_sum,
)
from armslength.noise.quantile_tables import (
    DOUBLE_DEGREE,
    PIECES,
    double_table,
    float_table,
    quantile_of,
    shift_of,
)

_DIGITS = 60
_PARTS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)  # of a piece, beside its two ends


@dataclass(frozen=True)
class Shares:
    """The largest share of a proved error that was found.

    Attributes:
        points: How many W were tried.
        radius: Of the polynomial's radius.
        decision: Of the error by which an integer is decided, with the scale and the shift.
    """

    points: int = 0
    radius: float = 0.0
    decision: float = 0.0

    def __add__(self, other: "Shares") -> "Shares":
        return Shares(
            self.points + other.points, max(self.radius, other.radius), max(self.decision, other.decision)
        )


def exact_quantile(law: str, w: mpmath.mpf) -> mpmath.mpf:
    """−ln w, or √2·erfc⁻¹(w) by Newton's rule on erfc; at the current precision."""
    if w == 1:
        return mpmath.mpf(0)
    if law == "laplace":
        return -mpmath.log(w)
    x = mpmath.mpf(float(special.erfcinv(float(w)))) if w < 0.9 else mpmath.sqrt(mpmath.pi) * (1 - w) / 2
    for _ in range(8):
        step = (mpmath.erfc(x) - w) * mpmath.sqrt(mpmath.pi) * mpmath.exp(x * x) / 2
        x += step
        if abs(step) < mpmath.mpf(10) ** -35 * (x + mpmath.mpf(10) ** -30):
            break  # the next step would have twice these digits
    return x * mpmath.sqrt(2)


def places(piece: int, generator: np.random.Generator) -> list[int]:
    """First 63 bits of W in a piece: at its ends, at fixed parts of it, and two at random."""
    octave, part = divmod(piece, PIECES)
    low = (PIECES + part) << 57 >> octave
    width = 1 << 57 >> octave
    inside = [int(share * width) for share in (*_PARTS, *generator.random(2).tolist())]
    return sorted(
        {low + min(offset, width - 1) for offset in (*inside, 1, width - 2, width - 1) if offset >= 0}
    )


def level_1_shares(law: Law, pieces: range, generator: np.random.Generator) -> Shares:
    """Level 1 against 60 digits."""
    quantile = quantile_of(law)
    table, (shift, _) = float_table(quantile), shift_of(quantile, law.scale)
    found = Shares()
    for piece in pieces:
        for m in places(piece, generator):
            _, got, offset = locate(np.uint64(m))
            if got != piece:
                raise AssertionError(f"W is of piece {piece}, not {got}")
            y = float(polynomial(table.high[piece], float(offset) * 2.0**-56))
            radius = float(table.radius[piece])
            t = law.scale * y + shift
            bound = law.scale * radius + _FLOAT_ROUNDING * abs(t)
            with mpmath.workdps(_DIGITS):
                for end in (m, m + 1):
                    exact = exact_quantile(law.name, mpmath.ldexp(end, -63))
                    value = law.scale * exact + _exact_shift(law)
                    found += Shares(1, float(abs(exact - y) / radius), float(abs(value - t) / bound))
    return found


def level_2_shares(law: Law, pieces: range, generator: np.random.Generator) -> Shares:
    """Level 2 against 60 digits; the double-double operations are those of the library, one after the other."""
    quantile = quantile_of(law)
    table, shift = double_table(quantile), shift_of(quantile, law.scale)
    found = Shares()
    for piece in pieces:
        octave = piece // PIECES
        second = generator.integers(0, 2**64, 16, dtype=np.uint64).tolist()
        for m, more in zip(places(piece, generator), [0, 2**64 - 1, *second], strict=False):
            _, _, offset = locate(np.uint64(m))
            tau = two_sum(float(int(offset) >> 32) * 2.0**-24, float(int(offset) & 0xFFFFFFFF) * 2.0**-56)
            rest = two_sum(
                float(more >> 32) * 2.0 ** (octave - 88), float(more & 0xFFFFFFFF) * 2.0 ** (octave - 120)
            )
            tau = add(*tau, *rest)
            y = table.high[piece, DOUBLE_DEGREE], table.low[piece, DOUBLE_DEGREE]
            for n in range(DOUBLE_DEGREE - 1, -1, -1):
                y = add(*multiply(*y, *tau), table.high[piece, n], table.low[piece, n])
            t = add(*multiply(*y, law.scale, 0.0), *shift)
            radius = float(table.radius[piece])
            bound = law.scale * radius + _DOUBLE_ROUNDING * abs(float(t[0]))
            with mpmath.workdps(_DIGITS):
                computed, total = (mpmath.mpf(float(pair[0])) + float(pair[1]) for pair in (y, t))
                w = m << 64 | more
                for end in (w, w + 1):
                    exact = exact_quantile(law.name, mpmath.ldexp(end, -127))
                    value = law.scale * exact + _exact_shift(law)
                    found += Shares(
                        1, float(abs(exact - computed) / radius), float(abs(value - total) / bound)
                    )
    return found


def _exact_shift(law: Law) -> mpmath.mpf:
    """b·ln(2/(1+α)), or ½."""
    if law.name == "gaussian":
        return mpmath.mpf("0.5")
    b = mpmath.mpf(law.scale)
    return b * mpmath.log(2 / (1 + mpmath.exp(-1 / b)))
