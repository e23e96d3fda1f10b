"""A draw of noise, written a second time from docs/noise.md alone: Python's integers, and nothing else decides.

The fast implementation inverts a quantile by polynomials in floats, with balls of another library behind them. This one inverts
nothing. The magnitude is n exactly if P(magnitude ≥ n+1) < W ≤ P(magnitude ≥ n), and both tails are enclosed between integers
that are counted in units of 2^−bits: series of positive terms, each truncation and each rounding counted.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from statistics import NormalDist
from typing import NamedTuple

TABLE_SCALE = 256  # up to this scale a draw begins with 15 bits of W
_GUARD = 64
_REDUCED = 8  # the exponential series is summed below 2^−8


class Enclosed(NamedTuple):
    """A number between low·2^−bits and high·2^−bits."""

    low: int
    high: int
    bits: int


class Draw(NamedTuple):
    """A draw and what it took.

    Attributes:
        value: The signed integer.
        needed: How many words of the stream reveal enough of W, if words are revealed as docs/noise.md says.
    """

    value: int
    needed: int


def draw(law: str, scale: float, words: Sequence[int]) -> Draw:
    """The draw that a stream of 64-bit words stands for; an error if the stream is too short.

    Args:
        law: "laplace" or "gaussian".
        scale: b or σ.
        words: The stream.
    """
    for sign, revealed, bits, used in _prefixes(scale, words):
        magnitude = certain_magnitude(law, scale, revealed, bits)
        if magnitude is not None:
            return Draw(-magnitude if sign else magnitude, used)
    raise ValueError("the stream is too short")


def _prefixes(scale: float, words: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Sign, revealed bits of W as an integer, how many they are, and how many words were used, stage by stage."""
    if scale <= TABLE_SCALE:
        pattern = words[0] & 0xFFFF
        sign, revealed, used = pattern >> 15, pattern & 0x7FFF, 1
        yield sign, revealed, 15, used
        revealed, used = revealed << 48 | words[1] & (1 << 48) - 1, 2
    else:
        sign, revealed, used = words[0] >> 63, words[0] & (1 << 63) - 1, 1
    yield sign, revealed, 63, used
    for more, word in enumerate(words[used:], start=1):
        revealed = revealed << 64 | word
        yield sign, revealed, 63 + 64 * more, used + more


def certain_magnitude(law: str, scale: float, revealed: int, bits: int) -> int | None:
    """The magnitude, if every W in (revealed, revealed + 1)·2^−bits has the same; else None."""
    if revealed == 0:
        return None  # the magnitude has no upper bound there
    n = _guess(law, scale, revealed, bits)
    step, direction = 1, 0
    while True:
        below = _tail_is_below(law, scale, n + 1, revealed, bits)  # tail(n+1) ≤ every W
        above = not _tail_is_below(law, scale, n, revealed + 1, bits)  # every W ≤ tail(n)
        if below and above:
            return n
        if not below and _tail_is_below(law, scale, n + 1, revealed + 1, bits):
            return None  # the tail of n + 1 lies inside
        if not above and not _tail_is_below(law, scale, n, revealed, bits):
            return None  # that of n does
        # A poor guess: all of W lies on one side. Steps double until they pass it, then begin anew.
        wanted = -1 if below else 1
        step = 2 * step if wanted == direction else 1
        direction = wanted
        n = max(0, n + wanted * step)


def _guess(law: str, scale: float, revealed: int, bits: int) -> int:
    """About the magnitude, in floats: it saves steps and decides nothing."""
    log_w = math.log(revealed) - bits * math.log(2)
    if law == "laplace":
        shift = scale * math.log(2 / (1 + math.exp(-1 / scale)))
        return max(0, math.floor(-scale * log_w + shift))
    if log_w > -600:
        z = -NormalDist().inv_cdf(math.exp(log_w) / 2)
    else:
        z = math.sqrt(-2 * log_w - math.log(-math.pi * log_w))
    return max(0, math.floor(scale * z + 0.5))


def _tail_is_below(law: str, scale: float, n: int, numerator: int, bits: int) -> bool:
    """Whether P(magnitude ≥ n) < numerator·2^−bits. They are never equal: the tail is no rational number, but for n = 0."""
    if n == 0:
        return numerator > 1 << bits
    for precision in count(bits + _GUARD, _GUARD):
        tail = enclosed_tail(law, scale, n, precision)
        bound = numerator << (precision - bits)
        if tail.high < bound:
            return True
        if tail.low > bound:
            return False
    raise AssertionError("the loop has no end")


