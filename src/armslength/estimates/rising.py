"""A rising function that is read at millions of places: cells that are found without a search."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.kernels import CELL_BITS, read_off

_SHIFT = 52 - CELL_BITS
_SMALLEST = 5e-324
_HARMLESS = 1e-4


@dataclass(frozen=True)
class RisingFunction:
    """0 below its origin, and from there on linear between places where it is known.

    It is put into cells whose width is at most a 128th of their distance from the origin: a cell's number stands in the first
    bits of that distance as a float, so a value costs neither a search nor a logarithm. Cells smear a jump, so they are
    compared with the function itself at every place and between, and are used only where they never differ by more than a
    ten-thousandth of |place − value|; else every value is searched for.
    """

    places: NDArray[np.float64]
    values: NDArray[np.float64]
    beyond: float  # its value behind the last place
    least: float  # how far from the origin it begins: 0, or just behind it
    first_cell: int
    lines: NDArray[np.float64]  # for each cell: intercept and slope, over the distance from the origin
    has_cells: bool = True

    @classmethod
    def of(
        cls,
        places: NDArray[np.float64],
        values: NDArray[np.float64],
        finest: float,
        *,
        beyond: float,
        zero_at_origin: bool,
    ) -> "RisingFunction":
        """The function that is linear between these places.

        Args:
            places: Where it is known; they rise, and may stand still.
            values: Its values there.
            finest: A distance from the first place below which one cell is enough.
            beyond: The value behind the last place.
            zero_at_origin: Whether it is still 0 at the first place itself.
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
        least = _SMALLEST if zero_at_origin else 0.0
        made = cls(places, values, beyond, least, first, lines)
        judges = np.concatenate(
            [places, (places[1:] + places[:-1]) / 2, origin + (edges[1:] + edges[:-1]) / 2]
        )
        judges = judges[(judges > origin) & (judges <= places[-1])]
        found, exact = np.empty_like(judges), np.interp(judges, places, values)
        made.read(judges, found)
        if (np.abs(found - exact) <= _HARMLESS * np.abs(judges - exact)).all():
            return made
        return cls(places, values, beyond, least, first, lines, has_cells=False)

    def read(self, places: NDArray[np.float64], result: NDArray[np.float64]) -> None:
        """result = the function at these places."""
        origin = float(self.places[0])
        if self.has_cells:
            ends = (self.least, float(self.places[-1]) - origin, self.beyond)
            read_off(places, origin, self.first_cell, self.lines, ends, result)
            return
        found = np.interp(places, self.places, self.values, right=self.beyond)
        result[:] = np.where(places - origin < self.least, 0.0, found)
