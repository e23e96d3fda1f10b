"""A map of the parties by classical scaling of estimated squared distances."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.distances import gram_matrix
from armslength.estimates.pair_noise import PairNoises
from armslength.estimates.questions import COUNTS
from armslength.estimates.totals import totals
from armslength.estimates.variance import ErrorModel
from armslength.sketches.sketches import Sketches

Points = NDArray[np.float64]

_FLAT = 1e-9  # of the largest eigenvalue, of either sign: what rounding leaves of an axis that is not there


class Plane(NamedTuple):
    """The parties as points of a plane."""

    places: Points  # n x 2
    reach: Points  # n x 2: half axes of the ellipse in which another draw of the party's noise and of the projection would place it
    axes: int  # how many axes the estimates support: 0 (noise hides everything: all places are 0), 1 or 2
    share: float  # of the squared distances that the axes show: their eigenvalues over all positive ones
    against: (
        float  # the sum of the negative eigenvalues, which no points have, over the same; noise makes them
    )


def plane_of(squared: Points, sketches: Sketches, level: float, about: str) -> Plane:
    """The map of these estimated squared distances of the sketches; the level is that of the ellipses."""
    transform = sketches.transform
    noise, projection = noise_of_rows(sketches, about), transform.projection_variance
    return scaling(squared, noise, transform.sketch_dim, projection, level)


def scaling(squared: Points, noise: Points, sketch_dim: int, projection: float, level: float) -> Plane:
    """The map by the two largest eigenvalues of −½JDJ, as in docs/reference/answers.md.

    `noise` is the variance of each party's noise in one coordinate of the sketch, in data units; `projection` is α of
    Var‖Sz‖² ≤ α‖z‖⁴.
    """
    count, gram = len(squared), gram_matrix(squared)
    eigenvalues, vectors = np.linalg.eigh(gram)
    values, vectors = eigenvalues[::-1][:2], vectors[:, ::-1][:, :2]
    positive = float(eigenvalues[eigenvalues > 0].sum())
    axes = int((values > _FLAT * np.abs(eigenvalues).max()).sum())
    places, reach = np.zeros((count, 2)), np.zeros((count, 2))
    if axes == 0:
        return Plane(places, reach, 0, 0.0, 0.0)
    # of the circle that holds a standard normal point of the plane
    radius = math.sqrt(-2 * math.log1p(-level))
    for axis in range(axes):
        vector = vectors[:, axis]
        # An eigenvector has no sign of its own: make its largest entry positive.
        vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
        places[:, axis] = math.sqrt(values[axis]) * vector
        stretch = 1 + sketch_dim * float(noise @ vector**2) / values[axis]
        away = np.maximum(np.diag(gram), 0.0) + places[:, axis] ** 2
        reach[:, axis] = radius * np.sqrt(noise * stretch + projection / 2 * away)
    if axes == 1:
        reach[:, 1] = reach[:, 0]
    share = float(values[:axes].sum()) / positive
    against = float(-eigenvalues[eigenvalues < 0].sum()) / positive
    return Plane(places, reach, axes, min(share, 1.0), against)


def noise_of_rows(sketches: Sketches, about: str) -> Points:
    """For each row, or row divided by its released total, the variance of its noise in one coordinate, in data units."""
    model, k2 = ErrorModel.of(sketches.protocols[0]), PairNoises.of_rows(sketches.noises).each("k2")
    if about != COUNTS:
        k2 = k2 / totals(sketches).value ** 2
    return k2 * (model.bias * model.unit / model.coordinates)
