"""Folders with partitions, patterns, stores, standard input, encodings, delimiters, JSON arrays, lazy tables: the same events everywhere."""

import bz2
import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import PureWindowsPath
from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import armslength as al
from armslength.ingest import sources, text_files
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_files import EventFile
from armslength.ingest.event_table import PublicGroups, TableJob
from unit.ingest.object_store import object_store
from unit.ingest.tables_of_events import (
    GROUPS,
    KEY,
    SECRET,
    as_table,
    counting_protocol,
    random_events,
    write_csv,
    write_json,
)

EVENTS = as_table(random_events(5, weighted=True))
COLUMNS = EventColumns("who", "what", "where", "amount")


def sums(source, columns=COLUMNS):
    job = TableJob.of(source, counting_protocol(), columns, PublicGroups(tuple(GROUPS), "where"))
    return job.sums(KEY).values.tolist()


@pytest.fixture(scope="module")
def expected():
    return sums(EVENTS)


def write_arrow(table, path):
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "parquet": pq.write_table,
    "arrow": write_arrow,
    "csv": write_csv,
    "jsonl": write_json,
}


def write_partitions(table, folder, kind, *, keys=("where",)):
    """Folders key=value, as Hive and Spark write them: special characters as %XX, and a name for what is missing."""
    rows = {}
    for row in table.to_pylist():
        rows.setdefault(tuple(row[key] for key in keys), []).append(row)
    for values, inside in rows.items():
        names = [
            f"{key}={'__HIVE_DEFAULT_PARTITION__' if value is None else str(value).replace('o', '%6F')}"
            for key, value in zip(keys, values, strict=True)
        ]
        place = folder.joinpath(*names)
        place.mkdir(parents=True)
        schema = pa.schema([field for field in table.schema if field.name not in keys])
        part = pa.Table.from_pylist([{k: row[k] for k in schema.names} for row in inside], schema)
        WRITERS[kind](part, place / f"part-0.{kind}")


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "keys", [("where",), ("where", "what"), ("amount",), ("what", "where", "amount", "who")], ids=len
)
def test_partitions_are_columns_of_every_role(kind, keys, tmp_path, expected):
    table = EVENTS.append_column("note", pa.array(["x"] * len(EVENTS)))
    write_partitions(table, tmp_path, kind, keys=keys)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    hidden = tmp_path / "_temporary" / "where=north"
    hidden.mkdir(parents=True)
    WRITERS[kind](EVENTS, hidden / f"part-1.{kind}")
    assert sums(tmp_path) == expected
    assert sums(f"{tmp_path}/**/*.{kind}") == expected
    if keys == ("where",):
        assert sums(f"{tmp_path}/where=*/*.{kind}") == expected
        assert sums(f"{tmp_path}/where=*") == expected
        assert sums([str(place) for place in tmp_path.glob("where=*/..")][:1]) == expected


def test_a_folder_s_name_wins_over_a_column_of_the_file(tmp_path):
    for kind, write in WRITERS.items():
        place = tmp_path / kind / "where=south"
        place.mkdir(parents=True)
        write(as_table([("p", "north", 3, 1)]), place / f"e.{kind}")
        assert sums(tmp_path / kind)[1][3] == 1


def test_patterns_choose_files(tmp_path, expected):
    half = len(EVENTS) // 2
    (tmp_path / "a" / "b").mkdir(parents=True)
    write_csv(EVENTS.slice(0, half), tmp_path / "a" / "1.csv")
    write_csv(EVENTS.slice(half), tmp_path / "a" / "b" / "2.csv")
    write_csv(EVENTS, tmp_path / "a" / "b" / "other.csv")
    assert sums(f"{tmp_path}/**/[0-9].csv") == expected
    assert sums([f"{tmp_path}/a/?.csv", f"{tmp_path}/a/b/[12].csv"]) == expected
    with pytest.raises(FileNotFoundError, match="pattern"):
        sums(f"{tmp_path}/*.csv")


