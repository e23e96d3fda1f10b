"""Tables and queries of databases as Arrow batches. What a query reads is the data holder's own business; it writes nothing."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa

from armslength.errors import (
    NO_MEMORY,
    ArmslengthError,
    InputError,
    MissingFileError,
    MissingPackageError,
    OutOfMemoryError,
    ParameterError,
    UnknownNameError,
)
from armslength.ingest.event_columns import quoted
from armslength.threads import interruptible

DATABASES = ("sqlite", "duckdb", "postgresql", "postgres")
_ROWS_AT_ONCE = 1 << 16
# a query sees its own database, and nothing is written to the disk
DUCKDB_SETTINGS: dict[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
}
# SQLite has a type for each value: whole floats are integers, other floats and bytes are nobody
_SQLITE_ID = (
    "CASE typeof({0}) WHEN 'text' THEN {0} WHEN 'integer' THEN CAST({0} AS TEXT) "
    "WHEN 'real' THEN CASE WHEN {0} = CAST({0} AS INTEGER) AND abs({0}) <= 9007199254740992 "
    "THEN CAST(CAST({0} AS INTEGER) AS TEXT) END END"
)
_TABLES_OF_SQLITE = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1"
_TABLES = (
    "SELECT CASE WHEN table_schema IN ('main', 'public') THEN '' ELSE table_schema || '.' END || table_name "
    "FROM information_schema.tables WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
)
# how the errors of drivers begin: SQLSTATE of PostgreSQL, or the message
_NO_TABLE = re.compile(r"42P01|3F000|no such table|Catalog Error: Table ")
_NO_COLUMN = re.compile(r"42703|no such column|Binder Error: .*(column|table) \"", re.IGNORECASE)
_NO_SELECT = re.compile(
    r"42601|25006|near |incomplete input|unrecognized token|You can only execute|Parser Error|Invalid Input Error: Cannot execute"
)


@dataclass(frozen=True)
class Database:
    """A table or a query of a database."""

    scheme: str
    address: str = field(repr=False)  # which may contain a password
    table: str | None
    query: str | None

    @property
    def is_text(self) -> bool:
        """Whether all columns are read as text, as those of a CSV file are."""
        return self.scheme != "duckdb"

    def schema(self, roles: dict[str, str] | None = None) -> pa.Schema:
        """The schema of all columns, or of those of these names, renamed to their roles."""
        columns = "*" if roles is None else self._columns(roles)
        with self._our_errors(), self._reader(columns, "LIMIT 0") as reader:
            return reader.schema

    def batches(self, roles: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """The columns of these names, renamed to their roles."""
        with self._our_errors(), self._reader(self._columns(roles)) as reader:
            yield from reader

    def _columns(self, roles: dict[str, str]) -> str:
        return ", ".join(
            f"{self._value(role, quoted(name))} AS {quoted(role)}" for role, name in roles.items()
        )

    def _value(self, role: str, column: str) -> str:
        if self.scheme == "duckdb" or (self.scheme == "sqlite" and role == "weight"):
            return column
        return _SQLITE_ID.format(column) if self.scheme == "sqlite" else f"CAST({column} AS text)"

    @contextmanager
    def _reader(self, columns: str, end: str = "") -> Iterator[Any]:
        """The rows of a query on the table, in a new connection that cannot write."""
        if (self.table is None) == (self.query is None):
            raise ParameterError("a database needs either table or query, and not both", "table", "query")
        inside = (
            f"({self.query.strip().rstrip(';')}\n)"
            if self.query is not None
            else ".".join(map(quoted, str(self.table).split(".")))
        )
        query = f"SELECT {columns} FROM {inside} AS events {end}"  # noqa: S608  # the data holder's own text, names quoted
        if self.scheme == "sqlite":
            address = f"file:{quote(str(self._path()))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
                connection.text_factory = _text
                yield _sqlite_reader(connection.execute(query))
        elif self.scheme == "duckdb":
            with duckdb.connect(self._path(), read_only=True, config=DUCKDB_SETTINGS) as engine:
                yield engine.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        else:
            with closing(self._server()) as connection, closing(connection.cursor()) as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(query)
                yield cursor.fetch_record_batch()

    def _server(self) -> Any:
        """A connection to PostgreSQL."""
        try:
            driver = import_module("adbc_driver_postgresql.dbapi")
        except ImportError:
            raise MissingPackageError(
                'PostgreSQL needs a driver: pip install "armslength[postgresql]"'
            ) from None
        try:
            return interruptible(lambda: driver.connect(self.address))
        except driver.Error as problem:
            if "FATAL" in str(problem) or "password" in str(problem):
                raise InputError(
                    f"the {self.scheme} server refused the login: are the user, the password and the name of the database right?"
                ) from None
            raise InputError(
                f"cannot connect to the {self.scheme} server: are the host and the port right, and does it run?"
            ) from None

    def _tables(self) -> list[str]:
        """The names of the tables."""
        query = _TABLES_OF_SQLITE if self.scheme == "sqlite" else _TABLES
        with self._our_errors(), replace(self, table=None, query=query)._reader("*") as reader:  # noqa: SLF001  # our own
            return [str(name) for name in reader.read_all().column(0).to_pylist()]

    def _path(self) -> Path:
        """The file of SQLite or DuckDB."""
        start = f"{self.scheme}:///"
        path = self.address[len(start) :]
        if not self.address.lower().startswith(start) or not path:
            raise ParameterError(
                f"write a database file as {start}visits.db, or as {start}/data/visits.db with its whole path"
            )
        if not Path(path).is_file():
            raise MissingFileError("no such database file; a whole path begins with four slashes")
        return Path(path).resolve()

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except ArmslengthError:
            raise
        except (MemoryError, duckdb.OutOfMemoryException):
            raise OutOfMemoryError(NO_MEMORY) from None
        except Exception as problem:  # noqa: BLE001  # a driver's own error may quote the data
            message = f"{getattr(problem, 'sqlstate', None) or ''}{problem}"
            if _NO_TABLE.match(message) or (self.query is None and _NO_SELECT.match(message)):
                names = self._tables()
                raise UnknownNameError(
                    f"the {self.scheme} database has no such table; its tables are {', '.join(map(repr, names[:20])) or 'none'}"
                ) from None
            if _NO_COLUMN.match(message):
                raise UnknownNameError("query names a column that does not exist", "query") from None
            if _NO_SELECT.match(message):
                raise InputError("query must be one SELECT without syntax errors", "query") from None
            raise InputError(
                f"cannot read the {self.scheme} database: it is damaged, of another kind or locked by a writer, or the query fails; "
                "try it in the database's own shell"
            ) from None


def _text(data: bytes) -> str | None:
    """Text of SQLite; None where it is no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _sqlite_reader(cursor: sqlite3.Cursor) -> pa.RecordBatchReader:
    """The rows of a query as text; numbers of a weight in full, bytes as missing."""
    schema = pa.schema([(column[0], pa.string()) for column in cursor.description])

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return None if isinstance(value, bytes) else repr(value)

    def batches() -> Iterator[pa.RecordBatch]:
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            columns = [pa.array(map(text, column), pa.string()) for column in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
