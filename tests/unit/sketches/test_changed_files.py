"""A file that is not the one that was opened is refused, whatever is done to hide it."""

import os
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.sketches import sketch_file
from armslength.sketches.sketch_file import SketchFile, file_identity

PROTOCOL = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
MARKS = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.parquet"
    PROTOCOL.release(np.zeros((3, 6), dtype=int), ledger=al.NO_LEDGER).save(path)
    return path


def write_unseen(path):
    """Writes one byte again and puts the file's time back, once the clock that stamps files has gone on."""
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        with path.open("r+b") as file:
            file.write(b"PAR1")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


@pytest.mark.parametrize("read", [("sketches",), ("column", "label"), ("column", "in_clear")])
def test_a_file_whose_time_was_put_back_is_refused(read, path):
    file = SketchFile.open(path, 10**6)
    method, *name = read
    getattr(file, method)(*name, 0)
    write_unseen(path)
    with pytest.raises(al.CorruptFileError, match="must stay as it was"):
        getattr(file, method)(*name, 0)


@pytest.mark.parametrize("name", MARKS)
def test_everything_that_tells_files_apart_counts(name):
    known = dict.fromkeys(MARKS, 7)
    assert file_identity(SimpleNamespace(**known)) == file_identity(SimpleNamespace(**known))
    assert file_identity(SimpleNamespace(**known)) != file_identity(SimpleNamespace(**{**known, name: 8}))


def test_a_file_that_changes_while_it_is_read_is_refused(path, monkeypatch):
    file = SketchFile.open(path, 10**6)
    reading = pq.ParquetFile.read_row_group

    def read_and_change(*arguments, **named):
        table = reading(*arguments, **named)
        write_unseen(path)
        return table

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read_and_change)
    with pytest.raises(al.CorruptFileError, match="must stay as it was"):
        file.sketches(0)


@pytest.mark.parametrize("step", ["read_row_groups", "check_columns"])
def test_a_file_that_changes_while_it_is_opened_is_refused(step, path, monkeypatch):
    done = getattr(sketch_file, step)

    def change(*arguments):
        write_unseen(path)
        return done(*arguments)

    monkeypatch.setattr(sketch_file, step, change)
    with pytest.raises(al.CorruptFileError, match="must stay as it was"):
        SketchFile.open(path, 10**6)
