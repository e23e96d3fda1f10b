"""The ledger's SQLite file: opened for one transaction at a time, made and checked.

A process that dies at any moment leaves a ledger with the whole line or without it (docs/decisions/0014-ledger.md).
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from armslength.errors import (
    CorruptFileError,
    MissingFileError,
    ParameterError,
    UnsupportedVersionError,
    unsupported,
)
from armslength.files import atomic_write
from armslength.ledger.budgets import Budget, checked_span, parse_time
from armslength.ledger.entry import COLUMNS, Entry, checked_population
from armslength.spelling import nfc

SCHEMA_VERSION = 3
BUDGET_COLUMNS = tuple(field.name for field in fields(Budget))
_APPLICATION_ID = 0x41524D4C  # "ARML"
_BUSY_SECONDS = 60.0
# SQLite's own notes of an ANALYZE change nothing.
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')"
_LAST_NUMBERS = (
    "SELECT (SELECT coalesce(max(number), 0) FROM entries) + (SELECT coalesce(max(number), 0) FROM budgets)"
)
_LAST_TIME = "SELECT max(time) FROM (SELECT time FROM entries UNION ALL SELECT time FROM budgets)"


class LedgerFile:
    """The file of a ledger: every transaction refuses one that is gone, was replaced, or has lost lines since the last one.

    The path is absolute. With `create` no file may exist; the first line makes it.
    """

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = path
        self._is_new = create  # until the file exists
        self._identity = None if create else _file_identity(path)
        self._lines = 0
        if self._identity is None and not create:
            raise MissingFileError(
                f"no such ledger: {self.path}; name the right file, or ask for a new one with create=True",
                "create",
            )
        with self.reading():
            pass  # which refuses a file that is no ledger, and one that exists although it is to be made
        if create and not os.path.isdir(os.path.dirname(path)):
            raise MissingFileError(f"no such folder for the ledger {self.path}; make it first")
        if create:
            self._check_no_journal()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction that locks out all others. A new ledger is made when the block ends."""
        if not self._exists():
            # Made with its first line: an empty file is never a ledger, as it may be one that was cut short.
            with closing(_new_in_memory()) as connection:
                yield connection
                lines, content = _last_numbers(connection), connection.serialize()
            self._make(content)
            self._lines = lines
            return
        seen = self._lines
        with _sqlite_errors(self.path, "write"), closing(_connected(self.path)) as connection:
            # Else a power failure could undo the line of a finished release.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            self._exists()  # still the same file
            _check_ledger(connection, self.path)
            self._check_lines(connection, seen)
            yield connection
            lines = _last_numbers(connection)
            connection.execute("COMMIT")  # after an error, closing rolls back
            self._lines = max(self._lines, lines)  # other threads may have seen more
        self._exists()  # a line in a file that was just removed is lost: nothing may be released for it

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one moment of the file and cannot change it; an empty ledger if there is no file yet."""
        if not self._exists():
            with closing(_new_in_memory()) as empty:
                yield empty
            return
        seen = self._lines
        # Reading needs write access, too: SQLite first undoes what a killed process left unfinished.
        with _sqlite_errors(self.path, "read"), closing(_connected(self.path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            _check_ledger(connection, self.path)
            self._exists()
            self._check_lines(connection, seen)
            yield connection

    def _exists(self) -> bool:
        """Whether there is a file yet. Refuses any file other than the one that was opened or made here."""
        identity = _file_identity(self.path)
        if identity is None and self._is_new:
            return False
        if identity is None:
            raise MissingFileError(
                f"the ledger {self.path} is gone since it was opened; bring it back: a new one would forget what was spent"
            )
        if identity != self._identity and self._is_new:
            raise ParameterError(
                f"the ledger {self.path} already exists; leave out create=True to use it", "create"
            )
        if identity != self._identity:
            raise ParameterError(
                f"the ledger {self.path} is another file than the one that was opened; "
                "bring that one back: this one may not know what was spent"
            )
        self._is_new = False
        return True

    def _make(self, content: bytes) -> None:
        self._check_no_journal()
        with atomic_write(self.path, new=True) as file:
            file.write(content)
            state = os.fstat(file.fileno())
            # Stored before the file gets its name: after an interruption the ledger must know its file.
            self._identity = (state.st_dev, state.st_ino)
        self._is_new = False

    def _check_no_journal(self) -> None:
        """Refuses a place with the journal of another ledger: SQLite would apply it to the new one."""
        for journal in (f"{self.path}-journal", f"{self.path}-wal"):
            if os.path.lexists(journal):
                raise ParameterError(
                    f"{journal} is the journal of another ledger; bring back the ledger that it belongs to, or remove it"
                )

    def _check_lines(self, connection: sqlite3.Connection, seen: int) -> None:
        """Refuses a ledger with fewer lines than before: a new file can have the identity of a removed one."""
        lines = _last_numbers(connection)
        if lines < seen:
            raise CorruptFileError(
                f"the ledger {self.path} has lost lines since it was opened; "
                "bring them back: without them it forgets what was spent"
            )
        self._lines = max(self._lines, lines)


def read_entries(connection: sqlite3.Connection, population: str | None) -> list[Entry]:
    """All entries in order, or those of one population."""
    labels: dict[int, list[str]] = {}
    for number, found in _select(
        connection, "labels JOIN entries ON entry = number", ("label",), population, "row"
    ):
        labels.setdefault(number, []).extend(found)
    entries = []
    for number, row in _select(connection, "entries", COLUMNS, population):
        texts: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
        entries.append(Entry(**texts, number=number, labels=tuple(labels.get(number, ()))))
    return entries


def read_budgets(
    connection: sqlite3.Connection, population: str | None, *, past: bool = False
) -> list[Budget]:
    """The budgets in force, of all populations or of one; with `past` all that were ever set, in order."""
    budgets = [Budget(*row) for _, row in _select(connection, "budgets", BUDGET_COLUMNS, population)]
    try:
        for budget in budgets:
            budget.limit  # noqa: B018  # raises
        budgets = [replace(budget, per=checked_span(budget.per or None)) for budget in budgets]
    except ParameterError as problem:
        raise CorruptFileError(f"the ledger has a budget that is not valid: {problem}") from None
    # A later budget of the same population and span replaces the earlier one.
    last = {(budget.population, budget.per): budget for budget in budgets}
    return budgets if past else list(last.values())


def populations(connection: sqlite3.Connection) -> list[str]:
    """Every population that has a line or a budget, sorted."""
    query = "SELECT population FROM entries UNION SELECT population FROM budgets ORDER BY 1"
    with _valid_line():
        return [checked_population(_texts(row)[0]) for row in connection.execute(query)]


def released_before(connection: sqlite3.Connection, entry: Entry, labels: Iterable[str]) -> list[str]:
    """Those of the labels that the entry's population was charged for before, for the same period, sorted."""
    query = "SELECT label FROM labels JOIN entries ON entry = number WHERE population = ? AND period = ?"
    rows = connection.execute(query, (entry.population, entry.period))
    with _valid_line():
        charged = {nfc(_texts(row)[0]) for row in rows}
    return sorted(charged.intersection(map(nfc, labels)))


