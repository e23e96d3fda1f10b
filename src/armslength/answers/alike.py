"""Are two parties alike, and which of two is closer? Answers with the error rate of giving them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from armslength import plots
from armslength.answers.pairs import pair_estimator, unit_of
from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.estimates.distances import as_distances, checked_pair, is_clear
from armslength.estimates.products import contrast
from armslength.results import Result
from armslength.sketches.sketches import Sketches

SUREST = 1.0 - 1e-12


@dataclass(frozen=True, repr=False)
class Alike(Result):
    """Whether two parties' distance is within a limit, in data units.

    Attributes:
        verdict: "alike", "different" or "undecided".
        labels: The two parties.
        within: The limit.
        distance: The estimated distance.
        interval: (lower, upper): each end holds by itself with probability at least `level`.
        level: A wrong verdict comes with probability at most 1 − level, whatever the true distance is.
        by: "size" or "shape".
        in_clear: Whether data without noise is part of it.
        note: What must be known to read it; empty if nothing.
    """

    verdict: str
    labels: tuple[str, str]
    within: float
    distance: float
    interval: tuple[float, float]
    level: float
    by: str
    in_clear: bool
    note: str

    def to_arrow(self) -> pa.Table:
        """One line: left, right, verdict, within, distance, lower, upper, level, in_clear."""
        left, right = self.labels
        lower, upper = self.interval
        line = {
            "left": left,
            "right": right,
            "verdict": self.verdict,
            "within": self.within,
            "distance": self.distance,
            "lower": lower,
            "upper": upper,
            "level": self.level,
            "in_clear": self.in_clear,
        }
        return pa.Table.from_pylist([line], metadata={"by": self.by, "note": self.note})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the distance and the limit."""
        return plots.forest(
            [self.labels],
            _arrays(self.distance, self.interval),
            np.array([self.verdict != "undecided"]),
            f"distance{unit_of(self.by)}",
            ax,
            marks=[(self.within, "limit for being alike")],
            words=(self.verdict, "undecided"),
        )

    def _title(self) -> str:
        return str(self)

    def __str__(self) -> str:
        (a, b), (lower, upper) = self.labels, self.interval
        limit, rate = f"{self.within:.6g}", f"{1 - self.level:.4g}"
        verdict = {
            "alike": f"{a} and {b} are alike: their distance is at most {upper:.6g}, within {limit}",
            "different": f"{a} and {b} are not alike: their distance is at least {lower:.6g}, more than {limit}",
            "undecided": f"{a} and {b} may be alike or not: their distance is between {lower:.6g} and {upper:.6g}, "
            f"and {limit} lies between",
        }[self.verdict]
        note = f" ({self.note})" if self.note else ""
        return f"{verdict}; saying so is wrong with probability at most {rate}{note}"


