"""Where clusters begin: rows of a sample that are told apart from each other, by k-means++ on debiased squared distances.

A plain k-means++ draws the next row by its squared distance to those it has. In sketches that is mostly noise: the
noisiest rows would be drawn, and would stay clusters of one row.
"""

import math

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.kernels import BAND
from armslength.randomness.stream import Reader
from armslength.search.centers import Centers, NoiseEffect, points
from armslength.search.lloyd import TOLD_APART
from armslength.search.row_survey import Block
from armslength.threads import for_blocks

_QUIETEST = 0.1  # the share of rows among which the first is
_BANDS_AT_ONCE = 128  # a small sample is not worth a second thread


def first_rows(
    sample: Block,
    k2: NDArray[np.float64],
    k4: NDArray[np.float64],
    effect: NoiseEffect,
    count: int,
    words: Reader,
) -> list[int]:
    """The numbers of `count` rows of the sample.

    Each is the best of a few candidates: the one that brings all rows nearest to what is chosen, where distances are taken at
    the upper ends of what noise allows, so that a noisy row is near to nobody. Candidates are drawn by the lower ends of their
    squared distances: a row that is not told apart from one that was chosen is drawn only if there are no others. The first is
    one of the least noisy rows.

    Args:
        sample: At least `count` rows.
        k2: κ₂ of each.
        k4: κ₄ of each.
        effect: What noise does to a squared norm.
        count: How many rows to choose.
        words: Public randomness.
    """
    rows = len(k2)
    tries = 2 + int(math.log(count))
    upper = np.full(rows, np.inf)
    lower = np.zeros(rows)
    ratio = (k2 <= np.quantile(k2, _QUIETEST, method="lower")).astype(np.float64)
    free = np.ones(rows)
    chosen: list[int] = []
    for _ in range(count):
        drawn = _draw(_weights(lower, ratio, free), words, tries)
        value = _debiased(sample, points(sample, drawn, k2, effect), k2)
        noise = effect.deviation(k2[:, None] + k2[drawn], k4[:, None] + k4[drawn])
        ends = np.maximum(value, 0.0) + TOLD_APART * noise
        ends[drawn, np.arange(tries)] = 0.0
        best = int(np.argmin(np.minimum(ends, upper[:, None]).sum(axis=0)))
        nearer = ends[:, best] < upper
        upper[nearer] = ends[nearer, best]
        lower[nearer] = (value - TOLD_APART * noise)[nearer, best]
        ratio[nearer] = (value[nearer, best]) / np.maximum(noise[nearer, best], 1e-300)
        row = int(drawn[best])
        free[row] = 0.0
        chosen.append(row)
    return chosen


def _weights(
    lower: NDArray[np.float64], ratio: NDArray[np.float64], free: NDArray[np.float64]
) -> NDArray[np.float64]:
    """By the lower ends; if no row is told apart, by standard deviations; if all are equal, any row that is left."""
    for weights in (lower, ratio):
        kept = np.maximum(weights, 0.0) * free
        if kept.any():
            return kept
    return free


def _draw(weights: NDArray[np.float64], words: Reader, tries: int) -> NDArray[np.int64]:
    rising = np.cumsum(weights)
    uniform = (words.take(tries) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    # The last place whose weight is not 0, should rounding lead beyond it.
    last = int(np.flatnonzero(weights)[-1])
    places = np.searchsorted(rising, uniform * rising[-1], side="right")
    return np.asarray(np.minimum(places, last), dtype=np.int64)


def _debiased(sample: Block, centers: Centers, k2: NDArray[np.float64]) -> NDArray[np.float64]:
    """Debiased squared distances of all rows of the sample to some of them."""
    value = np.empty((len(k2), len(centers.sizes)))

    def fill(first: int, last: int) -> None:
        value[first * BAND : last * BAND] = centers.squares_to(sample, first, last, k2)

    for_blocks(-(-len(k2) // BAND), _BANDS_AT_ONCE, fill)
    return np.asarray(value - centers.effect.added * (k2[:, None] + centers.second))
