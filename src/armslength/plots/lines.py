"""How lines look in all of our figures: colors, dashes, and names beside their ends instead of a legend."""

from math import log10
from typing import Any

# Okabe and Ito's colors, which people with any color vision can tell apart; yellow is too light for a line.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), "-")


def label_ends(axes: Any, ends: list[tuple[float, float, str, str]], bottom: float, top: float) -> None:
    """Names beside the right edge, moved apart where lines end close to each other."""
    room = 0.055  # of the panel's height for one label
    height = log10(top / bottom)
    wanted = sorted(
        (min(max(log10(y / bottom) / height, 0.0), 1.0), name, color) for _, y, name, color in ends
    )
    placed: list[float] = []
    for position, _, _ in wanted:
        placed.append(max(position, placed[-1] + room) if placed else position)
    overflow = max(0.0, placed[-1] - 1.0) if placed else 0.0
    for index in range(len(placed) - 1, -1, -1):
        ceiling = placed[index + 1] - room if index + 1 < len(placed) else 1.0
        placed[index] = min(placed[index] - (overflow if index == len(placed) - 1 else 0.0), ceiling)
    for position, (_, name, color) in zip(placed, wanted, strict=True):
        axes.annotate(
            name, (1.01, position), xycoords="axes fraction", fontsize=8.5, color=color, va="center"
        )
