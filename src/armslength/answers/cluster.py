"""Which parties belong together: groups in which no two parties are found to differ.

Parties are merged by average linkage, but never two clusters that have a party each which surely differ. What cannot be merged any
more are the groups. So a group says what the intervals of its pairs say, at the level of all pairs together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import Answer, checked_sketches, pair_estimator, with_shapes
from armslength.checks import integer, number
from armslength.errors import ParameterError, plural
from armslength.estimates.estimate import Estimate
from armslength.estimates.pair_noise import Floats
from armslength.results import sentences
from armslength.sketches.sketches import Sketches

MOST_ROWS = 5_000  # a few matrices of all pairs: a gigabyte
_MOST_ORDERED = 2_000  # leaves beyond which their best order takes much longer than the tree


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Clusters(Answer):
    """Groups of parties, no two of which are found to differ, and a tree of merges at average estimated distances.

    Parties of two groups may be alike, too: a group only says that its parties are not found to differ from each other. A group stands
    apart if each of its parties is found to differ from each party outside. All pairs that are found to differ do so, together, with
    probability at least `level`. The tree describes the estimates.

    Attributes:
        labels: The leaves' names.
        linkage: (n−1) x 4, as SciPy has it: the two clusters, the height, how many leaves. Merges within groups come first.
        merges: How many of the merges are within groups.
        order: The leaves from left to right, neighbors as close as the tree allows.
        differ: n x n: the pairs that are found to differ.
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

    def flat(self, count: int | None = None) -> NDArray[np.int64]:
        """For each leaf the number of its group, from 0 on, in the order of the rows.

        Args:
            count: Cut the tree into this many clusters instead, a description of the estimates; parties of one cluster may differ.
        """
        leaves, merges = len(self.labels), self.merges
        if count is not None:
            merges = leaves - integer("count", count, at_least=1, at_most=leaves)
        clusters = np.arange(leaves)
        for members in _members(self.linkage)[:merges]:
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
        """Whether each of these parties is found to differ from each other party."""
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
        count = len(self.groups())
        parties = plural(len(self.labels), "party", "parties")
        level = f"{100 * self.level:.6g}% confidence, all pairs together"
        if not self.differ.any():
            return f"{parties}: no two are found to differ ({level})"
        if not count:
            return f"{parties}: all differ from each other ({level})"
        alone = len(self.group_rows()) - count
        others = f", and {plural(alone, 'party', 'parties')} in no group" if alone else ""
        return f"{parties}: {plural(count, 'group')} in which no two are found to differ{others} ({level})"

    def __str__(self) -> str:
        lines = [self._title()]
        alone = []
        for rows in self.group_rows():
            names = ", ".join(self.labels[row] for row in rows)
            if len(rows) == 1:
                alone += rows
                continue
            apart = (
                "; each differs from every party outside" if self.is_apart(rows) and self.differ.any() else ""
            )
            lines.append(f"  {names}{apart}")
        if alone and lines[1:]:
            lines.append(f"In no group: {', '.join(self.labels[row] for row in alone)}")
        return sentences(lines, self.note)


def cluster(
    sketches: Sketches,
    *,
    level: float = 0.95,
    by: str = "size",
    beyond_chance: bool = False,
) -> Clusters:
    """Groups of parties, no two of which are found to differ.

    Args:
        sketches: One row for each party, at most 5,000.
        level: The probability with which all pairs that are said to differ do so.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations, as for `shape_distances`; by shape.
    """
    checked_sketches("sketches", sketches, 2)
    number("level", level, above=0.0, at_most=1.0)
    if len(sketches) > MOST_ROWS:
        raise ParameterError(
            f"sketches must have at most {MOST_ROWS} rows for a tree, got {len(sketches)}; "
            "for more, use scikit-learn on their values",
            "sketches",
        )
    estimator = pair_estimator(by, beyond_chance=beyond_chance)
    rows, left_out = with_shapes(sketches, by, 2, beyond_chance=beyond_chance)
    estimate = estimator(rows, None)
    estimate = replace(estimate, note="; ".join(filter(None, (estimate.note, left_out))))
    lower, _ = estimate.interval(level, simultaneous=True)
    return cluster_estimate(estimate, lower > 0, level=level, by=by, beyond_chance=beyond_chance)


def cluster_estimate(
    estimate: Estimate, differ: NDArray[np.bool_], *, level: float, by: str, beyond_chance: bool = False
) -> Clusters:
    """The groups of rows whose squared distances of all pairs are estimated, and of which these pairs are found to differ."""
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
        level=level,
        by=by,
        beyond_chance=beyond_chance,
        note=estimate.note,
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
