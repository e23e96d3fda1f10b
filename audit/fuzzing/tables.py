"""Event tables: CSV, JSON, Parquet, Arrow and SQLite files of any bytes, packed and in other encodings; lists of names in a file.

To start the engine takes ten times as long as to read a small file. So files are read in three depths: their names alone, their events
through an engine that stays, and a whole release.
"""

import gzip
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from io import BytesIO
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import armslength as al
from armslength.cli.options import name_list
from armslength.ingest import engine
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.parquet_texts import ParquetTexts
from armslength.ingest.partitions import memory_bytes
from armslength.ingest.relations import Parser, check_names, keys_of_first_object, own_names, relations_of
from armslength.ingest.sources import event_files
from armslength.ingest.text_files import BytesRead
from audit.fuzzing.mutate import Mutator, change_bytes, change_json, change_parquet
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import folder, written

_CSV = b'person,item,group,weight\n1,a,north,2\n"2","b ""c""",south,1\n,x,north,\n'
_JSON = b'{"person": 1, "item": "a", "group": "north", "weight": 2}\n{"person": "2", "item": "b", "group": null, "weight": 1}\n'

_ARRAY = b'[{"person": 1, "item": "a}]", "group": "north", "weight": 2},\n {"person": 5.0, "item": "\\"b", "group": null, "weight": [{}]}]\n'
_SQL = 'CREATE TABLE "visits" ("person", "item", "group", "weight")'

_COLUMNS = EventColumns("person", "item", "group", "weight")
_GROUPS = ["north", "south"]
_MEMORY = "64MB"


@cache
def _protocol() -> al.Protocol:
    return al.Protocol(
        al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit="one patient"
    )


@cache
def _votes() -> al.Protocol:
    """The same of people who vote, with all that votes release."""
    return al.Protocol(
        al.SparseJL(sketch_dim=8, sparsity=2, seed="x"),
        al.Votes(
            total_share="0.1",
            item_groups=al.ItemGroups({"prefix": ["a", "b"], "group": ["A", "B"]}, share="0.3", limit=1),
        ),
        epsilon=1,
        unit="one patient",
    )


def _table() -> pa.Table:
    return pa.table(
        {
            "person": [1, 2, None],
            "item": ["a", "b", "c"],
            "group": ["north", "south", None],
            "weight": [1.0, 2.0, 0.0],
        }
    )


def _parquet() -> list[bytes]:
    made = []
    for options in ({}, {"compression": "zstd", "use_dictionary": False}, {"data_page_version": "2.0"}):
        file = BytesIO()
        pq.write_table(_table(), file, **options)
        made.append(file.getvalue())
    return made


def _parquet_texts() -> list[bytes]:
    """Files that are read without the engine."""
    table = _table().drop_columns("weight")
    texts = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    made = []
    for options in ({}, {"use_dictionary": False, "row_group_size": 2}, {"compression": "zstd"}):
        file = BytesIO()
        pq.write_table(texts, file, **options)
        made.append(file.getvalue())
    return made


def _arrow() -> list[bytes]:
    made = []
    encoded = _table().set_column(1, "item", _table().column("item").dictionary_encode())
    for table in (_table(), encoded):
        file = BytesIO()
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        made.append(file.getvalue())
    return made


def _sqlite() -> list[bytes]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(_SQL)
        rows = [(1, "a", "north", 2), ("2.0", "b", b"south", 1.5), (None, 5, "north", "x")]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
        connection.commit()
        return [connection.serialize()]


def _utf16() -> list[bytes]:
    return [_CSV.decode().encode("utf-16")]


def _packed() -> list[bytes]:
    return [gzip.compress(_CSV, 1, mtime=0)]


def _source(name: str, data: bytes) -> Any:
    """The file of these bytes, with what its name does not say."""
    path = written(name, data)
    if name.endswith(".db"):
        return al.Source(f"sqlite:///{path}", table="visits")
    return al.Source(path, encoding="utf-16") if name == "utf16.csv" else path


def _released(name: str, data: bytes) -> str:
    """A release of amounts, or of votes where the last byte is even."""
    is_vote = bool(data) and data[-1] % 2 == 0
    sketches = al.release(
        _votes() if is_vote else _protocol(),
        _source(name, data),
        person="person",
        item="item",
        group="group",
        weight=None if is_vote else "weight",
        public_groups=_GROUPS,
        ledger=al.NO_LEDGER,
        memory=_MEMORY,
        threads=1,
    )
    if sketches.labels != tuple(_GROUPS):
        raise Finding("the rows of a release depend on the data")
    return "accepted"


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    config: dict[str, Any] = {**engine._SETTINGS, "memory_limit": _MEMORY, "threads": 1}
    return duckdb.connect(":memory:", config=config)


def _connection() -> duckdb.DuckDBPyConnection:
    """The engine that stays; a new one where an input before this one has put it out of use, which we refused in our words."""
    try:
        _engine().execute("SELECT 1").fetchall()
    except duckdb.Error:
        _engine.cache_clear()
    return _engine()


