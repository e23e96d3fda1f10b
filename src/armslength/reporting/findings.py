"""Everything that a report says, as numbers: computed once, before anything is drawn or worded."""

import base64
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.answers.cluster import Clustering, cluster
from armslength.answers.outliers import Outliers, outliers
from armslength.answers.pairs import squared_measure
from armslength.answers.plane import Plane, noise_of_rows, plane_of
from armslength.errors import ParameterError
from armslength.reporting.markup import NumberStyle
from armslength.sketches.sketches import Sketches
from armslength.threads import lazy

MOST_PARTIES = 1000

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Findings:
    """What the sketches say about each other, in data units.

    Attributes:
        labels: The parties' names, told apart where two are the same.
        level: The confidence of all statements.
        simultaneous: Whether the intervals hold all together.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        squared: Estimated squared distances, n x n; they may be negative.
        lower: Lower ends of the distances' intervals, n x n.
        upper: Upper ends.
        together: Both ends of the intervals that hold all together, from which comparisons of pairs are judged.
        clustering: The tree; None for one party.
        plane: The picture; None for one party.
        outliers: Who is unlike the rest; None for fewer than three parties.
        in_clear: For each party, whether data without noise is part of it.
    """

    labels: tuple[str, ...]
    level: float
    simultaneous: bool
    by: str
    squared: Matrix
    lower: Matrix
    upper: Matrix
    together: tuple[Matrix, Matrix]
    clustering: Clustering | None
    plane: Plane | None
    outliers: Outliers | None
    in_clear: tuple[bool, ...]

    @lazy
    def distance(self) -> Matrix:
        """Estimated distances: roots, 0 where the squared estimate is negative."""
        return np.sqrt(np.maximum(self.squared, 0.0))

    @lazy
    def resolved(self) -> NDArray[np.bool_]:
        """For each pair, whether its interval leaves out 0."""
        return np.greater(self.lower, 0)

    @lazy
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of all pairs, each pair once, in the order of the upper triangle."""
        rows, columns = np.triu_indices(len(self.labels), 1)
        return rows, columns

    @lazy
    def style(self) -> NumberStyle:
        """How distances are written."""
        return NumberStyle.of(self.distance[self.pairs])

    @lazy
    def nearest(self) -> NDArray[np.int64]:
        """For each party the other one of the smallest estimate."""
        others = self.squared.copy()
        np.fill_diagonal(others, np.inf)
        smallest: NDArray[np.int64] = np.argmin(others, axis=1)
        return smallest

    @lazy
    def candidates(self) -> NDArray[np.int64]:
        """For each party, how many others could truly be its nearest, judged by intervals that hold all together."""
        lower, upper = (each.copy() for each in self.together)
        np.fill_diagonal(lower, np.inf)
        np.fill_diagonal(upper, np.inf)
        possible = (lower <= upper.min(axis=1)[:, None]) & ~np.eye(len(lower), dtype=np.bool_)
        counts: NDArray[np.int64] = possible.sum(axis=1)
        return counts

    def closest(self) -> tuple[int, int, int]:
        """The pair of the smallest estimate, and how many other pairs could truly be as close."""
        lower, upper = (each[self.pairs] for each in self.together)
        best = int(np.argmin(self.squared[self.pairs]))
        rivals = int((lower <= upper[best]).sum()) - 1
        return int(self.pairs[0][best]), int(self.pairs[1][best]), rivals

    def farthest(self) -> tuple[int, int, int]:
        """The pair of the largest estimate, and how many other pairs could truly be as far apart."""
        lower, upper = (each[self.pairs] for each in self.together)
        best = int(np.argmax(self.squared[self.pairs]))
        rivals = int((upper >= lower[best]).sum()) - 1
        return int(self.pairs[0][best]), int(self.pairs[1][best]), rivals


def findings_of(sketches: Sketches, *, level: float, simultaneous: bool, by: str) -> Findings:
    """All numbers of a report."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    if not 1 <= len(sketches) <= MOST_PARTIES:
        raise ParameterError(
            f"sketches must be 1 to {MOST_PARTIES} rows to report, got {len(sketches)}; choose rows, or add groups up"
        )
    if not isinstance(simultaneous, bool):
        raise ParameterError("simultaneous must be True or False, got something else")
    estimate = squared_measure(by)(sketches, None)
    if not np.isfinite(estimate.value).all():
        raise ParameterError("estimates must be finite to report, got infinity or NaN")
    lowest, highest = estimate.interval(level, simultaneous=True)
    together = np.sqrt(lowest), np.sqrt(highest)
    lower, upper = together
    if not simultaneous:
        low, high = estimate.interval(level)
        lower, upper = np.sqrt(low), np.sqrt(high)
    several = len(sketches) > 1
    transform = sketches.transform
    return Findings(
        _told_apart(sketches.labels),
        level,
        simultaneous,
        by,
        estimate.value,
        lower,
        upper,
        together,
        cluster(sketches, level=level, by=by) if several else None,
        plane_of(
            estimate.value,
            noise_of_rows(sketches, by),
            transform.sketch_dim,
            transform.projection_variance,
            level,
        )
        if several
        else None,
        outliers(sketches, level, by=by) if len(sketches) > 2 else None,
        sketches.in_clear,
    )


