"""Parquet files whose footer says something else: Thrift's compact protocol taken apart and put together again.

A struct is a list of [number, type, value]; a list is (type of the elements, elements). Written for tests alone.
"""

LISTS, STRUCT, BINARY, DOUBLE = (9, 10), 12, 8, 7


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number):
    return varint(2 * number if number >= 0 else -2 * number - 1)


def packed(kind, value):
    if kind in (1, 2):
        return b""
    if kind in LISTS:
        inner, items = value
        head = (
            bytes([len(items) << 4 | inner])
            if len(items) < 15
            else bytes([0xF0 | inner]) + varint(len(items))
        )
        return head + b"".join(packed(inner, item) for item in items)
    if kind == STRUCT:
        return struct(value)
    if kind == BINARY:
        return varint(len(value)) + value
    return value if kind in (3, DOUBLE) else zigzag(value)


def struct(fields):
    """The fields, each with its own number written out, which is as good as a step from the one before."""
    return (
        b"".join(bytes([kind]) + zigzag(number) + packed(kind, value) for number, kind, value in fields)
        + b"\0"
    )


class Parts:
    """Takes bytes apart."""

    def __init__(self, data):
        self.left = iter(data)

    def take(self, count):
        return bytes(next(self.left) for _ in range(count))

    def varint(self):
        number = shift = 0
        while (byte := next(self.left)) > 127:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def value(self, kind):
        if kind in LISTS:
            head = next(self.left)
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return head & 15, [self.value(head & 15) for _ in range(count)]
        if kind == STRUCT:
            return self.struct()
        if kind in (1, 2):
            return None
        if kind in (3, DOUBLE):
            return self.take(1 if kind == 3 else 8)
        number = self.varint()
        return self.take(number) if kind == BINARY else (number >> 1) ^ -(number & 1)

    def struct(self):
        fields, number = [], 0
        while head := next(self.left):
            step = head >> 4
            number = number + step if step else self.value(4)
            fields.append([number, head & 15, self.value(head & 15)])
        return fields


def field(fields, number):
    """The field of this number, to be changed in place."""
    return next(found for found in fields if found[0] == number)


def forge(path, change):
    """Writes the file again with its footer changed in place: change(footer) of its fields."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = Parts(data[-8 - length : -8]).struct()
    change(footer)
    new = struct(footer)
    path.write_bytes(data[: -8 - length] + new + len(new).to_bytes(4, "little") + b"PAR1")


def group_of(footer, number=0):
    """The fields of a row group."""
    return field(footer, 4)[2][1][number]


def column_of(footer, number, group=0):
    """The metadata of a column of a row group."""
    return field(field(group_of(footer, group), 1)[2][1][number], 3)[2]