def test_patterns_are_cut_as_the_machine_writes_its_paths(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    write_csv(EVENTS, tmp_path / "a" / "1.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "Path", PureWindowsPath)
    inside = sources._files_inside(None, "a\\*.csv")
    assert [name for name, _ in inside] == ["a/1.csv"]


def test_the_text_of_a_table_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in (f"who,what\n{SECRET}*,x\n", f"who,what\n{SECRET},x\n", f"{SECRET}/*/x.csv"):
        with pytest.raises(FileNotFoundError) as caught:
            sums(text)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("again", ["same", "link", "hard link", "dots", "folder", "file://"])
def test_a_file_listed_twice_is_refused(again, tmp_path):
    path = tmp_path / "e.csv"
    write_csv(EVENTS, path)
    other = {
        "same": path,
        "dots": tmp_path / ".." / tmp_path.name / "e.csv",
        "folder": tmp_path,
        "file://": path.as_uri(),
    }.get(again)
    if other is None:
        other = tmp_path / "f.csv"
        (os.symlink if again == "link" else os.link)(path, other)
    with pytest.raises(al.ParameterError, match="listed twice"):
        sums([path, str(other)])
    if again.endswith("link"):
        with pytest.raises(al.ParameterError, match="listed twice"):
            sums(tmp_path)


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_packed_text(packed, kind, tmp_path, expected):
    WRITERS[kind](EVENTS, tmp_path / f"e.{kind}")
    data = (tmp_path / f"e.{kind}").read_bytes()
    path = tmp_path / f"e.{kind}.{packed}"
    cut = data.index(b"\n", len(data) // 2)
    path.write_bytes(PACKERS[packed](data[:cut]) + PACKERS[packed](data[cut:]))  # two members
    assert sums(path) == expected
    whole = path.read_bytes()
    for end in (1, 10, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(al.InputError):
            sums(path)


@pytest.mark.parametrize(
    "encoding",
    ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8-sig", "utf-32", "cp037", "shift_jis", "gb18030"],
)
@pytest.mark.parametrize("chunk", [1, 7, 4 << 20])
def test_other_encodings_are_the_same_text(encoding, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
    letters = {"shift_jis": "表ソ能", "gb18030": "中é国"}.get(encoding, "éöÿ")
    rows = [("who", "what"), *((f"{letters}{n % 3}", f'{letters}"|,\n{n}') for n in range(40))]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="|", quotechar="'", lineterminator="\r\n").writerows(rows)
    path = tmp_path / "e.txt"
    path.write_bytes(text.getvalue().encode(encoding))
    protocol = al.Protocol(al.SparseJL(sketch_dim=64, seed="t"), al.Counts(5), epsilon=1, unit="u")
    form = {"delimiter": "|", "quote": "'", "encoding": encoding}
    columns, one = EventColumns("who", "what"), PublicGroups(("all",), None)
    memory = pa.table({"who": [row[0] for row in rows[1:]], "what": [row[1] for row in rows[1:]]})
    found, right = (
        TableJob.of(source, protocol, columns, one).sums(KEY).values.tolist()
        for source in (al.Source(path, **form), memory)
    )
    assert found == right


def test_text_of_another_encoding_says_what_to_do(tmp_path):
    path = tmp_path / "e.csv"
    path.write_bytes(f"who,where,what,amount\n{SECRET}é,north,1,1\n".encode("latin-1"))
    with pytest.raises(al.InputError, match="encoding='latin-1'") as caught:
        sums(path)
    assert SECRET not in str(caught.value)
    assert sums(al.Source(path, encoding="latin-1"))[0][1] == 1
    path.write_bytes(path.read_bytes() + b"\x81")
    with pytest.raises(al.InputError, match="its text is not cp1252"):
        sums(al.Source(path, encoding="cp1252"))
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(al.InputError):
        sums(al.Source(path, encoding="utf-16"))


@pytest.mark.parametrize(
    "encoding",
    ["utf-7", "iso2022_jp", "hz", "idna", "nonsense"],
)
def test_encodings_that_carry_a_state_are_refused(encoding):
    # an escape in one person's row would change how the rows after it are read
    with pytest.raises(al.ParameterError, match="encoding must be one like"):
        al.Source("e.csv", encoding=encoding)


def test_no_character_contains_a_line_feed_in_the_encodings_that_are_read():
    one_byte, several = (
        ("latin-1", "koi8-r", "mac-roman"),
        ("cp932", "cp949", "cp950", "gbk", "gb18030", "big5"),
    )
    for name in ("utf-8", "utf-16", *one_byte, *several, "euc_jp", "shift_jis"):
        assert al.Source("e.csv", encoding=name).encoding == name
        if name.startswith("utf-16"):
            continue  # in units of two bytes
        for code in range(0x80, 0x30000):
            try:
                data = chr(code).encode(name)
            except UnicodeEncodeError:
                continue
            assert b"\n" not in data
            # and the text behind it does not depend on it
            assert (data + b"\n,").decode(name).endswith("\n,")


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"delimiter": ";;"}, "one ASCII character"),
        ({"delimiter": "\n"}, "one ASCII character"),
        ({"format": "xlsx"}, "format must be one of"),
        ({"format": "txt"}, "needs a delimiter"),
        ({"table": "t"}, "need a database"),
    ],
)
def test_what_is_said_about_a_source_is_checked(known, says):
    with pytest.raises(al.ParameterError, match=says):
        al.Source("e.csv", **known)


