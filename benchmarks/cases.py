"""What is measured: the work, its sizes, its peers and the ratio that we want. Change sizes and peers here, and nowhere else.

A peer gets its input in several layouts and types, and its fastest one counts. `same` names the one that gets the very
array that we get, where that is another. Peers add no noise; we draw exact noise in every release.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import armslength as al
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.noise.draw import draw

if TYPE_CHECKING:
    from armslength.laws import Law

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        work: What is done.
        peer: Who else does it.
        target: How many times faster than the peer we want to be.
        ours: Our work.
        theirs: Makes the peer's work in each setting; the fastest counts.
        same: The setting that gets the same array as we do; empty if that makes no difference.
        reads: The input, which must be read once at least.
        shares: What part of our work the peer does, where that would take too long.
    """

    work: str
    peer: str
    target: float
    ours: Work
    theirs: Callable[[], dict[str, Work]]
    same: str = ""
    reads: tuple[NDArray[Any], ...] = ()
    shares: float = 1.0


@dataclass(frozen=True)
class Sizes:
    """How much work there is: everything, or what a quick look needs."""

    draws: int = 10_000_000
    opendp_draws: int = 20_000
    dense: tuple[int, int, int] = (4000, 8192, 1024)
    counts: tuple[int, int, int] = (20_000, 784, 256)
    sparse: tuple[int, int, int] = (20_000, 1_000_000, 1024)
    nonzeros: int = 100
    events: int = 10_000_000
    items: int = 70_000
    columns: int = 1_000_000
    pairs: tuple[int, int] = (5000, 256)
    memory: tuple[int, int, int] = (100_000, 4096, 256)
    growth: tuple[int, int, int, int, int] = (2000, 1_000_000, 1024, 4, 200)  # n, d, k, s, non-zeros per row
    growth_steps: int = 6  # doublings of each, less one
    repeats: int = 7
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2021))


QUICK = Sizes(
    draws=2_000_000,
    opendp_draws=5000,
    dense=(1000, 8192, 1024),
    counts=(5000, 784, 256),
    sparse=(5000, 1_000_000, 1024),
    events=1_000_000,
    items=7000,
    columns=100_000,
    pairs=(2000, 256),
    memory=(20_000, 4096, 256),
    growth_steps=3,
    repeats=3,
)


def all_cases(sizes: Sizes) -> Iterator[Case]:
    """Every line of the table; data is made when its line is reached."""
    yield from noise(sizes)
    yield from dense_release(sizes)
    yield from counts_release(sizes)
    yield from sparse_release(sizes)
    yield open_vocabulary(sizes)
    yield stream_updates(sizes)
    yield all_pairs(sizes)


def noise(sizes: Sizes) -> Iterator[Case]:
    """Exact noise against NumPy's generator, which is neither exact nor secret, and against OpenDP, which is both."""
    generator, count = sizes.generator, sizes.draws
    laws: list[tuple[Law, float]] = [
        (DiscreteLaplace(1.0), 10),
        (DiscreteLaplace(50.0), 10),
        (DiscreteLaplace(1e6), 2),
        (DiscreteLaplace(2.0**30), 2),
        (RoundedNormal(5.0), 4),
        (RoundedNormal(2.0**30), 1),
    ]
    for law, target in laws:
        if isinstance(law, DiscreteLaplace):
            name, peer = "Generator.laplace", partial(generator.laplace, 0.0, law.scale, count)
            kind = "discrete Laplace"
        else:
            name, peer = "Generator.standard_normal", partial(generator.standard_normal, count)
            kind = "rounded normal"
        ours = partial(draw, law, (count,))
        yield Case(
            f"exact {kind}, {count:,} draws, scale {law.scale:g}",
            f"NumPy {name}",
            target,
            ours,
            _only("", peer),
        )
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    sampler, zeros = dp.m.make_laplace(*space, scale=50.0), [0] * sizes.opendp_draws
    yield Case(
        f"exact discrete Laplace, {count:,} draws, scale 50",
        "OpenDP integer Laplace, per draw",
        3000,
        partial(draw, DiscreteLaplace(50.0), (count,)),
        _only("", partial(sampler, zeros)),
        shares=sizes.opendp_draws / count,
    )


