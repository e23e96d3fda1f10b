"""The tables of the ledger's file, made, brought up to date, and held against what they must be.

A file may bring more than tables: a trigger that deletes each new line, a view in the place of a table, a rule that replaces one
line by the next. Each would let a release leave that is in no line. So the schema must be ours to the letter.
"""

import sqlite3
from contextlib import closing
from functools import cache

from armslength.errors import CorruptFileError
from armslength.ledger.entry import COLUMNS

SCHEMA_VERSION = 2
BUDGET_COLUMNS = ("population", "unit", "relation", "period", "epsilon", "delta", "version", "time")
_ADDED = (
    ("norm", "l1"),
    ("sensitivity_squared", ""),
    ("totals_epsilon", "0"),
)  # since version 1, and what they were
# What SQLite notes down for itself when somebody asks it to ANALYZE a file is no table of anybody, and decides nothing.
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')"
_Schema = frozenset[tuple[str, str, str, str | None]]


def make_tables(connection: sqlite3.Connection) -> None:
    """The tables of a new file."""
    _make_first(connection, COLUMNS)
    _make_budgets(connection)


def update_tables(connection: sqlite3.Connection) -> None:
    """The tables of the first version as those of this one."""
    for name, default in _ADDED:
        connection.execute(f"ALTER TABLE entries ADD COLUMN {name} TEXT NOT NULL DEFAULT '{default}'")
    # The first version wrote the norm behind the radius.
    connection.execute(
        "UPDATE entries SET norm = 'l2', radius = substr(radius, 1, length(radius) - 3) WHERE radius LIKE '% l2'"
    )
    _make_budgets(connection)


def check_tables(connection: sqlite3.Connection, version: int, where: str) -> None:
    """Refuses a file with other tables, or with more than tables; nothing of it has been run.

    Args:
        connection: The file.
        version: Its version.
        where: The file, for messages.
    """
    if frozenset(connection.execute(_SCHEMA)) not in _known_schemas(version):
        raise CorruptFileError(
            f"ledger must have the tables of a ledger and nothing else, got others: {where}"
        )


@cache
def _known_schemas(version: int) -> frozenset[_Schema]:
    """What a file of this version may hold, as SQLite writes it down."""
    first = tuple(name for name in COLUMNS if name not in dict(_ADDED))
    with closing(sqlite3.connect(":memory:")) as old, closing(sqlite3.connect(":memory:")) as new:
        _make_first(old, first)
        if version == 1:
            return frozenset({frozenset(old.execute(_SCHEMA))})
        update_tables(old)
        make_tables(new)
        return frozenset(frozenset(each.execute(_SCHEMA)) for each in (old, new))


def _make_first(connection: sqlite3.Connection, columns: tuple[str, ...]) -> None:
    connection.execute(f"CREATE TABLE entries (number INTEGER PRIMARY KEY, {_texts(columns)})")
    connection.execute(f"CREATE TABLE labels ({_texts(('population', 'label'))}, UNIQUE (population, label))")


def _make_budgets(connection: sqlite3.Connection) -> None:
    connection.execute(f"CREATE TABLE budgets (number INTEGER PRIMARY KEY, {_texts(BUDGET_COLUMNS)})")
    connection.execute("CREATE INDEX entries_of_population ON entries (population)")


def _texts(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} TEXT NOT NULL" for name in columns)
