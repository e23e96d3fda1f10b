"""All numbers of a report, computed once before anything is drawn."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.answers.cluster import Clusters, cluster_estimate
from armslength.answers.explain import (
    DOUBTFUL,
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
from armslength.errors import ParameterError
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Level
from armslength.estimates.prevalence import Limits, Prevalence, difference_limits
from armslength.estimates.questions import (
    COUNTS,
    POPULATIONS,
    question,
    similarities_about,
    squared_distances_about,
)
from armslength.estimates.shapes import Shape
from armslength.estimates.totals import has_sure_total, totals
from armslength.estimates.typical import large_enough
from armslength.reporting.markup import NumberStyle
from armslength.reporting.plane import Plane, plane_of
from armslength.results import distance_text, similarity_text
from armslength.sketches.sketches import Sketches

MOST_PARTIES = 1000
NO_MARGINS = "no margins"

_MOST_NUMBERS = 600_000  # that the page holds for choices: 3 MB
_MOST_ALONE = 100  # parties that can be compared with the typical party: each takes a while
_MOST_NAMES = 3

Matrix = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
# Blocks of prevalences: of parties among all pairs; of parties, and of what is typical for each, against each other.
PAIRED, PARTIES, TYPICAL = range(3)


class LeftOut(NamedTuple):
    """A party with too few people to say anything."""

    label: str
    people: Matrix  # as released, and both ends of their number


@dataclass(frozen=True, eq=False)
class Reasons:
    """Prevalences of item groups, from which differences of any two parties are made.

    Guarantee: with probability at least the level all differences between parties hold together; with `each`, those of one pair. With the
    same probability all differences between a party and the typical party do.

    Attributes:
        sketches: All rows of the page.
        known: Those whose margins count the same as most; the others are left out.
        sides: Blocks x n x 3 x M: (value, lower, upper) of every item group. NaN where nothing can be said, or there are no margins. Up to
            100 parties there are three blocks: PAIRED, PARTIES, TYPICAL; else one. None of them where these are too many numbers for a page.
        missing: Blocks x n: the share of people that may be missing in each value.
        pair: What sets two parties apart, if there are only two; a text where nothing can be said.
        choices: For how many pairs the intervals hold together.
    """

    sketches: Sketches
    known: frozenset[int]
    sides: Matrix
    missing: Matrix
    pair: Explanation | str | None
    choices: int

    @property
    def names(self) -> tuple[str, ...]:
        """The item groups."""
        return self.sketches.rows(sorted(self.known)).margin_names

    @property
    def has_typical(self) -> bool:
        """Whether a party can be compared with the typical party."""
        return len(self.sides) > TYPICAL

    @property
    def can_choose(self) -> bool:
        """Whether any two parties can be compared on the page."""
        return len(self.sides) > 0

    def undercounts(self) -> tuple[int, dict[int, float]]:
        """How many item groups of a person count in full, and the share of people that may be missing, for the rows where it is worth a note."""
        numbers = sorted(self.known)
        bound, shares = undercounts(self.sketches.rows(numbers))
        return bound, {number: share for number, share in zip(numbers, shares, strict=True) if share}

    def limits(self, block: int, row: int) -> Limits:
        """What the page knows of a side."""
        value, lower, upper = self.sides[block, row]
        return Limits(value, value + self.missing[block, row], lower, upper)

    def shared(self, rows: list[int]) -> list[str]:
        """In which item groups each of these parties differs from the typical party in one direction, in words, the clearest first.

        That is true of any choice of parties, even by the same data, as it is true of each.
        """
        if not self.has_typical:
            return []
        pairs = [(self.limits(TYPICAL, row), self.limits(PARTIES, row)) for row in rows]
        value, lower, upper = np.array([difference_limits(*pair) for pair in pairs]).swapaxes(0, 1)
        is_shared = (lower > 0).all(axis=0) | (upper < 0).all(axis=0)
        least = np.where(is_shared, np.abs(value).min(axis=0), 0.0)
        best = [group for group in np.argsort(-least, kind="stable").tolist() if is_shared[group]]
        return [_range_words(self.names[group], 100 * value[:, group]) for group in best[:_MOST_NAMES]]


def _range_words(name: str, points: Matrix) -> str:
    """A difference that several parties have, in points."""
    word = "more" if points[0] > 0 else "fewer"
    first, last = (
        f"{number:+.1f}".replace("-", "−") for number in sorted((points.min(), points.max()), key=abs)
    )
    return f"{word} with {name} ({first} to {last} points)"


@dataclass(frozen=True, eq=False)
class Findings:
    """Distances between all parties and the answers drawn from them, in data units. Matrices are n x n.

    Guarantee: with probability at least the level all verdicts of pairs are true together, or with `each` that of each pair; with the same
    probability all that is said of parties and the typical party is true together; and so for `reasons`. The groups are made of verdicts
    that hold together in any case.
    """

    labels: tuple[str, ...]  # each of them once
    level: float
    each: bool  # whether each interval of a pair holds by itself
    about: str  # "populations", "people" or "counts"
    alike: float | None  # the similarity from which on, or the distance up to which parties are alike
    squared: Matrix  # estimated squared distances; they may be negative
    lower: Matrix  # ends of the intervals of the distances
    upper: Matrix
    clusters: Clusters | None  # None for one party
    plane: Plane | None  # None for one party
    outliers: Outliers | None  # None for fewer than three parties, or rows that have a release in common
    in_clear: tuple[bool, ...]  # for each party, whether it holds data without noise
    likeness: tuple[Matrix, ...] | None = None  # the similarities, and their ends; None about counts
    people: Matrix | None = None  # n x 3: how many people each party has, and both ends; None about counts
    left_out: tuple[LeftOut, ...] = ()  # parties with too few people
    remedy: "Remedy | None" = None  # of pairs that are inconclusive; None about counts
    sketches: Sketches | None = None  # of these parties; None explains nothing

    @cached_property
    def reasons(self) -> Reasons | str:
        """What sets parties apart, or why that is not known."""
        rows = self.sketches
        if rows is None or len(rows) < 2 or all(protocol.margins is None for protocol in rows.protocols):
            return NO_MARGINS
        return _reasons(self, rows)

    @cached_property
    def verdict(self) -> NDArray[np.str_]:
        """For each pair "differ", "alike" or "inconclusive"."""
        least = None if self.likeness is None else self.likeness[1]
        return verdicts(self.lower, self.upper, least, self.alike)

    def is_verdict(self, word: str) -> NDArray[np.bool_]:
        """For each pair whether this is its verdict."""
        return np.equal(self.verdict, word)

    def count(self, word: str) -> int:
        """How many pairs have this verdict."""
        return int(self.is_verdict(word)[self.pairs].sum())

    @property
    def in_all_inconclusive(self) -> int | None:
        """The party that is in all pairs that are inconclusive; None if there is none, or only one such pair."""
        degrees = (self.is_verdict(INCONCLUSIVE) & ~np.eye(len(self.labels), dtype=np.bool_)).sum(axis=1)
        total = self.count(INCONCLUSIVE)
        return int(degrees.argmax()) if total > 1 and degrees.max() == total else None

    @cached_property
    def outlier_rows(self) -> list[int]:
        """The parties that stand out, the farthest first."""
        if self.outliers is None:
            return []
        return [row for row in self.outliers.ranking.tolist() if self.outliers.is_outlier[row]]

    @cached_property
    def groups(self) -> list[list[int]]:
        """The rows of each group, the largest first, also of parties that are alone; none if no two parties differ."""
        if self.clusters is None or not self.clusters.differ.any():
            return []
        return self.clusters.group_rows()

    @property
    def main_comparison(self) -> tuple[int, int]:
        """The typical party, whose number is that of parties, and the farthest from it; or else the pair that is surely farthest apart."""
        if self.outliers is not None and isinstance(self.reasons, Reasons) and self.reasons.has_typical:
            return len(self.labels), int(self.outliers.ranking[0])
        return self.farthest_pair or (0, 1)

    @cached_property
    def distance(self) -> Matrix:
        """Estimated distances; 0 where the squared estimate is negative."""
        return np.sqrt(np.maximum(self.squared, 0.0))

    @property
    def numbers(self) -> tuple[Matrix, ...]:
        """What people read, with both ends: the similarity, or the distance about counts."""
        return self.likeness or (self.distance, self.lower, self.upper)

    def number_words(self, i: int, j: int) -> str:
        """The number of a pair with its interval: "similarity 0.91 (0.88 to 0.94)", or its distance about counts."""
        ends = [float(number[i, j]) for number in self.numbers]
        if self.likeness is None:
            return f"distance {distance_text(*ends)}"
        return f"similarity {similarity_text(*ends)}"

    @cached_property
    def pairs(self) -> Pairs:
        """Rows and columns of all pairs, each pair once, in the order of the upper triangle."""
        rows, columns = np.triu_indices(len(self.labels), 1)
        return rows, columns

    @cached_property
    def style(self) -> NumberStyle:
        """How distances are printed."""
        return NumberStyle.of(self.distance[self.pairs])

    @cached_property
    def farness(self) -> Matrix:
        """What colors show: the distance about counts, else 1 less the similarity, where it is unknown that in the middle of what is possible."""
        if self.likeness is None:
            return self.distance
        value, lower, upper = self.likeness
        return 1 - np.where(np.isnan(value), (lower + upper) / 2, value)

    @cached_property
    def color_range(self) -> tuple[float, float]:
        """The first and the last farness with a color: those of all pairs with a verdict, unless a few are far beyond the rest.

        Similarities have colors from 1 to at most 0.9, so that a small difference is not dark.
        """
        farness, known = self.farness[self.pairs], ~self.is_verdict(INCONCLUSIVE)[self.pairs]
        colored = farness[known] if known.any() else farness
        if not len(colored):
            return 0.0, 1.0
        last = min(float(colored.max()), 1.5 * float(np.quantile(colored, 0.95)))
        return (float(colored.min()), last) if self.likeness is None else (0.0, max(last, 0.1))

    @cached_property
    def farthest_pair(self) -> tuple[int, int] | None:
        """Of the pairs that differ, the one that is surely farthest apart, by the number that people read; None if no two differ."""
        near = self.lower if self.likeness is None else 1 - self.likeness[2]
        ends = np.where(self.is_verdict(DIFFER), near, -1.0)[self.pairs]
        if not len(ends) or ends.max() < 0:
            return None
        pair = int(ends.argmax())
        return int(self.pairs[0][pair]), int(self.pairs[1][pair])

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the axis of the pairs' intervals."""
        value, lower, upper = (number[self.pairs] for number in self.numbers)
        if self.likeness is not None:
            return axis_of_similarities(lower)
        finite = upper[np.isfinite(upper)]
        return 0.0, float(max(finite.max(initial=0.0), value.max(initial=0.0))) or 1.0


