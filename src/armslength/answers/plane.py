"""The parties as points of a plane: classical scaling of estimated squared distances, and how surely each is placed."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.pair_noise import row_noises
from armslength.estimates.shapes import totals
from armslength.estimates.variance import debias
from armslength.sketches.sketches import Sketches

Points = NDArray[np.float64]

_FLAT = 1e-9  # of the largest eigenvalue: what rounding leaves of an axis that is not there


@dataclass(frozen=True)
class Plane:
    """A picture of the parties, in data units.

    Attributes:
        places: n x 2.
        reach: n x 2, half axes of the ellipse in which a party would be drawn, at the level, under another draw of its noise
            and of the projection.
        axes: How many axes the estimates support: 0 (noise hides everything: all places are 0), 1 or 2.
        shown: The share of the squared distances that the axes show: their eigenvalues over all positive ones.
        against: The sum of the negative eigenvalues, which no points have, over the same; noise makes them.
    """

    places: Points
    reach: Points
    axes: int
    shown: float
    against: float


def plane_of(squared: Points, noise: Points, sketch_dim: int, projection: float, level: float) -> Plane:
    """The plane of the two largest eigenvalues of −½JDJ, the Gram matrix of the centered points.

    An ellipse is where a party's mark would fall if its own noise and the public projection were drawn again and the axes
    stayed: along axis a, with eigenvalue λₐ and eigenvector vₐ, the mark is Σⱼvₐⱼ⟨uᵢ,uⱼ⟩/√λₐ.

    * Noise. The centered sketches have the Gram matrix G = −½JDJ + kJ·diag(σ²)·J, the debias put back. Noise of variance σᵢ² a
      coordinate moves the mark by a variance of σᵢ²·vₐᵀGvₐ/λₐ = σᵢ²(1 + kΣσⱼ²vₐⱼ²/λₐ).
    * Projection. The mark is ⟨Szᵢ, Sw⟩ with w a unit vector and zᵢ the party less the mean of all: a variance of at most
      (α/2)(‖zᵢ‖² + ⟨zᵢ, w⟩²), with α the coefficient of Var‖Sz‖² ≤ α‖z‖⁴.

    First order in the share that one party has of an axis; what both axes have in common is left out.

    Args:
        squared: Estimated squared distances, n x n, in data units; they may be negative.
        noise: For each party, the variance of its noise in one coordinate of the sketch, in data units.
        sketch_dim: k.
        projection: α.
        level: The probability that an ellipse is for.
    """
    count = len(squared)
    both = (squared + squared.T) / 2
    centered = both - both.mean(axis=0) - both.mean(axis=1)[:, None] + both.mean()
    gram = -centered / 2
    eigenvalues, vectors = np.linalg.eigh(gram)
    values, vectors = eigenvalues[::-1][:2], vectors[:, ::-1][:, :2]
    positive = float(eigenvalues[eigenvalues > 0].sum())
    axes = int((values > _FLAT * values[0]).sum()) if values[0] > 0 else 0
    places, reach = np.zeros((count, 2)), np.zeros((count, 2))
    if axes == 0:
        return Plane(places, reach, 0, 0.0, 0.0)
    radius = math.sqrt(
        -2 * math.log1p(-level)
    )  # of the circle that holds a standard normal point of the plane
    for axis in range(axes):
        vector = vectors[:, axis]
        # An eigenvector has no sign of its own: the largest entry shall be positive.
        vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
        places[:, axis] = math.sqrt(values[axis]) * vector
        stretch = 1 + sketch_dim * float(noise @ vector**2) / values[axis]
        away = np.maximum(np.diag(gram), 0.0) + places[:, axis] ** 2
        reach[:, axis] = radius * np.sqrt(noise * stretch + projection / 2 * away)
    if axes == 1:
        reach[:, 1] = reach[:, 0]
    shown = float(values[:axes].sum()) / positive
    against = float(-eigenvalues[eigenvalues < 0].sum()) / positive
    return Plane(places, reach, axes, min(shown, 1.0), against)


def noise_of_rows(sketches: Sketches, by: str) -> Points:
    """For each row, the variance of its noise in one coordinate of the sketch, in data units; 0 in the clear.

    By shape, rows are divided by their totals as they were released.
    """
    protocol = sketches.protocols[0]
    k2 = row_noises(sketches).each("k2")
    if by == "shape":
        k2 = k2 / totals(sketches).value ** 2
    return debias(protocol, k2) * protocol.unit_squared / protocol.transform.sketch_dim
