"""What the transformers take, by scikit-learn's own rules, and refuse without showing a value."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from armslength.errors import InputError
from armslength.transforms.inputs import sparse_entries, stored_rows

FLOATS = (np.float64, np.float32)
# scikit-learn's own messages that show shapes, types and names of features, and no value
_HARMLESS = (
    "Expected 2D input, got input with shape",
    "Feature names are only supported",
    "Found array with ",
    "Input X contains ",
    "The feature names should match",
    "X has ",
    "float() argument must be a string or a real number, not ",
    "np.matrix is not supported",
)
# those that print the data, in words that they have in common with ours: users and scikit-learn's checks look for them
_IN_OUR_WORDS = {
    "Complex data not supported": "X must hold real numbers, got complex ones: Complex data not supported",
    "Expected 2D array": "X must have 2 dimensions (rows, features), got another shape; Reshape your data by X.reshape(1, -1)",
}


def validated(transformer: Any, X: Any, *, reset: bool = True) -> Any:
    """X as float64 or float32, dense or sparse by rows, if scikit-learn takes it.

    Args:
        transformer: What learns, or has learned, how many features there are and their names.
        X: n x d, dense or scipy.sparse.
        reset: Whether it learns them now.
    """
    if sparse.issparse(X) and stored_rows(X, any_order=False) is None:
        sparse_entries(X)  # refuses indices that do not fit: SciPy trusts them, and ends the process
    try:
        return validate_data(transformer, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
    except Exception as problem:
        text = str(problem)
        if isinstance(problem, (ValueError, TypeError)) and text.startswith(_HARMLESS):
            raise
        for theirs, ours in _IN_OUR_WORDS.items():
            if text.startswith(theirs):
                raise InputError(ours) from None
        raise InputError("X must be a matrix of numbers, got something else; convert it first") from None