@lru_cache(maxsize=64)
def enclosed_tail(law: str, scale: float, n: int, bits: int) -> Enclosed:
    """P(magnitude ≥ n) for n ≥ 1: 2α^n/(1+α) with α = e^(−1/b), or erfc((n − ½)/(σ√2))."""
    exact = Fraction(scale)
    if law == "laplace":
        power, alpha = _exponential(n / exact, bits), _exponential(1 / exact, bits)
        one = 1 << bits
        low = 2 * (power.low << bits) // (one + alpha.high)
        high = -(-2 * (power.high << bits) // (one + alpha.low))
        return Enclosed(low, high, bits)
    return _erfc_of_root(Fraction(2 * n - 1) ** 2 / (8 * exact**2), bits)


def _exponential(t: Fraction, bits: int) -> Enclosed:
    """e^(−t) for t ≥ 0: the series at t/2^halvings, then squares."""
    if t >= Fraction(7, 10) * bits:
        return Enclosed(0, 1, bits)  # 0.7 > ln 2
    halvings = max(0, t.numerator.bit_length() - t.denominator.bit_length() + 1 + _REDUCED)
    inner = bits + halvings + 16  # each square doubles what is lost
    reduced = (t.numerator << inner) // (t.denominator << halvings)  # low by less than one unit
    low, high = _series(reduced + 1, inner)[0], _series(reduced, inner)[1]  # e^(−t) falls
    for _ in range(halvings):
        low, high = low * low >> inner, (high * high >> inner) + 1
    lost = inner - bits
    return Enclosed(low >> lost, -(-high >> lost), bits)


def _series(t: int, bits: int) -> tuple[int, int]:
    """Bounds on e^(−t·2^−bits), t·2^−bits < 1: every term rounded down, which loses less than one unit in each."""
    total, term, sign = 1 << bits, 1 << bits, -1
    terms = 0
    while term:
        terms += 1
        term = term * t // (terms << bits)
        total += sign * term
        sign = -sign
    # A rounded term is low by its own rounding and by what it inherits, t/n of the last one's: together less than 2 units.
    # The terms left out are less than the last, exact one, which is less than 2 units too.
    return max(0, total - 2 * terms - 2), total + 2 * terms + 2


def _erfc_of_root(q: Fraction, bits: int) -> Enclosed:
    """erfc(√q) = 1 − √(4q/π)·e^(−q)·Σ (2q)^k/(2k+1)!!: no term is negative, so nothing cancels in the sum."""
    if q >= Fraction(7, 10) * bits:
        return Enclosed(0, 1, bits)  # erfc(√q) ≤ e^(−q) < 2^−bits, as 0.7 > ln 2
    # The sum is below e^(q), which multiplies what is lost in the other factors.
    inner = bits + 32 + 2 * math.ceil(q)
    power = _exponential(q, inner)
    ratio_low = (q.numerator << inner) // q.denominator
    sum_low, sum_high = _rising_sum(ratio_low, inner)[0], _rising_sum(ratio_low + 1, inner)[1]
    pi = _pi(inner)
    square_low = (4 * q.numerator << 3 * inner) // (q.denominator * pi.high)
    square_high = -(-(4 * q.numerator << 3 * inner) // (q.denominator * pi.low))
    root_low, root_high = math.isqrt(square_low), math.isqrt(square_high) + 1
    erf_low = root_low * power.low * sum_low >> 2 * inner
    erf_high = (root_high * power.high * sum_high >> 2 * inner) + 1
    one, lost = 1 << inner, inner - bits
    return Enclosed(max(0, one - erf_high) >> lost, -(-(one - erf_low) >> lost), bits)


def _rising_sum(q: int, bits: int) -> tuple[int, int]:
    """Bounds on Σ (2q)^k/(2k+1)!!, q in units of 2^−bits."""
    low = high = low_term = high_term = 1 << bits
    for k in count(1):
        divisor = (2 * k + 1) << bits
        low_term = low_term * 2 * q // divisor
        high_term = high_term * 2 * q // divisor + 1
        low += low_term
        high += high_term
        if high_term <= 2 and 8 * q < divisor:
            return low, high + high_term  # each term to come is less than half of the one before
    raise AssertionError("the loop has no end")


@lru_cache(maxsize=256)
def _pi(bits: int) -> Enclosed:
    """π = 16·arctan(1/5) − 4·arctan(1/239) (Machin)."""
    inner = bits + 16
    low_5, high_5 = _arctan_of_inverse(5, inner)
    low_239, high_239 = _arctan_of_inverse(239, inner)
    low, high = 16 * low_5 - 4 * high_239, 16 * high_5 - 4 * low_239
    return Enclosed(low >> 16, -(-high >> 16), bits)


def _arctan_of_inverse(x: int, bits: int) -> tuple[int, int]:
    """Bounds on arctan(1/x) by its alternating series; each term is rounded down by less than two units."""
    power = (1 << bits) // x
    total, sign, terms = power, -1, 1
    while power:
        power //= x * x
        total += sign * (power // (2 * terms + 1))
        sign, terms = -sign, terms + 1
    return total - 2 * terms - 2, total + 2 * terms + 2
