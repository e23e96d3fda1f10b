"""The tables of the ledger's file, made, and held against what they must be.

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
# What SQLite notes down for itself when somebody asks it to ANALYZE a file is no table of anybody, and decides nothing.
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')"


def make_tables(connection: sqlite3.Connection) -> None:
    """The tables of a new file."""
    connection.execute(f"CREATE TABLE entries (number INTEGER PRIMARY KEY, {_texts(COLUMNS)})")
    connection.execute(f"CREATE TABLE labels ({_texts(('population', 'label'))}, UNIQUE (population, label))")
    connection.execute(f"CREATE TABLE budgets (number INTEGER PRIMARY KEY, {_texts(BUDGET_COLUMNS)})")
    connection.execute("CREATE INDEX entries_of_population ON entries (population)")


def check_tables(connection: sqlite3.Connection, where: str) -> None:
    """Refuses a file with other tables, or with more than tables; nothing of it has been run.

    Args:
        connection: The file.
        where: The file, for messages.
    """
    if frozenset(connection.execute(_SCHEMA)) != _own_schema():
        raise CorruptFileError(
            f"ledger must have the tables of a ledger and nothing else, got others: {where}"
        )


@cache
def _own_schema() -> frozenset[tuple[str, str, str, str | None]]:
    """What a ledger holds, as SQLite writes it down."""
    with closing(sqlite3.connect(":memory:")) as connection:
        make_tables(connection)
        return frozenset(connection.execute(_SCHEMA))


def _texts(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} TEXT NOT NULL" for name in columns)
