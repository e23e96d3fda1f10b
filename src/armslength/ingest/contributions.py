"""Contribution bounds: what one person adds to a release, over all of its groups and items.

Votes: each person has one, split evenly over all different items they have in one group. Amounts: all events of a person, by weight, count
at most C.

Guarantee: what is kept of a person's events is a function of that person's events and the release's key alone, with
Σ|amount| ≤ ⌊C/γ⌋ grid units, where C is 1 for votes. So adding or removing a person moves all rows together by at most that in ℓ1 norm, and
replacing one by at most twice that: the protocol's radius. Who is one person is decided by the whole id; hashes only say where to look.
Reference: docs/privacy.md, event tables; docs/reference/contributions.md, the specification that every engine follows.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength._numba import Floats, Int64s, Words, kernel, load_word
from armslength.errors import ParameterError
from armslength.protocol.neighbors import VOTE
from armslength.protocol.protocol import Protocol

if TYPE_CHECKING:
    from armslength.ingest.sums import VoteSums

KEY_BYTES = 32
SHORT_ID = 15  # bytes; longer ids lie apart
_State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_0, _1, _8 = np.uint64(0), np.uint64(1), np.uint64(8)
_13, _16, _17, _21, _32, _56, _64 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32, 56, 64))
_LONG = np.uint64(255)  # in place of the length
_HIGH, _LOW, _GROUP, _AMOUNT, _TIMES, _KEY = range(2, 8)  # columns of events
_LOW_24, _LOW_32, _LOW_56 = (np.uint64(2**bits - 1) for bits in (24, 32, 56))
_SORTED_BY_PAIRS = 64  # events of one person that are sorted by comparing all pairs
_LARGEST = np.int64(2**63 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_OCCURRENCES_AT_ONCE = 1 << 12  # events of one person that wait before those that cannot be kept are left out
_NO_BOUND = 2**63 - 1
_NO_AMOUNTS: Int64s = np.empty(0, dtype=np.int64)
_EVENT_END = np.uint64(40 << 56)  # five words were hashed


class Events(NamedTuple):
    """Events as rows of words, in any order: what belongs together lies together in memory.

    The columns are the two words of the person, as `pack_person` writes them; the high and the low word of the item (of an integer, 0 and
    the integer modulo 2^64); the number of the group, and from bit 32 on that of the item group; and as far as there are any: the amount, in grid units and not 0; how often the event
    occurs; its hash. Without them, amount and times are 1, and hashes are to be computed.
    """

    rows: Words  # n x 5 to n x 8
    long_ids: NDArray[np.uint8]  # the ids that are too long for two words

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.rows.shape[1])

    def chosen(self, rows: Int64s) -> "Events":
        """The events of these rows; long ids are shared."""
        return Events(self.rows[rows], self.long_ids)

    def unpack(self, target: Words, first_long: int) -> NDArray[np.uint8]:
        """Writes the rows, with 1 in columns that are not there, and returns their long ids, whose positions begin at `first_long`."""
        width = min(self.width, target.shape[1])
        target[:, :width], target[:, width:] = self.rows[:, :width], 1
        return move_long_ids(target, self.long_ids, 0, first_long)

    @classmethod
    def joined(cls, parts: "Sequence[Events | PackedEvents]", width: int = 0) -> "Events":
        """One copy of all parts, with as many columns as the widest has, or as many as that."""
        width = width or max(part.width for part in parts)
        rows = np.empty((sum(len(part.rows) for part in parts), width), dtype=np.uint64)
        long_ids, start, used = [np.empty(0, dtype=np.uint8)], 0, 0
        for part in parts:
            target = rows[start : start + len(part.rows)]
            start += len(target)
            long_ids.append(part.unpack(target, used))
            used += len(long_ids[-1])
        return cls(rows, np.concatenate(long_ids))


class ItemList:
    """All items that were numbered so far, in the order of their numbers; it only grows."""

    words: Words = np.empty((0, 2), dtype=np.uint64)
    margins: Words = np.empty(0, dtype=np.uint64)  # the number of each item's group, if there are item groups


class PackedEvents(NamedTuple):
    """Events in fewer words, to be stored; `Events.joined` unpacks them.

    The columns are the first word of the person; the second one, if any id has more than 8 bytes; then, from the lowest bit on, 32 bits
    with the number of the item (or of its group, if it has no number), 24 with the number of the group, and 8 with the length of the id, unless the second word has it;
    the high and the low word of the item, if it has no number; and the amount, unless all are 1.
    """

    rows: Words
    long_ids: NDArray[np.uint8]
    has_second: bool
    has_words: bool
    items: ItemList  # that the numbers belong to; empty for items that are numbers themselves
    first_long: int = 0  # the position of the first of the long ids, which other positions count from

    @property
    def width(self) -> int:
        """How many columns the events have when they are unpacked."""
        has_amounts = self.rows.shape[1] > 2 + self.has_second + 2 * self.has_words
        return _AMOUNT + int(has_amounts)

    def unpack(self, target: Words, first_long: int) -> NDArray[np.uint8]:
        """As that of `Events`."""
        unpack_rows(self.rows, self.has_second, self.has_words, self.items.words, self.items.margins, target)
        return move_long_ids(target, self.long_ids, self.first_long, first_long)


@dataclass(frozen=True)
class BoundedEvents:
    """What is kept of some persons' events, within everybody's bound; **not private**."""

    groups: NDArray[np.int32]
    items: Words  # n x 2: high and low word
    amounts: Int64s
    starts: Int64s  # each person's first event, and the number of all
    persons: Int64s  # the row of one of the person's events in the input
    totals: Floats  # what each person had before the bound: Σ|amount|, or different items
    margins: NDArray[np.int32]  # of votes: the number of each item's group
    is_sampled: NDArray[np.bool_]  # of votes: whether each person is among those of whom F is counted
    keys: Words  # of amounts: the hashes, where they were needed
    in_groups: Int64s | None = None  # in how many groups each person has events, where that is asked for
    ids: pa.Array | None = None  # of the persons, where they are asked for
    columns: NDArray[np.int32] | None = None  # where each item is added: see `sums.ItemColumns`
    votes: "VoteSums | None" = None  # what they add to Q and F
    margin_cells: tuple[NDArray[np.int32], NDArray[np.int32], Int64s] | None = None  # see `sums.margin_cells`


def person_rule(
    key: bytes, groups: Sequence[str], protocol: Protocol, *, is_bounded: bool = True
) -> "Votes | KeyedOrder":
    """What a release under this protocol keeps of each person; or, if it is not bounded, what each person has."""
    if protocol.votes:
        rule = Votes if is_bounded else CheckedVotes
        return rule(key, groups, protocol.spread_sample)
    if not isinstance(protocol.contribution, int):
        raise ParameterError(
            "person is for event tables, and the protocol is for arrays; make one with al.Votes or al.Counts",
            "person",
        )
    bound = math.floor(protocol.contribution / protocol.resolution)
    return KeyedOrder(key, groups, bound if is_bounded else _NO_BOUND)


class _Keyed:
    """Hashes of persons and groups under the key of a release.

    Args:
        key: Secret random bytes of this release.
        groups: The labels of all groups, in order.
    """

    def __init__(self, key: bytes, groups: Sequence[str]) -> None:
        digest = hashlib.blake2b(b"", digest_size=16, key=key, person=b"order").digest()
        self.key: Words = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
        labels = [np.frombuffer(label.encode(), dtype=np.uint8) for label in groups]
        hashes = [text_hash(label, 0, len(label), self.key) for label in labels]
        self._groups: Words = np.array(hashes, dtype=np.uint64)


class Votes(_Keyed):
    """One vote of each person, in one group: the first of theirs by a keyed hash of (person, group).

    A person's different items there have ⌊R/t⌋ grid units each, t being their number. Who has more than R of them has none.

    Args:
        key: Secret random bytes of this release.
        groups: The labels of all groups, in order.
        sample: The share of people of whom F is counted; a keyed hash of the person decides.
    """

    most_of_one = 2 * (VOTE + 1)  # events that may be held of one person, beyond the memory given

    def __init__(self, key: bytes, groups: Sequence[str], sample: Fraction) -> None:
        super().__init__(key, groups)
        self._sample = np.uint64(min(math.floor(sample * 2**64), 2**64 - 1))
        self._has_all = sample == 1

    def bounded(self, events: Events) -> BoundedEvents:
        """What is kept of the events; all events of a person must be among them."""
        kept = self._kept(events)
        sizes = np.diff(kept.starts)
        amounts = np.repeat(VOTE // np.maximum(sizes, 1), sizes)
        kept = replace(kept, amounts=amounts, totals=sizes.astype(np.float64))
        return kept if sizes.max(initial=0) <= VOTE else _without(kept, sizes > VOTE)

    def compact(self, events: Events) -> Events:
        """Fewer events, of which `bounded` keeps the same, also with other events: each item once, as many as decide."""
        kept = self._kept(events)
        result = Events.joined([events.chosen(np.repeat(kept.persons, np.diff(kept.starts)))], _AMOUNT)
        result.rows[:, _HIGH:_GROUP] = kept.items
        result.rows[:, _GROUP] = kept.groups | kept.margins.astype(np.int64) << 32
        return result

    def shortened(self, parts: Iterable[Events]) -> Events:
        """The same of several parts."""
        kept: Events | None = None
        for events in parts:
            kept = Votes.compact(self, events if kept is None else Events.joined([kept, events]))
        if kept is None:
            raise ValueError("there must be a part")
        return kept

    def _kept(self, events: Events) -> BoundedEvents:
        """Each person's different items in their one group, at most R + 1."""
        groups, items, starts, persons, margins, is_sampled = vote_events(
            *events, self.key, self._groups, VOTE + 1, self._sample, self._has_all
        )
        nothing = np.empty(0, dtype=np.uint64)
        return BoundedEvents(
            groups, items, _NO_AMOUNTS, starts, persons, np.empty(0), margins, is_sampled, nothing
        )


