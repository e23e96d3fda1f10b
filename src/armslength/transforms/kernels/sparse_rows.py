"""Reading matrices that are stored by rows of (column, value) entries."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import Integers, kernel


@kernel
def is_valid(starts: Integers, columns: Integers, width: int) -> bool:
    """Whether rows follow each other, and all columns are from 0 to at most width−1, in any order.

    Nothing is read that `starts` puts outside of `columns`.
    """
    for i in range(len(starts) - 1):
        if not 0 <= starts[i] <= starts[i + 1] <= len(columns):
            return False
        for position in range(starts[i], starts[i + 1]):
            if not 0 <= columns[position] < width:
                return False
    return True


@kernel
def in_order(starts: Integers, columns: Integers, width: int) -> bool:
    """The same, and whether the columns of each row rise."""
    for i in range(len(starts) - 1):
        if not 0 <= starts[i] <= starts[i + 1] <= len(columns):
            return False
        before = np.int64(-1)
        for position in range(starts[i], starts[i + 1]):
            column = np.int64(columns[position])
            if column <= before or column >= width:
                return False
            before = column
    return True


@kernel
def fill_dense(starts: Integers, columns: Integers, values: Integers, dense: NDArray[np.int64]) -> None:
    """dense += the rows, modulo 2^64."""
    for i in range(len(starts) - 1):
        for position in range(starts[i], starts[i + 1]):
            dense[i, columns[position]] += np.int64(values[position])
