"""Quantiles of the number of items per person, from a noisy histogram over buckets 1, 2, 3 to 4, 5 to 8, and so on.

Guarantee: with probability `level`, up to 0.1 percent, all intervals hold together: those of every quantile and of every share.
They rest on the law of the noise alone, whatever the counts are.
Reference: docs/estimates.md, items per person.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import number
from armslength.laws import Law
from armslength.results import Result

Floats = NDArray[np.float64]

LARGEST_ITEMS = 1024
# The last bucket, above all edges, is open.
EDGES = tuple(2**power for power in range(LARGEST_ITEMS.bit_length()))
QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99)
_LEAST_PEOPLE = 10  # times the scale of the noise, above and below a quantile that is trusted
_TRIALS = 100_000
_STEPS = 1000  # of a share between 0 and 1


def bucket_counts(totals: Floats) -> NDArray[np.int64]:
    """How many persons are in each bucket, given how many items each has; nobody with none."""
    buckets = np.searchsorted(EDGES, totals[totals > 0])
    return np.bincount(buckets, minlength=len(EDGES) + 1).astype(np.int64)


class ContributionQuantiles(Result):
    """How many items people have: quantiles as upper edges of buckets, with intervals, from a released histogram.

    Args:
        counts: The noisy number of people in each bucket, the open one last.
        law: The law of the noise of each.
        level: The confidence level of all intervals together.

    Attributes:
        people: The noisy number of people.
    """

    def __init__(self, counts: Sequence[int], law: Law, level: float = 0.95) -> None:
        self.counts, self.law = np.array(counts, dtype=np.int64), law
        self.level = number("level", level, above=0.5, at_most=0.9999)
        self.people = int(self.counts.sum())
        self._below = np.cumsum(self.counts)[:-1]  # with at most each edge
        self._limit = _largest_deviation(law, len(self.counts), self.level) * math.sqrt(law.second_moment)

    def is_resolved(self, quantile: float) -> bool:
        """Whether this quantile can be trusted: at least 10 scales of noise of people lie on each side of it.

        Only the noisy number of people decides. For 90 percent it is n·ε ≥ 100 times the sensitivity.
        """
        return self.people * min(quantile, 1 - quantile) >= _LEAST_PEOPLE * self.law.scale

    def to_arrow(self) -> pa.Table:
        """A row for each quantile: the upper edge of its bucket, the ends of its interval, and whether it can be trusted."""
        edges = np.array([*EDGES, math.inf])
        buckets = np.array([self._quantile(quantile) for quantile in QUANTILES])
        items, lower, upper = edges[buckets].T
        columns = {"quantile": QUANTILES, "items": items, "lower": lower, "upper": upper}
        columns["resolved"] = list(map(self.is_resolved, QUANTILES))
        return pa.table(columns, metadata={"people": str(self.people), "level": str(self.level)})

    def shares(self) -> pa.Table:
        """A row for each edge: the share of people with at most so many items, who would be counted in full, and its interval."""
        grid = np.linspace(0, 1, _STEPS + 1)
        excess, width = self._excess(grid)
        is_inside = np.abs(excess) <= width
        first = np.maximum(0, is_inside.argmax(axis=0) - 1)
        last = np.minimum(_STEPS, _STEPS + 1 - is_inside[::-1].argmax(axis=0))
        # true shares rise with the edge, so the interval of one edge holds for those beside it
        lower = np.maximum.accumulate(np.where(is_inside.any(axis=0), grid[first], 0))
        upper = np.minimum.accumulate(np.where(is_inside.any(axis=0), grid[last], 1)[::-1])[::-1]
        share = np.maximum.accumulate(np.clip(self._below / max(1, self.people), 0, 1))
        columns = {"items": EDGES, "share": share, "lower": lower, "upper": np.maximum(lower, upper)}
        return pa.table(columns)

    def _excess(self, q: Floats) -> tuple[Floats, Floats]:
        """(people at most at an edge) − q·(all people), noisy: for each q a row, for each edge a column; and its largest error.

        The noise in it is (1−q)·(noise below the edge) − q·(noise above it).
        """
        excess = self._below.astype(np.float64) - np.multiply.outer(q, np.float64(self.people))[:, None]
        below = np.arange(1, len(self.counts))
        noises = np.multiply.outer((1 - q) ** 2, below) + np.multiply.outer(q**2, len(self.counts) - below)
        return excess, self._limit * np.sqrt(noises)

    def _quantile(self, quantile: float) -> tuple[int, int, int]:
        """The buckets of the estimate and of both ends: the true excess rises with the edge, and the quantile is where it reaches 0."""
        excess, width = (row[0] for row in self._excess(np.array([quantile])))
        surely_below = np.flatnonzero(excess + width < 0)
        surely_above = np.flatnonzero(excess - width >= 0)
        lower = int(surely_below[-1]) + 1 if len(surely_below) else 0
        upper = int(surely_above[0]) if len(surely_above) else len(EDGES)
        estimate = int((excess < 0).sum())
        return min(max(estimate, lower), max(lower, upper)), lower, max(lower, upper)

    def _title(self) -> str:
        return f"Items per person of about {max(0, self.people):,} people, {100 * self.level:g} % for all lines together"


@lru_cache(maxsize=64)
def _largest_deviation(law: Law, buckets: int, level: float) -> float:
    """The `level` quantile of |(1−q)·A − q·B|/√((1−q)²·j + q²·(m−j)) over all edges j and all q from 0 to 1, by simulation.

    A and B are the noise of the j buckets below the edge and of the m − j above it, in standard deviations of one. For one edge the
    largest value over q is √(A²/j + B²/(m−j)) if the signs of A and B differ, else the larger one of |A|/√j and |B|/√(m−j).
    The draws are public: they know the law alone, and no released number has them in it.
    """
    generator = np.random.default_rng(18)
    success = -math.expm1(-1 / law.scale)
    # the difference of two geometric variables is discrete Laplace
    shape = (_TRIALS, buckets)
    draws = (generator.geometric(success, shape) - generator.geometric(success, shape)).astype(np.float64)
    sums = np.cumsum(draws / math.sqrt(law.second_moment), axis=1)
    j = np.arange(1, buckets)
    below, above = sums[:, :-1], sums[:, -1:] - sums[:, :-1]
    left, right = below**2 / j, above**2 / (buckets - j)
    squares = np.where(below * above < 0, left + right, np.maximum(left, right))
    return math.sqrt(float(np.quantile(squares.max(axis=1), level, method="higher")))
