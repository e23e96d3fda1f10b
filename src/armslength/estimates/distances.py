"""Distances: the square root of what squared distances say, with the mapped interval."""

from dataclasses import replace

import numpy as np

from armslength.estimates.result import Bounds, Estimate
from armslength.estimates.squared_distances import squared_distances
from armslength.protocol.sketches import Sketches


def distances(a: Sketches, b: Sketches | None = None) -> Estimate:
    """‖x−y‖ for every row of a against every row of b, or for all pairs within a.

    The square root of the squared estimate, clipped at 0: biased, so it carries an interval and no variance.
    """
    return as_distances(squared_distances(a, b))


def as_distances(squared: Estimate) -> Estimate:
    """The square roots of estimated squares, clipped at 0, with the square roots of their intervals."""

    def interval(confidence: float, method: str, pairs: int) -> Bounds:
        lower, upper = squared._interval(confidence, method, pairs)  # noqa: SLF001  # the same estimate, mapped
        return np.sqrt(lower), np.sqrt(upper)

    value = np.sqrt(np.maximum(squared.value, 0.0))
    quantity = squared.quantity.replace("squared ", "").replace("norms", "lengths")
    return replace(squared, quantity=quantity, value=value, _variance=None, _interval=interval)
