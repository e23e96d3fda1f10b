"""What `add_tiles` is given beside the rows: columns listed by where they go, and room to work in."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers
from armslength.transforms.kernels.tiles import list_columns
from armslength.vectors import LANES


class TileRoom:
    """What one thread works in, for all of its tiles: new memory for each would cost more than the work."""

    def __init__(self, width: int, sketch_dim: int) -> None:
        self._tile = np.empty(width * LANES, dtype=np.int64)
        self.totals = np.empty((sketch_dim, LANES), dtype=np.int64)
        self.sums = np.empty((LANES, sketch_dim), dtype=np.int64)

    def tile(self, piece: Integers) -> Integers:
        """Room for sixteen rows of this piece."""
        size = piece.shape[1] * LANES
        return self._tile.view(piece.dtype)[:size].reshape(piece.shape[1], LANES)


def listed_columns(encoded: Integers, sketch_dim: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """These columns, listed by the coordinates of the sketch that they go to."""
    starts = np.empty(2 * sketch_dim + 1, dtype=np.int32)
    columns = np.empty(encoded.size, dtype=np.int32)
    list_columns(encoded, starts, columns)
    return starts, columns
