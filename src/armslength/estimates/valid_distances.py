"""A matrix of squared distances that points could really have, near the estimated one."""

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.result import Estimate


def valid_squared_distances(estimate: Estimate) -> NDArray[np.float64]:
    """All-pairs squared distances projected onto those of real points: symmetric, zero diagonal, no negative ones.

    −½JDJ, with J the centering matrix, is the Gram matrix of centered points exactly if it has no negative
    eigenvalue; those that noise made negative are set to 0. For drawings and clusterings that need a true metric:
    the result is biased, and the intervals of the estimate do not apply to it.
    """
    if not np.isfinite(estimate.value).all():
        raise ParameterError("estimate must be finite, got infinity or NaN")
    if estimate.quantity != "squared distances" or not estimate.within:
        raise ParameterError(f"estimate must be al.squared_distances within one set, got {estimate.quantity}")
    d = (estimate.value + estimate.value.T) / 2
    centered = d - d.mean(axis=0) - d.mean(axis=1)[:, None] + d.mean()
    eigenvalues, vectors = np.linalg.eigh(-centered / 2)
    gram = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    squares = np.diag(gram)
    valid: NDArray[np.float64] = np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0)
    np.fill_diagonal(valid, 0.0)
    return valid
