"""Which parties belong together: groups in which no two parties differ.

Parties are merged by average linkage, but never two clusters that have a party each whose verdict is "differ". What cannot be merged any
more are the groups. So a group says what the verdicts of its pairs say, at the level of all pairs together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import (
    Answer,
    alike_limit,
    answer_note,
    checked_sketches,
    verdicts,
    without_small,
)
from armslength.checks import number
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import clear_note
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.questions import COUNTS, question, similarities_about, squared_distances_about
from armslength.estimates.shapes import Likeness
from armslength.results import sentences
from armslength.sketches.sketches import Sketches

MOST_ROWS = 5_000  # a few matrices of all pairs: a gigabyte
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_ORDERED = 2_000  # leaves beyond which their best order takes much longer than the tree


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Clusters(Answer):
    """Groups of parties, no two of which differ, and a tree of merges at average estimated distances.

    Two parties of a group are alike, or inconclusive. Parties of two groups can be alike, too. A group stands apart if each of its
    parties differs from each party outside. With probability at least `level` all pairs that are said to differ do. The tree describes the
    estimates.

    Attributes:
        labels: The leaves' names.
        linkage: (n−1) x 4, as SciPy has it: the two clusters, the height, how many leaves. Merges within groups come first.
        merges: How many of the merges are within groups.
        order: The leaves from left to right, neighbors as close as the tree allows.
        differ: n x n: the pairs whose verdict is "differ".
    """

    labels: tuple[str, ...]
    linkage: NDArray[np.float64]
    merges: int
    order: tuple[int, ...]
    differ: NDArray[np.bool_]

    @property
    def within_group(self) -> NDArray[np.bool_]:
        """For each merge whether it is within a group."""
        return np.arange(len(self.linkage)) < self.merges

    def flat(self) -> NDArray[np.int64]:
        """For each leaf the number of its group, from 0 on, in the order of the rows."""
        clusters = np.arange(len(self.labels))
        for members in _members(self.linkage)[: self.merges]:
            clusters[members] = clusters[members].min()
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups of two or more, the largest first; their parties in the order of the rows."""
        return tuple(tuple(self.labels[row] for row in rows) for rows in self.group_rows() if len(rows) > 1)

    def group_rows(self) -> list[list[int]]:
        """The rows of each group, also of one party, the largest first."""
        groups: dict[int, list[int]] = {}
        for row, group in enumerate(self.flat().tolist()):
            groups.setdefault(group, []).append(row)
        return sorted(groups.values(), key=len, reverse=True)

    def is_apart(self, members: Sequence[int]) -> bool:
        """Whether each of these parties differs from each other party."""
        rows = np.array(members)
        outside = np.setdiff1d(np.arange(len(self.labels)), rows)
        return bool(self.differ[np.ix_(rows, outside)].all())

    def to_arrow(self) -> pa.Table:
        """One line for each leaf, in the order of the tree: party, group, apart (whether its group stands apart), in_clear."""
        numbers, order = self.flat(), list(self.order)
        apart = [
            self.is_apart(np.flatnonzero(numbers == group).tolist()) for group in range(numbers.max() + 1)
        ]
        columns = {"party": [self.labels[leaf] for leaf in order], "group": numbers[order]}
        return self._table(columns | {"apart": np.array(apart)[numbers[order]]})

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the tree; merges of parties that differ are dashed."""
        label = f"average distance at which groups merge{self._unit}"
        return plots.tree(self.linkage, self.within_group, self.order, self.labels, label, ax)

    def _title(self) -> str:
        groups, leaves = self.groups(), len(self.labels)
        pairs = leaves * (leaves - 1) // 2
        first = self._question(f"all {plural(pairs, 'pair')} together" if pairs > 1 else "one pair")
        if not self.differ.any():
            return f"{first}\nNo two of the {plural(leaves, 'party', 'parties')} were found to differ."
        if not groups:
            return f"{first}\nAll {plural(leaves, 'party', 'parties')} differ from each other."
        alone = len(self.group_rows()) - len(groups)
        others = f", and {plural(alone, 'party', 'parties')} in no group" if alone else ""
        return f"{first}\n{plural(len(groups), 'group')} in which no two parties differ{others}."

    def __str__(self) -> str:
        lines = [self._title(), ""]
        letters, alone = iter(_LETTERS), []
        for rows in self.group_rows():
            names = ", ".join(self.labels[row] for row in rows)
            if len(rows) == 1:
                alone += rows
                continue
            apart = (
                "; each differs from every party outside" if self.is_apart(rows) and self.differ.any() else ""
            )
            lines.append(f"  {next(letters, ' ')}  {names}{apart}")
        if alone and self.differ.any():
            apart = (
                "; each differs from every other party"
                if self.is_apart(alone) and self.are_apart(alone)
                else ""
            )
            lines.append(f"  –  {', '.join(self.labels[row] for row in alone)}{apart}")
        return sentences([*lines, ""], self.note)

    def are_apart(self, members: Sequence[int]) -> bool:
        """Whether each two of these parties differ."""
        rows = np.array(members)
        return bool((self.differ[np.ix_(rows, rows)] | np.eye(len(rows), dtype=np.bool_)).all())


def cluster(
    sketches: Sketches,
    *,
    about: str | None = None,
    level: float = 0.95,
    alike: float | None = None,
    keep: bool = False,
) -> Clusters:
    """Groups of parties, no two of which differ.

    Args:
        sketches: One row for each party, at most 5,000.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: The probability with which all pairs that are said to differ do so.
        alike: As for `compare`: two parties that are alike can be in one group even where a difference was found.
        keep: Whether to keep parties that have too few people to say anything.
    """
    checked_sketches("sketches", sketches, 2)
    number("level", level, above=0.0, at_most=1.0)
    if len(sketches) > MOST_ROWS:
        raise ParameterError(
            f"sketches must have at most {MOST_ROWS} rows for a tree, got {len(sketches)}; "
            "for more, use scikit-learn on their values",
            "sketches",
        )
    about = question(about, sketches)
    limit = alike_limit(alike, about)
    rows, left_out = without_small(sketches, about, 2, keep=keep)
    estimate = squared_distances_about(rows, None, about)
    together = Level.of(level, METHODS[0], estimate.pairs)
    lower, upper = (np.sqrt(end) for end in estimate.rule.interval(together))
    differ = lower > 0
    if about == COUNTS:
        differ = verdicts(lower, upper, None, limit) == "differ"
    elif limit is not None:
        similar = similarities_about(rows, None, about).rule
        differ &= ~similar.is_at_least(limit, together) if isinstance(similar, Likeness) else True
    note = answer_note(about, clear_note(rows), left_out)
    return cluster_estimate(estimate, differ, about=about, level=float(level), note=note)


def cluster_estimate(
    estimate: Estimate, differ: NDArray[np.bool_], *, about: str, level: float, note: str
) -> Clusters:
    """The groups of rows whose squared distances of all pairs are estimated, and of which these pairs differ."""
    from scipy.cluster import hierarchy  # noqa: PLC0415  # nothing else needs it

    leaves = len(differ)
    distances = np.sqrt(np.maximum(estimate.value, 0.0))
    shares = distances / max(float(distances.max()), 1e-300)
    pairs = np.triu_indices(leaves, 1)
    # With so much added, the average distance of two clusters with a pair that differs is larger than any other.
    separated = hierarchy.linkage((shares + 2.0 * leaves**2 * differ)[pairs], method="average")
    groups = hierarchy.fcluster(separated, 1.5, "distance")
    # Here all groups are complete before two of them merge, by their distances alone.
    condensed = (shares + 2.0 * np.not_equal.outer(groups, groups))[pairs]
    merges = hierarchy.linkage(condensed, method="average")
    if leaves <= _MOST_ORDERED:
        merges = hierarchy.optimal_leaf_ordering(merges, condensed)
    order = tuple(hierarchy.leaves_list(merges).tolist())
    merges[:, 2] = _heights(merges, distances)
    return Clusters(
        labels=estimate.labels[0],
        linkage=merges,
        merges=leaves - int(groups.max()),
        order=order,
        differ=differ,
        about=about,
        level=level,
        note=note,
    )


def _heights(merges: Floats, distances: Floats) -> Floats:
    """The average distance at which two clusters merge, at least that of the merges below."""
    leaves = len(distances)
    members = [[leaf] for leaf in range(leaves)] + _members(merges)
    heights = [0.0] * leaves
    for first, second in merges[:, :2].astype(np.int64).tolist():
        average = float(distances[np.ix_(members[first], members[second])].mean())
        heights.append(max(average, heights[first], heights[second]))
    return np.array(heights[leaves:])


def _members(merges: NDArray[np.float64]) -> list[list[int]]:
    """The leaves of each merge."""
    leaves = len(merges) + 1
    members: list[list[int]] = []
    for first, second in merges[:, :2].astype(np.int64).tolist():
        both = [[part] if part < leaves else members[part - leaves] for part in (first, second)]
        members.append(both[0] + both[1])
    return members
