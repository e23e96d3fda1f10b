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
VOTE = 2**20  # R: the grid units of one vote. Who has more different items than that does not vote


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
            numbers = f"radius ({float(radius):g}) must be at least the resolution ({float(resolution):g})"
            raise ParameterError(numbers, "radius", "resolution")
        return grid
    if changed_entries is None:
        says = "changed_entries is missing: say how many entries one unit can change, or set on_grid=True"
        raise ParameterError(says, "changed_entries", "on_grid")
    return _floored(radius / resolution, changed_entries)


def _floored(radius: Fraction, j: int) -> int:
    """R of neighbors of this radius in grid units, after a floor that can move each of j entries by one step more."""
    return math.ceil(radius) + j - 1


def checked_resolution(value: Any) -> Fraction | str:
    """γ: 1 or a power of two; or "auto", for which `auto_resolution` finds one."""
    if isinstance(value, str) and value == "auto":
        return value
    # A float is taken as it is: powers of two are exact in binary, and their shortest decimals are not.
    is_float = isinstance(value, float) and math.isfinite(value)
    resolution = Fraction(value) if is_float else exact_number("resolution", value)
    top, bottom = resolution.numerator, resolution.denominator
    if not top > 0 or top & (top - 1) or bottom & (bottom - 1):
        got = short_repr(value)
        raise ParameterError(f'resolution must be 1, a power of two, or "auto", got {got}', "resolution")
    return _within_limits(resolution)


def auto_resolution(radius: Fraction, changed_entries: int | None) -> Fraction:
    """The largest power of two that widens the radius by under 0.1 percent."""
    if changed_entries is None:
        names = "resolution", "input_dim", "changed_entries"
        raise ParameterError("resolution='auto' needs input_dim or changed_entries", *names)
    resolution, widest = _COARSEST, _WIDENING * radius
    while _floored(radius / resolution, changed_entries) * resolution > widest:
        resolution /= 2
    return _within_limits(resolution)


def _within_limits(resolution: Fraction) -> Fraction:
    if not _FINEST <= resolution <= _COARSEST:
        raise ParameterError("resolution must be from 2^-60 to 2^60", "resolution")
    return resolution


def checked_range(value: Any) -> tuple[Fraction, Fraction] | None:
    """The public range (low, high) of a coordinate in data units; None for no clamping."""
    if value is None:
        return None
    rule = "value_range must be two finite numbers (low, high) with low <= high"
    try:
        low, high = [] if isinstance(value, str) else value
    except (TypeError, ValueError):
        raise ParameterError(f"{rule}, got {short_repr(value)}", "value_range") from None
    low, high = exact_number("value_range", low), exact_number("value_range", high)
    if low > high:
        raise ParameterError(f"{rule}, got {short_repr(value)}", "value_range")
    return low, high


def check_range_fits(limits: tuple[Fraction, Fraction] | None, resolution: Fraction) -> None:
    """Refuses a range whose ends are too many grid units."""
    if limits is not None and max(map(abs, limits)) / resolution >= 2**62:
        raise ParameterError("value_range must stay below 2^62 times the resolution", "value_range")


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
        # before any scan of a matrix
        raise ParameterError("delta must be above 0 for Gaussian noise, got 0", "delta")
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
) -> str:
    """The law whose estimate of the distance of equal rows has the smaller exact variance.

    The variance is k(κ₄ + 2κ₂²), with the cumulants of two parties' integer noise. (Farther away, 4κ₂‖z‖² joins it.) The paper's own rule, δ < e^(−s), is off by its hidden constants (erratum 10).
    """
    if delta == 0:
        return "laplace"
    variances, unit = dict[str, float](), float(transform.scale_squared)
    for noise in ("laplace", "gaussian"):
        with suppress(ParameterError):  # its scale is out of range
            law, _ = calibrated_law(noise, transform, grid_radius, epsilon, delta, "output")
            k2, k4 = 2 * law.cumulants.k2 * unit, 2 * law.cumulants.k4 * unit**2
            variances[noise] = k4 + 2 * k2**2
    if not variances:
        raise ParameterError("the noise would have a scale above 2^40; take a larger epsilon", "epsilon")
    return min(variances, key=variances.__getitem__)


def check_shares(share: Fraction, margin_share: Fraction) -> None:
    """Refuses shares of ε for totals and margins that leave nothing for sketches."""
    if not 0 <= share < 1:
        raise ParameterError(
            f"total_share must be at least 0 and below 1, got {float(share):g}", "total_share"
        )
    if share + margin_share >= 1:
        raise ParameterError(
            f"total_share and the share of item groups must be below 1 together, got {float(share + margin_share):g}: sketches get the rest",
            "total_share",
        )


def total_law(grid_radius: int, epsilon: Fraction) -> DiscreteLaplace:
    """The law of the noise of a row's total Σⱼ xⱼ, in grid units.

    Guarantee: all totals of a release together are ε-DP at this ε: neighbors differ by at most R in ℓ1 norm over all rows,
    so their totals differ by at most R over all rows. With the sketches, at the rest of ε, they are ε-DP or
    (ε, δ)-DP by composition.
    Reference: docs/privacy.md, totals.
    """
    return DiscreteLaplace(laplace_scale(grid_radius, epsilon))


def scalar_laws(epsilon: Fraction, relation: str) -> tuple[DiscreteLaplace, DiscreteLaplace]:
    """(law of T − Q, law of Q and of F): the noise of how many people there are, and of how far chance reaches, in grid units.

    Guarantee: a person with a mass of m ≤ R grid units and a squared length of q ≤ m in the sketch moves T − Q by m − q, Q by q and F, after
    its floor, by at most q + 1. With noise of scales b, 2b and 2b that is a loss of at most (m − q)/b + q/2b + (q + 1)/2b ≤ (2R + 1)/2b,
    twice that for `replace`: so all three of all rows together are ε-DP at this ε.
    Reference: docs/privacy.md, votes.
    """
    moved = (2 * VOTE + 1) * persons(relation)
    return DiscreteLaplace(laplace_scale(moved, 2 * epsilon)), DiscreteLaplace(laplace_scale(moved, epsilon))


def margin_sensitivity(margin_contribution: int, item_groups: int, relation: str) -> int:
    """How far one person moves all margins of a release, in ℓ1 norm and in grid units: G·R + 4(R − ⌊G·R/M⌋) of M item groups, twice for `replace`.

    Guarantee: a person has W = R grid units in each of g ≤ G item groups, or W = ⌊G·R/g⌋ in each of more, at most G·R in all; and 4(R − W) in
    what is left out, which is largest for g = M.
    Reference: docs/privacy.md, margins.
    """
    counted = min(margin_contribution, item_groups)
    left_out = VOTE - counted * VOTE // item_groups
    return (counted * VOTE + 4 * left_out) * persons(relation)


def margin_law(sensitivity: int, epsilon: Fraction) -> DiscreteLaplace:
    """The noise of margins, in grid units.

    Guarantee: all margins of a release together are ε-DP at this ε.
    Reference: docs/privacy.md, margins.
    """
    return DiscreteLaplace(laplace_scale(sensitivity, epsilon))


def persons(relation: str) -> int:
    """How many persons' data neighbors differ in."""
    return 1 if relation == "add_remove" else 2
