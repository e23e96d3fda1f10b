"""A tree of the parties, and which of its groups the noise cannot explain (docs/reference/answers.md).

The tree is a description of the estimates. A merge G = L ∪ R is supported if G is closer inside than to every other cluster H that
exists when G merges on: θ = d̄²(G, H) − d̄²(L, R) > 0, with d̄² the mean squared distance of two clusters.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import gammaincc

from armslength import plots
from armslength.answers.pairs import Answer, checked_sketches, pair_estimator, with_shapes
from armslength.checks import integer, number, one_of
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import all_squares, squared_norms
from armslength.estimates.estimate import Estimate
from armslength.estimates.pair_noise import Floats, PairNoises
from armslength.estimates.shapes import Shape
from armslength.estimates.totals import totals
from armslength.estimates.variance import ErrorModel
from armslength.laws import Cumulants
from armslength.results import sentences
from armslength.sketches.sketches import Sketches

LINKAGES = ("average", "single", "complete")
MOST_ROWS = 5_000  # five matrices of all pairs: a gigabyte
_MOST_TESTED = 2_000  # rows, for support: twenty matrices of all pairs
_PARTS = 3  # of the coordinates: fewer are safer where a few items dominate, and find less
_MOST_ORDERED = 2_000  # leaves beyond which their best order takes much longer than the tree


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Answer):
    """A tree of merges at estimated distances, in data units, and which of its groups are supported.

    The tree and every cut of it describe the estimates. Support is a claim, about the people counted or, beyond chance, about the
    populations behind them: the group's two parts are closer to each other than the group is to any cluster beside it. All supported
    merges are right together with probability about `level`: tested by simulation, not proved (docs/reference/answers.md).

    Attributes:
        labels: The leaves' names.
        linkage: (n−1) x 4, as SciPy has it: the two clusters, the height, how many leaves. Heights rise.
        support: For each merge its p-value, corrected for all pairs of parties; 1 for the last, which has no outside.
        order: The leaves from left to right, neighbors as close as the tree allows.
        joined_by: How the distance of clusters is made of those of leaves.
    """

    labels: tuple[str, ...]
    linkage: NDArray[np.float64]
    support: NDArray[np.float64]
    order: tuple[int, ...]
    joined_by: str

    @property
    def supported(self) -> NDArray[np.bool_]:
        """For each merge whether its group is supported at the level."""
        return np.asarray(self.support <= 1 - self.level)

    @property
    def in_supported(self) -> NDArray[np.bool_]:
        """For each leaf whether a supported group has it."""
        return np.asarray(self._largest() >= 0)

    def flat(self, count: int | None = None, height: float | None = None) -> NDArray[np.int64]:
        """For each leaf the number of its cluster, from 0 in the order of their first leaves.

        Args:
            count: Cut the tree into this many clusters.
            height: Undo all merges above this height. Neither: undo the merges above a supported group, so that the largest
                supported groups are clusters; one cluster if there are none.
        """
        leaves, members = len(self.labels), _members(self.linkage)
        if count is not None and height is not None:
            raise ParameterError("clusters must be cut by a count or by a height, got both")
        are_merged: Any
        if count is not None:
            are_merged = np.arange(1, leaves) <= leaves - integer("count", count, at_least=1, at_most=leaves)
        elif height is not None:
            are_merged = self.linkage[:, 2] <= number("height", height, above=-1.0, at_most=np.inf)
        else:
            largest = self._largest()
            are_merged = [np.ptp(largest[group]) == 0 for group in members]
        clusters = np.arange(leaves)
        for group, is_merged in zip(members, are_merged, strict=True):
            if is_merged:
                clusters[group] = clusters[group].min()
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The largest supported groups, each and all in the order of the rows."""
        groups: dict[int, list[str]] = {}
        for label, merge in zip(self.labels, self._largest().tolist(), strict=True):
            groups.setdefault(merge, []).append(label)
        return tuple(tuple(group) for merge, group in groups.items() if merge >= 0)

    def _largest(self) -> NDArray[np.int64]:
        """For each leaf the largest supported merge that has it; −1 if none has."""
        largest = np.full(len(self.labels), -1)
        for merge, group in enumerate(_members(self.linkage)):  # merges come after their parts
            if self.supported[merge]:
                largest[group] = merge
        return largest

    def to_arrow(self) -> pa.Table:
        """One line for each leaf, in the order of the tree: label, cluster (as `flat` has it), supported, in_clear."""
        order = list(self.order)
        columns = {
            "label": [self.labels[leaf] for leaf in order],
            "cluster": self.flat()[order],
            "supported": self.in_supported[order],
        }
        return self._table(columns, joined_by=self.joined_by)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the tree; merges that are not supported are dashed."""
        label = f"distance at which groups merge ({self.joined_by} linkage{self._unit})"
        return plots.tree(self.linkage, self.supported, self.order, self.labels, label, ax)

    def _title(self) -> str:
        count = len(self.groups())
        if not count:
            return f"{len(self.labels)} parties: no group stands apart at {100 * self.level:.6g}%"
        return f"{plural(count, 'group stands', 'groups stand')} apart from the other parties (supported at {100 * self.level:.6g}%)"

    def __str__(self) -> str:
        lines = [self._title()]
        lines += [f"  {', '.join(group)}" for group in self.groups()]
        alone = [self.labels[leaf] for leaf in np.flatnonzero(~self.in_supported).tolist()]
        if not self.groups():
            lines.append("The tree is a description: noise and the projection could have made it.")
        elif alone:
            lines.append(f"In no supported group: {', '.join(alone)}")
        return sentences(lines, self.note)


def cluster(
    sketches: Sketches,
    *,
    linkage: str = "average",
    level: float = 0.95,
    by: str = "size",
    beyond_chance: bool = False,
) -> Clusters:
    """A tree of the parties by their estimated distances, and which of its groups are supported.

    Args:
        sketches: One row for each party, at most 5,000; support is claimed for at most 2,000.
        linkage: "average", "single" or "complete".
        level: The probability with which all supported groups are right together.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether tree and support are about the populations, as for `shape_distances`; by shape.
    """
    checked_sketches("sketches", sketches, 2)
    one_of("linkage", linkage, LINKAGES)
    number("level", level, above=0.0, at_most=1.0)
    if len(sketches) > MOST_ROWS:
        raise ParameterError(
            f"sketches must have at most {MOST_ROWS} rows for a tree, got {len(sketches)}; "
            "for more, use scikit-learn on their values"
        )
    rows, left_out = with_shapes(sketches, by, 2)
    estimate = pair_estimator(by, beyond_chance=beyond_chance)(rows, None)
    estimate = replace(estimate, note="; ".join(filter(None, (estimate.note, left_out))))
    return cluster_estimate(rows, estimate, linkage=linkage, level=level, by=by, beyond_chance=beyond_chance)


def cluster_estimate(
    sketches: Sketches,
    estimate: Estimate,
    *,
    linkage: str = "average",
    level: float,
    by: str,
    beyond_chance: bool = False,
) -> Clusters:
    """The tree of these rows, whose squared distances of all pairs are estimated."""
    from scipy.cluster import hierarchy  # noqa: PLC0415  # nothing else needs it

    distances = np.sqrt(np.maximum(estimate.value, 0.0))
    condensed = distances[np.triu_indices(len(distances), 1)]
    merges = hierarchy.linkage(condensed, method=linkage)  # type: ignore[arg-type]  # checked: one of LINKAGES
    if len(distances) <= _MOST_ORDERED:
        merges = hierarchy.optimal_leaf_ordering(merges, condensed)
    order = tuple(hierarchy.leaves_list(merges).tolist())
    support = _support(sketches, estimate, merges, order, by)
    tree, note = (merges, support, order, linkage), estimate.note
    return Clusters(estimate.labels[0], *tree, level=level, by=by, beyond_chance=beyond_chance, note=note)


def _support(
    sketches: Sketches,
    estimate: Estimate,
    merges: Floats,
    order: tuple[int, ...],
    by: str,
) -> Floats:
    """The p-value of each merge, times the number of pairs of parties.

    Beyond chance, sampling is more noise: with the tr Σ² of each row that the law of distances has, and as skewed as one large item makes it. Nothing is claimed of rows that have a noise in common, whose errors depend on each other, nor of very many rows.
    """
    leaves, noises, squared = len(order), sketches.noises, estimate.value
    sampled = estimate.rule.law.rows if isinstance(estimate.rule, Shape) else None
    beyond_chance = sampled is not None and bool(sampled.one_person.any())
    if noises.has_shared or not 3 <= leaves <= _MOST_TESTED:
        return np.ones(leaves - 1)
    factor, error = _scale_and_error(sketches, squared, by)
    model, rows = ErrorModel.of(sketches.protocols[0]), PairNoises.of_rows(noises)
    k2, k4 = rows.each("k2") * factor**2, rows.each("k4") * factor**4
    pairs = squared, k2[:, None] * squared, error, *_parts(sketches, factor, model, k2)
    skewness, chance = _skewness(k2, k4, model.null_degrees or model.coordinates), 0.0
    if sampled is not None and beyond_chance:
        degrees = max(model.variance_curve(Cumulants(1.0, 0.0)).c, model.null_variance[0]) / 2
        # tr (noise + Σ)²
        noise, k2 = k2, np.sqrt(k2**2 + (2 * k2 * sampled.chance + sampled.sampling**2) / degrees)
        share = float(np.max(1 - noise**2 / k2**2))  # of chance in the variance
        skewness, chance = skewness * (1 - share) ** 1.5, math.sqrt(8) * share**1.5
        pairs = (squared, k2[:, None] * np.maximum(squared, 0.0), *pairs[2:])
    tails = _largest_tails(merges, order, pairs, (k2, k4), model, (skewness, chance))
    # For all merges; about the counts for all pairs, since the tree was built on the same errors.
    times = leaves - 2 if beyond_chance else leaves * (leaves - 1) / 2
    return np.asarray(np.append(np.minimum(1.0, times * tails), 1.0))


def _pearson_tail(z: Floats, skewness: Floats | float) -> Floats:
    """The tail of a Pearson III law beyond z standard deviations: a gamma variable of shape 4/skewness², normalized."""
    shape = 4 / np.maximum(skewness, 1e-4) ** 2
    return np.asarray(gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0)))


def _scale_and_error(sketches: Sketches, squared: Floats, by: str) -> tuple[Floats, Floats]:
    """What each row is multiplied by; and the standard error of every pair from the projection and the totals."""
    model = ErrorModel.of(sketches.protocols[0])
    a = model.variance_curve(Cumulants()).a
    if by == "size":
        return np.ones(len(sketches)), np.sqrt(a) * np.maximum(squared, 0.0)
    total = totals(sketches)
    factor = 1 / total.value
    v = np.asarray(total.rule.variance) * factor**2
    norms = np.maximum(squared_norms(sketches).value * factor**2, 0.0)
    x, y, vx, vy = norms[:, None], norms[None, :], v[:, None], v[None, :]
    inner = (x + y - squared) / 2
    variance = vx * (x - y + squared) ** 2 + vy * (y - x + squared) ** 2 + a * np.maximum(squared, 0.0) ** 2
    variance += 5 * (vx * x) ** 2 + 5 * (vy * y) ** 2 + 4 * vx * vy * inner**2
    return factor, np.sqrt(variance)


def _parts(sketches: Sketches, factor: Floats, model: ErrorModel, k2: Floats) -> Iterator[Floats]:
    """What each part of the coordinates adds to every squared distance."""
    values = sketches.values if (factor == 1).all() else sketches.values * factor[:, None]
    for part in range(_PARTS):
        rows = values[:, part::_PARTS]
        share = rows.shape[1] / values.shape[1]
        squares = all_squares(rows, rows, np.inf) - share * model.bias * np.add.outer(k2, k2)
        np.fill_diagonal(squares, 0.0)
        yield model.unit * squares


def _skewness(k2: Floats, k4: Floats, coordinates: int) -> float:
    """That of ‖noise‖² of one row, the largest over rows; κ₆ is what a Laplace noise of this kurtosis has."""
    noisy = k2 > 0
    if not noisy.any():
        return 0.0
    kurtosis = float(np.max(k4[noisy] / k2[noisy] ** 2))
    third = 10 / 3 * kurtosis**2 + 12 * kurtosis + 8
    return third / float((kurtosis + 2) ** 1.5 * coordinates**0.5)


@dataclass(frozen=True)
class _Cluster:
    """A cluster: a range of the leaves in their order, and sums over its members."""

    span: slice
    sums: Floats  # of 1, κ₂, κ₂², κ₄ and κ₂³
    against: Floats  # of every layer of pairs, against each leaf
    within: float  # of the squared distances of all members with all
    parts: "tuple[_Cluster, _Cluster] | None" = None

    def plus(self, other: "_Cluster") -> "_Cluster":
        """Both together; of their own parts nothing is needed any more."""
        span = slice(min(self.span.start, other.span.start), max(self.span.stop, other.span.stop))
        within = self.within + other.within + 2 * self.to(other)[0]
        parts = replace(self, parts=None), replace(other, parts=None)
        return _Cluster(span, self.sums + other.sums, self.against + other.against, within, parts)

    def to(self, other: "_Cluster") -> Floats:
        """The sum of every layer over all pairs of a member here and one there."""
        return np.asarray(self.against[:, other.span].sum(axis=1))


def _largest_tails(
    merges: Floats,
    order: tuple[int, ...],
    pairs: Sequence[Floats],
    noise: tuple[Floats, Floats],
    model: ErrorModel,
    skewness: tuple[float, float],
) -> Floats:
    """For each merge but the last the largest p-value of θ over all H.

    Args:
        merges: As SciPy has them.
        order: The leaves from left to right: every cluster is a range of them.
        pairs: Of all pairs: squared distances, the same times κ₂ of the first, errors, and parts of the squared distances.
        noise: κ₂ and κ₄ of each row.
        model: Of the protocol.
        skewness: Of noise, and of chance in one row, which averages out over rows.
    """
    leaves = len(order)
    k2, k4 = (cumulants[list(order)] for cumulants in noise)
    layers = np.stack([matrix[np.ix_(order, order)] for matrix in pairs])
    of_rows = np.stack([np.ones(leaves), k2, k2**2, k4, k2**3])
    clusters = {
        leaf: _Cluster(slice(start, start + 1), of_rows[:, start], layers[:, start], 0.0)
        for start, leaf in enumerate(order)
    }
    within, is_start = np.zeros(leaves), np.ones(leaves, dtype=np.bool_)
    tails = np.empty(leaves - 2)
    for merge, pair in enumerate(merges[:, :2].astype(np.int64).tolist()):
        starts = np.flatnonzero(is_start)
        for node in pair:
            group = clusters[node]
            if group.parts is not None:
                others = starts != group.span.start
                sums = np.add.reduceat(of_rows, starts, axis=1)
                to_others = [np.add.reduceat(part.against, starts, axis=1)[:, others] for part in group.parts]
                weighted = np.add.reduceat(k2 * group.against[0], starts)[others]
                outside = sums[:, others], within[starts[others]], weighted
                deviates, concentration = _deviates(group, *group.parts, outside, to_others, model)
                of_noise, of_chance = skewness
                tails[node - leaves] = _pearson_tail(deviates, of_noise + of_chance * concentration).max()
        first, second = (clusters.pop(node) for node in pair)
        both = clusters[leaves + merge] = first.plus(second)
        is_start[max(first.span.start, second.span.start)] = False
        within[both.span.start] = both.within
    return tails


def _deviates(
    group: _Cluster,
    left: _Cluster,
    right: _Cluster,
    outside: tuple[Floats, Floats, Floats],
    to_others: list[Floats],
    model: ErrorModel,
) -> tuple[Floats, Floats]:
    """θ̂ divided by its standard error, for every H, and how much a few rows have of its variance; −∞ where θ̂ ≤ 0 without one part of the coordinates.

    θ̂ = Σ M_ij⟨u_i, u_j⟩ for rows u_i of noise K, less its bias, has the variance b·tr(KMGM) + c·tr(MKMK) + Σ κ₄M_ii², with
    G the Gram matrix without noise; −½ of the squared distances will do for it, since the rows of M add up to 0. To that come
    the errors that pairs have in common, as if they were all the same.
    """
    (h, h_k2, h_squares, h_k4, h_cubes), h_within, weighted = outside
    g, between = group.sums[0], left.to(right)
    inside = between / (left.sums[0] * right.sums[0])
    means = (to_others[0] + to_others[1]) / (g * h)
    theta, parts = means[0] - inside[0], means[3:] - inside[3:, None]
    trace = h_squares / h**2 + 2 * group.sums[1] * h_k2 / (g * h) ** 2
    fourth = h_k4 / h**2
    squares_of_rows, cubes_of_rows = h_squares / h**2, h_cubes / h**3
    signal = (weighted / g - h_k2 * group.within / g**2 / 2) / h**2
    for part, other, (to_h, other_to_h) in ((left, right, to_others), (right, left, to_others[::-1])):
        (size, k2, squares, k4, cubes), other_size = part.sums, other.sums[0]
        diagonal = 1 / g - 1 / size
        trace = trace + squares * diagonal**2 + k2 * other.sums[1] / (size * other_size) ** 2
        fourth = fourth + k4 * diagonal**2
        squares_of_rows = squares_of_rows + squares * diagonal**2
        cubes_of_rows = cubes_of_rows + cubes * np.abs(diagonal) ** 3
        signal = signal - k2 / 2 * (h_within / (h * g) ** 2 + other.within / (size * other_size) ** 2)
        signal = signal + diagonal * (to_h[1] / (g * h) - part.to(other)[1] / (size * other_size))
        signal = signal + k2 * other_to_h[0] / (g * size * h * other_size)
    curve = model.variance_curve(Cumulants(1.0, 0.0))
    noise = max(curve.c, model.null_variance[0]) * trace + model.kurtosis * fourth
    variance = noise + curve.b * np.maximum(signal, 0.0) + (means[2] + inside[2]) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        deviates = np.where(theta > 0, theta / np.sqrt(variance), -np.inf)
    # Two large items in one bin change one part alone. Where items do not meet, parts say nothing new.
    is_agreed = (theta > parts).all(axis=0) if curve.a > 0 else True
    concentration = cubes_of_rows / np.where(squares_of_rows > 0, squares_of_rows, 1.0) ** 1.5
    return np.where(is_agreed, deviates, -np.inf), concentration


def _members(merges: NDArray[np.float64]) -> list[list[int]]:
    """The leaves of each merge."""
    leaves = len(merges) + 1
    members: list[list[int]] = []
    for first, second in merges[:, :2].astype(np.int64).tolist():
        both = [[part] if part < leaves else members[part - leaves] for part in (first, second)]
        members.append(both[0] + both[1])
    return members