class CheckedVotes(Votes):
    """The same votes, and in how many groups each person has events: for a check, of which nothing is released.

    Of a person with more events than fit memory, it is those groups that are held at the end: at least one.
    """

    def bounded(self, events: Events) -> BoundedEvents:
        """What is kept of the events; all events of a person must be among them."""
        return replace(super().bounded(events), in_groups=groups_of_persons(*events, self.key))

    def compact(self, events: Events) -> Events:
        """Each event once, also those of other groups."""
        return _different(events, self.key)


def _different(events: Events, key: Words) -> Events:
    """Each event once, with how often it occurs."""
    rows, times = different_events(*events, key)
    different = Events.joined([events.chosen(rows)], _TIMES + 1)
    different.rows[:, _TIMES] = times
    return different


def _without(kept: BoundedEvents, is_left_out: NDArray[np.bool_]) -> BoundedEvents:
    """The events without those of some persons, who stay as persons without any."""
    sizes = np.diff(kept.starts)
    stays = np.repeat(~is_left_out, sizes)
    starts = np.concatenate([[0], np.cumsum(np.where(is_left_out, 0, sizes))])
    names = "groups", "items", "amounts", "margins"
    return replace(kept, starts=starts, **{name: getattr(kept, name)[stays] for name in names})


class KeyedOrder(_Keyed):
    """The order in which a person's events are kept, at most C of them by weight: by SipHash-2-4 of (person, group, item, occurrence number).

    Privacy does not depend on it; the key, drawn for each release, keeps anybody from arranging for their favorite events to come first.

    Args:
        key: Secret random bytes of this release.
        groups: The labels of all groups, in order.
        bound: The most that one person adds, in grid units.
    """

    most_of_one = 0

    def __init__(self, key: bytes, groups: Sequence[str], bound: int) -> None:
        super().__init__(key, groups)
        self.bound = bound

    def bounded(self, events: Events, *, in_order: bool = False) -> BoundedEvents:
        """What is kept of the events; all events of a person must be among them."""
        groups, items, amounts, starts, keys, totals, persons = bound_events(
            *events, self.key, self._groups, in_order, np.int64(self.bound)
        )
        none, no_margins = np.empty(0, dtype=np.bool_), np.empty(0, dtype=np.int32)
        return BoundedEvents(groups, items, amounts, starts, persons, totals, no_margins, none, keys)

    def compact(self, events: Events) -> Events:
        """Fewer events, of which `bounded` keeps the same, also with other events."""
        return _different(events, self.key)

    def shortened(self, parts: Iterable[Events]) -> Events:
        """Events of which `bounded` keeps the same as of all these parts; equal group and item of a person must be in one part.

        What a part does not keep by itself cannot be kept at all. Each event has its own hash from then on.
        """
        return Events.joined([self._kept(events) for events in parts])

    def _kept(self, events: Events) -> Events:
        """What is kept, as events with their hashes."""
        kept = self.bounded(events, in_order=True)
        result = Events.joined([events.chosen(np.repeat(kept.persons, np.diff(kept.starts)))], _KEY + 1)
        result.rows[:, _HIGH:_GROUP] = kept.items
        result.rows[:, _GROUP], result.rows[:, _TIMES], result.rows[:, _KEY] = kept.groups, 1, kept.keys
        result.rows[:, _AMOUNT] = kept.amounts.view(np.uint64)
        return result


