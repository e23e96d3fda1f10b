"""Are two parties alike, and which of two is closer? With the error rate of the answer."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from armslength import plots
from armslength.answers.pairs import Answer, pair_estimator
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import as_distances, checked_pair, clear_note, is_clear
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.products import inner_products
from armslength.results import Result
from armslength.sketches.sketches import Sketches


@dataclass(frozen=True, repr=False)
class Alike(Answer):
    """Whether two parties' distance is within a limit, in data units.

    Attributes:
        verdict: "alike", "different" or "undecided".
        labels: The two parties.
        within: The limit.
        distance: The estimated distance.
        interval: (lower, upper): each end holds by itself with probability at least `level`.
        level: A wrong verdict comes with probability at most 1 − level, whatever the true distance is.
        in_clear: Whether data without noise is part of it.
    """

    verdict: str
    labels: tuple[str, str]
    within: float
    distance: float
    interval: tuple[float, float]
    in_clear: bool

    def to_arrow(self) -> pa.Table:
        """One line: left, right, verdict, within, distance, lower, upper, level, in_clear."""
        (left, right), (lower, upper) = self.labels, self.interval
        line: dict[str, Any] = {"left": left, "right": right, "verdict": self.verdict, "within": self.within}
        line |= {"distance": self.distance, "lower": lower, "upper": upper}
        line |= {"level": self.level, "in_clear": self.in_clear}
        return pa.Table.from_pylist([line], metadata={"by": self.by, "note": self.note})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the distance and the limit."""
        value, lower, upper = np.array([[self.distance], *([end] for end in self.interval)])
        return plots.forest(
            [self.labels],
            (value, lower, upper),
            np.array([self.verdict != "undecided"]),
            f"distance{self._unit}",
            ax,
            marks=[(self.within, "limit for being alike")],
            words=(self.verdict, "undecided"),
        )

    def __str__(self) -> str:
        return f"{self._title()} ({self.note})" if self.note else self._title()

    def _title(self) -> str:
        (a, b), (lower, upper) = self.labels, self.interval
        limit, rate = f"{self.within:.6g}", f"{1 - self.level:.4g}"
        verdict = {
            "alike": f"{a} and {b} are alike: their distance is at most {upper:.6g}, within {limit}",
            "different": f"{a} and {b} are not alike: their distance is at least {lower:.6g}, more than {limit}",
            "undecided": f"{a} and {b} may be alike or not: their distance is between {lower:.6g} and {upper:.6g}, "
            f"and {limit} lies between",
        }[self.verdict]
        return f"{verdict}; saying so is wrong with probability at most {rate}"


@dataclass(frozen=True, repr=False)
class Closer(Result):
    """Which of two parties a third one is closer to.

    Attributes:
        verdict: "b", "c" or "undecided".
        labels: The parties a, b and c.
        difference: The estimate of ‖a−b‖² − ‖a−c‖², in squared data units: negative if b is closer.
        interval: (lower, upper) of the difference. With "guaranteed" it holds at `level`; with "asymptotic" its ends
            are made for the comparison with 0, and miss the difference itself more often.
        level: A wrong verdict comes with probability at most 1 − level, whatever the truth is.
        method: "guaranteed" is proven for all data; "asymptotic" is approximate.
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
        line: dict[str, Any] = {**dict(zip("abc", self.labels, strict=True)), "verdict": self.verdict}
        line |= {"difference": self.difference, "lower": lower, "upper": upper}
        line |= {"level": self.level, "in_clear": is_clear(self.note)}
        return pa.Table.from_pylist([line], metadata={"method": self.method, "note": self.note})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the difference: left of 0, b is closer; right of 0, c is."""
        b, c = map(plots.short_name, self.labels[1:])
        value, lower, upper = np.array([[self.difference], *([end] for end in self.interval)])
        return plots.forest(
            [self.labels[0]],
            (value, lower, upper),
            np.array([self.verdict != "undecided"]),
            f"closer to {b} ← 0 → closer to {c}\n(difference of squared distances, squared data units)",
            ax,
            words=(f"closer to {b if self.verdict == 'b' else c}", "undecided"),
        )

    def __str__(self) -> str:
        return f"{self._title()} ({self.note})" if self.note else self._title()

    def _title(self) -> str:
        a, b, c = self.labels
        verdict = {
            "b": f"{a} is closer to {b} than to {c}",
            "c": f"{a} is closer to {c} than to {b}",
            "undecided": f"whether {a} is closer to {b} or to {c} cannot be told",
        }[self.verdict]
        about = "" if self.method == "guaranteed" else " (approximate)"
        return f"{verdict}; saying so is wrong with probability at most {1 - self.level:.4g}{about}"


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
    for name, row in (("a", a), ("b", b)):
        one_row(name, row)
    checked_pair(a, b)
    limit = number("within", within, above=-5e-324, at_most=1e300)
    sure = one_sided(level)
    count = integer("pairs", pairs, at_least=1, at_most=10**12)
    estimate = as_distances(pair_estimator(by, beyond_chance=beyond_chance)(a, b))
    # Each end of an asymptotic interval of sizes holds by itself, so both may miss at the full rate. Chebyshev's bound
    # is on both ends together, and so is the split of the error for shapes.
    confidence = 1 - 2 * (1 - sure) if (method, by) == ("asymptotic", "size") else sure
    lower, upper = (float(end[0, 0]) for end in estimate.rule.interval(Level.of(confidence, method, count)))
    verdict = "alike" if upper <= limit else "different" if lower > limit else "undecided"
    labels = (a.labels[0], b.labels[0])
    clear = any(map(any, estimate.in_clear))
    answer = verdict, labels, limit, float(estimate), (lower, upper), clear
    return Alike(*answer, level=sure, by=by, beyond_chance=beyond_chance, note=estimate.note)


