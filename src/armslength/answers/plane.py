"""A map of the parties by classical scaling of estimated squared distances."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import Answer, answer_note, checked_sketches, without_small
from armslength.checks import number
from armslength.errors import plural
from armslength.estimates.distances import clear_note, gram_matrix
from armslength.estimates.pair_noise import PairNoises
from armslength.estimates.questions import COUNTS, question, squared_distances_about
from armslength.estimates.totals import totals
from armslength.estimates.variance import ErrorModel
from armslength.sketches.sketches import Sketches

Points = NDArray[np.float64]

_FLAT = 1e-9  # of the largest eigenvalue, of either sign: what rounding leaves of an axis that is not there


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plane(Answer):
    """The parties as points of a plane.

    Attributes:
        labels: The n parties.
        places: n x 2.
        reach: n x 2, half axes of the ellipse in which another draw of the party's noise and of the projection would
            place it, at the level.
        axes: How many axes the estimates support: 0 (noise hides everything: all places are 0), 1 or 2.
        share: The share of the squared distances that the axes show: their eigenvalues over all positive ones.
        against: The sum of the negative eigenvalues, which no points have, over the same; noise makes them.
        level: The probability that the ellipses are for.
    """

    labels: tuple[str, ...]
    places: Points
    reach: Points
    axes: int
    share: float
    against: float

    def to_arrow(self) -> pa.Table:
        """One line for each party: label, x, y, reach_x, reach_y, in_clear (data without noise is part of the answer)."""
        names, numbers = ("x", "y", "reach_x", "reach_y"), (*self.places.T, *self.reach.T)
        columns = {"label": self.labels, **dict(zip(names, numbers, strict=True))}
        return self._table(columns)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with a point and an ellipse for each party."""
        label = "data units" if self.about == COUNTS else "profiles"
        return plots.scatter_map(self.places, self.reach, self.labels, label, self._title(), ax)

    def _title(self) -> str:
        parties = plural(len(self.labels), "party", "parties")
        if not self.axes:
            return f"{parties}: noise hides all distances" if len(self.labels) > 1 else parties
        share = f"the map shows {self.share:.0%} of their squared distances"
        return f"{parties}; {share}; ellipses at {100 * self.level:.6g}%"


def plane(sketches: Sketches, *, about: str | None = None, level: float = 0.95, keep: bool = False) -> Plane:
    """A map of the parties: points whose distances are near the estimated ones, and how surely each is placed.

    Classical multidimensional scaling of the estimated squared distances.

    Args:
        sketches: One row for each party.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: The probability that the ellipses are for.
        keep: Whether to keep parties that have too few people to say anything.
    """
    about = question(about, checked_sketches("sketches", sketches, 1))
    number("level", level, above=0.0, at_most=1 - 1e-12)
    rows, left_out = without_small(sketches, about, 1, keep=keep)
    return plane_of(squared_distances_about(rows, None, about).value, rows, level, about, left_out)


def plane_of(squared: Points, sketches: Sketches, level: float, about: str, left_out: str = "") -> Plane:
    """The map of these estimated squared distances of the sketches."""
    transform = sketches.transform
    noise, projection = noise_of_rows(sketches, about), transform.projection_variance
    places, reach, axes, share, against = scaling(squared, noise, transform.sketch_dim, projection, level)
    return Plane(
        labels=sketches.labels,
        places=places,
        reach=reach,
        axes=axes,
        share=share,
        against=against,
        about=about,
        level=float(level),
        note=answer_note(about, clear_note(sketches), left_out),
    )


def scaling(
    squared: Points, noise: Points, sketch_dim: int, projection: float, level: float
) -> tuple[Points, Points, int, float, float]:
    """(places, reach, axes, share, against) by the two largest eigenvalues of −½JDJ, as in docs/reference/answers.md.

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
        return places, reach, 0, 0.0, 0.0
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
    return places, reach, axes, min(share, 1.0), against


def noise_of_rows(sketches: Sketches, about: str) -> Points:
    """For each row, or row divided by its released total, the variance of its noise in one coordinate, in data units."""
    model, k2 = ErrorModel.of(sketches.protocols[0]), PairNoises.of_rows(sketches.noises).each("k2")
    if about != COUNTS:
        k2 = k2 / totals(sketches).value ** 2
    return k2 * (model.bias * model.unit / model.coordinates)