def ids_of(events: Events, places: Int64s) -> pa.Array:
    """The ids of the persons of these events, as text."""
    starts, data = unpack_persons(*events, places)
    return pa.Array.from_buffers(
        pa.large_string(), len(places), [None, pa.py_buffer(starts), pa.py_buffer(data)]
    )


# SipHash-2-4 (Aumasson and Bernstein 2012).


@kernel
def _rotate(word: np.uint64, bits: np.uint64) -> np.uint64:
    return (word << bits) | (word >> (_64 - bits))


@kernel
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> _State:
    v0, v2 = v0 + v1, v2 + v3
    v1, v3 = _rotate(v1, _13) ^ v0, _rotate(v3, _16) ^ v2
    v0, v2 = _rotate(v0, _32) + v3, v2 + v1
    v1, v3 = _rotate(v1, _17) ^ v2, _rotate(v3, _21) ^ v0
    return v0, v1, _rotate(v2, _32), v3


@kernel
def _initial_state(key: Words) -> _State:
    return (
        key[0] ^ np.uint64(0x736F6D6570736575),
        key[1] ^ np.uint64(0x646F72616E646F6D),
        key[0] ^ np.uint64(0x6C7967656E657261),
        key[1] ^ np.uint64(0x7465646279746573),
    )


@kernel
def _absorb(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64) -> _State:
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@kernel
def _digest(state: _State, last: np.uint64) -> np.uint64:
    """The hash, after the word with the length in its highest byte."""
    v0, v1, v2, v3 = _absorb(*state, last)
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def _word(data: NDArray[np.uint8], first: Any, last: Any) -> np.uint64:
    """Up to 8 bytes as a number, the first one lowest."""
    if first + 8 <= len(data):
        missing = np.uint64(8 * (8 - (last - first)))
        return (load_word(data, first) << missing) >> missing if missing < _64 else _0
    word = _0
    for position in range(last - 1, first - 1, -1):
        word = (word << _8) | np.uint64(data[position])
    return word


