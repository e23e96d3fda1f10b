"""V(D) = aD² + bD + c: the variance of a squared-distance estimate as a function of the unknown D = ‖z‖²."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.laws import Cumulants
from armslength.protocol.protocol import Protocol
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.transform import Transform

UNKNOWN_VARIANCE = "variance must know the transform's variance_coefficients, got none; pass them to MatrixJL"


@dataclass(frozen=True)
class VarianceCurve:
    """The exact variance over seed and noise, in data units; an upper bound in that ‖z‖₄⁴ is taken as 0."""

    a: float
    b: float
    c: float

    def at_point(self, squared_distance: float) -> float:
        """V(D) of one number D ≥ 0."""
        return (self.a * squared_distance + self.b) * squared_distance + self.c

    def at(self, squared_distance: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """V(D), at 0 where D is negative."""
        d = np.maximum(squared_distance, 0.0)
        return np.asarray((self.a * d + self.b) * d + self.c)


@dataclass(frozen=True)
class ErrorModel:
    """What estimates must know of a protocol, as plain numbers that are asked for once.

    Attributes:
        unit: γ²c²: data units in a squared integer unit.
        coordinates: k.
        bias: What noise of κ₂ = 1 a coordinate adds to a squared norm, in squared integer units.
        curve: V for noise of κ₂ = 1 and κ₄ = 0; None where the transform's own variance is not known.
        kurtosis: What κ₄ = 1 adds to V.
        null_degrees: Of the chi-square law at D = 0 where coordinates are not independent; else None.
        null_variance: V at D = 0 of that law, for κ₂ = 1 and κ₄ = 0; and what κ₄ = 1 adds.
        left_out: How many coordinates a projection without replacement has left out; None if too many to matter.
    """

    unit: float
    coordinates: int
    bias: float
    curve: VarianceCurve | None
    kurtosis: float
    null_degrees: int | None
    null_variance: tuple[float, float]
    left_out: int | None

    @classmethod
    def of(cls, protocol: Protocol) -> "ErrorModel":
        """Of the rows of a protocol."""
        transform, unit = protocol.transform, protocol.unit_squared
        one, fourth = Cumulants(1.0, 0.0), Cumulants(0.0, 1.0)
        degrees, null_variance = None, (0.0, 0.0)
        if protocol.noise_site == "input" and isinstance(transform, FastJL):
            # Noise that has gone through P is as good as normal, and its squares are not independent: a chi-square law of
            # fewer degrees, with the published P's own variance where that is larger.
            degrees, second = input_noise_law(transform, one, unit)
            null_variance = second, input_noise_law(transform, fourth, unit)[1]
        left_out = None
        if isinstance(transform, HadamardJL) and 2 * transform.sketch_dim > transform.padded_dim:
            left_out = transform.padded_dim - transform.sketch_dim
        is_known = transform.variance_coefficients is not None
        return cls(
            unit,
            transform.sketch_dim,
            float(debias(protocol, np.asarray(1.0))),
            variance_curve(protocol, one) if is_known else None,
            variance_curve(protocol, fourth).c if is_known else 0.0,
            degrees,
            null_variance,
            left_out,
        )

    def variance_curve(self, noise: Cumulants) -> VarianceCurve:
        """V for noise with these cumulants in each coordinate (integer units)."""
        curve = self.curve
        if curve is None:
            raise ParameterError(UNKNOWN_VARIANCE)
        return VarianceCurve(curve.a, curve.b * noise.k2, curve.c * noise.k2**2 + self.kurtosis * noise.k4)


def variance_curve(protocol: Protocol, noise: Cumulants) -> VarianceCurve:
    """The curve for a pair of this protocol's sketches with this noise in each coordinate (integer units)."""
    return curve_of(protocol.transform, protocol.noise_site, float(protocol.resolution), noise)


def curve_of(transform: Transform, noise_site: str, resolution: float, noise: Cumulants) -> VarianceCurve:
    """The curve for noise in each coordinate (integer units), before there is a protocol.

    Output noise: Var‖Sz‖² + 4κ₂‖z‖² + k(κ₄ + 2κ₂²). Input noise: see `_input_curve`.
    Reference: paper, general variance lemma; errata 5 and 6.
    """
    a = projection_coefficient(transform)
    if noise_site == "input" and isinstance(transform, FastJL):
        return _input_curve(transform, resolution, noise)
    unit = resolution**2 * float(transform.scale_squared)
    k2, k4 = noise.k2 * unit, noise.k4 * unit**2
    return VarianceCurve(a, 4 * k2, transform.sketch_dim * (k4 + 2 * k2**2))


def projection_coefficient(transform: Transform) -> float:
    """a of Var‖Sz‖² ≤ a‖z‖₂⁴, whatever z is."""
    if transform.variance_coefficients is None:
        raise ParameterError(UNKNOWN_VARIANCE)
    a, b = transform.variance_coefficients
    return max(a, a - b)


def _input_curve(transform: FastJL, resolution: float, noise: Cumulants) -> VarianceCurve:
    """Noise N after the Hadamard step, y = HDz + N, estimate c²(‖Py‖² − κ₂‖P‖²_F) with the published P.

    With g = (κ_P−3)/d' and v(D) = (4κ₂D + κ₄ + 2κ₂²)/d', which is Var‖y‖²/d'²:
    V = (1/k)[2(D+κ₂)² + 2v + g(3D² + 6κ₂D + κ₄ + 3κ₂²) − (κ_P−1)κ₂(2D+κ₂)/d'] + v.
    The last term of the bracket is what subtracting the published ‖P‖²_F, instead of its mean, takes away.
    """
    k, d = transform.sketch_dim, transform.padded_dim
    kurtosis = float(transform.entry_kurtosis)
    g = (kurtosis - 3) / d
    k2, k4 = noise.k2 * resolution**2, noise.k4 * resolution**4
    v_linear, v_constant = 4 * k2 / d, (k4 + 2 * k2**2) / d
    saved = (kurtosis - 1) * k2 / d
    a = (2 + max(3 * g, g)) / k
    b = (4 * k2 + 2 * v_linear + 6 * g * k2 - 2 * saved) / k + v_linear
    c = (2 * k2**2 + 2 * v_constant + g * (k4 + 3 * k2**2) - saved * k2) / k + v_constant
    return VarianceCurve(a, b, c)


def input_noise_law(transform: FastJL, noise: Cumulants, unit_squared: float) -> tuple[int, float]:
    """At D = 0, for the published P: (degrees of freedom, variance in data units) of the estimate.

    NᵀGN with G = PᵀP has the cumulants of Σλᵢχ²₁, λ the eigenvalues of P·Pᵀ: its skewness is that of a chi-square law with
    (Σλ²)³/(Σλ³)² degrees of freedom.
    """
    second, third, diagonal = transform.gram_traces
    degrees = max(1, int(second**3 / third**2))
    return degrees, unit_squared**2 * (2 * noise.k2**2 * second + noise.k4 * diagonal)


def debias(protocol: Protocol, k2: NDArray[np.float64]) -> NDArray[np.float64]:
    """What noise of variance κ₂ a coordinate adds to a squared norm, in squared integer units of the sketch."""
    transform = protocol.transform
    if protocol.noise_site == "input" and isinstance(transform, FastJL):
        return k2 * transform.squared_entries
    return k2 * transform.sketch_dim