def _only(setting: str, work: Work) -> Callable[[], dict[str, Work]]:
    return lambda: {setting: work}


def _release(protocol: al.Protocol, X: Any) -> Work:
    return partial(al.release, protocol, X, ledger=al.NO_LEDGER)


def _transforms(projection: Any, inputs: dict[str, Any]) -> Callable[[], dict[str, Work]]:
    """The peer's `transform` on each of its inputs: one matrix, in the type that each input asks for."""

    def fitted() -> dict[str, Work]:
        first = next(iter(inputs.values()))
        fit = projection.fit(first)
        works: dict[str, Work] = {}
        for name, X in inputs.items():
            its_own = copy.copy(fit)
            kind = np.float32 if X.dtype == np.float32 else np.float64
            its_own.components_ = fit.components_.astype(kind)
            works[name] = partial(its_own.transform, X)
        return works

    return fitted


def dense_release(sizes: Sizes) -> Iterator[Case]:
    """Real values, floored onto a grid that is chosen from public numbers."""
    n, d, k = sizes.dense
    X = sizes.generator.standard_normal((n, d), dtype=np.float32)
    layouts = {
        "float32, rows contiguous": X,
        "float32, columns contiguous": np.asfortranarray(X),
        "float64, columns contiguous": np.asfortranarray(X, dtype=np.float64),
    }
    data = al.Arrays(resolution="auto", changed_entries=d)
    for sparsity, target in ((1, 6.0), (8, 3.5)):
        protocol = al.Protocol(
            al.SparseJL(input_dim=d, sketch_dim=k, sparsity=sparsity, seed="bench"), data, epsilon=1
        )
        projection = SparseRandomProjection(k, density=sparsity / k, random_state=0)
        yield Case(
            f"release, dense float32 {n} x {d} -> {k}, s={sparsity}",
            "scikit-learn SparseRandomProjection",
            target,
            _release(protocol, X),
            _transforms(projection, layouts),
            "float32, rows contiguous",
            (X,),
        )
    hadamard = al.Protocol(
        al.HadamardJL(input_dim=d, sketch_dim=k, seed="bench"), data, epsilon=1, delta=1e-6
    )
    yield Case(
        f"release with HadamardJL, dense float32 {n} x {d} -> {k}",
        "scikit-learn GaussianRandomProjection",
        2,
        _release(hadamard, X),
        _transforms(GaussianRandomProjection(k, random_state=0), layouts),
        "float32, rows contiguous",
        (X,),
    )


def counts_release(sizes: Sizes) -> Iterator[Case]:
    """Counts in a dense table, as a histogram for each of many groups."""
    n, d, k = sizes.counts
    X = sizes.generator.poisson(3.0, (n, d)).astype(np.int32)
    floats = X.astype(np.float32)
    layouts = {
        "int32, rows contiguous": X,
        "float32, rows contiguous": floats,
        "float32, columns contiguous": np.asfortranarray(floats),
        "float32, sparse by rows": sparse.csr_array(floats),
    }
    protocol = al.Protocol(al.SparseJL(input_dim=d, sketch_dim=k, sparsity=4, seed="bench"), epsilon=1)
    yield Case(
        f"release, dense int32 counts {n} x {d} -> {k}, s=4",
        "scikit-learn SparseRandomProjection",
        5,
        _release(protocol, X),
        _transforms(SparseRandomProjection(k, density=4 / k, random_state=0), layouts),
        "int32, rows contiguous",
        (X,),
    )


