"""Neighbors on the public grid, and the noise that covers their difference. Nothing here sees data.

Neighbors have ‖x − x'‖₁ ≤ ρ over all rows of a release, in data units. After floor(x/γ) they are integers.
"""

import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.laws import DiscreteLaplace, Law, RoundedNormal
from armslength.privacy.calibration import gaussian_scale, laplace_scale
from armslength.privacy.exact_numbers import exact_number
from armslength.transforms.transform import Transform

_WIDENING = Fraction(1001, 1000)
_FINEST, _COARSEST = Fraction(1, 2**60), Fraction(2**60)  # resolution


def radius_on_grid(
    radius: Fraction, resolution: Fraction, *, on_grid: bool, changed_entries: int | None
) -> int:
    """R: neighbors of radius ρ are integer vectors whose difference has an ℓ1 norm of at most R grid units.

    On the grid, x/γ is an integer, so R = ⌊ρ/γ⌋. Off the grid, a floor turns a difference t > 0 of a coordinate into at
    most ⌈t⌉ < t + 1, in at most j entries over all rows: R = ⌈ρ/γ⌉ + j − 1.
    """
    if on_grid:
        grid = math.floor(radius / resolution)
        if grid < 1:
            rule = "radius must be at least the resolution"
            raise ParameterError(f"{rule}, got radius={float(radius):g}, resolution={float(resolution):g}")
        return grid
    if changed_entries is None:
        rule = "changed_entries must say how many entries one unit can change"
        raise ParameterError(f"{rule}, got None; or set on_grid=True")
    return _floored(radius / resolution, changed_entries)


def _floored(radius: Fraction, j: int) -> int:
    """R of neighbors of this radius in grid units, after a floor that can move each of j entries by one step more."""
    return math.ceil(radius) + j - 1


def checked_resolution(value: Any, radius: Fraction, changed_entries: int | None) -> Fraction:
    """γ: 1, a power of two, or for "auto" the largest power of two that widens the radius by under 0.1 percent."""
    if value == "auto":
        if changed_entries is None:
            rule = 'resolution "auto" must know input_dim or changed_entries'
            raise ParameterError(f"{rule}, got neither; pass changed_entries")
        resolution, widest = _COARSEST, _WIDENING * radius
        while _floored(radius / resolution, changed_entries) * resolution > widest:
            resolution /= 2
    else:
        # A float is taken as it is: powers of two are exact in binary, and their shortest decimals are not.
        is_float = isinstance(value, float) and math.isfinite(value)
        resolution = Fraction(value) if is_float else exact_number("resolution", value)
        top, bottom = resolution.numerator, resolution.denominator
        if not top > 0 or top & (top - 1) or bottom & (bottom - 1):
            raise ParameterError(f'resolution must be 1, a power of two, or "auto", got {short_repr(value)}')
    if not _FINEST <= resolution <= _COARSEST:
        raise ParameterError("resolution must be from 2^-60 to 2^60, got one outside")
    return resolution


def checked_range(value: Any, resolution: Fraction) -> tuple[Fraction, Fraction] | None:
    """The public range (low, high) of a coordinate in data units; None for no clamping."""
    if value is None:
        return None
    rule = "value_range must be two finite numbers (low, high) with low <= high"
    try:
        low, high = [] if isinstance(value, str) else value
    except (TypeError, ValueError):
        raise ParameterError(f"{rule}, got {short_repr(value)}") from None
    low, high = exact_number("value_range", low), exact_number("value_range", high)
    if low > high:
        raise ParameterError(f"{rule}, got {short_repr(value)}")
    if max(abs(low), abs(high)) / resolution >= 2**62:
        raise ParameterError("value_range must stay below 2^62 times the resolution, got a wider one")
    return low, high


def calibrated_law(
    noise: str,
    transform: Transform,
    grid_radius: int,
    epsilon: Fraction,
    delta: Fraction,
    noise_site: str,
) -> tuple[Law, int]:
    """The law of the noise for these neighbors, and the sensitivity that it covers: R·Δ₁ of Laplace noise, (R·Δ₂)² of Gaussian noise.

    Guarantee: noise on the output covers the ℓ1 sensitivity (Laplace) or the ℓ2 sensitivity (Gaussian) of A·x. Noise
    on the input is Gaussian and added after the Hadamard step, which stretches every vector by √d' exactly.
    Reference: paper, lemma technicalDP; docs/privacy.md.
    """
    if noise == "laplace":
        sensitivity = grid_radius * transform.l1_sensitivity
        return DiscreteLaplace(laplace_scale(sensitivity, epsilon)), sensitivity
    if delta == 0:
        raise ParameterError("delta must be above 0 for Gaussian noise, got 0")  # before any scan of a matrix
    squared = gaussian_sensitivity_squared(transform, grid_radius, noise_site)
    return RoundedNormal(gaussian_scale(squared, epsilon, delta)), squared