def axis_of_similarities(lower: Matrix) -> tuple[float, float]:
    """An axis from a round similarity to 1."""
    return float(np.clip(np.floor(10 * lower.min(initial=0.9)) / 10, 0.0, 0.9)), 1.0


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
    left_out: tuple[LeftOut, ...] = ()
    if count > 1:
        everyone = sketches
        sketches, _ = without_small(everyone, about, 2, keep=keep)
        left_out = _left_out(everyone, about, keep=keep) if len(sketches) < count else ()
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
        ends = similar.interval(level) if each else together
        likeness = tuple(np.maximum(number, 0.0) for number in (similar.value, *ends))
        is_different &= together[0] < (1.0 if limit is None else limit)
        remedy = _remedy(estimate, (joint[0] <= 0) & (together[0] < (1.0 if limit is None else limit)), level)
    clusters = plane = None
    if count > 1:
        note = answer_note(about)
        clusters = cluster_estimate(estimate, is_different, about=about, level=level, note=note)
        plane = plane_of(estimate.value, sketches, level, about)
    return Findings(
        labels=_unique(sketches.labels),
        level=level,
        each=each,
        about=about,
        alike=limit,
        likeness=likeness,
        people=None if about == COUNTS else _people(sketches),
        left_out=left_out,
        remedy=remedy,
        squared=estimate.value,
        lower=np.sqrt(lower),
        upper=np.sqrt(upper),
        clusters=clusters,
        plane=plane,
        outliers=outliers_of(sketches, about=about, level=level, alike=limit) if has_typical else None,
        in_clear=estimate.in_clear[0],
        sketches=sketches,
    )


