"""Event tables, in memory and in files, that hold canaries and are wrong in every way that a release can refuse."""

import gzip
import json
import sqlite3
from contextlib import closing

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import armslength as al
from hostile_data.canaries import BYTES, DAY, HUGE, INTEGER, NOT_WHOLE, OTHER_TEXT, REAL, TEXT
from hostile_data.matrices import FailingStream, broken_text

_ROW = {"who": TEXT, "what": OTHER_TEXT, "where": TEXT, "much": INTEGER}
_PLAIN = {"who": ["a"], "what": ["a"], "where": ["a"], "much": [1]}
_VALUES = {
    "text": TEXT,
    "an integer": INTEGER,
    "a float": REAL,
    "a decimal": NOT_WHOLE,
    "a date": DAY,
    "bytes": BYTES,
    "a list": [TEXT],
    "a struct": {TEXT: INTEGER},
    "structs": [{TEXT: INTEGER}],
    "nan": float("nan"),
    "a large float": REAL * 1e20,
    "an odd integer": INTEGER,
    "nothing": None,
    "true": True,
    "odd characters": f"{TEXT}\u0378",
}
_JSON = {**_VALUES, "a huge integer": HUGE}
_TEXTS = {
    "no header": f"{TEXT},{OTHER_TEXT}\n",
    "no header, a near name": f"who{INTEGER},what7,where7,{INTEGER}\n",
    "ragged": f"who,what,where,much\n{TEXT},b\n",
    "an open quote": f'who,what,where,much\n"{TEXT},b,c,1\n',
    "a name twice": f"who,Who,what,where,much\n{TEXT},a,b,c,1\n",
    "no number": f"who,what,where,much\na,{TEXT},c,{OTHER_TEXT}\n",
    "off the grid": f"who,what,where,much\na,1,c,{REAL}\n",
    "nothing": "",
    "a blank line": f"\n{TEXT}\n",
}
_LINES = {
    "another key": {TEXT: INTEGER},
    "a list": [TEXT],
    "a number": INTEGER,
    "a capital": {"Who": TEXT, **_ROW},
}


def in_memory():
    """(name, source): every value in the place of each column, and what is no table."""
    found = {
        f"{name} for {column}": pa.table({**_PLAIN, column: [value]})
        for name, value in _VALUES.items()
        for column in ("who", "what", "much")
    }
    found |= {
        "a list of rows": [(TEXT, OTHER_TEXT)],
        "a list of dicts": [{"who": TEXT}],
        "a dict": {"who": [TEXT]},
        "an integer": INTEGER,
        "bytes": BYTES,
        "text": f"who,what\n{TEXT},{OTHER_TEXT}",
        "a lot of text": f"who,what\n{TEXT},{OTHER_TEXT}\n" * 500,
        "JSON": json.dumps(_ROW),
        "a name with a zero": "\0events.csv",
        "an array": pd.DataFrame([_ROW]).to_numpy(),
        "a lazy frame": pl.LazyFrame([_ROW]),
        "a failing stream": FailingStream(),
        "mixed objects": pd.DataFrame({"who": [TEXT, INTEGER], "what": ["a", "b"]}),
        "a frame that begins with data": pd.DataFrame({TEXT: ["a"], OTHER_TEXT: ["b"]}),
        "categories": pd.DataFrame([_ROW]).astype("category"),
        "enumerated": pl.DataFrame([_ROW]).cast({"what": pl.Enum([OTHER_TEXT]), "who": pl.Categorical}),
        "text that is none": pa.table({**_PLAIN, "who": broken_text()}),
        "typed JSON for what": pa.table(
            {**_PLAIN, "what": pa.ExtensionArray.from_storage(pa.json_(), pa.array([TEXT]))}
        ),
        "half floats for what": pa.table({**_PLAIN, "what": pa.array([REAL], pa.float16())}),
        "a capital": pa.table({"Who": [TEXT], "what": ["a"]}),
        "a name twice": pa.table([[TEXT], ["a"], ["b"]], names=["who", "who", "what"]),
        "metadata": pa.table({key: [value] for key, value in _ROW.items()}).replace_schema_metadata(
            {b"pandas": TEXT.encode()}
        ),
    }
    return list(found.items())


