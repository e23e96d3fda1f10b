"""Tables and queries of databases as Arrow batches. What a query reads is the data holder's own business; it writes nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa

from armslength.errors import InputError, ParameterError
from armslength.ingest.event_columns import quoted

DATABASES = ("sqlite", "duckdb", "postgresql", "postgres")
_ROWS_AT_ONCE = 1 << 16
# a query sees its own database, and nothing is written to the disk
_DUCKDB_SETTINGS: dict[str, Any] = {
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
            for batch in reader:
                batch.validate(full=True)  # the engine trusts Arrow's buffers
                yield batch

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
            raise ParameterError(
                "a database must come with either table or query (--table or --query), got none or both"
            )
        inside = (
            f"({self.query.strip().rstrip(';')}\n)"
            if self.query is not None
            else ".".join(map(quoted, str(self.table).split(".")))
        )
        query = f"SELECT {columns} FROM {inside} AS events {end}"  # noqa: S608  # the data holder's own text, names quoted
        if self.scheme == "sqlite":
            place = f"file:{quote(str(self._path()))}?mode=ro"
            with closing(sqlite3.connect(place, uri=True, check_same_thread=False)) as connection:
                connection.text_factory = _text
                yield _sqlite_reader(connection.execute(query))
        elif self.scheme == "duckdb":
            with duckdb.connect(self._path(), read_only=True, config=_DUCKDB_SETTINGS) as engine:
                yield engine.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        else:
            with closing(_adbc().connect(self.address)) as connection, closing(connection.cursor()) as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(query)
                yield cursor.fetch_record_batch()

    def _path(self) -> Path:
        """The file of SQLite or DuckDB."""
        start = f"{self.scheme}:///"
        path = self.address[len(start) :]
        if not self.address.lower().startswith(start) or not path:
            raise ParameterError(
                f"a database file must be written {start}visits.db, or {start}/data/visits.db with its whole path, got another form"
            )
        if not Path(path).is_file():
            raise ParameterError(
                "a database must be a file that is there, got none; a whole path begins with four slashes"
            )
        return Path(path).resolve()

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except (InputError, ParameterError):
            raise
        except Exception:  # noqa: BLE001  # a driver's own error may quote the data
            raise InputError(
                f"cannot read the {self.scheme} database: is it there, not open elsewhere to be written, and are its table or query, "
                "their columns and the password right? Try the query in the database's own shell"
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


def _adbc() -> Any:
    try:
        return import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        raise ParameterError(
            "PostgreSQL needs a driver, got none: pip install 'armslength[postgresql]'"
        ) from None
