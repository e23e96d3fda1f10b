"""Flat clusters of very many rows, read block by block: k-means on sketches, with what noise adds taken away."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import integer, number
from armslength.errors import ParameterError
from armslength.estimates.squared_distances import is_clear
from armslength.progress import progress
from armslength.randomness.seeds import checked_seed
from armslength.randomness.stream import Reader, Stream
from armslength.search import lloyd
from armslength.search.centers import Centers, ClusterSums, NoiseEffect, coordinate_unit
from armslength.search.row_survey import Block, Frame, RowBlocks, RowNoises, Survey, checked_rows, survey
from armslength.search.seeding import first_rows

MOST_CLUSTERS = 4_096
SEED = "flat clusters"
PASSES = 100
TOLERANCE = 1e-4
NOTE = "clusters and margins describe the sketches and promise nothing: the same noise has chosen them"
_NUMBERS_AT_ONCE = 1 << 20  # 8 MiB for each array of a block
_LEAST_SAMPLE, _SAMPLE_PER_CLUSTER = 4_096, 8
_PASSES_OF_SAMPLE = 100


@dataclass(frozen=True, eq=False)
class FlatClustering:
    """Clusters of rows around centers, by estimated squared distances in which noise is not counted.

    A description of the sketches, not a statement about the truth at some level: rows went to clusters by their noise too, and no
    interval knows of that. Clusters are numbered in the order of their first rows.

    Attributes:
        numbers: For each row the number of its cluster.
        margin: For each row, how many standard deviations of its own noise would take it to the second nearest center, of those that
            the last pass began with; infinite if there is none, and for rows in the clear.
        sizes: How many rows each cluster has.
        radius: For each cluster the root of its rows' mean squared distance to the center, estimated, in data units.
        center_distances: Estimated distances of all centers, in data units.
        centers: The means of the clusters as rows of numbers, in the units of `Sketches.values`; the mean of sketches is the sketch of the mean.
        center_noise: The variance of the noise in each coordinate of each center, in the same units squared.
        inertia: The sum of all rows' squared distances to their centers, estimated, in squared data units.
        passes: How many times all rows were read to improve the clusters.
        converged: Whether few enough rows changed in the last pass.
        asked: How many clusters were asked for; there are fewer if some lost all rows and no row was told apart from its center.
        seed: The public seed.
        note: What must be known to read it.
    """

    numbers: NDArray[np.int32]
    margin: NDArray[np.float32]
    sizes: NDArray[np.int64]
    radius: NDArray[np.float64]
    center_distances: NDArray[np.float64]
    centers: NDArray[np.float64]
    center_noise: NDArray[np.float64]
    inertia: float
    passes: int
    converged: bool
    asked: int
    seed: str
    note: str

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return len(self.sizes)

    def batches(self, rows: RowBlocks, at_once: int = 65_536) -> Iterator[pa.RecordBatch]:
        """One line for each row: label, cluster, margin, in_clear (data without noise is part of the answer); in blocks, so that labels are never all in memory.

        Args:
            rows: The rows that were clustered, which know their labels.
            at_once: How many lines to a batch, at most; wide rows come in smaller ones.
        """
        most = integer("at_once", at_once, at_least=1, at_most=1 << 31)
        if len(rows) != len(self.numbers):
            raise ParameterError(f"rows must be the {len(self.numbers)} that were clustered, got {len(rows)}")
        first = 0
        for block in rows.blocks(min(most, _rows_at_once(self.centers.shape[1]))):
            part = slice(first, first + len(block))
            columns = {
                "label": pa.array(block.labels, pa.string()),
                "cluster": pa.array(self.numbers[part]),
                "margin": pa.array(self.margin[part]),
                "in_clear": pa.array(np.full(len(block), is_clear(self.note))),
            }
            yield pa.RecordBatch.from_pydict(columns)
            first = part.stop

    def __str__(self) -> str:
        how = "converged" if self.converged else "stopped"
        fewer = "" if self.count == self.asked else f" ({self.asked} were asked for)"
        times = f"{self.passes} pass{'' if self.passes == 1 else 'es'}"
        lines = [
            f"{len(self.numbers)} rows in {self.count} clusters{fewer}, {how} after {times}",
            f"half of the margins are above {np.median(self.margin):.3g}; many rows without clusters have 0.7 or less",
        ]
        apart = self.center_distances + np.diag(np.full(self.count, np.inf))
        for cluster, (size, radius) in enumerate(zip(self.sizes, self.radius, strict=True)):
            other = int(np.argmin(apart[cluster]))
            near = f", {apart[cluster, other]:.6g} from cluster {other}" if self.count > 1 else ""
            lines.append(
                f"cluster {cluster}: {size} row{'' if size == 1 else 's'}, radius {radius:.6g}{near}"
            )
        return "\n".join([*lines, self.note])


def flat_clusters(
    rows: RowBlocks,
    count: int,
    *,
    seed: str = SEED,
    passes: int = PASSES,
    tolerance: float = TOLERANCE,
    show_progress: bool = False,
) -> FlatClustering:
    """Rows in `count` clusters, each row with the center that is nearest to it by debiased squared distance.

    Rows are read several times, some at a time: memory does not grow with them, but for twenty bytes each.

    Args:
        rows: Rows of one space, of any noises, each with noise of its own.
        count: How many clusters, at most 4,096.
        seed: Public: the same seed and the same rows give the same clusters.
        passes: All rows are read at most this often to improve the clusters.
        tolerance: The share of rows that may change in the last pass.
        show_progress: Whether to show a bar on a terminal.
    """
    checked = checked_rows(rows, 1)
    clusters = integer("count", count, at_least=1, at_most=min(len(checked), MOST_CLUSTERS))
    most = integer("passes", passes, at_least=1, at_most=1_000_000)
    share = number("tolerance", tolerance, above=-1e-300, at_most=1.0)
    public = checked_seed(seed)
    words = Reader(Stream(public, "flat clusters"))
    protocol = checked.protocols[0]
    effect = NoiseEffect.of(protocol)
    width = protocol.transform.sketch_dim
    at_once = _rows_at_once(max(width, clusters))
    with progress("cluster", None, "rows", shown=show_progress) as advance:
        known = survey(checked, max(_LEAST_SAMPLE, _SAMPLE_PER_CLUSTER * clusters), words, at_once)
        begun = _clusters_of_sample(known, effect, clusters, words)
        numbers = np.full(len(checked), -1, dtype=np.int32)
        numbers[known.chosen] = begun.numbers
        ended = lloyd.run(
            lambda: _blocks(checked, known.frame, at_once),
            known.noises,
            Centers.of(begun.sums, effect),
            numbers,
            passes=most,
            tolerance=share,
            advance=advance,
        )
    return _result(ended, known, coordinate_unit(protocol), clusters, public)


def _rows_at_once(width: int) -> int:
    return max(64, _NUMBERS_AT_ONCE // width)


def _blocks(rows: RowBlocks, frame: Frame, at_once: int) -> Iterator[Block]:
    return (frame.block(part.values, part.offsets) for part in rows.blocks(at_once))


def _clusters_of_sample(known: Survey, effect: NoiseEffect, count: int, words: Reader) -> lloyd.Outcome:
    """Clusters of the sample alone, from which the passes over all rows begin: far fewer are needed then."""
    sample = known.sample
    classes = known.noises.classes[known.chosen]
    noises = RowNoises(classes, known.noises.second, known.noises.fourth)
    k2, k4 = noises.of(slice(None))
    seeds = np.array(first_rows(sample, k2, k4, effect, count, words))
    numbers = np.full(len(classes), -1, dtype=np.int32)
    numbers[seeds] = np.arange(count)
    rows = ClusterSums(sample.rows[seeds], np.ones(count), k2[seeds])
    return lloyd.run(
        lambda: iter((sample,)),
        noises,
        Centers.of(rows, effect),
        numbers,
        passes=_PASSES_OF_SAMPLE,
        tolerance=0.0,
    )


def _by_first_rows(numbers: NDArray[np.int32]) -> list[int]:
    """The different numbers, in the order in which they come; by parts, for whoever sorts needs as much memory again."""
    met: dict[int, None] = {}
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE // 16):
        found, firsts = np.unique(numbers[start : start + _NUMBERS_AT_ONCE // 16], return_index=True)
        met.update(dict.fromkeys(found[np.argsort(firsts)].tolist()))
    return list(met)


def _result(ended: lloyd.Outcome, known: Survey, unit: float, asked: int, seed: str) -> FlatClustering:
    """In data units, without clusters that have no rows, numbered by their first rows."""
    kept = _by_first_rows(ended.numbers)
    renumbered = np.empty(asked, dtype=np.int32)
    renumbered[kept] = np.arange(len(kept))
    sizes = ended.sums.sizes[kept].astype(np.int64)
    within = ended.within[kept]
    centers = ended.centers
    origin = known.frame.origin.astype(np.float64) + known.frame.offset
    return FlatClustering(
        renumbered[ended.numbers],
        ended.margin,
        sizes,
        unit * np.sqrt(np.maximum(within / sizes, 0.0)),
        unit * centers.distances()[np.ix_(kept, kept)],
        origin + centers.means[kept],
        centers.second[kept],
        unit**2 * float(within.sum()),
        ended.passes,
        ended.converged,
        asked,
        seed,
        "; ".join(part for part in (NOTE, known.note) if part),
    )