def in_files(folder):
    """(name, path): files of every kind, written into the folder under plain names."""
    found = {}

    def path(name, ending):
        found[f"{name}.{ending}"] = place = folder / f"events{len(found)}.{ending}"
        return place

    for name, text in _TEXTS.items():
        path(name, "csv").write_text(text, encoding="utf-8")
    path("semicolons and no header", "csv").write_text(f"{TEXT};{TEXT}\n", encoding="utf-8")
    path("no header", "tsv").write_text(f"{TEXT}\t{INTEGER}\n", encoding="utf-8")
    path("no text", "csv").write_bytes(b"who,what,where,much\n" + BYTES + b",b,c,1\n")
    path("no text at first", "csv").write_bytes(BYTES)
    path("cut off", "csv.gz").write_bytes(gzip.compress(f"who,what\n{TEXT},b".encode())[:-9])
    path("not zipped", "csv.gz").write_text(f"who,what\n{TEXT},b\n", encoding="utf-8")
    for name, value in _LINES.items():
        path(name, "jsonl").write_text(json.dumps(value) + "\n", encoding="utf-8")
    for column in ("who", "what", "much"):
        for name, value in _JSON.items():
            row = {**{key: plain for key, (plain,) in _PLAIN.items()}, column: value}
            path(f"{name} for {column}", "jsonl").write_text(json.dumps(row, default=str), encoding="utf-8")
    path("cut off", "jsonl").write_text(json.dumps(_ROW) + f'\n{{"who": "{TEXT}', encoding="utf-8")
    path("deep", "jsonl").write_text('{"who": ' + "[" * 10_000 + f'"{TEXT}"', encoding="utf-8")
    for name, end in {
        "cut off": "",
        "more than objects": f", {INTEGER}]",
        "more behind it": f'] "{TEXT}"',
    }.items():
        path(name, "json").write_text(f"[{json.dumps(_ROW)}{end}", encoding="utf-8")
    path("no header", "txt").write_text(f"{TEXT}|{OTHER_TEXT}\n", encoding="utf-8")
    found["bars and no header"] = al.Source(found["no header.txt"], delimiter="|")
    path("no UTF-16", "csv").write_bytes(b"\xff\xfew\0" + BYTES + b"\xd8")
    found["no UTF-16"] = al.Source(found["no UTF-16.csv"], encoding="utf-16")
    path("a database", "db").write_text(TEXT, encoding="utf-8")
    found["a database"] = al.Source(f"sqlite:///{found.pop('a database.db')}", table="visits")
    with closing(sqlite3.connect(folder / "visits.db")) as connection, connection:
        connection.execute("CREATE TABLE visits (who, what, 'where', much)")
        connection.execute("INSERT INTO visits VALUES (?, ?, ?, ?)", (TEXT, OTHER_TEXT, BYTES, REAL))
    for query in ("SELECT * FROM nothing", "SELECT who FROM visits", "SELECT *, abs(json(who)) FROM visits"):
        found[query] = al.Source(f"sqlite:///{folder}/visits.db", query=query)
    for ending in ("parquet", "arrow", "feather"):
        path("other bytes", ending).write_bytes(BYTES + TEXT.encode())
    table = pa.table({key: [value] for key, value in _ROW.items()})
    for name, column in {"a struct": {TEXT: INTEGER}, "a date": DAY, "bytes": BYTES, "a float": REAL}.items():
        pq.write_table(table.set_column(0, "who", [[column]]), path(name, "parquet"))
        feather.write_feather(table.set_column(1, "what", [[column]]), path(name, "arrow"))
    whole = path("cut off", "parquet")
    pq.write_table(table, whole)
    whole.write_bytes(whole.read_bytes()[:-40])
    pq.write_table(pa.table({**_PLAIN, "who": broken_text()}), path("text that is none", "parquet"))
    pq.write_table(table.rename_columns(["WHO", "Who", "what", "much"]), path("names alike", "parquet"))
    return list(found.items())
