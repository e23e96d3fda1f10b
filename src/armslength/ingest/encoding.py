"""Batches of events, as the engine reads them, become numbers: ids in two words, hashed items, numbers of groups.

A row without a usable person, group, item or weight is left out, by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength._numba import Int64s, Words, kernel
from armslength.errors import plural
from armslength.ingest.batches import BYTES_AT_ONCE, as_mask
from armslength.ingest.contributions import (
    SHORT_ID,
    ItemList,
    PackedEvents,
    can_load,
    load_short,
    pack_person,
    person_mix,
    same_bytes,
    slot_of,
)
from armslength.ingest.event_columns import canonical_person, is_text
from armslength.ingest.partitions import PART_SHIFT, PARTS, Block
from armslength.randomness.hashing import string_words
from armslength.randomness.seeds import canonical_text

_MOST_ITEMS = 1 << 20  # whose words are remembered, while they fit memory
_NO_WORDS = b"\xff" * 16
_NO_TEXT = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")])
_LONG = np.uint64(255 << 56)
_0, _32 = np.uint64(0), np.uint64(32)
_NO_MARGINS: Words = np.empty(0, dtype=np.uint64)
_NO_ROWS: Words = np.empty((0, 2), dtype=np.uint64)


@dataclass
class LeftOut:
    """How many rows were read, and left out for lack of a usable role; **private**, for the data holder alone.

    Of records, each of a row's items is one.
    """

    rows: int = 0
    person: int = 0
    group: int = 0
    item: int = 0
    weight: int = 0
    noun: str = field(default="row", compare=False)

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
            f"PRIVATE, for you alone: of {plural(self.rows, self.noun)}, {left:,} {'counts' if left == 1 else 'count'}, "
            f"up to the bound for each person{'; left out: ' if lost else ''}{', '.join(lost)}"
        )


class Watch(Protocol):
    """Sees each batch; called by one thread at a time."""

    def groups(self, names: list[str], numbers: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        """The names of a batch's groups, their numbers (−1: not listed), and how many rows with a person each has."""

    def items(self, items: pa.Array, counts: pa.Array) -> None:
        """The different items of text of the rows that have a person and a listed group, and how many of these have each."""


class _KnownItems(NamedTuple):
    """Texts with their words, and a table to find them in."""

    texts: pa.Array
    words: Words  # n x 2; all ones for an item that cannot be used
    margins: Words  # the number of each item's group, if there are item groups
    is_usable: NDArray[np.bool_]
    list: (
        ItemList | None
    )  # of the same; None for texts of one batch, which are forgotten, so that events cannot refer to them
    packed: Words  # as ids of persons are
    slots: NDArray[np.int32]  # the numbers of texts; −1 if empty


class Items(NamedTuple):
    """The items of a batch: numbers in a list that all blocks share, or words."""

    numbers: Int64s  # of each row's item in the list; where there are words, of its item group
    list: ItemList | None
    words: Words  # of each row, where there is no list; else empty
    is_usable: NDArray[np.bool_]


class ItemWords:
    """The two words of each item that is text, remembered; for a fixed vocabulary the second one is its number.

    Guarantee: whole texts are compared, never their hashes alone.

    Args:
        key: Of the hash that says where to look.
        names: The names of a fixed vocabulary; None where items are hashed.
        margins: Gives the numbers of items' groups; None if there are none.
    """

    def __init__(
        self,
        key: Words,
        names: Sequence[str] | None,
        margins: Callable[[list[str]], NDArray[np.int32]] | None,
    ) -> None:
        self._margins = margins
        self._numbers = None if names is None else {name: number for number, name in enumerate(names)}
        self._key = key
        self._lock = Lock()
        self._known = self._extended(_NO_TEXT, None)

    def find(self, items: pa.Array) -> Items:
        """The items of rows of text."""
        known = self._known
        numbers = self._numbers_among(known, items)
        is_new = numbers < 0
        if is_new.any():
            with self._lock:  # others go on with what they have
                known = self._known  # with what was added meanwhile; numbers in the list stay as they are
                new = items.filter(as_mask(is_new))
                new = new.fill_null("") if new.null_count else new
                different = pc.unique(new)
                known = self._extended(
                    different.filter(as_mask(self._numbers_among(known, different) < 0)), known
                )
                if known.list is not None:
                    self._known = known
            numbers[is_new] = self._numbers_among(known, new)
        # nearly always only the empty text, which is the first, cannot be used
        is_usable = numbers != 0 if known.is_usable[1:].all() else known.is_usable[numbers]
        if known.list is not None:
            return Items(numbers.astype(np.int64), known.list, _NO_ROWS, is_usable)
        margins = known.margins[numbers] if len(known.margins) else np.zeros(len(numbers))
        return Items(margins.astype(np.int64), None, known.words[numbers], is_usable)

    def _numbers_among(self, known: _KnownItems, items: pa.Array) -> NDArray[np.int32]:
        return find_texts(*_buffers(items), *_buffers(known.texts), known.packed, known.slots, self._key)

    def _extended(self, different: pa.Array, known: _KnownItems | None) -> _KnownItems:
        """What is known, if anything, and these texts."""
        names = list(map(_item_name, different.to_pylist()))
        words = np.frombuffer(b"".join(map(self._words_of, names)), dtype="<u8").reshape(-1, 2)
        margins = _NO_MARGINS
        if self._margins is not None:
            margins = self._margins(names).astype(np.uint64)
        if known is not None:
            different = pa.concat_arrays([known.texts, different])
            words, margins = np.concatenate([known.words, words]), np.concatenate([known.margins, margins])
        items = None
        if len(words) <= _MOST_ITEMS and different.nbytes <= BYTES_AT_ONCE:
            items = ItemList() if known is None or known.list is None else known.list
            items.words, items.margins = words, margins
        is_usable = words[:, 0] != np.uint64(2**64 - 1)
        table = table_of_texts(*_buffers(different), self._key)
        return _KnownItems(different, words, margins, is_usable, items, *table)

    def _words_of(self, name: str) -> bytes:
        if not name:
            return _NO_WORDS
        if self._numbers is None:
            return string_words(name.encode())
        number = self._numbers.get(name)
        return _NO_WORDS if number is None else bytes(8) + number.to_bytes(8, "little")


