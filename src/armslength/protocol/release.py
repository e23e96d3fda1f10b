"""The one place where secret meets public: A·x from the data, noise from the operating system's bits.

Order is everything here. All checks and the projection come first, so that bad input costs nothing; then the ledger
is charged; then noise is drawn and added; only then does anything leave.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import integer, shown
from armslength.errors import InputError, ParameterError
from armslength.ledger.ledger import Entry, NoLedger, check_ledger, opened_ledger
from armslength.noise.draw import draw
from armslength.protocol.inputs import column_names, integer_blocks, opened
from armslength.protocol.protocol import Protocol
from armslength.protocol.provenance import NoiseSource, Provenance
from armslength.protocol.quantize import Grid
from armslength.protocol.schema import written
from armslength.protocol.sketches import Sketches, checked_labels
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.sparse_jl import SparseJL
from armslength.version import __version__

_ROWS_AT_ONCE = 1 << 22  # entries of noise on the input that are held at a time


def release(  # each is a decision of its own
    protocol: Protocol,
    X: Any,
    *,
    ledger: Any,
    labels: Any = None,
    population: str = "",
    items: Any = None,
    repeat: bool = False,
    threads: int | None = None,
) -> Sketches:
    """One private sketch for each row of X.

    Guarantee: all rows together are ε-DP (Laplace) or (ε, δ)-DP (Gaussian) for neighbors with ‖x − x'‖₁ ≤ radius
    over all rows. Errors are raised before anything is charged or drawn, and show no value of X.
    Reference: docs/privacy.md, theorem 1.

    Args:
        protocol: What the parties agreed on.
        X: n rows: a dense array, a SciPy sparse matrix, or anything with an Arrow C stream.
        ledger: A `Ledger`, the path of one, or `al.NO_LEDGER`.
        labels: One name for each row; None numbers them.
        population: Whose budget the ledger charges.
        items: For an open vocabulary: the items that the columns count; a table's column names if None.
        repeat: Whether the same population and labels may be released again.
        threads: At most this many threads; None takes all that the process may run.
    """
    check_ledger(ledger)
    check_population(population, ledger)
    if threads is not None:
        integer("threads", threads, at_least=1, at_most=1024)
    product = project(protocol, X, items, threads)
    if len(product) > 1 and not protocol.on_grid and protocol.touched is None:
        raise ParameterError(
            "touched must say how many entries one unit can change, over all rows, when several rows are off the grid; "
            "pass touched=input_dim to the protocol if one unit lies in one row"
        )
    names = checked_labels(labels, len(product))
    charge(protocol, ledger, population, names, repeat=repeat)
    return noisy_sketches(protocol, product, names, threads)


def project(protocol: Protocol, X: Any, items: Any, threads: int | None) -> NDArray[np.int64]:
    """The exact integers under the noise, **not private**: A·x, or H·D·x where noise goes on the input."""
    transform = protocol.transform
    grid = Grid.of(protocol.resolution, protocol.value_range, on_grid=protocol.on_grid)
    X = opened(X)
    blocks = integer_blocks(X, grid, transform.input_dim, protocol.vocabulary, threads)
    if isinstance(transform, SparseJL) and transform.input_dim is None:
        named = checked_items(protocol, column_names(X) if items is None else items)
        products = (transform.apply(block, items=named, threads=threads) for block in blocks)
    elif items is not None:
        raise ParameterError("items must be left out when input_dim is fixed")
    elif protocol.noise_site == "input" and isinstance(transform, FastJL):
        products = (transform.spread(block, threads=threads) for block in blocks)
    else:
        products = (transform.apply(block, threads=threads) for block in blocks)
    first, *rest = products
    return np.concatenate([first, *rest]) if rest else first


def checked_items(protocol: Protocol, items: Any) -> Any:
    """Items of the type that the protocol declares."""
    if items is None:
        raise InputError("items must name the columns of X for an open vocabulary, got None")
    wanted = str if protocol.items == "string" else (int, np.integer)
    if isinstance(items, np.ndarray):
        items = items.tolist()
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, range)):
        raise InputError(
            f"items must be a list of the protocol's type {protocol.items}, got {type(items).__name__}"
        )
    listed = list(items)
    if not all(isinstance(item, wanted) and not isinstance(item, bool) for item in listed):
        raise InputError(
            f"items must be of the protocol's type {protocol.items}, got another; convert them first"
        )
    if len(set(listed)) != len(listed):
        raise InputError("items must name each column once, got duplicates; add those columns up first")
    return listed


def noisy_sketches(
    protocol: Protocol, product: NDArray[np.int64], labels: list[str], threads: int | None
) -> Sketches:
    """The product with fresh noise of the protocol's law, its low bits dropped; one noise id for each row."""
    transform = protocol.transform
    if protocol.noise_site == "input" and isinstance(transform, FastJL):
        used = transform.used_columns
        values = np.empty((len(product), transform.sketch_dim), dtype=np.int64)
        step = max(1, _ROWS_AT_ONCE // max(1, len(used)))
        for start in range(0, len(product), step):
            spread = product[start : start + step].copy()
            # Columns of the published P that are all zero would throw their noise away: none is drawn for them.
            spread[:, used] += draw(protocol.law, (len(spread), len(used)), threads=threads)
            values[start : start + step] = transform.combine(spread)
    else:
        values = draw(protocol.law, product.shape, threads=threads)
        values += product
    return Sketches(drop_bits(values, protocol), labels, new_provenance(protocol, len(values)), [protocol])


def drop_bits(values: NDArray[np.int64], protocol: Protocol) -> NDArray[np.int64]:
    """The values with their low bits cleared, as the protocol says: post-processing of the noise."""
    bits = np.int64(protocol.dropped_bits)
    return (values >> bits) << bits if bits else values


def new_provenance(protocol: Protocol, count: int) -> list[Provenance]:
    """A new random noise id for each row."""
    middle = (2**protocol.dropped_bits - 1) / 2
    ids = secrets.token_bytes(16 * count).hex()
    return [
        Provenance(((NoiseSource(ids[start : start + 32], protocol), 1.0),), offset=middle)
        for start in range(0, 32 * count, 32)
    ]


def check_population(population: Any, ledger: Any) -> None:
    """A ledger needs to know whose budget it charges."""
    if not isinstance(population, str) or len(population) > 1000 or not population.isprintable():
        raise ParameterError(f"population must be one line of text, got {shown(population)}")
    if not isinstance(ledger, NoLedger) and not population:
        raise ParameterError("population must name the people whose budget the ledger charges, got nothing")


def release_label(labels: list[str]) -> str:
    """One name for a release of several rows, from their labels alone."""
    joined = ", ".join(labels)
    if len(joined) <= 200:
        return joined
    digest = hashlib.sha256(joined.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{len(labels)} rows, {labels[0][:80]} … ({digest})"


def charge(protocol: Protocol, ledger: Any, population: str, labels: list[str], *, repeat: bool) -> None:
    """Opens the ledger and writes its line, or refuses."""
    if isinstance(ledger, NoLedger):
        return
    entry = Entry(
        population=population,
        label=release_label(labels),
        unit=protocol.unit,
        relation=protocol.relation,
        radius=written(protocol.radius),
        law=protocol.noise,
        scale=protocol.law.scale.hex(),
        epsilon=written(protocol.epsilon),
        delta=written(protocol.released_delta),
        protocol=protocol.fingerprint,
        version=__version__,
    )
    opened_ledger(ledger).charge(entry, labels, repeat=repeat)
