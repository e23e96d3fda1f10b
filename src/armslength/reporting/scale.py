"""Round numbers for rulers and axes."""

import math


def round_step(most: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is at most this; 0 for 0."""
    if not most > 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(most))
    # The power itself may be off by a rounding error.
    return next((digit * power for digit in (5, 2, 1) if digit * power <= most * (1 + 1e-12)), power / 2)


def ticks(top: float, count: int = 5) -> list[float]:
    """0 and multiples of a round step up to the top, about so many."""
    step = round_step(top / count * 1.6)
    return [step * number for number in range(math.floor(top / step * (1 + 1e-12)) + 1)] if step else [0.0]
