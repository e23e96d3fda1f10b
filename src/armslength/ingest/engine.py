"""The embedded engine: events of any source as a stream of Arrow batches.

The engine has no network, installs nothing and writes nothing to the disk.
"""

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from armslength.checks import short_repr
from armslength.errors import InputError, ParameterError
from armslength.ingest.event_columns import (
    EventColumns,
    amount_expression,
    id_expression,
    item_expression,
)
from armslength.ingest.records import record_select
from armslength.ingest.relations import BAD_LINE, Relation, relations_of
from armslength.ingest.sources import event_files
from armslength.ingest.text_files import BytesRead
from armslength.protocol.protocol import Protocol
from armslength.threads import available_threads, check_same_process

DEFAULT_MEMORY = "1GB"
_ROWS_AT_ONCE = 1 << 19
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
    "arrow_large_buffer_size": True,  # texts of a batch may be longer than 2 GB together
    "temp_directory": "",  # the engine cannot encrypt what it writes there
}
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}


@dataclass
class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `batches`."""

    _connection: duckdb.DuckDBPyConnection
    _selects: list[str]
    _problems: list[BaseException]
    _read: BytesRead
    _process: int = field(default_factory=os.getpid)

    @property
    def bytes_read(self) -> int:
        """Of text files, on the disk."""
        return self._read.count

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Rows in any order: person and group as text, item as text or int64, amount; NULL where a value cannot be used."""
        if not self._selects:
            return
        check_same_process(self._process)
        with _our_errors(self._problems):
            query = " UNION ALL BY NAME ".join(self._selects)
            reader = self._connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        try:
            while True:
                check_same_process(self._process)
                with _our_errors(self._problems):
                    batch = next(reader, None)
                if batch is None:
                    break
                if batch.num_rows:
                    yield batch
        finally:
            if os.getpid() != self._process:
                _keep_for_ever(reader)


def memory_bytes(memory: Any) -> int:
    """A size such as '1GB' or '512MiB' in bytes."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B", str(memory))
    if match is None:
        raise ParameterError(f"memory must be a size such as '1GB', got {short_repr(memory)}")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])


@contextmanager
def opened_table(
    source: Any,
    columns: EventColumns,
    protocol: Protocol,
    *,
    by_number: bool,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
) -> Iterator[EventTable]:
    """The events of a source, after a look at its schema alone: every column is there and has its type."""
    limit = f"{memory_bytes(memory) // 1000}KB"
    files = event_files(source)
    config: dict[str, Any] = {**_SETTINGS, "memory_limit": limit, "threads": threads or available_threads()}
    process = os.getpid()
    connection = duckdb.connect(":memory:", config=config)
    try:
        # the bar goes to standard output, which may be a pipe
        connection.execute("SET enable_progress_bar = false")
        problems, read = list[BaseException](), BytesRead()
        with _our_errors(problems):
            relations = relations_of(connection, source, files, columns, problems, read)
        selects = [_select(each, protocol, by_number=by_number) for each in relations]
        yield EventTable(connection, selects, problems, read)
    finally:
        if os.getpid() == process:
            connection.close()
        else:  # a forked child would wait for threads of the parent
            _keep_for_ever(connection)


def _keep_for_ever(value: object) -> None:
    """Keeps the object from being destroyed, even at exit: it joins a cycle that the collector leaves alone."""
    cycle: list[object] = [value]
    cycle.append(cycle)
    gc.freeze()


def _select(relation: Relation, protocol: Protocol, *, by_number: bool) -> str:
    """One relation's events with the columns person, group, item and amount."""
    parts = dict[str, str]()
    for role, (column, kind) in relation.columns.items():
        if role.startswith("record "):
            continue
        if role == "item":
            value = item_expression(
                column, kind, protocol, is_text=role in relation.texts, by_number=by_number
            )
        elif role == "weight":
            value = amount_expression(column, kind, protocol, is_text=role in relation.texts)
        else:
            value = id_expression(column, kind, role)
        parts["amount" if role == "weight" else role] = value
    if protocol.record is not None:
        return record_select(relation, protocol.record, parts)
    selected = ", ".join(f'{value} AS "{name}"' for name, value in parts.items())
    return f"SELECT {selected} FROM {relation.sql}"  # noqa: S608  # our own text, names quoted


@contextmanager
def _our_errors(problems: list[BaseException]) -> Iterator[None]:
    """The engine's errors as ours: its own messages may quote data."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError, RuntimeError) as problem:
        if problems:
            raise problems[0] from None
        if isinstance(problem, duckdb.OutOfMemoryException):
            raise InputError("sorting must fit within the memory given, got too little; try 4GB") from None
        if isinstance(problem, RuntimeError) and "interrupted" in str(problem).lower():
            raise KeyboardInterrupt from None
        if BAD_LINE in str(problem):
            raise InputError("source must hold one JSON object on each line, got another line") from None
        raise InputError("cannot read source: damaged, or not the type that its extension says") from None