def test_what_is_said_about_text_goes_with_files(tmp_path):
    with pytest.raises(al.ParameterError, match="only to files"):
        sums(al.Source(EVENTS, delimiter=";"))
    (tmp_path / "e.csv").write_text("who;what\n")
    with pytest.raises(al.ParameterError, match="different characters"):
        sums(al.Source(tmp_path / "e.csv", quote=","))


def test_txt_needs_a_delimiter_and_other_delimiters_are_read(tmp_path, expected):
    write_csv(EVENTS, tmp_path / "e.txt", ";")
    for place in (tmp_path / "e.txt", tmp_path):
        with pytest.raises(al.ParameterError, match=r"^\.txt files need a delimiter.*delimiter="):
            sums(place)
    assert sums(al.Source(tmp_path / "e.txt", delimiter=";")) == expected
    (tmp_path / "e.txt").rename(tmp_path / "e.csv")
    with pytest.raises(KeyError, match="delimiter="):
        sums(tmp_path / "e.csv")
    assert sums(al.Source(tmp_path / "e.csv", delimiter=";")) == expected
    (tmp_path / "e.csv").rename(tmp_path / "part-0")
    assert sums(al.Source(tmp_path / "part-0", format="csv", delimiter=";")) == expected
    assert sums(al.Source(tmp_path, format="csv", delimiter=";")) == expected


def test_without_quotes_a_quote_is_text(tmp_path):
    path = tmp_path / "e.tsv"
    path.write_bytes(b'who\twhere\twhat\tamount\n"p\tnorth\t3\t1\nq"x"\tnorth\t3\t1\n')
    with pytest.raises(al.InputError):
        sums(path)
    assert sums(al.Source(path, quote=None))[0][3] == 2


def as_array(rows, indent):
    text = json.dumps(rows, indent=indent)
    return {0: text, None: text, 2: f"\n \ufeff{text}"[3:] + "\r\n \t"}[indent].encode()


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("chunk", [1, 5, 64, 4 << 20])
def test_a_json_array_is_its_objects(indent, chunk, tmp_path, monkeypatch, expected):
    monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
    path = tmp_path / "e.json"
    rows = [
        {**row, "note": ['}],{"', {"x": "\\"}, "é\u2028", '"', "\\\\", n]}
        for n, row in enumerate(EVENTS.to_pylist())
    ]
    path.write_bytes(as_array(rows, indent))
    assert sums(path) == expected
    path.write_bytes(b"\xef\xbb\xbf" + as_array(rows, indent))
    assert sums(path) == expected
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode())  # lines, under the same name
    assert sums(path) == expected