def _people(sketches: Sketches) -> Matrix:
    """How many people each party has, and both ends of that number, each at 95 %."""
    released = totals(sketches)
    return np.maximum(np.stack([released.value, *released.interval()], axis=1), 0.0)


def _left_out(sketches: Sketches, about: str, *, keep: bool) -> tuple[LeftOut, ...]:
    """The parties that have too few people."""
    is_large = (
        has_sure_total(sketches) if keep else large_enough(sketches, beyond_chance=about == POPULATIONS)
    )
    small = sketches[~is_large]
    return tuple(map(LeftOut, small.labels, _people(small)))


def _reasons(findings: Findings, sketches: Sketches) -> Reasons | str:
    """What sets parties apart, or why that is not known."""
    known = frozenset(np.flatnonzero(explainable(sketches)).tolist())
    if len(known) < 2:
        return "no two were released with the same item groups"
    if sketches.noises.has_shared:
        return "some rows have a release in common"
    count, about = len(sketches), POPULATIONS if findings.about == COUNTS else findings.about
    choices = 1 if findings.each else count * (count - 1) // 2
    miss = 1 - findings.level
    sides = _Sides(sketches, known, about)
    blocks: list[list[tuple[Matrix, float]]] = []
    pair = None
    try:
        if count == 2:
            both = [Side.of(row) for row in sketches]
            (pair,) = explain_sides(both, [(0, 1)], about=about, level=findings.level)
        has_typical = 2 < count <= _MOST_ALONE
        if (9 if has_typical else 3) * count * len(sides.names) <= _MOST_NUMBERS:
            blocks = [[sides.limits(row, miss / choices) for row in range(count)]]
            for typical in (False, True) if has_typical else ():
                blocks += [[sides.limits(row, miss / count, typical=typical) for row in range(count)]]
    except ParameterError as problem:
        return str(problem)
    return Reasons(
        sketches=sketches,
        known=known,
        sides=np.array([[of for of, _ in block] for block in blocks]),
        missing=np.array([[share for _, share in block] for block in blocks]),
        pair=pair,
        choices=choices,
    )


class _Sides:
    """The rows whose margins count the same, by the numbers that they have on the page."""

    def __init__(self, sketches: Sketches, known: frozenset[int], about: str) -> None:
        numbers = sorted(known)
        self.rows = sketches.rows(numbers)
        self.names = self.rows.margin_names
        self.places = {number: place for place, number in enumerate(numbers)}
        self.about = about

    def limits(self, row: int, miss: float, *, typical: bool = False) -> tuple[Matrix, float]:
        """(value, lower, upper) of every item group of a party or of what is typical for it, and the share of people that may be missing.

        All ends of a side miss together with at most this probability; NaN where nothing can be said.
        """
        if row in self.places:
            member = [self.places[row]]
            side = typical_of(self.rows, member) if typical else Side.of(self.rows, member)
            people = Prevalence.of(side.rows, beyond_chance=self.about == POPULATIONS, weights=side.weights)
            # A party that has nobody is doubtful by itself, however many pairs it is in.
            if can_be_said(people, DOUBTFUL):
                limits = people.limits(miss / 2 / len(self.names))
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
