"""From data to integers: clamp to the public range, floor onto the public grid. No float is ever summed.

Guarantee: coordinates of neighbors differ by at most ⌈|x−x'|/γ⌉ grid units after this, and by |x−x'|/γ if both lie on
the grid: floor and clamp are monotone, and neither stretches a difference past the next whole unit.
Reference: docs/privacy.md, steps 1 and 2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.compiled import Integers
from armslength.errors import InputError
from armslength.protocol.kernels import NOT_FINITE, OFF_GRID, TOO_LARGE, all_floored, floor_to_grid
from armslength.transforms.inputs import contiguous, narrow

_RESULTS = ((np.int32, 2.0**31 - 1), (np.int64, 2.0**62))  # what may hold grid units, the narrow one first


@dataclass(frozen=True)
class Grid:
    """Multiples of 2^exponent, clamped to [low, high] in grid units where there is a range.

    Attributes:
        exponent: log2 of the resolution.
        on_grid: Whether data off the grid is refused.
        limits: The public range in data units, or None.
    """

    exponent: int
    on_grid: bool
    limits: tuple[Fraction, Fraction] | None

    @classmethod
    def of(cls, resolution: Fraction, limits: tuple[Fraction, Fraction] | None, *, on_grid: bool) -> "Grid":
        """The grid of a protocol's fields."""
        exponent = resolution.numerator.bit_length() - resolution.denominator.bit_length()
        return cls(exponent, on_grid, limits)

    @property
    def _low_and_high(self) -> tuple[int, int] | None:
        """The range in grid units, floored like the data."""
        if self.limits is None:
            return None
        unit = Fraction(2) ** self.exponent
        low, high = (math.floor(limit / unit) for limit in self.limits)
        return low, high

    @property
    def is_linear(self) -> bool:
        """Whether integers are only multiplied: then sums may wrap modulo 2^64 without harm."""
        return self.limits is None and self.exponent <= 0

    @property
    def zero_stays_zero(self) -> bool:
        """Whether the range holds 0, as sparse data needs."""
        return self._low_and_high is None or self._low_and_high[0] <= 0 <= self._low_and_high[1]

    def takes_all(self, kind: np.dtype[Any]) -> bool:
        """Whether no value of this type is ever refused."""
        return kind.kind in "biu" and not (self.on_grid and self.exponent > 0)

    def integers(self, values: NDArray[Any], room: NDArray[np.int64] | None = None) -> Integers:
        """The values in grid units, contiguous: as int32 where they fit, else as int64.

        Values of an integer type without a range wrap modulo 2^64.

        Args:
            values: Integers or floats.
            room: Where the result may stand, if it is large enough.
        """
        if values.dtype.kind in "biu":
            if self.exponent == 0 and self.limits is None:
                return narrow(values)
            return self._from_integers(values)
        if values.dtype.kind != "f" or values.dtype.itemsize > 8:
            raise InputError(
                f"X must hold integers or floats of at most 64 bits, got {type_name(values.dtype)}"
            )
        return self._from_floats(values, room)

    def _from_integers(self, values: NDArray[Any]) -> Integers:
        if values.dtype.kind == "b":
            values = values.astype(np.int8)
        # low bits of the two's complement, whatever the type: a negative number has them too
        if self.on_grid and self.exponent > 0 and np.any(_modulo(values, self.exponent)):
            raise _off_grid()
        if self.limits is not None:
            # One unit beyond the range on both sides: it clamps like the value itself, and cannot overflow below.
            limits = np.iinfo(values.dtype)
            low = min(max(math.floor(self.limits[0]) - 1, limits.min), limits.max)
            high = max(min(math.ceil(self.limits[1]) + 1, limits.max), limits.min)
            values = np.clip(values, low, high)
        if self.exponent > 0:
            shifted = values >> np.array(
                min(self.exponent, values.dtype.itemsize * 8 - 1), dtype=values.dtype
            )
            if self.exponent >= values.dtype.itemsize * 8 and values.dtype.kind == "u":
                shifted = np.zeros_like(values)
            grid = shifted.astype(np.int64)
        else:
            grid = values.astype(np.int64) << np.int64(-self.exponent)
        return self._clamped(grid)

    def _from_floats(self, values: NDArray[Any], room: NDArray[np.int64] | None) -> Integers:
        low, high = -np.inf, np.inf
        if self.limits is not None:
            # a hair outside of the range; the clamp in grid units follows
            low, high = (float(limit) for limit in self.limits)
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
        # half floats and foreign byte orders are rare: those are copied
        native = values.astype(np.float64 if values.dtype.itemsize != 4 else np.float32, copy=False)
        rows = contiguous(native.reshape(1, -1) if native.ndim == 1 else native)
        found = 0
        plain = self.limits is None and self.exponent <= 0 and not self.on_grid
        for kind, largest in self._results:
            space = np.empty(rows.size, dtype=kind) if room is None else room.view(kind)
            grid: Integers = space[: rows.size].reshape(rows.shape)
            if plain and all_floored(rows, self.exponent, largest, grid):
                return grid.reshape(native.shape)
            found = floor_to_grid(rows, self.exponent, low, high, largest, self.on_grid, grid)
            if not found & TOO_LARGE:
                break
        if found & NOT_FINITE:
            raise InputError("X must hold finite numbers, got NaN or infinity; remove or impute them")
        if found & TOO_LARGE:
            raise InputError(
                "X must stay within 2^62 times the resolution, got a larger value; set value_range"
            )
        if found & OFF_GRID:
            raise _off_grid()
        return self._clamped(grid.reshape(native.shape))

    def _clamped(self, grid: Integers) -> Integers:
        bounds = self._low_and_high
        return grid if bounds is None else np.clip(grid, *bounds)

    @property
    def _results(self) -> tuple[tuple[Any, float], ...]:
        """What may hold floats in grid units: not int32 where an end of the range would not fit it."""
        bounds = self._low_and_high or (0, 0)
        return _RESULTS if -(2**31) < bounds[0] <= bounds[1] < 2**31 else _RESULTS[1:]


def _modulo(values: NDArray[Any], exponent: int) -> NDArray[Any]:
    """The remainder of integers modulo 2^exponent, or the values themselves where 2^exponent exceeds their type."""
    if exponent >= np.iinfo(values.dtype).bits:
        return values
    return np.asarray(values & values.dtype.type((1 << exponent) - 1))


def _off_grid() -> InputError:
    return InputError(
        "X must lie on the grid of the protocol's resolution, got a value off it; "
        "use a protocol with on_grid=False, which floors"
    )
