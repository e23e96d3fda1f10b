"""Transforms that begin with a Hadamard matrix: HadamardJL samples its rows (the SRHT), FastJL is P·H·D of Ailon & Chazelle."""

import math
import threading
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from armslength._numba import Int64s, kernel
from armslength.checks import number
from armslength.errors import ParameterError
from armslength.laws import Cumulants
from armslength.randomness.sampling import SymmetricTable, sparse_normal_table, uniform_sample
from armslength.randomness.seeds import Stream, fresh_seed
from armslength.threads import available_threads, cached_attribute, for_blocks
from armslength.transforms.integer_rows import Rows, integer_rows
from armslength.transforms.transform import ProductCoefficients, Transform, check_dense_size, set_checked

LARGEST_PADDED_DIM = 2**27  # a padded row of int64 is 1 GB
LARGEST_SAMPLE = 2**21  # sampled rows, which take two seconds to draw
LARGEST_SCANNED_DIM = 2**25  # five such rows are held when a matrix is scanned: 1.3 GB
_STEP_ENTRIES = 1 << 17  # of H·D·x that a thread holds at a time: 1 MB stays in its cache
DEFAULT_ENTRIES_PER_ROW = 48  # ln²(1/β) at β = 1e-3, the paper's q·d
_WORDS_AT_ONCE = 1 << 20
_SCANNED_BYTES = 1 << 30  # what threads may hold together while they scan, if it is not a single one
_NOISED_ENTRIES = 1 << 21  # of H·D·x that get noise at a time
LARGEST_PUBLISHED = 2**25  # entries of P that are not zero; 80 bytes each while P is made
_LARGEST_GRAM, _LARGEST_GRAM_DIM = 2**29, 2**12  # products of entries in P·Pᵀ, and its size: a few seconds


