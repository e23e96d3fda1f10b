"""One line for each release, written before anything leaves the process.

A crash between the line and the file over-counts; nothing under-counts.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Final

from armslength.errors import BudgetError, CorruptFileError, ParameterError

_SCHEMA_VERSION = 1
_APPLICATION_ID = 0x41524D4C  # "ARML"
_BUSY_SECONDS = 30.0


@dataclass(frozen=True)
class Entry:
    """What a release costs, in public terms only.

    Attributes:
        population: Whose budget it is: a name for the people in the data.
        label: Which release it is.
        unit: The unit of protection, in words.
        relation: "add_remove" or "replace".
        radius: How far one unit can move the data, as an exact decimal; " l2" stands behind it if that is the norm.
        law: "laplace" or "gaussian".
        scale: The scale of the noise as a hexadecimal float.
        epsilon: ε as an exact decimal.
        delta: δ as an exact decimal.
        protocol: The fingerprint of the protocol.
        version: The version of armslength.
        time: When, in UTC.
    """

    population: str
    label: str
    unit: str
    relation: str
    radius: str
    law: str
    scale: str
    epsilon: str
    delta: str
    protocol: str
    version: str
    time: str = ""


class NoLedger:
    """The explicit choice to keep no ledger."""

    def __repr__(self) -> str:
        return "al.NO_LEDGER"


NO_LEDGER: Final = NoLedger()

_COLUMNS = [field.name for field in fields(Entry)]
_LISTED = ", ".join(_COLUMNS)
_INSERT = f"INSERT INTO entries ({_LISTED}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608  # our own names
_SELECT = f"SELECT {_LISTED} FROM entries WHERE ? IS NULL OR population = ? ORDER BY number"  # noqa: S608  # the same


class Ledger:
    """A ledger in an SQLite file, made if it is not there.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with self._transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables == 0:
                columns = ", ".join(f"{name} TEXT NOT NULL" for name in _COLUMNS)
                connection.execute(f"CREATE TABLE entries (number INTEGER PRIMARY KEY, {columns})")
                connection.execute(
                    "CREATE TABLE labels (population TEXT NOT NULL, label TEXT NOT NULL, UNIQUE (population, label))"
                )
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            elif application != _APPLICATION_ID:
                raise CorruptFileError(
                    f"a ledger must be a file of armslength, got another database: {self.path}"
                )
            elif version != _SCHEMA_VERSION:
                raise CorruptFileError(
                    f"the ledger must have version {_SCHEMA_VERSION}, got {version}: {self.path}"
                )

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def charge(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:
        """The entry as it was written; refuses a population and label that were released before.

        Args:
            entry: What is about to be released.
            labels: The labels of its rows.
            repeat: Whether a population and label may be charged again.
        """
        stamped = Entry(**{**_as_dict(entry), "time": datetime.now(UTC).isoformat(timespec="seconds")})
        with self._transaction() as connection:
            known = {
                row[0]
                for row in connection.execute(
                    "SELECT label FROM labels WHERE population = ?", (entry.population,)
                )
            }
            again = sorted(known.intersection(labels))
            if again and not repeat:
                raise BudgetError(
                    f"labels must be new for population {entry.population!r}, got {again[0][:100]!r} again; "
                    "take another label, or pass repeat=True to spend the budget once more"
                )
            connection.executemany(
                "INSERT OR IGNORE INTO labels (population, label) VALUES (?, ?)",
                [(entry.population, label) for label in labels],
            )
            connection.execute(_INSERT, astuple(stamped))  # our own column names
        return stamped

    def entries(self, population: str | None = None) -> list[Entry]:
        """All entries in their order, or those of one population."""
        with self._transaction() as connection:
            rows = connection.execute(
                _SELECT,
                (population, population),
            ).fetchall()
        return [Entry(*row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction that locks out all others; a new one each time, safe after a fork."""
        try:
            connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as problem:
            raise ParameterError(
                f"ledger must be a file that can be written, got {self.path}: {problem}"
            ) from None
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.OperationalError as problem:
            raise ParameterError(
                f"ledger must be a file that can be written, got {self.path}: {problem}"
            ) from None
        except sqlite3.DatabaseError as problem:
            raise CorruptFileError(f"ledger must be an SQLite file, got {self.path}: {problem}") from None
        finally:
            connection.close()  # an open transaction is rolled back


def _as_dict(entry: Entry) -> dict[str, str]:
    return dict(zip(_COLUMNS, astuple(entry), strict=True))


def check_ledger(ledger: object) -> None:
    """Refuses what is neither a `Ledger`, nor the path of one, nor `al.NO_LEDGER`; opens nothing."""
    if not isinstance(ledger, (Ledger, NoLedger, str, os.PathLike)):
        raise ParameterError(
            "ledger must be given: a file such as 'ledger.sqlite', or al.NO_LEDGER to go without"
        )


def opened_ledger(ledger: "Ledger | str | os.PathLike[str]") -> Ledger:
    """The ledger that was meant, opened."""
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)
