"""Are two parties alike? With the error rate of the answer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from armslength import plots
from armslength.answers.pairs import Answer, checked_sketches, pair_estimator
from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.estimates.distances import as_distances, is_clear
from armslength.estimates.intervals import Level
from armslength.sketches.sketches import Sketches, check_same_space


@dataclass(frozen=True, repr=False)
class Alike(Answer):
    """Whether two parties' distance is within a limit, in data units.

    Attributes:
        verdict: "alike", "different" or "undecided".
        labels: The two parties.
        interval: (lower, upper): each end holds by itself with probability at least `level`.
        within: The limit.
        distance: The estimated distance.
        level: A wrong verdict comes with probability at most 1 − level, whatever the true distance is.
    """

    verdict: str
    labels: tuple[str, str]
    interval: tuple[float, float]
    within: float
    distance: float

    @property
    def in_clear(self) -> bool:
        """Whether data without noise is part of it."""
        return is_clear(self.note)

    def to_arrow(self) -> pa.Table:
        """One line: left, right, verdict, within, distance, lower, upper, level, in_clear."""
        (left, right), (lower, upper) = self.labels, self.interval
        texts = {"left": [left], "right": [right], "verdict": [self.verdict]}
        numbers = {"within": self.within, "distance": self.distance, "lower": lower, "upper": upper}
        numbers |= {"level": self.level}
        return self._table(texts | {name: np.array([value]) for name, value in numbers.items()})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the distance and the limit."""
        middle, lower, upper = (np.array([number]) for number in (self.distance, *self.interval))
        is_decided, label = np.array([self.verdict != "undecided"]), f"distance{self._unit}"
        marks, words = [(self.within, "limit for being alike")], (self.verdict, "undecided")
        return plots.forest(
            [self.labels], (middle, lower, upper), is_decided, label, ax, marks=marks, words=words
        )

    def __str__(self) -> str:
        return f"{self._title()} ({self.note})" if self.note else self._title()

    def _title(self) -> str:
        (a, b), (lower, upper) = self.labels, self.interval
        limit, rate = f"{self.within:.6g}", f"wrong with probability at most {1 - self.level:.4g}"
        most = f"at most {upper:.6g}" if np.isfinite(upper) else "has no known upper limit"
        return {
            "alike": f"{a} and {b} are alike: their distance is {most}, within {limit}; saying so is {rate}",
            "different": f"{a} and {b} are not alike: their distance is at least {lower:.6g}, more than {limit}; saying so is {rate}",
            "undecided": f"{a} and {b} may be alike or not: their distance is at least {lower:.6g} and {most}; the limit is {limit}",
        }[self.verdict]


def alike(
    a: Sketches,
    b: Sketches,
    *,
    within: float,
    level: float = 0.95,
    pairs: int = 1,
    by: str = "size",
    beyond_chance: bool = False,
    method: str = "asymptotic",
) -> Alike:
    """Whether the distance of two parties is at most `within`: "alike", "different" or "undecided".

    "alike" if the upper end is at most `within`, "different" if the lower end is above it; each end is one-sided at the
    level. Only one of the two can be wrong for a given truth, so a wrong verdict has probability at most 1 − level.

    Args:
        a: One row.
        b: One row.
        within: The largest distance of parties that are alike, in data units (for shapes: of shares).
        level: 1 − the probability of a wrong verdict; above one half.
        pairs: How many such verdicts the level holds for together (Bonferroni).
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
    """
    for name, row in {"a": a, "b": b}.items():
        if len(checked_sketches(name, row, 1)) != 1:
            raise ParameterError(f"{name} must be one row, got {len(row)}; choose one by its label", name)
    check_same_space((*a.protocols, *b.protocols))
    limit = number("within", within, above=-5e-324, at_most=1e300)
    # At or below one half, any verdict would do.
    confidence = number("level", level, above=0.5, at_most=1.0 - 1e-12)
    count = integer("pairs", pairs, at_least=1, at_most=10**12)
    estimate = as_distances(pair_estimator(by, beyond_chance=beyond_chance)(a, b))
    # Each end of an asymptotic interval of sizes holds by itself, so both may miss at the full rate. Chebyshev's bound
    # is on both ends together, and so is the split of the error for shapes.
    both_ends = 1 - 2 * (1 - confidence) if (method, by) == ("asymptotic", "size") else confidence
    lower, upper = (float(end[0, 0]) for end in estimate.rule.interval(Level.of(both_ends, method, count)))
    verdict = "alike" if upper <= limit else "different" if lower > limit else "undecided"
    answer = verdict, (a.labels[0], b.labels[0]), (lower, upper), limit, float(estimate)
    return Alike(*answer, level=confidence, by=by, beyond_chance=beyond_chance, note=estimate.note)
