"""The search for the nearest rows: float products rule out nearly all pairs, exact distances decide about the rest.

Of each noise, the count + 1 smallest estimates are enough: both ends of an interval rise with the estimate. A row b is
one of them only if ⟨a, b⟩ − ‖b‖²/2 ≥ (‖a‖² − T)/2, a limit lowered by more than all rounding. Decision 19 has the proof.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.estimates.distances import chosen_squares
from armslength.estimates.intervals import Level, pair_intervals
from armslength.estimates.pair_noise import Floats, PairNoise, PairNoises, noise_classes
from armslength.estimates.variance import ErrorModel
from armslength.progress import Advance
from armslength.sketches.sketches import Sketches

MOST_NOISES = 32  # different ones in the index; each keeps candidates of its own
ROWS, QUERIES = 4096, 1024  # at once, at most: 16 MiB of products
_NUMBERS = 2**21  # of the rows at once, at most
_LARGEST_DIM32 = 2**17  # coordinates up to which float32 products are of use
_FARTHEST, _LONGEST = 2.0**60, 2.0**40  # from the origin, before and after scaling
_LEAST = 2.0**-40  # squared length that rounding is relative to, at least: covers underflow
_SAMPLE = 128  # queries that the origin is the median of

# Ends rise with the estimate up to rounding, which is far less than this.
_ALMOST = 1 + 2.0**-40
_NO_ROW = np.iinfo(np.int64).max  # the number of a row where there is none yet

Numbers = NDArray[np.int64]


def margin(coordinates: int, kind: type[np.floating[Any]]) -> float:
    """How far rounding can move ‖a‖² + ‖b‖² − 2⟨a, b⟩ − T, as a share of ‖a‖² + ‖b‖² + |T| (decision 19)."""
    return 1.125 * (coordinates + 16) * (2.0**-24 if kind is np.float32 else 2.0**-50)


@dataclass(frozen=True)
class FloatRows:
    """Rows as they are, and as floats: relative to an origin and scaled."""

    exact: NDArray[Any]
    floats: NDArray[Any]  # zeros for a row that is too far from the origin
    square: Floats  # squared lengths; −∞ for such a row, so that it is always a candidate
    slack: Floats  # what rounding errors are relative to: squared lengths


class Origin:
    """The point that rows are measured from, since what rows have in common would only cost digits, and a scale."""

    def __init__(self, values: NDArray[Any]) -> None:
        sample = values[:: -(-len(values) // _SAMPLE)]
        middle = np.median((sample - sample[0]).astype(np.float64), axis=0)
        self._point = sample[0] + np.rint(np.clip(middle, -_FARTHEST, _FARTHEST)).astype(values.dtype)
        lengths = np.linalg.norm((sample - self._point).astype(np.float64), axis=1)
        typical = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
        self.scale = 2.0 ** -round(math.log2(typical))  # a power of two: scaling rounds nothing

    def float_rows(self, values: NDArray[Any], kind: type[np.floating[Any]]) -> FloatRows:
        """These rows, which have the type of the origin's, as floats of this kind."""
        floats, squares, slacks = np.zeros(values.shape, kind), np.empty(len(values)), np.empty(len(values))
        longest = min(_LONGEST, _FARTHEST * self.scale) ** 2
        step = max(1, 2**15 // values.shape[1])  # rows that a core's own cache holds
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            # Integers are subtracted modulo 2^64: this is the true difference of rows within 2^61 of the origin.
            away = (values[part] - self._point).astype(np.float64)
            away *= self.scale
            square = np.einsum("ij,ij->i", away, away)
            close = square < longest
            floats[part] = away if close.all() else np.where(close[:, None], away, 0.0)
            squares[part] = np.where(close, square, -np.inf)
            slacks[part] = np.where(close, square, 0.0) + _LEAST
        return FloatRows(values, floats, squares, slacks)


class Smallest:
    """For each query the pairs of the smallest keys, in ascending order; of equal keys, the first rows."""

    def __init__(self, queries: int, kept: int, others: int = 0) -> None:
        shape = queries, kept
        self.key, self.number = np.full(shape, np.inf), np.full(shape, _NO_ROW)
        self.columns: list[NDArray[Any]] = [self.key, self.number]
        self.columns += [np.full(shape, np.inf) for _ in range(others)]  # what is kept beside a key

    @property
    def is_row(self) -> NDArray[np.bool_]:
        """Where there is a pair."""
        return np.asarray(self.number != _NO_ROW)

    def add(self, queries: Numbers, numbers: Numbers, key: Floats, *others: Floats) -> None:
        """Adds pairs of queries and rows, each of which must come once."""
        worst, last = self.key[queries, -1], self.number[queries, -1]
        better = (key < worst) | ((key == worst) & (numbers < last))
        if not better.any():
            return
        changed, kept = np.unique(queries[better]), self.key.shape[1]
        groups = np.concatenate([np.repeat(changed, kept), queries[better]])
        pairs = zip(self.columns, (key, numbers, *others), strict=True)
        both = [np.concatenate([old[changed].ravel(), new[better]]) for old, new in pairs]
        order = np.lexsort((both[1], both[0], groups))
        # Every group has at least as many pairs as are kept.
        starts = np.searchsorted(groups[order], changed)
        smallest = order[starts[:, None] + np.arange(kept)]
        for column, values in zip(self.columns, both, strict=True):
            column[changed] = values[smallest]


class Shortlist:
    """For each query the pairs of the smallest values, and of the smallest lower ends."""

    def __init__(self, queries: int, count: int) -> None:
        self.count = count
        self.least_upper = np.full(queries, np.inf)
        self._nearest, self._lowest = Smallest(queries, count, others=2), Smallest(queries, count + 1)

    def add(self, queries: Numbers, numbers: Numbers, value: Floats, lower: Floats, upper: Floats) -> None:
        """Adds pairs of queries and rows of the index. Every pair must come once, or be sure not to matter."""
        np.minimum.at(self.least_upper, queries, upper)
        self._nearest.add(queries, numbers, value, lower, upper)
        self._lowest.add(queries, numbers, lower)

    def add_tile(self, tile: tuple[Floats, Floats, Floats], first_query: int, first_number: int) -> None:
        """Adds consecutive queries with consecutive rows, except pairs whose lower end is infinity."""
        # An infinite upper end is fine: it rules no row out.
        rows, columns = np.nonzero(tile[1] != np.inf)
        numbers = (matrix[rows, columns] for matrix in tile)
        self.add(rows + first_query, columns + first_number, *numbers)

    def answers(self) -> dict[str, Any]:
        """The answers, once every pair was added: attributes of `Nearest`, with squared distances."""
        value, numbers, low, high = self._nearest.columns
        lows, reach = self._lowest.key, self.least_upper[:, None] * _ALMOST
        candidates = (self._lowest.is_row & (lows <= reach)).sum(axis=1)
        # Among the answers alone: that many are surely nearer, whatever the other rows are.
        best_rank = 1 + _counts(np.sort(high, axis=1), low / _ALMOST)
        # The answer itself is one of those whose lower end does not lie above its upper end.
        possibly = _counts(lows, np.nextafter(high * _ALMOST, np.inf))
        worst_rank = np.maximum(possibly, best_rank)  # nothing lies below infinity, not even itself
        answers = {"indices": numbers, "value": value, "lower": low, "upper": high, "possible": low <= reach}
        return {**answers, "candidates": candidates, "best_rank": best_rank, "worst_rank": worst_rank}


@dataclass
class RowsOfNoise:
    """The rows of one noise, and their smallest values for each query."""

    noise: PairNoise
    bias: Floats  # what noise adds to each query's squared distances, in squared integer units
    smallest: Smallest
    searched: int = 0  # how many rows


class Candidates:
    """The queries, and their best candidates so far; `within`: the index is the queries themselves."""

    def __init__(self, queries: Sketches, count: int, level: Level, *, within: bool) -> None:
        self._queries, self._kept, self._level, self._within = queries, count + 1, level, within
        self._all_differ = within and queries.noises.are_fresh  # then no two rows share a noise
        self._classes, self._noises = noise_classes(queries.noises)
        self._model = ErrorModel.of(queries.protocols[0])
        self._rows: dict[PairNoise, RowsOfNoise] = {}
        dim = queries.values.shape[1]
        self._kind: type[np.floating[Any]] = np.float32 if dim <= _LARGEST_DIM32 else np.float64
        self._as_floats: dict[np.dtype[Any], tuple[Origin, FloatRows]] = {}

    def search(self, block: Sketches, first_number: int, shortlist: Shortlist, advance: Advance) -> bool:
        """Searches consecutive rows of the index; False, with nothing done, if too many noises differ or are shared."""
        noises, shared = self._queries.noises, (np.empty(0, dtype=np.int64),) * 2
        if not self._all_differ:
            if noises.shared_count(block.noises) > 4 * (len(self._queries) + len(block)):
                return False
            shared = noises.shared_pairs(block.noises)
        by_noise = self._by_noise(block)
        if by_noise is None:
            return False
        if self._within:  # nobody is its own neighbor
            others = shared[0] != shared[1] + first_number
            shared = shared[0][others], shared[1][others]
        if len(shared[0]):
            i, j = shared
            differences = PairNoises.of_rows(noises.take(i).plus(block.noises.take(j), -1.0))
            squares = chosen_squares(self._queries.values, block.values, i, j)
            value = self._model.unit * (squares - self._model.bias * differences.each("k2"))
            ends = pair_intervals(self._model, differences, value, self._level)
            shortlist.add(i, j + first_number, value, *ends)
        if self._within:
            own = np.arange(len(block))
            shared = np.concatenate([shared[0], own + first_number]), np.concatenate([shared[1], own])
        at_once = rows_at_once(block.values.shape[1], ROWS, _NUMBERS)
        for of_noise, rows in by_noise:
            start = 0
            while start < len(rows):
                # Few rows first: at the start, everything is a candidate.
                stop = min(start + min(at_once, max(self._kept, of_noise.searched)), len(rows))
                self._search_rows(of_noise, block, first_number, rows[start:stop], shared)
                advance(len(self._queries) * (stop - start))
                start = stop
        return True

    def finish(self, shortlist: Shortlist) -> None:
        """Gives all candidates to the shortlist."""
        for rows in self._rows.values():
            is_row = rows.smallest.is_row
            queries, numbers = np.nonzero(is_row)[0], rows.smallest.number[is_row]
            value = rows.smallest.key[is_row]
            different = [noise.plus(rows.noise) for noise in self._noises]
            noises = PairNoises.of(different, self._classes[queries])
            ends = pair_intervals(self._model, noises, value, self._level)
            shortlist.add(queries, numbers, value, *ends)

    def _by_noise(self, block: Sketches) -> list[tuple[RowsOfNoise, Numbers]] | None:
        """The rows of each noise; None if there are too many noises."""
        classes, noises = noise_classes(block.noises)
        if len(self._rows.keys() | set(noises)) > MOST_NOISES:
            return None
        for noise in noises:
            if noise not in self._rows:
                k2 = [own.plus(noise).cumulants.k2 for own in self._noises]
                bias = self._model.bias * np.array(k2)[self._classes]
                self._rows[noise] = RowsOfNoise(noise, bias, Smallest(len(bias), self._kept))
        return [(self._rows[noise], np.flatnonzero(classes == i)) for i, noise in enumerate(noises)]

    def _float_queries(self, dtype: np.dtype[Any]) -> tuple[Origin, FloatRows]:
        """An origin, and the queries relative to it, as numbers of this type."""
        if dtype not in self._as_floats:
            values = _read_only(self._queries.values, dtype)
            origin = Origin(values)
            self._as_floats[dtype] = origin, origin.float_rows(values, self._kind)
        return self._as_floats[dtype]

    def _search_rows(
        self,
        of_noise: RowsOfNoise,
        block: Sketches,
        first_number: int,
        chosen: Numbers,
        left_out: tuple[Numbers, Numbers],
    ) -> None:
        """All queries against chosen rows of a block, which have one noise, without some pairs."""
        values = block.values
        is_same = self._queries.values.dtype == values.dtype
        origin, queries = self._float_queries(values.dtype if is_same else np.dtype(np.float64))
        is_consecutive = chosen[-1] - chosen[0] == len(chosen) - 1
        exact = values[chosen[0] : chosen[-1] + 1] if is_consecutive else values[chosen]
        exact = _read_only(exact, queries.exact.dtype)
        rows = origin.float_rows(exact, self._kind)
        share = margin(exact.shape[1], self._kind)
        half = ((rows.square - share * rows.slack) / 2).astype(self._kind)
        positions = np.full(len(values), -1)
        positions[chosen] = np.arange(len(chosen))
        is_chosen = positions[left_out[1]] >= 0
        left_out = left_out[0][is_chosen], positions[left_out[1][is_chosen]]
        unit, exact_pairs = self._model.unit, 0
        for first in range(0, len(self._queries), QUERIES):
            part = slice(first, first + QUERIES)
            products = queries.floats[part] @ rows.floats.T
            products -= half
            now = left_out[0] // QUERIES == first // QUERIES
            products[left_out[0][now] - first, left_out[1][now]] = -np.inf  # below any limit
            limit = self._limits(queries, of_noise, origin.scale**2, part)
            open_queries = np.flatnonzero(products.max(axis=1) >= limit)
            i, j = np.divmod(np.flatnonzero(products[open_queries] >= limit[open_queries, None]), len(chosen))
            i = open_queries[i] + first
            raw = chosen_squares(queries.exact, rows.exact, i, j)
            of_noise.smallest.add(i, chosen[j] + first_number, unit * (raw - of_noise.bias[i]))
            exact_pairs += len(i)
        of_noise.searched += len(chosen)
        # More than new rows explain: distances are small beside lengths, and float64 is needed to tell them apart.
        usual = len(self._queries) * (2 * self._kept + len(chosen) / 32)
        if self._kind is np.float32 and exact_pairs > usual:
            self._kind = np.float64
            self._as_floats.clear()

    def _limits(
        self, queries: FloatRows, of_noise: RowsOfNoise, scale_squared: float, part: slice
    ) -> NDArray[Any]:
        """For some queries, the least ⟨a, b⟩ − ‖b‖²/2, up to rounding, of a value at most the worst one so far."""
        worst = of_noise.smallest.key[part, -1] / self._model.unit * scale_squared
        noise = of_noise.bias[part] * scale_squared
        rounding = margin(queries.floats.shape[1], self._kind) * (queries.slack[part] + np.abs(worst) + noise)
        limit = (queries.square[part] - (worst + noise) - rounding) / 2
        return np.maximum(limit, np.finfo(self._kind).min).astype(self._kind)


def _read_only(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Contiguous rows in one type of array: for another, the kernel would be compiled again."""
    view = np.ascontiguousarray(values, dtype=dtype).view()
    view.flags.writeable = False
    return view


def rows_at_once(coordinates: int, most: int, numbers: int) -> int:
    """How many rows to take at once: at most so many, and about so many numbers."""
    return min(most, max(32, numbers // coordinates))


def _counts(ascending: Floats, limits: Floats) -> Numbers:
    """For each row, how many of its numbers lie below each of its limits."""
    pairs = zip(ascending, limits, strict=True)
    return np.array([np.searchsorted(row, limit) for row, limit in pairs]).reshape(limits.shape)