@kernel
def text_hash(data: NDArray[np.uint8], first: int, last: int, key: Words) -> np.uint64:
    """SipHash-2-4 of some bytes."""
    state, position = _initial_state(key), first
    while position + 8 <= last:
        state = _absorb(*state, _word(data, position, position + 8))
        position += 8
    return _digest(state, _word(data, position, last) | (np.uint64(last - first) << _56))


# Persons. An id of up to 15 bytes lies in its two words, with its length in the highest byte. For a longer one that byte is 255, the
# other bits of that word are its position among the long ids (4 bytes of length, then the text), and the first word is its hash.


@kernel
def pack_person(data: NDArray[np.uint8], first: int, last: int, key: Words) -> tuple[np.uint64, np.uint64]:
    """The two words of an id; of a long one without its position.

    Where `can_load` holds, `load_short` gives the same: a call of this function takes thirty times as long, because it is never inlined.
    """
    length = last - first
    if length > SHORT_ID:
        return text_hash(data, first, last, key), _LONG << _56
    middle = min(first + 8, last)
    return _word(data, first, middle), _word(data, middle, last) | np.uint64(length) << _56


@kernel
def can_load(data: NDArray[np.uint8], first: int, length: int) -> bool:
    """Whether an id is short, and has so many bytes behind it that two whole words can be loaded."""
    return length <= SHORT_ID and first + 16 <= len(data)


@kernel
def load_short(data: NDArray[np.uint8], first: int, length: int) -> tuple[np.uint64, np.uint64]:
    """The two words of such an id."""
    word, end = load_word(data, first), np.uint64(length) << _56
    if length < 8:
        missing = np.uint64(64 - 8 * length)
        return (word << missing) >> missing if length else _0, end
    missing = np.uint64(128 - 8 * length)
    return word, ((load_word(data, first + 8) << missing) >> missing if length > 8 else _0) | end


@kernel
def person_hash(first: np.uint64, second: np.uint64, key: Words) -> np.uint64:
    """SipHash-2-4 of an id, from its two words."""
    length = second >> _56
    if length == _LONG:
        return first
    if length < _8:
        return _digest(_initial_state(key), first | second)
    return _digest(_absorb(*_initial_state(key), first), second)


@kernel
def person_mix(first: np.uint64, second: np.uint64, key: Words) -> np.uint64:
    """A keyed number whose high bits spread persons evenly: multiply-add, which is universal."""
    if second >> _56 == _LONG:
        second = _LONG
    mix: np.uint64 = first * (key[0] | _1) + second * (key[1] | _1)
    return mix


@kernel
def slot_of(first: np.uint64, second: np.uint64, key: Words, size: int) -> np.int64:
    """Where to look for an id first, in a table whose size is a power of two below 2^32."""
    mix = (person_mix(first, second, key) * _GOLDEN) >> _32
    return np.int64((mix * np.uint64(size)) >> _32)


@kernel
def long_length(long_ids: NDArray[np.uint8], position: np.int64) -> np.int64:
    """How many bytes the long id at a position has."""
    return np.int64(_word(long_ids, position, position + 4))


@kernel
def _same_person(rows: Words, long_ids: NDArray[np.uint8], a: int, b: int) -> bool:
    if rows[a, 0] != rows[b, 0]:
        return False
    if rows[a, 1] >> _56 != _LONG or rows[b, 1] >> _56 != _LONG:
        return rows[a, 1] == rows[b, 1]  # type: ignore[no-any-return]  # a bool
    position, other = np.int64(rows[a, 1] & _LOW_56), np.int64(rows[b, 1] & _LOW_56)
    length = long_length(long_ids, position)
    return long_length(long_ids, other) == length and same_bytes(
        long_ids, position + 4, long_ids, other + 4, length
    )


@kernel
def same_bytes(
    a: NDArray[np.uint8], start: np.int64, b: NDArray[np.uint8], other: np.int64, length: np.int64
) -> bool:
    """Whether so many bytes from a position on are equal."""
    for step in range(length):  # noqa: SIM110  # a kernel has no generators
        if a[start + step] != b[other + step]:
            return False
    return True


