"""What membership is audited on: every transform with every law, at the neighbors that are hardest to hide.

No case takes a number from a release; sizes and thresholds stand before anything is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import armslength as al
from armslength.transforms.transform import Transform

Numbers = NDArray[np.int64] | NDArray[np.float64]

ROWS = 4_000_000  # releases of each neighbor
DELTA = "0.01"
SEED = "membership"


@dataclass(frozen=True)
class Case:
    """Two neighbors under a protocol.

    Attributes:
        name: What is particular about it.
        protocol: What is audited.
        x: One neighbor.
        other: The other.
        items: What the columns count, for an open vocabulary.
        rows: How many releases of each neighbor.
        tight: Whether the bound is nearly reached by these neighbors, so that the audit must come close to it, and must see a
            fault in the noise.
    """

    name: str
    protocol: al.Protocol
    x: Numbers
    other: Numbers
    items: Any = None
    rows: int = ROWS
    tight: bool = True


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of the table."""
    return (*_transforms_and_laws(), *_noise_on_the_input(), *_settings())


def _transforms() -> dict[str, Transform]:
    """Every transform and construction, small enough for the bound to be nearly reached."""
    return {
        "SparseJL block, s=1": al.SparseJL(input_dim=16, sketch_dim=4, sparsity=1, seed=SEED),
        "SparseJL block, s=3": al.SparseJL(input_dim=16, sketch_dim=6, sparsity=3, seed=SEED),
        "SparseJL graph, s=3": al.SparseJL(
            input_dim=16, sketch_dim=5, sparsity=3, seed=SEED, construction="graph"
        ),
        "SparseJL balanced, s=2": al.SparseJL(
            input_dim=16, sketch_dim=4, sparsity=2, seed=SEED, construction="balanced"
        ),
        "HadamardJL": al.HadamardJL(input_dim=16, sketch_dim=3, seed=SEED),
        "FastJL": al.FastJL(input_dim=16, sketch_dim=3, seed=SEED),
        "GaussianJL": al.GaussianJL(input_dim=8, sketch_dim=3, seed=SEED),
        "SignJL dense": al.SignJL(input_dim=16, sketch_dim=3, seed=SEED),
        "SignJL sparse": al.SignJL(input_dim=16, sketch_dim=4, seed=SEED, construction="sparse"),
        "Identity": al.Identity(input_dim=4),
    }


def _transforms_and_laws() -> Iterator[Case]:
    """ℓ1 neighbors, radius 1 for Laplace and 4 for Gaussian noise (where rounding would blur a smaller one)."""
    for name, transform in _transforms().items():
        yield _at_the_worst_column(f"{name}, Laplace", al.Protocol(transform, epsilon=1))
        yield _at_the_worst_column(
            f"{name}, Gaussian",
            al.Protocol(transform, al.Arrays(radius=4), epsilon=1, delta=DELTA, noise="gaussian"),
        )
    items = ["A01", "B02", "C03"]
    opened = al.SparseJL(sketch_dim=6, sparsity=2, seed=SEED)
    base, other = np.array([5, 0, 2]), np.array([5, 1, 2])
    yield Case("SparseJL open vocabulary, s=2, Laplace", al.Protocol(opened, epsilon=1), base, other, items)
    gaussian = al.Protocol(opened, al.Arrays(radius=4), epsilon=1, delta=DELTA, noise="gaussian")
    other = np.array([5, 4, 2])
    yield Case("SparseJL open vocabulary, s=2, Gaussian", gaussian, base, other, items)


def _noise_on_the_input() -> Iterator[Case]:
    """FastJL with its noise before P: with as many rows as columns P can be inverted, with fewer it hides something too."""
    for name, rows, tight in (("P can be inverted", 6, True), ("P cannot be inverted", 3, False)):
        transform = al.FastJL(input_dim=4, sketch_dim=rows, seed=SEED, density=1.0)
        protocol = al.Protocol(
            transform, al.Arrays(radius=4), epsilon=1, delta=DELTA, noise="gaussian", noise_site="input"
        )
        other = _base(transform) + np.array([0, 4, 0, 0])
        yield Case(f"FastJL, noise on the input, {name}", protocol, _base(transform), other, tight=tight)


