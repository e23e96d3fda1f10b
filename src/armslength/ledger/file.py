"""The ledger's SQLite file: opened for one transaction at a time, made, checked, and brought up to date.

A charge is one transaction. SQLite writes its journal to the disk before the file, and the file before the journal goes, so a
process that dies at any moment leaves a ledger with the whole line or without it. `synchronous = EXTRA` also makes the end of the journal
last: otherwise a power failure just after a charge could bring the journal back, and undo a line whose release has left.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from armslength.checks import is_folder
from armslength.errors import CorruptFileError, ParameterError, UnsupportedVersionError, printable
from armslength.ledger.tables import SCHEMA_VERSION, check_tables, make_tables, update_tables

_APPLICATION_ID = 0x41524D4C  # "ARML"
_BUSY_SECONDS = 60.0


@contextmanager
def writing(path: str) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction that locks out all others; the file is made if it is not there."""
    with _clear_errors(path, "written"), closing(_connected(path, "rwc")) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        _prepare(connection, path)
        yield connection
        connection.execute("COMMIT")  # otherwise it is rolled back when the connection closes


@contextmanager
def reading(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that sees one moment of the file and cannot change it; an empty ledger if there is no file.

    A file of the first version is read through a copy in memory.
    """
    if not _is_there(path):
        with closing(_in_memory()) as empty:
            _prepare(empty, path)
            yield empty
        return
    # "rw" makes no file. It is asked for so that what a killed process left half-done can be undone first.
    with _clear_errors(path, "read"), closing(_connected(path, "rw")) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        if _version(connection, path) == SCHEMA_VERSION:
            yield connection
            return
        with closing(_in_memory()) as copy:
            connection.execute("ROLLBACK")  # a copy is a moment of its own
            connection.backup(copy)
            _prepare(copy, path)
            yield copy


def check_file(path: str) -> None:
    """Refuses a file that is no ledger, and a folder that is not there; makes and changes nothing."""
    if _is_there(path):
        with reading(path):
            return
    if not is_folder(Path(path).parent):
        raise ParameterError(
            f"ledger must be a file that can be written, got {printable(path)}: its folder is not there"
        )


def _is_there(path: str) -> bool:
    """Whether there is such a file; a name that no file can have is refused, which SQLite would cut short."""
    try:
        os.stat(path)  # noqa: PTH116  # the method of a path says no to such names
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        raise ParameterError(f"ledger must be a file that can be read, got {printable(path)}") from None
    return True


def _connected(path: str, mode: str) -> sqlite3.Connection:
    uri = f"{Path(path).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # what the file brings along may call no function
    return connection


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


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


def _version(connection: sqlite3.Connection, path: str) -> int:
    """The version of the file: 0 if it is empty; refuses what is no ledger, or a newer one."""
    where = printable(path)
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return 0
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise CorruptFileError(f"a ledger must be a file of armslength, got another database: {where}")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"the ledger must have version {SCHEMA_VERSION} or less, got {version}: {where}; take a newer armslength"
        )
    if version < 1:
        raise CorruptFileError(f"the ledger must have a version, got {version}: {where}")
    check_tables(connection, version, where)
    return version


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Makes the tables, or brings those of the first version up to date; inside the caller's transaction."""
    version = _version(connection, path)
    if version == SCHEMA_VERSION:
        return
    if version == 0:
        make_tables(connection)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    else:
        update_tables(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