def _item_name(text: str) -> str:
    """The one spelling of an item; empty if it is not usable."""
    try:
        return canonical_text(text).decode()
    except ValueError:
        return ""


@kernel
def table_of_texts(starts: Int64s, data: NDArray[np.uint8], key: Words) -> tuple[Words, NDArray[np.int32]]:
    """(packed, slots): the texts in two words each, and a hash table of their numbers."""
    count, size = len(starts) - 1, 16
    while 3 * size < 4 * count:
        size *= 2
    packed, slots = np.empty((count, 2), dtype=np.uint64), np.full(size, -1, dtype=np.int32)
    for number in range(count):
        first, second = pack_person(data, starts[number], starts[number + 1], key)
        packed[number, 0], packed[number, 1] = first, second
        slot = slot_of(first, second, key, size)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    return packed, slots


@kernel
def find_texts(
    starts: Int64s,
    data: NDArray[np.uint8],
    known_starts: Int64s,
    known_data: NDArray[np.uint8],
    packed: Words,
    slots: NDArray[np.int32],
    key: Words,
) -> NDArray[np.int32]:
    """The number of each text among the known ones; −1 for the others."""
    numbers = np.full(len(starts) - 1, -1, dtype=np.int32)
    for row in range(len(numbers)):
        start, length = starts[row], starts[row + 1] - starts[row]
        if can_load(data, start, length):
            first, second = load_short(data, start, length)
        else:
            first, second = pack_person(data, start, start + length, key)
        slot = slot_of(first, second, key, len(slots))
        while slots[slot] >= 0:
            number = slots[slot]
            if packed[number, 0] == first and packed[number, 1] == second:
                known, known_length = known_starts[number], known_starts[number + 1] - known_starts[number]
                if length == known_length and (
                    length <= SHORT_ID or same_bytes(data, start, known_data, known, length)
                ):
                    numbers[row] = number
                    break
            slot = (slot + 1) & (len(slots) - 1)
    return numbers


class EventEncoder:
    """From batches with the columns person, group, item and amount to blocks of events.

    Args:
        key: Of the hash of persons.
        labels: The public groups; None if there is one group for all events.
        item_words: Finds items that are text.
        left_out: Is told what is read and left out.
        watch: Sees the groups and items of each batch.
    """

    def __init__(
        self,
        key: Words,
        labels: Sequence[str] | None,
        item_words: ItemWords,
        left_out: LeftOut,
        watch: Watch | None = None,
    ) -> None:
        self._key = key
        self._labels = None if labels is None else {label: number for number, label in enumerate(labels)}
        self._item_words = item_words
        self._watch = watch
        self._lock = Lock()
        self._left_out = left_out

    def block(self, batch: pa.RecordBatch) -> Block | None:
        """The events of a batch that count; None if none does."""
        persons = _canonical_persons(_text(batch.column("person")))
        starts, data = _buffers(persons)
        usable = {"person": _is_valid(persons) & (np.diff(starts) > 0)}
        groups = np.empty(0, dtype=np.int32)
        if self._labels is not None:
            groups = self._groups(batch.column("group"), usable["person"])
            usable["group"] = groups >= 0
        if self._watch is not None and is_text(batch.column("item").type):
            in_group = np.logical_and.reduce(list(usable.values()))
            found = _text(batch.column("item")).filter(as_mask(in_group)).drop_null().value_counts()
            with self._lock:
                self._watch.items(found.field("values"), found.field("counts"))
        items = self._items(batch.column("item"))
        usable["item"], amounts = items.is_usable, np.empty(0, dtype=np.int64)
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
        columns = starts, data, items.numbers, items.words, amounts, groups, is_usable
        has_second, rows, long_ids, part_starts, long_starts = cut_block(*columns, self._key)
        listed = items.list or ItemList()
        events = PackedEvents(rows, long_ids, has_second, len(items.words) > 0, listed)
        return Block(events, part_starts, long_starts)

    def _groups(self, column: pa.Array, has_person: NDArray[np.bool_]) -> NDArray[np.int32]:
        """The number of each row's group; −1 if it is not listed."""
        coded = column if pa.types.is_dictionary(column.type) else _text(column).dictionary_encode()
        names = [*coded.dictionary.to_pylist(), ""]
        numbers = np.array([(self._labels or {}).get(name, -1) for name in names], dtype=np.int32)
        indices = coded.indices
        indices = (indices.fill_null(len(numbers) - 1) if indices.null_count else indices).to_numpy()
        if self._watch is not None:
            counts = np.bincount(indices[has_person], minlength=len(numbers))
            with self._lock:
                self._watch.groups(names, numbers, counts)
        row_numbers: NDArray[np.int32] = numbers[indices]
        return row_numbers

    def _items(self, column: pa.Array) -> Items:
        """The items of a batch; integers are their own numbers, if they are small."""
        if is_text(column.type):
            items = self._item_words.find(_text(column))
            return items._replace(is_usable=items.is_usable & _is_valid(column))
        numbers, words = column.cast(pa.int64()).fill_null(0).to_numpy(), _NO_ROWS
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 2**32:
            words = np.zeros((len(numbers), 2), dtype=np.uint64)
            words[:, 1] = numbers.view(np.uint64)
            numbers = np.zeros(len(words), dtype=np.int64)
        return Items(numbers, None, words, _is_valid(column))


