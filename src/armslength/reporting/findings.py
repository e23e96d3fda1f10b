"""All numbers of a report, computed once before anything is drawn."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.answers.cluster import Clusters, cluster_estimate
from armslength.answers.explain import (
    Explanation,
    Side,
    can_be_said,
    explain_sides,
    explainable,
    typical_of,
    undercounts,
)
from armslength.answers.outliers import Outliers, outliers_of
from armslength.answers.pairs import DIFFER, INCONCLUSIVE, alike_limit, answer_note, verdicts, without_small
from armslength.answers.plane import Plane, plane_of
from armslength.errors import ParameterError
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Level
from armslength.estimates.prevalence import Prevalence
from armslength.estimates.questions import (
    COUNTS,
    POPULATIONS,
    question,
    similarities_about,
    squared_distances_about,
)
from armslength.estimates.shapes import Shape
from armslength.reporting.markup import NumberStyle
from armslength.sketches.sketches import Sketches, concat, sum_rows

MOST_PARTIES = 1000
NO_MARGINS = "no margins"
MOST_PAIRS_LISTED, MOST_GROUPS, MOST_OUTLIERS = 3, 8, 5

_MOST_NUMBERS = 600_000  # that the page holds for choices: 3 MB
_MOST_ALONE = 100  # parties that can be compared with the typical party: each takes a while

Matrix = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
Rows = tuple[int, ...]
Comparison = tuple[Rows, Rows]  # rows of the first side, rows of the second
TYPICAL: Rows = ()  # as the first side: the typical party of all rows but those of the second


@dataclass(frozen=True, eq=False)
class Reasons:
    """Prevalences of all sides that can be chosen, and the differences that the page shows without a choice.

    Attributes:
        sketches: All rows of the page.
        known: Those whose margins count the same as most; the others are left out of all sides.
        groups: The rows of each group.
            sides: (value, lower, upper) of every item group's prevalence in each party, then in each group: (n + g) x 3 x M. Up to 100 parties
            there are three of these: among parties and among groups; the same sides against their typical parties; and these.
            NaN where nothing can be said, or there are no margins. None where these are too many numbers for a page.
        missing: The share of people that may be missing in each value, for each of these sides.
        explanations: The differences between some sides; a text where nothing can be said.
        about: "populations" or "people".
        choices: For how many comparisons the intervals hold together.
    """

    sketches: Sketches
    known: frozenset[int]
    groups: tuple[Rows, ...]
    sides: Matrix | None
    missing: Matrix | None
    explanations: dict[Comparison, Explanation | str]
    about: str
    choices: int

    @property
    def names(self) -> tuple[str, ...]:
        """The item groups."""
        return self.sketches.rows(sorted(self.known)).margin_names

    @property
    def has_typical(self) -> bool:
        """Whether a party or a group can be compared with the typical party."""
        return self.sides is not None and len(self.sides) > 1

    def undercounts(self) -> tuple[int, dict[int, float]]:
        """How many item groups of a person count in full, and the share of people that may be missing, for the rows where it is worth a note."""
        numbers = sorted(self.known)
        bound, shares = undercounts(self.sketches.rows(numbers))
        return bound, {number: share for number, share in zip(numbers, shares, strict=True) if share}


@dataclass(frozen=True, eq=False)
class Findings:
    """Distances between all parties and the answers drawn from them, in data units. Matrices are n x n."""

    labels: tuple[str, ...]  # each of them once
    level: float  # the confidence of all statements
    each: bool  # whether each interval holds by itself
    about: str  # "populations", "people" or "counts"
    alike: float | None  # the similarity from which on, or the distance up to which parties are alike
    squared: Matrix  # estimated squared distances; they may be negative
    lower: Matrix  # ends of the intervals of the distances
    upper: Matrix
    joint_interval: tuple[Matrix, Matrix]  # ends that all hold together, for statements that compare pairs
    clusters: Clusters | None  # None for one party
    plane: Plane | None  # None for one party
    outliers: Outliers | None  # None for fewer than three parties, or rows that have a release in common
    in_clear: tuple[bool, ...]  # for each party, whether it holds data without noise
    likeness: tuple[Matrix, ...] | None = None  # the similarities, and their ends; None about counts
    left_out: str = ""  # which parties have too few people to say anything, in words
    remedy: "Remedy | None" = None  # of pairs that are inconclusive; None about counts
    sketches: Sketches | None = None  # of these parties; None explains nothing

    @cached_property
    def reasons(self) -> Reasons | str:
        """What sets parties and groups apart, or why that is not known."""
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
        estimate = squared_distances_about(sums, None, self.about)
        ends = estimate.interval(self.level, simultaneous=not self.each)
        return tuple(np.sqrt(np.maximum(squares, 0.0)) for squares in (estimate.value, *ends))

    @cached_property
    def verdict(self) -> NDArray[np.str_]:
        """For each pair "differ", "alike" or "inconclusive"."""
        least = None if self.likeness is None else self.likeness[1]
        return verdicts(self.lower, self.upper, least, self.alike)

    def is_verdict(self, word: str) -> NDArray[np.bool_]:
        """For each pair whether this is its verdict."""
        return np.equal(self.verdict, word)

    @cached_property
    def groups(self) -> tuple[Rows, ...]:
        """The rows of each group of two or more, the largest first; none if all parties are one."""
        if self.clusters is None or not self.clusters.differ.any():
            return ()
        return tuple(tuple(rows) for rows in self.clusters.group_rows() if len(rows) > 1)

    @cached_property
    def outlier_rows(self) -> list[int]:
        """The parties that are surely unlike the others, the farthest first."""
        if self.outliers is None:
            return []
        return [row for row in self.outliers.ranking.tolist() if self.outliers.is_outlier[row]]

    @property
    def main_comparison(self) -> Comparison:
        """The first two groups, or else the pair that is surely farthest apart."""
        if len(self.groups) > 1:
            return self.groups[0], self.groups[1]
        i, j = next(iter(self.surest_pairs(1, is_closest=False)), (0, 1))
        return (i,), (j,)

    @property
    def typical_number(self) -> int:
        """The number of the typical party in the same lists."""
        return len(self.labels) + len(self.groups[:MOST_GROUPS])

    def side_number(self, rows: Rows) -> int:
        """The number of a party, or of a group after all parties, in the lists of what can be compared."""
        return rows[0] if len(rows) == 1 else len(self.labels) + self.groups.index(rows)

    @cached_property
    def distance(self) -> Matrix:
        """Estimated distances; 0 where the squared estimate is negative."""
        return np.sqrt(np.maximum(self.squared, 0.0))

    @cached_property
    def pairs(self) -> Pairs:
        """Rows and columns of all pairs, each pair once, in the order of the upper triangle."""
        rows, columns = np.triu_indices(len(self.labels), 1)
        return rows, columns

    def count(self, word: str) -> int:
        """How many pairs have this verdict."""
        return int(self.is_verdict(word)[self.pairs].sum())

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
        """The distances of the first and the last color: those of all pairs with a verdict, unless a few are far beyond the rest."""
        distances, known = self.distance[self.pairs], ~self.is_verdict(INCONCLUSIVE)[self.pairs]
        colored = distances[known] if known.any() else distances
        if not len(colored):
            return 0.0, 1.0
        return float(colored.min()), min(float(colored.max()), 1.5 * float(np.quantile(colored, 0.95)))

    def surest_pairs(self, count: int, *, is_closest: bool) -> list[tuple[int, int]]:
        """The pairs that are alike, or else inconclusive, and surely nearest; or those that differ and are surely farthest.

        They are chosen by the sure ends of the numbers that the page shows of them, and ordered by these numbers.
        """
        value, near, far = (self.distance, self.upper, self.lower)
        if self.likeness is not None:
            value, near, far = (-np.maximum(cosines, 0.0) for cosines in self.likeness)
        is_listed = (self.is_verdict(DIFFER) ^ is_closest)[self.pairs]
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
    about: str | None,
    level: float,
    each: bool = False,
    alike: float | None = None,
    keep: bool = False,
) -> Findings:
    """All numbers of a report, from one estimate of all pairs; by default about the strongest question that the releases allow."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"sketches must be al.Sketches, got {type(sketches).__name__}", "sketches")
    count = len(sketches)
    if not 1 <= count <= MOST_PARTIES:
        raise ParameterError(
            f"sketches must be 1 to {MOST_PARTIES} rows to report, got {count}; choose rows, or add groups up",
            "sketches",
        )
    about = question(about, sketches)
    limit = alike_limit(alike, about)
    left_out = ""
    if count > 1:
        sketches, left_out = without_small(sketches, about, 2, keep=keep)
        count = len(sketches)
    estimate = squared_distances_about(sketches, None, about)
    if not np.isfinite(estimate.value).all():
        raise ParameterError("a report cannot show estimates that are infinite or NaN")
    joint = estimate.interval(level, simultaneous=True)
    lower, upper = estimate.interval(level) if each else joint
    has_typical = count > 2 and (about == COUNTS or not sketches.noises.has_shared)
    likeness = remedy = None
    differ = verdicts(np.sqrt(joint[0]), np.sqrt(joint[1]), None, limit if about == COUNTS else None)
    is_different = differ == DIFFER
    if about != COUNTS:
        similar = similarities_about(sketches, None, about)
        together = similar.interval(level, simultaneous=True)
        likeness = similar.value, *(similar.interval(level) if each else together)
        is_different &= together[0] < (1.0 if limit is None else limit)
        remedy = _remedy(estimate, (joint[0] <= 0) & (together[0] < (1.0 if limit is None else limit)), level)
    note = answer_note(about, left_out)
    return Findings(
        labels=_unique(sketches.labels),
        level=level,
        each=each,
        about=about,
        alike=limit,
        likeness=likeness,
        left_out=left_out,
        remedy=remedy,
        squared=estimate.value,
        lower=np.sqrt(lower),
        upper=np.sqrt(upper),
        joint_interval=(np.sqrt(joint[0]), np.sqrt(joint[1])),
        clusters=cluster_estimate(estimate, is_different, about=about, level=level, note=note)
        if count > 1
        else None,
        plane=plane_of(estimate.value, sketches, level, about) if count > 1 else None,
        outliers=outliers_of(sketches, about=about, level=level, alike=limit) if has_typical else None,
        in_clear=estimate.in_clear[0],
        sketches=sketches,
    )


