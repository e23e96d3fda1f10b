"""The range of noise scales for which every proof in docs/noise.md holds."""

from typing import Any

from armslength.checks import number, shown
from armslength.errors import ParameterError

SMALLEST_SCALE = 0.01
LARGEST_SCALE = 2.0**40


def checked_scale(scale: Any) -> float:
    """The scale as a float, if it is in the range."""
    checked = number("scale", scale, above=0.0, at_most=LARGEST_SCALE)
    if checked < SMALLEST_SCALE:
        raise ParameterError(f"scale must be at least {SMALLEST_SCALE}, got {shown(scale)}")
    return checked
