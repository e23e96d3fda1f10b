"""SparseJL: the paper's main transform (Kane & Nelson 2014), with s entries ±1 in each column."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import pdtrik

from armslength._numba import LANES, Integers
from armslength.checks import integer, one_of
from armslength.errors import ParameterError
from armslength.randomness.hashing import hash_coefficients, item_words
from armslength.randomness.sampling import uniform_permutation
from armslength.randomness.seeds import fresh_seed
from armslength.threads import cached_attribute, for_blocks, for_runs
from armslength.transforms import sparse_kernels as kernels
from armslength.transforms import work_units as work
from armslength.transforms.integer_rows import DenseRows, SparseRows, integer_rows
from armslength.transforms.operator_norm import LARGEST_SCAN, check_gram_size, operator_norm_bound
from armslength.transforms.transform import ErrorMoments, Transform, set_checked
from armslength.transforms.typical_norms import median_level, typical_squared_norm

CONSTRUCTIONS = ("block", "graph", "balanced")
_COLUMNS_AT_ONCE = 1 << 16
_PRODUCT_ENTRIES = 1 << 17  # of the result that one thread works on at a time, for sparse rows
_PIECE_ENTRIES = 1 << 18  # rows of a tile's width that one thread works on at a time
_FEW_ROWS = 8
_SIGNS_NEEDED = 8  # T⁴ has eight signs
_LONG_SKETCH = 1 << 14  # the sums of sixteen rows: 2 MB
_LISTED_ENTRIES = 1 << 24
LARGEST_DEALT = 2**31  # entries of 4 bytes: a permutation has no shorter form
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
            independence=integer("independence", self.independence, at_least=4, at_most=256),
        )
        k = self.sketch_dim
        s = integer("sparsity", self.sparsity, at_least=1, at_most=k)
        object.__setattr__(self, "sparsity", s)
        if self.construction != "graph" and k % s:
            divisor = max(n for n in range(1, s + 1) if k % n == 0)
            raise ParameterError(
                f"sparsity must divide sketch_dim, got sparsity={s}, sketch_dim={k}; try sparsity={divisor}"
            )
        if self.construction == "balanced":
            if self.input_dim is None:
                raise ParameterError(
                    'construction "balanced" must have a fixed input_dim, got None; try "block"'
                )
            if self.input_dim * s > LARGEST_DEALT:
                raise ParameterError(
                    'input_dim·sparsity must be at most 2^31 for "balanced", got more; try "block"'
                )

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/s."""
        return Fraction(1, self.sparsity)

    @property
    def column_norms(self) -> tuple[int, int]:
        """Δ₁ = Δ₂² = s, of every column."""
        return self.sparsity, self.sparsity

    @cached_attribute
    def operator_norm_squared(self) -> Fraction:
        """‖A‖²: the fullest bin if s = 1, where rows do not overlap, else by a proved bound; not for an open vocabulary."""
        d = self._fixed_input_dim()
        if self.sparsity > 1:
            check_gram_size(self.sketch_dim, d * self.sparsity**2)
        elif self.construction == "balanced":
            return Fraction(-(-d // self.sketch_dim))
        elif d > LARGEST_SCAN:
            raise ParameterError(f"input_dim must be at most 2^28 for norm='l2', got {d}; try \"balanced\"")
        starts = range(0, d, _COLUMNS_AT_ONCE)
        parts = (self.columns(np.arange(first, min(first + _COLUMNS_AT_ONCE, d))) for first in starts)
        if self.sparsity > 1:
            return operator_norm_bound(parts, self.sketch_dim)
        bins = np.zeros(self.sketch_dim, dtype=np.int64)
        for part in parts:
            bins += np.bincount(part.indices, minlength=self.sketch_dim)
        return Fraction(int(bins.max()))

    def typical_operator_norm_squared(self) -> tuple[float, bool]:
        """If s = 1, the fullest of k bins, else as for independent entries; the rows of a balanced block add up to one."""
        d, k, s = self._fixed_input_dim(), self.sketch_dim, self.sparsity
        balanced = self.construction == "balanced"
        if s == 1 and balanced:
            return float(self.operator_norm_squared), True
        if s == 1:
            return math.ceil(float(pdtrik(median_level(k), d / k))), False
        return s / k * typical_squared_norm(k - s if balanced else k, d), False

    @property
    def operator_norm_work(self) -> int:
        """All columns, and unless s = 1 the Gram matrix and the proofs of its bound; none for "balanced" with s = 1."""
        d, k, s = self.input_dim, self.sketch_dim, self.sparsity
        if d is None or (s == 1 and self.construction == "balanced"):
            return 0
        columns = self.columns_work(d)
        if s == 1:
            return columns
        grams = -(-d // _COLUMNS_AT_ONCE) * work.GRAM_ENTRY * k**2
        return columns + work.SPARSE_PRODUCT * d * s**2 + grams + work.proof_work(k)

    def columns_work(self, count: int) -> int:
        """The hash functions and, for "balanced", the permutations; then s hash values for each column."""
        s, t, is_balanced = self.sparsity, self.independence, self.construction == "balanced"
        permutations = work.DEALT_ENTRY * s * self._fixed_input_dim() if is_balanced else 0
        functions = s * (work.HASH_FUNCTION + work.HASH_COEFFICIENT * t)
        return functions + permutations + count * s * (work.HASH_STEP * t + work.SPARSE_ENTRY)

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
        d, bins = self.input_dim, self.sketch_dim // self.sparsity
        if self.construction != "balanced" or d is None:
            return Fraction(1, bins), Fraction(1, bins**2), Fraction(1, bins**2), Fraction(1, bins**3)
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

    @property
    def _entries_per_column(self) -> int:
        return self.sparsity

    def operations(self, density: float | None) -> int | None:
        """s for each entry, and the sketch."""
        additions = super().operations(density)
        return None if additions is None else additions + self.sketch_dim

    def columns(self, items: Any) -> sparse.csc_array:
        """The columns of A at these items, k x len(items): column numbers, or for an open vocabulary items."""
        encoded = self._encode(items if self.input_dim is None else self.column_numbers(items))
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
                raise ParameterError("items must be left out when input_dim is fixed")
            return self._multiply(integer_rows(X, self.input_dim), self._kept_columns, threads)
        if items is None:
            raise ParameterError("items must name the columns of X for an open vocabulary, got None")
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
            kernels.scatter_sparse(starts, columns, values, encoded, product[start:stop])

        block = min(_PRODUCT_ENTRIES // self.sketch_dim, -(-rows.count // 16))
        for_blocks(rows.count, max(1, block), add, threads)

    def _add_dense(
        self, rows: DenseRows, first: int, encoded: Integers, product: NDArray[np.int64], threads: int | None
    ) -> None:
        """product += the columns of rows from `first` on, as many as are encoded."""
        width = min(kernels.TILE_COLUMNS, max(1, _LISTED_ENTRIES // self.sparsity))
        # For few rows lanes would stay empty; where the sketch is long, most of its coordinates have no column in a tile.
        in_tiles = rows.count >= _FEW_ROWS and self.sketch_dim <= min(4 * width * self.sparsity, _LONG_SKETCH)
        parts = [(start, encoded[start : start + width]) for start in range(0, len(encoded), width)]
        lists = [kernels.list_columns(part, self.sketch_dim) if in_tiles else None for _, part in parts]
        rows_at_once = max(32, _PIECE_ENTRIES // max(1, min(width, len(encoded))) // LANES * LANES)

        def add_run(run: int, end: int) -> None:
            buffer = kernels.TileBuffer(width, self.sketch_dim) if in_tiles else None
            for start in range(run, end, rows_at_once):
                stop = min(start + rows_at_once, end)
                target = product[start:stop]
                if first == 0:
                    target[:] = 0  # by the thread that needs the memory next
                for (offset, part), columns in zip(parts, lists, strict=True):
                    piece = rows.piece(start, stop, first + offset, first + offset + len(part))
                    if columns is not None and buffer is not None:
                        kernels.add_tiles(
                            piece, *columns, target, buffer.tile(piece), buffer.totals, buffer.sums
                        )
                    else:
                        kernels.scatter_dense(piece, part, target)

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
        words = item_words(items)
        kind: Any = np.int16 if self.sketch_dim <= 2**15 else np.int32
        encoded = np.empty((len(words), self.sparsity), dtype=kind)
        coefficients, buckets = self._coefficients, self.sketch_dim // self.sparsity
        balanced = self._balanced_buckets if self.construction == "balanced" else None

        def encode(start: int, stop: int) -> None:
            part, target = words[start:stop], encoded[start:stop]
            if balanced is not None:
                kernels.balanced_columns(coefficients, balanced, part, buckets, target)
            elif self.construction == "graph":
                kernels.graph_columns(coefficients, part, self.sketch_dim, target)
            else:
                kernels.block_columns(coefficients, part, buckets, target)

        for_blocks(len(words), _COLUMNS_AT_ONCE, encode, threads)
        return encoded
