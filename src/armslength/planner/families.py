"""What a plan chooses from: every transform, law and sparsity, each at every useful size."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from armslength.planner.situation import SMALLEST_BOUNDED, SizeSituation, usual_max_norm
from armslength.transforms.dense_jl import GaussianJL, SignJL
from armslength.transforms.fast_jl import DEFAULT_ENTRIES_PER_ROW, LARGEST_PUBLISHED, FastJL
from armslength.transforms.hadamard_jl import (
    LARGEST_PADDED_DIM,
    LARGEST_SCANNED_DIM,
    HadamardJL,
    padded_dimension,
)
from armslength.transforms.identity import Identity
from armslength.transforms.operator_norm import LARGEST_GRAM, LARGEST_SCAN, LARGEST_WORK
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import LARGEST_DENSE, LARGEST_SKETCH_DIM, Transform

HISTOGRAM, KENTHAPADI = "noisy histogram", "Kenthapadi et al."
SPARSITIES = (1, 2, 4, 8, 16, 32)
_FOR_ITEMS = 3  # the fewest of which most can agree
_SIZES_IN_AN_OCTAVE = 32
# Under ℓ2 neighbors the noise is a step function of the fullest bin: bins of up to 64 coordinates are tried.
_BIN_SIZES = range(1, 65)


@dataclass(frozen=True)
class Family:
    """Configurations that differ only in their size."""

    label: str
    noise: str  # "laplace" or "gaussian"
    build: Callable[..., Transform]  # called as build(sketch_dim=size, seed=…)
    sizes: tuple[int, ...]  # rising
    noise_site: str = "output"
    max_norm: Fraction | None = None  # of a bound in the sketch
    baseline: str = ""  # its usual name, if it is a baseline


def families(situation: SizeSituation) -> list[Family]:
    """All families that the noise and the norm of this situation allow."""
    d, limit, laws = situation.input_dim, situation.max_sketch_dim, situation.laws
    is_l2 = situation.neighbors.norm == "l2"
    sparsities = SPARSITIES if situation.explain is None else (*SPARSITIES, _FOR_ITEMS)
    result = list(_sparse(d, limit, laws, sparsities, is_l2=is_l2))
    if d is not None:
        result += _dense(d, limit, laws, is_l2=is_l2)
        if d <= LARGEST_SKETCH_DIM:
            label, build = "Identity (noisy histogram)", partial(_identity, d)
            result += [Family(label, law, build, (d,), baseline=HISTOGRAM) for law in laws]
    return [*result, *(bounded for family in result for bounded in _bounded(family, situation))]


def sizes_up_to(limit: int, multiple: int = 1) -> tuple[int, ...]:
    """Every size to 32, then 32 in each doubling, and the limit; multiples of a sparsity.

    The variance is A/k + B + C·k in the size, so steps of 1/32 lose less than one part in 4000 of it.
    """
    sizes = {limit}
    size = 1
    while size <= limit:
        sizes.add(size)
        size += max(1, 2 ** (size.bit_length() - 1) // _SIZES_IN_AN_OCTAVE)
    multiples = {max(1, size // multiple) * multiple for size in sizes}
    return tuple(sorted(size for size in multiples if size <= limit))


def _sparse(
    d: int | None, limit: int, laws: list[str], sparsities: tuple[int, ...], *, is_l2: bool
) -> Iterator[Family]:
    """`SparseJL` in blocks; in a graph it is no better. For ℓ2 neighbors, only where the operator norm can be computed."""
    most = limit if d is None else min(limit, d)
    steps = () if d is None or not is_l2 else tuple(-(-d // bin_size) for bin_size in _BIN_SIZES)
    for construction in ("block", "balanced"):
        for s in sparsities:
            if s > most:
                continue
            if construction == "balanced" and (d is None or d * s > LARGEST_DEALT):
                continue
            if is_l2 and d is not None and (s > 1 or construction == "block") and d * s**2 > LARGEST_SCAN:
                continue
            sizes = sizes_up_to(most if s == 1 or not is_l2 else min(most, LARGEST_GRAM), s)
            if s == 1:
                sizes = tuple(sorted({*sizes, *(size for size in steps if size <= most)}))
            for law in laws:
                build = partial(SparseJL, input_dim=d, sparsity=s, construction=construction)
                yield Family(f"SparseJL {construction}, s={s}", law, build, sizes)


def _bounded(family: Family, situation: SizeSituation) -> Iterator[Family]:
    """The family with a bound in the sketch, at the sizes where that is offered; more entries in a column serve a target alone."""
    if family.noise == "gaussian":
        largest = family.build(sketch_dim=family.sizes[-1], seed="plan")
        max_norm = usual_max_norm(situation.protocol, largest)
        if max_norm is not None and (situation.target is not None or largest.column_entries == 1):
            sizes = tuple(size for size in family.sizes if size >= min(SMALLEST_BOUNDED, largest.sketch_dim))
            label = f"{family.label}, max_norm {float(max_norm):g}"
            yield replace(family, label=label, sizes=sizes, max_norm=max_norm)


def _dense(d: int, limit: int, laws: list[str], *, is_l2: bool) -> Iterator[Family]:
    """The transforms that need a fixed input dimension that is not too large."""
    fits_dense = tuple(size for size in sizes_up_to(limit) if size * d <= LARGEST_DENSE)
    if is_l2:
        most = min(LARGEST_GRAM, math.isqrt(LARGEST_WORK // d))
        fits_dense = tuple(size for size in fits_dense if size <= most)
    if d <= LARGEST_PADDED_DIM:
        padded = padded_dimension(d)
        fits_fast = tuple(
            size
            for size in fits_dense
            if size * padded <= LARGEST_DENSE
            and size * min(padded, DEFAULT_ENTRIES_PER_ROW) <= LARGEST_PUBLISHED
            and padded <= LARGEST_SCANNED_DIM
        )
        fast = partial(FastJL, input_dim=d)
        for law in laws:
            hadamard = partial(HadamardJL, input_dim=d)
            yield Family("HadamardJL", law, hadamard, sizes_up_to(min(limit, padded)))
            if fits_fast:
                yield Family("FastJL, noise on the output", law, fast, fits_fast)
        if "gaussian" in laws and fits_fast:
            label = "FastJL, noise on the input"
            yield Family(label, "gaussian", fast, fits_fast, noise_site="input")
    if fits_dense:
        for law in laws:
            baseline = KENTHAPADI if law == "gaussian" else ""
            label = f"GaussianJL ({KENTHAPADI})" if baseline else "GaussianJL"
            gaussian = partial(GaussianJL, input_dim=d)
            yield Family(label, law, gaussian, fits_dense, baseline=baseline)
            for construction in ("dense", "sparse"):
                build = partial(SignJL, input_dim=d, construction=construction)
                yield Family(f"SignJL {construction} (Achlioptas)", law, build, fits_dense)


def _identity(d: int, *, sketch_dim: int, seed: str) -> Transform:  # noqa: ARG001  # called like the others
    return Identity(input_dim=d)
