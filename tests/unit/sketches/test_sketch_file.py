"""Sketch files: whole or not at all, read by others, and refused when they are not what they say."""

import json

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.sketches import sketch_format
from armslength.sketches.card import release_card
from armslength.sketches.parquet_footer import DamagedFileError
from sealed import write_sealed

TRANSFORM = al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x")
PROTOCOL = al.Protocol(TRANSFORM, epsilon=1, unit="one patient")
OTHER = al.Protocol(TRANSFORM, epsilon=0.001)
X = np.arange(18).reshape(3, 6)


def released(protocol=PROTOCOL):
    return al.release(protocol, X, ledger=al.NO_LEDGER, labels=["north", "süd", "o'st"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sketches.parquet"


def same(a, b):
    return a.equals(b) and a.releases == b.releases


@pytest.mark.parametrize(
    "make",
    [
        released,
        lambda: al.concat([released(), released(OTHER)]),
        lambda: released()["north"] - 0.5 * released(OTHER)["süd"],
        lambda: released() + released(),
        lambda: al.sketch_in_clear(PROTOCOL, X),
        lambda: al.release(
            al.Protocol(
                al.FastJL(input_dim=6, sketch_dim=4, seed="x"), epsilon=1, delta=1e-6, noise_site="input"
            ),
            X,
            ledger=al.NO_LEDGER,
        ),
    ],
    ids=["plain", "two protocols", "combination", "sum", "clear", "input"],
)
def test_sketches_come_back_from_their_file(make, path):
    sketches = make()
    sketches.save(path)
    assert same(al.load(path), sketches)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_several_files_are_joined(tmp_path):
    first, second = released(), released(OTHER)
    first.save(tmp_path / "a.parquet")
    second.save(tmp_path / "b.parquet")
    joined = al.load([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert same(joined, al.concat([first, second]))


def test_files_of_different_spaces_are_not_joined(tmp_path):
    released().save(tmp_path / "a.parquet")
    released(al.Protocol(al.SparseJL(input_dim=6, sketch_dim=4, sparsity=2, seed="x"), epsilon=1)).save(
        tmp_path / "b.parquet"
    )
    with pytest.raises(al.IncompatibleSketchesError, match="sketch_dim"):
        al.load([tmp_path / "a.parquet", tmp_path / "b.parquet"])


def test_duckdb_and_polars_read_it(path):
    sketches = released()
    sketches.save(path)
    assert [row[0] for row in duckdb.sql(f"SELECT label FROM '{path}'").fetchall()] == list(sketches.labels)
    values = duckdb.sql(f"SELECT values FROM '{path}'").fetchall()
    assert np.array_equal([list(row[0]) for row in values], sketches.values)
    frame = pl.read_parquet(path)
    assert frame["label"].to_list() == list(sketches.labels)
    assert np.array_equal(np.stack(frame["values"].to_list()), sketches.values)


def test_the_card_speaks_in_words_and_numbers(path):
    released().save(path)
    head = json.loads(pq.read_schema(path).metadata[b"armslength"])
    (card,) = head["card"]["releases"]
    assert "1-differentially private for adding or removing one patient" in card["words"]
    assert card["protocol"] == PROTOCOL.fingerprint
    assert head["protocols"] == [PROTOCOL.document()]


def test_a_failed_write_leaves_nothing(path, monkeypatch):
    released().save(path)
    before = path.read_bytes()

    def fail(*_arguments, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(al.ParameterError, match=r"cannot write .*: No space"):
        released().save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def rewrite(path, table=None, **head_changes):
    """The file with another table or another head."""
    old = pq.read_table(path)
    head = json.loads(old.schema.metadata[b"armslength"])
    head.update(head_changes)
    new = old if table is None else table(old)
    write_sealed(new, path, head=head)


def with_column(name, values):
    return lambda old: old.set_column(old.schema.get_field_index(name), old.schema.field(name), values(old))


BAD_TABLES = {
    "another column": lambda old: old.append_column("extra", pa.array([1, 2, 3])),
    "a column less": lambda old: old.drop_columns(["in_clear"]),
    "narrow values": lambda old: old.set_column(
        1, "values", pa.array([[1] * 7] * 3, pa.list_(pa.int64(), 7))
    ),
    "text values": lambda old: old.set_column(
        1, "values", pa.array([["a"] * 8] * 3, pa.list_(pa.string(), 8))
    ),
    "missing values": lambda old: old.set_column(1, "values", pa.array([None] * 3, pa.list_(pa.int64(), 8))),
    "nan values": lambda old: old.set_column(
        1, "values", pa.array([[np.nan] * 8] * 3, pa.list_(pa.float64(), 8))
    ),
    "long label": lambda old: old.set_column(0, "label", pa.array(["a", "b", "c" * 5000])),
    "empty label": lambda old: old.set_column(0, "label", pa.array(["a", "", "c"])),
    "unprintable label": lambda old: old.set_column(0, "label", pa.array(["a", "b\n", "c"])),
    "unknown protocol": lambda old: old.set_column(
        2,
        "noise",
        pa.array([[{"id": b"x" * 16, "coefficient": 1.0, "protocol": 7}]] * 3, sketch_format.NOISE_TYPE),
    ),
    "negative protocol": lambda old: old.set_column(
        2,
        "noise",
        pa.array([[{"id": b"x" * 16, "coefficient": 1.0, "protocol": -1}]] * 3, sketch_format.NOISE_TYPE),
    ),
    "nan coefficient": lambda old: old.set_column(
        2,
        "noise",
        pa.array([[{"id": b"x" * 16, "coefficient": np.nan, "protocol": 0}]] * 3, sketch_format.NOISE_TYPE),
    ),
    "the same noise twice": lambda old: old.set_column(
        2,
        "noise",
        pa.array([[{"id": b"x" * 16, "coefficient": 1.0, "protocol": 0}] * 2] * 3, sketch_format.NOISE_TYPE),
    ),
}


@pytest.mark.parametrize("kind", list(BAD_TABLES))
def test_tables_that_are_not_sketches_are_refused(kind, path):
    released().save(path)
    rewrite(path, BAD_TABLES[kind])
    with pytest.raises(CorruptFileError) as caught:
        al.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"version": 5}, UnsupportedVersionError),
        ({"version": 2}, UnsupportedVersionError),
        ({"sources": None}, CorruptFileError),
        ({"sources": []}, CorruptFileError),
        ({"sources": ["rows", "rows"]}, CorruptFileError),
        ({"sources": ["rumors"]}, CorruptFileError),
        ({"sources": [["rows"]]}, CorruptFileError),
        ({"sources": ["events"]}, CorruptFileError),  # without a contribution
        ({"sources": ["stream"]}, CorruptFileError),  # the card says rows
        ({"sources": ["unknown"]}, CorruptFileError),  # the same
        ({"version": "1"}, CorruptFileError),
        ({"version": 0}, UnsupportedVersionError),
        ({"version": True}, CorruptFileError),
        ({"protocols": [{}] * 1001}, CorruptFileError),
        ({"format": "other"}, CorruptFileError),
        ({"surprise": 1}, CorruptFileError),
        ({"protocols": []}, CorruptFileError),
        ({"protocols": [3]}, CorruptFileError),
        ({"protocols": None}, CorruptFileError),
    ],
)
def test_heads_that_are_not_ours_are_refused(changes, error, path):
    released().save(path)
    rewrite(path, **changes)
    with pytest.raises(error):
        al.load(path)


def test_an_edited_protocol_is_refused(path):
    released().save(path)
    edited = {**PROTOCOL.document(), "epsilon": "0.1"}
    rewrite(path, protocols=[edited])
    with pytest.raises(CorruptFileError, match="edited by hand"):
        al.load(path)


def test_foreign_damaged_and_cut_files_are_refused(path):
    pq.write_table(pa.table({"label": ["a"]}), path)
    with pytest.raises(CorruptFileError, match="not a sketch file"):
        al.load(path)
    released().save(path)
    whole = path.read_bytes()
    for size in (0, 1, 4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFileError):
            al.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        al.load(path.parent / "nowhere.parquet")
    for bad in ([], 5, None, [5], [path, None]):
        with pytest.raises(al.ParameterError, match="paths must be"):
            al.load(bad)


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_read(path, monkeypatch):
    big = al.Protocol(al.Identity(input_dim=4096), epsilon=1)
    zeros = al.sketch_in_clear(big, np.zeros((2000, 4096), dtype=np.int8))
    zeros.save(path)
    assert path.stat().st_size < 300_000
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    for limit in (10_000_000, 1000):
        with pytest.raises(CorruptFileError, match=f"more than {limit} bytes"):
            al.load(path, limit=limit)


def test_other_columns_are_refused_before_they_are_unpacked(path, monkeypatch):
    released().save(path)
    wide = pa.list_(pa.int64(), 2_000_000)
    rewrite(path, lambda old: old.append_column("extra", pa.nulls(3, wide)))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    with pytest.raises(CorruptFileError, match="columns"):
        al.load(path)


def test_many_terms_of_noise_are_refused_before_they_are_unpacked(path, monkeypatch):
    released().save(path)
    term = {"id": b"x" * 16, "coefficient": 1.0, "protocol": 0}
    rewrite(
        path,
        lambda old: old.set_column(2, "noise", pa.array([[term] * 100_000] * 3, sketch_format.NOISE_TYPE)),
    )
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)  # must not be reached
    with pytest.raises(CorruptFileError, match="unpack"):
        al.load(path, limit=30_000_000)