@kernel
def unpack_persons(
    rows: Words, long_ids: NDArray[np.uint8], places: Int64s
) -> tuple[Int64s, NDArray[np.uint8]]:
    """(starts, bytes) of the ids at these places."""
    starts = np.zeros(len(places) + 1, dtype=np.int64)
    for i in range(len(places)):
        second = rows[places[i], 1]
        length = np.int64(second >> _56)
        if second >> _56 == _LONG:
            length = long_length(long_ids, np.int64(second & _LOW_56))
        starts[i + 1] = starts[i] + length
    data = np.empty(starts[-1], dtype=np.uint8)
    for i in range(len(places)):
        first, second = rows[places[i], 0], rows[places[i], 1]
        position = np.int64(second & _LOW_56) + 4
        for step in range(starts[i + 1] - starts[i]):
            if second >> _56 == _LONG:
                data[starts[i] + step] = long_ids[position + step]
            else:
                word = first if step < 8 else second
                data[starts[i] + step] = np.uint8((word >> np.uint64(8 * (step % 8))) & np.uint64(255))
    return starts, data


@kernel
def move_long_ids(rows: Words, long_ids: NDArray[np.uint8], first_long: int, start: int) -> NDArray[np.uint8]:
    """A copy of the long ids of the rows, each as often as it occurs; the rows get their new positions, which count from `start`."""
    if not len(long_ids):
        return np.empty(0, dtype=np.uint8)
    size = np.int64(0)
    for row in range(len(rows)):
        if rows[row, 1] >> _56 == _LONG:
            size += 4 + long_length(long_ids, np.int64(rows[row, 1] & _LOW_56) - first_long)
    moved, used = np.empty(size, dtype=np.uint8), 0
    for row in range(len(rows)):
        if rows[row, 1] >> _56 == _LONG:
            position = np.int64(rows[row, 1] & _LOW_56) - first_long
            rows[row, 1] = (_LONG << _56) | np.uint64(start + used)
            for step in range(4 + long_length(long_ids, position)):
                moved[used] = long_ids[position + step]
                used += 1
    return moved


@kernel
def unpack_rows(
    rows: Words, has_second: bool, has_words: bool, items: Words, margins: Words, target: Words
) -> None:
    """The rows of `PackedEvents` as rows of `Events`; `items` and `margins` are those of the list that their items are in."""
    at = 2 if has_second else 1
    amounts_at = at + (3 if has_words else 1)
    for row in range(len(target)):
        rest = rows[row, at]
        number = np.int64(rest & _LOW_32)
        target[row, 0] = rows[row, 0]
        target[row, 1] = rows[row, 1] if has_second else (rest >> _56) << _56
        if has_words:
            target[row, _HIGH], target[row, _LOW] = rows[row, at + 1], rows[row, at + 2]
        elif len(items):
            target[row, _HIGH], target[row, _LOW] = items[number, 0], items[number, 1]
        else:
            target[row, _HIGH], target[row, _LOW] = _0, np.uint64(number)
        group = (rest >> _32) & _LOW_24
        if has_words:
            group |= rest << _32
        elif len(margins):
            group |= margins[number] << _32
        target[row, _GROUP] = group
        for column in range(_AMOUNT, target.shape[1]):
            target[row, column] = _1
        if amounts_at < rows.shape[1]:
            target[row, _AMOUNT] = rows[row, amounts_at]


@kernel
def _by_person(events: Words, long_ids: NDArray[np.uint8], key: Words) -> tuple[Int64s, NDArray[np.int32]]:
    """(starts, rows): person i has the rows rows[starts[i]:starts[i+1]]."""
    count, size = len(events), 4
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    number, firsts = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    starts = np.zeros(count + 1, dtype=np.int64)
    people = 0
    for row in range(count):
        number[row] = slot_of(events[row, 0], events[row, 1], key, size)
    for row in range(count):
        slot = np.int64(number[row])
        while slots[slot] >= 0:
            first = firsts[slots[slot]]
            # most are decided without a call
            if events[first, 0] == events[row, 0] and (
                events[first, 1] == events[row, 1] or _same_person(events, long_ids, first, row)
            ):
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot], firsts[people] = people, row
            people += 1
        number[row] = slots[slot]
        starts[number[row] + 1] += 1
    for person in range(people):
        starts[person + 1] += starts[person]
    following = starts[:people].copy()
    rows = np.empty(count, dtype=np.int32)
    for row in range(count):
        person = number[row]
        rows[following[person]] = row
        following[person] += 1
    return starts[: people + 1].copy(), rows


@kernel
def most_events_of_one_person(events: Words, long_ids: NDArray[np.uint8], key: Words) -> int:
    """The most events that one person has."""
    starts, _ = _by_person(events, long_ids, key)
    return np.diff(starts).max() if len(events) else 0


# One person's events. A column of `cells` is (group, high word, low word of the item, its item group).


@kernel
def _before(a: int, b: int, keys: Words, cells: Words, amounts: Int64s) -> bool:
    if keys[a] != keys[b]:
        return keys[a] < keys[b]  # type: ignore[no-any-return]  # a bool
    for place in range(3):
        if cells[place, a] != cells[place, b]:
            return cells[place, a] < cells[place, b]  # type: ignore[no-any-return]  # a bool
    return amounts[a] < amounts[b]  # type: ignore[no-any-return]  # a bool


