"""Squared distances with less error where the norms are known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from armslength.checks import number
from armslength.errors import ParameterError
from armslength.estimates.distances import (
    Pair,
    Rows,
    checked_pair,
    debiased_squares,
    pair_estimate,
    squared_norms,
)
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Approximate, Bounds, Level
from armslength.estimates.pair_noise import Floats, PairNoises, pair_noises
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants
from armslength.sketches.sketches import Sketches
from armslength.transforms.integer_rows import plain_array

NOTE = "control variate: uses norms that are public or were paid for; approximate intervals, which hold somewhat less often than stated"


def squared_distances_with_norms(
    a: Sketches, b: Sketches, norms_a: Any, norms_b: Any, *, planned_distance: float
) -> Estimate:
    """‖x−y‖² minus a part of the error of the estimated norms, which is known where the norms are.

    D̂ − β·(estimated norms − known norms), with the β that is best at the planned distance. β does not depend on the
    sketches, so the estimate stays unbiased.

    Args:
        a: Sketches with the known squared norms `norms_a`.
        b: Sketches with the known squared norms `norms_b`, whose noises are not those of a.
        norms_a: ‖x‖² for each row of a, in data units: public, or paid for elsewhere.
        norms_b: ‖y‖² for each row of b.
        planned_distance: The distance ‖x−y‖ at which the variance is to be smallest.
    """
    left, right = checked_pair(a, b)
    x, y = _norms("norms_a", norms_a, len(left))[:, None], _norms("norms_b", norms_b, len(right))[None, :]
    planned = number("planned_distance", planned_distance, above=0.0, at_most=1e150) ** 2
    protocol = left.protocols[0]
    if protocol.noise_site == "input":
        raise ParameterError("the control variate must have noise on the output, got noise on the input")
    if left.noises.shared_count(right.noises):
        raise ParameterError("the control variate must have different noises on both sides, got a shared one")
    model, noises = ErrorModel.of(protocol), pair_noises(left, right)
    plain = debiased_squares(model, Rows.of(left), Rows.of(right), noises)
    moments = _NormMoments.of(model, (x, y), (left, right))
    covariance, variance = moments.at(np.asarray(planned))
    beta = covariance / variance
    estimated = squared_norms(left).value[:, None], squared_norms(right).value[None, :]
    value = plain - beta * ((estimated[0] - x) + (estimated[1] - y))
    rule = ControlVariate(Pair(model, noises, value), value, beta, moments)
    return pair_estimate("squared distances", value, (left, right), rule, note=NOTE)


@dataclass(frozen=True)
class _NormMoments:
    """Moments of the errors of D̂ and of the estimated norms, in data units, rows by columns."""

    coefficient: float  # half of a, with Var‖Sz‖² ≤ a‖z‖⁴
    x: Floats
    y: Floats
    x_noise: Floats  # κ₂
    y_noise: Floats
    constant: Floats

    @classmethod
    def of(
        cls, model: ErrorModel, norms: tuple[Floats, Floats], sides: tuple[Sketches, Sketches]
    ) -> "_NormMoments":
        unit, k = model.unit, model.coordinates
        noises = [PairNoises.of_rows(side.noises) for side in sides]
        x2, y2 = noises[0].each("k2")[:, None] * unit, noises[1].each("k2")[None, :] * unit
        x4, y4 = noises[0].each("k4")[:, None] * unit**2, noises[1].each("k4")[None, :] * unit**2
        constant = k * (x4 + 2 * x2**2) + k * (y4 + 2 * y2**2)
        return cls(model.variance_curve(Cumulants()).a / 2, *norms, x2, y2, constant)

    def at(self, d: Floats) -> tuple[Floats, Floats]:
        """Cov(D̂, estimated norms) and Var(estimated norms) at D = d."""
        x, y, f = self.x, self.y, self.coefficient
        inner = (x + y - d) / 2
        along_x, along_y = x - inner, y - inner  # ⟨z, x⟩ and −⟨z, y⟩
        covariance = 2 * f * (along_x**2 + along_y**2) + 4 * (self.x_noise * along_x + self.y_noise * along_y)
        variance = 2 * f * (x**2 + y**2 + 2 * inner**2) + 4 * (self.x_noise * x + self.y_noise * y)
        return covariance + self.constant, variance + self.constant


@dataclass(frozen=True)
class ControlVariate(Approximate):
    """The rule of D̂ − β·(estimated norms − known norms)."""

    plain: Pair  # without the control variate, at the same values
    value: Floats
    beta: Floats
    moments: _NormMoments

    @property
    def variance(self) -> Floats:
        """V − 2β·Cov + β²·Var, at the estimates."""
        covariance, variance = self.moments.at(np.maximum(self.value, 0.0))
        return np.maximum(self.plain.variance - 2 * self.beta * covariance + self.beta**2 * variance, 0.0)

    def interval(self, level: Level) -> Bounds:
        """value ± z·√variance, not below 0."""
        lower, upper = super().interval(level)
        return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


def _norms(name: str, norms: Any, count: int) -> Floats:
    array = plain_array(norms, name)
    array = array.astype(np.float64) if array.dtype.kind in "iuf" else np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all() or (array < 0).any():
        raise ParameterError(f"{name} must be {count} finite numbers of at least 0, got others")
    return array
