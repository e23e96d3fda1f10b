"""What the footer of a sketch file announces is held against itself before anything is unpacked."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.protocol.file_columns import sketches_of
from armslength.protocol.file_layout import Head, check_size
from armslength.protocol.sketch_file import SketchFile

PROTOCOL = al.Protocol(al.SparseJL(6, 8, 2, "x"), 1)


def footer(*groups):
    """Row groups of (rows, values, terms, bytes) with the columns of a sketch file."""
    made = [
        SimpleNamespace(
            num_rows=rows,
            num_columns=7,
            total_byte_size=size,
            column=[
                SimpleNamespace(num_values=n) for n in (rows, values, *[terms] * 3, rows, rows)
            ].__getitem__,
        )
        for rows, values, terms, size in groups
    ]
    return SimpleNamespace(row_group=made.__getitem__)


def check(*groups, limit):
    check_size(footer(*groups), range(len(groups)), 4, limit, "file")


@pytest.mark.parametrize("group", [(10, 41, 10, 0), (2**40, 40, 10, 0), (-1, -4, 10, 0)])
def test_rows_are_as_many_as_their_values(group):
    with pytest.raises(al.CorruptFileError, match="4 values in each row"):
        check(group, limit=2**60)


def test_numbers_count_sixteen_bytes_each():
    entries = 10 + 40 + 30 + 20
    check((10, 40, 10, 0), limit=16 * entries)
    with pytest.raises(al.CorruptFileError, match="unpack"):
        check((10, 40, 10, 0), limit=16 * entries - 1)


def test_terms_count_as_objects_where_rows_were_combined():
    check((10, 40, 11, 0), limit=512 * 11)
    with pytest.raises(al.CorruptFileError, match="unpack"):
        check((10, 40, 11, 0), limit=512 * 11 - 1)


def test_all_groups_count_together():
    check((10, 40, 10, 3000), limit=5000)
    with pytest.raises(al.CorruptFileError, match="unpack"):
        check((10, 40, 10, 3000), (10, 40, 10, 3000), limit=5000)


def test_a_part_of_a_table_is_read_as_such(tmp_path):
    sketches = PROTOCOL.release(np.arange(30).reshape(5, 6), ledger=al.NO_LEDGER)
    for each in (sketches, 2 * sketches):
        each.save(tmp_path / "all.parquet")
        table = pq.read_table(tmp_path / "all.parquet", read_dictionary=["label"])
        found = sketches_of(table.slice(2, 2), Head(0, (PROTOCOL,)), 10**6, "file")
        assert np.array_equal(found.values, each.values[2:4])
        assert (found.labels, found.provenance) == (each.labels[2:4], each.provenance[2:4])


def test_objects_of_rows_that_were_changed_count_against_the_limit(tmp_path):
    path = tmp_path / "many.parquet"
    many = PROTOCOL.release(np.zeros((2000, 6), dtype=int), ledger=al.NO_LEDGER)
    many.save(path)
    assert al.load(path, limit=500_000).released is not None
    (2 * many).save(path)
    with pytest.raises(al.CorruptFileError, match="unpack to at most 500000"):
        al.load(path, limit=500_000)
    assert len(al.load(path, limit=2_000_000)) == 2000


def test_a_group_has_the_rows_that_its_footer_says(tmp_path):
    PROTOCOL.release(np.zeros((3, 6), dtype=int), ledger=al.NO_LEDGER).save(tmp_path / "three.parquet")
    file = SketchFile.open(tmp_path / "three.parquet", 10**6)
    assert len(file.sketches(0)) == 3
    with pytest.raises(al.CorruptFileError, match="as many rows as its footer says"):
        replace(file, group_rows=(4,)).sketches(0)