@kernel
def sort_places(places: NDArray[np.int32], count: int, keys: Words, cells: Words, amounts: Int64s) -> None:
    """The numbers below `count`, sorted by key, cell and amount."""
    if count > _SORTED_BY_PAIRS:
        _sort_many(places, count, keys, cells, amounts)
        return
    # how many keys are smaller is counted by loops without a branch, which become vectors
    for place in range(count):
        key, rank = keys[place], 0
        for other in range(place):
            rank += keys[other] <= key
        for other in range(place + 1, count):
            rank += keys[other] < key
        places[rank] = place
    for end in range(1, count):
        if keys[places[end]] == keys[places[end - 1]]:
            moved, place = places[end], end
            while place > 0 and _before(moved, places[place - 1], keys, cells, amounts):
                places[place] = places[place - 1]
                place -= 1
            places[place] = moved


@kernel
def _sort_many(places: NDArray[np.int32], count: int, keys: Words, cells: Words, amounts: Int64s) -> None:
    """The same for any number: stable sorts by each, the one that decides last."""
    order = np.argsort(amounts[:count], kind="mergesort")
    for words in (cells[2], cells[1], cells[0], keys):
        order = order[np.argsort(words[:count][order], kind="mergesort")]
    places[:count] = order


@kernel
def _is_same_cell(a: int, b: int, cells: Words) -> bool:
    return cells[2, a] == cells[2, b] and cells[1, a] == cells[1, b] and cells[0, a] == cells[0, b]  # type: ignore[no-any-return]  # a bool


@kernel
def _saturated_sum(total: np.int64, amount: np.int64, times: np.int64) -> np.int64:
    """total + |amount|·times, at most the largest number."""
    magnitude = abs(amount)
    if magnitude < 0 or magnitude > (_LARGEST - total) // times:  # the smallest int64 has no magnitude
        return _LARGEST
    return total + magnitude * times


@kernel
def _doubled(array: Any) -> Any:
    """The array with as much space again."""
    return np.concatenate((array, np.empty_like(array)))


@kernel
def _cap(places: NDArray[np.int32], count: int, amounts: Int64s, bound: np.int64) -> int:
    """Truncates amounts where Σ|amount| reaches the bound, in the order of the places; how many are left."""
    left, kept = bound, 0
    while kept < count and left > 0:
        amount = amounts[places[kept]]
        magnitude = abs(amount)
        part = min(magnitude, left) if magnitude >= 0 else left
        left -= part
        amounts[places[kept]] = part if amount > 0 else -part
        kept += 1
    return kept


@kernel
def _event_hash(
    state_of_person: _State, group: np.uint64, high: np.uint64, low: np.uint64, occurrence: np.uint64
) -> np.uint64:
    """The hash of an event, after the person's; `group` is the hash of the group."""
    state = _absorb(*_absorb(*_absorb(*state_of_person, group), high), low)
    return _digest(_absorb(*state, occurrence), _EVENT_END)


@kernel
def hash_events(
    state_of_person: _State, groups: Words, high: Words, low: Words, keys: Words, count: int
) -> None:
    """`_event_hash` of so many events, with 0 for the occurrence; written out, because so it becomes a loop of vectors."""
    b0, b1, b2, b3 = state_of_person
    for place in range(count):
        v0, v1, v2, v3 = _absorb(b0, b1, b2, b3, groups[place])
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, high[place])
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, low[place])
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, _0)
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, _EVENT_END)
        v2 ^= np.uint64(0xFF)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        keys[place] = v0 ^ v1 ^ v2 ^ v3


@kernel
def _one_group(
    events: Words,
    rows: NDArray[np.int32],
    first: int,
    last: int,
    state_of_person: _State,
    group_hashes: Words,
) -> np.int64:
    """The one group in which a person votes: of those where they have events, the one with the smallest hash."""
    chosen = np.int64(events[rows[first], _GROUP] & _LOW_32)
    smallest, is_hashed = _0, False
    for place in range(first + 1, last):
        group = np.int64(events[rows[place], _GROUP] & _LOW_32)
        if group == chosen:
            continue
        if not is_hashed:
            smallest, is_hashed = _digest(_absorb(*state_of_person, group_hashes[chosen]), _16 << _56), True
        value = _digest(_absorb(*state_of_person, group_hashes[group]), _16 << _56)
        if value < smallest or (value == smallest and group < chosen):
            chosen, smallest = group, value
    return chosen


@kernel
def groups_of_persons(events: Words, long_ids: NDArray[np.uint8], key: Words) -> Int64s:
    """In how many different groups each person has events; persons are in the order of `vote_events`."""
    starts, rows = _by_person(events, long_ids, key)
    counts, largest = np.zeros(len(starts) - 1, dtype=np.int64), np.int64(-1)
    for row in range(len(events)):
        largest = max(largest, np.int64(events[row, _GROUP] & _LOW_32))
    last = np.full(largest + 1, -1, dtype=np.int64)  # the person who was seen last in each group
    for person in range(len(counts)):
        for place in range(starts[person], starts[person + 1]):
            group = np.int64(events[rows[place], _GROUP] & _LOW_32)
            if last[group] != person:
                last[group] = person
                counts[person] += 1
    return counts


