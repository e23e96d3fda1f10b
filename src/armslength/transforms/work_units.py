"""How much work a matrix takes, counted from its parameters before anything is computed.

A unit is about a nanosecond of one core. The weights were measured (docs/decisions/0023-work-budget.md); a count predicts the time
to a factor of about 3.
"""

HASH_STEP = 7  # a multiplication in the field of the hash functions; a hash value takes `independence`
HASH_FUNCTION, HASH_COEFFICIENT = 30_000, 40  # a key for each function, and its uniform coefficients
DEALT_ENTRY = 30  # of a permutation that deals out buckets
SPARSE_ENTRY = 80  # of a column of SparseJL, in order of its rows
DRAWN_ENTRY, DRAWN_SIGN = 12, 1  # of a dense matrix
LONE_COLUMN = 20_000  # a column of a dense matrix that is drawn alone
SCANNED_ENTRY = 12  # of a dense matrix whose columns are measured
STORED_ENTRY = 40  # of a sparse matrix that is put together
SIGN, SAMPLED_ROW, HADAMARD_ENTRY = 10, 450, 10
FULL_PRODUCT = 6  # of two entries of one column, in the Gram matrix of a sparse matrix
GRAM_ENTRY = 20  # of a Gram matrix
_DENSE_PRODUCTS = 32  # products of a dense Gram matrix that take one unit


def dense_gram_work(rows: int, columns: int) -> int:
    """The Gram matrix of the rows of a dense matrix."""
    return rows * columns * (4 + rows // _DENSE_PRODUCTS)
