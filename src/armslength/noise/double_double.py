"""Double-double arithmetic: a number as the unevaluated sum of two floats, of about 106 bits.

Error bounds: Joldes, Muller & Popescu 2017, "Tight and rigorous error bounds for basic building blocks of
double-word arithmetic": below 2^−102 relative for each operation here; we count 2^−100.
"""

from armslength.compiled import kernel

_SPLITTER = 134217729.0  # 2^27 + 1


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
    """a + b (AccurateDWPlusDW: relative error below 3.1·2^−106)."""
    high, high_error = two_sum(a_high, b_high)
    low, low_error = two_sum(a_low, b_low)
    high, error = quick_two_sum(high, high_error + low)
    return quick_two_sum(high, low_error + error)


@kernel
def multiply(a_high: float, a_low: float, b_high: float, b_low: float) -> tuple[float, float]:
    """a·b (DWTimesDW1: relative error below 7·2^−106)."""
    high, error = two_product(a_high, b_high)
    return quick_two_sum(high, error + (a_high * b_low + a_low * b_high))
