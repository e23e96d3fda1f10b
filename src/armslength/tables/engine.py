"""The embedded engine: events in the order of their persons, out of core, as a stream of Arrow batches.

Private rows may be spilled to a temporary folder, which only its owner can read and which is removed at the end. The engine gets
no network and installs nothing.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import InputError, ParameterError
from armslength.protocol.protocol import Protocol
from armslength.tables.columns import (
    MARKER,
    PROBLEMS,
    EventColumns,
    amount_expression,
    id_expression,
    item_expression,
)
from armslength.tables.groups import PublicGroups
from armslength.tables.sources import EventFile, arrow_file, event_files, event_reader, table_function

_ROWS_AT_ONCE = 1 << 20  # few enough for memory, many enough that an item that occurs often is hashed seldom
DEFAULT_MEMORY = "1GB"
_SAFE = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}


class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `batches`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, selects: list[str]) -> None:
        self._connection = connection
        self._selects = selects

    def batches(self, groups: PublicGroups, *, weighted: bool) -> Iterator[pa.RecordBatch]:
        """Events as (person, group, item, amount), ordered by all four; `group` is the number of the public group.

        Events without a person, an item or a listed group are left out, and so are amounts of 0.
        """
        events = " UNION ALL ".join(self._selects)
        group, joined = "0::INTEGER", "events"
        if groups.column is not None:
            # A name of our own that no column can clash with: events have the fixed columns of `opened_table`.
            self._connection.register("public_groups", groups.table())
            group, joined = "number", 'events JOIN public_groups ON events."group" = public_groups.label'
        amount, kept = ("amount", "AND amount <> 0") if weighted else ("1::BIGINT", "")
        order = "1, 2, 3, 4" if weighted else "1, 2, 3"
        query = (
            f'WITH events AS ({events}) SELECT person, {group} AS "group", item, {amount} AS amount FROM {joined} '  # noqa: S608  # our own text, names quoted
            f"WHERE person IS NOT NULL AND item IS NOT NULL {kept} ORDER BY {order}"
        )
        with _our_errors("source"):
            reader = self._connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        waiting: list[pa.RecordBatch] = []
        while True:
            with _our_errors("source"):
                batch = next(reader, None)
            if batch is not None:
                waiting.append(batch)
            # the engine's batches are smaller than what was asked for
            if waiting and (batch is None or sum(len(each) for each in waiting) >= _ROWS_AT_ONCE):
                yield pa.concat_batches(waiting)
                waiting.clear()
            if batch is None:
                return


@contextmanager
def opened_table(  # each is a decision of its own
    source: Any,
    columns: EventColumns,
    protocol: Protocol,
    *,
    by_number: bool,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
) -> Iterator[EventTable]:
    """The events of a source, after a look at its schema alone: every column is there and has its type.

    Args:
        source: Files, or a table in memory.
        columns: Which columns hold what.
        protocol: What declares the type of items, and the grid of weights.
        by_number: Whether items are the numbers of columns.
        memory: How much the engine may hold before it writes to a temporary folder.
        threads: At most this many threads; None takes what the engine takes.
    """
    files = event_files(source)
    folder = tempfile.mkdtemp(prefix="armslength-")  # for its owner alone
    connection = _connection(folder, memory, threads)
    try:
        selects = []
        readers = [event_reader(source)] if files is None else [None] * len(files)
        for number, reader in enumerate(readers):
            file = None if files is None else files[number]
            where = "source" if file is None else str(file.path)
            with _our_errors(where):
                relation, found = _relation(connection, folder, number, file, reader, columns)
            selects.append(
                _select(
                    relation,
                    found,
                    columns,
                    protocol,
                    where,
                    by_number=by_number,
                    is_text=file is not None and file.is_text,
                )
            )
        yield EventTable(connection, selects)
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def _connection(folder: str, memory: str, threads: int | None) -> duckdb.DuckDBPyConnection:
    settings: dict[str, Any] = {**_SAFE, "temp_directory": folder, "memory_limit": memory}
    if threads is not None:
        settings["threads"] = threads
    try:
        return duckdb.connect(":memory:", config=settings)
    except duckdb.Error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ParameterError(f"memory must be a size such as '1GB', got {memory!r}") from None


def _relation(
    connection: duckdb.DuckDBPyConnection,
    folder: str,
    number: int,
    file: EventFile | None,
    reader: pa.RecordBatchReader | None,
    columns: EventColumns,
) -> tuple[str, dict[str, str]]:
    """(what SQL selects from, the type of each column by name)."""
    if file is not None and file.kind != "arrow":
        # Names of files may hold what the engine takes for a pattern; a link with a plain name does not.
        link = Path(folder) / f"events-{number}{''.join(file.path.suffixes[-2:])}"
        link.symlink_to(file.path.resolve())
        seen = connection.sql(f"SELECT * FROM {table_function(file, str(link), None)}")  # noqa: S608  # our own text, names quoted
        if file.kind != "json":
            return table_function(file, str(link), None), _types(seen)
        wanted = list(columns.named.values())
        known = {name: "JSON" for name in seen.columns if name in wanted}
        return table_function(file, str(link), wanted), known
    name = f"events_{number}"
    connection.register(name, reader if file is None else arrow_file(file.path))
    return name, _types(connection.table(name))


def _types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _select(
    relation: str,
    found: dict[str, str],
    columns: EventColumns,
    protocol: Protocol,
    where: str,
    *,
    by_number: bool,
    is_text: bool,
) -> str:
    """One source's events with the columns person, group, item and amount."""
    for role, name in columns.named.items():
        if name not in found:
            there = ", ".join(sorted(found)[:20]) or "none"
            raise InputError(f"{role} must be a column of {where}, got {name!r}; its columns are {there}")
    kind = {role: found[name] for role, name in columns.named.items()}
    parts = [
        f"{id_expression(columns.person, kind['person'], 'person')} AS person",
        f"{item_expression(columns.item, kind['item'], protocol, is_text=is_text, by_number=by_number)} AS item",
    ]
    if columns.group is not None:
        parts.append(f'{id_expression(columns.group, kind["group"], "group")} AS "group"')
    if columns.weight is not None:
        parts.append(
            f"{amount_expression(columns.weight, kind['weight'], protocol, is_text=is_text)} AS amount"
        )
    return f"SELECT {', '.join(parts)} FROM {relation}"  # noqa: S608  # our own text, names quoted


@contextmanager
def _our_errors(where: str) -> Iterator[None]:
    """The engine's errors as ours: its own messages may quote data."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise InputError(
            f"{where} must be sorted within the memory given, got too little; pass more, such as memory='4GB'"
        ) from None
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        text = str(problem)
        for name, message in PROBLEMS.items():
            if f"{MARKER} {name}" in text:
                raise InputError(message) from None
        if "No space left" in text or "max_temp_directory_size" in text:
            raise InputError(
                "the temporary folder must have room for a sorted copy of the events, got too little; set TMPDIR"
            ) from None
        raise InputError(
            f"{where} must be readable to its end as what its name says, got damage or another kind"
        ) from None
