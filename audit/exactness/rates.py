"""How often a level is uncertain: measured, beside what the proved radii predict.

The table of level 0 is counted out. Level 1 is counted on random words, at scales where it is uncertain often enough. Level 2 never
would be: its words are drawn from windows around change points, in which one in eight should be uncertain.
"""

import math
from dataclasses import dataclass

import numpy as np

from armslength.laws import Law
from armslength.noise.inversion import OPEN, locate, look_up_table
from armslength.noise.quantile_tables import OCTAVES, PIECES, double_table, float_table, quantile_of
from audit.exactness.worst_places import level_1, level_2
from audit.false_alarms import LIMIT
from reference.draws import enclosed_tail

_AT_ONCE = 1 << 18
_WINDOW = 8  # the window is this many times as wide as what should be uncertain


@dataclass(frozen=True)
class Rate:
    """A share that was counted, and the one that is predicted.

    Attributes:
        draws: How many words were tried.
        uncertain: How many of them the level passed on.
        predicted: How many should have been.
    """

    draws: int
    uncertain: int
    predicted: float

    def fits(self, factor: float = 1.0) -> bool:
        """Whether the count is within the limits of this factor of what is predicted."""
        expected = factor * self.predicted
        spread = math.sqrt(max(expected * (1 - expected / self.draws), 1.0))
        return abs(self.uncertain - expected) <= LIMIT * spread + 1

    @property
    def has_teeth(self) -> bool:
        """Whether the count would not fit 0.9 or 1.1 of what is predicted."""
        return not self.fits(0.9) and not self.fits(1.1)


def table_rate(law: Law) -> Rate:
    """Level 0: the open intervals of the table, beside those that hold a change point, counted by the other implementation."""
    table = look_up_table(quantile_of(law), law.scale)[: 1 << 15]
    holding = {0}
    n = 0
    while True:
        n += 1
        tail = enclosed_tail(law.name, law.scale, n, 15 + 64)
        holding.add(tail.low >> 64)
        if tail.high >> 64 == 0:
            return Rate(1 << 15, int((table == OPEN).sum()), float(len(holding)))


def counted_rate(law: Law, draws: int, generator: np.random.Generator) -> Rate:
    """Level 1 on random words."""
    uncertain = 0
    for start in range(0, draws, _AT_ONCE):
        words = generator.integers(0, 2**63, min(_AT_ONCE, draws - start), dtype=np.uint64)
        uncertain += int((level_1(law, words) < 0).sum())
    return Rate(draws, uncertain, draws * predicted_share(law))


def predicted_share(law: Law) -> float:
    """The probability that an interval of length 2E holds an integer, E from the radii; and all W below 2^−43.

    scale·Q(W) + shift is spread over many integers, so its place between two of them is uniform. E depends on the piece and,
    through the rounding, on the value itself, whose mean over a piece is a₀ + a₂/3 + a₄/5 + … of its polynomial.
    """
    table = float_table(quantile_of(law))
    octaves = np.repeat(np.arange(OCTAVES), PIECES)
    likely = 2.0 ** -(1.0 + octaves) / PIECES
    orders = np.arange(0, table.high.shape[1], 2)
    mean = (table.high[:, orders] / (orders + 1)).sum(axis=1)
    error = law.scale * table.radius + 2.0**-50 * (law.scale * mean)
    return float((likely * np.minimum(1, 2 * error)).sum()) + 2.0**-43


def windowed_rate(law: Law, n: int, draws: int, generator: np.random.Generator) -> Rate:
    """Level 2 on W that are uniform in a window around the change point of n, eight times as wide as what should be uncertain.

    Args:
        law: The law.
        n: The magnitude below which W passes there.
        draws: How many W.
        generator: For W.
    """
    middle = enclosed_tail(law.name, law.scale, n, 127 + 64).low >> 64
    _, piece, _ = locate(np.uint64(middle >> 64))
    error = law.scale * float(double_table(quantile_of(law)).radius[piece]) + 2.0**-98 * n
    # how far W moves the value there: b/W, or σ·√(π/2)·exp(z²/2), z = (n − ½)/σ
    if law.name == "laplace":
        slope = law.scale / (middle * 2.0**-127)
    else:
        slope = law.scale * math.sqrt(math.pi / 2) * math.exp(((n - 0.5) / law.scale) ** 2 / 2)
    uncertain_half = error / slope * 2.0**127  # in units of the last revealed bit
    half = math.ceil(_WINDOW * uncertain_half)
    revealed = [
        middle + step
        for step in generator.integers(-half, half, draws, endpoint=True, dtype=np.int64).tolist()
    ]
    first, second = (
        np.array([w >> shift & 2**64 - 1 for w in revealed], dtype=np.uint64) for shift in (64, 0)
    )
    uncertain = int((level_2(law, first, second) < 0).sum())
    return Rate(draws, uncertain, draws * 2 * uncertain_half / (2 * half + 1))
