"""Rows rounded to 16 bits, each by a scale of its own: a filter that decides which pairs need an exact distance.

With u/s = a + α and v/t = b + β, where a and b are whole, |α|, |β| ≤ 1/2 in each of k coordinates and ‖u/s‖, ‖v/t‖ ≤ N:
|⟨u, v⟩/(st) − ⟨a, b⟩| ≤ ‖a‖‖β‖ + ‖α‖‖b‖ + ‖α‖‖β‖ ≤ N√k + k/4. ⟨a, b⟩ is a sum of integers, exact in any order. Decision 19 has
the rest of the proof.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import PAIR_ROWS, PAIR_WIDTH, float_bits, kernel
from armslength.threads import for_blocks

LARGEST_DIM = 2**22  # coordinates for which N² and the margin fit into 32 bits together
_NORM = 45_000.0  # N
_LARGEST = 32_766.0
_FARTHEST = 2.0**61  # from the center, in a coordinate: differences of such do not wrap
_SPREAD = 2.0**40  # how many times longer or shorter than a typical query a row may be
_SAMPLE = 128  # queries of which the middle is taken
LOWERED = 2.0**-20  # of all squares: far more than what rounding to float32 and float64 does to them
_ROUNDS = 1.5 * 2.0**52  # added to a number below 2^51, leaves its nearest integer in the last bits


def margin(coordinates: int) -> int:
    """By how much a product of rounded rows may be too small: N√k + k/4, and a little for its own float32."""
    return math.ceil(_NORM * math.sqrt(coordinates) + coordinates / 4) + 256


@dataclass(frozen=True)
class Center:
    """What rows are rounded relative to, and the length to which they are compared.

    Attributes:
        point: k numbers, of the rows' type.
        offset: Its offset.
        length: A typical length, in integer units; positive.
    """

    point: NDArray[Any]
    offset: float
    length: float

    @classmethod
    def of(cls, values: NDArray[Any], offsets: NDArray[np.float64]) -> "Center":
        """The middle of some rows, up to rounding: what rows have in common would only cost digits.

        Medians, so that a few rows far away cost the others none.
        """
        values = values[:: -(-len(values) // _SAMPLE)]  # any point will do, a middle is best
        point = values[0]
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are not rounded
            for _ in range(2):  # again, since a first row that is far away costs the middle digits
                away = (values - point).astype(np.float64)
                middle = np.clip(np.rint(np.nan_to_num(np.median(away, axis=0))), -_FARTHEST, _FARTHEST)
                point = point + middle.astype(values.dtype)
            away = (values - point).astype(np.float64)
            lengths = np.sqrt(np.einsum("ij,ij->i", away, away))
        lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
        length = float(np.median(lengths)) if len(lengths) else 1.0
        return cls(point, float(offsets[0]), length)


@dataclass(frozen=True)
class Rounded:
    """Rows that were rounded.

    Attributes:
        words: panels x ⌈k/2⌉ x width: two coordinates to a word, rows side by side in panels.
        scale: What each row was divided by; 0 for one that could not be rounded.
        square: ‖v‖² relative to the center.
        slack: ‖v‖² and, where rows have another offset than the center, its square too: what rounding errors are relative to.
    """

    words: NDArray[np.int32]
    scale: NDArray[np.float64]
    square: NDArray[np.float64]
    slack: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        values: NDArray[Any],
        offsets: NDArray[np.float64],
        order: NDArray[np.int64],
        width: int,
        center: Center,
    ) -> "Rounded":
        """Rows in this order, −1 for none, so many side by side."""
        coordinates = values.shape[1]
        panels = len(order) // width
        words = np.empty((panels, -(-coordinates // 2), width), dtype=np.int32)
        scale, square, slack = (np.empty(len(order)) for _ in range(3))
        limits = (center.length / _SPREAD, center.length * _SPREAD)

        def work(first: int, last: int) -> None:
            _round(
                values,
                (center.point, offsets - center.offset, limits),
                order,
                (first, last),
                words,
                (scale, square, slack),
            )

        for_blocks(panels, max(1, 512 // width), work)
        return cls(words, scale, square, slack)

    @classmethod
    def queries(
        cls, values: NDArray[Any], offsets: NDArray[np.float64], center: Center
    ) -> tuple["Rounded", NDArray[np.int32]]:
        """Rows one by one, and their words, row by row, up to whole tiles."""
        order = np.full(-(-len(values) // PAIR_ROWS) * PAIR_ROWS, -1, dtype=np.int64)
        order[: len(values)] = np.arange(len(values))
        rounded = cls.of(values, offsets, order, 1, center)
        return rounded, rounded.words.reshape(len(order), -1)

    def column_factors(
        self, center: Center, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(w, z) for each row: ⟨a, b⟩ is compared with x·w + y·z; a row that could not be rounded always passes, none never."""
        rounds = self.scale > 0
        scale = np.where(rounds, self.scale, center.length)
        w = center.length / scale
        z = (self.square - LOWERED * self.slack) / (scale * center.length)
        z[~rounds] = -np.inf
        z[order < 0] = np.inf
        w[~rounds] = 1.0
        return w.astype(np.float32), z.astype(np.float32)


