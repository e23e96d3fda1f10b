"""Hot loops from data to integers: one pass, nothing copied but the result."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel

NOT_FINITE, TOO_LARGE, OFF_GRID = 1, 2, 4


@kernel
def add_amounts(positions: Integers, amounts: NDArray[np.int64], totals: NDArray[np.int64]) -> None:
    """Adds each amount to the total at its position, modulo 2^64."""
    for i in range(len(positions)):
        totals[positions[i]] += amounts[i]


@kernel
def all_floored(values: NDArray[Any], exponent: int, largest: float, result: Integers) -> bool:
    """result = floor(values/2^exponent) for an exponent of at most 0; whether every one of them is finite and fits.

    The usual case of `floor_to_grid`: nothing is clamped, and nothing asked but whether to look again.
    """
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
    """result = floor(clamp(values)/2^exponent); which of the three problems any value had.

    Every scaling is by a power of two, and exact; for a positive exponent the value is floored first, which gives the
    same floor and keeps tiny values from vanishing. Where there is a problem the result is 0. Without branches, so that
    it runs in vectors.

    Args:
        values: A contiguous matrix of floats.
        exponent: log2 of the resolution.
        low: The least value.
        high: The greatest.
        largest: The largest magnitude that the result may have.
        must_lie_on_grid: Whether to look for values off the grid.
        result: As large as the values.
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
