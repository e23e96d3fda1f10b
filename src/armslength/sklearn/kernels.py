"""The Walsh-Hadamard transform of rows of floats."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel
from armslength.transforms.kernels.walsh import walsh


@kernel
def spread_rows(rows: NDArray[np.floating], signs: NDArray[np.int64], product: NDArray[np.float64]) -> None:
    """product = H·D·row in float64, with zeros behind the row, for each row; one row at a time, so none sees another.

    Args:
        rows: n x d, of float32 or float64.
        signs: The diagonal of D.
        product: n x d', d' a power of two.
    """
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        padded = product[i]
        for j in range(width):
            padded[j] = rows[i, j] * signs[j]
        padded[width:] = 0
        walsh(padded)  # written for integers, and compiled here for floats
