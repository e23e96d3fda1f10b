"""Texts that differ only in capital letters, zeros in front of numbers, punctuation or blanks: how many, and by which of these."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength._numba import Int64s, Words, kernel
from armslength.ingest.contributions import text_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIFFERENCES = ("capital letters", "zeros in front, such as 7 and 007", "punctuation or blanks")
TEXT_BYTES = 24  # of what is remembered of a text
_LEAST = 1000  # texts that are remembered, however little memory there is
_BITS = 21  # of a hash, for each difference
_MARK = np.uint8(1)  # in place of punctuation and blanks
_REMOVED, _AS_MARKS, _KEPT = range(3)
# Others, such as + and <, carry meaning.
_IS_SEPARATOR = np.zeros(256, dtype=np.bool_)
_IS_SEPARATOR[:33] = True
_IS_SEPARATOR[list(b"-_./\\:;,'\"`()[]{}|#*~!?&@")] = True

_Texts = tuple[Words, Words, Words]  # what `folded_hashes` gives


class SpellingCheck(NamedTuple):
    """How many names there are in several spellings."""

    several: int = 0  # names that have more than one spelling
    differences: dict[str, int] = {}  # how many of them have spellings that differ in this  # noqa: RUF012


class Spellings:
    """Collects texts, and finds those that would be one if they were written alike. Texts themselves are not kept.

    Two texts are one name if they are equal without capital letters and with a mark for each run of punctuation or blanks; and if one of
    them has none of these and the other is equal without its own. So 123 and 12-3 are one name, and 1-23 and 12-3 are two.

    Args:
        key: Of the hashes.
        most: How many texts may be remembered. Of more, a random half of the names is, as often as needed, and counts are estimates.
        are_ids: Whether the texts are ids, each given once: then zeros in front of a number do not matter. Of items they do, and so
            does punctuation in an item without letters, such as 1.5.
    """

    def __init__(self, key: Words, most: int, *, are_ids: bool) -> None:
        self._key, self._most, self._are_ids = key, max(most, _LEAST), are_ids
        self._parts: list[_Texts] = []
        self._size, self._halvings = 0, 0

    def add(self, texts: pa.Array) -> None:
        """Adds different texts."""
        texts = texts.cast(pa.large_string())
        raw = spaced = texts
        if not pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
            spaced = pc.replace_substring_regex(texts, r"[\p{Z}\p{P}]", "-")
            raw = pc.utf8_lower(texts)
        lower = pc.utf8_lower(spaced)
        forms = *_buffers(lower), *_buffers(spaced), *_buffers(lower if raw is spaced else raw)
        self._append(folded_hashes(*forms, self._key, self._are_ids))

    def check(self) -> SpellingCheck:
        """What was found."""
        shapes, plain, details = self._joined()
        has_marks = plain != 0
        keys = shapes.copy()
        unmarked = np.sort(shapes[~has_marks])
        is_written_without = np.zeros(len(shapes), dtype=np.bool_)
        is_written_without[has_marks] = _is_among(plain[has_marks], unmarked)
        keys[is_written_without] = plain[is_written_without]
        ordered = np.sort(keys)
        is_among = _is_among(keys, ordered[1:][ordered[1:] == ordered[:-1]])
        keys, details = keys[is_among], details[is_among]
        if not len(keys):
            return SpellingCheck()
        order = np.argsort(keys)
        keys, details = keys[order], details[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        counts = {}
        for place, name in enumerate(DIFFERENCES):
            part = details >> np.uint64(_BITS * place) & np.uint64((1 << _BITS) - 1)
            differs = np.minimum.reduceat(part, starts) != np.maximum.reduceat(part, starts)
            counts[name] = int(differs.sum()) << self._halvings
        differences = {name: count for name, count in counts.items() if count}
        return SpellingCheck(len(starts) << self._halvings, differences)

    def _append(self, part: _Texts) -> None:
        self._parts.append(self._chosen(part))
        self._size += len(self._parts[-1][0])
        if self._size > self._most:
            joined = self._joined()
            while 2 * len(joined[0]) > self._most:
                self._halvings += 1
                joined = self._chosen(joined)
            self._parts, self._size = [joined], len(joined[0])

    def _chosen(self, part: _Texts) -> _Texts:
        """What is remembered of these texts: by a hash without marks, so that all spellings of a name are, or none is."""
        if not self._halvings:
            return part
        shapes, plain, details = part
        is_chosen = np.where(plain != 0, plain, shapes) >> np.uint64(64 - self._halvings) == 0
        return shapes[is_chosen], plain[is_chosen], details[is_chosen]

    def _joined(self) -> _Texts:
        """All that is remembered, each text once."""
        if not self._parts:
            return np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint64)
        shapes, plain, details = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        if self._are_ids:
            return shapes, plain, details
        order = np.lexsort((details, shapes))
        shapes, plain, details = shapes[order], plain[order], details[order]
        is_first = np.append(True, (shapes[1:] != shapes[:-1]) | (details[1:] != details[:-1]))[: len(order)]
        return shapes[is_first], plain[is_first], details[is_first]


def _is_among(values: Words, ordered: Words) -> "NDArray[np.bool_]":
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    is_among: NDArray[np.bool_] = ordered[places] == values
    return is_among


def _buffers(texts: pa.Array) -> "tuple[Int64s, NDArray[np.uint8]]":
    _, starts, data = texts.buffers()
    offsets = np.frombuffer(starts, dtype=np.int64, count=len(texts) + 1, offset=8 * texts.offset)
    empty: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
    found = empty if data is None or not data.size else np.frombuffer(data, dtype=np.uint8)
    offsets.flags.writeable = found.flags.writeable = False  # one type for the kernel
    return offsets, found


@kernel
def _folded(
    data: "NDArray[np.uint8]",
    first: int,
    last: int,
    marks: int,
    drop_zeros: bool,
    target: "NDArray[np.uint8]",
) -> int:
    """Writes the text to `target`, and returns how long it is there."""
    size, is_after_separator = 0, False
    for place in range(first, last):
        byte = data[place]
        is_digit = 48 <= byte <= 57
        is_minus = byte == 45 and place == first and place + 1 < last and 48 <= data[place + 1] <= 57
        if marks != _KEPT and _IS_SEPARATOR[byte] and not is_minus:
            is_after_separator = size > 0
            continue
        if is_after_separator and marks == _AS_MARKS:
            target[size] = _MARK
            size += 1
        is_after_separator = False
        is_after_zero = is_digit and size > 0 and target[size - 1] == 48
        if drop_zeros and is_after_zero and (size == 1 or not 48 <= target[size - 2] <= 57):
            size -= 1
        target[size] = byte
        size += 1
    return size


@kernel
def _bytes_between(
    data: "NDArray[np.uint8]", first: int, last: int, low: int, high: int, target: "NDArray[np.uint8]"
) -> int:
    """The same for the letters or the digits of the text alone."""
    size = 0
    for place in range(first, last):
        if low <= data[place] <= high and not _IS_SEPARATOR[data[place]]:
            target[size] = data[place]
            size += 1
    return size


@kernel
def folded_hashes(
    starts: Int64s,
    data: "NDArray[np.uint8]",
    cased_starts: Int64s,
    cased: "NDArray[np.uint8]",
    raw_starts: Int64s,
    raw: "NDArray[np.uint8]",
    key: Words,
    are_ids: bool,
) -> tuple[Words, Words, Words]:
    """(shapes, plain, details): the hash with marks, that without (0 if there are no marks), and short hashes that differ with one difference each.

    The texts come without capital letters; with them; and without them, but with punctuation as it is.
    """
    count = len(starts) - 1
    shapes, plain = np.empty(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
    details = np.empty(count, dtype=np.uint64)
    largest = 1
    for row in range(count):
        largest = max(
            largest,
            starts[row + 1] - starts[row],
            cased_starts[row + 1] - cased_starts[row],
            raw_starts[row + 1] - raw_starts[row],
        )
    buffer = np.empty(largest, dtype=np.uint8)
    low = np.uint64((1 << _BITS) - 1)
    for row in range(count):
        first, last = starts[row], starts[row + 1]
        size = _folded(data, first, last, _AS_MARKS, are_ids, buffer)
        shapes[row] = text_hash(buffer, 0, size, key)
        has_marks, has_letters = False, False
        for place in range(size):
            has_marks |= buffer[place] == _MARK
            has_letters |= buffer[place] >= 65
        if has_marks and (are_ids or has_letters):
            size = _folded(data, first, last, _REMOVED, are_ids, buffer)
            plain[row] = text_hash(buffer, 0, size, key)
        size = _bytes_between(cased, cased_starts[row], cased_starts[row + 1], 65, 255, buffer)
        bits = text_hash(buffer, 0, size, key) & low
        size = _bytes_between(data, first, last, 48, 57, buffer)
        bits |= (text_hash(buffer, 0, size, key) & low) << np.uint64(_BITS)
        size = _folded(raw, raw_starts[row], raw_starts[row + 1], _KEPT, are_ids, buffer)
        bits |= (text_hash(buffer, 0, size, key) & low) << np.uint64(2 * _BITS)
        details[row] = bits
    return shapes, plain, details