@kernel
def vote_events(
    events: Words,
    long_ids: NDArray[np.uint8],
    key: Words,
    group_hashes: Words,
    most: int,
    sample: np.uint64,
    has_all: bool,
) -> tuple[NDArray[np.int32], Words, Int64s, Int64s, NDArray[np.int32], NDArray[np.bool_]]:
    """(groups, items, starts, persons, margins, is_sampled) of `BoundedEvents`: each person's different items in one group, at most so many."""
    starts, rows = _by_person(events, long_ids, key)
    people = len(starts) - 1
    kept, kept_starts = 0, np.zeros(people + 1, dtype=np.int64)
    kept_groups, kept_items = np.empty(len(events), np.int32), np.empty((len(events), 2), np.uint64)
    kept_margins = np.empty(len(events), np.int32)
    firsts, is_sampled = np.empty(people, dtype=np.int64), np.ones(people, dtype=np.bool_)
    largest = 1
    for person in range(people):
        largest = max(largest, starts[person + 1] - starts[person])
    keys, cells = np.empty(largest, np.uint64), np.zeros((4, largest), np.uint64)
    places, amounts = np.empty(largest, np.int32), np.ones(largest, dtype=np.int64)
    for person in range(people):
        first = rows[starts[person]]
        firsts[person] = first
        hashed = person_hash(events[first, 0], events[first, 1], key)
        state_of_person = _absorb(*_initial_state(key), hashed)
        if not has_all:
            is_sampled[person] = _digest(state_of_person, _8 << _56) < sample
        group = _one_group(events, rows, starts[person], starts[person + 1], state_of_person, group_hashes)
        count = 0
        for place in range(starts[person], starts[person + 1]):
            row = rows[place]
            if np.int64(events[row, _GROUP] & _LOW_32) != group:
                continue
            cells[1, count], cells[2, count] = events[row, _HIGH], events[row, _LOW]
            cells[3, count], keys[count] = events[row, _GROUP] >> _32, events[row, _LOW]
            places[count] = count
            count += 1
        sort_places(places, count, keys, cells, amounts)
        different = 0
        for place in range(count):
            event = places[place]
            before = places[place - 1]
            if place > 0 and keys[event] == keys[before] and _is_same_cell(event, before, cells):
                continue
            if different == most:
                break
            kept_groups[kept], kept_margins[kept] = group, cells[3, event]
            kept_items[kept, 0], kept_items[kept, 1] = cells[1, event], cells[2, event]
            different, kept = different + 1, kept + 1
        kept_starts[person + 1] = kept
    return (
        kept_groups[:kept].copy(),
        kept_items[:kept].copy(),
        kept_starts,
        firsts,
        kept_margins[:kept].copy(),
        is_sampled,
    )