@dataclass(frozen=True, repr=False)
class Closer(Result):
    """Which of two parties a third one is closer to.

    Attributes:
        verdict: "b", "c" or "undecided".
        labels: The parties a, b and c.
        difference: The estimate of ‖a−b‖² − ‖a−c‖², in squared data units: negative if b is closer.
        interval: (lower, upper) of the difference. With "guaranteed" it holds at `level`; with "spread" its ends are made for the
            comparison with 0, and miss the difference itself more often.
        level: A wrong verdict comes with probability at most 1 − level, whatever the truth is.
        method: "guaranteed" is proven for all data; "spread" is approximate.
        note: What must be known to read it; empty if nothing.
    """

    verdict: str
    labels: tuple[str, str, str]
    difference: float
    interval: tuple[float, float]
    level: float
    method: str
    note: str

    def to_arrow(self) -> pa.Table:
        """One line: a, b, c, verdict, difference, lower, upper, level, in_clear."""
        lower, upper = self.interval
        line = {
            **dict(zip("abc", self.labels, strict=True)),
            "verdict": self.verdict,
            "difference": self.difference,
            "lower": lower,
            "upper": upper,
            "level": self.level,
            "in_clear": is_clear(self.note),
        }
        return pa.Table.from_pylist([line], metadata={"method": self.method, "note": self.note})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the difference: left of 0, b is closer; right of 0, c is."""
        b, c = map(plots.short_name, self.labels[1:])
        return plots.forest(
            [self.labels[0]],
            _arrays(self.difference, self.interval),
            np.array([self.verdict != "undecided"]),
            f"closer to {b} ← 0 → closer to {c}\n(difference of squared distances, squared data units)",
            ax,
            words=(f"closer to {b if self.verdict == 'b' else c}", "undecided"),
        )

    def _title(self) -> str:
        return str(self)

    def __str__(self) -> str:
        a, b, c = self.labels
        verdict = {
            "b": f"{a} is closer to {b} than to {c}",
            "c": f"{a} is closer to {c} than to {b}",
            "undecided": f"whether {a} is closer to {b} or to {c} cannot be told",
        }[self.verdict]
        about = "" if self.method == "guaranteed" else " (approximate)"
        note = f" ({self.note})" if self.note else ""
        return f"{verdict}; saying so is wrong with probability at most {1 - self.level:.4g}{about}{note}"


def alike(
    a: Sketches,
    b: Sketches,
    *,
    within: float,
    level: float = 0.95,
    pairs: int = 1,
    by: str = "size",
    method: str = "spread",
) -> Alike:
    """Whether the distance of two parties is at most `within`: "alike", "different" or "undecided".

    "alike" is said only if the upper end is at most `within`, "different" only if the lower end is above it; each end is
    one-sided at the level. Only one of the two can be wrong for a given truth, so a wrong verdict has probability at most
    1 − level in all.

    Args:
        a: One row.
        b: One row.
        within: How far apart two parties may be that are called alike, in data units (for shapes: of shares).
        level: 1 − the probability of a wrong verdict; above one half.
        pairs: How many such questions are asked together: the level then holds for all of their verdicts (Bonferroni).
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        method: "spread" or "guaranteed", as for `Estimate.interval`.
    """
    for name, side in (("a", a), ("b", b)):
        one_row(name, side)
    checked_pair(a, b)
    limit = number("within", within, above=-5e-324, at_most=1e300)
    sure = one_sided(level)
    count = integer("pairs", pairs, at_least=1, at_most=10**12)
    estimate = as_distances(pair_estimator(by)(a, b))
    # Each end of a spread interval of sizes holds by itself. Chebyshev's bound is on both ends together, and so is the split
    # of the error for shapes: there the whole error goes to the two.
    asked = two_sided(sure) if (method, by) == ("spread", "size") else sure
    lower, upper = (float(end[0, 0]) for end in estimate.interval(asked, method=method, comparisons=count))
    verdict = "alike" if upper <= limit else "different" if lower > limit else "undecided"
    labels = (a.labels[0], b.labels[0])
    clear = any(map(any, estimate.in_clear))
    return Alike(verdict, labels, limit, float(estimate), (lower, upper), sure, by, clear, estimate.note)


def closer(a: Sketches, b: Sketches, c: Sketches, level: float = 0.95, *, method: str = "spread") -> Closer:
    """Whether a is closer to b than to c: "b", "c" or "undecided".

    The difference of the two squared distances is estimated as one quantity, which shares the noise of a; two
    intervals, subtracted, would be wider. A wrong verdict has probability at most 1 − level.

    Args:
        a: One row.
        b: One row.
        c: One row.
        level: 1 − the probability of a wrong verdict; above one half.
        method: "spread", approximate, or "guaranteed", proven for all data.
    """
    for name, row in (("a", a), ("b", b), ("c", c)):
        one_row(name, row)
    checked_pair(a, b)
    checked_pair(a, c)
    sure = one_sided(level)
    difference = contrast(a, b, c, sure, method)
    verdict = "b" if difference.upper < 0 else "c" if difference.lower > 0 else "undecided"
    labels = (a.labels[0], b.labels[0], c.labels[0])
    ends = difference.lower, difference.upper
    return Closer(verdict, labels, difference.value, ends, sure, method, difference.note)


def one_row(name: str, sketches: Sketches) -> None:
    """Refuses what is not sketches of one row."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"{name} must be al.Sketches of one row, got {type(sketches).__name__}")
    if len(sketches) != 1:
        raise ParameterError(f"{name} must be one row, got {len(sketches)}; choose one by its label")


def one_sided(level: float) -> float:
    """The level of a one-sided statement, if it is one: at one half and below, saying anything would do."""
    return number("level", level, above=0.5, at_most=SUREST)


def two_sided(one_sided_level: float) -> float:
    """The level of an interval each of whose ends holds by itself at the one-sided level."""
    return 1 - 2 * (1 - one_sided_level)


def _arrays(value: float, interval: tuple[float, float]) -> tuple[Any, Any, Any]:
    """A value and its ends as arrays of one number each."""
    lower, upper = (np.array([end]) for end in interval)
    return np.array([value]), lower, upper