def current_time(connection: sqlite3.Connection) -> datetime:
    """The time now in UTC, but never before the ledger's last line: a clock set back must not open a period a second time."""
    last = connection.execute(_LAST_TIME).fetchone()[0]
    now = datetime.now(UTC).replace(microsecond=0)
    return max(now, parse_time(last)) if last else now


def write_entry(connection: sqlite3.Connection, entry: Entry) -> Entry:
    """Adds an entry with its labels, and returns it with its number."""
    number = _insert(connection, "entries", {name: getattr(entry, name) for name in COLUMNS})
    rows = [(number, row, nfc(label)) for row, label in enumerate(entry.labels)]
    connection.executemany("INSERT INTO labels (entry, row, label) VALUES (?, ?, ?)", rows)
    return replace(entry, number=number)


def write_budget(connection: sqlite3.Connection, budget: Budget) -> None:
    """Adds a budget; earlier ones stay."""
    _insert(connection, "budgets", asdict(replace(budget, per=budget.per or "")))


def _insert(connection: sqlite3.Connection, table: str, line: dict[str, str]) -> int:
    """Adds a line and returns its number."""
    # Names of tables and columns are ours; values are always bound.
    query = f"INSERT INTO {table} ({', '.join(line)}) VALUES ({', '.join('?' * len(line))})"  # noqa: S608  # see above
    number = connection.execute(query, tuple(line.values())).lastrowid
    assert number is not None  # noqa: S101  # SQLite has just given it
    return number


