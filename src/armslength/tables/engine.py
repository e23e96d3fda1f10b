"""The embedded engine: events in the order of their persons, out of core, as a stream of Arrow batches.

Private rows may be spilled to a temporary folder, which only its owner can read and which is removed at the end. The engine gets
no network and installs nothing.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from armslength.checks import shown
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
from armslength.tables.relations import Relation, relations_of
from armslength.tables.sources import event_files
from armslength.threads import available_threads

DEFAULT_MEMORY = "1GB"
_ROWS_AT_ONCE = 1 << 20  # few enough for memory, many enough that an item that occurs often is hashed seldom
_BYTES_AT_ONCE = 1 << 26
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
    "arrow_large_buffer_size": True,  # texts of a batch may be longer than 2 GB together
}
_NO_EVENTS = 'SELECT NULL AS person, NULL AS item, NULL AS "group", NULL AS amount'


class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `batches`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, selects: list[str]) -> None:
        self._connection = connection
        self._selects = selects

    def batches(
        self, groups: PublicGroups, names: pa.Table | None = None, *, weighted: bool
    ) -> Iterator[pa.RecordBatch]:
        """Events as (person, group, item, amount), ordered by all four; `group` is the number of the public group.

        Events without a person, an item or a listed group are left out, and so are amounts of 0.

        Args:
            groups: The public groups.
            names: The names of a fixed vocabulary with their numbers, which then are the items; others are left out.
            weighted: Whether events have an amount; else it is 1.
        """
        events = " UNION ALL BY NAME ".join(self._selects or [_NO_EVENTS])
        group, item, joins = "0::INTEGER", "item", ""
        if groups.column is not None:
            self._connection.register("public_groups", groups.table())
            group, joins = "number", 'JOIN public_groups ON events."group" = public_groups.label'
        if names is not None:
            self._connection.register("item_names", names)
            item, joins = "place", f"{joins} JOIN item_names ON nfc_normalize(events.item) = item_names.name"
        amount, kept = ("amount", "AND amount <> 0") if weighted else ("1::BIGINT", "")
        query = (
            f'WITH events AS ({events}) SELECT person, {group} AS "group", {item} AS item, {amount} AS amount '  # noqa: S608  # our own text, names quoted
            f"FROM events {joins} WHERE person IS NOT NULL AND item IS NOT NULL {kept} ORDER BY 1, 2, 3, 4"
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
            enough = (
                sum(map(len, waiting)) >= _ROWS_AT_ONCE
                or sum(each.nbytes for each in waiting) >= _BYTES_AT_ONCE
            )
            if waiting and (batch is None or enough):
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
        threads: At most this many threads; None takes all that the process may run.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", str(memory)):
        raise ParameterError(f"memory must be a size such as '1GB', got {shown(memory)}")
    files = event_files(source)
    try:
        folder = tempfile.mkdtemp(prefix="armslength-")  # for its owner alone
    except OSError as problem:
        raise ParameterError(
            f"the temporary folder must be writable, got: {problem.strerror}; set TMPDIR to one that is"
        ) from None
    try:
        with duckdb.connect(
            ":memory:",
            config={
                **_SETTINGS,
                "temp_directory": folder,
                "memory_limit": memory,
                "threads": threads or available_threads(),
            },
        ) as connection:
            connection.execute(
                "SET enable_progress_bar = false"
            )  # it writes to standard output, which may be a pipe
            with _our_errors("source"):
                relations = relations_of(connection, Path(folder), source, files, columns)
            yield EventTable(connection, [_select(each, protocol, by_number=by_number) for each in relations])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _select(relation: Relation, protocol: Protocol, *, by_number: bool) -> str:
    """One relation's events with the columns person, group, item and amount."""
    is_text = relation.is_text
    parts = []
    for role, (column, kind) in relation.columns.items():
        if role == "item":
            value = item_expression(column, kind, protocol, is_text=is_text, by_number=by_number)
        elif role == "weight":
            value = amount_expression(column, kind, protocol, is_text=is_text)
        else:
            value = id_expression(column, kind, role)
        parts.append(f'{value} AS "{"amount" if role == "weight" else role}"')
    return f"SELECT {', '.join(parts)} FROM {relation.sql}"  # noqa: S608  # our own text, names quoted


@contextmanager
def _our_errors(where: str) -> Iterator[None]:
    """The engine's errors as ours: its own messages may quote data."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise InputError(
            f"{where} must be sorted within the memory given, got too little; allow more memory, such as 4GB"
        ) from None
    except RuntimeError as problem:
        if "interrupted" in str(problem).lower():
            raise KeyboardInterrupt from None
        raise InputError(_UNREADABLE.format(where)) from None
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        text = str(problem)
        for name, message in PROBLEMS.items():
            if f"{MARKER} {name}" in text:
                raise InputError(message) from None
        if "No space left" in text or "max_temp_directory_size" in text:
            raise InputError(
                "the temporary folder must have room for a sorted copy of the events, got too little; set TMPDIR"
            ) from None
        raise InputError(_UNREADABLE.format(where)) from None


_UNREADABLE = "{} must be readable to its end as what its name says, got damage or another kind"
