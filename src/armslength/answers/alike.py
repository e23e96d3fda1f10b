"""Are two parties alike, and which of two is closer? With the error rate of the answer."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from armslength import plots
from armslength.answers.pairs import Answer, checked_sketches, pair_estimator
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import as_distances, clear_note, inner_products, is_clear
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level
from armslength.sketches.sketches import Sketches, check_same_space


@dataclass(frozen=True, repr=False)
class Verdict(Answer):
    """What the answers of `alike` and `closer` have in common: a verdict, its parties and an interval."""

    verdict: str
    labels: tuple[str, ...]
    interval: tuple[float, float]

    @property
    def in_clear(self) -> bool:
        """Whether data without noise is part of it."""
        return is_clear(self.note)

    def _line(self, names: tuple[str, ...], numbers: dict[str, float], **metadata: str) -> pa.Table:
        """One line: the parties, the verdict, numbers, lower, upper, level, in_clear."""
        texts = dict(zip((*names, "verdict"), (*self.labels, self.verdict), strict=True))
        numbers |= {"lower": self.interval[0], "upper": self.interval[1], "level": self.level}
        cells = {**{k: [v] for k, v in texts.items()}, **{k: np.array([v]) for k, v in numbers.items()}}
        return self._table(cells, **metadata)

    def _forest(self, name: Any, value: float, label: str, ax: Any, **style: Any) -> Any:
        """Matplotlib axes with the interval."""
        middle, lower, upper = (np.array([number]) for number in (value, *self.interval))
        is_decided = np.array([self.verdict != "undecided"])
        return plots.forest([name], (middle, lower, upper), is_decided, label, ax, **style)

    def __str__(self) -> str:
        return f"{self._title()} ({self.note})" if self.note else self._title()


@dataclass(frozen=True, repr=False)
class Alike(Verdict):
    """Whether two parties' distance is within a limit, in data units.

    Attributes:
        verdict: "alike", "different" or "undecided".
        labels: The two parties.
        interval: (lower, upper): each end holds by itself with probability at least `level`.
        within: The limit.
        distance: The estimated distance.
        level: A wrong verdict comes with probability at most 1 − level, whatever the true distance is.
    """

    within: float
    distance: float

    def to_arrow(self) -> pa.Table:
        """One line: left, right, verdict, within, distance, lower, upper, level, in_clear."""
        return self._line(("left", "right"), {"within": self.within, "distance": self.distance})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the distance and the limit."""
        marks, words = [(self.within, "limit for being alike")], (self.verdict, "undecided")
        return self._forest(self.labels, self.distance, f"distance{self._unit}", ax, marks=marks, words=words)

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
class Closer(Verdict):
    """Which of two parties a third one is closer to.

    Attributes:
        verdict: "b", "c" or "undecided".
        labels: The parties a, b and c.
        interval: (lower, upper) of the difference. With "guaranteed" it holds at `level`; with "asymptotic" its ends
            are made for the comparison with 0, and miss the difference itself more often.
        difference: The estimate of ‖a−b‖² − ‖a−c‖², in squared data units: negative if b is closer.
        method: "guaranteed" is proven for all data; "asymptotic" is approximate.
        level: A wrong verdict comes with probability at most 1 − level, whatever the truth is.
    """

    difference: float
    method: str

    def to_arrow(self) -> pa.Table:
        """One line: a, b, c, verdict, difference, lower, upper, level, in_clear."""
        return self._line(("a", "b", "c"), {"difference": self.difference}, method=self.method)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of the difference: left of 0, b is closer; right of 0, c is."""
        b, c = map(plots.short_name, self.labels[1:])
        label = f"closer to {b} ← 0 → closer to {c}\n(difference of squared distances, squared data units)"
        words = (f"closer to {b if self.verdict == 'b' else c}", "undecided")
        return self._forest(self.labels[0], self.difference, label, ax, words=words)

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
    labels = _one_row_each(a=a, b=b)
    limit = number("within", within, above=-5e-324, at_most=1e300)
    confidence = _checked_level(level)
    count = integer("pairs", pairs, at_least=1, at_most=10**12)
    estimate = as_distances(pair_estimator(by, beyond_chance=beyond_chance)(a, b))
    # Each end of an asymptotic interval of sizes holds by itself, so both may miss at the full rate. Chebyshev's bound
    # is on both ends together, and so is the split of the error for shapes.
    both_ends = 1 - 2 * (1 - confidence) if (method, by) == ("asymptotic", "size") else confidence
    lower, upper = (float(end[0, 0]) for end in estimate.rule.interval(Level.of(both_ends, method, count)))
    verdict = "alike" if upper <= limit else "different" if lower > limit else "undecided"
    answer = verdict, labels, (lower, upper), limit, float(estimate)
    return Alike(*answer, level=confidence, by=by, beyond_chance=beyond_chance, note=estimate.note)


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
    labels = _one_row_each(a=a, b=b, c=c)
    confidence = _checked_level(level)
    one_of("method", method, METHODS)
    estimator = pair_estimator(by, beyond_chance=beyond_chance)
    note = clear_note(a, b, c)
    if method == "guaranteed" or by == "shape":
        # An end is wrong only if one of the two intervals is. Chebyshev bounds both ends of one together.
        to_b, to_c = (estimator(a, other) for other in (b, c))
        value = float(to_b) - float(to_c)
        level_of_each = 1 - (1 - confidence) / 2
        (b_low, b_high), (c_low, c_high) = (to.interval(level_of_each, method=method) for to in (to_b, to_c))
        lower, upper = float((b_low - c_high)[0, 0]), float((b_high - c_low)[0, 0])
        note = "; ".join(dict.fromkeys(filter(None, f"{to_b.note}; {to_c.note}".split("; "))))
    else:
        # With p = c − b and q = 2a − b − c it is ⟨p, q⟩, and p and q are sketches like any other.
        p, q = c - b, 2 * a - b - c
        product = inner_products(p, q)
        value = float(product.value[0, 0])
        # Student's t for the k products of coordinates: made for the comparison with 0.
        reach = float(stdtrit(a.transform.sketch_dim - 1, confidence)) * _std_error(p, q, product)
        lower, upper = value - reach, value + reach
    verdict = "b" if upper < 0 else "c" if lower > 0 else "undecided"
    answer = verdict, labels, (lower, upper), value, method
    return Closer(*answer, level=confidence, by=by, beyond_chance=beyond_chance, note=note)


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
    products = np.prod([side.values[0].astype(np.float64) for side in (p, q)], axis=0)
    by_sample = k * float(np.var(products, ddof=1)) * protocol.unit_squared**2
    return math.sqrt(max(by_formula, by_sample))


def _one_row_each(**rows: Sketches) -> tuple[str, ...]:
    """The labels of arguments, if each is one row, all of one space."""
    for name, row in rows.items():
        if len(checked_sketches(name, row, 1)) != 1:
            raise ParameterError(f"{name} must be one row, got {len(row)}; choose one by its label")
    check_same_space([protocol for row in rows.values() for protocol in row.protocols])
    return tuple(row.labels[0] for row in rows.values())


def _checked_level(level: float) -> float:
    """The level, if above one half: at or below it, any verdict would do."""
    return number("level", level, above=0.5, at_most=1.0 - 1e-12)
