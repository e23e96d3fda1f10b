"""All numbers of a report, computed once before anything is drawn."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.answers.cluster import Clusters, cluster_estimate
from armslength.answers.explain import DOUBTFUL, NEARLY_ALL, Explanation, explain_pairs, explainable
from armslength.answers.outliers import Outliers, estimate_outliers
from armslength.answers.pairs import best_question, pair_estimator
from armslength.answers.plane import Plane, plane_of
from armslength.errors import ParameterError
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Level
from armslength.estimates.prevalence import Prevalence
from armslength.estimates.shapes import ALIKE, Shape, shape_cosines
from armslength.estimates.totals import has_sure_total
from armslength.reporting.markup import NumberStyle
from armslength.sketches.sketches import Sketches, concat, sum_rows

MOST_PARTIES = 1000
NO_MARGINS = "no margins"
MOST_PAIRS_LISTED, MOST_GROUPS, MOST_OUTLIERS = 3, 8, 5

_MOST_NUMBERS = 600_000  # that the page holds for choices: 3 MB
_MOST_ALONE = 100  # parties that can be compared with all others: each takes a while

Matrix = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
Rows = tuple[int, ...]
Comparison = tuple[Rows, Rows]  # rows of the first side, rows of the second


@dataclass(frozen=True, eq=False)
class Reasons:
    """Prevalences of all sides that can be chosen, and the differences that the page shows without a choice.

    Attributes:
        sketches: All rows of the page.
        known: Those whose margins count the same as most; the others are left out of all sides.
        groups: The rows of each group.
        sides: (value, lower, upper) of every item group's prevalence in each party, then in each group: (n + g) x 3 x M. Up to 100 parties
            there are three of these: among parties and among groups; the same sides against all others; and all others of each side.
            NaN where people are too few, or there are no margins. None where these are too many numbers for a page.
        explanations: The differences between some sides; None where people are too few.
        beyond_chance: Whether they are about the populations behind the rows.
        choices: For how many comparisons the intervals hold together.
    """

    sketches: Sketches
    known: frozenset[int]
    groups: tuple[Rows, ...]
    sides: Matrix | None
    explanations: dict[Comparison, Explanation | None]
    beyond_chance: bool
    choices: int

    @property
    def names(self) -> tuple[str, ...]:
        """The item groups."""
        return self.sketches.rows(sorted(self.known)).margin_names

    def others(self, rows: Rows) -> Rows:
        """All rows but these."""
        return _others(rows, len(self.sketches))

    @property
    def has_alone(self) -> bool:
        """Whether a party or a group can be compared with all others."""
        return self.sides is not None and len(self.sides) > 1

    def near_limit(self) -> tuple[int, Rows]:
        """How many item groups of each person count, and the rows in which many people reach that; the margins themselves tell it."""
        numbers = sorted(self.known)
        rows = self.sketches.rows(numbers)
        protocol = rows.noises.terms(0)[0][0]
        bound, margins = protocol.margin_contribution, protocol.margins
        if rows.margins is None or margins is None or bound is None:
            return 0, ()
        if margins.rule == "record" and bound >= len(margins.columns):
            return bound, ()  # everybody has one value in each column, and all count
        counted, people = rows.margins[:, :-1].sum(axis=1), rows.margins[:, -1]
        near = np.flatnonzero((people > 0) & (counted > NEARLY_ALL * bound * people))
        return bound, tuple(numbers[row] for row in near.tolist())


def _others(rows: Rows, count: int) -> Rows:
    return tuple(row for row in range(count) if row not in set(rows))


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
    beyond_chance: bool = False  # whether it is about the populations behind the rows
    likeness: tuple[Matrix, ...] | None = None  # the cosines of the mixes, and their ends; None by size
    left_out: tuple[str, ...] = ()  # parties whose totals may be 0: they have no mix
    remedy: "Remedy | None" = None  # of pairs that are neither told apart nor alike; None by size
    sketches: Sketches | None = None  # of these parties; None explains nothing
    explains_populations: bool = True  # whether the reasons are about the populations behind the rows

    @cached_property
    def reasons(self) -> Reasons | str:
        """In what parties and groups differ, or why that is not known."""
        rows = self.sketches
        if rows is None or len(rows) < 2 or all(protocol.margins is None for protocol in rows.protocols):
            return NO_MARGINS
        return _reasons(self, rows)

    @cached_property
    def group_distances(self) -> tuple[Matrix, ...]:
        """Distances of the groups that can be compared: values, lower and upper ends; empty for fewer than two groups."""
        groups = self.groups[:MOST_GROUPS]
        if self.sketches is None or len(groups) < 2:
            return ()
        sums = concat([sum_rows(self.sketches.rows(rows), "group") for rows in groups])
        estimate = pair_estimator(self.by, beyond_chance=self.beyond_chance)(sums, None)
        ends = estimate.interval(self.level, simultaneous=self.simultaneous)
        return tuple(np.sqrt(np.maximum(squares, 0.0)) for squares in (estimate.value, *ends))

    @cached_property
    def is_alike(self) -> NDArray[np.bool_]:
        """For each pair, whether its mixes are surely nearly the same, told apart or not."""
        if self.likeness is None:
            return np.zeros(self.squared.shape, dtype=np.bool_)
        alike: NDArray[np.bool_] = self.likeness[1] >= ALIKE
        return alike

    @cached_property
    def groups(self) -> tuple[Rows, ...]:
        """The rows of the largest supported groups."""
        if self.clusters is None:
            return ()
        numbers, groups = self.clusters.flat(), dict[int, list[int]]()
        for row in np.flatnonzero(self.clusters.in_supported).tolist():
            groups.setdefault(int(numbers[row]), []).append(row)
        return tuple(map(tuple, groups.values()))

    @cached_property
    def outlier_rows(self) -> list[int]:
        """The parties that are surely unlike the rest, the farthest first."""
        if self.outliers is None:
            return []
        rows = np.flatnonzero(self.outliers.is_outlier)
        order: list[int] = rows[np.argsort(-self.outliers.score[rows], kind="stable")].tolist()
        return order

    @property
    def main_comparison(self) -> Comparison:
        """The first two groups, or else the pair that is surely farthest apart."""
        if len(self.groups) > 1:
            return self.groups[0], self.groups[1]
        i, j = next(iter(self.surest_pairs(1, is_closest=False)), (0, 1))
        return (i,), (j,)

    @property
    def all_others(self) -> int:
        """The number of all others in the same lists."""
        return len(self.labels) + len(self.groups[:MOST_GROUPS])

    def side_number(self, rows: Rows) -> int:
        """The number of a party, or of a group after all parties, in the lists of what can be compared."""
        return rows[0] if len(rows) == 1 else len(self.labels) + self.groups.index(rows)

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

    def surest_pairs(self, count: int, *, is_closest: bool) -> list[tuple[int, int]]:
        """The pairs that are surely nearest and not told apart, or alike; or those that are told apart and surely farthest.

        They are chosen by the sure ends of the numbers that the page shows of them, and ordered by these numbers.
        """
        value, near, far = (self.distance, self.upper, self.lower)
        if self.likeness is not None:
            value, near, far = (-np.maximum(cosines, 0.0) for cosines in self.likeness)
        is_listed = (~self.resolved | self.is_alike if is_closest else self.resolved)[self.pairs]
        ends, values = (near, value) if is_closest else (-far, -value)
        ends, values = ends[self.pairs], values[self.pairs]
        best = np.flatnonzero(is_listed & np.isfinite(ends))
        best = best[np.argsort(ends[best], kind="stable")][:count]
        best = best[np.argsort(values[best], kind="stable")]
        return [(int(self.pairs[0][pair]), int(self.pairs[1][pair])) for pair in best]

    @property
    def axis_end(self) -> float:
        """The distance at the right end of the pairs' error bars: the largest finite number among them."""
        upper, distance = self.upper[self.pairs], self.distance[self.pairs]
        finite = upper[np.isfinite(upper)]
        return float(max(finite.max(initial=0.0), distance.max(initial=0.0))) or 1.0