def closer(
    a: Sketches,
    b: Sketches,
    c: Sketches,
    level: float = 0.95,
    *,
    by: str = "size",
    beyond_chance: bool = False,
    method: str = "asymptotic",
) -> Closer:
    """Whether a is closer to b than to c: "b", "c" or "undecided".

    By size, the difference of the two squared distances is estimated as one quantity, since a's noise is part of both; two
    intervals, subtracted, would be wider. A wrong verdict has probability at most 1 − level.

    Args:
        a: One row.
        b: One row.
        c: One row.
        level: 1 − the probability of a wrong verdict; above one half.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic", approximate, or "guaranteed", proven for all data.
    """
    for name, row in (("a", a), ("b", b), ("c", c)):
        one_row(name, row)
    checked_pair(a, b)
    checked_pair(a, c)
    sure = one_sided(level)
    one_of("method", method, METHODS)
    estimator = pair_estimator(by, beyond_chance=beyond_chance)
    note = clear_note(a, b, c)
    if method == "guaranteed" or by == "shape":
        # An end is wrong only if one of the two intervals is. Chebyshev bounds both ends of one together.
        to_b, to_c = (estimator(a, other) for other in (b, c))
        value = float(to_b) - float(to_c)
        (b_low, b_high), (c_low, c_high) = (
            each.interval(1 - (1 - sure) / 2, method=method) for each in (to_b, to_c)
        )
        lower, upper = float((b_low - c_high)[0, 0]), float((b_high - c_low)[0, 0])
        note = "; ".join(dict.fromkeys(filter(None, (*to_b.note.split("; "), *to_c.note.split("; ")))))
    else:
        # With p = c − b and q = 2a − b − c it is ⟨p, q⟩, and p and q are sketches like any other.
        p, q = c - b, 2 * a - b - c
        product = inner_products(p, q)
        value = float(product.value[0, 0])
        # Student's t for the k products of coordinates: made for the comparison with 0.
        reach = float(stdtrit(a.transform.sketch_dim - 1, sure)) * _std_error(p, q, product)
        lower, upper = value - reach, value + reach
    verdict = "b" if upper < 0 else "c" if lower > 0 else "undecided"
    labels = (a.labels[0], b.labels[0], c.labels[0])
    return Closer(verdict, labels, value, (lower, upper), sure, method, note)


def _std_error(p: Sketches, q: Sketches, product: Estimate) -> float:
    """Of ⟨p, q⟩: what its k products show, or the formula at the estimates, whichever is larger.

    The products are as good as independent, except where nothing is projected: those have only the formula. Noise on
    the input makes them depend on each other, which the formula knows.
    """
    protocol = p.protocols[0]
    by_formula = float(product.variance[0, 0])
    k = protocol.transform.sketch_dim
    if protocol.transform.projection_variance == 0 or k < 2:
        return math.sqrt(by_formula)
    products = np.prod([side.values[0].astype(np.float64) + side.offsets[0] for side in (p, q)], axis=0)
    by_sample = k * float(np.var(products, ddof=1)) * protocol.unit_squared**2
    return math.sqrt(max(by_formula, by_sample))


def one_row(name: str, sketches: Sketches) -> None:
    """Raises an error unless it is one row."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"{name} must be al.Sketches of one row, got {type(sketches).__name__}")
    if len(sketches) != 1:
        raise ParameterError(f"{name} must be one row, got {len(sketches)}; choose one by its label")


def one_sided(level: float) -> float:
    """The level, if above one half: at or below it, any verdict would do."""
    return number("level", level, above=0.5, at_most=1.0 - 1e-12)
