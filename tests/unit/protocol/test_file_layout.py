"""What the footer of a sketch file announces is held against itself before anything is unpacked."""

from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.protocol.file_columns import sketches_of
from armslength.protocol.file_layout import Head, check_size


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
    protocol = al.Protocol(al.SparseJL(6, 8, 2, "x"), 1)
    sketches = protocol.release(np.arange(30).reshape(5, 6), ledger=al.NO_LEDGER)
    for each in (sketches, 2 * sketches):
        each.save(tmp_path / "all.parquet")
        table = pq.read_table(tmp_path / "all.parquet", read_dictionary=["label"])
        found = sketches_of(table.slice(2, 2), Head(0, (protocol,)), 10**6, "file")
        assert np.array_equal(found.values, each.values[2:4])
        assert (found.labels, found.provenance) == (each.labels[2:4], each.provenance[2:4])
