"""What a plan chooses from: each transform that can be the best, with each law and sparsity, at every useful size.

`GaussianJL`, `SignJL` and `FastJL` cannot: `HadamardJL` and `SparseJL` have no larger variance and no larger sensitivity.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

from armslength.planner.situation import SMALLEST_BOUNDED, SizeSituation, usual_max_norm
from armslength.transforms.hadamard_jl import LARGEST_PADDED_DIM, HadamardJL, padded_dimension
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import LARGEST_DEALT, SparseJL
from armslength.transforms.transform import LARGEST_SKETCH_DIM, Transform

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
    max_norm: Fraction | None = None  # of a bound in the sketch


def families(situation: SizeSituation) -> list[Family]:
    """All families that the noise and the norm of this situation allow."""
    d, limit, laws = situation.input_dim, situation.max_sketch_dim, situation.laws
    result = list(_sparse(situation))
    if d is not None:
        if d <= LARGEST_PADDED_DIM:
            build, sizes = partial(HadamardJL, input_dim=d), sizes_up_to(min(limit, padded_dimension(d)))
            result += [Family("HadamardJL", law, build, sizes) for law in laws]
        if d <= LARGEST_SKETCH_DIM:
            label, copy = "Identity (noisy histogram)", partial(_identity, d)
            result += [Family(label, law, copy, (d,)) for law in laws]
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


def _sparse(situation: SizeSituation) -> Iterator[Family]:
    """`SparseJL` in blocks. Under ℓ2 neighbors balanced bins have the smallest operator norm of all."""
    d, limit, is_l2 = situation.input_dim, situation.max_sketch_dim, situation.neighbors.norm == "l2"
    most = limit if d is None else min(limit, d)
    sparsities = SPARSITIES if situation.explain is None else (*SPARSITIES, _FOR_ITEMS)
    kinds = [("balanced", 1)] if is_l2 else product(("block", "balanced"), sparsities)
    for construction, s in kinds:
        if s > most or (construction == "balanced" and (d is None or d * s > LARGEST_DEALT)):
            continue
        sizes = {*sizes_up_to(most, s)}
        if is_l2 and d is not None:
            sizes |= {size for size in (-(-d // bin_size) for bin_size in _BIN_SIZES) if size <= most}
        build = partial(SparseJL, input_dim=d, sparsity=s, construction=construction)
        label, rising = f"SparseJL {construction}, s={s}", tuple(sorted(sizes))
        yield from (Family(label, law, build, rising) for law in situation.laws)


def _bounded(family: Family, situation: SizeSituation) -> Iterator[Family]:
    """The family with a bound in the sketch, at the sizes where that is offered; more entries in a column serve a target alone."""
    if family.noise == "gaussian":
        largest = family.build(sketch_dim=family.sizes[-1], seed="plan")
        max_norm = usual_max_norm(situation.protocol, largest)
        if max_norm is not None and (situation.target is not None or largest.column_entries == 1):
            sizes = tuple(size for size in family.sizes if size >= min(SMALLEST_BOUNDED, largest.sketch_dim))
            label = f"{family.label}, max_norm {float(max_norm):g}"
            yield replace(family, label=label, sizes=sizes, max_norm=max_norm)


def _identity(d: int, *, sketch_dim: int, seed: str) -> Transform:  # noqa: ARG001  # called like the others
    return Identity(input_dim=d)