def _settings() -> Iterator[Case]:
    """Other ε and δ, both relations, radius, totals, a grid for real numbers."""
    one = al.Identity(input_dim=1)
    yield _at_the_worst_column("Identity, Laplace, ε=0.1", al.Protocol(one, epsilon="0.1"), rows=8 * ROWS)
    yield _at_the_worst_column("Identity, Laplace, ε=4", al.Protocol(one, epsilon=4))
    yield _at_the_worst_column(
        "Identity, Laplace, radius 3", al.Protocol(one, al.Arrays(radius=3), epsilon=1)
    )
    small_delta = al.Protocol(one, al.Arrays(radius=8), epsilon=1, delta="0.001", noise="gaussian")
    yield _at_the_worst_column("Identity, Gaussian, δ=0.001", small_delta, rows=4 * ROWS)
    # σ is below 1 here: rounding hides more than the theorem counts on
    small_scale = al.Protocol(one, al.Arrays(radius=1), epsilon=4, delta=DELTA, noise="gaussian")
    yield _at_the_worst_column("Identity, Gaussian, ε=4, σ<1", small_scale, tight=False)
    # composition of a pure part with a Gaussian one is not tight
    for noise, tight in (("laplace", True), ("gaussian", False)):
        transform = al.SparseJL(input_dim=16, sketch_dim=4, sparsity=1, seed=SEED)
        protocol = al.Protocol(
            transform, al.Arrays(radius=4, total_share="0.5"), epsilon=1, delta=DELTA, noise=noise
        )
        yield _at_the_worst_column(
            f"SparseJL block, s=1, {noise.title()}, with totals", protocol, tight=tight
        )
    for noise in ("laplace", "gaussian"):
        transform = al.SparseJL(input_dim=16, sketch_dim=4, sparsity=1, seed=SEED)
        # two steps of radius 4, as where one person's data replaces another's
        protocol = al.Protocol(
            transform, al.Arrays(radius=8), epsilon=1, delta=DELTA, noise=noise, relation="replace"
        )
        first, second = _opposite_columns(transform)
        base = _base(transform)
        base[[first, second]] = 4, 0
        other = base.copy()
        other[[first, second]] = 0, 4
        yield Case(f"SparseJL block, s=1, {noise.title()}, replace", protocol, base, other)
    # 1 is eight steps of the grid; two coordinates off it can be floored to nine
    off_grid = al.Protocol(
        al.Identity(input_dim=2),
        al.Arrays(radius=1, resolution=0.125, on_grid=False, changed_entries=2),
        epsilon=1,
    )
    step = 0.125
    base_off, other_off = np.array([0.6, 0.6]) * step, np.array([1.1, 8.1]) * step
    yield Case("Identity, Laplace, real numbers off the grid", off_grid, base_off, other_off)


def _base(transform: Transform) -> NDArray[np.int64]:
    """Everybody else's counts."""
    return np.arange(3, 3 + (transform.input_dim or 0), dtype=np.int64)


def _dense(transform: Transform) -> NDArray[np.int64]:
    matrix = transform.matrix()
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def _at_the_worst_column(name: str, protocol: al.Protocol, **more: Any) -> Case:
    """Neighbors that differ by the radius in the coordinate whose column is longest in the norm that the law minds."""
    matrix = _dense(protocol.transform)
    lengths = np.abs(matrix).sum(axis=0) if protocol.noise == "laplace" else (matrix**2).sum(axis=0)
    base = _base(protocol.transform)
    other = base.copy()
    other[np.argmax(lengths)] += int(protocol.radius)
    return Case(name, protocol, base, other, **more)


def _opposite_columns(transform: Transform) -> tuple[int, int]:
    """Two coordinates in one bin with opposite signs: replacing one by the other moves the bin by both."""
    products = _dense(transform).T @ _dense(transform)
    first, second = np.argwhere(products < 0)[0].tolist()
    return first, second