def test_a_protocol_that_would_scan_for_ever_is_refused(path):
    released().save(path)
    endless = al.Protocol(al.GaussianJL(input_dim=10, sketch_dim=4, seed="x"), epsilon=1).document()
    endless["transform"]["parameters"]["input_dim"] = 2**40
    rewrite(path, protocols=[endless])
    with pytest.raises(CorruptFileError, match="2\\^26"):
        al.load(path)


def test_long_labels_are_cut_so_that_the_file_can_be_read(path):
    long = al.release(PROTOCOL, X[:2], ledger=al.NO_LEDGER, labels=["é" * 400, "漢" * 300])
    total = long[0] + long[1]
    total.save(path)
    assert al.load(path).labels == total.labels


def test_values_that_are_no_lists(path):
    released().save(path)
    rewrite(path, lambda old: old.set_column(1, "values", pa.array([1, 2, 3])))
    with pytest.raises(CorruptFileError):
        al.load(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(al.ParameterError, match="folder"):
        released().save(tmp_path)


def test_rows_that_are_loaded_twice_share_their_noises(path):
    released(OTHER).save(path)
    loaded = al.load(path)
    assert loaded.noises.are_fresh
    joined = al.load([path, path])
    assert joined.noises.are_released.all()
    assert not joined.noises.are_fresh
    assert joined.noises.ids.tobytes() == 2 * loaded.noises.ids.tobytes()


def changed_terms(**changes):
    """The noise column with another value in the term of the last row."""

    def change(old):
        rows = old.column("noise").to_pylist()
        rows[-1][0].update(changes)
        return old.set_column(2, "noise", pa.array(rows, sketch_format.NOISE_TYPE))

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed_terms(coefficient=2.0), ("coefficient", 2.0)),
        (lambda old: old.set_column(3, "in_clear", pa.array([False, False, True])), ("in_clear", True)),
        (changed_terms(protocol=1), ("protocol", OTHER)),
    ],
    ids=["coefficient", "in clear", "protocol"],
)
def test_one_row_that_is_not_as_released_is_kept_as_it_is(change, expected, path):
    released().save(path)
    both = ((PROTOCOL, "rows"), (OTHER, "rows"))
    card = release_card(both, in_clear=False)
    documents = [protocol.document() for protocol, _ in both]
    rewrite(path, change, protocols=documents, sources=["rows", "rows"], card=card)
    loaded = al.load(path)
    ((protocol, coefficient),) = loaded.noises.terms(2)
    found = {"coefficient": coefficient, "in_clear": loaded.in_clear[-1], "protocol": protocol}
    assert found[expected[0]] == expected[1]
    assert loaded.noises.are_released[0]
    assert loaded.noises.terms(0) == ((PROTOCOL, 1.0),)


