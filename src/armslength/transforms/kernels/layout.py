"""A matrix, transposed block by block: NumPy's copy goes entry by entry."""

from armslength.compiled import Integers, kernel
from armslength.vectors import transpose_block


@kernel
def turn(columns: Integers, rows: Integers) -> None:
    """rows = columns, transposed; the entries of a column lie side by side, and so do those of a row.

    Args:
        columns: m x n, of int32 or int64.
        rows: n x m, of the same type, contiguous.
    """
    size = 64 // rows.itemsize
    whole_rows, whole_columns = rows.shape[0] // size * size, rows.shape[1] // size * size
    for j in range(0, whole_columns, size):
        for i in range(0, whole_rows, size):
            transpose_block(columns, j, i, rows, i, j)
    for j in range(whole_columns, rows.shape[1]):
        for i in range(rows.shape[0]):
            rows[i, j] = columns[j, i]
    for i in range(whole_rows, rows.shape[0]):
        for j in range(whole_columns):
            rows[i, j] = columns[j, i]
