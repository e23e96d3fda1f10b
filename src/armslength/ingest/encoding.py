"""Batches of events, as the engine reads them, become numbers: ids in two words, hashed items, numbers of groups.

A row without a usable person, group, item or weight is left out, by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength._numba import Int64s, Words, kernel
from armslength.errors import plural
from armslength.ingest.contributions import Events, pack_person, person_mix
from armslength.ingest.event_columns import canonical_person
from armslength.ingest.partitions import PART_SHIFT, PARTS, Block
from armslength.randomness.hashing import string_words
from armslength.randomness.seeds import canonical_text

_MOST_ITEMS = 1 << 20  # whose words are remembered
_NO_WORDS = b"\xff" * 16
_LONG = np.uint64(255 << 56)
_NONE = np.empty(0, dtype=np.int64)
Watch = Callable[[list[str], NDArray[np.int32], NDArray[np.int64]], object]


@dataclass
class LeftOut:
    """How many rows were read, and left out for lack of a usable role; **private**, for the data holder alone."""

    rows: int = 0
    person: int = 0
    group: int = 0
    item: int = 0
    weight: int = 0

    @property
    def counting(self) -> int:
        """How many rows count, up to the bound for each person."""
        return self.rows - self.person - self.group - self.item - self.weight

    def in_words(self) -> str:
        """One line that says how much of the table counts."""
        reasons = {
            "without a person": self.person,
            "of groups that are not listed": self.group,
            "without a usable item": self.item,
            "without a usable weight": self.weight,
        }
        lost = [f"{count:,} {reason}" for reason, count in reasons.items() if count]
        left = self.counting
        return (
            f"PRIVATE, for you alone: of {plural(self.rows, 'row')}, {left:,} {'counts' if left == 1 else 'count'}, "
            f"up to the bound for each person{'; left out: ' if lost else ''}{', '.join(lost)}"
        )


class ItemWords:
    """The two words of each item that is text, remembered; for a fixed vocabulary they are its number."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._numbers = None if names is None else {name: number for number, name in enumerate(names)}
        self._words: dict[str, bytes] = {}

    def __call__(self, items: Sequence[str]) -> Words:
        """n x 2; all ones for an item that is not in the vocabulary, or that not every party can read alike."""
        known = self._words if len(self._words) < _MOST_ITEMS else {}
        for item in items:
            if item not in known:
                known[item] = self._new(item)
        self._words = known
        return np.frombuffer(b"".join([known[item] for item in items]), dtype="<u8").reshape(-1, 2)

    def _new(self, item: str) -> bytes:
        try:
            text = canonical_text(item)
        except ValueError:
            return _NO_WORDS
        if self._numbers is None:
            return string_words(text) if text else _NO_WORDS
        number = self._numbers.get(text.decode())
        return _NO_WORDS if number is None else bytes(8) + number.to_bytes(8, "little")


