"""Neighbors on the public grid: how far two inputs can be apart that one unit of protection tells apart.

Nothing here sees data. Neighbors have ‖x − x'‖₁ ≤ ρ or ‖x − x'‖₂ ≤ ρ over all rows of a release, in data units; after
floor(x/γ) they are integers, and what their difference can be is an exact integer too.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from armslength.errors import ParameterError
from armslength.transforms.base import Transform

NORMS = ("l1", "l2")


@dataclass(frozen=True)
class GridNeighbors:
    """Integer vectors whose difference has an ℓ1 or an ℓ2 norm of at most R grid units.

    Attributes:
        norm: "l1" or "l2".
        radius_squared: R², an exact integer: squared ℓ2 norms of integer vectors are integers, and R itself need not be.
    """

    norm: str
    radius_squared: int

    @property
    def radius(self) -> int:
        """R of the ℓ1 norm, in grid units."""
        if self.norm != "l1":
            raise ParameterError(f"radius must belong to the l1 norm, got {self.norm}; see radius_squared")
        return math.isqrt(self.radius_squared)

    def l1_sensitivity(self, transform: Transform) -> int:
        """How far A·x can move in ℓ1 norm: R·Δ₁, exactly."""
        return self.radius * transform.l1_sensitivity

    def l2_sensitivity_squared(self, transform: Transform) -> int:
        """How far A·x can move in squared ℓ2 norm.

        Guarantee: R²·Δ₂² for ℓ1 neighbors (a convex combination of columns is no longer than the longest), R²·‖A‖² for
        ℓ2 neighbors, by a proved upper bound on the operator norm.
        """
        if self.norm == "l1":
            return self.radius_squared * transform.l2_sensitivity_squared
        return math.ceil(self.radius_squared * transform.operator_norm_squared)


def grid_neighbors(
    norm: str, radius: Fraction, resolution: Fraction, *, on_grid: bool, touched: int | None
) -> GridNeighbors:
    """The neighbors of radius ρ in grid units.

    On the grid, x/γ is an integer, so R = ⌊ρ/γ⌋, or R² = ⌊ρ²/γ²⌋. Off the grid, a floor turns a difference t > 0 of a
    coordinate into at most ⌈t⌉ < t + 1, in at most j entries over all rows: R = ⌈ρ/γ⌉ + j − 1, or R < ρ/γ + √j.
    """
    if on_grid:
        grid = math.floor(radius / resolution)
        if grid < 1:
            raise ParameterError(
                f"radius must be at least the resolution, got radius={float(radius):g}, resolution={float(resolution):g}"
            )
        return GridNeighbors(norm, grid**2 if norm == "l1" else math.floor((radius / resolution) ** 2))
    if touched is None:
        raise ParameterError(
            "touched must say how many entries one unit can change, got None; or set on_grid=True"
        )
    if norm == "l1":
        return GridNeighbors(norm, (math.ceil(radius / resolution) + touched - 1) ** 2)
    return GridNeighbors(norm, _floor_of_squared_sum(radius / resolution, touched))


def _floor_of_squared_sum(number: Fraction, other_squared: int) -> int:
    """⌊(p/q + √j)²⌋ = ⌊(p² + q²j + ⌊√(4p²q²j)⌋)/q²⌋, exactly."""
    p, q, j = number.numerator, number.denominator, other_squared
    return (p * p + q * q * j + math.isqrt(4 * p * p * q * q * j)) // (q * q)
