"""Thrift's compact protocol: what is wanted is kept, and whatever could be read differently is refused."""

import pytest

from armslength.sketches.parquet_footer import BINARY, I32, I64, CompactReader
from forged_parquet import struct, varint, zigzag

STRUCT, LIST, SET, DOUBLE, BYTE, TRUE, FALSE = 12, 9, 10, 7, 3, 1, 2


def read(data, wanted, most_items=1000):
    return CompactReader(data, most_items).struct(wanted)


def nested(levels):
    inner = []
    for _ in range(levels):
        inner = [[1, STRUCT, inner]]
    return struct(inner)


@pytest.mark.parametrize("number", [0, 1, -1, 63, -64, 64, 2**31 - 1, -(2**31)])
def test_integers(number):
    assert read(struct([[4, I32, number]]), {4: I32}) == {4: number}


@pytest.mark.parametrize(("kind", "bound"), [(I32, 2**31), (I64, 2**63)])
def test_integers_stay_within_their_type(kind, bound):
    assert read(struct([[1, kind, bound - 1], [2, kind, -bound]]), {1: kind, 2: kind}) == {
        1: bound - 1,
        2: -bound,
    }
    for outside in (bound, -bound - 1):
        with pytest.raises(ValueError, match="range"):
            read(struct([[1, kind, outside]]), {1: kind})


def test_what_is_not_wanted_is_passed_over():
    fields = [
        [1, TRUE, None],
        [2, FALSE, None],
        [3, BYTE, b"x"],
        [4, 4, -7],
        [5, I64, 2**60],
        [6, DOUBLE, b"12345678"],
        [7, BINARY, b"text" * 50],
        [8, LIST, (I32, list(range(20)))],
        [9, SET, (STRUCT, [[[1, I32, 5]], []])],
        [10, STRUCT, [[1, STRUCT, []], [2, LIST, (LIST, [(I32, [1]), (I32, [])])]]],
        [11, I32, 99],
    ]
    reader = CompactReader(struct(fields) + b"rest", 1000)
    assert reader.struct({11: I32}) == {11: 99}
    assert reader.at == len(struct(fields))
    booleans = bytes([0x19, 0x31, 1, 2, 1, 0x15, 4, 0])  # a list of three booleans, then the number 2
    assert read(booleans, {2: I32}) == {2: 2}


def test_structs_lists_and_texts():
    data = struct([[1, LIST, (STRUCT, [[[2, BINARY, b"a"]], [[2, BINARY, b""], [3, I32, 1]]])]])
    assert read(data, {1: [{2: BINARY}]}) == {1: [{2: b"a"}, {2: b""}]}
    assert read(struct([[1, LIST, (I32, list(range(40)))]]), {1: [I32]}) == {1: list(range(40))}


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (I64, 1, I32),
        (I32, 1, I64),
        (I32, 1, BINARY),
        (I32, 1, {}),
        (STRUCT, [], [I32]),
        (LIST, (I64, [1]), [I32]),
    ],
)
def test_another_type_than_wanted_is_refused(kind, value, wanted):
    with pytest.raises(ValueError, match="type"):
        read(struct([[1, kind, value]]), {1: wanted})


@pytest.mark.parametrize("kind", [0, 11, 13, 14, 15])
def test_types_that_parquet_does_not_have_are_refused(kind):
    for data in (bytes([0x10 | kind, 0, 0, 0]), bytes([0x19, 0x10 | kind, 0, 0])):
        with pytest.raises(ValueError, match="type"):
            read(data, {})


@pytest.mark.parametrize("number", [0, -1, 2**15, 2**16 + 4])
def test_numbers_of_fields_that_another_reader_takes_for_others_are_refused(number):
    with pytest.raises(ValueError, match=r"range|number of a field"):
        read(struct([[number, I32, 1]]), {4: I32})


def test_a_step_beyond_the_last_field_is_refused():
    with pytest.raises(ValueError, match="number of a field"):
        read(bytes([5]) + zigzag(2**15 - 1) + b"\2" + bytes([0x15, 2, 0]), {})


def test_a_wanted_field_comes_once():
    with pytest.raises(ValueError, match="number of a field"):
        read(struct([[1, I32, 1], [1, I32, 2]]), {1: I32})


def test_depth_is_bounded():
    assert read(nested(16), {}) == {}
    with pytest.raises(ValueError, match="depth"):
        read(nested(17), {})
    lists = b"\x19" + b"\x19" * 1000
    with pytest.raises(ValueError, match="depth"):
        read(lists, {})


def test_the_number_of_items_is_bounded():
    data = struct([[1, LIST, (I32, [0] * 7)], [2, I32, 1]])
    assert read(data, {}, most_items=9) == {}
    for wanted in ({}, {1: [I32]}):
        with pytest.raises(ValueError, match="number of fields"):
            read(data, wanted, most_items=8)
    with pytest.raises(ValueError, match="number of fields"):
        read(b"\x19\xf5" + varint(2**62), {1: [I32]})


def test_long_numbers_are_refused():
    assert read(b"\x15" + b"\x80" * 9 + b"\0\0", {1: I32}) == {1: 0}
    with pytest.raises(ValueError, match="length of a number"):
        read(b"\x15" + b"\x80" * 10 + b"\0\0", {1: I32})


@pytest.mark.parametrize("wanted", [{}, {1: BINARY, 2: I32, 3: {1: I64}, 4: [I32]}])
def test_every_cut_is_noticed(wanted):
    fields = [
        [1, BINARY, b"text"],
        [2, I32, 300],
        [3, STRUCT, [[1, I64, 9]]],
        [4, LIST, (I32, [1, 2])],
        [5, DOUBLE, b"8" * 8],
    ]
    data = struct(fields)
    read(data, wanted)
    for size in range(len(data)):
        with pytest.raises(IndexError):
            read(data[:size], wanted)
    with pytest.raises(IndexError):
        read(b"\x18" + varint(2**69) + b"\0", wanted)
