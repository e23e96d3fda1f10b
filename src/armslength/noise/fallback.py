"""Level 3: ball arithmetic on as many bits of W as it takes. Slow, always right, almost never needed."""

from flint import arb, fmpz

from armslength.balls import precision
from armslength.noise.bits import BitSource
from armslength.noise.quantiles import Quantile

_MAGNITUDE_BITS = 63


def exact_magnitude(quantile: Quantile, scale: float, first: int, second: int, source: BitSource) -> int:
    """floor(scale·Q(W) + shift) for the W whose bits begin with these words and go on in the source."""
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
