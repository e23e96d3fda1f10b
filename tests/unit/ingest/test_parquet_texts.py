"""Parquet files of text are read without the engine, and count the same."""

import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest import batches, encoding, event_table, parquet_texts
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob, public_groups_of
from armslength.ingest.parquet_texts import ParquetTexts
from flat_protocol import flat_protocol

ROLES = {"person": "who", "item": "what", "group": "where"}
GROUPS = ["north", "süd", "west"]
PROTOCOL = al.Protocol(
    al.SparseJL(sketch_dim=16, seed="texts"), al.Votes(total_share="0.1"), epsilon=1, unit="one patient"
)


def visits(count, seed=1):
    """Events with texts of every kind: missing, empty, long, not ASCII, unlisted."""
    generator = np.random.default_rng(seed)
    people = [None, "", " 7 ", "7", "7.0", "é", "e\u0301", "a" * 40, *(f"p{n}" for n in range(count // 8))]
    items = [None, "", "J45", "é", "e\u0301", "long item " * 9, *(f"c{n}" for n in range(50))]
    groups = [None, "", "east", *GROUPS]
    columns = {
        name: [values[place] for place in generator.integers(0, len(values), count)]
        for name, values in zip(ROLES.values(), (people, items, groups), strict=True)
    }
    return pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns]))


WEIGHTED = al.Protocol(PROTOCOL.transform, al.Counts(1000, total_share="0.1"), epsilon=1, unit="one patient")


def job(source, protocol=PROTOCOL):
    groups = public_groups_of("where", GROUPS, None)
    return TableJob.of(source, protocol, EventColumns("who", "what", "where"), groups, threads=2)


def counts(source, protocol=PROTOCOL):
    sums = job(source, protocol).sums(bytes(32))
    return sums.values.tolist(), sums.totals.tolist(), sums.spread.tolist()


def is_read_as_texts(source):
    with job(source).opened() as table:
        return isinstance(table, ParquetTexts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"use_dictionary": ["where"], "row_group_size": 300},
        {"row_group_size": 1000, "compression": "zstd", "data_page_version": "2.0"},
        {"row_group_size": 700, "dictionary_pagesize_limit": 64},  # falls back to plain texts in the middle
    ],
    ids=["coded", "plain", "some coded", "several row groups", "fallback"],
)
@pytest.mark.parametrize("at_once", [512, 1 << 19])
def test_texts_count_as_the_engine_counts_them(tmp_path, monkeypatch, options, at_once):
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", at_once)
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(5000), path, **options)
    assert is_read_as_texts(path)
    read = counts(path)
    monkeypatch.setattr(event_table.ParquetTexts, "of", lambda *_: None)
    assert not is_read_as_texts(path)
    assert counts(path) == read
    assert counts(visits(5000)) == read  # the same table in memory


TEXT_ENCODINGS = ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
NUMBER_ENCODINGS = ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    "encodings",
    [
        *({name: encoding} for name in ROLES.values() for encoding in TEXT_ENCODINGS),
        *({"amount": encoding} for encoding in NUMBER_ENCODINGS),
    ],
    ids=lambda encodings: "-".join(*encodings.items()),
)
def test_columns_in_every_encoding(tmp_path, encodings, version):
    amounts = np.random.default_rng(2).integers(-3, 4, 3000)
    kinds = (
        ["int32", "int64"] if "DELTA_BINARY_PACKED" in encodings.values() else ["int64", "float32", "float64"]
    )
    for kind in kinds:
        table = visits(3000).append_column("amount", pa.array(amounts).cast(kind))
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(
            table,
            path,
            use_dictionary=False,
            column_encoding=encodings,
            data_page_version=version,
            row_group_size=700,
        )
        assert counts(path) == counts(table)
        jobs = [
            replace(job(source, WEIGHTED), columns=EventColumns(*ROLES.values(), "amount"))
            for source in (path, table)
        ]
        read, expected = (each.sums(bytes(32)) for each in jobs)
        assert np.array_equal(read.values, expected.values)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("stored_as", [None, *TEXT_ENCODINGS])
@pytest.mark.parametrize("by_engine", [False, True])
def test_batches_have_few_bytes_however_long_the_texts_are(tmp_path, monkeypatch, role, stored_as, by_engine):
    """A dictionary has a long text once; decoded at once, all of its rows would not fit."""
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", 1 << 16)
    monkeypatch.setattr(batches, "_ROWS_DECODED", 64)
    monkeypatch.setattr(encoding, "BYTES_AT_ONCE", 1 << 12)
    if by_engine:
        monkeypatch.setattr(event_table.ParquetTexts, "of", lambda *_: None)
    table = visits(2000)
    place = list(ROLES).index(role)
    column = [value and value + "x" * 5000 for value in table.column(place).to_pylist()]
    long = table.set_column(place, ROLES[role], pa.array(column, pa.string()))
    options = (
        {} if stored_as is None else {"use_dictionary": False, "column_encoding": {ROLES[role]: stored_as}}
    )
    pq.write_table(long, tmp_path / "long.parquet", **options)
    groups = [group + "x" * 5000 for group in GROUPS] if role == "group" else GROUPS
    known = replace(job(tmp_path / "long.parquet"), groups=PublicGroups(tuple(groups), "where"))
    with known.opened() as opened:
        sizes = [batch.nbytes for piece in opened.pieces() for batch in piece]
    assert len(sizes) > 20 if role != "group" or by_engine else sizes
    assert max(sizes) < 1 << 19
    sums, same = known.sums(bytes(32)), replace(known, source=long).sums(bytes(32))
    assert np.array_equal(sums.values, same.values)
    assert np.array_equal(sums.totals, same.totals)


