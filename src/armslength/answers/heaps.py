"""The smallest values of each query, and the hot loop that finds them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import PAIR_ROWS, PAIR_WIDTH, kernel, multiply_pairs
from armslength.answers.rounding import LOWERED
from armslength.estimates.distances import squared_difference

_EXACT = 2.0**53


@dataclass(frozen=True)
class Heaps:
    """For each query the smallest values met so far, of equal ones those of the smallest row numbers, in a heap: the worst first.

    Attributes:
        value: n x kept.
        number: The numbers of their rows.
        filled: n: how many there are.
        x: n: what a product is compared with, times w, in float32: −∞ as long as any row is welcome.
        bias: n: what noise adds to a squared distance, in squared integer units.
        unit: What turns those into data units.
    """

    value: NDArray[np.float64]
    number: NDArray[np.int64]
    filled: NDArray[np.int64]
    x: NDArray[np.float32]
    bias: NDArray[np.float64]
    unit: float

    @classmethod
    def empty(cls, kept: int, bias: NDArray[np.float64], unit: float) -> "Heaps":
        """Heaps that can hold so many."""
        n = len(bias)
        return cls(
            np.empty((n, kept)),
            np.empty((n, kept), dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.full(n, -np.inf, dtype=np.float32),
            bias,
            unit,
        )

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """(query, row number, value) of everything in the heaps."""
        there = np.arange(self.value.shape[1]) < self.filled[:, None]
        return np.nonzero(there)[0], self.number[there], self.value[there]


@dataclass(frozen=True)
class Asked:
    """The queries, as the hot loop wants them.

    Attributes:
        values: n x k.
        offsets: n.
        words: The same rows, rounded.
        square: ‖u‖² relative to the center.
        slack: What rounding errors are relative to.
        y: n: what a product is compared with, times z.
        half: n: what turns a squared distance into x; 0 for a query that could not be rounded.
        margin: By how much a product may be too small.
    """

    values: NDArray[Any]
    offsets: NDArray[np.float64]
    words: NDArray[np.int32]
    square: NDArray[np.float64]
    slack: NDArray[np.float64]
    y: NDArray[np.float32]
    half: NDArray[np.float64]
    margin: int


@dataclass(frozen=True)
class Columns:
    """Some rows of the index, as the hot loop wants them.

    Attributes:
        values: m x k.
        offsets: m.
        first_number: The number of the first of them in the index.
        words: The same rows, rounded, in panels.
        order: Which row stands where in the panels; −1 for none.
        w: What x is multiplied by, where each stands.
        z: What y is multiplied by.
        skipped: (starts, rows): for each query the rows, rising, that it does not meet.
    """

    values: NDArray[Any]
    offsets: NDArray[np.float64]
    first_number: int
    words: NDArray[np.int32]
    order: NDArray[np.int64]
    w: NDArray[np.float32]
    z: NDArray[np.float32]
    skipped: tuple[NDArray[np.int64], NDArray[np.int64]]


def meet(
    asked: Asked, columns: Columns, panels: tuple[int, int], heaps: Heaps, rows: tuple[int, int]
) -> None:
    """These queries, from a whole tile on, meet these panels; their heaps are up to date afterwards."""
    _meet(
        (asked.words, asked.y, asked.margin),
        (columns.words, columns.order, columns.w, columns.z),
        panels,
        rows,
        (
            asked.values,
            columns.values,
            asked.offsets,
            columns.offsets,
            columns.first_number,
            *columns.skipped,
        ),
        (asked.square, asked.slack, asked.half, heaps.bias, heaps.unit),
        (heaps.value, heaps.number, heaps.filled),
        heaps.x,
    )


@kernel
def _meet(
    asked: Any,
    columns: Any,
    panels: tuple[int, int],
    rows: tuple[int, int],
    sides: Any,
    debias: Any,
    heaps: Any,
    x: NDArray[np.float32],
) -> None:
    words, y, margin = asked
    panel_words, order, w, z = columns
    _, _, _, _, first_number, starts, skipped = sides
    tile = np.empty((PAIR_ROWS, PAIR_WIDTH), dtype=np.int32)
    for panel in range(panels[0], panels[1]):
        left = panel * PAIR_WIDTH
        these_w, these_z = w[left : left + PAIR_WIDTH], z[left : left + PAIR_WIDTH]
        for first in range(rows[0], rows[1], PAIR_ROWS):
            multiply_pairs(words, first, panel_words[panel], margin, tile)
            for t in range(min(PAIR_ROWS, rows[1] - first)):
                i = first + t
                if _passing(tile[t], x[i], y[i], these_w, these_z) == 0:
                    continue
                for j in range(PAIR_WIDTH):
                    # Asked again, since x rises with every row that is taken.
                    if np.float32(tile[t, j]) >= x[i] * these_w[j] + y[i] * these_z[j]:
                        row = order[left + j]
                        if not _is_among(row, skipped, starts[i], starts[i + 1]):
                            _consider(i, row, first_number + row, sides, debias, heaps, x)


@kernel
def _passing(
    products: NDArray[np.int32],
    x: np.float32,
    y: np.float32,
    w: NDArray[np.float32],
    z: NDArray[np.float32],
) -> int:
    """How many products of a query are so large that the pair may be near enough."""
    count = 0
    for j in range(PAIR_WIDTH):
        count += np.float32(products[j]) >= x * w[j] + y * z[j]
    return count


@kernel
def _is_among(row: int, rows: NDArray[np.int64], start: int, stop: int) -> bool:
    """Whether a row is one of some rising ones."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low < stop and rows[low] == row


