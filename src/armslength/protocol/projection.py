"""What a release does before there is noise: it reads and checks all of X, and computes the exact integers A·x."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import InputError, ParameterError
from armslength.protocol.inputs import column_names, integer_parts, opened
from armslength.protocol.protocol import Protocol
from armslength.protocol.quantize import Grid
from armslength.protocol.totals import row_totals
from armslength.randomness.items import read_to_the_end
from armslength.threads import for_blocks
from armslength.transforms.base import block_rows
from armslength.transforms.inputs import Rows, SparseRows
from armslength.transforms.sparse_jl import SparseJL

_SHORT_SKETCH = 1 << 16


@dataclass(frozen=True)
class Prepared:
    """Input that was read to its end and checked: what is still to do cannot fail because of it.

    Attributes:
        parts: The rows, in grid units.
        product: A·x for all of them, **not private**; None where that waits until there is noise to add it to: with noise
            on the input it must, and sparse rows are added to their noise while it is in the cache.
        add_rows: What then adds rows start … stop−1 times Aᵀ to an array.
        totals: Σⱼ xⱼ of each row in grid units, **not private**, where the protocol releases totals.
    """

    parts: list[Rows]
    product: NDArray[np.int64] | None
    add_rows: Callable[[int, int, NDArray[np.int64]], None] | None = None
    totals: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(part.count for part in self.parts) if self.product is None else len(self.product)


def prepared(protocol: Protocol, X: Any, items: Any, threads: int | None) -> Prepared:
    """X, read and checked, and projected where that is done first."""
    transform = protocol.transform
    sums: list[NDArray[np.int64]] | None = [] if protocol.total_share else None
    parts, named = _parts(protocol, X, items)
    parts = parts if sums is None else _summed(parts, sums, threads)
    if protocol.noise_site == "input":
        listed = list(parts)
        for part in listed:
            _read_through(part, threads)
        return Prepared(listed, None, None, _all_totals(sums))
    first = next(parts)
    short = transform.sketch_dim <= _SHORT_SKETCH and not named
    if isinstance(first, SparseRows) and isinstance(transform, SparseJL) and short:
        _read_through(first, threads)
        return Prepared([first], None, transform.adder(first, threads), _all_totals(sums))
    products = [transform.apply(first, **named, threads=threads)]
    products += [transform.apply(part, **named, threads=threads) for part in parts]
    return Prepared([], _joined(products), None, _all_totals(sums))


def project(protocol: Protocol, X: Any, items: Any, threads: int | None) -> NDArray[np.int64]:
    """The exact integers A·x, n x k, **not private**."""
    return project_and_add_up(protocol, X, items, threads)[0]


def project_and_add_up(
    protocol: Protocol, X: Any, items: Any, threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """(the exact integers A·x, n x k; the total of each row where the protocol releases totals), **not private**."""
    sums: list[NDArray[np.int64]] | None = [] if protocol.total_share else None
    parts, named = _parts(protocol, X, items)
    parts = parts if sums is None else _summed(parts, sums, threads)
    product = _joined([protocol.transform.apply(part, **named, threads=threads) for part in parts])
    return product, _all_totals(sums)


def _summed(parts: Iterator[Rows], sums: list[NDArray[np.int64]], threads: int | None) -> Iterator[Rows]:
    """The same parts; the totals of each are put aside as it comes by."""
    for part in parts:
        sums.append(row_totals(part, threads))
        yield part


def _all_totals(sums: list[NDArray[np.int64]] | None) -> NDArray[np.int64] | None:
    return None if sums is None else np.concatenate(sums)


def _parts(protocol: Protocol, X: Any, items: Any) -> tuple[Iterator[Rows], dict[str, Any]]:
    """(parts of X in grid units, what else `apply` must be told about their columns)."""
    transform = protocol.transform
    grid = Grid.of(protocol.resolution, protocol.value_range, on_grid=protocol.on_grid)
    X = opened(X)
    named = {}
    if transform.input_dim is None:
        named["items"] = checked_items(protocol, column_names(X) if items is None else items)
    elif items is not None:
        raise ParameterError("items must be left out when input_dim is fixed")
    return integer_parts(X, grid, transform.input_dim, protocol.vocabulary), named


def _read_through(rows: Rows, threads: int | None) -> None:
    """Reads every value once, so that one that must be refused is refused now."""
    if not rows.may_refuse:
        return

    def read(start: int, stop: int) -> None:
        if isinstance(rows, SparseRows):
            rows.entries(start, stop)
        else:
            rows.block(start, stop)

    width = max(1, len(rows.columns) // max(1, rows.count)) if isinstance(rows, SparseRows) else rows.width
    for_blocks(rows.count, block_rows(width), read, threads)


def _joined(products: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All of them in one array; each is given back as soon as it is copied, so that two copies never exist."""
    if len(products) == 1:
        return products[0]
    joined = np.empty((sum(map(len, products)), products[0].shape[1]), dtype=np.int64)
    start = 0
    products.reverse()
    while products:
        part = products.pop()
        joined[start : start + len(part)] = part
        start += len(part)
    return joined


def checked_items(protocol: Protocol, items: Any) -> Any:
    """Items of the type that the protocol declares."""
    if items is None:
        raise InputError("items must name the columns of X for an open vocabulary, got None")
    if isinstance(items, np.ndarray):
        items = items.tolist()
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, range)):
        raise InputError(
            f"items must be a list of the protocol's type {protocol.items}, got {type(items).__name__}"
        )
    listed = read_to_the_end(items)
    check_item_types(protocol, listed)
    if len(set(listed)) != len(listed):
        raise InputError("items must name each column once, got duplicates; add those columns up first")
    return listed


def check_item_types(protocol: Protocol, items: list[Any]) -> None:
    """Refuses items that are not of the type that the protocol declares."""
    wanted = str if protocol.items == "string" else (int, np.integer)
    if not all(issubclass(kind, wanted) and not issubclass(kind, bool) for kind in set(map(type, items))):
        raise InputError(
            f"items must be of the protocol's type {protocol.items}, got another; convert them first"
        )
