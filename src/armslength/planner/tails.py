"""How often an estimate is off by more than α·D: bounds that hold for every z, from exact moments.

Chebyshev needs the variance. For the block and balanced constructions, and for no projection at all, the fourth central
moment is bounded too, and falls as the sparsity grows; docs/planning.md has the proof. The smaller bound counts.
"""

from armslength.estimates.variance import VarianceCurve
from armslength.laws.law import Law
from armslength.planner.moments import fourth_moment, pair_moments, projection_moments
from armslength.transforms.base import Transform


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
    bound on that moment (hash functions of at least 8-wise independence).

    Args:
        transform: The projection.
        law: The noise that each of two parties adds to its output.
        unit_squared: What turns squared integer units into squared data units.
        curve: The variance of the estimate.
        squared_distance: D, in data units.
        distortion: α.
    """
    by_variance = chebyshev(curve, squared_distance, distortion)
    projection = projection_moments(transform)
    if projection is None:
        return by_variance
    noise = pair_moments(law, unit_squared)
    fourth = fourth_moment(transform.sketch_dim, projection, noise, squared_distance)
    return min(by_variance, fourth / (distortion * squared_distance) ** 4)


def chebyshev(curve: VarianceCurve, squared_distance: float, distortion: float) -> float:
    """V(D)/(α·D)², at most 1: an upper bound on P(|estimate − D| > α·D) for any law of that variance."""
    return min(1.0, curve.at_point(squared_distance) / (distortion * squared_distance) ** 2)