def _reasons(findings: Findings, sketches: Sketches) -> Reasons | str:
    """The reasons of what the findings speak of, or why there are none. The choice of groups is taken as given.

    Guarantee: with probability at least the level all intervals hold together: half of the error is for all pairs of parties, half for
    all pairs of groups, and each group and each party against the typical party. With `each`: those of each pair.
    """
    known = frozenset(np.flatnonzero(explainable(sketches)).tolist())
    if len(known) < 2:
        return "no two were released with the same item groups"
    if sketches.noises.has_shared:
        return "some rows have a release in common"
    count, about = len(sketches), POPULATIONS if findings.about == COUNTS else findings.about
    groups = findings.groups[:MOST_GROUPS]
    choices = count * (count - 1) // 2, len(groups) * (len(groups) + 1) // 2 + count
    of_pair = of_group = 1 - findings.level
    if not findings.each:
        of_pair /= choices[0] * (1 if count == 2 else 2)
        of_group /= choices[1] * 2
    parties = [(row,) for row in range(count)]
    outliers = [parties[row] for row in findings.outlier_rows[:MOST_OUTLIERS]]
    pairs = [(0, 1)] if count == 2 else findings.surest_pairs(MOST_PAIRS_LISTED, is_closest=False)
    misses: dict[Comparison, float] = {
        **{(parties[i], parties[j]): of_pair for i, j in pairs},
        **{(TYPICAL, rows): of_group for rows in (*groups, *outliers)},
    }
    sides = _Sides(sketches, known, about)
    has_typical = 2 < count <= _MOST_ALONE
    blocks: list[list[tuple[Matrix, float]]] = []
    try:
        explanations = {pair: sides.explained(*pair, miss) for pair, miss in misses.items()}
        if (9 if has_typical else 3) * (count + len(groups)) * len(sides.names) <= _MOST_NUMBERS:
            of_groups = [sides.limits(rows, of_group) for rows in groups]
            blocks.append([sides.limits(rows, of_pair) for rows in parties] + of_groups)
            if has_typical:
                blocks.append([sides.limits(rows, of_group) for rows in parties] + of_groups)
                typical = [sides.limits(rows, of_group, typical=True) for rows in (*parties, *groups)]
                blocks.append(typical)
    except ParameterError as problem:
        return str(problem)
    return Reasons(
        sketches=sketches,
        known=known,
        groups=groups,
        sides=np.array([[of for of, _ in block] for block in blocks]) if blocks else None,
        missing=np.array([[share for _, share in block] for block in blocks]) if blocks else None,
        explanations={pair: answer for pair, answer in explanations.items() if answer is not None},
        about=about,
        choices=sum(choices) if not findings.each and count > 2 else 1,
    )