def _select(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    population: str | None,
    *then_by: str,
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The number and the text of each line, in order."""
    where, values = ("", ()) if population is None else ("WHERE population = ?", (population,))
    order = ", ".join(("number", *then_by))
    query = f"SELECT number, {', '.join(columns)} FROM {table} {where} ORDER BY {order}"  # noqa: S608  # see above
    for number, *texts in connection.execute(query, values):
        yield number, _texts(texts)


def _texts(row: Sequence[object]) -> tuple[str, ...]:
    """The row, if all of it is text; SQLite would store bytes in a column of text."""
    texts = tuple(value for value in row if isinstance(value, str))
    if len(texts) != len(row):
        raise CorruptFileError("the ledger has a line that is not valid: its values must be text")
    return texts


@contextmanager
def _valid_line() -> Iterator[None]:
    """Turns what a check says about a text in the file into our error about the file."""
    try:
        yield
    except ValueError as problem:
        raise CorruptFileError(f"the ledger has a line that is not valid: {problem}") from None


def _last_numbers(connection: sqlite3.Connection) -> int:
    """A number that grows with every line."""
    return int(connection.execute(_LAST_NUMBERS).fetchone()[0])


def _file_identity(path: str) -> tuple[int, int] | None:
    """(device, inode) of the file; None if there is none. Refuses names that no file can have, which SQLite would cut short."""
    try:
        state = os.stat(path)  # noqa: PTH116  # the method of Path raises for such names
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise ParameterError(f"cannot read the ledger {path}") from None
    return state.st_dev, state.st_ino


def _connected(path: str) -> sqlite3.Connection:
    uri = f"{Path(path).as_uri()}?mode=rw"  # makes no file
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # nothing in the file may call a function
    return connection


def _new_in_memory() -> sqlite3.Connection:
    """A ledger without a line."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    lines = "number INTEGER PRIMARY KEY"
    connection.execute(f"CREATE TABLE entries ({lines}, {_text_columns(COLUMNS)})")
    labels = "entry INTEGER NOT NULL, row INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY (entry, row)"
    connection.execute(f"CREATE TABLE labels ({labels}) WITHOUT ROWID")
    connection.execute(f"CREATE TABLE budgets ({lines}, {_text_columns(BUDGET_COLUMNS)})")
    connection.execute("CREATE INDEX entries_of_population ON entries (population, period)")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return connection


@contextmanager
def _sqlite_errors(where: str, action: str) -> Iterator[None]:
    """Turns errors of SQLite into ours."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        if "decode" in str(problem):
            raise CorruptFileError(f"the ledger {where} holds text that is not UTF-8") from None
        raise ParameterError(f"cannot {action} the ledger {where}: {problem}") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:
        raise CorruptFileError(f"{where} is not a ledger: {problem}") from None


def _check_ledger(connection: sqlite3.Connection, where: str) -> None:
    """Refuses a file that is not a ledger of this version."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        raise CorruptFileError(f"{where} is not a ledger: it is empty; if it was one, restore it")
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise CorruptFileError(f"{where} is not a ledger: it is another database")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise UnsupportedVersionError(unsupported(f"the ledger {where}", version, SCHEMA_VERSION))
    # A trigger that deletes each new line, or a view in place of a table, would allow a release without a line.
    if frozenset(connection.execute(_SCHEMA)) != _own_schema():
        raise CorruptFileError(f"{where} is not a ledger: its tables are not those of a ledger")


@cache
def _own_schema() -> frozenset[tuple[str, str, str, str | None]]:
    """The schema of a ledger, as SQLite stores it."""
    with closing(_new_in_memory()) as connection:
        return frozenset(connection.execute(_SCHEMA))


def _text_columns(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} TEXT NOT NULL" for name in columns)
