"""Squared distances when the norms are known: the known part of the error is taken out."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import number
from armslength.errors import ParameterError
from armslength.estimates.distances import (
    checked_pair,
    clear_note,
    plug_in_variance,
    squared_distances,
    squared_norms,
)
from armslength.estimates.estimate import Bounds, Estimate
from armslength.estimates.intervals import approximate_interval
from armslength.estimates.pair_noise import pair_noises, row_noises
from armslength.sketches.sketches import Sketches
from armslength.transforms.integer_rows import plain_array

NOTE = "control variate: uses norms that are public or were paid for; approximate intervals, which hold somewhat less often than stated"


def squared_distances_with_norms(
    a: Sketches, b: Sketches, norms_a: Any, norms_b: Any, *, planned_distance: float
) -> Estimate:
    """‖x−y‖² with the error of ‖u‖² + ‖v‖², which is known where the norms are, taken out in part.

    D̂ − β·(estimated norms − known norms), with the β that is best at the planned distance. β comes from the plan and
    never from the sketches, so the estimate stays unbiased.

    Args:
        a: Sketches with the known squared norms `norms_a`.
        b: Sketches with the known squared norms `norms_b`, whose noises are not those of a.
        norms_a: ‖x‖² for each row of a, in data units: public, or paid for elsewhere.
        norms_b: ‖y‖² for each row of b.
        planned_distance: The distance ‖x−y‖ at which the variance is to be smallest.
    """
    left, right = checked_pair(a, b)
    x, y = _known("norms_a", norms_a, len(left))[:, None], _known("norms_b", norms_b, len(right))[None, :]
    planned = number("planned_distance", planned_distance, above=0.0, at_most=1e150) ** 2
    protocol = left.protocols[0]
    if protocol.noise_site == "input":
        raise ParameterError("the control variate must have noise on the output, got noise on the input")
    ids = [{source.id for row in side.provenance for source, _ in row.terms} for side in (left, right)]
    if ids[0] & ids[1]:
        raise ParameterError("the control variate must have different noises on both sides, got a shared one")
    plain = squared_distances(left, right)
    unit, k = protocol.unit_squared, protocol.transform.sketch_dim
    x2, x4 = (each[:, None] for each in _noise(left, unit))
    y2, y4 = (each[None, :] for each in _noise(right, unit))
    constants = k * (x4 + 2 * x2**2), k * (y4 + 2 * y2**2)
    f = protocol.transform.projection_variance / 2

    def parts(d: NDArray[np.float64] | float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cov(D̂, estimated norms) and Var(estimated norms) at D = d, for these norms."""
        inner = (x + y - d) / 2
        along_x, along_y = x - inner, y - inner  # ⟨z, x⟩ and −⟨z, y⟩
        covariance = 2 * f * (along_x**2 + along_y**2) + 4 * (x2 * along_x + y2 * along_y) + sum(constants)
        spread = 2 * f * (x**2 + y**2 + 2 * inner**2) + 4 * (x2 * x + y2 * y) + sum(constants)
        return covariance, spread

    covariance, spread = parts(planned)
    beta = covariance / spread
    known = (squared_norms(left).value[:, None] - x) + (squared_norms(right).value[None, :] - y)
    value = plain.value - beta * known
    noises = pair_noises(left, right)
    note = "; ".join(part for part in (NOTE, clear_note(left, right)) if part)

    def variance() -> NDArray[np.float64]:
        at = np.maximum(value, 0.0)
        own = plug_in_variance(protocol, noises, value)
        covariance, spread = parts(at)
        return np.maximum(own - 2 * beta * covariance + beta**2 * spread, 0.0)

    def interval(confidence: float, method: str, pairs: int) -> Bounds:
        lower, upper = approximate_interval(value, variance, confidence, method, pairs)
        return np.maximum(lower, 0.0), np.maximum(upper, 0.0)

    return replace(plain, value=value, note=note, _variance=variance, _interval=interval)


def _known(name: str, norms: Any, count: int) -> NDArray[np.float64]:
    array = plain_array(norms, name)
    array = array.astype(np.float64) if array.dtype.kind in "iuf" else np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all() or (array < 0).any():
        raise ParameterError(f"{name} must be {count} finite numbers of at least 0, got others")
    return array


def _noise(side: Sketches, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """κ₂ and κ₄ of each row, in data units."""
    noises = row_noises(side)
    return noises.each("k2") * unit, noises.each("k4") * unit**2