class _Sides:
    """The rows whose margins count the same, by the numbers that they have on the page."""

    def __init__(self, sketches: Sketches, known: frozenset[int], about: str) -> None:
        numbers = sorted(known)
        self.rows = sketches.rows(numbers)
        self.names = self.rows.margin_names
        self.places = {number: place for place, number in enumerate(numbers)}
        self.about = about

    def side(self, rows: Rows, *, typical: bool = False) -> Side | None:
        """These rows, or the typical party of the others; None if there are none."""
        members = [self.places[row] for row in rows if row in self.places]
        if not members or (typical and len(members) == len(self.rows)):
            return None
        return typical_of(self.rows, members) if typical else Side.of(self.rows, members)

    def explained(self, first: Rows, second: Rows, miss: float) -> Explanation | str | None:
        """What sets the second side apart, from the typical party if there is no first; all intervals miss with this probability."""
        pair = self.side(first or second, typical=not first), self.side(second)
        if pair[0] is None or pair[1] is None:
            return None
        sides = [pair[0], pair[1]]
        return explain_sides(sides, [(0, 1)], about=self.about, level=1 - miss)[0]

    def limits(self, rows: Rows, miss: float, *, typical: bool = False) -> tuple[Matrix, float]:
        """(value, lower, upper) of every item group of a side, and the share of people that may be missing; NaN where nothing can be said."""
        side = self.side(rows, typical=typical)
        if side is not None:
            people = Prevalence.of(side.rows, beyond_chance=self.about == POPULATIONS, weights=side.weights)
            tail = miss / 2 / len(self.names)
            if can_be_said(people, tail):
                limits = people.limits(tail)
                share = people.undercount / people.people
                return np.array([limits.least, limits.lower, limits.upper]), share
        return np.full((3, len(self.names)), np.nan), np.nan


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