def _text(column: pa.Array) -> pa.Array:
    """Text with 64-bit offsets; a column without any value has no type."""
    return column if pa.types.is_large_string(column.type) else column.cast(pa.large_string())


def _is_valid(column: pa.Array) -> NDArray[np.bool_]:
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
    mask = as_mask(is_unusual)
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
        bits, points = np.uint8(0), 0
        for i in range(first, last):
            bits |= data[i]
            points += data[i] == 46
        end = data[last - 1]
        is_decimal = points == 1 and (end == 48 or end == 46)  # noqa: PLR1714  # a kernel
        is_unusual[row] = bits >= 128 or data[first] <= 32 or end <= 32 or is_decimal
    return is_unusual


@kernel
def cut_block(  # noqa: C901, PLR0912  # the columns of a batch
    starts: Int64s,
    data: NDArray[np.uint8],
    numbers: Int64s,
    words: Words,
    amounts: Int64s,
    groups: NDArray[np.int32],
    is_usable: NDArray[np.bool_],
    key: Words,
) -> tuple[bool, Words, NDArray[np.uint8], Int64s, Int64s]:
    """`PackedEvents` of the usable rows in the order of their parts, and where each part begins, there and in the long ids."""
    count = len(is_usable)
    part = np.empty(count, dtype=np.int16)
    packed = np.empty((count, 2), dtype=np.uint64)
    part_starts, long_starts = np.zeros(PARTS + 1, dtype=np.int64), np.zeros(PARTS + 1, dtype=np.int64)
    has_second = False
    for row in range(count):
        if is_usable[row]:
            if can_load(data, starts[row], starts[row + 1] - starts[row]):
                first, second = load_short(data, starts[row], starts[row + 1] - starts[row])
            else:
                first, second = pack_person(data, starts[row], starts[row + 1], key)
            packed[row, 0], packed[row, 1] = first, second
            has_second |= starts[row + 1] - starts[row] > 8
            number = np.int64(person_mix(first, second, key) >> PART_SHIFT)
            part[row] = number
            part_starts[number + 1] += 1
            if second >= _LONG:
                long_starts[number + 1] += 4 + starts[row + 1] - starts[row]
    for i in range(PARTS):
        part_starts[i + 1] += part_starts[i]
        long_starts[i + 1] += long_starts[i]
    at = 2 if has_second else 1  # the word with number, group and length
    width = at + 1 + (2 if len(words) else 0) + (1 if len(amounts) else 0)
    events = np.empty((part_starts[PARTS], width), dtype=np.uint64)
    long_ids = np.empty(long_starts[PARTS], dtype=np.uint8)
    following, following_long = part_starts[:PARTS].copy(), long_starts[:PARTS].copy()
    for row in range(count):
        if not is_usable[row]:
            continue
        number = part[row]
        target = following[number]
        following[number] += 1
        events[target, 0] = packed[row, 0]
        last = packed[row, 1]
        if has_second:
            events[target, 1], last = last, _0
        if packed[row, 1] >= _LONG:
            position = following_long[number]
            events[target, 1] |= np.uint64(position)
            length = starts[row + 1] - starts[row]
            for step in range(4):
                long_ids[position + step] = np.uint8((length >> (8 * step)) & 255)
            for step in range(length):
                long_ids[position + 4 + step] = data[starts[row] + step]
            following_long[number] += 4 + length
        group = np.uint64(groups[row]) if len(groups) else _0
        events[target, at] = last | (group << _32) | np.uint64(numbers[row])
        if len(words):
            events[target, at + 1], events[target, at + 2] = words[row, 0], words[row, 1]
        if len(amounts):
            events[target, width - 1] = np.uint64(amounts[row])
    return has_second, events, long_ids, part_starts, long_starts