def test_a_row_without_noise_beside_one_with_two(path):
    """As many terms as rows, and yet not one in each."""
    released().save(path)
    terms = [{"id": bytes([n]) * 16, "coefficient": 1.0, "protocol": 0} for n in range(3)]
    rows = pa.array([[], terms[:2], terms[2:]], sketch_format.NOISE_TYPE)
    rewrite(path, lambda old: old.set_column(2, "noise", rows))
    assert np.diff(al.load(path).noises.starts).tolist() == [0, 2, 1]


def test_many_rows_are_written_in_groups_of_moderate_size(path):
    wide = al.Protocol(al.Identity(input_dim=1024), epsilon=1)
    values = np.arange(5000)[:, None] + np.zeros((1, 1024), dtype=int)
    sketches = al.sketch_in_clear(wide, values)
    sketches.save(path)
    footer = pq.read_metadata(path)
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == [4096, 904]
    assert same(al.load(path), sketches)
    narrow = al.release(PROTOCOL, np.zeros((20_000, 6), dtype=int), ledger=al.NO_LEDGER)
    narrow.save(path)
    footer = pq.read_metadata(path)
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == [16_384, 3616]
    loaded = al.load(path)
    assert loaded.noises == narrow.noises
    assert np.array_equal(loaded.values, narrow.values)
    assert loaded.labels == narrow.labels


def test_a_file_as_it_was_written_before_reads_the_same(path):
    """In one group, without packed integers."""
    sketches = released(OTHER)
    sketches.save(path)
    write_sealed(pq.read_table(path), path, compression="zstd", use_dictionary=False)
    assert same(al.load(path), sketches)


def test_no_rows_come_back(path):
    none = released().rows([])
    none.save(path)
    loaded = al.load(path)
    assert len(loaded) == 0
    assert loaded.values.shape == (0, 8)
    assert loaded.protocols == none.protocols


def test_values_at_the_ends_of_their_range(path):
    ends = np.array([[-(2**63), 2**63 - 1, 0, -1, 1, 2**62, -(2**62), 7]] * 3)
    sketches = al.Sketches(ends, ["a", "b", "c"], released().noises, [PROTOCOL])
    sketches.save(path)
    assert np.array_equal(al.load(path).values, ends)
    stored = duckdb.sql(f"SELECT values FROM '{path}'").fetchall()
    assert [list(row[0]) for row in stored] == ends.tolist()
    assert pl.read_parquet(path)["values"].to_list()[0] == ends[0].tolist()


def test_rows_cannot_have_been_released_with_votes():
    """Somebody relabels rows, which nothing bounds, with a protocol for event tables."""
    protocol = al.Protocol(al.SparseJL(sketch_dim=4, seed="x"), al.Votes(), epsilon=1, unit="one patient")
    for source, is_valid in (("events", True), ("unknown", True), ("rows", False), ("stream", False)):
        if is_valid:
            sketch_format._check_sources([source], [protocol])
        else:
            with pytest.raises(DamagedFileError, match="event table"):
                sketch_format._check_sources([source], [protocol])
