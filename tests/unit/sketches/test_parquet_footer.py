"""Footers and page headers of Parquet: as Arrow has them where they are sound, and refused where they are not."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armslength.errors import CorruptFileError
from armslength.sketches import parquet_footer
from armslength.sketches.parquet_footer import ColumnChunk, as_corrupt_file
from forged_parquet import column_of, field, forge, group_of, struct

I32, I64, STRUCT, BINARY = 5, 6, 12, 8
TABLE = pa.table(
    {
        "label": [f"{number % 50} " * 20 for number in range(1000)],
        "values": pa.array([[number] * 3 for number in range(1000)], pa.list_(pa.int64(), 3)),
        "clear": np.arange(1000) % 2 == 0,
    }
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.parquet"


def read_row_groups(file):
    with as_corrupt_file("file"):
        return parquet_footer.read_row_groups(file)


def unpacked_bytes(file, column):
    with as_corrupt_file("file"):
        return parquet_footer.unpacked_bytes(file, column)


def groups_of(path):
    with path.open("rb") as file:
        return read_row_groups(file)


def refused(path):
    with pytest.raises(CorruptFileError, match=r"^file is damaged"):
        groups_of(path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "use_dictionary": False, "write_statistics": False},
        {"compression": "none", "data_page_version": "2.0"},
        {"data_page_size": 64, "write_batch_size": 8, "row_group_size": 300, "data_page_version": "2.0"},
        {
            "write_page_index": True,
            "store_schema": False,
            "column_encoding": {"values.list.element": "DELTA_BINARY_PACKED"},
            "use_dictionary": ["label"],
        },
    ],
    ids=["plain", "zstd", "version 2", "small pages", "index"],
)
def test_it_says_what_arrow_says(options, path):
    pq.write_table(TABLE, path, **options)
    footer = pq.read_metadata(path)
    groups = groups_of(path)
    assert [group.num_rows for group in groups] == [
        footer.row_group(n).num_rows for n in range(footer.num_row_groups)
    ]
    for number, group in enumerate(groups):
        expected = footer.row_group(number)
        assert group.unpacked >= expected.total_byte_size
        assert len(group.columns) == expected.num_columns == 3
        for place, column in enumerate(group.columns):
            known = expected.column(place)
            assert b".".join(column.path).decode() == known.path_in_schema
            assert column.num_values == known.num_values
            assert (column.unpacked, column.packed) == (
                known.total_uncompressed_size,
                known.total_compressed_size,
            )
            assert column.start == (known.dictionary_page_offset or known.data_page_offset)
            with path.open("rb") as file:
                unpacked = unpacked_bytes(file, column)
            assert 0.1 * column.unpacked < unpacked <= column.unpacked  # which counts the headers too


def edits(number):
    """What is not a footer: each changes one field of a sound one."""
    return {
        "rows": lambda footer: field(footer, 3).__setitem__(2, number),
        "rows of a group": lambda footer: field(group_of(footer), 3).__setitem__(2, number),
        "size of a group": lambda footer: field(group_of(footer), 2).__setitem__(2, number),
        "values": lambda footer: field(column_of(footer, 1), 5).__setitem__(2, number),
        "unpacked": lambda footer: field(column_of(footer, 1), 6).__setitem__(2, number),
        "packed": lambda footer: field(column_of(footer, 1), 7).__setitem__(2, number),
        "offset": lambda footer: field(column_of(footer, 1), 9).__setitem__(2, number),
    }


@pytest.mark.parametrize("number", [-1, -(2**63)])
@pytest.mark.parametrize("what", list(edits(0)))
def test_negative_numbers_are_refused(what, number, path):
    pq.write_table(TABLE, path, use_dictionary=False)
    forge(path, lambda _footer: None)
    assert groups_of(path)[0].num_rows == 1000
    forge(path, edits(number)[what])
    refused(path)


def test_negative_rows_that_add_up_are_refused(path):
    pq.write_table(TABLE, path, row_group_size=500)

    def change(footer):
        field(group_of(footer, 0), 3)[2] = -1
        field(group_of(footer, 1), 3)[2] = 1001

    forge(path, change)
    refused(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: field(column_of(footer, 1), 9).__setitem__(2, 3),
        lambda footer: field(column_of(footer, 1), 9).__setitem__(2, 2**40),
        lambda footer: field(column_of(footer, 1), 7).__setitem__(2, 2**40),
        lambda footer: field(footer, 3).__setitem__(2, 999),
        lambda footer: footer.append([8, STRUCT, []]),
        lambda footer: field(group_of(footer), 1)[2][1][0].append([8, STRUCT, []]),
        lambda footer: field(group_of(footer), 1)[2][1][0].append([9, BINARY, b"x"]),
        lambda footer: field(group_of(footer), 1)[2][1][0].append([1, BINARY, b"/etc/passwd"]),
        lambda footer: footer.remove(field(footer, 4)),
        lambda footer: column_of(footer, 0).remove(field(column_of(footer, 0), 5)),
        lambda footer: group_of(footer).remove(field(group_of(footer), 1)),
    ],
)
def test_what_we_never_have_is_refused(change, path):
    pq.write_table(TABLE, path, use_dictionary=False)
    forge(path, change)
    refused(path)


def test_the_most_that_is_announced_counts(path):
    pq.write_table(TABLE, path, use_dictionary=False, compression="none")
    columns = groups_of(path)[0].columns
    announced = sum(column.unpacked for column in columns)

    def group_says(size):
        forge(path, lambda footer: field(group_of(footer), 2).__setitem__(2, size))
        return groups_of(path)[0].unpacked

    assert group_says(0) == announced
    assert group_says(announced + 1) == announced + 1
    forge(path, lambda footer: field(column_of(footer, 1), 6).__setitem__(2, 0))
    assert group_says(0) == announced  # it is as large in the file


def test_a_column_begins_with_the_first_of_its_pages(path):
    pq.write_table(TABLE, path, use_dictionary=False)
    start = groups_of(path)[0].columns[1].start
    for dictionary_start in (0, -5, start + 1, 2**40):
        forge(path, lambda footer, place=dictionary_start: column_of(footer, 1).append([11, I64, place]))
        assert groups_of(path)[0].columns[1].start == start
        forge(path, lambda footer: column_of(footer, 1).pop())
    forge(path, lambda footer: column_of(footer, 1).append([11, I64, start - 1]))
    assert groups_of(path)[0].columns[1].start == start - 1


def test_every_end_of_a_file_is_refused_or_read(path):
    pq.write_table(TABLE.slice(0, 2), path, store_schema=False)
    whole = path.read_bytes()
    for size in range(len(whole)):
        with pytest.raises(CorruptFileError):
            read_row_groups(io.BytesIO(whole[:size]))
    for tail in (b"PARE", b"PAR2"):
        with pytest.raises(CorruptFileError):
            read_row_groups(io.BytesIO(whole[:-4] + tail))
    for length in (len(whole) - 11, 2**31, 2**32 - 1):
        with pytest.raises(CorruptFileError):
            read_row_groups(io.BytesIO(whole[:-8] + length.to_bytes(4, "little") + b"PAR1"))


def test_a_footer_too_large_is_not_read(monkeypatch, path):
    pq.write_table(TABLE, path)
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    monkeypatch.setattr(parquet_footer, "_LARGEST_FOOTER", length)
    groups_of(path)
    monkeypatch.setattr(parquet_footer, "_LARGEST_FOOTER", length - 1)
    refused(path)


def test_damage_anywhere_in_a_footer_raises_one_kind_of_error(path):
    pq.write_table(TABLE.slice(0, 5), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    length = int.from_bytes(whole[-8:-4], "little")
    for place in rng.integers(len(whole) - 8 - length, len(whole), 1000):
        data = bytearray(whole)
        data[place] ^= int(rng.integers(1, 256))
        file = io.BytesIO(data)
        try:
            for group in read_row_groups(file):
                for column in group.columns:
                    unpacked_bytes(file, column)
        except CorruptFileError:
            pass


def data_page(values, unpacked=100, packed=10, encoding=0):
    return struct(
        [
            [1, I32, 0],
            [2, I32, unpacked],
            [3, I32, packed],
            [5, STRUCT, [[1, I32, values], [2, I32, encoding]]],
        ]
    )


def second_page(values, unpacked=100, packed=10, encoding=0):
    return struct(
        [
            [1, I32, 3],
            [2, I32, unpacked],
            [3, I32, packed],
            [8, STRUCT, [[1, I32, values], [4, I32, encoding]]],
        ]
    )


def dictionary(values, unpacked=100, packed=10):
    return struct(
        [[1, I32, 2], [2, I32, unpacked], [3, I32, packed], [7, STRUCT, [[1, I32, values], [2, I32, 0]]]]
    )


def index(unpacked=100, packed=10):
    return struct([[1, I32, 1], [2, I32, unpacked], [3, I32, packed], [6, STRUCT, []]])


def walked(*headers, values=10, short=0, data=10):
    pages = b"PAR1" + b"".join(header + bytes(data) for header in headers)
    column = ColumnChunk((b"x",), values, 0, len(pages) - 4 - short, 4)
    return unpacked_bytes(io.BytesIO(pages + b"what follows"), column)


def test_pages_are_added_up_until_the_values_are_there():
    assert walked(data_page(10)) == 100
    assert (
        walked(dictionary(10, 7), data_page(4, 2**31 - 1), index(5), second_page(6, 1))
        == 7 + 2**31 - 1 + 5 + 1
    )
    assert walked(data_page(10), data_page(10)) == 100  # a reader stops there
    assert walked(data_page(0, 1), data_page(10, 2)) == 3
    assert walked(values=0) == 0


@pytest.mark.parametrize(
    "pages",
    [
        [],
        [data_page(9)],
        [data_page(11)],
        [data_page(-1), data_page(11)],
        [second_page(-1), second_page(11)],
        [data_page(10, unpacked=-1)],
        [data_page(10, packed=-1)],
        [data_page(10, packed=11)],
        [data_page(10, encoding=7)],
        [second_page(10, encoding=7)],
        [dictionary(11), data_page(10)],
        [dictionary(-1), data_page(10)],
        [struct([[1, I32, 4], [2, I32, 1], [3, I32, 10]]), data_page(10)],
        [struct([[1, I32, 0], [2, I32, 1], [3, I32, 10]])],
        [struct([[2, I32, 1], [3, I32, 10], [5, STRUCT, [[1, I32, 10], [2, I32, 0]]]])],
        [b"\xff" * 40],
    ],
)
def test_pages_that_cannot_be_are_refused(pages):
    with pytest.raises(CorruptFileError, match=r"^file is damaged"):
        walked(*pages)


def test_pages_end_with_their_column():
    assert walked(data_page(10), short=0) == 100
    for short in (1, 10, 11, 20):
        with pytest.raises(CorruptFileError):
            walked(data_page(10), short=short)


def test_a_long_header_is_read_and_one_without_end_is_not():
    def page(size):
        return data_page(10)[:-1] + struct([[9, BINARY, b"x" * size]])

    assert walked(page(5000)) == 100
    with pytest.raises(CorruptFileError):
        walked(page(70_000))


def test_the_number_of_pages_is_bounded(monkeypatch):
    monkeypatch.setattr(parquet_footer, "_MOST_PAGES", 4)
    assert walked(*[data_page(0)] * 2, data_page(10)) == 300
    with pytest.raises(CorruptFileError):
        walked(*[data_page(0)] * 3, data_page(10))