def gaussian_sensitivity_squared(transform: Transform, grid_radius: int, noise_site: str) -> int:
    """How far neighbors are apart where Gaussian noise is added, in squared ℓ2 norm and integer units: (R·Δ₂)², exactly."""
    return grid_radius**2 * transform.sensitivity_squared(noise_site)


def choose_noise(
    transform: Transform,
    grid_radius: int,
    epsilon: Fraction,
    delta: Fraction,
    squared_distance: float,
) -> str:
    """The law whose estimate of this squared distance (in grid units) has the smaller exact variance.

    Both laws share the projection's term, so 4κ₂‖z‖² + k(κ₄ + 2κ₂²) decides, with the cumulants of two parties'
    integer noise. The paper's own rule, δ < e^(−s), is off by its hidden constants (erratum 10).
    """
    if delta == 0:
        return "laplace"
    variances, unit = dict[str, float](), float(transform.scale_squared)
    for noise in ("laplace", "gaussian"):
        with suppress(ParameterError):  # its scale is out of range
            law, _ = calibrated_law(noise, transform, grid_radius, epsilon, delta, "output")
            k2, k4 = 2 * law.cumulants.k2 * unit, 2 * law.cumulants.k4 * unit**2
            variances[noise] = 4 * k2 * squared_distance + transform.sketch_dim * (k4 + 2 * k2**2)
    if not variances:
        rule = "the noise scale must be at most 2^40"
        raise ParameterError(f"{rule}, got a larger one for both laws; take a larger epsilon")
    return min(variances, key=variances.__getitem__)


def check_shares(share: Fraction, margin_share: Fraction) -> None:
    """Refuses shares of ε for totals and margins that leave nothing for sketches."""
    if not 0 <= share < 1:
        raise ParameterError(f"total_share must be at least 0 and below 1, got {float(share):g}")
    if share + margin_share >= 1:
        rule = "total_share and margin_share must be below 1 together"
        raise ParameterError(f"{rule}, got {float(share + margin_share):g}: sketches get the rest")


def total_law(grid_radius: int, epsilon: Fraction) -> DiscreteLaplace:
    """The law of the noise of a row's total Σⱼ xⱼ, in grid units.

    Guarantee: all totals of a release together are ε-DP at this ε: neighbors differ by at most R in ℓ1 norm over all rows,
    so their totals differ by at most R over all rows. With the sketches, at the rest of ε, they are ε-DP or
    (ε, δ)-DP by composition.
    Reference: docs/privacy.md, totals.
    """
    return DiscreteLaplace(laplace_scale(grid_radius, epsilon))


def margin_sensitivity(
    margin_contribution: int, contribution: int, resolution: Fraction, relation: str, *, one_group: bool
) -> int:
    """How far one person moves all margins of a release, in ℓ1 norm and in squared ℓ2 norm: G + R, and for `replace` 2(G + R).

    Guarantee: a person's part is a vector of 0 and 1 with at most G ones in cells of item groups, and one for the number of people of
    each of at most R rows: 1, or as many as events are kept, of which each counts a grid unit or more. Two such vectors u and v
    have ‖u − v‖₂² = ‖u − v‖₁ ≤ 2(G + R).
    Reference: docs/privacy.md, margins.
    """
    rows = 1 if one_group else contribution // resolution
    return (margin_contribution + rows) * (1 if relation == "add_remove" else 2)


def margin_law(
    sensitivity: int | None, epsilon: Fraction, delta: Fraction, noise: str
) -> tuple[Law | None, Fraction]:
    """(law, δ) of the noise of margins: discrete Laplace without a δ, or Gaussian if the sketches may have it and its exact variance is smaller.

    Guarantee: all margins of a release together are ε-DP with Laplace noise, (ε, δ)-DP with Gaussian noise. Margins are whole numbers of
    people, whatever the resolution.
    Reference: docs/privacy.md, margins.
    """
    if sensitivity is None:
        return None, Fraction(0)
    laplace = DiscreteLaplace(laplace_scale(sensitivity, epsilon))
    if noise != "laplace" and delta:
        gaussian = RoundedNormal(gaussian_scale(sensitivity, epsilon, delta))
        if gaussian.second_moment < laplace.second_moment:
            return gaussian, delta
    return laplace, Fraction(0)