@kernel
def bound_events(  # noqa: C901, PLR0912, PLR0915  # one loop over persons; each part is a rule of the specification
    events: Words,
    long_ids: NDArray[np.uint8],
    key: Words,
    group_hashes: Words,
    in_order: bool,
    bound: np.int64,
) -> tuple[NDArray[np.int32], Words, Int64s, Int64s, Words, Floats, Int64s]:
    """(groups, items, amounts, starts, keys, totals, persons) of `BoundedEvents`."""
    starts, rows = _by_person(events, long_ids, key)
    people, width = len(starts) - 1, events.shape[1]
    kept, kept_starts = 0, np.zeros(people + 1, dtype=np.int64)
    kept_groups, kept_items = np.empty(len(events), np.int32), np.empty((len(events), 2), np.uint64)
    kept_amounts, kept_keys = np.empty(len(events), np.int64), np.empty(len(events), np.uint64)
    totals, firsts = np.zeros(people), np.empty(people, dtype=np.int64)

    largest = 1
    for person in range(people):
        largest = max(largest, starts[person + 1] - starts[person])
    # one person's events, and below their occurrences as far as they may be kept
    keys, cells, places = (
        np.empty(largest, np.uint64),
        np.zeros((3, largest), np.uint64),
        np.empty(largest, np.int32),
    )
    hashes = np.empty(largest, np.uint64)  # of groups
    amounts, times = np.ones(largest, dtype=np.int64), np.ones(largest, dtype=np.int64)
    all_keys, all_cells = np.empty(0, np.uint64), np.empty((3, 0), np.uint64)
    all_amounts, all_places = np.empty(0, np.int64), np.empty(0, np.int32)

    for person in range(people):
        first = rows[starts[person]]
        firsts[person] = first
        state_of_person = _absorb(*_initial_state(key), person_hash(events[first, 0], events[first, 1], key))
        count, total = 0, np.int64(0)
        for place in range(starts[person], starts[person + 1]):
            row = rows[place]
            group = np.int64(events[row, _GROUP] & _LOW_32)
            cells[0, count] = group
            cells[1, count], cells[2, count] = events[row, _HIGH], events[row, _LOW]
            amounts[count] = np.int64(events[row, _AMOUNT]) if width > _AMOUNT else 1
            if width > _TIMES:
                times[count] = np.int64(events[row, _TIMES])
            keys[count] = events[row, _KEY] if width > _KEY else cells[2, count]
            hashes[count] = group_hashes[group]
            total = _saturated_sum(total, amounts[count], times[count])
            places[count] = count
            count += 1
        needs_hashes = in_order or total > bound
        if needs_hashes and width <= _KEY:
            hash_events(state_of_person, hashes, cells[1], cells[2], keys, count)
        if needs_hashes:
            sort_places(places, count, keys, cells, amounts)
        different, occurrences = 0, 0
        for place in range(count):
            event = places[place]
            is_again = place > 0 and _is_same_cell(event, places[different - 1], cells)
            places[different] = event
            different += 1
            occurrences += np.int64(is_again) + times[event] - 1
            totals[person] += abs(np.float64(amounts[event])) * times[event]
        if not needs_hashes or occurrences == 0 or width > _KEY:
            if needs_hashes:
                different = _cap(places, different, amounts, bound)
            else:
                for place in range(different):
                    amounts[places[place]] *= times[places[place]]
            order, chosen = places, different
            order_keys, order_cells, order_amounts = keys, cells, amounts
        else:
            chosen, occurrence = 0, _0
            space: Any = different + occurrences
            if bound < space // 2:
                space = min(space, _OCCURRENCES_AT_ONCE + 2 * bound)
            if space > len(all_keys):
                all_keys, all_cells = np.empty(space, np.uint64), np.empty((3, space), np.uint64)
                all_amounts, all_places = np.empty(space, np.int64), np.empty(space, np.int32)
            for place in range(different):
                event = places[place]
                if place == 0 or not _is_same_cell(event, places[place - 1], cells):
                    occurrence = _0
                for _ in range(times[event]):
                    if chosen == space:  # what is beyond the bound now is beyond it later
                        sort_places(all_places, chosen, all_keys, all_cells, all_amounts)
                        chosen = _cap(all_places, chosen, all_amounts, bound)
                        first_places = all_places[:chosen]
                        all_keys[:chosen] = all_keys[first_places]
                        all_cells[:, :chosen] = all_cells[:, first_places]
                        all_amounts[:chosen] = all_amounts[first_places]
                    hashed = hashes[event], cells[1, event], cells[2, event]
                    all_keys[chosen] = (
                        _event_hash(state_of_person, *hashed, occurrence) if occurrence > _0 else keys[event]
                    )
                    for part in range(3):
                        all_cells[part, chosen] = cells[part, event]
                    all_amounts[chosen] = amounts[event]
                    chosen, occurrence = chosen + 1, occurrence + _1
            sort_places(all_places, chosen, all_keys, all_cells, all_amounts)
            order, chosen = all_places, _cap(all_places, chosen, all_amounts, bound)
            order_keys, order_cells, order_amounts = all_keys, all_cells, all_amounts
        while kept + chosen > len(kept_amounts):  # some occur several times
            kept_groups, kept_items = _doubled(kept_groups), _doubled(kept_items)
            kept_amounts, kept_keys = _doubled(kept_amounts), _doubled(kept_keys)
        for place in range(chosen):
            event = order[place]
            kept_groups[kept] = order_cells[0, event]
            kept_items[kept, 0], kept_items[kept, 1] = order_cells[1, event], order_cells[2, event]
            kept_amounts[kept], kept_keys[kept] = order_amounts[event], order_keys[event]
            kept += 1
        kept_starts[person + 1] = kept
    return (
        kept_groups[:kept].copy(),
        kept_items[:kept].copy(),
        kept_amounts[:kept].copy(),
        kept_starts,
        kept_keys[:kept].copy(),
        totals,
        firsts,
    )


@kernel
def different_events(events: Words, long_ids: NDArray[np.uint8], key: Words) -> tuple[Int64s, Int64s]:
    """(rows, times): one row of each event that differs from the others, and how often it occurs."""
    starts, rows = _by_person(events, long_ids, key)
    chosen, counts, used = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64), 0
    for person in range(len(starts) - 1):
        count = starts[person + 1] - starts[person]
        keys, cells = np.empty(count, np.uint64), np.zeros((3, count), np.uint64)
        amounts, places = np.ones(count, np.int64), np.empty(count, np.int32)
        for place in range(count):
            row = rows[starts[person] + place]
            keys[place] = events[row, _LOW]
            cells[0, place], cells[1, place] = events[row, _GROUP], events[row, _HIGH]
            if events.shape[1] > _AMOUNT:
                amounts[place] = np.int64(events[row, _AMOUNT])
        sort_places(places, count, keys, cells, amounts)
        for place in range(count):
            row = rows[starts[person] + places[place]]
            if place == 0 or _before(places[place - 1], places[place], keys, cells, amounts):
                chosen[used], counts[used] = row, 0
                used += 1
            counts[used - 1] += np.int64(events[row, _TIMES]) if events.shape[1] > _TIMES else 1
    return chosen[:used].copy(), counts[:used].copy()
