"""One reading of very many rows: their noises, a sample of them, and the point that coordinates are counted from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from armslength.errors import ParameterError
from armslength.estimates.kernels import BAND
from armslength.estimates.noise_models import PairNoise, noise_classes
from armslength.estimates.squared_distances import clear_note
from armslength.protocol.protocol import Protocol as Agreement
from armslength.protocol.sketches import Sketches, check_same_space
from armslength.randomness.stream import Reader
from armslength.search.kernels import subtract_origin


@runtime_checkable
class RowBlocks(Protocol):
    """Rows that can be read in order, some at a time: `Sketches`, or a collection that is too large for memory."""

    @property
    def protocols(self) -> tuple[Agreement, ...]:
        """The protocols of all rows; they share one space."""

    def __len__(self) -> int:
        """How many rows there are."""

    def blocks(self, rows: int, /) -> Iterator[Sketches]:
        """All rows in order, at most so many at a time; the same ones whenever it is called."""


@dataclass(frozen=True, eq=False)
class RowNoises:
    """The noise of each row, in few classes.

    Attributes:
        classes: For each row the number of its class.
        second: κ₂ of each class, in integer units.
        fourth: κ₄ of each class.
    """

    classes: NDArray[np.int32]
    second: NDArray[np.float64]
    fourth: NDArray[np.float64]

    def of(self, rows: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """κ₂ and κ₄ of some rows."""
        classes = self.classes[rows]
        return self.second[classes], self.fourth[classes]


class Block:
    """Rows less the origin, with zeros up to a whole band, and their squared norms: filled in part by part, by whoever needs them.

    Attributes:
        rows: n rows and the zeros.
        squares: n squared norms.
    """

    def __init__(self, values: NDArray[Any], origin: NDArray[Any], shifts: NDArray[np.float64]) -> None:
        self._given = values, origin, shifts
        self.rows = np.empty((-(-len(values) // BAND) * BAND, values.shape[1]))
        self.rows[len(values) :] = 0.0
        self.squares = np.empty(len(values))

    def __len__(self) -> int:
        return len(self.squares)

    def fill(self, start: int, stop: int) -> None:
        """Computes some of the rows."""
        values, origin, shifts = self._given
        part = slice(start, stop)
        subtract_origin(values[part], origin, shifts[part], self.rows[part], self.squares[part])


@dataclass(frozen=True, eq=False)
class Frame:
    """The point that coordinates are counted from: integers wrap modulo 2^64, differences of neighbors do not."""

    origin: NDArray[Any]
    offset: float

    def block(self, values: NDArray[Any], offsets: NDArray[np.float64]) -> Block:
        """Rows as they are read, to be taken less the origin."""
        origin = self.origin
        if values.dtype != origin.dtype:
            values, origin = values.astype(np.float64), origin.astype(np.float64)
        return Block(values, origin, offsets - self.offset)


@dataclass(frozen=True, eq=False)
class Survey:
    """What one reading of all rows found.

    Attributes:
        noises: The noise of each row.
        frame: Where coordinates are counted from.
        chosen: The numbers of the sampled rows, rising.
        sample: The sampled rows.
        note: What must be known of the rows; empty if nothing.
    """

    noises: RowNoises
    frame: Frame
    chosen: NDArray[np.int64]
    sample: Block
    note: str


def survey(rows: RowBlocks, size: int, words: Reader, at_once: int) -> Survey:
    """Reads all rows once.

    Args:
        rows: At least one row.
        size: How many rows to sample, at most: one of each of so many equal stretches.
        words: Public randomness.
        at_once: How many rows to read at a time.
    """
    chosen = _one_of_each_stretch(len(rows), min(size, len(rows)), words)
    known: dict[PairNoise, int] = {}
    classes = np.empty(len(rows), dtype=np.int32)
    names, values, offsets = [], [], []
    note, read = "", 0
    for block in rows.blocks(at_once):
        stop = read + len(block)
        inside, terms = noise_classes(block)
        numbers = [known.setdefault(PairNoise.of(each), len(known)) for each in terms]
        classes[read:stop] = np.array(numbers, dtype=np.int32)[inside]
        names.append(_noise_names(block))
        taken = chosen[np.searchsorted(chosen, read) : np.searchsorted(chosen, stop)] - read
        values.append(block.values[taken])
        offsets.append(block.offsets[taken])
        note = note or clear_note(block)
        read = stop
    _check_different(np.concatenate(names))
    cumulants = [noise.cumulants for noise in known]
    noises = RowNoises(
        classes, np.array([each.k2 for each in cumulants]), np.array([each.k4 for each in cumulants])
    )
    sample, sample_offsets = np.concatenate(values), np.concatenate(offsets)
    sample.flags.writeable = False  # as all sketches are, so that one compiled kernel serves both
    frame = Frame(_middle(sample), float(sample_offsets[0]))
    sampled = frame.block(sample, sample_offsets)
    sampled.fill(0, len(sampled))
    return Survey(noises, frame, chosen, sampled, note)


def checked_rows(rows: Any, at_least: int) -> RowBlocks:
    """The rows, if there are so many of them, and they share one space."""
    if not isinstance(rows, RowBlocks):
        raise ParameterError(
            f"sketches must be al.Sketches or a collection of them, got {type(rows).__name__}"
        )
    if len(rows) < at_least:
        shown = f"at least {at_least} row{'' if at_least == 1 else 's'}"
        raise ParameterError(f"sketches must have {shown}, got {len(rows)}")
    check_same_space(rows.protocols)
    return rows


def _one_of_each_stretch(count: int, size: int, words: Reader) -> NDArray[np.int64]:
    edges = np.array([count * stretch // size for stretch in range(size + 1)], dtype=np.uint64)
    return (edges[:-1] + words.take(size) % np.diff(edges)).astype(np.int64)


def _middle(sample: NDArray[Any]) -> NDArray[Any]:
    """A point amid the rows, so that few digits are spent on what they have in common; outliers do not pull it away."""
    middle = np.median(sample - sample[0], axis=0)
    if sample.dtype != np.int64:
        return np.asarray(sample[0] + middle)
    largest = 2.0**62
    return np.asarray(sample[0] + np.rint(np.clip(middle, -largest, largest)).astype(np.int64))


def _noise_names(block: Sketches) -> NDArray[np.uint64]:
    """Half of each noise's random id: enough to tell noises apart."""
    if block.released is not None:
        return (
            np.ascontiguousarray(block.released.ids).view("<u8")[::2].copy()
        )  # a view would keep both halves
    ids = [source.id for row in block.provenance for source, _ in row.terms]
    return np.frombuffer(bytes.fromhex("".join(ids)), dtype="<u8")[::2].copy()


def _check_different(names: NDArray[np.uint64]) -> None:
    names.sort()
    if (names[1:] == names[:-1]).any():
        raise ParameterError(
            "rows must each have noise of their own to be clustered by count, got rows that share one; "
            "leave out repeated and combined rows, or leave out count"
        )