@dataclass(frozen=True, kw_only=True)
class HadamardStep(Transform):
    """What `HadamardJL` and `FastJL` share: A begins with H·D, random signs and the Hadamard matrix of d' rows."""

    input_dim: int
    sketch_dim: int
    seed: str = field(default_factory=fresh_seed)

    @cached_attribute
    def _signs(self) -> NDArray[np.int8]:
        """The diagonal of D: −1 where the bit of the stream is 1, else +1."""
        return 1 - 2 * Stream(self.seed, f"{self.name} signs").bits(0, self.input_dim).astype(np.int8)

    @abstractmethod
    def last_step(self, hadamard: NDArray[Any]) -> NDArray[Any]:
        """What follows H·D: from n x d' to n x k, integers or floats."""

    @property
    def padded_dim(self) -> int:
        """d': input_dim padded to a power of two."""
        return padded_dimension(self.input_dim)

    def _project(self, rows: Rows, start: int, stop: int) -> Int64s:
        return self.last_step(self.hadamard_step(rows.block(start, stop), 1))

    def multiply_floats(self, X: Any) -> NDArray[np.float64]:
        """X·Aᵀ in float64 as a new n x k array, **not private**; one row at a time, so that none sees another."""
        product, is_sparse = np.empty((X.shape[0], self.sketch_dim)), sparse.issparse(X)

        def project(start: int, stop: int) -> None:
            rows = X[start:stop].toarray() if is_sparse else np.ascontiguousarray(X[start:stop])
            product[start:stop] = self.last_step(self.hadamard_step(rows, 1))

        for_blocks(len(product), self._rows_at_once, project)
        return product

    def hadamard_step(self, rows: NDArray[Any], threads: int | None = None) -> NDArray[Any]:
        """H·D·x for each row, n x d': int64 modulo 2^64, or float64. **Not private**."""
        signs = self._signs
        kind = np.float64 if rows.dtype.kind == "f" else np.int64
        hadamard = np.empty((len(rows), self.padded_dim), dtype=kind)

        def transform(start: int, stop: int) -> None:
            walsh_rows(rows[start:stop], signs, hadamard[start:stop])

        for_blocks(len(rows), self._rows_at_once, transform, threads)
        return hadamard

    @property
    def _rows_at_once(self) -> int:
        return max(1, _STEP_ENTRIES // self.padded_dim)


@dataclass(frozen=True, kw_only=True)
class HadamardJL(HadamardStep):
    """The subsampled randomized Hadamard transform: every entry ±1, c = 1/√k.

    d' is input_dim padded to a power of two; the padding is never stored.

    Guarantee: E‖Sz‖² = ‖z‖² and Var‖Sz‖² = (2/k)·(d'−k)/(d'−1)·(‖z‖₂⁴ − ‖z‖₄⁴) over the seed.
    Δ₁ = Δ₂² = k exactly, with nothing to initialize.

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch; at most d'.
        seed: The public seed, a string that all parties share; None makes a fresh one.
    """

    name: ClassVar[str] = "HadamardJL"

    def __post_init__(self) -> None:
        set_checked(self, largest_input=LARGEST_PADDED_DIM, largest_sketch=LARGEST_SAMPLE)
        if self.sketch_dim > self.padded_dim:
            raise ParameterError(
                f"sketch_dim must be at most {self.padded_dim} (input_dim padded to a power of two), "
                f"got {self.sketch_dim}",
                "sketch_dim",
            )

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/k."""
        return Fraction(1, self.sketch_dim)

    @property
    def column_norms(self) -> tuple[int, int]:
        """Δ₁ = Δ₂² = k, of every column."""
        return self.sketch_dim, self.sketch_dim

    @property
    def left_out(self) -> int | None:
        """Rows of H that are not in the sample, where those are the fewer."""
        others = self.padded_dim - self.sketch_dim
        return others if others < self.sketch_dim else None

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """Both are (2/k)(d'−k)/(d'−1)."""
        d, k = self.padded_dim, self.sketch_dim
        coefficient = 2 * (d - k) / (k * (d - 1)) if d > 1 else 0.0
        return coefficient, coefficient

    def columns(self, items: Any) -> Int64s:
        """The columns of A at these column numbers, k x len(items)."""
        numbers = self.column_numbers(items)
        return hadamard_entries(self._sample, numbers) * self._signs[numbers]

    def last_step(self, hadamard: NDArray[Any]) -> NDArray[Any]:
        """The sample of each row."""
        return hadamard.take(self._sample, axis=1)

    @cached_attribute
    def _sample(self) -> Int64s:
        return uniform_sample(self.seed, "HadamardJL rows", self.sketch_dim, self.padded_dim)


@dataclass(frozen=True, kw_only=True)
class FastJL(HadamardStep):
    """The fast Johnson-Lindenstrauss transform: A = P·H·D, P sparse rounded-normal integers.

    d' is input_dim padded to a power of two, q the density of P, κ the kurtosis of an entry of P (about
    3/q), c² = 1/(k·d'·E[P²]).

    Guarantee: E‖Sz‖² = ‖z‖² and Var‖Sz‖² = (1/k)[2‖z‖₂⁴ + ((κ−3)/d')(3‖z‖₂⁴ − 2‖z‖₄⁴)] over the seed.
    Sensitivities are exact: the published matrix is scanned once, on first use, in O(k·d'·log d').
    Reference: paper, lemma FJLT-LPP; errata 6 and 14.

    Args:
        input_dim: How many coordinates.
        sketch_dim: k, the size of the sketch.
        seed: The public seed, a string that all parties share; None makes a fresh one.
        density: q, the share of P that is not zero, rounded up to a multiple of 2^−32; None takes 48/d'.
    """

    name: ClassVar[str] = "FastJL"

    density: float = None  # type: ignore[assignment]  # None is replaced by the default below

    def __post_init__(self) -> None:
        set_checked(self, largest_input=LARGEST_SCANNED_DIM)
        check_dense_size(self.padded_dim, self.sketch_dim)
        share: Any = self.density
        if share is None:
            share = min(1.0, DEFAULT_ENTRIES_PER_ROW / self.padded_dim)
        density = number("density", share, above=0.0, at_most=1.0)
        # ⌈q·2^32⌉ / 2^32: every step is exact in float64
        object.__setattr__(self, "density", math.ceil(density * 2**32) / 2**32)
        if self.density * self.padded_dim * self.sketch_dim > LARGEST_PUBLISHED:
            raise ParameterError(
                f"density·input_dim·sketch_dim must be at most 2^25 for FastJL, got {self.density:g} x {self.padded_dim} x {self.sketch_dim}",
                *("density", "input_dim", "sketch_dim"),
            )

    @property
    def _table(self) -> SymmetricTable:
        return sparse_normal_table(int(self.density * 2**32))

    @property
    def scale_squared(self) -> Fraction:
        """c² = 1/(k·d'·E[P²])."""
        return 1 / (self.sketch_dim * self.padded_dim * self._table.second_moment)

    @cached_attribute
    def column_norms(self) -> tuple[int, int]:
        """(Δ₁, Δ₂²), by a scan of all columns of P·H; the signs of D change neither."""
        by_row = self._published
        # An entry of P·H is at most Σ|P| over its row, and a column's Σ entry² at most k·that²: int64 must hold it.
        largest = int(abs(by_row).sum(axis=1).max())
        if self.sketch_dim * largest**2 >= 2**63:
            raise ParameterError(
                "FastJL would have too many large entries; take a smaller density, sketch_dim or input_dim",
                *("density", "sketch_dim", "input_dim"),
            )
        starts, columns = by_row.indptr.astype(np.int64), by_row.indices.astype(np.int64)
        totals = np.zeros((2, self.input_dim), dtype=np.int64)
        lock = threading.Lock()

        def add(start: int, stop: int) -> None:
            part = np.zeros_like(totals)
            column_norms_of_walsh(starts[start : stop + 1], columns, by_row.data, self.padded_dim, *part)
            with lock:
                totals[...] += part

        threads = min(available_threads(), max(1, _SCANNED_BYTES // (24 * self.padded_dim)))
        for_blocks(self.sketch_dim, max(1, self.sketch_dim // 16), add, threads)
        return int(totals[0].max()), int(totals[1].max())

    def sensitivity_squared(self, site: str) -> int:
        """On the input d': H·D stretches every vector by √d' exactly."""
        return self.padded_dim if site == "input" else super().sensitivity_squared(site)

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """a = (2 + 3g)/k and b = 2g/k, with g = (κ−3)/d'."""
        k, g = self.sketch_dim, self._excess
        return float((2 + 3 * g) / k), float(2 * g / k)

    @property
    def _excess(self) -> Fraction:
        """g = (κ−3)/d', exactly."""
        return (self._table.kurtosis - 3) / self.padded_dim

    def variance_curve(self, noise: Cumulants, site: str) -> tuple[float, float, float]:
        """On the input: noise N after the Hadamard step, y = HDz + N, estimate c²(‖Py‖² − κ₂‖P‖²_F) with the published P.

        With g = (κ−3)/d' and v(D) = (4κ₂D + κ₄ + 2κ₂²)/d', which is Var‖y‖²/d'²:
        V = (1/k)[2(D+κ₂)² + 2v + g(3D² + 6κ₂D + κ₄ + 3κ₂²) − (κ−1)κ₂(2D+κ₂)/d'] + v.
        The last term of the bracket is what subtracting the published ‖P‖²_F, instead of its mean, takes away.
        Reference: errata 5 and 6.
        """
        if site == "output":
            return super().variance_curve(noise, site)
        k, d, g, k2, k4 = self.sketch_dim, self.padded_dim, float(self._excess), noise.k2, noise.k4
        v_linear, v_constant = 4 * k2 / d, (k4 + 2 * k2**2) / d
        saved = (float(self._table.kurtosis) - 1) * k2 / d
        b = (4 * k2 + 2 * v_linear + 6 * g * k2 - 2 * saved) / k + v_linear
        c = (2 * k2**2 + 2 * v_constant + g * (k4 + 3 * k2**2) - saved * k2) / k + v_constant
        return (2 + max(3 * g, g)) / k, b, c

    def noise_bias(self, k2: NDArray[np.float64], site: str) -> NDArray[np.float64]:
        """On the input κ₂‖P‖²_F."""
        return k2 * int((self._published.data**2).sum()) if site == "input" else super().noise_bias(k2, site)

    def null_law(self, noise: Cumulants, site: str) -> tuple[int, float] | None:
        """On the input, for the published P: NᵀGN with G = PᵀP has the cumulants of Σλᵢχ²₁, λ the eigenvalues of P·Pᵀ.

        Its skewness is that of a chi-square law with (Σλ²)³/(Σλ³)² degrees of freedom.
        """
        if site == "output":
            return None
        second, third, diagonal = self.gram_traces
        return max(1, int(second**3 / third**2)), 2 * noise.k2**2 * second + noise.k4 * diagonal

    def product_coefficients(self, site: str) -> ProductCoefficients:
        """On the input the projection sees data and noise together."""
        k, d, g = self.sketch_dim, self.padded_dim, float(self._excess)
        norms, inner = (1 + g) / k, (1 + 2 * g) / k
        if site == "output":
            return super().product_coefficients(site)._replace(norms=norms, inner=inner)
        own_variance = (1 / k + 1) / d  # of ⟨y, y'⟩, by itself and through P
        own = norms + own_variance
        return ProductCoefficients(norms, inner, own, own, inner + own_variance, g / k + own_variance)

    def check_noise_on_input(self) -> None:
        """Refuses a P whose Gram matrix, which error bars of noise on the input need, would take more than seconds."""
        k, entries = self.sketch_dim, self.density * self.padded_dim * self.sketch_dim
        if k > _LARGEST_GRAM_DIM or entries * (1 + self.density * k) > _LARGEST_GRAM:
            raise ParameterError(
                f"FastJL is too large for noise on the input; take a smaller sketch_dim (at most {_LARGEST_GRAM_DIM}) or density, "
                "or noise_site='output'",
                *("sketch_dim", "density", "noise_site"),
            )

    @cached_attribute
    def gram_traces(self) -> tuple[float, float, float]:
        """tr((PPᵀ)²), tr((PPᵀ)³) and Σ(PᵀP)ⱼⱼ² of the published P: what noise on the input becomes."""
        by_row = self._published.astype(np.float64)
        gram = (by_row @ by_row.T).toarray()
        squared = gram @ gram
        norms = np.asarray((by_row.multiply(by_row)).sum(axis=0)).ravel()
        return float((gram * gram).sum()), float((squared * gram).sum()), float((norms**2).sum())

    def columns(self, items: Any) -> NDArray[np.int64]:
        """The columns of A at these column numbers, k x len(items)."""
        numbers = self.column_numbers(items)
        used, restricted = self.used_columns, self._published[:, self.used_columns]
        entries = np.empty((self.sketch_dim, len(numbers)), dtype=np.int64)
        step = max(1, _WORDS_AT_ONCE // max(1, len(used)))
        for first in range(0, len(numbers), step):
            part = slice(first, first + step)
            entries[:, part] = restricted @ hadamard_entries(used, numbers[part])
        return entries * self._signs[numbers]

    @cached_attribute
    def used_columns(self) -> NDArray[np.int64]:
        """The columns of P that are not all zero: those through which noise on the input can pass."""
        return np.unique(self._published.indices).astype(np.int64)

    def noised(
        self, X: Any, add_noise: Callable[[NDArray[np.int64]], None], site: str, *, threads: int | None = None
    ) -> NDArray[np.int64]:
        """X·Aᵀ with noise, modulo 2^64; on the input P·(H·D·x + noise), some rows at a time."""
        if site == "output":
            return super().noised(X, add_noise, site, threads=threads)
        rows = integer_rows(X, self.input_dim)
        # Columns of the published P that are all zero would throw their noise away: none is drawn for them.
        used = self.used_columns
        product = np.empty((rows.count, self.sketch_dim), dtype=np.int64)
        step = max(1, _NOISED_ENTRIES // self.padded_dim)
        for start in range(0, rows.count, step):
            hadamard = self.hadamard_step(rows.block(start, min(start + step, rows.count)), threads)
            noise = np.zeros((len(hadamard), len(used)), dtype=np.int64)
            add_noise(noise)
            hadamard[:, used] += noise
            product[start : start + step] = self.last_step(hadamard)
        return product

    def last_step(self, hadamard: NDArray[Any]) -> NDArray[Any]:
        """P·y for each row y."""
        return np.ascontiguousarray((self._published @ hadamard.T).T)

    @cached_attribute
    def _published(self) -> sparse.csr_array:
        """P, k x d', by rows: the matrix that all parties publish and share."""
        k = self.sketch_dim
        stream, table = Stream(self.seed, "FastJL entries"), self._table
        step = max(1, _WORDS_AT_ONCE // k)
        rows, columns, values = [], [], []
        for first in range(0, self.padded_dim, step):
            count = min(step, self.padded_dim - first)
            entries = table.values(stream.words(first * k, count * k)).reshape(count, k)
            column, row = np.nonzero(entries)
            rows.append(row)
            columns.append(column + first)
            values.append(entries[column, row].astype(np.int64))
        parts = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.coo_array(parts, shape=(k, self.padded_dim)).tocsr()


def padded_dimension(input_dim: int) -> int:
    """The smallest power of two that is at least input_dim."""
    return 1 << (input_dim - 1).bit_length()


def hadamard_entries(rows: Int64s, columns: Int64s) -> Int64s:
    """(−1)^popcount(f AND j) for each row f and column j."""
    shared = np.bitwise_count(rows[:, None] & columns[None, :])
    entries: Int64s = 1 - 2 * (shared & 1).astype(np.int64)
    return entries


@kernel
def walsh_rows(rows: NDArray[Any], signs: NDArray[np.int8], product: NDArray[Any]) -> None:
    """product = H·D·row with zeros behind the row, for each row: int64 modulo 2^64, or float64."""
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        target = product[i]
        for j in range(width):
            target[j] = rows[i, j] * signs[j]
        target[width:] = 0
        walsh(target)


@kernel
def walsh(vector: NDArray[Any]) -> None:
    """vector = H·vector, in place, for int64 modulo 2^64 or float64; the length is a power of two."""
    half = 1
    # Three doublings at a time: the vector goes through the cache a third as often.
    while 8 * half <= len(vector):
        for start in range(0, len(vector), 8 * half):
            _eight(vector[start : start + 8 * half], half)
        half *= 8
    while half < len(vector):
        for start in range(0, len(vector), 2 * half):
            upper, lower = vector[start : start + half], vector[start + half : start + 2 * half]
            for j in range(half):
                a, b = upper[j], lower[j]
                upper[j], lower[j] = a + b, a - b
        half *= 2


@kernel
def _eight(part: NDArray[Any], size: int) -> None:
    """The Walsh-Hadamard transform across eight runs of this size."""
    v0, v1, v2, v3 = part[:size], part[size:], part[2 * size :], part[3 * size :]
    v4, v5, v6, v7 = part[4 * size :], part[5 * size :], part[6 * size :], part[7 * size :]
    for j in range(size):
        a0, a1 = v0[j] + v1[j], v0[j] - v1[j]
        a2, a3 = v2[j] + v3[j], v2[j] - v3[j]
        a4, a5 = v4[j] + v5[j], v4[j] - v5[j]
        a6, a7 = v6[j] + v7[j], v6[j] - v7[j]
        b0, b2 = a0 + a2, a0 - a2
        b1, b3 = a1 + a3, a1 - a3
        b4, b6 = a4 + a6, a4 - a6
        b5, b7 = a5 + a7, a5 - a7
        v0[j], v4[j] = b0 + b4, b0 - b4
        v1[j], v5[j] = b1 + b5, b1 - b5
        v2[j], v6[j] = b2 + b6, b2 - b6
        v3[j], v7[j] = b3 + b7, b3 - b7


@kernel
def column_norms_of_walsh(
    starts: Int64s, columns: Int64s, values: Int64s, padded_dim: int, l1: Int64s, l2_squared: Int64s
) -> None:
    """Adds |entry| and entry² of each column of P·H to l1 and l2_squared, row by row of P."""
    row = np.empty(padded_dim, dtype=np.int64)
    for i in range(len(starts) - 1):
        row[:] = 0
        for position in range(starts[i], starts[i + 1]):
            row[columns[position]] += values[position]
        walsh(row)
        for j in range(len(l1)):
            l1[j] += abs(row[j])
            l2_squared[j] += row[j] * row[j]
