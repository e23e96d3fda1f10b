"""What the footer of a sketch file announces is held against itself before anything is unpacked."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.sketches.parquet_footer import ColumnChunk, RowGroup
from armslength.sketches.sketch_format import FileHeader, Layout, check_size, read_columns

PROTOCOL = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)


WITH_TOTALS = Layout(4, is_integer=True, has_totals=True)
NAMES = (b"label", b"values", b"noise", b"noise", b"noise", b"in_clear")


def group_of(rows, counts, size=0, names=NAMES):
    columns = [ColumnChunk((name,), count, 0, 0, 4) for name, count in zip(names, counts, strict=True)]
    return RowGroup(rows, size, tuple(columns))


def check(*groups, limit, width=4):
    """Row groups of (rows, values, terms, bytes) with the columns of a sketch file."""
    made = [
        group_of(rows, (rows, values, terms, terms, terms, rows), size)
        for rows, values, terms, size in groups
    ]
    check_size(made, Layout(width, is_integer=True), limit)


@pytest.mark.parametrize("group", [(10, 41, 10, 0), (2**40, 40, 10, 0)])
def test_rows_are_as_many_as_their_values(group):
    with pytest.raises(CorruptFileError, match="every column in each row"):
        check(group, limit=2**60)


@pytest.mark.parametrize(
    "counts",
    [
        (9, 40, 10, 10, 10, 10),
        (10, 40, 10, 10, 10, 11),
        (10, 40, 10, 10, 10, 0),
        (10, 40, 12, 11, 12, 10),
        (10, 40, 12, 12, 11, 10),
        (10, 40, 9, 9, 9, 10),
        (10, 40, -1, -1, -1, 10),
    ],
)
def test_every_column_is_in_each_row(counts):
    with pytest.raises(CorruptFileError, match="every column in each row"):
        check_size([group_of(10, counts)], Layout(4, is_integer=True), 2**60)


def test_columns_are_stored_in_their_order():
    counts = (10, 40, 10, 10, 10, 10)
    others = (*NAMES[:4], b"in_clear", b"noise")
    check_size([group_of(10, counts)], Layout(4, is_integer=True), 2**60)
    check_size([group_of(10, (*counts, 10), names=(*NAMES, b"total"))], WITH_TOTALS, 2**60)
    for group, totals in (
        (group_of(10, counts, names=others), False),
        (group_of(10, counts), True),
        (group_of(10, (*counts, 10), names=(*NAMES, b"total")), False),
        (group_of(10, counts[:5], names=NAMES[:5]), False),
        (RowGroup(10, 0, ()), False),
    ):
        with pytest.raises(CorruptFileError, match="columns of a sketch file"):
            check_size([group], WITH_TOTALS if totals else Layout(4, is_integer=True), 2**60)


def test_numbers_count_sixteen_bytes_each():
    entries = 10 + 400 + 30 + 10
    check((10, 400, 10, 0), limit=16 * entries, width=40)
    with pytest.raises(CorruptFileError, match="unpack"):
        check((10, 400, 10, 0), limit=16 * entries - 1, width=40)


def test_noises_count_more_than_other_numbers():
    check((10, 40, 1000, 0), limit=192 * 1000)
    with pytest.raises(CorruptFileError, match="unpack"):
        check((10, 40, 1000, 0), limit=192 * 1000 - 1)


def test_all_groups_count_together():
    check((10, 40, 10, 3000), limit=5000)
    with pytest.raises(CorruptFileError, match="unpack"):
        check((10, 40, 10, 3000), (10, 40, 10, 3000), limit=5000)


def test_a_part_of_a_table_is_read_as_such(tmp_path):
    sketches = al.release(PROTOCOL, np.arange(30).reshape(5, 6), ledger=al.NO_LEDGER)
    for each in (sketches, 2 * sketches):
        each.save(tmp_path / "all.parquet")
        table = pq.read_table(tmp_path / "all.parquet", read_dictionary=["label"])
        header = FileHeader(((PROTOCOL, "rows"),), (PROTOCOL,), {})
        columns = read_columns(table.slice(2, 2), header)
        assert al.Sketches(protocols=[PROTOCOL], **columns).equals(each[2:4])


def test_all_noises_of_sums_count_against_the_limit(tmp_path):
    path = tmp_path / "many.parquet"
    many, more = (al.release(PROTOCOL, np.zeros((2000, 6), dtype=int), ledger=al.NO_LEDGER) for _ in range(2))
    many.save(path)
    assert al.load(path, limit=500_000).equals(many)
    (many + more).save(path)
    with pytest.raises(CorruptFileError, match="more than 500000"):
        al.load(path, limit=500_000)
    assert len(al.load(path, limit=2_000_000)) == 2000


def test_a_group_has_the_rows_that_its_footer_says(tmp_path, monkeypatch):
    al.release(PROTOCOL, np.zeros((3, 6), dtype=int), ledger=al.NO_LEDGER).save(tmp_path / "three.parquet")
    reading = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda *group, **known: reading(*group, **known).slice(1)
    )
    with pytest.raises(CorruptFileError, match="as many rows as its footer says"):
        al.load(tmp_path / "three.parquet")