@kernel
def _consider(
    i: int, row: int, number: int, sides: Any, debias: Any, heaps: Any, x: NDArray[np.float32]
) -> None:
    """The exact value of a pair, and the query's heap with it."""
    left, right, left_offsets, right_offsets, _, _, _ = sides
    square, slack, half, bias, unit = debias
    values, numbers, filled = heaps
    shift = left_offsets[i] - right_offsets[row]
    raw = -1.0
    if shift == 0.0:
        raw = whole_square(left[i], right[row])
    if raw < 0.0:
        raw = squared_difference(left[i], right[row], shift)
    value = unit * (raw - bias[i])
    value = np.inf if np.isnan(value) else value
    kept = values.shape[1]
    if filled[i] < kept:
        filled[i] += 1
        _rise(values[i], numbers[i], filled[i] - 1, value, number)
    elif _is_before(value, number, values[i, 0], numbers[i, 0]):
        _sink(values[i], numbers[i], value, number)
    else:
        return
    if filled[i] == kept and half[i] > 0.0:
        # A row with no more than the worst value has at most this squared distance, up to rounding.
        worst = values[i, 0] / unit
        lowered = LOWERED * (slack[i] + abs(worst) + bias[i])
        x[i] = np.float32((square[i] - (worst + bias[i]) - lowered) * half[i])


@kernel
def whole_square(left: NDArray[Any], right: NDArray[Any]) -> float:
    """What `squared_difference` gives, to the last bit, in a sum that vectors can take; −1 if that is not sure.

    Whole numbers whose squares add up to less than 2^53 give the same sum in any order.
    """
    total, bits, fractions = np.int64(0), np.int64(0), 0
    for n in range(len(left)):
        difference = left[n] - right[n]
        whole = np.int64(difference)
        fractions += whole != difference
        bits |= whole ^ (whole >> 63)
        total += whole * whole
    largest = np.float64(bits) + 1.0  # or more, in magnitude
    return np.float64(total) if fractions == 0 and len(left) * largest * largest < _EXACT else -1.0


@kernel
def _is_before(value: float, number: int, other: float, other_number: int) -> bool:
    return value < other or (value == other and number < other_number)


@kernel
def _rise(
    values: NDArray[np.float64], numbers: NDArray[np.int64], place: int, value: float, number: int
) -> None:
    """A new last entry, moved up to where it belongs."""
    while place > 0:
        parent = (place - 1) // 2
        if not _is_before(values[parent], numbers[parent], value, number):
            break
        values[place], numbers[place] = values[parent], numbers[parent]
        place = parent
    values[place], numbers[place] = value, number


@kernel
def _sink(values: NDArray[np.float64], numbers: NDArray[np.int64], value: float, number: int) -> None:
    """A new first entry in place of the worst, moved down to where it belongs."""
    place, count = 0, len(values)
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _is_before(
            values[child], numbers[child], values[child + 1], numbers[child + 1]
        ):
            child += 1
        if not _is_before(value, number, values[child], numbers[child]):
            break
        values[place], numbers[place] = values[child], numbers[child]
        place = child
    values[place], numbers[place] = value, number
