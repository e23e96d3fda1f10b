"""Intervals for single entries of z = y − x, from the sketch of z: simultaneous over a public list of items.

Proofs are in docs/reference/answers.md, section "Items".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.pair_noise import Floats, PairNoise
from armslength.estimates.quantiles import noise_pmf
from armslength.laws import SMALLEST_SCALE, Law, RoundedNormal
from armslength.sketches.sketches import Sketches
from armslength.transforms.transform import Transform

_NINE_OF_TEN = 1.2816  # standard deviations
_ROUNDING = 1e-12  # of error rates
_STEPS = 256  # of a lattice, to a standard deviation of noise
_FEW_SHARED = 4  # bins to an item, from which on few items share one
_ENOUGH_BINS = 1000  # in a block, to make a long list short
_FEW = 10  # bins to an item of a long list that one block has made short


@dataclass(frozen=True)
class ItemIntervals:
    """For each item the estimate of zᵢ and its interval; all intervals together miss with probability at most the error.

    Items that could not be measured have infinite intervals.
    """

    value: Floats
    lower: Floats
    upper: Floats
    measured: int  # of how many items; a long list is made short first
    bins: NDArray[np.int64] | None = None  # where items share one, σᵢzᵢ + σⱼzⱼ is what was measured
    signs: NDArray[np.int64] | None = None  # σ of each item


def item_intervals(rows: Sequence[Sketches], items: Any, error: float) -> ItemIntervals:
    """The intervals of entries of z from sketches of z, each of one row, in integer units.

    Several sketches are the corners of a box of possible z; the first one is the estimate.

    Args:
        rows: The sketches.
        items: What `Transform.columns` takes.
        error: How often any interval may miss.
    """
    transform = rows[0].transform
    numbers = np.stack([row.values[0].astype(np.float64) for row in rows])
    has_own_rows, blocks = _has_rows_of_their_own(transform), transform.item_blocks
    if not has_own_rows and blocks is None:
        raise ParameterError(
            f"transform must be SparseJL in blocks or Identity to tell items apart, got {transform.name}; "
            "plan the next release to explain items"
        )
    encoded = transform.signed_rows(items).astype(np.int64)
    bins, signs = np.where(encoded < 0, -1 - encoded, encoded), np.where(encoded < 0, -1, 1)  # n x s
    if has_own_rows or blocks is None:
        return _by_noise(signs[:, 0] * numbers[:, bins[:, 0]], _largest_noise(rows), error)
    return _by_bins(numbers, bins, signs, *blocks, error)


def largest_entries(row: Sketches, items: Any) -> Floats:
    """About how large the entry of each item is at most, in integer units: its largest bin, and two standard deviations of noise."""
    encoded = row.transform.signed_rows(items).astype(np.int64)
    bins = np.where(encoded < 0, -1 - encoded, encoded)
    noise = PairNoise.of(row.noises.terms(0)).cumulants.k2
    largest: Floats = np.abs(row.values[0][bins]).max(axis=1) + 2 * math.sqrt(noise)
    return largest


def measures_items(transform: Transform, count: int, error: float) -> bool:
    """Whether a list of that many items gets intervals, before there is a sketch; a long list from a thousand bins on."""
    if _has_rows_of_their_own(transform):
        return True
    if transform.item_blocks is None:
        return False
    blocks, factor = transform.item_blocks
    bins = transform.sketch_dim // blocks
    if blocks == 1:
        return count < bins and _rank_of_one_block(bins - count, count, factor, error) > 0
    return blocks > 2 and bins >= min(_FEW_SHARED * count, _ENOUGH_BINS)


def typical_reach(transform: Transform, count: int, law: Law, distance: float, error: float) -> float:
    """The difference of a listed item that is found in most cases, before there is a sketch; in integer units.

    Args:
        transform: One that measures so many items.
        count: How many are listed.
        law: The noise of each of the two rows.
        distance: Of the two rows: what else is in the bins.
        error: How often any interval may miss.
    """
    noises: list[tuple[Law, float]] = [(law, 1.0)] * 2
    blocks, factor = transform.item_blocks or (1, 1)
    bins = transform.sketch_dim // blocks
    if _has_rows_of_their_own(transform):
        tail = error / count
    else:
        noises.append((RoundedNormal(max(distance / math.sqrt(bins), SMALLEST_SCALE)), 1.0))
        listed, used = count, blocks
        if blocks > 2 and count > bins // _FEW_SHARED:  # the first block makes the list short
            listed, used = max(1, bins // _FEW), blocks - 1
        free = bins - listed
        rank = _rank_of_one_block(free, listed, factor, error)
        if blocks > 1:
            rank = math.floor(_rate_of_each(used, error / listed) * (free + 1) / factor + _ROUNDING)
        if rank < 1:
            return math.inf
        tail = (min(rank, free) - 0.3) / (free + 0.4)  # about the median of the rank-th largest of them
    noise = PairNoise.sum_of(tuple(noises))
    return noise_reach(noise, tail) + _NINE_OF_TEN * math.sqrt(noise.cumulants.k2)


def _has_rows_of_their_own(transform: Transform) -> bool:
    """Whether no two items share a row of the sketch."""
    return transform.column_entries == 1 and transform.projection_variance == 0


def _by_noise(estimates: Floats, noise: PairNoise, error: float) -> ItemIntervals:
    """No two items share a row: noise is all there is, and its law is known (Bonferroni)."""
    count = estimates.shape[1]
    reach = noise_reach(noise, error / count)
    return ItemIntervals(estimates[0], estimates.min(axis=0) - reach, estimates.max(axis=0) + reach, count)


def _by_bins(
    numbers: Floats,
    bins: NDArray[np.int64],
    signs: NDArray[np.int64],
    blocks: int,
    factor: int,
    error: float,
) -> ItemIntervals:
    """By what is in the bins of no listed item: in each block an item's bin is one of them, but for the item itself.

    With one block, what is measured is the sum of the items in a bin. With several, it is each item in the blocks where
    it has a bin of its own, and most of these must agree. A list too long for that is made short by the first block.
    """
    count, block_bins = len(bins), numbers.shape[1] // blocks
    sizes = np.abs(numbers).max(axis=0)
    chosen, first = np.arange(count), 0
    if blocks > 2 and count > block_bins // _FEW_SHARED:
        chosen, first = np.argsort(-sizes[bins[:, 0]], kind="stable")[: max(1, block_bins // _FEW)], 1
    used = bins[chosen, first:]
    members = np.bincount(used.ravel(), minlength=numbers.shape[1])
    by_block = zip(sizes.reshape(blocks, -1)[first:], members.reshape(blocks, -1)[first:], strict=True)
    free = [np.sort(values[in_bin == 0])[::-1] for values, in_bin in by_block]
    estimates = signs[chosen, first:] * numbers[:, used]
    is_clear = (members[used] == 1) | (blocks == 1)
    clear = is_clear.sum(axis=1)
    value = np.median(signs * numbers[0][bins], axis=1)
    lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
    for blocks_used in range(1, is_clear.shape[1] + 1):
        if blocks == 1:
            ranks = [_rank_of_one_block(len(free[0]), int((members > 0).sum()), factor, error)]
        else:
            rate = _rate_of_each(blocks_used, error / len(chosen))
            ranks = [math.floor(rate * (len(others) + 1) / factor + _ROUNDING) for others in free]
        ranks = [min(rank, len(others)) for rank, others in zip(ranks, free, strict=True)]
        reaches = [others[rank - 1] if rank > 0 else np.inf for rank, others in zip(ranks, free, strict=True)]
        rows = np.flatnonzero(clear == blocks_used)
        hidden = np.where(is_clear[rows], 0.0, np.nan)  # np.sort puts these last
        majority = blocks_used // 2 + 1
        lows = np.sort(estimates[:, rows].min(axis=0) - reaches + hidden, axis=1)
        highs = np.sort(estimates[:, rows].max(axis=0) + reaches + hidden, axis=1)
        lower[chosen[rows]], upper[chosen[rows]] = lows[:, blocks_used - majority], highs[:, majority - 1]
        value[chosen[rows]] = np.nanmedian(estimates[0, rows] + hidden, axis=1)
    if not np.isfinite(upper).any():
        raise NotResolvableError(_refusal(count, numbers.shape[1], blocks, factor, error), "explain")
    if blocks == 1:
        return ItemIntervals(value, lower, upper, count, bins[:, 0], signs[:, 0])
    return ItemIntervals(value, lower, upper, len(chosen))


def _rate_of_each(blocks: int, error: float) -> float:
    """p with 2·P(Bin(blocks, p/2) ≥ majority) = error: how often the interval of one block may miss.

    An end misses where it does in most blocks, each by itself with probability p/2: signs are fair coins.
    """
    majority = blocks // 2 + 1
    return min(1.0, 2 * float(betaincinv(majority, blocks - majority + 1, error / 2)))


def _rank_of_one_block(free: int, bins: int, factor: int, error: float) -> int:
    """L: any of `bins` is larger than the L-th largest of the free ones with probability at most the error; 0 for none.

    All bins are equally likely to be the largest ones, so none of the L largest has an item with probability
    Π (free − j)/(free + bins − j). For a factor of 2: Bonferroni.
    """
    if factor > 1:
        return math.floor(error * (free + 1) / (factor * bins) + _ROUNDING)
    j = np.arange(free)
    misses = 1 - np.cumprod((free - j) / (free + bins - j))
    return int(np.searchsorted(misses, error + _ROUNDING, side="right"))


def _refusal(count: int, coordinates: int, blocks: int, factor: int, error: float) -> str:
    needed = math.ceil(count * (1 if factor == 1 else factor + error) / error - _ROUNDING)
    problem = f"intervals of {plural(count, 'item')} that hold together"
    if blocks == 1:
        return (
            f"{problem} take a sketch of {needed} numbers with sparsity 1, and this one has {coordinates}; list at most "
            f"{math.floor(coordinates * count / needed)} items, or plan the next release with explain={count}, "
            "which takes more numbers, sparsity 3 or no projection"
        )
    return (
        f"{problem} take more than the {coordinates // blocks} bins in each of {blocks} blocks; "
        f"list fewer items, or plan the next release with explain={count}"
    )


def _largest_noise(rows: Sequence[Sketches]) -> PairNoise:
    """Each noise of the rows with its largest coefficient: no mixture of the rows has more of any."""
    largest: dict[tuple[bytes, Any], float] = {}
    for row in rows:
        for noise_id, (protocol, factor) in zip(row.noises.ids, row.noises.terms(0), strict=True):
            key = bytes(noise_id), protocol
            largest[key] = max(abs(factor), largest.get(key, 0.0))
    return PairNoise.of((protocol, factor) for (_, protocol), factor in largest.items())


@lru_cache(maxsize=64)
def noise_reach(noise: PairNoise, tail: float) -> float:
    """The smallest x with P(|N| > x) ≤ tail, exact where all noises lie on one lattice, else rounded up to a fine one."""
    if not noise.components:
        return 0.0
    unit, deviation = noise.unit, math.sqrt(noise.cumulants.k2)
    is_exact = noise.is_on_lattice and deviation <= _STEPS * unit
    # noise that is nearly always 0 reaches many deviations, and no finer lattice is needed than that of its values
    step = unit if is_exact else max(deviation, unit) / _STEPS
    pmf = noise_pmf(noise, step)
    beyond = 2 * np.cumsum(pmf[: len(pmf) // 2])[::-1]  # P(|N| > x) for x = 0, 1, … steps
    steps = int(np.searchsorted(-beyond, -tail))
    return step * steps + (0.0 if is_exact else step * math.sqrt(len(noise.components)))
