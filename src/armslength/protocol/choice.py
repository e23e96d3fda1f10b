"""Which law, and how much of it: from public parameters alone."""

from fractions import Fraction

from armslength.errors import ParameterError
from armslength.laws.discrete_laplace import DiscreteLaplace
from armslength.laws.law import Law
from armslength.laws.rounded_normal import RoundedNormal
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.protocol.neighbors import GridNeighbors
from armslength.transforms.base import Transform


def calibrated_law(
    noise: str,
    transform: Transform,
    neighbors: GridNeighbors,
    epsilon: Fraction,
    delta: Fraction,
    noise_site: str,
) -> Law:
    """The law of the noise for these neighbors.

    Guarantee: noise on the output covers the ℓ1 sensitivity (Laplace) or the ℓ2 sensitivity (Gaussian) of A·x. Noise
    on the input is Gaussian and added after the Hadamard step, which stretches every vector by √d' exactly.
    Reference: paper, lemma technicalDP; docs/privacy.md.
    """
    if neighbors.norm == "l2" and noise == "laplace":
        raise ParameterError(
            "noise must be 'gaussian' with norm='l2', got 'laplace'; l1 neighbors can have it"
        )
    if noise == "laplace":
        return DiscreteLaplace(laplace_scale(neighbors.l1_sensitivity(transform), epsilon))
    if delta == 0:
        raise ParameterError("delta must be above 0 for Gaussian noise, got 0")  # before any scan of a matrix
    squared = gaussian_sensitivity_squared(transform, neighbors, noise_site)
    return RoundedNormal(gaussian_scale(squared, epsilon, delta))


def gaussian_sensitivity_squared(transform: Transform, neighbors: GridNeighbors, noise_site: str) -> int:
    """How far neighbors are apart where Gaussian noise is added, in squared ℓ2 norm and integer units: (R·Δ₂)², exactly."""
    if noise_site == "input":
        return neighbors.radius_squared * transform.padded_dim  # type: ignore[attr-defined,no-any-return]  # input noise is for FastJL alone
    return neighbors.l2_sensitivity_squared(transform)


def choose_noise(
    transform: Transform,
    neighbors: GridNeighbors,
    epsilon: Fraction,
    delta: Fraction,
    squared_distance: float,
) -> str:
    """The law whose estimate of this squared distance (in grid units) has the smaller exact variance.

    Both laws share the projection's term, so 4κ₂‖z‖² + k(κ₄ + 2κ₂²) decides, with the cumulants of two parties'
    integer noise. The paper's own rule, δ < e^(−s), is off by its hidden constants (erratum 10).
    """
    if neighbors.norm == "l2":
        return "gaussian"
    if delta == 0:
        return "laplace"
    best: tuple[float, str] | None = None
    for noise in ("laplace", "gaussian"):
        try:
            law = calibrated_law(noise, transform, neighbors, epsilon, delta, "output")
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
