"""From data to integers: clamp to the public range, floor onto the public grid. No float is ever summed.

Guarantee: coordinates of neighbors then differ by at most ⌈|x−x'|/γ⌉ grid units, and by |x−x'|/γ if both lie on the grid: floor
and clamp are monotone, and neither stretches a difference past the next whole unit.
Reference: docs/privacy.md, steps 1 and 2.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import Integers, kernel
from armslength.checks import type_name
from armslength.errors import InputError
from armslength.transforms.integer_rows import contiguous, narrow

NOT_FINITE, TOO_LARGE, OFF_GRID = 1, 2, 4


@kernel
def all_floored(values: NDArray[Any], exponent: int, largest: float, result: Integers) -> bool:
    """The usual case of `floor_to_grid`, without a range and with an exponent ≤ 0; whether all values are finite and fit."""
    down = math.ldexp(1.0, -exponent)
    unfit = 0
    for i in range(values.shape[0]):
        row, target = values[i], result[i]
        for j in range(len(row)):
            floored = np.floor(np.float64(row[j]) * down)
            fits = abs(floored) <= largest
            unfit |= 0 if fits else 1
            target[j] = floored if fits else 0.0
    return unfit == 0


@kernel
def floor_to_grid(
    values: NDArray[Any],
    exponent: int,
    low: float,
    high: float,
    largest: float,
    must_lie_on_grid: bool,
    result: Integers,
) -> int:
    """result = floor(clamp(values)/2^exponent), 0 where there is a problem; the bits of all problems.

    Scaling by a power of two is exact; for a positive exponent the value is floored first, which gives the same floor and keeps tiny
    values from vanishing. Without branches, so that it is vectorized.
    """
    down, up = math.ldexp(1.0, -exponent), math.ldexp(1.0, exponent)
    always_on_grid = math.ldexp(1.0, exponent + 53)
    problems = 0
    for i in range(values.shape[0]):
        row, target = values[i], result[i]
        for j in range(len(row)):
            value = np.float64(row[j])
            clamped = min(max(value, low), high)
            floored = np.floor((np.floor(clamped) if exponent > 0 else clamped) * down)
            is_finite = abs(value) < math.inf
            fits = abs(floored) <= largest
            problems |= (0 if is_finite else NOT_FINITE) | (0 if fits else TOO_LARGE)
            target[j] = np.int64(floored if is_finite and fits else 0.0)
        if must_lie_on_grid:
            for j in range(len(row)):
                value = np.float64(row[j])
                # From 2^53 steps on, every float is a whole number of steps.
                is_on_grid = abs(value) >= always_on_grid or np.floor(value * down) * up == value
                problems |= 0 if is_on_grid else OFF_GRID
    return problems


_RESULTS: tuple[tuple[Any, float], ...] = (
    (np.int32, 2.0**31 - 1),
    (np.int64, 2.0**62),
)  # what may hold grid units, the narrow one first


class Grid:
    """Multiples of 2^exponent within the limits.

    Args:
        exponent: Of the resolution.
        on_grid: Whether values off the grid are refused.
        limits: The public range in data units.
    """

    def __init__(self, exponent: int, *, on_grid: bool, limits: tuple[Fraction, Fraction] | None) -> None:
        self.exponent, self.on_grid, self.limits = exponent, on_grid, limits
        self._bounds: tuple[int, int] | None = None  # the range in grid units, floored like the data
        if limits is not None:
            low, high = (math.floor(limit / Fraction(2) ** exponent) for limit in limits)
            self._bounds = low, high

    @classmethod
    def of(cls, resolution: Fraction, limits: tuple[Fraction, Fraction] | None, *, on_grid: bool) -> "Grid":
        """The grid of a protocol's fields."""
        exponent = resolution.numerator.bit_length() - resolution.denominator.bit_length()
        return cls(exponent, on_grid=on_grid, limits=limits)

    @property
    def is_linear(self) -> bool:
        """Whether integers are only multiplied, so that sums may wrap modulo 2^64."""
        return self.limits is None and self.exponent <= 0

    @property
    def zero_stays_zero(self) -> bool:
        """Whether the range holds 0, as sparse data needs."""
        return self._bounds is None or self._bounds[0] <= 0 <= self._bounds[1]

    def integers(self, values: NDArray[Any], buffer: NDArray[np.int64] | None = None) -> Integers:
        """The values in grid units, contiguous: as int32 where they fit, else as int64.

        Values of an integer type without a range wrap modulo 2^64.
        """
        if values.dtype.kind in "biu":
            if self.exponent == 0 and self.limits is None:
                return narrow(values)
            return self._from_integers(values)
        if values.dtype.kind != "f" or values.dtype.itemsize > 8:
            raise InputError(
                f"X must hold integers or floats up to 64 bits, got {type_name(values.dtype)}", "X"
            )
        return self._from_floats(values, buffer)

    def _from_integers(self, values: NDArray[Any]) -> Integers:
        if values.dtype.kind == "b":
            values = values.astype(np.int8)
        if self.on_grid and self.exponent > 0:
            # of the two's complement, whatever the type: a negative number has them too
            low_bits = np.uint64((1 << min(self.exponent, 64)) - 1).astype(values.dtype)
            if np.any(values & low_bits):
                raise _off_grid()
        if self.limits is not None:
            # to one unit beyond the range, which clamps like the value itself, and cannot overflow below
            limits = np.iinfo(values.dtype)
            low = min(max(math.floor(self.limits[0]) - 1, limits.min), limits.max)
            high = max(min(math.ceil(self.limits[1]) + 1, limits.max), limits.min)
            values = np.clip(values, low, high)
        if self.exponent > 0:
            bits = values.dtype.itemsize * 8
            shifted = values >> values.dtype.type(min(self.exponent, bits - 1))
            if self.exponent >= bits and values.dtype.kind == "u":
                shifted = np.zeros_like(values)
            grid = shifted.astype(np.int64)
        else:
            grid = values.astype(np.int64) << np.int64(-self.exponent)
        return self._clamped(grid)

    def _from_floats(self, values: NDArray[Any], buffer: NDArray[np.int64] | None) -> Integers:
        low, high = -np.inf, np.inf
        if self.limits is not None:
            # a hair outside of the range; the clamp in grid units follows
            low, high = (float(limit) for limit in self.limits)
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
        # copies half floats and foreign byte orders
        native = values.astype(np.float64 if values.dtype.itemsize != 4 else np.float32, copy=False)
        rows = contiguous(native.reshape(1, -1) if native.ndim == 1 else native)
        problems = 0
        plain = self.is_linear and not self.on_grid
        # not int32 where an end of the range does not fit it
        is_narrow = self._bounds is None or -(2**31) < self._bounds[0] <= self._bounds[1] < 2**31
        for kind, largest in _RESULTS if is_narrow else _RESULTS[1:]:
            space = np.empty(rows.size, dtype=kind) if buffer is None else buffer.view(kind)
            grid: Integers = space[: rows.size].reshape(rows.shape)
            if plain and all_floored(rows, self.exponent, largest, grid):
                return grid.reshape(native.shape)
            problems = floor_to_grid(rows, self.exponent, low, high, largest, self.on_grid, grid)
            if not problems & TOO_LARGE:
                break
        if problems & NOT_FINITE:
            raise InputError("X must hold finite numbers, got NaN or infinity; remove or impute them", "X")
        if problems & TOO_LARGE:
            raise InputError(
                "X holds values beyond 2^62 times the resolution; set value_range", "X", "value_range"
            )
        if problems & OFF_GRID:
            raise _off_grid()
        return self._clamped(grid.reshape(native.shape))

    def _clamped(self, grid: Integers) -> Integers:
        return grid if self._bounds is None else np.clip(grid, *self._bounds)


def _off_grid() -> InputError:
    return InputError(
        "X has a value off the grid of the protocol's resolution; use a protocol with on_grid=False, which floors",
        "X",
    )
