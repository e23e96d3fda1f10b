"""Which parties are surely unlike the rest."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import (
    Answer,
    PairEstimator,
    answer_note,
    checked_sketches,
    pair_estimator,
    row_blocks,
    tiles_within,
    with_shapes,
)
from armslength.checks import number
from armslength.estimates.distances import clear_note
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Bounds, Level
from armslength.results import sentences, three_digits
from armslength.sketches.sketches import Sketches

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Outliers(Answer):
    """How far each party is from half of the others, and whether that is surely unusual; in data units.

    A party's score is the median of its true distances to the others; the typical score is the median over all parties.
    An outlier is a party whose score is more than `factor` times the typical one. With probability at least `level`, no
    party that is not an outlier is called one.

    Attributes:
        labels: The parties.
        score: Each party's estimated score.
        lower: The lower ends of the scores.
        upper: The upper ends of the scores.
        is_outlier: Whether each party is surely an outlier: its lower end is above `factor` times the upper end of `typical`.
        typical: (estimate, lower, upper) of the typical score.
        factor: How many times the typical score is still usual.
    """

    labels: tuple[str, ...]
    score: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    is_outlier: NDArray[np.bool_]
    typical: tuple[float, float, float]
    factor: float

    def sentence(self, row: int) -> str:
        """What can be said of one party."""
        name = self.labels[row]
        lower, upper, typical, high = map(
            three_digits, (self.lower[row], self.upper[row], *self.typical[::2])
        )
        if self.is_outlier[row]:
            return (
                f"{name} is unlike the rest: half of the others are at least {lower} away, where {typical} "
                f"(at most {high}) is typical"
            )
        if self.upper[row] <= self.factor * self.typical[1]:
            return f"{name} is like the rest: half of the others are at most {upper} away"
        return f"{name}: cannot say; its median distance to the others is {lower} to {upper}"

    def to_arrow(self) -> pa.Table:
        """One line for each party: label, score, lower, upper, is_outlier, in_clear (data without noise is part of the answer)."""
        names = ("score", "lower", "upper", "is_outlier")
        columns = {"label": self.labels, **{name: getattr(self, name) for name in names}}
        return self._table(columns, factor=repr(self.factor))

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of each party's score, largest first, the typical score and the limit for outliers."""
        typical, _, high = self.typical
        marks = [(typical, "typical score"), (self.factor * high, "limit for outliers")]
        ends, label = (self.score, self.lower, self.upper), f"median distance to the others{self._unit}"
        words = ("outlier", "not surely an outlier")
        return plots.forest(self.labels, ends, self.is_outlier, label, ax, marks=marks, words=words)

    def _title(self) -> str:
        count = f"{int(self.is_outlier.sum())} of {len(self.labels)} parties"
        return f"{count} surely unlike the rest, at {100 * self.level:.6g}%, all together"

    def __str__(self) -> str:
        order = np.argsort(-self.score, kind="stable")
        return sentences([*map(self.sentence, order.tolist()), self._title()], self.note)


def outliers(
    sketches: Sketches,
    level: float = 0.95,
    *,
    factor: float = 1.5,
    by: str = "size",
    beyond_chance: bool = False,
    method: str = "asymptotic",
) -> Outliers:
    """Which parties are farther from half of the others than `factor` times what is typical.

    Medians do not mind one or two outliers among the others. Their ends are the medians of simultaneous ends of all pairs.

    Args:
        sketches: One row for each party, at least three.
        level: With this probability no party is falsely called an outlier.
        factor: How many times the typical distance is still usual; at least 1.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
    """
    sketches, left_out = with_shapes(checked_sketches("sketches", sketches, 3), by, 3)
    times = number("factor", factor, above=1.0 - 2**-53, at_most=1e6)
    pairs = len(sketches) * (len(sketches) - 1) // 2
    pair_level = Level.of(level, method, pairs)  # checked before any work
    estimator = pair_estimator(by, beyond_chance=beyond_chance)
    blocks = [_medians(rows, sketches, estimator, pair_level) for rows in row_blocks(len(sketches))]
    medians = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    note = answer_note(by, clear_note(sketches), left_out, beyond_chance=beyond_chance)
    question = {"level": level, "by": by, "beyond_chance": beyond_chance}
    return _outliers_of(medians, sketches.labels, times, note=note, **question)


def estimate_outliers(
    estimate: Estimate, interval: Bounds, *, factor: float = 1.5, **question: Any
) -> Outliers:
    """The outliers by squared distances of all pairs, whose intervals hold together at this level."""
    medians = [_median_distance(_without_itself(squares)) for squares in (estimate.value, *interval)]
    return _outliers_of(medians, estimate.labels[0], factor, note=estimate.note, **question)


def _outliers_of(medians: list[Matrix], labels: tuple[str, ...], factor: float, **answer: Any) -> Outliers:
    """The outliers by the (estimate, lower, upper) of each party's median distance."""
    score, lower, upper = medians
    typical, low, high = (float(np.median(column)) for column in medians)
    is_outlier = lower > factor * high
    return Outliers(labels, score, lower, upper, is_outlier, (typical, low, high), factor, **answer)


def _medians(rows: range, sketches: Sketches, estimator: PairEstimator, level: Level) -> tuple[Matrix, ...]:
    """(estimate, lower, upper) of the median distance of each row to the others."""
    tiles: list[list[Matrix]] = []
    for tile in tiles_within(rows, sketches, estimator):
        numbers = [tile.estimate.value, *tile.estimate.rule.interval(level)]
        tiles.append(list(map(_without_itself, numbers)) if tile.estimate.within else numbers)
    whole = (np.concatenate(parts, axis=1) for parts in zip(*tiles, strict=True))
    return tuple(map(_median_distance, whole))


def _without_itself(squares: Matrix) -> Matrix:
    """The matrix without its diagonal."""
    return squares[~np.eye(len(squares), dtype=np.bool_)].reshape(len(squares), -1)


def _median_distance(squares: Matrix) -> Matrix:
    medians: Matrix = np.median(np.sqrt(np.maximum(squares, 0.0)), axis=1)
    return medians
