"""Version 0.2's way with event tables: at most C different items of each person count, drawn at random, with the noise of C items.

The shape of a row is what is counted, divided by its total, and questions are about populations. Nothing is released of what the items of
one person have to do with each other, so intervals assume the worst over all populations of people with at most C items: m = C of them
always come together. This is the law of that version, on top of today's.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armslength._numba import kernel
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shape_law import ShapeLaw, ShapeRows

_COARSE, _DOMINANT = (
    0.15,
    0.25,
)  # a total's relative error, and its share of the variance, from which on nothing is said


@kernel
def cut_sums(
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    contributions: NDArray[np.int64],
    values: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Adds the first C items of each person to the row of each C; returns how many there are.

    Args:
        starts: Each person's first item, and the number of all; a person's items are different, and in random order.
        columns: Where an item is added, or −1−column where it is subtracted.
        contributions: Each C, in ascending order.
        values: A row for each C.
    """
    totals = np.zeros(len(contributions), dtype=np.int64)
    for person in range(len(starts) - 1):
        first, last = starts[person], starts[person + 1]
        for row, contribution in enumerate(contributions):
            stop = min(last, first + contribution)
            totals[row] += stop - first
            for item in range(first, stop):
                target = columns[item]
                if target >= 0:
                    values[row, target] += 1
                else:
                    values[row, -1 - target] -= 1
    return totals


def sampled_rows(rows: ShapeRows, items: Floats, contribution: int, root: float | None) -> ShapeRows:
    """Rows of a question about the counts, for one about populations, in which nobody has more than C items.

    Chance adds at most {1 − π² + (C−1)·π²·(1−π)}/T to ‖p̂‖², and that is reached.

    Args:
        rows: From `ShapeRows.of`.
        items: T̂, how many items count in each row.
        contribution: C.
        root: As for `ShapeRows.sampled`.
    """
    top = np.sqrt(np.maximum(rows.norm, 0.0))
    if root is not None:
        top = np.minimum(top, root * np.abs(rows.values).max(axis=1))
    mix = np.clip(rows.norm - 1 / items, 0.0, 1.0)
    counted = 1 - mix + (contribution - 1) * mix * (1 - np.sqrt(mix))
    return replace(
        rows,
        mix=mix,
        one_person=1 / items,
        chance=counted / items,
        subtracted=counted / items,
        sampling=np.maximum(counted - 1, 0.0),  # e: of people with few items, who may prefer popular ones
        top=top,
    )


@dataclass(frozen=True)
class CutLaw(ShapeLaw):
    """Today's law with the variance of the worst case, for `sampled_rows`."""

    contribution: int = 1

    @property
    def value(self) -> Floats:
        """D̂, less the most that chance can add."""
        (vx, tx), (vy, ty) = self._pair("total_error", "chance")
        return self.highest_value - tx * (1 - vx) - ty * (1 - vy)

    def moments(self, d: Floats) -> tuple[Floats, Floats, Floats]:
        """Variance, third cumulant, and the variance that the totals have in it, if the squared distance is d."""
        names = ("mix", "total_error", "chance", "one_person", "sampling", "top", "k2", "k4", "k6")
        (
            (x, vx, tx, px, ex, top_x, k2x, k4x, k6x),
            (y, vy, ty, py, ey, top_y, k2y, k4y, k6y),
        ) = self._pair(*names)
        m, a, k2, k4, k6 = self.contribution, self.curve.a, k2x + k2y, k4x + k4y, k6x + k6y
        c = np.clip((x + y - d) / 2, 0.0, np.sqrt(x * y))
        # the totals' noise
        error = 4 * (x**2 * vx + y**2 * vy)
        slope_x = np.minimum(np.sqrt((x - y + d + tx) ** 2 + error), 2 * np.sqrt(x * d) + tx)
        slope_y = np.minimum(np.sqrt((y - x + d + ty) ** 2 + error), 2 * np.sqrt(y * d) + ty)
        bend_x, bend_y = vx * (3 * x - 2 * c), vy * (3 * y - 2 * c)
        of_totals = vx * slope_x**2 + vy * slope_y**2 + 5 * (bend_x**2 + bend_y**2) + 4 * vx * vy * c**2
        third = (
            15 * (vx * slope_x**2 * bend_x + vy * slope_y**2 * bend_y)
            + 74 * (bend_x**3 + bend_y**3)
            + 60 * c**2 * vx * vy * (bend_x + bend_y)
            + 12 * slope_x * slope_y * c * vx * vy
        )
        # sampling: tr Σ² and the largest eigenvalue, with m items that always come together
        xx, yy, cc = m * x, m * y, m * c
        if m == 1:  # Σ = (diag p − ppᵀ)/T
            xx, yy, cc = (each * (1 - np.minimum(each, 1.0)) for each in (xx, yy, cc))
        squares = (xx + ex**2) * px**2 + (yy + ey**2) * py**2 + 2 * (cc + ex * ey) * px * py
        largest = np.minimum((m * top_x + ex) * px + (m * top_y + ey) * py, np.sqrt(squares))
        linear = 4 * m * np.minimum(self.linear, d * (top_x * px + top_y * py))
        # with the sketch of all that is expected of the squared length, chance included
        energy = d + tx + ty + np.maximum(bend_x + bend_y, 0.0)
        variance = of_totals + self.curve.at(energy) + (1 + a) * (linear + 2 * squares)
        third = (
            third
            + self.coordinates * (k6 + 12 * k4 * k2 + 8 * k2**3)
            + ((2 * a**2 * energy + 12 * a * k2) * energy + 12 * k4 + 24 * k2**2) * energy
            + (8 * squares + 6 * linear) * largest
            + (24 * squares + 12 * linear) * (k2 + a / 2 * energy)
        )
        return variance, third, of_totals

    def is_coarse(self, d: Floats, tail: float) -> NDArray[np.bool_]:
        """Whether a total is too coarse for this law, and matters, if the squared distance is d."""
        (vx,), (vy,) = self._pair("total_error")
        variance, _, of_totals = self.moments(np.where(np.isfinite(d), d, 0.0))
        is_coarse: NDArray[np.bool_] = (of_totals > _DOMINANT * variance) & (
            np.sqrt(np.maximum(vx, vy) / 2) * -np.log(2 * tail) > _COARSE
        )
        return is_coarse

    def known_from(self, lower: Floats, tail: float) -> Floats:
        """The lower ends, or 0 where a total is too coarse for them."""
        return np.where(self.is_coarse(lower, tail), 0.0, lower)