@pytest.mark.parametrize("text", ["", " \n", "[]", " [ ] "])
def test_json_without_events(text, tmp_path):
    (tmp_path / "e.json").write_text(text)
    assert not np.any(sums(tmp_path / "e.json"))


ROW = json.dumps({"who": SECRET, "where": "north", "what": 1, "amount": 1})
BAD_ARRAYS = {
    "no end": f"[{ROW}",
    "open object": f"[{ROW}, {ROW[:-1]}",
    "open text": f"[{ROW}, {ROW[:-3]}",
    "no comma": f"[{ROW} {ROW}]",
    "two commas": f"[{ROW},, {ROW}]",
    "comma at the end": f"[{ROW},]",
    "comma first": f"[,{ROW}]",
    "numbers": f"[{ROW}, 5]",
    "null": f"[null, {ROW}]",
    "arrays": f"[[{ROW}]]",
    "text behind it": f"[{ROW}] x",
    "two arrays": f"[{ROW}][{ROW}]",
    "wrong brackets": f"[{ROW}, {{]",
    "no JSON": f"[{ROW}, {{who: 1}}]",
    "closing the wrong one": f'[{ROW}, {{"a": [1}}}}]',
    "two objects": f"{ROW}{ROW}",
    "an object over lines": ROW.replace(",", ",\n"),
    "text": '"x"',
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
@pytest.mark.parametrize("chunk", [1, 4 << 20])
def test_json_that_is_no_array_of_objects_is_refused(name, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
    (tmp_path / "e.json").write_text(BAD_ARRAYS[name])
    with pytest.raises(al.InputError) as caught:
        sums(tmp_path / "e.json")
    assert SECRET not in str(caught.value)


def test_a_long_object_of_an_array_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 1000)
    row = {"who": "p", "where": "north", "what": 1, "amount": 1}
    (tmp_path / "e.json").write_text(json.dumps([{**row, "note": "x" * 2000}, row]))
    assert sums(tmp_path / "e.json")[0][1] == 1


def rows_of_array(text, chunk, folder, monkeypatch):
    monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
    (folder / "e.json").write_bytes(text)
    batches = text_files.lines(EventFile(str(folder / "e.json"), "json"), {})
    return [json.loads(line) for batch in batches for line in batch.column(0).to_pylist() if line.strip()]


def test_every_border_of_an_array(tmp_path, monkeypatch):
    rows = [{"a": '"\\}]'}, {}, {"b": [[{}], "]", {"c": "[{"}]}, {"\\": '\\\\"'}]
    text = json.dumps(rows).encode()
    for chunk in range(1, len(text) + 2):
        assert rows_of_array(text, chunk, tmp_path, monkeypatch) == rows


LAZY = {
    "polars.LazyFrame": lambda _: pl.from_arrow(EVENTS).lazy(),
    "polars.scan_parquet": lambda folder: pl.scan_parquet(folder / "e.parquet"),
    "polars.DataFrame": lambda _: pl.from_arrow(EVENTS),
    "dataset": lambda folder: ds.dataset(folder / "e.parquet"),
    "dataset in memory": lambda _: ds.dataset(EVENTS),
    "union": lambda folder: ds.dataset([ds.dataset(folder / "e.parquet"), ds.dataset(EVENTS.slice(0, 0))]),
    "relation": lambda _: duckdb.connect().from_arrow(EVENTS),
    "relation of a query": lambda folder: duckdb.connect().sql(
        f"SELECT *, 1 AS other FROM '{folder}/e.parquet'"
    ),
}


@pytest.mark.parametrize("name", LAZY)
def test_tables_that_somebody_else_reads(name, tmp_path, expected):
    pq.write_table(EVENTS, tmp_path / "e.parquet")
    assert sums(LAZY[name](tmp_path)) == expected
    assert sources.size_of(LAZY[name](tmp_path))[1] == "rows"
    with pytest.raises(KeyError, match="person: no column"):
        sums(LAZY[name](tmp_path), EventColumns("nobody", "what", "where", "amount"))


def test_a_dataset_shows_the_columns_of_its_schema_and_other_tables_no_first_line_of_a_text(tmp_path):
    pq.write_table(EVENTS, tmp_path / "e.parquet")
    (tmp_path / "e.csv").write_text(f"{SECRET},x\np,y\n")  # without a header
    nobody = EventColumns("nobody", "what")
    typed = pl.scan_parquet(tmp_path / "e.parquet")
    with pytest.raises(KeyError, match="'who', 'where', 'what', 'amount'"):
        sums(ds.dataset(tmp_path / "e.parquet"), nobody)
    text = pl.scan_csv(tmp_path / "e.csv")
    for source in (text, text.collect(), text.collect().lazy(), pl.concat([typed, text], how="horizontal")):
        with pytest.raises(KeyError) as caught:
            sums(source, nobody)
        assert SECRET not in str(caught.value)


def test_a_lazy_table_of_a_file_that_is_not_there(tmp_path):
    for scan in (pl.scan_parquet, pl.scan_csv):
        with pytest.raises(FileNotFoundError, match="missing"):
            sums(scan(tmp_path / "nothing"))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_dataset_of_text_is_refused(kind, tmp_path):
    # pyarrow guesses types from the first rows, and cuts text in chunks
    write_csv(EVENTS, tmp_path / "e.csv")
    write_json(EVENTS, tmp_path / "e.json")
    text = ds.dataset(tmp_path / f"e.{kind}", format=kind)
    for dataset in (text, ds.dataset([text, text])):
        with pytest.raises(al.ParameterError, match="pass the paths"):
            sums(dataset)


def test_an_error_of_a_lazy_table_shows_no_data():
    source = duckdb.connect().sql(
        f"SELECT CASE WHEN i > 5 THEN error('{SECRET}') ELSE 'p' END AS who, 'north' AS where, 1 AS what, 1 AS amount FROM range(9) t(i)"
    )
    with pytest.raises(al.InputError) as caught:
        sums(source)
    assert SECRET not in str(caught.value)


class Pipe(io.BytesIO):
    """Bytes that arrive a few at a time, and cannot be read twice."""

    def read1(self, size=-1):
        return super().read1(min(size, 11))

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "json"])
def test_standard_input(form, tmp_path, monkeypatch, expected):
    if form == "json":
        data = json.dumps(EVENTS.to_pylist()).encode()
    else:
        path = tmp_path / f"e.{form}"
        WRITERS[form.removesuffix(".gz")](EVENTS, path)
        data = path.read_bytes()
    for chunk in (3, 4 << 20):
        monkeypatch.setattr(text_files, "_BYTES_AT_ONCE", chunk)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(data)))
        source = al.Source("-", format=form)
        assert sums(source) == expected
        if "json" in form:  # it is used up, and a file without an object has no events
            assert not np.any(sums(source))
        else:
            with pytest.raises(al.InputError):
                sums(source)