class _JobOfEngine(TableJob):
    """What a release counts, read by an engine that is there already."""

    @contextmanager
    def opened(self) -> Iterator[engine.EventTable]:
        """The source, after a look at its schema alone."""
        problems: list[BaseException] = []
        read = BytesRead()
        with engine._our_errors(problems):
            files = event_files(self.source)
            parser = Parser(memory_bytes(self.memory), self.threads)
            relations = relations_of(_connection(), self.source, files, self.columns, problems, read, parser)
        selects = [engine._select(each, self.protocol, by_number=False) for each in relations]
        yield engine.EventTable(_connection(), selects, problems, read)


def _summed(name: str, data: bytes) -> str:
    """All of a release but its noise: the events are read, bounded and summed; as amounts, or as votes where the last byte is even."""
    groups, is_vote = public_groups_of("group", _GROUPS, None), bool(data) and data[-1] % 2 == 0
    protocol, columns = (_votes(), replace(_COLUMNS, weight=None)) if is_vote else (_protocol(), _COLUMNS)
    job = _JobOfEngine.of(_source(name, data), protocol, columns, groups, memory=_MEMORY, threads=1)
    if job.sums(bytes(KEY_BYTES)).values.shape != (len(_GROUPS), 8):
        raise Finding("events were read, and there is no sum for each group")
    return "accepted"


def _summed_texts(data: bytes) -> str:
    """The same of a Parquet file of text, which is read without the engine; one that no longer is text is left to it."""
    groups, columns = public_groups_of("group", _GROUPS, None), EventColumns("person", "item", "group")
    source = written("texts.parquet", data)
    texts = ParquetTexts.of(event_files(source), columns.named)
    reader = _JobOfEngine if texts is None else TableJob
    job = reader.of(source, _votes(), columns, groups, memory=_MEMORY, threads=1)
    if job.sums(bytes(KEY_BYTES)).values.shape != (len(_GROUPS), 8):
        raise Finding("events were read, and there is no sum for each group")
    return "accepted"


def _read_header(data: bytes) -> str:
    """The first line as one of CSV and as one of JSON; it is accepted if both or the latter are."""
    for name in ("events.csv", "events.json"):
        for file in event_files(written(name, data)) or []:
            if file.kind == "json":
                keys_of_first_object(_connection(), file)
                continue
            with suppress(al.InputError):
                own_names(file)
    return "accepted"


def _read_schema(name: str, data: bytes) -> str:
    """The names of a file that has a schema, held against those that there must be."""
    for file in event_files(written(name, data)) or []:
        with engine._our_errors([]):
            check_names(_COLUMNS.named, own_names(file), file.name, has_schema=True)
    return "accepted"


def _read_names(data: bytes) -> str:
    names = name_list(f"@{written('names.txt', data)}")
    public_groups_of("group", names, None)
    protocol = al.Protocol(
        al.SparseJL(input_dim=len(names), sketch_dim=8, sparsity=2, seed="x"), epsilon=1, vocabulary=names
    )
    if protocol.vocabulary is None or (folder() / "names.txt").read_bytes() != data:
        raise Finding("a vocabulary was lost")
    return "accepted"


def _change_lines(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    lines[place] = change_json(lines[place], random)
    return b"\n".join(lines)


def _names() -> list[bytes]:
    return [b"north\nsouth\n", "\ufeffnorth\r\nsüd\n\n".encode()]


_FILES: tuple[tuple[str, str, Callable[[], list[bytes]], Mutator], ...] = (
    ("CSV", "events.csv", lambda: [_CSV], change_bytes),
    ("JSON-lines", "events.jsonl", lambda: [_JSON], _change_lines),
    ("JSON-array", "events.json", lambda: [_ARRAY], change_json),
    ("UTF-16", "utf16.csv", _utf16, change_bytes),
    ("packed", "events.csv.gz", _packed, change_bytes),
    ("SQLite", "events.db", _sqlite, change_bytes),
    ("Parquet", "events.parquet", _parquet, change_parquet),
    ("Arrow", "events.arrow", _arrow, change_bytes),
)
TARGETS = (
    Target(
        "tables", "first line of CSV and JSON", lambda: [_JSON, _ARRAY], _read_header, change_bytes, 60_000
    ),
    *(
        Target("tables", f"{kind} schema", seeds, partial(_read_schema, name), change, 20_000)
        for kind, name, seeds, change in _FILES[-2:]
    ),
    *(
        Target("tables", f"{kind} events", seeds, partial(_summed, name), change, 8_000)
        for kind, name, seeds, change in _FILES
    ),
    Target("tables", "Parquet texts", _parquet_texts, _summed_texts, change_parquet, 20_000),
    *(
        Target("tables", f"{kind} table", seeds, partial(_released, name), change, 1_000)
        for kind, name, seeds, change in _FILES
    ),
    Target("names", "lists of names", _names, _read_names, change_bytes, 60_000),
)
