"""Event tables: CSV, JSON lines, Parquet and Arrow files of any bytes; lists of names in a file."""

from io import BytesIO
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

import armslength as al
from armslength.cli.parameter_types import NameList
from armslength.tables.groups import public_groups_of
from armslength.tables.sources import event_files, own_names
from audit.fuzzing.mutate import change_bytes, change_json, change_parquet
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import folder, written

_CSV = b'person,item,group,weight\n1,a,north,2\n"2","b ""c""",south,1\n,x,north,\n'
_JSON = b'{"person": 1, "item": "a", "group": "north", "weight": 2}\n{"person": "2", "item": "b", "group": null, "weight": 1}\n'


def _protocol() -> al.Protocol:
    return al.Protocol(al.SparseJL(None, 8, 2, "x"), 1, unit="one patient", contribution=2)


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


def _arrow() -> list[bytes]:
    made = []
    encoded = _table().set_column(1, "item", _table().column("item").dictionary_encode())
    for table in (_table(), encoded):
        file = BytesIO()
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        made.append(file.getvalue())
    return made


def _released(name: str, data: bytes) -> str:
    sketches = al.release_table(
        written(name, data),
        _protocol(),
        person="person",
        item="item",
        group="group",
        weight="weight",
        public_groups=["north", "south"],
        ledger=al.NO_LEDGER,
        memory="64MB",
        threads=1,
    )
    if sketches.labels != ("north", "south"):
        raise Finding("the rows of a release depend on the data")
    return "accepted"


def _read_header(data: bytes) -> str:
    for name in ("events.csv", "events.jsonl"):
        for file in event_files(written(name, data)) or []:
            try:
                own_names(file)
            except al.InputError:
                if name == "events.jsonl":
                    raise
    return "accepted"


def _read_names(data: bytes) -> str:
    names = NameList().convert(f"@{written('names.txt', data)}", None, None)
    public_groups_of("group", names, None)
    protocol = al.Protocol(al.SparseJL(len(names), 8, 2, "x"), 1, vocabulary=names)
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


TARGETS = (
    Target("first line of CSV and JSON", lambda: [_JSON], _read_header, change_bytes, 200_000),
    Target("lists of names", _names, _read_names, change_bytes, 350_000),
    Target("CSV table", lambda: [_CSV], lambda data: _released("events.csv", data), change_bytes, 1_000),
    Target(
        "JSON-lines table",
        lambda: [_JSON],
        lambda data: _released("events.jsonl", data),
        _change_lines,
        1_000,
    ),
    Target("Parquet table", _parquet, lambda data: _released("events.parquet", data), change_parquet, 1_000),
    Target("Arrow table", _arrow, lambda data: _released("events.arrow", data), change_bytes, 1_000),
)
