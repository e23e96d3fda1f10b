"""V(D) = aD² + bD + c: the variance of a squared-distance estimate as a function of the unknown D = ‖z‖²."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.laws import Cumulants
from armslength.protocol.protocol import Protocol
from armslength.transforms.transform import Transform


@dataclass(frozen=True)
class VarianceCurve:
    """The exact variance over seed and noise, in data units; an upper bound in that ‖z‖₄⁴ is taken as 0."""

    a: float
    b: Any  # a number, or an array with one for each pair, as c
    c: Any

    def at_point(self, squared_distance: float) -> float:
        """V(D) of one number D ≥ 0."""
        return float((self.a * squared_distance + self.b) * squared_distance + self.c)

    def at(self, squared_distance: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """V(D), at 0 where D is negative."""
        d = np.maximum(squared_distance, 0.0)
        return np.asarray((self.a * d + self.b) * d + self.c)


@dataclass(frozen=True)
class ErrorModel:
    """What estimates must know of a protocol, as plain numbers."""

    unit: float  # γ²c²: data units in a squared integer unit
    coordinates: int  # k
    bias: float  # what noise of κ₂ = 1 a coordinate adds to a squared norm, in squared integer units
    curve: VarianceCurve  # V for κ₂ = 1 and κ₄ = 0
    kurtosis: float  # what κ₄ = 1 adds to V
    null_degrees: int | None  # of the chi-square law at D = 0 where coordinates are not independent
    null_variance: tuple[float, float]  # of that law, for κ₂ = 1 and κ₄ = 0; and what κ₄ = 1 adds
    left_out: int | None  # coordinates without replacement that are left out; None if too many to matter

    @classmethod
    def of(cls, protocol: Protocol) -> "ErrorModel":  # noqa: D102
        transform, site, unit = protocol.transform, protocol.noise_site, protocol.unit_squared
        one, fourth = Cumulants(1.0, 0.0), Cumulants(0.0, 1.0)
        # Noise that went through P is as good as normal, with squares that are not independent: a chi-square law of
        # fewer degrees, with the published P's own variance where that is larger.
        degrees, second = transform.null_law(one, site) or (None, 0.0)
        _, extra = transform.null_law(fourth, site) or (None, 0.0)
        null_variance = unit**2 * second, unit**2 * extra
        bias = float(transform.noise_bias(np.asarray(1.0), site))
        left_out = transform.left_out
        (a, b, c), step = transform.variance_curve(one, site), float(protocol.resolution)
        kurtosis = transform.variance_curve(fourth, site)[2] * step**4
        curve = VarianceCurve(a, b * step**2, c * step**4)
        return cls(unit, transform.sketch_dim, bias, curve, kurtosis, degrees, null_variance, left_out)

    def variance_curve(self, noise: Cumulants) -> VarianceCurve:
        """V for noise with these cumulants in each coordinate (integer units)."""
        curve = self.curve
        return VarianceCurve(curve.a, curve.b * noise.k2, curve.c * noise.k2**2 + self.kurtosis * noise.k4)


def curve_of(transform: Transform, noise_site: str, resolution: float, noise: Cumulants) -> VarianceCurve:
    """The curve for noise in each coordinate (integer units), before there is a protocol."""
    a, b, c = transform.variance_curve(noise, noise_site)
    return VarianceCurve(a, b * resolution**2, c * resolution**4)
