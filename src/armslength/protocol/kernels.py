"""The hot loop from floats to the grid: one pass, nothing copied but the result."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel

NOT_FINITE, TOO_LARGE, OFF_GRID = 1, 2, 4
_LARGEST = 2.0**62


@kernel
def floor_to_grid(
    values: NDArray[Any], exponent: int, low: float, high: float, result: NDArray[np.int64]
) -> int:
    """result = floor(clamp(values)/2^exponent); which of the three problems any value had.

    Every scaling is by a power of two, and exact; for a positive exponent the value is floored first, which gives the
    same floor and keeps tiny values from vanishing. What is not finite or too large gives an arbitrary result.
    """
    down, up = math.ldexp(1.0, -exponent), math.ldexp(1.0, exponent)
    always_on_grid = math.ldexp(1.0, exponent + 53)
    problems = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = np.float64(values[i, j])
            clamped = min(max(value, low), high)
            if exponent > 0:
                clamped = np.floor(clamped)
            floored = np.floor(clamped * down)
            if not abs(value) < math.inf:
                problems |= NOT_FINITE
                floored = 0.0
            elif not abs(floored) <= _LARGEST:
                problems |= TOO_LARGE
                floored = 0.0
            # From 2^53 steps on, every float is a whole number of steps.
            if abs(value) < always_on_grid and np.floor(value * down) * up != value:
                problems |= OFF_GRID
            result[i, j] = np.int64(floored)
    return problems
