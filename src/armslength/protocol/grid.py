"""The public grid: its resolution, the range of values, how many entries can differ. Nothing here sees data."""

import math
from fractions import Fraction
from typing import Any

from armslength.checks import integer, shown
from armslength.errors import ParameterError
from armslength.privacy.parameters import exact_number
from armslength.protocol.neighbors import grid_neighbors

_WIDENING = Fraction(1001, 1000)
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -60, 60


def checked_resolution(value: Any, norm: str, radius: Fraction, touched: int | None) -> Fraction:
    """γ: 1, a power of two, or for "auto" the largest power of two that widens the radius by under 0.1 percent."""
    if value != "auto":
        # A float is taken as it is: powers of two are exact in binary, and their shortest decimals are not.
        is_float = isinstance(value, float) and math.isfinite(value)
        resolution = Fraction(value) if is_float else exact_number("resolution", value)
        if not resolution > 0 or not _is_power_of_two(resolution):
            raise ParameterError(f'resolution must be 1, a power of two, or "auto", got {shown(value)}')
        _check_exponent(resolution)
        return resolution
    if touched is None:
        raise ParameterError('resolution "auto" must know input_dim or touched, got neither; pass touched')
    resolution = Fraction(2) ** _LARGEST_EXPONENT
    widest = (_WIDENING * radius) ** 2
    while True:
        neighbors = grid_neighbors(norm, radius, resolution, on_grid=False, touched=touched)
        if neighbors.radius_squared * resolution**2 <= widest:
            break
        resolution /= 2
    _check_exponent(resolution)
    return resolution


def _is_power_of_two(number: Fraction) -> bool:
    """Whether the number is 2^e for an integer e."""
    top, bottom = number.numerator, number.denominator
    return top & (top - 1) == 0 and bottom & (bottom - 1) == 0


def _check_exponent(resolution: Fraction) -> None:
    if not Fraction(2) ** _SMALLEST_EXPONENT <= resolution <= Fraction(2) ** _LARGEST_EXPONENT:
        raise ParameterError("resolution must be from 2^-60 to 2^60, got one outside")


def checked_range(value: Any, resolution: Fraction) -> tuple[Fraction, Fraction] | None:
    """The public range (low, high) of a coordinate in data units; None for no clamping."""
    if value is None:
        return None
    rule = "value_range must be two finite numbers (low, high) with low <= high"
    if isinstance(value, str):
        raise ParameterError(f"{rule}, got {shown(value)}")
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ParameterError(f"{rule}, got {shown(value)}") from None
    low, high = exact_number("value_range", low), exact_number("value_range", high)
    if low > high:
        raise ParameterError(f"{rule}, got {shown(value)}")
    if max(abs(low), abs(high)) / resolution >= 2**62:
        raise ParameterError("value_range must stay below 2^62 times the resolution, got a wider one")
    return low, high


def checked_touched(value: Any) -> int | None:
    """j: how many entries one unit can change, over all rows; None means one row's worth, in releases of one row."""
    return None if value is None else integer("touched", value, at_least=1, at_most=2**40)