def test_several_files_are_read_and_none_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_texts, "_FEWEST_ROWS", 100)
    for number in range(3):
        pq.write_table(visits(900, number), tmp_path / f"{number}.parquet")
    assert is_read_as_texts(tmp_path)
    both = pa.concat_tables([visits(900, number) for number in range(3)])
    assert counts(tmp_path) == counts(both)
    monkeypatch.setattr(parquet_texts, "_FEWEST_ROWS", 1000)
    assert not is_read_as_texts(tmp_path)  # many small files are joined by the engine
    assert counts(tmp_path) == counts(both)


def test_large_texts_and_no_rows(tmp_path):
    table = visits(500)
    large = pa.table({name: table.column(name).cast(pa.large_string()) for name in table.column_names})
    pq.write_table(large, tmp_path / "large.parquet")
    assert is_read_as_texts(tmp_path / "large.parquet")
    assert counts(tmp_path / "large.parquet") == counts(table)
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert counts(tmp_path / "none.parquet") == counts(table.slice(0, 0))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([5, 7, None]),
        pa.array([5.0, 7.0, None]),
        pa.array(["5", "7", None]).dictionary_encode(),
    ],
    ids=["integers", "floats", "dictionary"],
)
def test_other_types_are_left_to_the_engine(tmp_path, column):
    rest = {"what": ["a", "b", "c"], "where": ["north"] * 3}
    pq.write_table(pa.table({"who": column, **rest}), tmp_path / "typed.parquet")
    assert not is_read_as_texts(tmp_path / "typed.parquet")
    texts = pa.table({"who": ["5", "7", None], **rest})
    assert counts(tmp_path / "typed.parquet") == counts(texts)


def test_ids_of_parquet_are_their_text(tmp_path):
    ids = [uuid.UUID(int=7), uuid.UUID(int=2**127), None]
    rest = {"what": ["a", "b", "c"], "where": ["north"] * 3}
    column = pa.array([each and each.bytes for each in ids], pa.uuid())
    pq.write_table(pa.table({"who": column, **rest}), tmp_path / "ids.parquet")
    assert counts(tmp_path / "ids.parquet") == counts(
        pa.table({"who": [each and str(each) for each in ids], **rest})
    )


def test_columns_that_cannot_be_told_apart_are_refused(tmp_path):
    names = ["who", "WHO", "what", "where"]
    table = pa.table([["1"], ["2"], ["a"], ["north"]], names=names)
    pq.write_table(table, tmp_path / "twins.parquet")
    with pytest.raises(al.ArmslengthError, match="who"):
        counts(tmp_path / "twins.parquet")


@pytest.mark.parametrize("role", range(3))
def test_bytes_that_are_no_text_are_refused_and_not_shown(tmp_path, role):
    columns = [["secret"], ["a"], ["north"]]
    arrays = [pa.array(column) for column in columns]
    arrays[role] = pa.StringArray.from_buffers(
        1, pa.py_buffer(np.array([0, 7], np.int32)), pa.py_buffer(b"secret\xff")
    )
    pq.write_table(pa.table(arrays, names=["who", "what", "where"]), tmp_path / "bytes.parquet")
    with pytest.raises(al.InputError) as refused:
        counts(tmp_path / "bytes.parquet")
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_more_items_than_are_remembered_are_the_same_for_any_number_of_threads(tmp_path, monkeypatch):
    """Threads that begin with a list of items may end with the next one."""
    monkeypatch.setattr(encoding, "_MOST_ITEMS", 1000)
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", 500)
    count, generator = 20_000, np.random.default_rng(1)
    columns = {
        "who": [f"p{number // 4}" for number in range(count)],
        "what": [f"item-{number}" for number in generator.permutation(count)],
        "where": [GROUPS[number % 3] for number in range(count)],
    }
    pq.write_table(pa.table(columns), tmp_path / "many.parquet", row_group_size=500)
    digits = [str(digit) for digit in range(10)]
    fields = {"epsilon": 1, "contribution": "vote", "unit": "one patient", "total_share": "0.1"}
    prefixes = {"prefix": [f"item-{digit}" for digit in digits], "group": digits}
    protocol = flat_protocol(
        PROTOCOL.transform, margins=prefixes, margin_share="0.1", margin_contribution=2, **fields
    )
    one, *others = (
        replace(job(tmp_path / "many.parquet", protocol), threads=threads).sums(bytes(32))
        for threads in (1, 3, 3, 3)
    )
    for other in others:
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(one.margins, other.margins)
    monkeypatch.setattr(encoding, "_MOST_ITEMS", 10**6)
    assert np.array_equal(job(tmp_path / "many.parquet", protocol).sums(bytes(32)).margins, one.margins)


def test_a_number_that_no_text_of_the_dictionary_has_is_damage(tmp_path):
    path = tmp_path / "visits.parquet"
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ROLES.values()])
    columns = [[f"p{n}" for n in range(32)], ["J45"] * 32, ["north"] * 16 + ["west"] * 16]
    pq.write_table(pa.table(columns, schema=schema), path, compression="none")
    assert job(path).sums(bytes(32)).totals.tolist() != [0, 0, 0]
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content = bytearray(path.read_bytes())
    last = chunk.dictionary_page_offset + chunk.total_compressed_size - 1  # the number of the last run's text
    assert content[last] == 1
    content[last] = 21
    path.write_bytes(content)
    with pytest.raises(al.InputError, match="damaged"):
        job(path).sums(bytes(32))
