"""Lloyd's iteration on sketches: every row goes to its nearest center, and centers become the means of their rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armslength.progress import Advance
from armslength.search.centers import Centers, ClusterSums
from armslength.search.kernels import add_one_by_one
from armslength.search.row_survey import Block, RowNoises

PATIENCE = 10  # passes in which as many rows change as ever: they go round in circles
TOLD_APART = 4.0  # standard deviations of noise beyond which rows are taken to differ

Blocks = Callable[[], Iterator[Block]]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where the passes ended.

    Attributes:
        centers: The means of the clusters.
        numbers: For each row its cluster.
        margin: For each row, how many standard deviations of its noise the second nearest center was behind in the last pass.
        within: For each cluster the sum of its rows' debiased squared distances, in squared integer units.
        sums: The rows of each cluster added up.
        passes: How many times all rows were read.
        converged: Whether few enough rows changed in the last pass.
    """

    centers: Centers
    numbers: NDArray[np.int32]
    margin: NDArray[np.float32]
    within: NDArray[np.float64]
    sums: ClusterSums
    passes: int
    converged: bool


def run(
    blocks: Blocks,
    noises: RowNoises,
    centers: Centers,
    numbers: NDArray[np.int32],
    *,
    passes: int,
    tolerance: float,
    advance: Advance = lambda _: None,
) -> Outcome:
    """Passes over all rows until few of them change their cluster.

    A cluster that lost all of its rows gets the row that is farthest from its own center, if the two are told apart: one cluster in
    each pass. If none is told apart, the cluster stays empty. Passes end also when for ten of them no fewer rows have changed.

    Args:
        blocks: Gives all rows in order, whenever it is called.
        noises: The noise of each row.
        centers: Where to begin.
        numbers: For each row the cluster whose center it is part of, −1 for none.
        passes: At most this many.
        tolerance: The share of rows that may change in the last pass.
        advance: Told of the rows that were read.
    """
    allowed = int(tolerance * len(numbers))
    fewest, fewest_at = len(numbers) + 1, 0
    for done in range(1, passes + 1):
        seen = _one_pass(blocks, noises, centers, numbers, advance)
        numbers = seen.numbers
        empty = np.flatnonzero(seen.sums.sizes == 0)
        can_fill = bool(len(empty)) and seen.farthest.row is not None
        converged = seen.changed <= allowed and not can_fill
        if seen.changed < fewest:
            fewest, fewest_at = seen.changed, done
        if converged or done == passes or done - fewest_at >= PATIENCE:
            break
        if can_fill:
            seen.fill(int(empty[0]), noises)
        centers = Centers.of(seen.sums, centers.effect)
    means = Centers.of(seen.sums, centers.effect)
    return Outcome(means, numbers, seen.margin, seen.within(centers, means), seen.sums, done, converged)


@dataclass(eq=False)
class _Farthest:
    """The row that is farthest beyond what noise can do from its center."""

    beyond: float = 0.0
    number: int = -1
    row: NDArray[np.float64] | None = None

    def meet(self, first: int, block: Block, beyond: NDArray[np.float64]) -> None:
        place = int(np.argmax(beyond))
        if beyond[place] > self.beyond:
            self.beyond, self.number = float(beyond[place]), first + place
            self.row = block.rows[place].copy()


@dataclass(eq=False)
class _Pass:
    numbers: NDArray[np.int32]
    margin: NDArray[np.float32]
    squares: NDArray[np.float64]  # of each cluster's rows to the center they have chosen, with their noise
    sums: ClusterSums
    farthest: _Farthest
    changed: int = 0

    def within(self, chosen: Centers, means: Centers) -> NDArray[np.float64]:
        """For each cluster the sum of its rows' debiased squared distances to their mean.

        Σ‖u − c‖² is m·‖c − mean‖² more than it would be to the mean, to which noise adds 1 − 1/m of what it adds to all rows.
        """
        moved = means.sizes * ((chosen.means - means.means) ** 2).sum(axis=1)
        added = means.effect.added * self.sums.second * (1 - 1 / np.maximum(means.sizes, 1.0))
        return np.asarray(self.squares - moved - added)

    def fill(self, empty: int, noises: RowNoises) -> None:
        """Gives the farthest row to a cluster without rows."""
        number, row = self.farthest.number, self.farthest.row
        if row is not None:
            k2 = float(noises.of(number)[0])
            self.sums.move(row, k2, int(self.numbers[number]), empty)
            self.numbers[number] = empty


def _one_pass(
    blocks: Blocks, noises: RowNoises, centers: Centers, numbers: NDArray[np.int32], advance: Advance
) -> _Pass:
    """One reading of all rows; `numbers` is changed in place, block by block."""
    seen = _Pass(
        numbers,
        np.empty(len(numbers), dtype=np.float32),
        np.zeros(len(centers.sizes)),
        ClusterSums.empty(*centers.means.shape),
        _Farthest(),
    )
    first = 0
    for block in blocks():
        part = slice(first, first + len(block))
        k2, k4 = noises.of(part)
        found = centers.nearest(block, numbers[part], k2)
        seen.changed += int(np.count_nonzero(numbers[part] != found.chosen))
        numbers[part] = found.chosen
        seen.margin[part] = found.margin
        add_one_by_one(found.chosen, found.square, seen.squares)
        seen.sums.add(block, found.chosen, k2)
        noise = centers.effect.deviation(k2 + centers.second[found.chosen], k4)
        seen.farthest.meet(first, block, found.value - TOLD_APART * noise)
        advance(len(block))
        first += len(block)
    return seen
