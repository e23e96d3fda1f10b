"""Rows that come piece by piece, gathered into one array that is made once."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armslength.errors import ParameterError
from armslength.protocol.provenance import Provenance, Release, Released, joined_noises
from armslength.protocol.sketch_file import SketchFile
from armslength.protocol.sketches import Sketches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from armslength.protocol.protocol import Protocol


class Form:
    """What rows of several files have in common when they are joined, as `concat` joins them.

    Attributes:
        protocols: The protocols of all files.
        releases: The same, each with what was released under it.
        is_whole: Whether all values are integers; otherwise all become floats.
        has_totals: Whether all rows have totals; otherwise none keeps them.
    """

    def __init__(self, files: Sequence[SketchFile]) -> None:
        listed = (release for file in files for release in file.head.releases)
        self.releases: tuple[Release, ...] = tuple(dict.fromkeys(listed))
        self.protocols: tuple[Protocol, ...] = tuple(dict.fromkeys(protocol for protocol, _ in self.releases))
        self.is_whole = all(file.is_whole for file in files)
        self.has_totals = all(file.has_totals for file in files)

    def gathering(self, rows: int) -> "Gathering":
        """Room for so many rows."""
        return Gathering(self, rows)

    def gathered(self, pieces: Iterable[Sketches], rows: int) -> Sketches:
        """All rows of all pieces, of which there are so many."""
        gathering = self.gathering(rows)
        for piece in pieces:
            gathering.add(piece)
        return gathering.sketches()


class Gathering:
    """Room for a known number of rows, which is filled from the beginning."""

    def __init__(self, form: Form, rows: int) -> None:
        kind = np.int64 if form.is_whole else np.float64
        width = form.protocols[0].transform.sketch_dim
        self.room = rows
        self._form = form
        try:
            self._values: NDArray[Any] = np.empty((rows, width), dtype=kind)
            self._totals: NDArray[Any] | None = np.empty(rows, dtype=kind) if form.has_totals else None
        except (MemoryError, ValueError):  # more than there is, or than can be addressed
            raise ParameterError(
                f"rows must fit into memory, got {rows} of {width} numbers each; take fewer at a time"
            ) from None
        self._labels: list[str] = []
        self._noises: list[Released | tuple[Provenance, ...]] = []

    def add(self, piece: Sketches) -> None:
        """Takes rows, as many as there is room for at most."""
        start = len(self._values) - self.room
        place = slice(start, start + len(piece))
        self._values[place] = piece.values
        if self._totals is not None and piece.totals is not None:
            self._totals[place] = piece.totals
        self._labels += piece.labels
        self._noises.append(piece.noises)
        self.room -= len(piece)

    def sketches(self) -> Sketches:
        """What has been gathered, once there is no room left."""
        return Sketches(
            self._values, self._labels, joined_noises(self._noises), self._form.protocols, self._totals
        )
