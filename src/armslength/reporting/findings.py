"""All numbers of a report, computed once before anything is drawn."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from armslength.answers.cluster import Clusters, cluster_estimate
from armslength.answers.outliers import Outliers, estimate_outliers
from armslength.answers.pairs import pair_estimator
from armslength.answers.plane import Plane, plane_of
from armslength.errors import ParameterError
from armslength.reporting.markup import NumberStyle
from armslength.sketches.sketches import Sketches

MOST_PARTIES = 1000

Matrix = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Findings:
    """Distances between all parties and the answers drawn from them, in data units. Matrices are n x n."""

    labels: tuple[str, ...]  # each of them once
    level: float  # the confidence of all statements
    simultaneous: bool  # whether all intervals hold together
    by: str  # "size" or "shape"
    squared: Matrix  # estimated squared distances; they may be negative
    lower: Matrix  # ends of the intervals of the distances
    upper: Matrix
    joint_interval: tuple[Matrix, Matrix]  # ends that all hold together, for statements that compare pairs
    clusters: Clusters | None  # None for one party
    plane: Plane | None  # None for one party
    outliers: Outliers | None  # None for fewer than three parties
    in_clear: tuple[bool, ...]  # for each party, whether it holds data without noise

    @cached_property
    def distance(self) -> Matrix:
        """Estimated distances; 0 where the squared estimate is negative."""
        return np.sqrt(np.maximum(self.squared, 0.0))

    @cached_property
    def resolved(self) -> NDArray[np.bool_]:
        """For each pair, whether its interval excludes 0."""
        return np.greater(self.lower, 0)

    @cached_property
    def pairs(self) -> Pairs:
        """Rows and columns of all pairs, each pair once, in the order of the upper triangle."""
        rows, columns = np.triu_indices(len(self.labels), 1)
        return rows, columns

    @cached_property
    def resolved_pairs(self) -> int:
        """How many pairs are resolved."""
        return int(self.resolved[self.pairs].sum())

    @cached_property
    def style(self) -> NumberStyle:
        """How distances are printed."""
        return NumberStyle.of(self.distance[self.pairs])

    @cached_property
    def nearest(self) -> NDArray[np.int64]:
        """For each party, the other party with the smallest estimate."""
        others = self.squared.copy()
        np.fill_diagonal(others, np.inf)
        smallest: NDArray[np.int64] = np.argmin(others, axis=1)
        return smallest

    @cached_property
    def candidates(self) -> NDArray[np.int64]:
        """For each party, how many others could be its nearest."""
        lower, upper = (end.copy() for end in self.joint_interval)
        np.fill_diagonal(lower, np.inf)
        np.fill_diagonal(upper, np.inf)
        possible = (lower <= upper.min(axis=1)[:, None]) & ~np.eye(len(lower), dtype=np.bool_)
        counts: NDArray[np.int64] = possible.sum(axis=1)
        return counts

    @cached_property
    def color_range(self) -> tuple[float, float]:
        """The distances of the first and the last color: those of all resolved pairs, unless a few are far beyond the rest."""
        distances, resolved = self.distance[self.pairs], self.resolved[self.pairs]
        colored = distances[resolved] if resolved.any() else distances
        if not len(colored):
            return 0.0, 1.0
        return float(colored.min()), min(float(colored.max()), 1.5 * float(np.quantile(colored, 0.95)))

    def extreme_pair(self, *, is_closest: bool) -> tuple[int, int, int]:
        """The pair with the smallest or the largest estimate, and how many other pairs could be as close or as far apart."""
        squared = self.squared[self.pairs]
        lower, upper = (end[self.pairs] for end in self.joint_interval)
        best = int(np.argmin(squared) if is_closest else np.argmax(squared))
        rivals = lower <= upper[best] if is_closest else upper >= lower[best]
        return int(self.pairs[0][best]), int(self.pairs[1][best]), int(rivals.sum()) - 1

    def axis_end(self, pairs: Pairs) -> float:
        """The distance at the right end of these pairs' error bars: the largest finite number among them."""
        upper, distance = self.upper[pairs], self.distance[pairs]
        finite = upper[np.isfinite(upper)]
        return float(max(finite.max(initial=0.0), distance.max(initial=0.0))) or 1.0


def findings_of(sketches: Sketches, *, level: float, simultaneous: bool, by: str) -> Findings:
    """All numbers of a report, from one estimate of all pairs."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    count = len(sketches)
    if not 1 <= count <= MOST_PARTIES:
        raise ParameterError(
            f"sketches must be 1 to {MOST_PARTIES} rows to report, got {count}; choose rows, or add groups up"
        )
    if not isinstance(simultaneous, bool):
        raise ParameterError("simultaneous must be True or False, got something else")
    estimate = pair_estimator(by)(sketches, None)
    squared = estimate.value
    if not np.isfinite(squared).all():
        raise ParameterError("estimates must be finite to report, got infinity or NaN")
    joint = estimate.interval(level, simultaneous=True)
    lower, upper = joint if simultaneous else estimate.interval(level)
    return Findings(
        labels=_unique(sketches.labels),
        level=level,
        simultaneous=simultaneous,
        by=by,
        squared=squared,
        lower=np.sqrt(lower),
        upper=np.sqrt(upper),
        joint_interval=(np.sqrt(joint[0]), np.sqrt(joint[1])),
        clusters=cluster_estimate(sketches, estimate, level=level, by=by) if count > 1 else None,
        plane=plane_of(squared, sketches, level, by) if count > 1 else None,
        outliers=estimate_outliers(estimate, joint, level=level, by=by) if count > 2 else None,
        in_clear=estimate.in_clear[0],
    )


def _unique(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The labels; those that occur more than once get the number of their row."""
    counts = Counter(labels)
    return tuple(
        f"{label} (row {number})" if counts[label] > 1 else label for number, label in enumerate(labels, 1)
    )