class EventEncoder:
    """From batches with the columns person, group, item and amount to blocks of events.

    Args:
        key: Of the hash of persons.
        labels: The public groups; None if there is one group for all events.
        names: The names of a fixed vocabulary, in order; None where items are hashed, or are numbers.
        is_hashed: Whether items are text and the vocabulary open.
        left_out: Is told what is read and left out.
        watch: Sees, of each batch, the names of its groups, their numbers (−1: not listed), and how many rows with a person each has.
    """

    def __init__(
        self,
        key: Words,
        labels: Sequence[str] | None,
        names: Sequence[str] | None,
        left_out: LeftOut,
        *,
        is_hashed: bool,
        watch: Watch | None = None,
    ) -> None:
        self._key = key
        self._labels = None if labels is None else pa.array(labels, pa.large_string())
        self._item_words = ItemWords(names)
        self._width = 2 if is_hashed else 1
        self._watch = watch
        self._lock = Lock()
        self._left_out = left_out

    def block(self, batch: pa.RecordBatch) -> Block | None:
        """The events of a batch that count; None if none does."""
        persons = _canonical_persons(_text(batch.column("person")))
        starts, data = _buffers(persons)
        usable = {"person": _valid(persons) & (np.diff(starts) > 0)}
        groups = np.empty(0, dtype=np.int32)
        if self._labels is not None:
            groups = self._groups(_text(batch.column("group")), usable["person"])
            usable["group"] = groups >= 0
        words, places, usable["item"] = self._items(batch.column("item"))
        amounts = _NONE
        if "amount" in batch.schema.names:
            amounts = batch.column("amount").cast(pa.int64()).fill_null(0).to_numpy()
            usable["weight"] = amounts != 0
        is_usable = np.ones(batch.num_rows, dtype=np.bool_)
        lost = {}
        for role, mask in usable.items():
            lost[role] = int(np.count_nonzero(is_usable & ~mask))
            is_usable &= mask
        with self._lock:
            self._left_out.rows += batch.num_rows
            for role, count in lost.items():
                setattr(self._left_out, role, getattr(self._left_out, role) + count)
        if not is_usable.any():
            return None
        columns = starts, data, words, places, amounts, groups, is_usable
        arrays = list[Any](cut_block(*columns, self._key, self._width))
        long_starts, part_starts = arrays.pop(), arrays.pop()
        return Block(Events._make(arrays), part_starts, long_starts)

    def _groups(self, column: pa.Array, has_person: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The number of each row's group; −1 if it is not listed."""
        coded = column.dictionary_encode()
        numbers = np.append(
            pc.index_in(coded.dictionary, self._labels).fill_null(-1).to_numpy(), np.int32(-1)
        )
        places = coded.indices.fill_null(len(numbers) - 1).to_numpy()
        if self._watch is not None:
            counts = np.bincount(places[has_person], minlength=len(numbers))
            with self._lock:
                self._watch([*coded.dictionary.to_pylist(), ""], numbers, counts)
        each: NDArray[np.int32] = numbers[places]
        return each

    def _items(self, column: pa.Array) -> tuple[Words, NDArray[np.int32], NDArray[np.bool_]]:
        """(words, places, usable): the words of the different items, and the place of each row's; no places for integers."""
        if not _is_text(column.type):
            numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
            words = np.zeros((len(numbers), 2), dtype=np.uint64)
            words[:, 1] = numbers.view(np.uint64)
            return words, np.empty(0, dtype=np.int32), _valid(column)
        coded = _text(column).dictionary_encode()
        words = self._item_words([*coded.dictionary.to_pylist(), ""])
        places = coded.indices.fill_null(len(words) - 1).to_numpy()
        return words, places, (words[:, 0] != np.uint64(2**64 - 1))[places]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text(column: pa.Array) -> pa.Array:
    """Text with 64-bit offsets; a column without any value has no type."""
    return column if pa.types.is_large_string(column.type) else column.cast(pa.large_string())


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _buffers(column: pa.Array) -> tuple[Int64s, NDArray[np.uint8]]:
    """(starts, bytes) of text, not copied."""
    _, starts, data = column.buffers()
    offsets = np.frombuffer(starts, dtype=np.int64, count=len(column) + 1, offset=8 * column.offset)
    texts = (
        np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.empty(0, dtype=np.uint8)
    )
    offsets.flags.writeable = texts.flags.writeable = False  # one type for the kernels
    return offsets, texts


def _canonical_persons(column: pa.Array) -> pa.Array:
    """Ids in the one spelling of each person."""
    is_unusual = unusual_ids(*_buffers(column))
    if not is_unusual.any():
        return column
    mask = pa.array(is_unusual)
    coded = column.filter(mask).dictionary_encode()
    spelled = pa.array([canonical_person(text) for text in coded.dictionary.to_pylist()], pa.large_string())
    return pc.replace_with_mask(column, mask, spelled.take(coded.indices))


@kernel
def unusual_ids(starts: Int64s, data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether an id may have another spelling: no ASCII, a blank at an end, or a number with decimals of zero."""
    is_unusual = np.zeros(len(starts) - 1, dtype=np.bool_)
    for row in range(len(is_unusual)):
        first, last = starts[row], starts[row + 1]
        if first == last:
            continue
        unusual = data[first] <= 32 or data[last - 1] <= 32
        points = 0
        for place in range(first, last):
            unusual |= data[place] >= 128
            points += data[place] == 46
        is_unusual[row] = unusual or (points == 1 and (data[last - 1] == 48 or data[last - 1] == 46))
    return is_unusual


@kernel
def cut_block(  # noqa: C901, PLR0913, PLR0917  # the columns of a batch
    starts: Int64s,
    data: NDArray[np.uint8],
    words: Words,
    places: NDArray[np.int32],
    amounts: Int64s,
    groups: NDArray[np.int32],
    is_usable: NDArray[np.bool_],
    key: Words,
    width: int,
) -> tuple[Words, Words, Int64s, Int64s, NDArray[np.int32], NDArray[np.uint8], Int64s, Int64s]:
    """The arrays of `Events` of the usable rows in the order of their parts, and where each part begins, there and in the long ids."""
    count = len(is_usable)
    part = np.empty(count, dtype=np.int16)
    packed = np.empty((count, 2), dtype=np.uint64)
    part_starts, long_starts = np.zeros(PARTS + 1, dtype=np.int64), np.zeros(PARTS + 1, dtype=np.int64)
    for row in range(count):
        if is_usable[row]:
            first, second = pack_person(data, starts[row], starts[row + 1], key)
            packed[row, 0], packed[row, 1] = first, second
            number = int(person_mix(first, second, key) >> PART_SHIFT)
            part[row] = number
            part_starts[number + 1] += 1
            if second >= _LONG:
                long_starts[number + 1] += 4 + starts[row + 1] - starts[row]
    for number in range(PARTS):
        part_starts[number + 1] += part_starts[number]
        long_starts[number + 1] += long_starts[number]
    total = part_starts[PARTS]
    persons, items = np.empty((total, 2), dtype=np.uint64), np.empty((total, width), dtype=np.uint64)
    cut_amounts = np.empty(total if len(amounts) else 0, dtype=np.int64)
    cut_groups = np.empty(total if len(groups) else 0, dtype=np.int32)
    long_ids = np.empty(long_starts[PARTS], dtype=np.uint8)
    following, following_long = part_starts[:PARTS].copy(), long_starts[:PARTS].copy()
    for row in range(count):
        if not is_usable[row]:
            continue
        number = part[row]
        target = following[number]
        following[number] += 1
        persons[target, 0], persons[target, 1] = packed[row, 0], packed[row, 1]
        if packed[row, 1] >= _LONG:
            place = following_long[number]
            persons[target, 1] |= np.uint64(place)
            length = starts[row + 1] - starts[row]
            for step in range(4):
                long_ids[place + step] = np.uint8((length >> (8 * step)) & 255)
            for step in range(length):
                long_ids[place + 4 + step] = data[starts[row] + step]
            following_long[number] += 4 + length
        item = places[row] if len(places) else row
        items[target, width - 1] = words[item, 1]
        if width == 2:
            items[target, 0] = words[item, 0]
        if len(amounts):
            cut_amounts[target] = amounts[row]
        if len(groups):
            cut_groups[target] = groups[row]
    times = np.empty(0, dtype=np.int64)
    return persons, items, cut_amounts, times, cut_groups, long_ids, part_starts, long_starts
