"""The lines of the ledger as they are read and written inside a transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, replace

from armslength.errors import CorruptFileError, ParameterError
from armslength.ledger.budgets import Budget
from armslength.ledger.entry import COLUMNS, Entry
from armslength.ledger.periods import checked_period
from armslength.ledger.spelling import one_spelling
from armslength.ledger.tables import BUDGET_COLUMNS

# Names of columns are our own; values are always bound.
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608  # see above
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries"  # noqa: S608  # see above
_INSERT_BUDGET = (
    f"INSERT INTO budgets ({', '.join(BUDGET_COLUMNS)}) VALUES ({', '.join('?' * len(BUDGET_COLUMNS))})"  # noqa: S608  # see above
)
_SELECT_BUDGETS = f"SELECT {', '.join(BUDGET_COLUMNS)} FROM budgets"  # noqa: S608  # see above
_LAST_TIME = "SELECT max(time) FROM (SELECT time FROM entries UNION ALL SELECT time FROM budgets)"


def read_entries(connection: sqlite3.Connection, population: str | None) -> list[Entry]:
    """All entries in their order, or those of one population."""
    return [Entry(*row) for row in _selected(connection, _SELECT, population)]


def read_budgets(connection: sqlite3.Connection, population: str | None) -> list[Budget]:
    """All budgets that were ever set, in their order, or those of one population."""
    budgets = [Budget(*row) for row in _selected(connection, _SELECT_BUDGETS, population)]
    try:
        for budget in budgets:
            budget.limit  # noqa: B018  # refuses what is no number
        return [replace(budget, period=checked_period(budget.period or None)) for budget in budgets]
    except ParameterError as problem:
        raise CorruptFileError(f"a budget of a ledger must be valid, got: {problem}") from None


def in_force(budgets: Sequence[Budget]) -> list[Budget]:
    """The last budget of each population and period."""
    return list({(budget.population, budget.period): budget for budget in budgets}.values())


def released_before(connection: sqlite3.Connection, population: str, labels: Iterable[str]) -> list[str]:
    """Those of the labels that the population has been charged for, sorted."""
    query = "SELECT label FROM labels WHERE population = ?"
    known = {row[0] for row in _texts(connection.execute(query, (population,)))}
    return sorted({one_spelling(label) for label in known}.intersection(map(one_spelling, labels)))


def last_time(connection: sqlite3.Connection) -> str | None:
    """The time of the last line of any kind; None in an empty ledger."""
    last: str | None = connection.execute(_LAST_TIME).fetchone()[0]
    return last


def write_entry(connection: sqlite3.Connection, entry: Entry, labels: Iterable[str]) -> None:
    """Adds a line, and its labels."""
    connection.executemany(
        "INSERT OR IGNORE INTO labels (population, label) VALUES (?, ?)",
        [(entry.population, one_spelling(label)) for label in labels],
    )
    connection.execute(_INSERT, astuple(entry))


def write_budget(connection: sqlite3.Connection, budget: Budget) -> None:
    """Adds a budget; those before it stay."""
    connection.execute(_INSERT_BUDGET, astuple(replace(budget, period=budget.period or "")))


def _selected(
    connection: sqlite3.Connection, query: str, population: str | None
) -> Iterator[tuple[str, ...]]:
    if population is None:
        return _texts(connection.execute(f"{query} ORDER BY number"))
    return _texts(connection.execute(f"{query} WHERE population = ? ORDER BY number", (population,)))


def _texts(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows; a column of text may hold bytes, which SQLite lets pass."""
    for row in rows:
        texts = tuple(value for value in row if isinstance(value, str))
        if len(texts) != len(row):
            raise CorruptFileError("a line of a ledger must be valid, got: something other than text")
        yield texts
