"""A folder of sketch files, and several files: the same rows as all of them one after the other."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.sketches import sketch_file, sketch_format
from sealed import write_sealed

TRANSFORM = al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="folder")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
OTHER = al.Protocol(TRANSFORM, epsilon=0.001)
WITH_TOTALS = al.Protocol(TRANSFORM, al.Arrays(total_share="0.5"), epsilon=1)
RNG = np.random.default_rng(5)


def released(rows, protocol=PROTOCOL, prefix="r"):
    data = RNG.integers(0, 50, (rows, 20))
    return al.release(protocol, data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(sketch_format, "_GROUP_ROWS", 7)


@pytest.fixture
def parts():
    return [
        released(10, prefix="a"),
        released(5, prefix="b"),
        released(20, prefix="c"),
        released(1, prefix="d"),
    ]


@pytest.fixture
def folder(parts, tmp_path, small_groups):  # noqa: ARG001  # files have several row groups
    """Four files of 10, 5, 20 and 1 rows, one of them deeper, beside what other tools leave behind."""
    top = tmp_path / "rows"
    (top / "b" / "deep").mkdir(parents=True)
    (top / "_temporary").mkdir()
    (top / ".hidden").mkdir()
    for name in ("_SUCCESS", ".part-9.parquet.crc", "_temporary/part", ".hidden/part"):
        (top / name).write_text("not ours")
    names = ("a.parquet", "b/deep/z.parquet", "b/y.parquet", "part-7")
    for part, name in zip(parts, names, strict=True):
        part.save(top / name)
    return top


def test_it_is_what_its_files_are(folder, parts):
    assert al.load(folder).equals(al.concat(parts))
    assert pyarrow.dataset.dataset(folder).count_rows() == 36  # others read it, too


def test_files_in_a_given_order(folder, parts):
    loaded = al.load([folder / "b", folder / "a.parquet", folder / "part-7"])
    assert loaded.equals(al.concat([parts[1], parts[2], parts[0], parts[3]]))


@pytest.mark.usefixtures("small_groups")
def test_different_protocols_types_and_totals_are_joined_as_concat_does(tmp_path):
    parts = [
        released(9),
        released(8, OTHER, "o"),
        released(3, WITH_TOTALS, "t"),
        0.5 * released(8),
        released(4) - released(4),
        al.sketch_in_clear(PROTOCOL, np.ones((2, 20), dtype=int)),
    ]
    for number, part in enumerate(parts):
        part.save(tmp_path / f"{number}.parquet")
    loaded = al.load(tmp_path)
    assert loaded.equals(al.concat(parts))
    assert loaded.releases == al.concat(parts).releases
    assert np.array_equal(al.load(tmp_path / "2.parquet").totals, parts[2].totals)


def test_files_without_rows_do_no_harm(folder, parts):
    parts[0].rows([]).save(folder / "none.parquet")
    assert al.load(folder).equals(al.concat(parts))
    assert len(al.load(folder / "none.parquet")) == 0


def test_a_file_without_row_groups_is_refused(folder):
    path = folder / "a.parquet"
    with pq.ParquetWriter(folder / "none.parquet", pq.read_schema(path)):
        pass
    with pytest.raises(CorruptFileError, match=r"none\.parquet is damaged"):
        al.load(folder)


def test_a_header_is_read_once(folder, monkeypatch):
    parsed = []
    checked = sketch_file.read_header
    monkeypatch.setattr(
        sketch_file,
        "read_header",
        lambda text, where, budget: parsed.append(where) or checked(text, where, budget),
    )
    al.load(folder)
    assert len(parsed) == 1


def test_one_space_for_all(folder):
    elsewhere = al.Protocol(al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="elsewhere"), epsilon=1)
    released(2, elsewhere).save(folder / "b" / "elsewhere.parquet")
    with pytest.raises(
        al.IncompatibleSketchesError, match=r"elsewhere\.parquet\) cannot be compared .* seed differs"
    ):
        al.load(folder)


def test_what_is_no_folder_of_sketch_files(folder, tmp_path):
    (tmp_path / "empty" / "_only").mkdir(parents=True)
    with pytest.raises(al.ParameterError, match="no sketch files in"):
        al.load(tmp_path / "empty")
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(CorruptFileError, match=r"notes\.txt .*not a sketch file"):
        al.load(folder)
    (folder / "notes.txt").unlink()
    os.mkfifo(folder / "pipe")  # which nobody may wait for
    with pytest.raises(FileNotFoundError, match="pipe"):
        al.load(folder)
    (folder / "pipe").unlink()
    (folder / "link").symlink_to(folder / "b")
    with pytest.raises(al.ParameterError, match="is a link"):
        al.load(folder)


def test_damage_is_found(folder):
    path = folder / "b" / "y.parquet"
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match=r"y\.parquet is damaged"):
        al.load(folder)


def test_hostile_columns_are_refused(folder):
    path = folder / "a.parquet"
    old = pq.read_table(path)
    long = pa.array(["x" * 5000] * 10)
    write_sealed(old.set_column(0, old.schema.field("label"), long), path)
    with pytest.raises(CorruptFileError, match="has labels"):
        al.load(folder)
