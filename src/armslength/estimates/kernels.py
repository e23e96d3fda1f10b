"""Hot loops over pairs of sketches."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel


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
            shift = left_offset[i] - right_offset[j]
            total = 0.0
            for number in range(left.shape[1]):
                difference = np.float64(left[i, number] - right[j, number]) + shift
                total += difference * difference
            result[i, j] = total