def panel_order(classes: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Rows by class, each class up to whole panels with −1; and which panels each class has."""
    parts, spans, first = [], [], 0
    for number in range(count):
        members = np.flatnonzero(classes == number)
        panels = -(-len(members) // PAIR_WIDTH)
        padded = np.full(panels * PAIR_WIDTH, -1, dtype=np.int64)
        padded[: len(members)] = members
        parts.append(padded)
        spans.append((first, first + panels))
        first += panels
    return np.concatenate(parts), spans


@kernel
def _round(
    values: NDArray[Any],
    against: tuple[NDArray[Any], NDArray[np.float64], tuple[float, float]],
    order: NDArray[np.int64],
    panels: tuple[int, int],
    words: NDArray[np.int32],
    results: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Fills these panels of `words`, and what belongs to their rows."""
    center, shifts, (shortest, longest) = against
    scales, squares, slacks = results
    coordinates, width = values.shape[1], words.shape[2]
    at_most = _NORM - 0.5 * math.sqrt(coordinates) - 1.0
    away = np.zeros((coordinates + 3) // 4 * 4)
    for place in range(panels[0] * width, panels[1] * width):
        panel, column, row = place // width, place % width, order[place]
        inverse, largest, square = 0.0, 0.0, 0.0
        scales[place], squares[place], slacks[place] = 0.0, 0.0, 0.0
        if row >= 0:
            shift = shifts[row]
            for n in range(coordinates):
                away[n] = np.float64(values[row, n] - center[n]) + shift
            largest, square = _size(away)
            length = math.sqrt(square)
            # Written so that what is not a number cannot be rounded either.
            if largest < _FARTHEST and abs(shift) < _FARTHEST and length < longest:
                scale = max(length / at_most, largest / _LARGEST, shortest / _NORM)
                scales[place], squares[place] = scale, square
                slacks[place] = square + coordinates * shift * shift
                inverse = 1.0 / scale
        for n in range(words.shape[1]):
            low = high = np.int64(0)
            if inverse > 0.0:
                low = float_bits(away[2 * n] * inverse + _ROUNDS)
                high = float_bits(away[2 * n + 1] * inverse + _ROUNDS)
            words[panel, n, column] = np.int32((low & 0xFFFF) | (high << 16))


@kernel
def _size(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """The largest magnitude, and the sum of squares, of a multiple of four: in ways that need not wait for each other."""
    a = b = c = d = 0.0
    for n in range(0, len(numbers), 4):
        a += numbers[n] * numbers[n]
        b += numbers[n + 1] * numbers[n + 1]
        c += numbers[n + 2] * numbers[n + 2]
        d += numbers[n + 3] * numbers[n + 3]
    highest = np.int64(0)
    for n in range(len(numbers)):
        highest = max(highest, float_bits(abs(numbers[n])))  # the bits rise with the number
    bits = np.int64(highest)  # which Numba takes as a name of its own
    return bits.view(np.float64), (a + b) + (c + d)
