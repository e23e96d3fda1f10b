"""One person's rows in a file change what that person counts for, and nothing else: every kind of file, every border of its reader.

The other side is Python's own csv module, and the same rows in memory.
"""

import csv
import gzip
import io
import random

import numpy as np
import pyarrow as pa
import pytest
from attacks.quoted_line_breaks import CONTRIBUTION as TWO
from attacks.quoted_line_breaks import moved
from audit.readers import CONTRIBUTION, WRITERS, neighbors, source_of, sums
from hypothesis import example, given
from hypothesis import strategies as st

import armslength as al
from armslength.ingest import text_files
from armslength.ingest.event_files import EventFile
from armslength.ingest.text_files import line_ends_outside_quotes

NAMES = ["who", "note", "what"]
ROLES = {"person": "who", "item": "what"}


def read(text, chunk, folder, **form):
    """(person, item) of all records; the bytes are read so many at a time."""
    path = folder / "e.csv"
    path.write_bytes(text)
    before, text_files._BYTES_AT_ONCE = text_files._BYTES_AT_ONCE, chunk
    try:
        found = pa.Table.from_batches(
            text_files.records(EventFile(str(path), "delimited", **form), ROLES),
            schema=pa.schema([("person", pa.string()), ("item", pa.string())]),
        )
    finally:
        text_files._BYTES_AT_ONCE = before
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


FIELDS = st.text(st.sampled_from('ab,"\n\r\t é\\\0'), max_size=6)


@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=8),
    chunk=st.integers(1, 60),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_what_a_csv_writer_writes_is_what_is_read(folder, rows, chunk, line_end, quoting):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end, quoting=quoting)
    writer.writerow(NAMES)
    writer.writerows(rows)
    expected = [(who, what) for who, _, what in rows]
    if quoting == csv.QUOTE_MINIMAL and line_end == "\n":
        # this writer does not quote a carriage return: at the end of a line it is part of the line's end
        expected = [
            (who, what if {",", '"', "\n"} & set(what) else what.removesuffix("\r")) for who, what in expected
        ]
    assert read(text.getvalue().encode(), chunk, folder) == expected


@given(
    text=st.lists(st.sampled_from(["a", ",", '"', "\n", "\r\n"]), max_size=24).map("".join),
    chunk=st.integers(1, 30),
)
@example(text='a,b,c"d\n', chunk=3)
@example(text='"a"b,c,d\n', chunk=1)
@example(text='a,b,"\r\n"\r\n', chunk=12)
def test_whatever_is_read_is_what_another_reader_reads(folder, text, chunk):
    """Text of any form: refused, or read as Python's csv module reads it; and chunks decide neither."""
    whole = ",".join(NAMES) + "\n" + text
    try:
        found = read(whole.encode(), 1 << 20, folder)
    except al.InputError:
        with pytest.raises(al.InputError):
            read(whole.encode(), chunk, folder)
        return
    expected = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert found == [(row[0], row[2]) for row in expected if row]
    assert read(whole.encode(), chunk, folder) == found


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "field", [b'"x\n"', b'"\r\n\r\n"', b'"""\n"""', b'",\n,""\n"', b'"' + b"y\n" * 50 + b'"']
)
def test_a_quoted_line_break_at_every_offset_around_a_border(folder, line_end, field):
    chunk = 64
    for offset in range(2 * chunk + len(field)):
        rows = [b"a," + b"z" * offset + b",i1", b"b,n," + field, b"c,,i3", b'd,"",' + field, b"e,n,i5"]
        text = line_end.join([b"who,note,what", *rows, b""])
        inside = next(csv.reader(io.StringIO(field.decode(), newline="")))[0]
        expected = [("a", "i1"), ("b", inside), ("c", "i3"), ("d", inside), ("e", "i5")]
        assert read(text, chunk, folder) == expected, offset


@pytest.mark.parametrize("border", [4 << 20, 8 << 20])
def test_the_attack_at_the_reader_s_own_borders(tmp_path, border):
    assert text_files._BYTES_AT_ONCE == 4 << 20
    assert moved(tmp_path, border, others=1000) <= 2 * TWO


@pytest.mark.parametrize("kind", WRITERS)
def test_one_person_s_rows_change_the_sums_by_at_most_the_contribution(kind, tmp_path):
    chance = random.Random(kind)  # noqa: S311  # generated events
    name, write = WRITERS[kind]
    for chunk in (1, 17, 64, 4 << 20):
        found = []
        for rows in neighbors(chance):
            write(rows, tmp_path / name)
            found.append(sums(source_of(kind, tmp_path / name), chunk, threads=2))
            who, what = (list(column) for column in zip(*rows, strict=True))
            assert np.array_equal(found[-1], sums(pa.table({"who": who, "what": what}), chunk, threads=1))
        assert np.abs(found[1] - found[0]).sum() <= CONTRIBUTION


def test_a_field_longer_than_many_chunks(folder):
    long = "".join(random.Random(1).choices('ab,"\n', k=100_000))  # noqa: S311  # generated text
    text = "who,note,what\n" + f'p,n,"{long.replace(chr(34), 2 * chr(34))}"\nq,n,x\n'
    assert read(text.encode(), 64, folder) == [("p", long), ("q", "x")]
    (folder / "e.csv.gz").write_bytes(gzip.compress(text.encode()))
    zipped = pa.Table.from_batches(
        text_files.records(EventFile(str(folder / "e.csv.gz"), "delimited", compression="gzip"), ROLES)
    )
    assert zipped.column("item").to_pylist() == [long, "x"]


def test_a_record_that_is_too_long_is_refused(folder, monkeypatch):
    monkeypatch.setattr(text_files, "_LONGEST_RECORD", 1000)
    with pytest.raises(al.InputError, match="more than 1000 bytes"):
        read(b'who,note,what\np,n,"' + b"x" * 5000 + b'"\n', 64, folder)


def test_a_carriage_return_alone_is_text(folder):
    # one person's event must not decide whether the file can be read
    for chunk in (1, 2, 3, 100):
        assert read(b"who,note,what\np,\r,a\rb\n\rq,n,x\r\nr,n,y\r", chunk, folder) == [
            ("p", "a\rb"),
            ("\rq", "x"),
            ("r", "y\r"),
        ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\r\n"])
def test_marks_and_line_ends_at_the_ends_of_a_file(folder, mark, end):
    for chunk in (1, 2, 5, 100):
        assert read(mark + b"who,note,what\r\n\np,n,x" + end, chunk, folder) == [("p", "x")]


def test_records_are_counted_a_second_way(folder, monkeypatch):
    assert line_ends_outside_quotes(np.frombuffer(b'a,"\n",""\nb\n', dtype=np.uint8), 34) == 2
    assert line_ends_outside_quotes(np.frombuffer(b'a"\n', dtype=np.uint8), 34) == -1
    real = text_files.cut_records
    monkeypatch.setattr(text_files, "cut_records", lambda *given: (real(*given)[0], 7, *real(*given)[2:]))
    with pytest.raises(al.InputError, match="two counts"):
        read(b"who,note,what\np,n,x\n", 100, folder)


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_are_cut_at_line_feeds_alone(tmp_path, monkeypatch, chunk, end):
    monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
    lines = ['{"a": "x\\n\u2028"}', "", '{"a": "\x0b\x0c\x85"}\r', '{"b": 1}']
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode() + end)
    found = [
        line
        for batch in text_files.lines(EventFile(str(path), "lines"), {})
        for line in batch.column(0).to_pylist()
    ]
    assert [line.rstrip("\n") for line in found] == [line for line in lines if line]