def _told_apart(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Labels, with the number of the row behind those that occur more than once."""
    often = Counter(labels)
    return tuple(
        f"{label} (row {number})" if often[label] > 1 else label for number, label in enumerate(labels, 1)
    )


# What the page's script reads: JSON that cannot end its own element, and numbers as base64 of little-endian float32.


# None of these is needed in JSON, and without them no element can end or begin inside of it.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def numbers(findings: Findings) -> str:
    """The numbers of a page, as JSON that is safe inside a script element."""
    rows, columns = findings.pairs
    signed = np.sign(findings.squared) * np.sqrt(np.abs(findings.squared))
    low, high = color_ends(findings)
    document: dict[str, Any] = {
        "labels": list(findings.labels),
        "order": list(findings.clustering.order) if findings.clustering else [0],
        "clear": [number for number, clear in enumerate(findings.in_clear) if clear],
        "decimals": findings.style.decimals,
        "low": low,
        "high": high,
        "longest": longest(findings, findings.pairs),
        "first": findings.closest()[0] if len(rows) else 0,
        "value": _packed(signed[rows, columns]),
        "lower": _packed(findings.lower[rows, columns]),
        "upper": _packed(findings.upper[rows, columns]),
    }
    return safe_json(document)


def safe_json(document: Any) -> str:
    """JSON without any character that HTML could read."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_UNSAFE.get(letter, letter) for letter in text)


def color_ends(findings: Findings) -> tuple[float, float]:
    """The distances at both ends of the colors: of all resolved pairs, unless few are far beyond the rest."""
    distances, resolved = findings.distance[findings.pairs], findings.resolved[findings.pairs]
    shown = distances[resolved] if resolved.any() else distances
    if not len(shown):
        return 0.0, 1.0
    high = min(float(shown.max()), 1.5 * float(np.quantile(shown, 0.95)))
    return float(shown.min()), high


def longest(findings: Findings, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> float:
    """The distance at the right end of these pairs' error bars: the largest finite upper end."""
    upper, distance = findings.upper[pairs], findings.distance[pairs]
    finite = upper[np.isfinite(upper)]
    return float(max(finite.max(initial=0.0), distance.max(initial=0.0))) or 1.0


def _packed(values: Matrix) -> str:
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype("<f4")
    # What is above 0 stays above 0: it is what tells resolved pairs from others.
    small[(values > 0) & (small == 0)] = np.finfo(np.float32).tiny
    return base64.b64encode(small.tobytes()).decode("ascii")