def test_standard_input_needs_a_format_and_one_reader(monkeypatch):
    for source in ("-", al.Source("-", format="parquet")):
        with pytest.raises(al.ParameterError, match="format='csv'"):
            sums(source)
    with pytest.raises(al.ParameterError, match="listed twice"):
        sums(al.Source(["-", "-"], format="csv"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(al.InputError, match="has none"):
        sums(al.Source("-", format="csv"))


def test_columns_of_numbers_in_partitions_and_text_are_left_out_value_by_value(tmp_path):
    for value in ("3", "x", "4.5"):
        place = tmp_path / f"what={value}"
        place.mkdir()
        pq.write_table(pa.table({"who": [value], "where": ["north"], "amount": [1]}), place / "e.parquet")
    assert sums(tmp_path)[0] == [0, 0, 0, 1, *[0] * 8]


@pytest.mark.parametrize(
    "address",
    ["https://host/e.csv", "s3a://b/e.csv", "mysql://host/db"],
)
def test_addresses_that_cannot_be_read_say_which_can(address):
    with pytest.raises(al.ParameterError, match=r"s3://.*file://.*sqlite:.*postgresql:"):
        sums(address)


def test_a_file_address_is_the_file(tmp_path, expected):
    write_csv(EVENTS, tmp_path / "e f.csv")
    assert sums((tmp_path / "e f.csv").as_uri()) == expected
    assert sums(tmp_path.as_uri()) == expected


def store(tmp_path):
    """A folder as a store that only Arrow can read."""
    return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())


@pytest.mark.parametrize("kind", WRITERS)
def test_files_in_a_store(kind, tmp_path, monkeypatch, expected):
    write_partitions(EVENTS, tmp_path / "visits", kind)
    monkeypatch.setattr(sources, "_filesystem", lambda uri: (store(tmp_path), uri.split("bucket/")[1]))
    assert sums("s3://bucket/visits") == expected
    assert sums(f"s3://bucket/visits/**/*.{kind}") == expected
    assert sources.size_of("s3://bucket/visits")[0] > 0
    with pytest.raises(FileNotFoundError, match="no such file"):
        sums("s3://bucket/nothing.csv")
    with pytest.raises(al.ParameterError, match="listed twice"):
        sums(["s3://bucket/visits", "s3://bucket/visits"])


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_files_in_s3(kind, tmp_path, monkeypatch, expected):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    write_partitions(EVENTS, tmp_path / "visits", kind)
    WRITERS[kind](EVENTS, tmp_path / f"all.{kind}")
    with object_store(tmp_path) as options:
        assert sums(f"s3://bucket/all.{kind}?{options}") == expected
        assert sums(f"s3://bucket/visits?{options}") == expected
        assert sums(f"s3://bucket/visits/where=*/*.{kind}?{options}") == expected
        with pytest.raises(FileNotFoundError, match="no such file"):
            sums(f"s3://bucket/nothing.{kind}?{options}")


def test_a_store_that_refuses_gets_one_line_without_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with object_store(tmp_path, denied=True) as options, pytest.raises(al.ArmslengthError) as caught:
        sums(f"s3://key:{SECRET}@bucket/all.csv?{options}")
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_google_gives_up_and_a_signal_ends_the_wait_before(monkeypatch):
    address = "gs://anonymous@bucket/visits?scheme=http&endpoint_override=127.0.0.1:1"
    with pytest.raises(al.InputError, match="cannot open the gs://"):
        sums(f"{address}&retry_limit_seconds=1")
    addresses = []

    def refuse(uri):
        addresses.append(uri)
        raise OSError

    monkeypatch.setattr(sources, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=refuse)))
    for uri in (address, "gcs://bucket/visits", "gs://bucket/visits?retry_limit_seconds=7"):
        with pytest.raises(al.InputError, match="cannot open the"):
            sums(uri)
    assert [uri.count("retry_limit_seconds=") for uri in addresses] == [1, 1, 1]
    command = f"""if True:
        import signal
        import armslength.ingest.sources as sources
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores for what runs in its background
        print("ready", flush=True)
        sources.event_files({f"{address}&retry_limit_seconds=600"!r})"""
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
        finally:
            process.kill()


@pytest.mark.parametrize(
    "address",
    ["abfs://container@account.dfs.core.windows.net/visits", "hdfs://host.invalid:9000/visits"],
)
def test_stores_without_credentials(address, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")  # which are none
    with pytest.raises(al.InputError, match="cannot open the"):
        sums(address)
