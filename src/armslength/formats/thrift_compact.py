"""Thrift's compact protocol, in which Parquet writes its footer and page headers: only what is asked for is kept.

A field is kept if it has the number and the type that were asked for; everything else is passed over without
making an object of it. Whatever another reader could understand differently is refused: numbers outside of their
type, fields that come twice, numbers of fields outside of 1 to 2^15 - 1.
"""

from typing import Any

I32, I64, BINARY = 5, 6, 8  # as the protocol numbers them
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _LISTS, _STRUCT = (1, 2), 3, (4, I32, I64), 7, (9, 10), 12
_LONG_LIST = 15  # a length that stands by itself
_DEEPEST = 16  # structs and lists in each other; Parquet needs eight
_LARGEST_FIELD = 2**15 - 1


class CompactReader:
    """Reads structs one after the other. Raises ValueError for what is odd, and IndexError where the bytes end.

    Attributes:
        at: How many bytes have been read.
    """

    def __init__(self, data: bytes, most_items: int) -> None:
        """Begins at the first byte.

        Args:
            data: What to read.
            most_items: How many fields and elements of lists there may be in all.
        """
        self.at = 0
        self._data = data
        self._items_left = most_items

    def struct(self, wanted: dict[int, Any], depth: int = 0) -> dict[int, Any]:
        """The wanted fields of a struct that are there, by their numbers.

        Args:
            wanted: For the number of a field its type: I32, I64, BINARY, a dict for a struct of such fields, or a
                list with the one type of all elements.
            depth: How many structs and lists it is within.
        """
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer(2**15)
            if not 1 <= number <= _LARGEST_FIELD or number in found:
                raise ValueError("number of a field")
            self._spend(1)
            if number in wanted:
                found[number] = self._value(kind, wanted[number], depth)
            else:
                self._pass_over(kind, depth)
        return found

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if isinstance(wanted, dict) and kind == _STRUCT:
            return self.struct(wanted, _deeper(depth))
        if isinstance(wanted, list) and kind in _LISTS:
            inner, count = self._list_head()
            return [self._value(inner, wanted[0], _deeper(depth)) for _ in range(count)]
        if kind != wanted:
            raise ValueError("type of a field")
        if kind == BINARY:
            length = self._varint()
            start, self.at = self.at, self.at + length
            return self._data[start : self.at]  # if it is cut off, so is the end of the struct
        return self._integer(2**31 if kind == I32 else 2**63)

    def _pass_over(self, kind: int, depth: int) -> None:
        if kind in _INTEGERS:
            self._varint()
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        elif kind == _STRUCT:
            self.struct({}, _deeper(depth))
        elif kind in _LISTS:
            inner, count = self._list_head()
            if inner in _BOOLEANS:
                self.at += count
            else:
                for _ in range(count):
                    self._pass_over(inner, _deeper(depth))
        elif kind in {_BYTE, _DOUBLE}:
            self.at += 1 if kind == _BYTE else 8
        elif kind not in _BOOLEANS:
            raise ValueError("type of a field")

    def _list_head(self) -> tuple[int, int]:
        """The type of the elements, and how many there are."""
        head = self._byte()
        count = head >> 4
        if count == _LONG_LIST:
            count = self._varint()
        self._spend(count)
        return head & 15, count

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


def _deeper(depth: int) -> int:
    if depth == _DEEPEST:
        raise ValueError("depth")
    return depth + 1
