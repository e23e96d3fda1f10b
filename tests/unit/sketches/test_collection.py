"""A folder of sketch files as one collection: the same rows as all files loaded, a block at a time."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.sketches import sketch_file, sketch_format
from armslength.sketches.sketch_file import Collection
from sealed import write_sealed

TRANSFORM = al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="collection")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
OTHER = al.Protocol(TRANSFORM, epsilon=0.001, dropped_bits=6)
WITH_TOTALS = al.Protocol(TRANSFORM, epsilon=1, total_share="0.5")
RNG = np.random.default_rng(5)


def released(rows, protocol=PROTOCOL, prefix="r"):
    data = RNG.integers(0, 50, (rows, 20))
    return protocol.release(data, labels=[f"{prefix}{row}" for row in range(rows)], ledger=al.NO_LEDGER)


def same(a, b):
    return a.equals(b) and (not len(a) or a.releases == b.releases)  # no rows, no noise that knows its source


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(sketch_format, "_GROUP_ROWS", 7)


@pytest.fixture
def folder(tmp_path, small_groups):  # noqa: ARG001  # files have several row groups
    """Four files of 10, 5, 20 and 1 rows, one of them deeper, beside what other tools leave behind."""
    top = tmp_path / "rows"
    (top / "b" / "deep").mkdir(parents=True)
    (top / "_temporary").mkdir()
    (top / ".hidden").mkdir()
    for name in ("_SUCCESS", ".part-9.parquet.crc", "_temporary/part", ".hidden/part"):
        (top / name).write_text("not ours")
    released(10, prefix="a").save(top / "a.parquet")
    released(5, prefix="b").save(top / "b" / "deep" / "z.parquet")
    released(20, prefix="c").save(top / "b" / "y.parquet")
    released(1, prefix="d").save(top / "part-7")
    return top


def paths(folder):
    return [folder / name for name in ("a.parquet", "b/deep/z.parquet", "b/y.parquet", "part-7")]


@pytest.fixture
def loaded(folder):
    return al.load(paths(folder))


def test_it_is_what_its_files_are(folder, loaded):
    collection = al.open_collection(folder)
    assert len(collection) == 36
    assert repr(collection) == "<Collection of 36 rows in 4 files, 8 coordinates, SparseJL>"
    assert collection.protocol == PROTOCOL
    assert collection.protocols == (PROTOCOL,)
    assert collection.space == PROTOCOL.space
    assert [file.path for file in collection.files] == list(map(str, paths(folder)))
    assert same(collection.to_sketches(), loaded)
    assert tuple(collection.each_label()) == loaded.labels
    assert collection.in_clear == (False,) * 36
    assert [row.labels for row in collection] == [(label,) for label in loaded.labels]


def test_it_is_a_data_set_for_others(folder):
    assert pyarrow.dataset.dataset(folder).count_rows() == 36


@pytest.mark.parametrize("rows", [1, 3, 7, 10, 35, 36, 1000])
@pytest.mark.parametrize("first", [0, 1, 10, 35, 36])
def test_blocks_have_so_many_rows_whatever_the_files_have(rows, first, folder, loaded):
    blocks = list(al.open_collection(folder).blocks(rows, first))
    expected = list(loaded.blocks(rows, first))
    assert [len(block) for block in blocks] == [len(block) for block in expected]
    assert all(same(block, other) for block, other in zip(blocks, expected, strict=True))
    assert all(block.noises.are_fresh for block in blocks)


def test_blocks_before_the_first_row_are_not_read(folder, monkeypatch):
    collection = al.open_collection(folder)
    read = []
    reading = sketch_file.SketchFile.sketches
    monkeypatch.setattr(
        sketch_file.SketchFile,
        "sketches",
        lambda file, group: read.append((os.path.basename(file.path), group)) or reading(file, group),  # noqa: PTH119  # a plain string
    )
    list(collection.blocks(100, 15))
    assert read == [("y.parquet", 0), ("y.parquet", 1), ("y.parquet", 2), ("part-7", 0)]
    read.clear()
    collection.rows([34, 16, 33, 16])
    assert read == [("y.parquet", 0), ("y.parquet", 2)]


@pytest.mark.parametrize("numbers", [[0], [35, 0, 12, 12, 9, 10], list(range(36)), [], np.array([3, 30])])
def test_rows_by_number(numbers, folder, loaded):
    assert same(al.open_collection(folder).rows(numbers), loaded.rows(list(numbers)))


@pytest.mark.parametrize(
    "chosen",
    [
        3,
        -1,
        np.int32(7),
        slice(5, 25, 3),
        slice(None, None, -7),
        [4, 30],
        [-36, 5, -1],
        [],
        "c3",
        np.arange(36) % 5 == 0,
    ],
    ids=str,
)
def test_items(chosen, folder, loaded):
    assert same(al.open_collection(folder)[chosen], loaded[chosen])


def test_rows_that_are_not_there(folder):
    collection = al.open_collection(folder)
    for bad in (
        36,
        -37,
        [3, -37],
        "nobody",
        [[1]],
        [[1], [2, 3]],
        1.5,
        [1.0],
        ["a"],
        None,
        [2**70],
        True,
        [True],
        2**70,
    ):
        with pytest.raises(al.ParameterError):
            collection[bad]
    for bad in ([36], [-1], [1.7], ["a"], [2**70], [None], 5):
        with pytest.raises(al.ParameterError, match="from 0 to 35"):
            collection.rows(bad)
    for bad in (0, 1.5, "many"):
        with pytest.raises(al.ParameterError, match="rows must be an integer"):
            collection.blocks(bad)


def test_an_item_of_very_many_rows_takes_no_room_for_all(folder):
    first, *others = al.open_collection(folder).files
    vast = [replace(file, group_rows=(2**40,)) for file in others]
    collection = Collection([first, *vast])
    assert len(collection) == first.rows + 3 * 2**40
    assert collection[3].labels == ("a3",)
    assert collection[-len(collection) + 3].labels == ("a3",)
    with pytest.raises(al.ParameterError, match="rows must fit into memory"):
        next(collection.blocks(2**40))


def test_labels_may_come_twice_and_are_left_out_together(folder, loaded):
    loaded.rows([8, 20, 35]).save(folder / "q.parquet")
    collection = al.open_collection(folder)
    both = al.concat([loaded, loaded.rows([8, 20, 35])])
    with pytest.raises(al.ParameterError, match="which 2 rows have"):
        collection["a8"]
    assert same(collection["a7"], loaded["a7"])
    assert same(collection[["c3", "a7"]], loaded[["c3", "a7"]])
    rest = collection.without("a8").without("c0").without("d0")
    kept = [row for row, label in enumerate(both.labels) if label not in {"a8", "c0", "d0"}]
    assert len(rest) == len(kept) == 39 - 5
    assert same(rest.to_sketches(), both.rows(kept))
    assert same(rest.rows([33, 8, 14]), both.rows(kept).rows([33, 8, 14]))
    assert tuple(rest.each_label()) == both.rows(kept).labels
    assert len(rest.in_clear) == 34
    assert len(collection) == 39


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
    collection = al.open_collection(tmp_path)
    whole = al.concat(parts)
    assert same(collection.to_sketches(), whole)
    assert same(al.concat(list(collection.blocks(5))), whole)
    assert collection.protocols == (PROTOCOL, OTHER, WITH_TOTALS)
    assert collection.in_clear == (False,) * 32 + (True,) * 2
    assert not collection.has_totals
    with pytest.raises(al.ParameterError, match=r"got 3; see \.protocols"):
        _ = collection.protocol
    second = al.open_collection([tmp_path / "0.parquet", tmp_path / "1.parquet"]).rows(range(9, 17))
    assert second.noises.are_fresh  # of the second of its protocols
    second.save(tmp_path / "again.parquet")
    assert same(al.load(tmp_path / "again.parquet"), second)
    only = al.open_collection(tmp_path / "2.parquet")
    assert only.has_totals
    assert np.array_equal(next(only.blocks(3)).totals, parts[2].totals)


def test_a_head_is_read_once(folder, monkeypatch):
    parsed = []
    checked = sketch_file.read_header
    monkeypatch.setattr(
        sketch_file,
        "read_header",
        lambda text, where, budget: parsed.append(where) or checked(text, where, budget),
    )
    al.open_collection(folder)
    assert len(parsed) == 1
    released(2, OTHER).save(folder / "o.parquet")
    al.open_collection(folder)
    assert len(parsed) == 3


def test_opening_reads_no_row(folder, monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    collection = al.open_collection(folder)
    assert len(collection) == 36


def test_one_space_for_all(folder):
    elsewhere = al.Protocol(al.SparseJL(input_dim=20, sketch_dim=8, sparsity=2, seed="elsewhere"), epsilon=1)
    released(2, elsewhere).save(folder / "b" / "elsewhere.parquet")
    for read in (al.open_collection, al.load):
        with pytest.raises(
            al.IncompatibleSketchesError, match=r"^r0 and r1 \(.*elsewhere\.parquet\).*: their seed differs"
        ):
            read(folder)


def test_what_is_not_a_collection(folder, tmp_path):
    (tmp_path / "empty" / "_only").mkdir(parents=True)
    with pytest.raises(al.ParameterError, match="got none in"):
        al.open_collection(tmp_path / "empty")
    with pytest.raises(al.ParameterError, match="that is there"):
        al.open_collection(tmp_path / "nowhere")
    for bad in ([], 5, None, [3], "", [""]):
        with pytest.raises(al.ParameterError, match="source must be"):
            al.open_collection(bad)
    with pytest.raises(al.ParameterError, match="each file once"):
        al.open_collection([folder, folder / "part-7"])
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(al.CorruptFileError, match=r"notes\.txt must be a sketch file"):
        al.open_collection(folder)
    (folder / "notes.txt").unlink()
    (folder / "link").symlink_to(folder / "b")
    with pytest.raises(al.ParameterError, match="no links"):
        al.open_collection(folder)


def test_files_without_rows_do_no_harm(folder, loaded):
    path = folder / "none.parquet"
    loaded.rows([]).save(path)
    write_sealed(pq.read_table(path), path)
    with pq.ParquetWriter(folder / "empty group.parquet", pq.read_schema(path)) as writer:
        writer.write_table(pq.read_table(path))
    collection = al.open_collection(folder)
    assert len(collection.files) == 6
    assert same(collection.to_sketches(), loaded)
    assert tuple(collection.each_label()) == loaded.labels
    nothing = al.open_collection(path)
    assert len(nothing) == 0
    assert list(nothing.blocks(5)) == []


def test_files_in_a_given_order(folder, loaded):
    collection = al.open_collection([folder / "b", folder / "a.parquet", folder / "part-7"])
    assert same(collection.to_sketches(), loaded.rows([*range(10, 35), *range(10), 35]))


def replaced(path):
    released(20, prefix="new").save(path)


def touched(path):
    os.utime(path, ns=(0, 0))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("change", [replaced, touched, cut, os.unlink], ids=lambda change: change.__name__)
def test_a_file_that_changes_is_refused(change, folder):
    collection = al.open_collection(folder)
    change(folder / "b" / "y.parquet")
    assert len(collection.rows([3, 35])) == 2
    with pytest.raises(al.CorruptFileError, match=r"y\.parquet must stay as it was .* open it again"):
        list(collection.blocks(4))
    with pytest.raises(al.CorruptFileError, match="must stay"):
        list(collection.each_label())


def test_damage_is_found_when_it_is_read(folder):
    path = folder / "b" / "y.parquet"
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    collection = al.open_collection(folder)
    with pytest.raises(al.CorruptFileError, match=r"y\.parquet must"):
        collection.to_sketches()


def test_hostile_columns_are_refused_when_they_are_read(folder):
    path = folder / "a.parquet"
    old = pq.read_table(path)
    nan = pa.array([np.nan] * 10)
    write_sealed(old.set_column(3, old.schema.field("offset"), nan), path)
    with pytest.raises(al.CorruptFileError, match="damaged or foreign"):
        al.open_collection(folder).to_sketches()
    long = pa.array(["x" * 5000] * 10)
    write_sealed(old.set_column(0, old.schema.field("label"), long), path)
    with pytest.raises(al.CorruptFileError, match="printable labels"):
        al.open_collection(folder)["d0"]


def test_a_group_that_unpacks_to_too_much_is_refused_at_once(tmp_path, monkeypatch):
    wide = al.Protocol(al.Identity(input_dim=4096), epsilon=1)
    al.sketch_in_clear(wide, np.zeros((3000, 4096), dtype=np.int8)).save(tmp_path / "zeros.parquet")
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    # groups of 1,024 rows: three of them are more than this, one is not
    assert len(al.open_collection(tmp_path, limit=80_000_000)) == 3000
    with pytest.raises(al.CorruptFileError, match="unpack to at most 60000000"):
        al.open_collection(tmp_path, limit=60_000_000)
    with pytest.raises(al.ParameterError, match=r"at most 80000000 bytes .* got 98304000"):
        al.open_collection(tmp_path).to_sketches(limit=80_000_000)


def test_answers_that_need_everything_say_so(folder):
    collection = al.open_collection(folder)
    for question in (al.outliers, lambda rows: al.drift(rows, rows)):
        with pytest.raises(al.ParameterError, match=r"got Collection; load it with \.to_sketches\(\)"):
            question(collection)


STREAMED = """
import sys, tracemalloc
import pyarrow as pa
import armslength as al

