"""Hot loops over pairs of sketches."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import float_bits, kernel
from armslength.vectors import TILE_ROWS, TILE_WIDTH, multiply_tile, transpose_block

BAND = 8 * TILE_ROWS  # rows
CELL_BITS = 7  # cells in each doubling: 128
_CELL_SHIFT = np.int64(52 - CELL_BITS)


@kernel
def squared_differences(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_offset: NDArray[np.float64],
    right_offset: NDArray[np.float64],
    result: NDArray[np.float64],
) -> None:
    """result[i, j] = ‖left_i − right_j‖², the difference taken modulo 2^64 before it becomes a float."""
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            result[i, j] = squared_difference(left[i], right[j], left_offset[i] - right_offset[j])


@kernel
def chosen_squared_differences(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    left_offset: NDArray[np.float64],
    right_offset: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    result: NDArray[np.float64],
) -> None:
    """result[p] = ‖left_i − right_j‖² for the pairs i = rows[p], j = columns[p]."""
    for number in range(len(rows)):
        i, j = rows[number], columns[number]
        result[number] = squared_difference(left[i], right[j], left_offset[i] - right_offset[j])


@kernel
def squared_difference(left: NDArray[np.int64], right: NDArray[np.int64], shift: float) -> float:
    """‖left − right + shift‖²."""
    total = 0.0
    for number in range(len(left)):
        difference = np.float64(left[number] - right[number]) + shift
        total += difference * difference
    return total


@kernel
def squares_from_products(
    rows: NDArray[np.float64],
    panels: NDArray[np.float64],
    row_squares: NDArray[np.float64],
    column_squares: NDArray[np.float64],
    bias_and_unit: tuple[float, float],
    first: int,
    mirrored: bool,
    result: NDArray[np.float64],
) -> None:
    """result[i, j] = unit·(‖u_i‖² + ‖v_j‖² − 2⟨u_i, v_j⟩ − bias), for one band of rows i.

    Args:
        rows: The u_i; zeros follow them up to a whole band.
        panels: The v_j, eight at a time, transposed; zeros follow them up to a whole panel.
        row_squares: ‖u_i‖².
        column_squares: ‖v_j‖².
        bias_and_unit: What noise adds to a squared norm, and a factor for all.
        first: The first row of the band.
        mirrored: Whether v is u: then only what lies on or below the diagonal is computed, and copied across it.
        result: For all i and j.
    """
    bias, unit = bias_and_unit
    last = min(first + BAND, result.shape[0])
    stop = last if mirrored else result.shape[1]
    part = np.empty((BAND, TILE_WIDTH))
    for left in range(0, stop, TILE_WIDTH):
        right = min(left + TILE_WIDTH, result.shape[1])
        for top in range(first, last, TILE_ROWS):
            tile = part[top - first : top - first + TILE_ROWS]
            multiply_tile(rows, top, panels[left // TILE_WIDTH], tile)
        for i in range(first, last):
            for j in range(left, right):
                total = (row_squares[i] + column_squares[j] - 2 * part[i - first, j - left]) - bias
                part[i - first, j - left] = unit * total
                result[i, j] = part[i - first, j - left]
        if mirrored and left < first:
            if last - first == BAND:
                for top in range(0, BAND, TILE_WIDTH):
                    transpose_block(part.view(np.int64), top, 0, result.view(np.int64), left, first + top)
            else:
                for j in range(left, right):
                    for i in range(first, last):
                        result[j, i] = part[i - first, j - left]


@kernel
def parabola(values: NDArray[np.float64], a: float, b: float, c: float, result: NDArray[np.float64]) -> None:
    """result = a·v² + b·v + c, where v is the value, or 0 if that is negative."""
    for i in range(len(values)):
        value = max(values[i], 0.0)
        result[i] = (a * value + b) * value + c


@kernel
def read_off(
    values: NDArray[np.float64],
    origin: float,
    first_cell: int,
    lines: NDArray[np.float64],
    ends: tuple[float, float, float],
    result: NDArray[np.float64],
) -> None:
    """result = the function that `RisingFunction` has put into cells, at these values; 0 below its origin."""
    least, reach, beyond = ends
    last = lines.shape[0] - 1
    for i in range(len(values)):
        distance = values[i] - origin
        cell = (float_bits(distance) >> _CELL_SHIFT) - first_cell
        inside = min(max(cell, 0), last)
        answer = lines[inside, 0] + lines[inside, 1] * distance
        answer = beyond if distance > reach else answer
        answer = 0.0 if distance < least else answer
        result[i] = distance if np.isnan(distance) else answer
