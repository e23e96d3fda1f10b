"""Which parties belong together, and which of the groups the error bars bear out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import checked_rows, pair_estimator, unit_of
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError
from armslength.estimates.distances import is_clear
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import Bounds
from armslength.results import Result, sentences
from armslength.sketches.collection import Collection
from armslength.sketches.sketches import Sketches, concat

LINKAGES = ("average", "single", "complete")
MOST_ROWS = 5_000  # five matrices of all pairs: a gigabyte
_MOST_ORDERED = 2_000  # leaves beyond which their best order takes much longer than the tree


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Result):
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
        level: The confidence of `supported`, all together.
        by: "size" or "shape".
        note: What must be known to read it; empty if nothing.
    """

    labels: tuple[str, ...]
    linkage: NDArray[np.float64]
    supported: NDArray[np.bool_]
    order: tuple[int, ...]
    joined_by: str
    level: float
    by: str
    note: str

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
            made = leaves - integer("count", count, at_least=1, at_most=leaves)
            wanted = np.arange(leaves - 1) < made
        elif height is not None:
            checked = number("height", height, above=-1.0, at_most=np.inf)
            wanted = self.linkage[:, 2] <= checked
        else:
            wanted = self._below_supported()
        return _numbered(self.linkage, wanted)

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The leaves of every supported merge but the last, small groups first."""
        members = _members(self.linkage)
        return tuple(
            tuple(self.labels[leaf] for leaf in members[merge])
            for merge in np.flatnonzero(self.supported[:-1])
        )

    def _below_supported(self) -> NDArray[np.bool_]:
        """The merges inside of supported groups; the last merge is nobody's group."""
        leaves = len(self.labels)
        wanted = self.supported.copy()
        wanted[-1] = False
        for merge in range(leaves - 2, -1, -1):
            if wanted[merge]:
                for part in self.linkage[merge, :2].astype(np.int64):
                    if part >= leaves:
                        wanted[part - leaves] = True
        return wanted

    def to_arrow(self) -> pa.Table:
        """One line for each leaf, in the order of the tree: label, cluster (as `flat` has it), in_clear."""
        columns = {
            "label": pa.array([self.labels[leaf] for leaf in self.order], pa.string()),
            "cluster": self.flat()[list(self.order)],
            # all parties go into every cluster
            "in_clear": np.full(len(self.labels), is_clear(self.note)),
        }
        meta = {"by": self.by, "joined_by": self.joined_by, "level": repr(self.level), "note": self.note}
        return pa.table(columns).replace_schema_metadata(meta)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the tree; merges that are not supported are dashed."""
        label = f"distance at which groups merge ({self.joined_by} linkage{unit_of(self.by)})"
        return plots.tree(self.linkage, self.supported, self.order, self.labels, label, ax)

    def _title(self) -> str:
        sure = f"{int(self.supported.sum())} of {len(self.supported)} merges are supported"
        return (
            f"{len(self.labels)} parties, {self.joined_by} linkage: {sure}, all together at {self.level:.6g}"
        )

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
    """A tree of the parties by their estimated distances, and which of its groups the intervals bear out.

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
    rows = sketches if isinstance(sketches, Sketches) else concat(list(sketches.blocks(MOST_ROWS)))
    estimate = pair_estimator(by)(rows, None)
    interval = estimate.interval(level, method=method, simultaneous=True)
    return cluster_estimate(estimate, interval, linkage=linkage, level=level, by=by)


def cluster_estimate(
    estimate: Estimate, interval: Bounds, *, linkage: str = "average", level: float, by: str
) -> Clusters:
    """The tree of squared distances that are estimated already.

    Args:
        estimate: Squared distances of all pairs of one set of sketches.
        interval: (lower, upper) of all pairs, which hold together at this level.
        linkage: As for `cluster`.
        level: As for `cluster`.
        by: As for `cluster`.
    """
    merges, order = _tree(np.sqrt(np.maximum(estimate.value, 0.0)), linkage)
    supported = _supported(merges, np.sqrt(interval[0]), np.sqrt(interval[1]))
    return Clusters(estimate.labels[0], merges, supported, order, linkage, level, by, estimate.note)


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
    # Clusters live in the place of their first part: least lower and greatest upper ends between clusters.
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
        # The place of the second part is empty from now on.
        least[q], least[:, q] = np.inf, np.inf
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


def _numbered(merges: NDArray[np.float64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each leaf the number of its cluster when only the wanted merges are made."""
    leaves = len(merges) + 1
    groups = np.arange(leaves)
    for leaves_of, made in zip(_members(merges), wanted, strict=True):
        if made:
            groups[leaves_of] = min(groups[leaves_of])
    _, numbers = np.unique(groups, return_inverse=True)
    return numbers.astype(np.int64)
