"""How often an estimate is off by more than α·D: bounds for every z, from exact moments over seed and noise (docs/planning.md)."""

from typing import NamedTuple

from armslength.estimates.variance import VarianceCurve
from armslength.laws import Law
from armslength.transforms.transform import ErrorMoments, Transform


class NoiseMoments(NamedTuple):
    """E[N²], E[N⁴], E[N⁶], E[N⁸] of the noise of a pair in one coordinate."""

    m2: float
    m4: float
    m6: float
    m8: float


def failure_bound(
    transform: Transform,
    law: Law,
    unit_squared: float,
    curve: VarianceCurve,
    squared_distance: float,
    distortion: float,
) -> float:
    """An upper bound on P(|estimate − D| > α·D), for every z with ‖z‖² = D.

    Guarantee: Chebyshev's inequality for the exact variance, and Markov's for the fourth power where the transform has a
    bound on that moment (hash functions of at least 8-wise independence). The law is that of each of the two parties.
    """
    by_variance = min(1.0, curve.at_point(squared_distance) / (distortion * squared_distance) ** 2)
    projection = transform.error_moments()
    if projection is None:
        return by_variance
    noise = pair_moments(law, unit_squared)
    fourth = fourth_moment(transform.sketch_dim, projection, noise, squared_distance)
    return min(by_variance, fourth / (distortion * squared_distance) ** 4)


def fourth_moment(
    sketch_dim: int, projection: ErrorMoments, noise: NoiseMoments, squared_distance: float
) -> float:
    """An upper bound on E[(estimate − D)⁴] over seed and noise, for every z with ‖z‖² = D.

    The error is T + W, W a sum over coordinates of 2y·N + N² − κ₂ with y = Sz, independent and centered given the seed.
    Everything is exact but T's own moments and Σy⁴ ≤ ‖y‖⁴.
    """
    d, k, m2 = squared_distance, sketch_dim, noise.m2
    v = noise.m4 - m2**2  # E[M²] for M = N² − κ₂
    n2_m2 = noise.m6 - 2 * m2 * noise.m4 + m2**3  # E[N²M²]
    fourth_of_m = noise.m8 - 4 * m2 * noise.m6 + 6 * m2**2 * noise.m4 - 3 * m2**4  # E[M⁴]
    k4 = noise.m4 - 3 * m2**2
    t2, t3, t4 = projection.second * d**2, projection.third * d**3, projection.fourth * d**4
    given_t = t4 + 6 * (4 * m2 * (d * t2 + t3) + k * v * t2) + 48 * v * t2
    of_w = 3 * ((4 * m2 * d + k * v) ** 2 + 16 * m2**2 * t2)
    excess = 16 * max(k4, 0.0) * (d**2 + t2) + 24 * d * (n2_m2 - m2 * v) + k * (fourth_of_m - 3 * v**2)
    return given_t + of_w + excess


def usual_median(
    sketch_dim: int, curve: VarianceCurve, noise: NoiseMoments, squared_distance: float
) -> float:
    """The approximate median of an estimate. Its law is skewed to the right, so it is below D, by μ₃/(6V).

    The third moment is that of a difference on many coordinates, for which the projection is nearly normal.
    """
    d, m2 = squared_distance, noise.m2
    v = noise.m4 - m2**2
    third_of_m = noise.m6 - 3 * m2 * noise.m4 + 2 * m2**3  # E[M³]
    t2, t3 = curve.a * d**2, 2 * curve.a**2 * d**3
    third = t3 + 12 * m2 * t2 + 12 * v * d + sketch_dim * third_of_m
    variance = curve.at_point(d)
    return d - third / (6 * variance) if variance > 0 else d


def pair_moments(law: Law, unit_squared: float) -> NoiseMoments:
    """Moments of the difference of two parties' noises in one coordinate, in data units, from their cumulants."""
    k2, k4 = 2 * law.cumulants.k2, 2 * law.cumulants.k4
    k6, k8 = (2 * cumulant for cumulant in law.higher_cumulants)
    m6 = k6 + 15 * k4 * k2 + 15 * k2**3
    m8 = k8 + 28 * k6 * k2 + 35 * k4**2 + 210 * k4 * k2**2 + 105 * k2**4
    u = unit_squared
    return NoiseMoments(k2 * u, (k4 + 3 * k2**2) * u**2, m6 * u**3, m8 * u**4)
