"""Ledgers: SQLite files of any bytes, and valid ones with hostile lines and schemas."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import armslength as al
from armslength.ledger.entry import COLUMNS
from armslength.ledger.ledger_file import BUDGET_COLUMNS
from audit.fuzzing.fitted import fitted
from audit.fuzzing.mutate import change_bytes, change_json
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import folder, written
from golden.write_files import FOLDER as GOLDEN

_TABLES = {"entries": COLUMNS, "budgets": BUDGET_COLUMNS, "labels": ("entry", "row", "label")}


@cache
def _protocol() -> al.Protocol:
    return al.Protocol(
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        al.Counts(2),
        epsilon=1,
        unit="one patient",
    )


@cache
def _file() -> Path:
    """A ledger with a line and a budget of each kind."""
    path = folder() / "seed.sqlite"
    nothing = np.zeros((1, 6), dtype=int)
    ledger = al.Ledger(path, create=True)
    ledger.set_budget("visits", 100, "0.001", unit="one patient")
    ledger.set_budget("visits", 50, "0.001", unit="one patient", per="month")
    gaussian = al.Protocol(
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        al.Arrays(radius=2),
        epsilon=1,
        delta="1e-6",
        noise="gaussian",
        unit="one patient",
    )
    for number, protocol in enumerate((_protocol(), gaussian)):
        al.release(protocol, nothing, ledger=ledger, labels=[f"row {number}"], population="visits")
    return path


def _seed_bytes() -> list[bytes]:
    return [_file().read_bytes(), (GOLDEN / "ledger-v3.sqlite").read_bytes()]


def _read(data: bytes) -> str:
    for left in folder().glob("ledger.sqlite*"):
        left.unlink()  # journals too
    return _asked(written("ledger.sqlite", data))


def _asked(path: Path) -> str:
    ledger = al.Ledger(path)
    before = ledger.entries()
    ledger.budgets(past=True)
    ledger.spent(past=True)
    try:
        al.release(
            _protocol(), np.zeros((1, 6), dtype=int), ledger=ledger, labels=["new"], population="visits"
        )
    except al.BudgetError:
        return "accepted, full"
    after = al.Ledger(path, read_only=True).entries()
    if after[:-1] != before or after[-1].labels != ("new",):
        raise Finding("a release left, and the ledger does not have its line after those before it")
    return "accepted"


def _seed_rows() -> list[bytes]:
    """The rows of the ledger, and statements that are run on the file, as JSON."""
    with closing(sqlite3.connect(_file())) as connection:
        rows = {
            table: [list(row) for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}")]  # noqa: S608  # our own names
            for table, columns in _TABLES.items()
        }
    hostile = (
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE labels RENAME TO other",
        "CREATE INDEX i ON entries (file)",
        "PRAGMA user_version = 1",
        "PRAGMA journal_mode = WAL",
        "UPDATE entries SET file = CAST(x'ff' AS TEXT)",
    )
    quiet = {**rows, "statements": []}
    return [
        json.dumps(quiet).encode(),
        *(json.dumps({**rows, "statements": [each]}).encode() for each in hostile),
    ]


def _read_rows(data: bytes) -> str:
    """The ledger with these lines; those that no such table can hold are left out, and so are statements that do not run."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return "no lines"
    if not isinstance(document, dict):
        return "no lines"
    for left in folder().glob("ledger.sqlite*"):
        left.unlink()
    path = folder() / "ledger.sqlite"
    shutil.copyfile(_file(), path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for table, columns in _TABLES.items():
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # our own names
            places = ", ".join("?" * len(columns))
            query = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608  # the same
            connection.executemany(query, [_cells(row, len(columns)) for row in _list(document, table)])
        connection.execute("COMMIT")
        for statement in _list(document, "statements"):
            with suppress(sqlite3.Error, TypeError, ValueError):
                connection.execute(statement)
    return _asked(path)


def _list(document: dict[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else []


def _cells(row: Any, count: int) -> list[Any]:
    """As many cells as there are columns, each one that SQLite can hold."""
    given = [_cell(value) for value in (row if isinstance(row, list) else [row])]
    return (given + ["0"] * count)[:count]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return min(max(value, -(2**63)), 2**63 - 1)
    return fitted(value, pa.string())


def _quiet_rows() -> list[bytes]:
    return _seed_rows()[:1]


TARGETS = (
    Target("ledgers", "ledger, bytes", _seed_bytes, _read, change_bytes, 75_000),
    Target("ledgers", "ledger, lines and schema", _quiet_rows, _read_rows, change_json, 30_000),
)
HOSTILE_SCHEMAS = _seed_rows
