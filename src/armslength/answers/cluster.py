"""A tree of the parties, and which of its groups the intervals support."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import Answer, checked_rows, pair_estimator
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Bounds
from armslength.results import sentences
from armslength.sketches.collection import Collection
from armslength.sketches.sketches import Sketches

LINKAGES = ("average", "single", "complete")
MOST_ROWS = 5_000  # five matrices of all pairs: a gigabyte
_MOST_ORDERED = 2_000  # leaves beyond which their best order takes much longer than the tree


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Answer):
    """A tree of merges at estimated distances, in data units, and which of its groups are sure.

    With probability at least `level`, every supported merge but the last makes a group of leaves that the tree of the *true*
    distances has too: every distance inside is truly smaller than every distance from inside to outside.

    Attributes:
        labels: The leaves' names.
        linkage: (n−1) x 4, as SciPy has it: the two clusters, the height, how many leaves. Heights rise.
        supported: For each merge, whether all upper ends inside lie below all lower ends from inside to outside; for the
            last, which has no outside, whether both of its parts are supported.
        order: The leaves from left to right, neighbors as close as the tree allows.
        joined_by: How the distance of clusters is made of those of leaves.
    """

    labels: tuple[str, ...]
    linkage: NDArray[np.float64]
    supported: NDArray[np.bool_]
    order: tuple[int, ...]
    joined_by: str

    def flat(self, count: int | None = None, height: float | None = None) -> NDArray[np.int64]:
        """For each leaf the number of its cluster, from 0 in the order of their first leaves.

        Args:
            count: Cut the tree into this many clusters.
            height: Undo all merges above this height. Neither: the largest supported groups, other leaves by themselves.
        """
        leaves = len(self.labels)
        if count is not None and height is not None:
            raise ParameterError("clusters must be cut by a count or by a height, got both")
        if count is not None:
            merges = leaves - integer("count", count, at_least=1, at_most=leaves)
            wanted = np.arange(leaves - 1) < merges
        elif height is not None:
            wanted = self.linkage[:, 2] <= number("height", height, above=-1.0, at_most=np.inf)
        else:
            wanted = np.append(self.supported[:-1], False)  # the last merge is nobody's group
        clusters = np.arange(leaves)
        for members, is_wanted in zip(_members(self.linkage), wanted, strict=True):
            if is_wanted:
                clusters[members] = clusters[members].min()
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The leaves of every supported merge but the last, small groups first."""
        members = _members(self.linkage)
        merges = np.flatnonzero(self.supported[:-1])
        return tuple(tuple(self.labels[leaf] for leaf in members[merge]) for merge in merges)

    def to_arrow(self) -> pa.Table:
        """One line for each leaf, in the order of the tree: label, cluster (as `flat` has it), in_clear."""
        order = list(self.order)
        columns = {"label": [self.labels[leaf] for leaf in order], "cluster": self.flat()[order]}
        return self._table(columns, joined_by=self.joined_by)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the tree; merges that are not supported are dashed."""
        label = f"distance at which groups merge ({self.joined_by} linkage{self._unit})"
        return plots.tree(self.linkage, self.supported, self.order, self.labels, label, ax)

    def _title(self) -> str:
        parties, merges = len(self.labels), f"{int(self.supported.sum())} of {len(self.supported)} merges"
        sure = f"{merges} are supported, all together at {self.level:.6g}"
        return f"{parties} parties, {self.joined_by} linkage: {sure}"

    def __str__(self) -> str:
        clusters = self.flat()
        sizes = np.bincount(clusters)
        lines = [self._title()]
        for cluster in np.flatnonzero(sizes > 1):
            names = [self.labels[leaf] for leaf in self.order if clusters[leaf] == cluster]
            lines.append(f"surely together: {', '.join(names)}")
        if not (sizes > 1).any():
            lines.append("no group is sure: the error bars leave the tree open")
        return sentences(lines, self.note)


def cluster(
    sketches: Sketches | Collection,
    *,
    linkage: str = "average",
    level: float = 0.95,
    by: str = "size",
    method: str = "asymptotic",
) -> Clusters:
    """A tree of the parties by their estimated distances, and which of its groups the intervals support.

    Args:
        sketches: One row for each party, at most 5,000.
        linkage: "average", "single" or "complete".
        level: With this probability, all supported groups are groups of the true distances' tree.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
    """
    checked_rows("sketches", sketches, 2)
    one_of("linkage", linkage, LINKAGES)
    if len(sketches) > MOST_ROWS:
        raise ParameterError(
            f"sketches must have at most {MOST_ROWS} rows for a tree, got {len(sketches)}; "
            "for more, use scikit-learn on their values"
        )
    rows = sketches if isinstance(sketches, Sketches) else sketches.to_sketches()
    estimate = pair_estimator(by)(rows, None)
    interval = estimate.interval(level, method=method, simultaneous=True)
    return cluster_estimate(estimate, interval, linkage=linkage, level=level, by=by)


def cluster_estimate(
    estimate: Estimate, interval: Bounds, *, linkage: str = "average", level: float, by: str
) -> Clusters:
    """The tree of squared distances of all pairs, whose intervals hold together at this level."""
    merges, order = _tree(np.sqrt(np.maximum(estimate.value, 0.0)), linkage)
    supported = _supported(merges, np.sqrt(interval[0]), np.sqrt(interval[1]))
    tree = merges, supported, order, linkage
    return Clusters(estimate.labels[0], *tree, level=level, by=by, note=estimate.note)


def _tree(distances: NDArray[np.float64], linkage: str) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    from scipy.cluster import hierarchy  # noqa: PLC0415  # nothing else needs it

    condensed = distances[np.triu_indices(len(distances), 1)]
    merges = hierarchy.linkage(condensed, method=linkage)  # type: ignore[arg-type]  # checked: one of LINKAGES
    if len(distances) <= _MOST_ORDERED:
        merges = hierarchy.optimal_leaf_ordering(merges, condensed)
    return merges, tuple(hierarchy.leaves_list(merges).tolist())


def _supported(
    merges: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """For each merge, whether the largest upper end inside lies below the smallest lower end to the outside."""
    leaves = len(lower)
    # The least lower and the greatest upper ends between clusters; a cluster is in the place of its first part.
    least, greatest = lower.copy(), upper.copy()
    np.fill_diagonal(least, np.inf)
    inside = np.zeros(leaves)
    place = {leaf: leaf for leaf in range(leaves)}
    sure = np.zeros(leaves - 1, dtype=np.bool_)
    for merge, (first, second) in enumerate(merges[:, :2].astype(np.int64).tolist()):
        p, q = place.pop(first), place.pop(second)
        inside[p] = max(inside[p], inside[q], greatest[p, q])
        least[p] = np.minimum(least[p], least[q])
        greatest[p] = np.maximum(greatest[p], greatest[q])
        least[:, p], greatest[:, p] = least[p], greatest[p]
        least[p, p] = np.inf
        least[q], least[:, q] = np.inf, np.inf  # empty from now on
        place[leaves + merge] = p
        sure[merge] = inside[p] < least[p].min()
    parts = [int(part) - leaves for part in merges[-1, :2]]
    sure[-1] = all(part < 0 or sure[part] for part in parts)
    return sure


def _members(merges: NDArray[np.float64]) -> list[list[int]]:
    """The leaves of each merge."""
    leaves = len(merges) + 1
    members: list[list[int]] = []
    for first, second in merges[:, :2].astype(np.int64).tolist():
        both = [[part] if part < leaves else members[part - leaves] for part in (first, second)]
        members.append(both[0] + both[1])
    return members
