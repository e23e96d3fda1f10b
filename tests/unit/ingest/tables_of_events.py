"""Event tables that tests share: hard cases, as lists, and written in every kind of file."""

import gzip
import json
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import armslength as al
from flat_protocol import flat_protocol

GROUPS = ["north", "south", "empty", "east"]
KEY = bytes(range(32))
ITEMS = 12
SECRET = "zq-secret-zq"  # noqa: S105  # a value that no message may show
# noise that is 0 almost surely: e^(-1000) a coordinate
EXACT = al.Protocol(al.SparseJL(sketch_dim=32, seed="t"), al.Counts(1), epsilon=1000, unit="one person")


def random_events(seed, *, weighted):
    """Persons with one row and with hundreds, in several groups, with repeated rows; some rows lack something."""
    draw = random.Random(seed)  # noqa: S311  # generated events
    events = []
    for number in range(60):
        person = f"p{number}"
        for _ in range(draw.choice([1, 1, 2, 5, 20, 300 if number < 2 else 3])):
            amount = draw.choice([-7, -1, 0, 1, 1, 2, 50]) if weighted else 1
            events.append(
                (person, draw.choice([*GROUPS[:2], "east", "unlisted"]), draw.randrange(ITEMS), amount)
            )
    events += [(None, "north", 3, 1), ("", "north", 3, 1), ("p1", "north", None, 1), ("p2", None, 4, 1)] * 3
    draw.shuffle(events)
    return events


def counting_protocol(contribution=5, epsilon=1, **known):
    """A protocol under which exact integers are amounts, or votes in grid units: column numbers, no projection."""
    return flat_protocol(
        al.Identity(input_dim=ITEMS),
        epsilon=epsilon,
        contribution=contribution,
        unit="one person",
        items="int64",
        **known,
    )


def as_table(events, *, text_items=False):
    """An Arrow table with the columns who, where, what, amount."""
    person, group, item, amount = zip(*events, strict=True)
    items = (
        pa.array([None if i is None else f"i{i}" for i in item], pa.string())
        if text_items
        else pa.array(item, pa.int64())
    )
    return pa.table(
        {
            "who": pa.array(person, pa.string()),
            "where": pa.array(group, pa.string()),
            "what": items,
            "amount": pa.array(amount, pa.int64()),
        }
    )


def write_csv(table, path, separator=","):
    """As text; missing values are empty fields."""
    lines = [separator.join(table.schema.names)]
    lines += [separator.join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_json(table, path):
    """One object for each row; missing values are null, or absent."""
    rows = [
        {key: value for key, value in row.items() if value is not None or number % 2}
        for number, row in enumerate(table.to_pylist())
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def in_every_form(table, folder):
    """The same table in every form that is read, by name."""
    pq.write_table(table, folder / "e.parquet", row_group_size=50)
    write_csv(table, folder / "e.csv")
    write_csv(table, folder / "e.csv.gz")
    write_csv(table, folder / "e.tsv", "\t")
    write_json(table, folder / "e.jsonl")
    write_json(table, folder / "e.ndjson.gz")
    feather.write_feather(table, folder / "e.arrow")
    dictionary = table.set_column(0, "who", table.column("who").dictionary_encode())
    forms = {path.name: path for path in sorted(folder.iterdir())}
    return {
        **forms,
        "arrow table": table,
        "dictionaries": dictionary,
        "reader": table.to_reader(max_chunksize=7),
        "pandas": table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
        "polars": pl.from_arrow(table),
        "list of files": [folder / "e.parquet"],
    }


def dense_counts(counts):
    """Counts by (group, item) as a matrix."""
    matrix = np.zeros((len(GROUPS), ITEMS), dtype=np.int64)
    for (group, item), count in counts.items():
        matrix[GROUPS.index(group), item] = count
    return matrix


def release(source, protocol=EXACT, **known):
    arguments = {
        "person": "who",
        "item": "what",
        "group": "where",
        "public_groups": GROUPS,
        "ledger": al.NO_LEDGER,
        **known,
    }
    return al.release(protocol, source, **arguments)


def table(rows):
    return as_table(rows, text_items=True)