few = al.load(sys.argv[2])
list(al.compare(few, few, top=3))  # compiled
tracemalloc.start()
collection = al.open_collection(sys.argv[1])
assert sum(len(block) for block in collection.blocks(2048)) == 60_000
(batch,) = al.compare(few, collection, top=5)
assert batch.num_rows == 5
print(tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory())
"""


def test_memory_does_not_grow_with_the_collection(tmp_path):
    protocol = al.Protocol(al.Identity(input_dim=256), epsilon=1)
    data = RNG.integers(0, 50, (6000, 256))
    (tmp_path / "rows").mkdir()
    for number in range(10):
        protocol.release(data, ledger=al.NO_LEDGER).save(tmp_path / "rows" / f"{number}.parquet")
    protocol.release(data[:3], ledger=al.NO_LEDGER).save(tmp_path / "few.parquet")
    # In a process of its own: what Arrow held at most, it counts from its beginning.
    done = subprocess.run(
        [sys.executable, "-c", STREAMED, str(tmp_path / "rows"), str(tmp_path / "few.parquet")],
        capture_output=True,
        text=True,
        check=True,
    )
    # All rows are 117 MiB. A row group is 12, twice where it is unpacked; a block is 4, in float64 and in panels as well.
    assert int(done.stdout) < 80 * 2**20, f"{int(done.stdout) / 2**20:.0f} MiB"
