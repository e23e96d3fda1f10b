"""SparseJL: the paper's main transform (Kane & Nelson 2014), with s entries ±1 in each column."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import LANES, Int64s, Integers, Words, kernel, sum_columns
from armslength.checks import integer, one_of
from armslength.errors import ParameterError
from armslength.randomness.hashing import hash_coefficients, hash_value, item_words, scaled_to
from armslength.randomness.sampling import uniform_permutation
from armslength.randomness.seeds import fresh_seed
from armslength.threads import cached_attribute, for_blocks, for_runs
from armslength.transforms.integer_rows import DenseRows, SparseRows, integer_rows, transpose
from armslength.transforms.transform import ErrorMoments, Transform, set_checked

CONSTRUCTIONS = ("block", "graph", "balanced")
_BATCH = 64  # entries
_ONE = np.uint64(1)
TILE_COLUMNS = 8192  # a tile of int32 takes half a megabyte: it stays in a core's own cache
_COLUMNS_AT_ONCE = 1 << 16
_PRODUCT_ENTRIES = 1 << 17  # of the result that one thread works on at a time, for sparse rows
_PIECE_ENTRIES = 1 << 18  # rows of a tile's width that one thread works on at a time
_FEW_ROWS = 8
_SIGNS_NEEDED = 8  # T⁴ has eight signs
_LONG_SKETCH = 1 << 14  # the sums of sixteen rows: 2 MB
_LISTED_ENTRIES = 1 << 24
LARGEST_DEALT = 2**26  # entries of 4 bytes: a permutation has no shorter form, and takes seconds to deal
LARGEST_SPARSITY, _LARGEST_INDEPENDENCE = 2**12, 64
_KEPT_ENTRIES = 1 << 26  # 256 MB of columns stay in memory; beyond that they are made again as needed


@dataclass(frozen=True, kw_only=True)
class SparseJL(Transform):
    """The sparser Johnson-Lindenstrauss transform: s entries ±1 in each column, c = 1/√s.

    Guarantee: E‖Sz‖² = ‖z‖² and Var‖Sz‖² = f·(2/k)(‖z‖₂⁴ − ‖z‖₄⁴) over the seed, with f = 1, or
    f = B·Σm_b(m_b−1)/(d(d−1)) ≤ 1 for "balanced" (B = k/s bins of sizes m_b). Δ₁ = Δ₂² = s exactly.
    Reference: paper, lemmas SJLT-LPP and SJLT variance, constructions (b) "graph" and (c) "block".

    Args:
        input_dim: How many coordinates; left out for an open vocabulary of strings or 64-bit ids.
        sketch_dim: k, the size of the sketch.
        sparsity: s; 1 has the smallest variance under Laplace noise, more has lighter tails.
        seed: The public seed, a string that all parties share; None makes a fresh one.
        construction: "block", "graph", or "balanced" (bins of equal size, for a fixed input_dim).
        independence: t of the t-wise independent hash functions; tails of probability β need log2(1/β).
    """

    name: ClassVar[str] = "SparseJL"
    open_vocabulary: ClassVar[bool] = True
    cheap_per_event: ClassVar[bool] = True

    input_dim: int | None = None
    sketch_dim: int
    sparsity: int = 1
    seed: str = field(default_factory=fresh_seed)
    construction: str = "block"
    independence: int = 16

    def __post_init__(self) -> None:
        set_checked(
            self,
            construction=one_of("construction", self.construction, CONSTRUCTIONS),
            independence=integer(
                "independence", self.independence, at_least=4, at_most=_LARGEST_INDEPENDENCE
            ),
        )
        k = self.sketch_dim
        s = integer("sparsity", self.sparsity, at_least=1, at_most=min(k, LARGEST_SPARSITY))
        object.__setattr__(self, "sparsity", s)
        if self.construction != "graph" and k % s:
            divisor = max(n for n in range(1, s + 1) if k % n == 0)
            raise ParameterError(
                f"sparsity ({s}) must divide sketch_dim ({k}); try {divisor}", "sparsity", "sketch_dim"
            )
        if self.construction == "balanced":
            if self.input_dim is None:
                raise ParameterError(
                    "construction='balanced' needs a fixed input_dim; try 'block'",
                    "construction",
                    "input_dim",
                )
            if self.input_dim * s > LARGEST_DEALT:
                raise ParameterError(
                    "input_dim·sparsity must be at most 2^26 for construction='balanced'; try 'block'",
                    *("input_dim", "sparsity", "construction"),
                )

    @property
    def label(self) -> str:
        """With the construction and the sparsity."""
        return f"{self.name} {self.construction}, s={self.sparsity}"

    @property
    def column_entries(self) -> int:
        """s."""
        return self.sparsity

    @property
    def item_blocks(self) -> tuple[int, int] | None:
        """s blocks; of "balanced", a bin with an item has room for one other item less, which costs a factor of 2."""
        if self.construction == "graph" and self.sparsity > 1:
            return None
        return self.sparsity, 2 if self.construction == "balanced" else 1

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/s."""
        return Fraction(1, self.sparsity)

    @property
    def column_norms(self) -> tuple[int, int]:
        """Δ₁ = Δ₂² = s, of every column."""
        return self.sparsity, self.sparsity

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """Both are 2f/k, which is 2/s times how likely two coordinates share a bin of a block."""
        coefficient = float(2 * self._meetings()[0] / self.sparsity)
        return coefficient, coefficient

    def error_moments(self) -> ErrorMoments | None:
        """For all but "graph", with hash functions of at least 8-wise independence; docs/planning.md has the proof."""
        if self.construction == "graph" or self.independence < _SIGNS_NEEDED:
            return None
        pair, two_pairs, three, four = map(float, self._meetings())
        # One block of k/s bins: closed walks of two, three and four edges that meet every coordinate an even number of times.
        second, third = 2 * pair, 8 * three
        fourth = pair + 12 * max(two_pairs, three) + 48 * four
        # The mean of s independent blocks.
        s = self.sparsity
        return ErrorMoments(second / s, third / s**2, fourth / s**3 + 3 * (1 - 1 / s) / s**2 * second**2)

    def _meetings(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """How likely coordinates share a bin of one block: two of them; two and two others; three; four."""
        d = self.input_dim
        if self.construction != "balanced" or d is None:
            pair = Fraction(self.sparsity, self.sketch_dim)  # of "graph", no block has whole bins
            return pair, pair**2, pair**2, pair**3
        bins = self.sketch_dim // self.sparsity
        small, larger = divmod(d, bins)
        sizes = ((small + 1, larger), (small, bins - larger))

        def falling(number: int, length: int) -> int:
            return math.prod(max(0, number - step) for step in range(length))

        def all_in_one(count: int) -> Fraction:
            return Fraction(sum(many * falling(m, count) for m, many in sizes), max(1, falling(d, count)))

        pairs = sum(many * falling(m, 2) for m, many in sizes)
        same = sum(many * falling(m, 2) ** 2 for m, many in sizes)
        in_two_bins = Fraction(pairs**2 - same, max(1, falling(d, 4)))
        return all_in_one(2), in_two_bins + all_in_one(4), all_in_one(3), all_in_one(4)

    def signed_rows(self, items: Any) -> Integers:
        """The columns of A at these items as numbers, n x s: the row of each entry, or −1−row for an entry of −1."""
        return self._encode(items if self.input_dim is None else self.column_numbers(items))

    def columns(self, items: Any) -> sparse.csc_array:
        """The columns of A at these items, k x len(items): column numbers, or for an open vocabulary items."""
        encoded = self.signed_rows(items)
        count = len(encoded)
        rows = np.where(encoded >= 0, encoded, -1 - encoded)
        order = np.argsort(rows, axis=1)
        rows = np.take_along_axis(rows, order, axis=1)
        values = np.take_along_axis(np.where(encoded >= 0, 1, -1), order, axis=1)
        starts = np.arange(count + 1, dtype=np.int64) * self.sparsity
        entries = (values.ravel().astype(np.int64), rows.ravel(), starts)
        return sparse.csc_array(entries, shape=(self.sketch_dim, count))

    def apply(self, X: Any, *, items: Any = None, threads: int | None = None) -> NDArray[np.int64]:
        """X·Aᵀ modulo 2^64 as an n x k array: exact integers, **not private**.

        Args:
            X: An n x d matrix of any integer type, dense or scipy.sparse; it is cast to int64 first.
            items: For an open vocabulary: the items that the columns of X count.
            threads: At most this many threads; None takes all that the process may run.
        """
        if self.input_dim is not None:
            if items is not None:
                raise ParameterError(
                    "items are for an open vocabulary, and input_dim is fixed", "items", "input_dim"
                )
            return self._multiply(integer_rows(X, self.input_dim), self._kept_columns, threads)
        if items is None:
            raise ParameterError("an open vocabulary needs items, the names of the columns of X", "items")
        encoded = self._encode(items, threads)
        return self._multiply(integer_rows(X, len(encoded)), encoded, threads)

    def _multiply(
        self, rows: DenseRows | SparseRows, encoded: Integers | None, threads: int | None
    ) -> NDArray[np.int64]:
        """rows·Aᵀ; where the columns are not kept, only those that are needed are made, part by part."""
        product = np.empty((rows.count, self.sketch_dim), dtype=np.int64)
        if isinstance(rows, SparseRows):
            self._add_sparse(rows, encoded, product, threads)
            return product
        for first in range(0, max(1, rows.width), _COLUMNS_AT_ONCE):
            last = min(first + _COLUMNS_AT_ONCE, rows.width)
            part = self._encode(np.arange(first, last), threads) if encoded is None else encoded[first:last]
            self._add_dense(rows, first, part, product, threads)
        return product

    def _add_sparse(
        self, rows: SparseRows, encoded: Integers | None, product: NDArray[np.int64], threads: int | None
    ) -> None:
        """product = rows·Aᵀ; where the columns are not kept, those that occur are made."""
        positions = None
        if encoded is None:
            present, positions = np.unique(rows.columns, return_inverse=True)
            encoded = self._encode(present, threads)

        def add(start: int, stop: int) -> None:
            starts, columns, values = rows.entries(start, stop)
            if positions is not None:
                columns = positions[rows.starts[start] : rows.starts[stop]]
            product[start:stop] = 0  # by the thread that needs the memory next
            scatter_sparse(starts, columns, values, encoded, product[start:stop])

        block = min(_PRODUCT_ENTRIES // self.sketch_dim, -(-rows.count // 16))
        for_blocks(rows.count, max(1, block), add, threads)

    def _add_dense(
        self, rows: DenseRows, first: int, encoded: Integers, product: NDArray[np.int64], threads: int | None
    ) -> None:
        """product += the columns of rows from `first` on, as many as are encoded."""
        width = min(TILE_COLUMNS, max(1, _LISTED_ENTRIES // self.sparsity))
        # For few rows lanes would stay empty; where the sketch is long, most of its coordinates have no column in a tile.
        in_tiles = rows.count >= _FEW_ROWS and self.sketch_dim <= min(4 * width * self.sparsity, _LONG_SKETCH)
        parts = [(start, encoded[start : start + width]) for start in range(0, len(encoded), width)]
        lists = [list_columns(part, self.sketch_dim) if in_tiles else None for _, part in parts]
        rows_at_once = max(32, _PIECE_ENTRIES // max(1, min(width, len(encoded))) // LANES * LANES)

        def add_run(run: int, end: int) -> None:
            # one memory for all tiles of a thread: new memory for each would cost more than the work
            lanes, k = LANES if in_tiles else 0, self.sketch_dim
            tiles, totals, sums = (
                np.empty(n, dtype=np.int64) for n in (width * lanes, (k, lanes), (lanes, k))
            )
            for start in range(run, end, rows_at_once):
                stop = min(start + rows_at_once, end)
                target = product[start:stop]
                if first == 0:
                    target[:] = 0  # by the thread that needs the memory next
                for (offset, part), columns in zip(parts, lists, strict=True):
                    piece = rows.piece(start, stop, first + offset, first + offset + len(part))
                    if columns is None:
                        scatter_dense(piece, part, target)
                    else:
                        tile = tiles.view(piece.dtype)[: len(part) * LANES].reshape(len(part), LANES)
                        add_tiles(piece, *columns, target, tile, totals, sums)

        for_runs(rows.count, rows_at_once, add_run, threads)

    @cached_attribute
    def _kept_columns(self) -> Integers | None:
        """All columns of a fixed input dimension, where they fit in memory."""
        d = self._fixed_input_dim()
        return self._encode(np.arange(d)) if d * self.sparsity <= _KEPT_ENTRIES else None

    @cached_attribute
    def _coefficients(self) -> NDArray[np.uint64]:
        return hash_coefficients(self.seed, "SparseJL hash", self.sparsity, self.independence)

    @cached_attribute
    def _balanced_buckets(self) -> NDArray[np.int32]:
        """For the balanced construction: the bucket of each column in each block, dealt out by a permutation."""
        buckets = np.empty((self.sparsity, self._fixed_input_dim()), dtype=np.int32)
        for r in range(self.sparsity):
            permutation = uniform_permutation(self.seed, f"SparseJL permutation {r}", buckets.shape[1])
            buckets[r] = permutation % (self.sketch_dim // self.sparsity)
        return buckets

    def _encode(self, items: Any, threads: int | None = None) -> Integers:
        """Columns as numbers: entry (j, r) is the row, or −1−row for an entry of −1."""
        return self.event_columns(item_words(items), threads)

    def event_columns(self, words: Words, threads: int | None = None) -> Integers:
        """The same of items as (high word, low word)."""
        kind: Any = np.int16 if self.sketch_dim <= 2**15 else np.int32
        encoded = np.empty((len(words), self.sparsity), dtype=kind)
        coefficients, buckets = self._coefficients, self.sketch_dim // self.sparsity
        balanced = self._balanced_buckets if self.construction == "balanced" else None

        def encode(start: int, stop: int) -> None:
            part, target = words[start:stop], encoded[start:stop]
            if balanced is not None:
                balanced_columns(coefficients, balanced, part, buckets, target)
            elif self.construction == "graph":
                graph_columns(coefficients, part, self.sketch_dim, target)
            else:
                block_columns(coefficients, part, buckets, target)

        for_blocks(len(words), _COLUMNS_AT_ONCE, encode, threads)
        return encoded


# Kernels: a column is s numbers, the row, or −1−row where the entry is −1.


@kernel
def _add(target: Int64s, entry: np.signedinteger[Any], value: np.int64) -> None:
    """Adds ±value where an entry says, without a branch: signs are random, and a processor would guess half of them wrong."""
    sign = np.int64(entry) >> np.int64(63)  # 0, or −1 for an entry of −1, whose row is then ~entry
    target[np.int64(entry) ^ sign] += (value ^ sign) - sign


@kernel
def scatter_dense(rows: Integers, encoded: Integers, product: Int64s) -> None:
    """product += rows·Aᵀ modulo 2^64, for the columns of A that `encoded` holds."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = np.int64(rows[i, j])
            if value != 0:
                for r in range(encoded.shape[1]):
                    _add(product[i], encoded[j, r], value)


@kernel
def scatter_sparse(
    starts: Integers, columns: Integers, values: Integers, encoded: Integers, product: Int64s
) -> None:
    """product += rows·Aᵀ modulo 2^64, for rows of (column, value) entries.

    The columns of A lie all over memory: those of a few entries are fetched together, so that the processor waits once.
    """
    sparsity = encoded.shape[1]
    batch = np.empty(_BATCH * sparsity, dtype=encoded.dtype)
    for i in range(len(starts) - 1):
        target = product[i]
        for first in range(starts[i], starts[i + 1], _BATCH):
            last = min(first + _BATCH, starts[i + 1])
            for position in range(first, last):
                start, column = (position - first) * sparsity, columns[position]
                for r in range(sparsity):
                    batch[start + r] = encoded[column, r]
            for position in range(first, last):
                start = (position - first) * sparsity
                value = np.int64(values[position])
                for r in range(sparsity):
                    _add(target, batch[start + r], value)


@kernel
def _signed(row: np.int64, low: np.uint64) -> np.int64:
    """The row, or −1−row where the hash value is odd."""
    return -1 - row if low & _ONE else row


@kernel
def block_columns(coefficients: Words, items: Words, buckets: int, encoded: Integers) -> None:
    """Block construction: block r of a column has its entry in the row of bucket_r."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            bucket = scaled_to(high, low, np.uint64(buckets))
            encoded[j, r] = _signed(r * buckets + np.int64(bucket), low)


@kernel
def graph_columns(coefficients: Words, items: Words, sketch_dim: int, encoded: Integers) -> None:
    """Graph construction: s distinct rows by Floyd's method, so every s-subset is equally likely."""
    sparsity = coefficients.shape[0]
    last_user = np.full(sketch_dim, -1, dtype=np.int64)
    for j in range(items.shape[0]):
        for r in range(sparsity):
            largest = sketch_dim - sparsity + r
            high, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            row = np.int64(scaled_to(high, low, np.uint64(largest + 1)))
            if last_user[row] == j:
                row = np.int64(largest)
            last_user[row] = j
            encoded[j, r] = _signed(row, low)


@kernel
def balanced_columns(
    coefficients: Words, bucket_of: NDArray[np.int32], items: Words, buckets: int, encoded: Integers
) -> None:
    """Balanced construction: bucket_of comes from a permutation per block, signs come from the hash functions."""
    for j in range(items.shape[0]):
        for r in range(coefficients.shape[0]):
            _, low = hash_value(coefficients[r], items[j, 0], items[j, 1])
            encoded[j, r] = _signed(r * buckets + np.int64(bucket_of[r, items[j, 1]]), low)


@kernel
def _list_number(entry: int) -> int:
    """Which list an entry stands in: 2b for +1 in row b, 2b + 1 for −1."""
    return 2 * entry if entry >= 0 else 2 * (-1 - entry) + 1


@kernel
def list_columns(encoded: Integers, sketch_dim: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(starts, columns): row b of A has +1 in columns[starts[2b]:starts[2b+1]], and −1 in those up to starts[2b+2]."""
    starts, columns = np.zeros(2 * sketch_dim + 1, dtype=np.int32), np.empty(encoded.size, dtype=np.int32)
    for j in range(encoded.shape[0]):
        for r in range(encoded.shape[1]):
            starts[1 + _list_number(encoded[j, r])] += 1
    for number in range(1, len(starts)):
        starts[number] += starts[number - 1]
    following = starts[:-1].copy()
    for j in range(encoded.shape[0]):
        for r in range(encoded.shape[1]):
            number = _list_number(encoded[j, r])
            columns[following[number]] = j
            following[number] += 1
    return starts, columns


@kernel
def add_tiles(
    rows: Integers,
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    product: Int64s,
    tile: Integers,
    totals: Int64s,
    sums: Int64s,
) -> None:
    """product += rows·Aᵀ modulo 2^64, for contiguous rows and the lists of `list_columns`; the last three are buffers.

    A tile holds sixteen rows, transposed: the sixteen values of a column stand together, so that one entry of A serves all of them.
    """
    for first in range(0, rows.shape[0], LANES):
        _fill_tile(rows, first, tile)
        totals[:] = 0
        for number in range(len(totals)):
            plus = 2 * number
            sum_columns(tile, columns, starts[plus], starts[plus + 1], starts[plus + 2], totals, number)
        transpose(totals, sums)
        for lane in range(min(LANES, rows.shape[0] - first)):
            for number in range(product.shape[1]):
                product[first + lane, number] += sums[lane, number]


@kernel
def _fill_tile(rows: Integers, first: int, tile: Integers) -> None:
    """tile[j, lane] = rows[first+lane, j]; lanes beyond the last row are 0."""
    if first + LANES <= rows.shape[0]:
        transpose(rows[first : first + LANES], tile)
        return
    for lane in range(LANES):
        for j in range(rows.shape[1]):
            tile[j, lane] = rows[first + lane, j] if first + lane < rows.shape[0] else 0
