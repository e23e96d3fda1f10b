"""A sketch of a stream: noise first, then O(s) integer updates, released once.

The state is private from its first moment: whoever looks at it once, or at the release, but not at both, sees an
ε-DP or (ε, δ)-DP value (the pan-privacy of the paper's fourth claim). Two looks under one noise differ by exact data,
so a stream cannot be copied, pickled, or carried into another process, and it is released once.
"""

import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import shown
from armslength.errors import InputError, ParameterError
from armslength.ledger.ledger import check_ledger
from armslength.noise.draw import draw
from armslength.protocol.projection import checked_items
from armslength.protocol.protocol import Protocol
from armslength.protocol.release import (
    charge,
    check_population,
    drop_bits,
    new_provenance,
)
from armslength.protocol.sketches import Sketches, checked_labels
from armslength.transforms.inputs import plain_array


class SketchStream:
    """One sketch that takes events; made by `protocol.stream`.

    Guarantee: the released row is that of `protocol.release` on the sum of all updates, exactly the same integers
    under the noise. The ledger is charged when the stream is made.
    """

    def __init__(
        self, protocol: Protocol, *, label: str, ledger: Any, population: str = "", repeat: bool = False
    ) -> None:
        check_ledger(ledger)
        check_population(population, ledger)
        (self._label,) = checked_labels([label], 1) or [label]
        if protocol.value_range is not None:
            raise ParameterError(
                "value_range must be None for a stream: sums cannot be clamped before they are known"
            )
        if protocol.noise_site != "output":
            raise ParameterError(f"noise_site must be 'output' for a stream, got {protocol.noise_site!r}")
        charge(protocol, ledger, population, [self._label], repeat=repeat)
        self._protocol = protocol
        self._state: NDArray[np.int64] | None = draw(protocol.law, (protocol.transform.sketch_dim,))
        self._process = os.getpid()
        self._lock = threading.Lock()

    def update(self, items: Any, amounts: Any = 1) -> None:
        """Adds amounts to coordinates.

        Args:
            items: A column number, or for an open vocabulary an item; or a list or array of them. One may occur often.
            amounts: An integer in grid units, of either sign; or as many of them as there are items.
        """
        single = isinstance(items, (str, int, np.integer)) and not isinstance(items, bool)
        names = [items] if single else items
        positions, values = self._entries(names, amounts)
        self._check_process()
        with self._lock:
            np.add.at(self._open_state(), positions, values)

    def release(self) -> Sketches:
        """The sketch; the stream ends with it."""
        self._check_process()
        with self._lock:
            values = self._open_state()
            self._state = None
        row = drop_bits(values[None, :], self._protocol)
        return Sketches(row, [self._label], new_provenance(self._protocol, 1), [self._protocol])

    def _entries(self, names: Any, amounts: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(positions in the state, what to add there) of the updates: s for each with `SparseJL`, k with the others."""
        transform = self._protocol.transform
        if transform.input_dim is None:
            distinct, back = _distinct(names)
            checked_items(self._protocol, distinct)
            columns = transform.columns(distinct)
        else:
            numbers, back = np.unique(transform.column_numbers(names), return_inverse=True)
            columns = transform.columns(numbers)
        totals = np.zeros(columns.shape[1], dtype=np.int64)
        np.add.at(totals, back, _whole_amounts(amounts, len(back)))
        if isinstance(columns, np.ndarray):
            return np.arange(len(columns)), columns @ totals
        each = np.repeat(totals, np.diff(columns.indptr))
        return columns.indices.astype(np.int64), columns.data * each

    def _check_process(self) -> None:
        """Before any lock: a forked child must be refused, and not wait for a lock of its parent."""
        if os.getpid() != self._process:
            raise ParameterError(
                "a stream must stay in the process that made it: two of them would share noise"
            )

    def _open_state(self) -> NDArray[np.int64]:
        if self._state is None:
            raise ParameterError("a stream must be released once, got a second use; make a new stream")
        return self._state

    def __reduce__(self) -> str:
        raise TypeError(
            "a stream cannot be copied or pickled: two releases under one noise differ by exact data"
        )

    def __repr__(self) -> str:
        return f"<SketchStream {self._label!r}, {'open' if self._state is not None else 'released'}>"


def _distinct(names: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct items and, for each given one, its position among them: distinct items are hashed once."""
    try:
        listed = names.tolist() if isinstance(names, np.ndarray) else list(names)
        position: dict[Any, int] = {}
        positions = [position.setdefault(name, len(position)) for name in listed]
    except TypeError:
        raise InputError(f"items must be a list of items, got {type(names).__name__}") from None
    return list(position), np.array(positions, dtype=np.int64)


def _whole_amounts(amounts: Any, count: int) -> NDArray[np.int64]:
    """Amounts as int64, one for each item."""
    array = plain_array(amounts, "amounts")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(
            f"amounts must be integers in grid units, got {array.dtype}; floor them onto the grid first"
        )
    if array.ndim > 1 or (array.ndim == 1 and len(array) != count):
        raise InputError(f"amounts must be one integer, or {count} of them, got shape {shown(array.shape)}")
    return np.broadcast_to(array.astype(np.int64), (count,)).copy()
