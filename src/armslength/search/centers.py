"""Centers of clusters: means of sketches, their noise, and which of them is nearest to a row once noise is taken away."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.kernels import BAND, squares_from_products
from armslength.estimates.squares import panels_of
from armslength.estimates.variance import debias
from armslength.lazy import lazy
from armslength.protocol.protocol import Protocol
from armslength.search.kernels import (
    add_one_by_one,
    add_to_centers,
    choose_centers,
    recompute_cancelled,
    squared_norm,
)
from armslength.search.row_survey import Block
from armslength.threads import for_blocks
from armslength.transforms.fast_jl import FastJL

_BANDS_AT_ONCE = 16
_UNNOTICED = 1e-6  # of what noise alone makes of a squared norm


@dataclass(frozen=True)
class NoiseEffect:
    """What noise in each coordinate does to a squared norm, in integer units.

    Attributes:
        added: What noise of variance 1 adds to it on average.
        fourth: The factor of κ₄ in the variance of what it adds.
        second: The factor of κ₂² there.
    """

    added: float
    fourth: float
    second: float

    @classmethod
    def of(cls, protocol: Protocol) -> "NoiseEffect":
        """For this protocol's space: k·κ₂ and k·(κ₄ + 2κ₂²), or what the published matrix makes of noise on the input."""
        transform = protocol.transform
        added = float(debias(protocol, np.asarray(1.0)))
        if protocol.noise_site == "input" and isinstance(transform, FastJL):
            squares, _, diagonal = transform.gram_traces
            return cls(added, diagonal, 2 * squares)
        return cls(added, transform.sketch_dim, 2.0 * transform.sketch_dim)

    def deviation(self, k2: NDArray[np.float64], k4: NDArray[np.float64]) -> NDArray[np.float64]:
        """The standard deviation of a debiased squared norm whose true value is 0."""
        return np.sqrt(np.maximum(self.fourth * k4 + self.second * k2**2, 0.0))

    def harmless_norms(self, k2: NDArray[np.float64], width: int) -> NDArray[np.float64]:
        """For each row, up to which ‖u‖² + ‖c‖² the rounding of ‖u‖² + ‖c‖² − 2⟨u, c⟩ is lost in the row's noise.

        That rounding is at most (width + 8)·2^−53·(‖u‖ + ‖c‖)², see `estimates.squares`.
        """
        return np.asarray(_UNNOTICED * math.sqrt(self.second) * k2 * 2.0**53 / (2 * (width + 8)))


@dataclass(eq=False)
class ClusterSums:
    """Rows of clusters, added up one after another.

    Attributes:
        sums: For each cluster the sum of its rows, less the origin.
        sizes: How many rows it has.
        second: The sum of their κ₂.
    """

    sums: NDArray[np.float64]
    sizes: NDArray[np.float64]
    second: NDArray[np.float64]

    @classmethod
    def empty(cls, count: int, width: int) -> "ClusterSums":
        """Clusters without rows."""
        return cls(np.zeros((count, width)), np.zeros(count), np.zeros(count))

    def add(self, block: Block, chosen: NDArray[np.int32], k2: NDArray[np.float64]) -> None:
        """Adds each row to the cluster that it has chosen."""
        add_one_by_one(chosen, np.ones(len(chosen)), self.sizes)
        add_one_by_one(chosen, k2, self.second)
        add_to_centers(block.rows, chosen, self.sums)

    def move(self, row: NDArray[np.float64], k2: float, source: int, target: int) -> None:
        """One row changes its cluster."""
        for cluster, sign in ((source, -1), (target, 1)):
            self.sums[cluster] += sign * row
            self.sizes[cluster] += sign
            self.second[cluster] += sign * k2


