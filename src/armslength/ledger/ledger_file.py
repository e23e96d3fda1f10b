"""The ledger's SQLite file: opened for one transaction at a time, made and checked.

A charge is one transaction. SQLite writes its journal to the disk before the file, and the file before the journal goes, so a
process that dies at any moment leaves a ledger with the whole line or without it. `synchronous = EXTRA` also makes the end of the journal
last: otherwise a power failure just after a charge could bring the journal back, and undo a line whose release has left.

A new ledger is made with its first line in memory and takes its name in one step, so a process that dies leaves no empty file behind.
An empty file is therefore never a ledger: it may be one that was cut short.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

from armslength.checks import is_folder
from armslength.errors import CorruptFileError, ParameterError, UnsupportedVersionError, printable
from armslength.files import atomic_write
from armslength.ledger.budgets import Budget, checked_period
from armslength.ledger.entry import COLUMNS, Entry, one_spelling

# The tables of the ledger's file, made, and held against what they must be.
#
# A file may bring more than tables: a trigger that deletes each new line, a view in the place of a table, a rule that replaces one
# line by the next. Each would let a release leave that is in no line. So the schema must be ours to the letter.


SCHEMA_VERSION = 2
BUDGET_COLUMNS = ("population", "unit", "relation", "period", "epsilon", "delta", "version", "time")
# What SQLite notes down for itself when somebody asks it to ANALYZE a file is no table of anybody, and decides nothing.
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')"


def make_tables(connection: sqlite3.Connection) -> None:
    """The tables of a new file."""
    connection.execute(f"CREATE TABLE entries (number INTEGER PRIMARY KEY, {_text_columns(COLUMNS)})")
    connection.execute(
        f"CREATE TABLE labels ({_text_columns(('population', 'label'))}, UNIQUE (population, label))"
    )
    connection.execute(f"CREATE TABLE budgets (number INTEGER PRIMARY KEY, {_text_columns(BUDGET_COLUMNS)})")
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


def _text_columns(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} TEXT NOT NULL" for name in columns)


_APPLICATION_ID = 0x41524D4C  # "ARML"
_BUSY_SECONDS = 60.0
_LAST_LINES = (
    "SELECT (SELECT coalesce(max(number), 0) FROM entries) + (SELECT coalesce(max(number), 0) FROM budgets)"
)


class LedgerFile:
    """The file of a ledger: it exists, or was asked for, and stays the same file.

    Every transaction refuses a file that is gone, that another file has replaced, or that has lost lines since the last one.

    Args:
        path: The file, from the root.
        create: Whether the file must not exist; the first line makes it.
    """

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = path
        self._is_new = create  # until it is seen to exist
        self._identity = None if create else _identity(path)
        self._lines = 0
        where = printable(path)
        if create:
            self._exists()  # which refuses one that does
            if not is_folder(Path(path).parent):
                raise ParameterError(f"the folder of the ledger {where} must exist, got none; make it first")
            self._check_no_journal()
            return
        if self._identity is None:
            raise ParameterError(
                f"the ledger {where} does not exist; name the right file, or ask for a new one "
                "(create=True, --new-ledger)"
            )
        with self.reading():
            pass

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction that locks out all others; a new ledger is made when it ends."""
        if not self._exists():
            with closing(_new_in_memory()) as connection:
                yield connection
                lines, content = _last_lines(connection), connection.serialize()
            self._make(content)
            self._lines = lines
            return
        seen = self._lines
        with _clear_errors(self.path, "written"), closing(_connected(self.path)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            self._exists()  # what was opened is what the name means now
            _check_ledger(connection, self.path)
            self._check_lines(connection, seen)
            yield connection
            lines = _last_lines(connection)
            connection.execute("COMMIT")  # otherwise it is rolled back when the connection closes
            self._lines = max(self._lines, lines)  # other threads may have seen more
        self._exists()  # a line in a file that was removed meanwhile is lost: nothing may be released for it

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one moment of the file and cannot change it; an empty ledger if it is still to be made."""
        if not self._exists():
            with closing(_new_in_memory()) as empty:
                yield empty
            return
        seen = self._lines
        # Reading needs "rw", too: what a killed process left half-done is undone first.
        with _clear_errors(self.path, "read"), closing(_connected(self.path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            _check_ledger(connection, self.path)
            self._exists()
            self._check_lines(connection, seen)
            yield connection

    def _exists(self) -> bool:
        """Whether the file exists, or is still to be made; refuses any file but the one that was opened or made here."""
        found, where = _identity(self.path), printable(self.path)
        if found is None and self._is_new:
            return False
        if found is None:
            raise ParameterError(
                f"the ledger {where} is gone since it was opened; bring it back: a new one would forget what was spent"
            )
        if found != self._identity and self._is_new:
            raise ParameterError(
                f"a new ledger must have a new name, got {where}, which exists; "
                "leave create=True or --new-ledger out to use it"
            )
        if found != self._identity:
            raise ParameterError(
                f"the ledger {where} is another file than the one that was opened; "
                "bring that one back: this one may not know what was spent"
            )
        self._is_new = False
        return True

    def _make(self, content: bytes) -> None:
        self._check_no_journal()
        with atomic_write(self.path, new=True) as file:
            file.write(content)
            state = os.fstat(file.fileno())
            # Known before the file has its name: an interruption just after must find its line.
            self._identity = (state.st_dev, state.st_ino)
        self._is_new = False

    def _check_no_journal(self) -> None:
        """Refuses a place where a journal waits for its ledger: SQLite would undo the lines of the new one with it."""
        for journal in (f"{self.path}-journal", f"{self.path}-wal"):
            if os.path.lexists(journal):
                raise ParameterError(
                    f"a new ledger must not lie beside the journal of another, got {printable(journal)}; "
                    "bring back the ledger that it belongs to, or remove it"
                )

    def _check_lines(self, connection: sqlite3.Connection, seen: int) -> None:
        """Refuses a ledger with fewer lines than this object has seen: systems give the number of a removed file to the next one."""
        lines, where = _last_lines(connection), printable(self.path)
        if lines < seen:
            raise CorruptFileError(
                f"the ledger {where} has lost lines since it was opened; "
                "bring them back: without them it forgets what was spent"
            )
        self._lines = max(self._lines, lines)


def _last_lines(connection: sqlite3.Connection) -> int:
    """A number that grows with every line."""
    lines: int = connection.execute(_LAST_LINES).fetchone()[0]
    return lines


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from others, None if there is none; a name that no file can have is refused, which SQLite would cut short."""
    try:
        state = os.stat(path)  # noqa: PTH116  # the method of a path says no to such names
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise ParameterError(f"ledger must be a file that can be read, got {printable(path)}") from None
    return state.st_dev, state.st_ino


def _connected(path: str) -> sqlite3.Connection:
    uri = f"{Path(path).as_uri()}?mode=rw"  # which makes no file
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # what the file brings along may call no function
    return connection


def _new_in_memory() -> sqlite3.Connection:
    """A ledger without a line."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return connection


@contextmanager
def _clear_errors(path: str, done: str) -> Iterator[None]:
    """Errors of SQLite as ours; it may quote what the file holds."""
    where = printable(path)
    try:
        yield
    except sqlite3.OperationalError as problem:
        if "decode" in str(problem):
            raise CorruptFileError(f"ledger must hold text in UTF-8, got other bytes: {where}") from None
        raise ParameterError(
            f"ledger must be a file that can be {done}, got {where}: {printable(str(problem))}"
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:
        raise CorruptFileError(
            f"ledger must be an SQLite file, got {where}: {printable(str(problem))}"
        ) from None


def _check_ledger(connection: sqlite3.Connection, path: str) -> None:
    """Refuses a file that is not a ledger of this version."""
    where = printable(path)
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        raise CorruptFileError(f"{where} is not a ledger: it is empty; if it was one, restore it")
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise CorruptFileError(f"a ledger must be a file of armslength, got another database: {where}")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"the ledger must have version {SCHEMA_VERSION}, got {version}: {where}; use the armslength that wrote it"
        )
    check_tables(connection, where)


# The lines of the ledger as they are read and written inside a transaction.


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
