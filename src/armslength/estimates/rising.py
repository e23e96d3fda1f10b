"""A rising function that is read at millions of places: cells that are found without a search."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.kernels import CELL_BITS, read_off

_SHIFT = 52 - CELL_BITS


@dataclass(frozen=True)
class RisingFunction:
    """0 below its origin, and from there on linear in cells whose width is at most a 128th of their distance from it.

    A cell's number stands in the first bits of that distance as a float, so a value costs neither a search nor a
    logarithm. Where the function is smooth the error is below 1e-5 of its change since the origin.
    """

    origin: float
    first_cell: int
    lines: NDArray[np.float64]  # for each cell: intercept and slope, over the distance from the origin
    reach: float  # how far from the origin it is known
    beyond: float  # its value from there on

    @classmethod
    def of(
        cls, places: NDArray[np.float64], values: NDArray[np.float64], finest: float, beyond: float
    ) -> "RisingFunction":
        """The function that is linear between these places.

        Args:
            places: Where it is known; they rise, and may stand still.
            values: Its values there.
            finest: A distance from the first place below which one cell is enough.
            beyond: The value behind the last place.
        """
        origin = float(places[0])
        reach = max(float(places[-1]) - origin, finest)
        first, last = (int(np.float64(distance).view(np.int64)) >> _SHIFT for distance in (finest, reach))
        # Cell 0 begins at the origin, each other one where the bits of its number say; the last ends at the last place.
        edges = (np.arange(first + 1, last + 1, dtype=np.int64) << _SHIFT).view(np.float64)
        edges = np.concatenate([[0.0], edges[edges < reach], [reach]])
        known = np.interp(origin + edges, places, values)
        slopes = np.diff(known) / np.diff(edges)
        lines = np.stack([known[:-1] - slopes * edges[:-1], slopes], axis=1)
        return cls(origin, first, lines, reach, beyond)

    def read(self, places: NDArray[np.float64], result: NDArray[np.float64]) -> None:
        """result = the function at these places."""
        read_off(places, self.origin, self.first_cell, self.lines, self.reach, self.beyond, result)
