"""Sketch files: any bytes, the Parquet footer and page headers, the head, the digests, and the columns.

Heads and columns come with the digests of what they hold, so that what lies behind the digests is reached.
"""

import json
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import armslength as al
from armslength.sketches.parquet_footer import as_corrupt_file, read_row_groups, unpacked_bytes
from armslength.sketches.sketch_format import DIGEST_KEY, KEY, NOISE_TYPE, read_header
from audit.fuzzing.fitted import array_of, is_foreign
from audit.fuzzing.mutate import change_bytes, change_json, change_parquet
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import LIMIT, folder, small_matrices, written
from costly import document_of
from golden.write_files import FOLDER as GOLDEN
from sealed import write_sealed

_TYPES = {
    "label": pa.string(),
    "values": pa.list_(pa.field("element", pa.int64(), nullable=False), 8),
    "noise": NOISE_TYPE,
    "in_clear": pa.bool_(),
}


@cache
def _sketches() -> tuple[Any, ...]:
    transform, data = (
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        np.arange(18).reshape(3, 6),
    )
    plain = al.Protocol(transform, al.Counts(2), epsilon=1, unit="one patient")
    totals = al.Protocol(transform, al.Arrays(total_share="0.25"), epsilon=1)
    noisy = al.Protocol(transform, epsilon="0.001")
    one, two, three = (
        al.release(each, data, ledger=al.NO_LEDGER, labels=["a", "b", "c"]) for each in (plain, totals, noisy)
    )
    return one, two, three, al.concat([one, two]), one - 0.5 * two, two[0:0]


@cache
def _files() -> list[bytes]:
    made = []
    for sketches in _sketches():
        sketches.save(folder() / "seed.parquet")
        made.append((folder() / "seed.parquet").read_bytes())
    return made + [path.read_bytes() for path in sorted(GOLDEN.glob("sketches-v4*.parquet"))]


def _read(data: bytes) -> str:
    path = written("sketches.parquet", data)
    with small_matrices():
        loaded = al.load(path, limit=LIMIT)
    loaded.save(folder() / "again.parquet")
    _check_same(loaded, al.load(folder() / "again.parquet"))
    return "accepted"


def _check_same(one: Any, other: Any) -> None:
    if not one.equals(other) or one.releases != other.releases:
        raise Finding("sketches that were accepted are others when they are read again")


def _read_footer(data: bytes) -> str:
    file = BytesIO(data)
    with as_corrupt_file("a file"):
        for group in read_row_groups(file):
            for column in group.columns:
                unpacked_bytes(file, column)
    return "accepted"


@cache
def _table() -> pa.Table:
    return pq.read_table(BytesIO(_files()[0]))


def _heads() -> list[bytes]:
    return [pq.read_schema(BytesIO(data)).metadata[KEY] for data in _files()[:2]]


def _costly_heads() -> list[bytes]:
    """Heads whose protocols ask for too much: one that is large, and several that are small."""
    head = json.loads(_heads()[0])
    large = [document_of("GaussianJL", times=1)]
    many = [
        al.Protocol(
            al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
            epsilon=1,
            delta=1e-6,
            noise="gaussian",
        ).document()
    ] * 4
    return [json.dumps({**head, "protocols": protocols}).encode() for protocols in (large, many)]


def _read_head(data: bytes) -> str:
    with as_corrupt_file("a file"), small_matrices():
        read_header(data, "a file")
    return "accepted"


def _read_file_with_head(data: bytes) -> str:
    file = BytesIO()
    write_sealed(_table(), file, head=data, use_dictionary=False, write_statistics=False)
    return _read(file.getvalue())


def _digests() -> list[bytes]:
    return [pq.read_schema(BytesIO(data)).metadata[DIGEST_KEY] for data in _files()[:1]]


def _read_digests(data: bytes) -> str:
    metadata = {**_table().schema.metadata, DIGEST_KEY: data}
    file = BytesIO()
    pq.write_table(
        _table().replace_schema_metadata(metadata), file, use_dictionary=False, write_statistics=False
    )
    return _read(file.getvalue())


@cache
def _columns() -> list[bytes]:
    """The columns of a file as JSON; ids as text."""
    rows = _table().to_pydict()
    rows["noise"] = [[{**term, "id": term["id"].hex()} for term in row] for row in rows["noise"]]
    return [json.dumps(rows).encode()]


def _read_columns(data: bytes) -> str:
    """The file that has these columns, with the metadata of a valid one; nearly all fit their types, the others are of some type."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        return "no columns"
    if not isinstance(rows, dict) or not rows:
        return "no columns"
    listed = {name: values if isinstance(values, list) else [values] for name, values in rows.items()}
    count = max(map(len, listed.values()))
    foreign = is_foreign(data) and data not in _columns()
    columns = {
        name.encode(errors="replace").decode(): array_of(
            values + [None] * (count - len(values)), None if foreign else _TYPES.get(name)
        )
        for name, values in listed.items()
    }
    file = BytesIO()
    table = pa.table(columns).replace_schema_metadata(_table().schema.metadata)
    try:
        write_sealed(table, file, use_dictionary=False, write_statistics=False)
    except pa.ArrowException:  # columns that no Parquet file can have, such as structs of nothing
        return "no columns"
    return _read(file.getvalue())


TARGETS = (
    Target("sketches", "sketch file, bytes", _files, _read, change_bytes, 100_000),
    Target("sketches", "sketch file, footer and pages", _files, _read, change_parquet, 50_000),
    Target("sketches", "Parquet footer alone", _files, _read_footer, change_parquet, 120_000),
    Target("sketches", "sketch head alone", _heads, _read_head, change_json, 80_000, _costly_heads),
    Target("sketches", "sketch file, head", _heads, _read_file_with_head, change_json, 25_000, _costly_heads),
    Target("sketches", "sketch file, digests", _digests, _read_digests, change_json, 25_000),
    Target("sketches", "sketch file, columns", _columns, _read_columns, change_json, 25_000),
)
