"""Which law, and how much of it: from public parameters alone."""

from fractions import Fraction

from armslength.errors import ParameterError
from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.laws.law import Law
from armslength.laws.rounded_normal import RoundedNormal
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.transforms.base import Transform


def calibrated_law(
    noise: str, transform: Transform, radius: int, epsilon: Fraction, delta: Fraction, noise_site: str
) -> Law:
    """The law of the noise for neighbors that differ by `radius` grid units.

    Guarantee: noise on the output covers ℓ1 sensitivity R·Δ₁ (Laplace) or ℓ2 sensitivity R·Δ₂ (Gaussian) of
    A·x. Noise on the input is Gaussian and added after the Hadamard step, whose columns have squared norm d'.
    Reference: paper, lemma technicalDP; docs/privacy.md.
    """
    if noise == "laplace":
        return DiscreteLaplace(laplace_scale(radius * transform.l1_sensitivity, epsilon))
    squared = transform.padded_dim if noise_site == "input" else transform.l2_sensitivity_squared  # type: ignore[attr-defined]  # input noise is for FastJL alone
    return RoundedNormal(gaussian_scale(radius**2 * squared, epsilon, delta))


def choose_noise(
    transform: Transform, radius: int, epsilon: Fraction, delta: Fraction, squared_distance: float
) -> str:
    """The law whose estimate of this squared distance (in grid units) has the smaller exact variance.

    Both laws share the projection's term, so 4κ₂‖z‖² + k(κ₄ + 2κ₂²) decides, with the cumulants of two parties'
    integer noise. The paper's own rule, δ < e^(−s), is off by its hidden constants (erratum 10).
    """
    if delta == 0:
        return "laplace"
    best: tuple[float, str] | None = None
    for noise in ("laplace", "gaussian"):
        try:
            law = calibrated_law(noise, transform, radius, epsilon, delta, "output")
        except ParameterError:
            continue  # its scale is out of range
        variance = noise_variance(law, transform, squared_distance)
        if best is None or variance < best[0]:
            best = variance, noise
    if best is None:
        raise ParameterError(
            "the noise scale must be at most 2^40, got a larger one for both laws; take a larger epsilon"
        )
    return best[1]


def noise_variance(law: Law, transform: Transform, squared_distance: float) -> float:
    """4κ₂‖z‖² + k(κ₄ + 2κ₂²) for two parties with this law, in grid units."""
    unit = float(transform.scale_squared)
    k2, k4 = 2 * law.cumulants.k2 * unit, 2 * law.cumulants.k4 * unit**2
    return 4 * k2 * squared_distance + transform.sketch_dim * (k4 + 2 * k2**2)
