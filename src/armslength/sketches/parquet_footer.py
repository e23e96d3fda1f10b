"""Reads the footer and the page headers of a Parquet file without trusting them.

Arrow's own objects can crash the process on a crafted footer. Here every length is compared with the bytes that are there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from armslength.errors import ArmslengthError, CorruptFileError, OutOfMemoryError

I32, I64, BINARY = 5, 6, 8  # as the protocol numbers them
_BOOLEANS, _LISTS, _STRUCT = (1, 2), (9, 10), 12
_BITS = {4: 15, I32: 31, I64: 63}  # of integers, beside their sign
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}  # in bytes: booleans as fields, a byte, a double
_LONG_LIST = 15  # a length that stands by itself
_DEEPEST = 16  # structs and lists in each other; Parquet needs eight
_LARGEST_FIELD = 2**15 - 1
_MAGIC = b"PAR1"
_TAIL = 8  # the footer's length in four bytes, and the magic
_LARGEST_FOOTER, _MOST_ITEMS = 2**26, 2**21  # 10,000 row groups of sketches have these: 204 items each
_MOST_PAGES = 100_000  # of one column of one row group
_LARGEST_PAGE_HEADER = 2**16  # bytes
_MOST_ITEMS_OF_A_PAGE = 1000
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = range(4)
_DELTA_BYTE_ARRAY = 7  # one long string and many that repeat it: a page says nothing of what these unpack to

_COUNTS = {1: I32}
_PAGE = {1: I32, 2: I32, 3: I32, 5: {**_COUNTS, 2: I32}, 7: _COUNTS, 8: {**_COUNTS, 4: I32}}
_COLUMN = {1: BINARY, 3: {3: [BINARY], 5: I64, 6: I64, 7: I64, 9: I64, 11: I64}, 8: {}, 9: BINARY}
_ENCRYPTION = 8
_FOOTER = {3: I64, 4: [{1: [_COLUMN], 2: I64, 3: I64}], _ENCRYPTION: {}}
_ELSEWHERE_OR_ENCRYPTED = {1, 8, 9}  # fields of a column that we never have
# What reading a damaged file raises
_DAMAGE = (
    pa.ArrowException,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
)


class DamagedFileError(CorruptFileError):
    """What is wrong with a file, as the rest of a sentence that begins with its name."""


@contextmanager
def as_corrupt_file(path: str) -> Iterator[None]:
    """Turns what reading a damaged file raises into one clear line that names the file."""
    try:
        yield
    except DamagedFileError as problem:
        raise CorruptFileError(f"{path} {problem}", *problem.arguments) from None
    except ArmslengthError:
        raise
    except MemoryError:
        raise OutOfMemoryError(f"{path} does not fit into memory; take fewer rows at a time") from None
    except _DAMAGE:
        raise CorruptFileError(f"{path} is damaged, or not a sketch file of armslength") from None


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of one row group, as the footer has it; all numbers are at least 0."""

    path: tuple[bytes, ...]  # its name, and the names within it
    num_values: int  # missing ones and empty lists included
    unpacked: int  # bytes of its pages once they are unpacked
    packed: int  # bytes of its pages in the file
    start: int  # where its first page begins; its pages lie within the file, unless it has no value


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group, as the footer has it."""

    num_rows: int
    unpacked: int  # bytes of all columns once they are unpacked, the most that the footer announces anywhere
    columns: tuple[ColumnChunk, ...]


def read_row_groups(file: BinaryIO) -> tuple[RowGroup, ...]:
    """The row groups of a file that is open for reading, from its footer alone."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    body = size - _TAIL - length
    if tail[4:] != _MAGIC or not len(_MAGIC) <= body or length > _LARGEST_FOOTER:
        raise ValueError("length of the footer")
    file.seek(body)
    footer = CompactReader(file.read(length), _MOST_ITEMS).struct(_FOOTER)
    groups = tuple(_row_group(fields, body) for fields in footer[4])
    if _ENCRYPTION in footer or footer[3] != sum(group.num_rows for group in groups):
        raise ValueError("rows of the footer")
    return groups


def _row_group(fields: dict[int, Any], end: int) -> RowGroup:
    columns = tuple(_column(column, end) for column in fields[1])
    _check_counts(fields[2], fields[3])
    # What was never packed is as large as it is in the file, whatever it says.
    unpacked = sum(max(column.unpacked, column.packed) for column in columns)
    return RowGroup(fields[3], max(fields[2], unpacked), columns)


def _column(fields: dict[int, Any], end: int) -> ColumnChunk:
    if not _ELSEWHERE_OR_ENCRYPTED.isdisjoint(fields):
        raise ValueError("place of a column")
    metadata = fields[3]
    _check_counts(metadata[5], metadata[6], metadata[7])
    # The dictionary's page is the first, if there is one.
    start = min(metadata[9], metadata[11]) if metadata.get(11, 0) > 0 else metadata[9]
    # A column without values has no page, and writers put anything there.
    if metadata[5] and not len(_MAGIC) <= start <= start + metadata[7] <= end:
        raise ValueError("offsets of a column")
    return ColumnChunk(tuple(metadata[3]), metadata[5], metadata[6], metadata[7], start)


