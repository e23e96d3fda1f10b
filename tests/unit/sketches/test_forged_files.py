"""Sketch files whose footer was made to harm the reader: refused by one clear line, at no cost."""

import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError, OutOfMemoryError
from armslength.sketches.sketch_format import read_labels
from forged_parquet import column_of, field, forge, group_of
from sealed import write_sealed

PROTOCOL = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
I64, LIST, STRUCT = 6, 9, 12


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "forged.parquet"
    al.release(PROTOCOL, np.zeros((40, 6), dtype=int), ledger=al.NO_LEDGER).save(path)
    return path


OPENED = """
import os, sys
import armslength as al
from armslength.errors import CorruptFileError

try:
    al.load(sys.argv[1])
except CorruptFileError as problem:
    print(problem, flush=True)
os._exit(7)  # reading is what is tested, not how the threads of libraries end
"""


def test_a_histogram_of_the_wrong_length_does_not_end_the_process(path):
    """Arrow's metadata of the column aborts on it, which no handler in Python sees."""

    def change(footer):
        column = column_of(footer, 2)
        column[:] = [found for found in column if found[0] != 16]
        column.append([16, STRUCT, [[2, LIST, (I64, [1, 2, 3, 4])], [3, LIST, (I64, [1])]]])

    forge(path, change)
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, f"{done.returncode}: {done.stderr}"
    assert "forged.parquet is damaged" in done.stdout


def long_labels(path, length):
    table = pq.read_table(path)
    labels = pa.array([f"{row:03}" + "a" * length for row in range(40)])
    write_sealed(
        table.set_column(0, table.schema.field("label"), labels),
        path,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        data_page_size=1,
    )


def test_pages_that_unpack_to_more_than_announced_are_not_unpacked(path, monkeypatch):
    long_labels(path, 2**16)

    def change(footer):
        field(group_of(footer), 2)[2] = 1000
        for column in range(6):
            field(column_of(footer, column), 6)[2] = 1000

    forge(path, change)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    with pytest.raises(CorruptFileError, match="unpacks to more than its footer says"):
        al.load(path)


def test_columns_count_if_the_group_says_less(path):
    long_labels(path, 2**16)
    forge(path, lambda footer: field(group_of(footer), 2).__setitem__(2, 1000))
    with pytest.raises(CorruptFileError, match="more than 1000000 bytes"):
        al.load(path, limit=1_000_000)


def test_a_label_that_is_too_long_never_becomes_a_string():
    labels = MagicMock(wraps=pa.array(["a", "b" * 5000]))
    labels.offset = 0
    labels.__len__.return_value = 2
    column = SimpleNamespace(combine_chunks=lambda: SimpleNamespace(dictionary=labels))
    with pytest.raises(CorruptFileError, match="has labels"):
        read_labels(column)
    labels.to_pylist.assert_not_called()


def test_repeated_prefixes_are_refused(path):
    """A few bytes of such a page are any number of copies of one long label."""
    write_sealed(
        pq.read_table(path), path, use_dictionary=False, column_encoding={"label": "DELTA_BYTE_ARRAY"}
    )
    with pytest.raises(CorruptFileError, match="damaged"):
        al.load(path)


@pytest.mark.parametrize("column", [0, 2, 5])
def test_negative_counts_do_not_pay_for_others(column, path):
    def change(footer):
        field(footer, 3)[2] = field(group_of(footer), 3)[2] = 10**9
        field(column_of(footer, 1), 5)[2] = 8 * 10**9
        field(column_of(footer, column), 5)[2] = -(10**10)

    forge(path, change)
    with pytest.raises(CorruptFileError, match="damaged"):
        al.load(path)


def test_a_negative_size_does_not_pay_for_others(path):
    forge(path, lambda footer: field(group_of(footer), 2).__setitem__(2, -(10**12)))
    with pytest.raises(CorruptFileError, match="damaged"):
        al.load(path)


def test_memory_that_is_not_there_is_said_in_one_line(path, monkeypatch):
    def fail(*_arguments, **_named):
        raise MemoryError

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", fail)
    with pytest.raises(OutOfMemoryError, match="memory"):
        al.load(path)


@pytest.mark.parametrize("limit", ["x", None, 0, -1, 1e9, True, 2**61])
def test_a_limit_is_a_number_of_bytes(limit, path):
    with pytest.raises(al.ParameterError, match="limit must be an integer"):
        al.load(path, limit=limit)


def test_messages_stay_on_one_line_whatever_a_file_is_called(path):
    odd = path.rename(path.with_name("a\nb\x1b[31m.parquet"))
    assert len(al.load(odd)) == 40
    with pytest.raises(CorruptFileError, match=r"a\\nb.* more than 5 bytes"):
        al.load(odd, limit=5)
    odd.write_bytes(b"no sketches")
    with pytest.raises(CorruptFileError) as caught:
        al.load(odd)
    assert str(caught.value).isprintable()
    assert r"a\nb\x1b[31m.parquet is" in str(caught.value)