class Remedy(NamedTuple):
    """What would settle most of the pairs that are open."""

    noise_share: float  # of the variance; the rest is chance
    epsilon: float | None  # this many times ε; None if no such number up to 10 would do
    people: float | None  # this many times the people


def findings_of(
    sketches: Sketches,
    *,
    level: float,
    simultaneous: bool,
    by: str | None = None,
    beyond_chance: bool | None = None,
) -> Findings:
    """All numbers of a report, from one estimate of all pairs; by default about the best question that the releases allow."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}")
    count = len(sketches)
    if not 1 <= count <= MOST_PARTIES:
        raise ParameterError(
            f"sketches must be 1 to {MOST_PARTIES} rows to report, got {count}; choose rows, or add groups up"
        )
    if not isinstance(simultaneous, bool):
        raise ParameterError("simultaneous must be True or False, got something else")
    best_by, best_beyond_chance = best_question(sketches)
    by = best_by if by is None else by
    explains_populations = beyond_chance is not False
    if beyond_chance is None:
        beyond_chance = by == "shape" and best_beyond_chance
    left_out: tuple[str, ...] = ()
    if by == "shape" and sketches.totals is not None:
        is_sure = has_sure_total(sketches)
        left_out = sketches[~is_sure].labels
        sketches = sketches[is_sure]
        if not len(sketches):
            raise ParameterError("totals must surely be above 0 to compare shapes, got none; report by size")
    count = len(sketches)
    estimate = pair_estimator(by, beyond_chance=beyond_chance)(sketches, None)
    if not np.isfinite(estimate.value).all():
        raise ParameterError("estimates must be finite to report, got infinity or NaN")
    joint = estimate.interval(level, simultaneous=True)
    lower, upper = joint if simultaneous else estimate.interval(level)
    likeness = remedy = None
    question: dict[str, Any] = {"level": level, "by": by, "beyond_chance": beyond_chance}
    if by == "shape":
        cosines = shape_cosines(sketches, beyond_chance=beyond_chance)
        likeness = cosines.value, *cosines.interval(level, simultaneous=simultaneous)
        remedy = _remedy(estimate, (joint[0] <= 0) & (likeness[1] < ALIKE), level)
    return Findings(
        labels=_unique(sketches.labels),
        simultaneous=simultaneous,
        likeness=likeness,
        left_out=left_out,
        remedy=remedy,
        squared=estimate.value,
        lower=np.sqrt(lower),
        upper=np.sqrt(upper),
        joint_interval=(np.sqrt(joint[0]), np.sqrt(joint[1])),
        clusters=cluster_estimate(sketches, estimate, **question) if count > 1 else None,
        plane=plane_of(estimate.value, sketches, level, by) if count > 1 else None,
        outliers=estimate_outliers(estimate, joint, **question) if count > 2 else None,
        in_clear=estimate.in_clear[0],
        sketches=sketches,
        explains_populations=explains_populations,
        **question,
    )


def _reasons(findings: Findings, sketches: Sketches) -> Reasons | str:
    """The reasons of what the findings speak of, or why there are none. The choice of groups is taken as given.

    Guarantee: with probability at least the level all intervals hold together: half of the error is for all pairs of parties, half for
    all pairs of groups, each group against the rest, and each party against the rest. Not simultaneous: those of each pair.
    """
    known = frozenset(np.flatnonzero(explainable(sketches)).tolist())
    if len(known) < 2:
        return "no two were released with the same item groups"
    if sketches.noises.has_shared:
        return "some rows have a release in common"
    count, beyond_chance = len(sketches), findings.explains_populations
    groups = findings.groups[:MOST_GROUPS]
    choices = count * (count - 1) // 2, len(groups) * (len(groups) + 1) // 2 + count
    of_pair = of_group = 1 - findings.level
    if findings.simultaneous:
        of_pair /= choices[0] * (1 if count == 2 else 2)
        of_group /= choices[1] * 2
    parties = [(row,) for row in range(count)]
    outliers = [parties[row] for row in findings.outlier_rows[:MOST_OUTLIERS]]
    pairs = [(0, 1)] if count == 2 else findings.surest_pairs(MOST_PAIRS_LISTED, is_closest=False)
    misses: dict[Comparison, float] = {
        **{(parties[i], parties[j]): of_pair for i, j in pairs},
        **{(_others(rows, count), rows): of_group for rows in (*groups, *outliers)},
    }

    def with_margins(rows: Rows) -> Rows:
        return tuple(row for row in rows if row in known)

    def limits(rows: Rows, miss: float) -> Matrix:
        return _limits(sketches, with_margins(rows), names, miss, beyond_chance=beyond_chance)

    names = sketches.rows(sorted(known)).margin_names
    try:
        explanations = {
            comparison: explain_pairs(sketches, [pair], beyond_chance=beyond_chance, level=1 - miss)[0]
            for comparison, miss in misses.items()
            if all(pair := (with_margins(comparison[0]), with_margins(comparison[1])))
        }
        sides = None
        has_alone = 2 < count <= _MOST_ALONE
        if (9 if has_alone else 3) * len((*parties, *groups)) * len(names) <= _MOST_NUMBERS:
            of_groups = [limits(rows, of_group) for rows in groups]
            blocks = [[limits(rows, of_pair) for rows in parties] + of_groups]
            if has_alone:
                blocks.append([limits(rows, of_group) for rows in parties] + of_groups)
                blocks.append([limits(_others(rows, count), of_group) for rows in (*parties, *groups)])
            sides = np.array(blocks)
    except ParameterError as problem:
        return str(problem)
    together = sum(choices) if findings.simultaneous and count > 2 else 1
    return Reasons(sketches, known, groups, sides, explanations, beyond_chance, together)


def _limits(
    sketches: Sketches, rows: Rows, names: Sequence[str], miss: float, *, beyond_chance: bool
) -> Matrix:
    """(value, lower, upper) of every item group of a side; NaN where people are too few."""
    if rows:
        people = Prevalence.of(sketches.rows(rows), beyond_chance=beyond_chance)
        tail = miss / 2 / len(names)
        if people.has_people(min(tail, DOUBTFUL)):
            return np.array(people.limits(tail))
    return np.full((3, len(names)), np.nan)


def _remedy(estimate: Estimate, open_pairs: NDArray[np.bool_], level: float) -> Remedy | None:
    """How much more ε or how many more people would tell most of the open pairs apart; None if there are none."""
    rule = estimate.rule
    is_open = np.triu(open_pairs, 1)
    if not isinstance(rule, Shape) or not is_open.any():
        return None
    tail = Level.of(level, "asymptotic", estimate.pairs).tail

    def enough(name: str) -> float | None:
        for times in (1.5, 2.0, 3.0, 5.0, 10.0):
            changed = {"noise": 1 / times} if name == "epsilon" else {"people": times}
            if np.mean(rule.law.told_apart_with(tail, **changed)[is_open]) > 0.5:
                return times
        return None

    return Remedy(float(np.median(rule.law.noise_share()[is_open])), enough("epsilon"), enough("people"))


def _unique(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The labels; those that occur more than once get the number of their row."""
    counts = Counter(labels)
    return tuple(
        f"{label} (row {number})" if counts[label] > 1 else label for number, label in enumerate(labels, 1)
    )