def unpacked_bytes(file: BinaryIO, column: ColumnChunk) -> int:
    """What the pages of a column unpack to, from their headers alone: their data is skipped.

    A reader allocates what a page's header says, and stops with an error if the page unpacks to more. So this is
    what unpacking takes at most, whatever the footer announces.
    """
    at, end = column.start, column.start + column.packed
    values_left, total = column.num_values, 0
    for _ in range(_MOST_PAGES):
        if values_left == 0:
            return total
        file.seek(at)
        reader = CompactReader(file.read(min(_LARGEST_PAGE_HEADER, end - at)), _MOST_ITEMS_OF_A_PAGE)
        page = reader.struct(_PAGE)
        _check_counts(page[2], page[3])
        values_left -= _value_count(page, column.num_values)
        at += reader.at + page[3]
        total += page[2]
        if values_left < 0 or at > end:
            raise ValueError("pages of a column")
    raise ValueError("number of pages")


def _value_count(page: dict[int, Any], num_values: int) -> int:
    """How many of its column's values a page has."""
    kind = page[1]
    if kind in {_DATA_PAGE, _DATA_PAGE_V2}:
        header = page[5] if kind == _DATA_PAGE else page[8]
        if header[2 if kind == _DATA_PAGE else 4] == _DELTA_BYTE_ARRAY:
            raise ValueError("encoding of a page")
        _check_counts(header[1])
        return int(header[1])
    if kind == _DICTIONARY_PAGE and not 0 <= page[7][1] <= num_values:  # a reader makes room for all of them
        raise ValueError("values of a dictionary")
    if kind not in {_DICTIONARY_PAGE, _INDEX_PAGE}:
        raise ValueError("kind of a page")
    return 0


def _check_counts(*counts: int) -> None:
    if min(counts) < 0:
        raise ValueError("negative count")


class CompactReader:
    """Reads structs of Thrift's compact protocol, in which Parquet writes its footer and page headers, one after the other.

    Fields that are not asked for are skipped. Whatever another reader could understand differently is refused: numbers outside
    of their type, fields that come twice, field numbers outside of 1 to 2^15 - 1. Raises ValueError for these, and IndexError
    where the bytes end.
    """

    def __init__(self, data: bytes, most_items: int) -> None:
        self.at = 0  # how many bytes have been read
        self._data = data
        self._items_left = most_items  # fields and elements of lists

    def struct(self, types: dict[int, Any], depth: int = 0) -> dict[int, Any]:
        """The fields of a struct that are there and in `types`, by their numbers.

        A type is I32, I64, BINARY, a dict for a struct of such fields, or a list with the one type of all elements.
        """
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._byte():
            step, kind = byte >> 4, byte & 15
            number = number + step if step else self._integer(2**15)
            if not 1 <= number <= _LARGEST_FIELD or number in fields:
                raise ValueError("number of a field")
            self._spend(1)
            value = self._value(kind, types.get(number), depth)
            if number in types:
                fields[number] = value
        return fields

    def _value(self, kind: int, expected: Any, depth: int) -> Any:
        """The value of a field, if it is of the expected type; None: of any, and nobody asks for it."""
        if kind in (_STRUCT, *_LISTS) and depth == _DEEPEST:
            raise ValueError("depth")
        if kind == _STRUCT and isinstance(expected, dict | None):
            return self.struct(expected or {}, depth + 1)
        if kind in _LISTS and isinstance(expected, list | None):
            byte = self._byte()
            inner, count = byte & 15, byte >> 4
            if count == _LONG_LIST:
                count = self._varint()
            self._spend(count)
            if expected is None and inner in _BOOLEANS:
                self.at += count
                return None
            element = expected[0] if expected else None
            return [self._value(inner, element, depth + 1) for _ in range(count)]
        if expected not in (None, kind) or kind not in (BINARY, *_BITS, *_SIZES):
            raise ValueError("type of a field")
        if kind in _BITS:
            return self._integer(2 ** _BITS[kind])
        size = self._varint() if kind == BINARY else _SIZES[kind]
        start, self.at = self.at, self.at + size
        return self._data[start : self.at]  # if it is cut off, so is the end of the struct

    def _integer(self, bound: int) -> int:
        """A signed number, if it is within ± the bound as its type is."""
        raw = self._varint()
        number = (raw >> 1) ^ -(raw & 1)
        if not -bound <= number < bound:
            raise ValueError("range of a number")
        return number

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) >= 0x80:  # another byte follows
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:  # more than ten bytes
                raise ValueError("length of a number")
        return number | byte << shift

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _spend(self, items: int) -> None:
        self._items_left -= items
        if self._items_left < 0:
            raise ValueError("number of fields")