def sparse_release(sizes: Sizes) -> Iterator[Case]:
    """A few counts out of very many columns. The peer's result is sparse too, ours cannot be: there is noise everywhere."""
    n, d, k = sizes.sparse
    per_row = sizes.nonzeros
    # sorted, and different from each other within a row
    columns = np.sort(sizes.generator.integers(0, d - per_row, (n, per_row)), axis=1) + np.arange(per_row)
    values = sizes.generator.poisson(3.0, n * per_row).astype(np.int32) + 1
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_array((values, columns.ravel().astype(np.int32), starts), shape=(n, d))
    layouts = {
        "int32, by rows": X,
        "float32, by rows": X.astype(np.float32),
        "float64, by columns": X.astype(np.float64).tocsc(),
    }
    for sparsity, target in ((1, 2.0), (8, 6.0)):
        protocol = al.Protocol(
            al.SparseJL(input_dim=d, sketch_dim=k, sparsity=sparsity, seed="bench"), epsilon=1
        )
        yield Case(
            f"release, sparse {n} x {d:,}, {per_row} non-zeros per row -> {k}, s={sparsity}",
            "scikit-learn SparseRandomProjection, equal density",
            target,
            _release(protocol, X),
            _transforms(SparseRandomProjection(k, density=sparsity / k, random_state=0), layouts),
            "int32, by rows",
            (X.data, X.indices, X.indptr),
        )


def open_vocabulary(sizes: Sizes) -> Case:
    """Events with string items that nobody has listed before, in Arrow."""
    chosen = sizes.generator.zipf(1.2, sizes.events) % sizes.items
    names = pa.array([f"item number {number}" for number in range(sizes.items)])
    column = names.take(pa.array(chosen))
    tokens = column.slice(0, sizes.events // 10).to_pylist()
    protocol = al.Protocol(al.SparseJL(sketch_dim=1024, sparsity=4, seed="bench"), epsilon=1)
    hasher = FeatureHasher(1024, input_type="string", dtype=np.float32)

    def ours() -> al.Sketches:
        stream = al.stream(protocol, label="events", ledger=al.NO_LEDGER)
        stream.update(column)
        return stream.release()

    return Case(
        f"open vocabulary, {sizes.events:,} string events of {sizes.items:,} items in Arrow -> one sketch, s=4",
        "scikit-learn FeatureHasher, per token",
        5,
        ours,
        _only("one list of strings", partial(hasher.transform, [tokens])),
        reads=(np.frombuffer(column.buffers()[2], dtype=np.uint8),),
        shares=len(tokens) / sizes.events,
    )


def stream_updates(sizes: Sizes) -> Case:
    """Events with numbered items; the peer gets the rows and signs of all of them for nothing."""
    d, k, sparsity = sizes.columns, 1024, 4
    numbers = sizes.generator.integers(0, d, sizes.events)
    protocol = al.Protocol(al.SparseJL(input_dim=d, sketch_dim=k, sparsity=sparsity, seed="bench"), epsilon=1)
    events: Any = protocol.transform.columns(numbers)
    rows, signs = events.indices.astype(np.int64), events.data.astype(np.int64)
    stream = al.stream(protocol, label="events", ledger=al.NO_LEDGER)
    state = np.zeros(k, dtype=np.int64)
    return Case(
        f"stream updates, {sizes.events:,} events of {d:,} columns, s={sparsity}",
        "NumPy add.at, hashing not counted",
        1,
        partial(stream.update, numbers),
        _only("", partial(np.add.at, state, rows, signs)),
        reads=(numbers,),
    )


def all_pairs(sizes: Sizes) -> Case:
    """Every distance within one set: value, variance and both ends of the interval."""
    n, k = sizes.pairs
    protocol = al.Protocol(al.SparseJL(input_dim=10 * k, sketch_dim=k, sparsity=1, seed="bench"), epsilon=1)
    sketches = al.release(protocol, sizes.generator.poisson(5.0, (n, 10 * k)), ledger=al.NO_LEDGER)
    values = sketches.values.astype(np.float64)

    def ours() -> object:
        estimate = al.squared_distances(sketches)
        return estimate.value, estimate.variance, estimate.interval()

    return Case(
        f"all pairs of {n} x {k}: squared distances, variances, intervals",
        "scikit-learn euclidean_distances, no variances or intervals",
        0.7,
        ours,
        lambda: {
            "float64, squared": partial(euclidean_distances, values, squared=True),
            "float32, squared": partial(euclidean_distances, values.astype(np.float32), squared=True),
        },
        reads=(sketches.values,),
    )