@dataclass(frozen=True, eq=False)
class Centers:
    """The means of clusters.

    A mean of sketches is the sketch of the mean, with noise of variance Σκ₂/m². A row of the cluster has 1/m of its own
    noise in it: u − c has (1−1/m)² of the row's κ₂, and 1/m² of every other's.

    Attributes:
        means: The centers, less the origin; 0 for a cluster without rows.
        sizes: How many rows each is the mean of.
        second: κ₂ of each center, in integer units.
        effect: What noise does to a squared norm.
    """

    means: NDArray[np.float64]
    sizes: NDArray[np.float64]
    second: NDArray[np.float64]
    effect: NoiseEffect

    @classmethod
    def of(cls, rows: ClusterSums, effect: NoiseEffect) -> "Centers":
        """The means of these clusters."""
        sizes = np.maximum(rows.sizes, 1.0)
        return cls(rows.sums / sizes[:, None], rows.sizes.copy(), rows.second / sizes**2, effect)

    @lazy
    def _panels(self) -> NDArray[np.float64]:
        return panels_of(self.means)

    @lazy
    def _squares(self) -> NDArray[np.float64]:
        return np.array([squared_norm(mean) for mean in self.means])

    @lazy
    def between(self) -> NDArray[np.float64]:
        """‖c − c'‖² of all centers, with their noise."""
        return np.array([((self.means - mean) ** 2).sum(axis=1) for mean in self.means])

    def squares_to(self, block: Block, first: int, last: int, k2: NDArray[np.float64]) -> NDArray[np.float64]:
        """‖u − c‖² of all rows in some bands and all centers, with their noise.

        Every pair is computed in the same way wherever it stands, so that blocks of any size give the same numbers: by a product, or
        by differences where that would cost digits that noise does not hide.

        Args:
            block: Rows, filled in.
            first: The first band.
            last: The band after the last.
            k2: κ₂ of each row of the block.
        """
        rows = block.rows[first * BAND : last * BAND]
        squares = block.squares[first * BAND : last * BAND]
        result = np.empty((len(squares), len(self.means)))
        for top in range(0, len(squares), BAND):
            squares_from_products(rows, self._panels, squares, self._squares, (0.0, 1.0), top, False, result)
        limits = self.effect.harmless_norms(k2[first * BAND : last * BAND], self.means.shape[1])
        recompute_cancelled(rows, squares, self.means, self._squares, limits, result)
        return result

    def nearest(self, block: Block, own: NDArray[np.int32], k2: NDArray[np.float64]) -> "NearestCenters":
        """For each row the center of the smallest debiased squared distance; of equal ones the first.

        Args:
            block: Rows, which are filled in here.
            own: For each row the cluster whose center it is part of; −1 for none.
            k2: κ₂ of each row.
        """
        added = self.effect.added
        noise = added * k2
        # A cluster without rows is infinitely far from all.
        center_noise = np.where(self.sizes > 0, added * self.second, -np.inf)
        reach = 2 * np.sqrt(self.between / self.means.shape[1])
        count = len(block)
        found = NearestCenters(
            np.empty(count, np.int32), np.empty(count), np.empty(count), np.empty(count, np.float32)
        )
        _ = self._panels, self._squares  # made here, and not by every thread

        def fill(first: int, last: int) -> None:
            part = slice(first * BAND, min(last * BAND, count))
            block.fill(part.start, part.stop)
            choose_centers(
                self.squares_to(block, first, last, k2),
                own[part],
                noise[part],
                (center_noise, self.sizes),
                reach,
                found.chosen[part],
                (found.square[part], found.value[part]),
                found.margin[part],
            )

        for_blocks(-(-count // BAND), _BANDS_AT_ONCE, fill)
        return found

    def distances(self) -> NDArray[np.float64]:
        """Estimated distances of all centers, in integer units: debiased, and 0 where that is negative."""
        added = self.effect.added * (self.second[:, None] + self.second[None, :])
        squared = np.maximum(self.between - added, 0.0)
        np.fill_diagonal(squared, 0.0)
        return np.sqrt(squared)


@dataclass(frozen=True, eq=False)
class NearestCenters:
    """The nearest centers of some rows.

    Attributes:
        chosen: Their numbers.
        square: The squared distances to them with their noise, in squared integer units.
        value: The debiased squared distances to them, in squared integer units.
        margin: How many standard deviations of the row's noise the second nearest is behind.
    """

    chosen: NDArray[np.int32]
    square: NDArray[np.float64]
    value: NDArray[np.float64]
    margin: NDArray[np.float32]


def points(block: Block, rows: NDArray[np.int64], k2: NDArray[np.float64], effect: NoiseEffect) -> Centers:
    """Some rows as centers of clusters of one row each.

    Args:
        block: Where they are.
        rows: Their numbers.
        k2: κ₂ of each row of the block.
        effect: What noise does to a squared norm.
    """
    return Centers(block.rows[rows], np.ones(len(rows)), k2[rows], effect)


def coordinate_unit(protocol: Protocol) -> float:
    """What turns integer units into data units."""
    return math.sqrt(protocol.unit_squared)
