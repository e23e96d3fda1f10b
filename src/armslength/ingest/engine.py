"""The embedded engine: events of any source as a stream of Arrow batches.

The engine has no network, installs nothing and writes nothing to the disk.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import NO_MEMORY, ArmslengthError, InputError, MissingFileError, OutOfMemoryError
from armslength.ingest.batches import joined
from armslength.ingest.event_columns import (
    EventColumns,
    amount_expression,
    id_expression,
    item_expression,
)
from armslength.ingest.partitions import DEFAULT_MEMORY, memory_bytes
from armslength.ingest.records import record_select
from armslength.ingest.relations import BAD_LINE, TOO_LITTLE, Parser, Relation, relations_of
from armslength.ingest.sources import event_files
from armslength.ingest.text_files import BytesRead
from armslength.protocol.protocol import Protocol
from armslength.threads import available_threads, check_same_process

_ROWS_OF_ENGINE = 1 << 10  # at a time: it says nothing about their bytes
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
    "arrow_large_buffer_size": True,  # texts of a batch may be longer than 2 GB together
    "temp_directory": "",  # the engine cannot encrypt what it writes there
}


@dataclass
class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `pieces`."""

    _connection: duckdb.DuckDBPyConnection
    _selects: list[str]
    _problems: list[BaseException]
    _read: BytesRead
    _process: int = field(default_factory=os.getpid)

    @property
    def bytes_read(self) -> int:
        """Of text files, on the disk."""
        return self._read.count

    def pieces(self) -> Iterator[list[pa.RecordBatch]]:
        """Rows in any order, a batch at a time: person and group as text, item as text or int64, amount; NULL where a value cannot be used."""
        for batch in joined(self._batches()):
            yield [batch]
        check_same_process(self._process)  # refuses a forked child, which has no threads of the engine

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if not self._selects:
            return
        reader: pa.RecordBatchReader | None = None
        try:
            while os.getpid() == self._process:
                with _our_errors(self._problems):
                    if reader is None:
                        query = " UNION ALL BY NAME ".join(self._selects)
                        reader = self._connection.sql(query).to_arrow_reader(_ROWS_OF_ENGINE)
                    batch = next(reader, None)
                if batch is None:
                    return
                yield batch
        finally:
            if os.getpid() != self._process:
                _keep_for_ever(reader)


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
    parser = Parser(memory_bytes(memory), threads or available_threads())
    files = event_files(source)
    limits = {"memory_limit": f"{parser.memory // 1000}KB", "threads": parser.threads}
    config: dict[str, Any] = _SETTINGS | limits
    process = os.getpid()
    connection = duckdb.connect(":memory:", config=config)
    try:
        # the bar goes to standard output, which may be a pipe; and all that is read is handed to the engine
        connection.execute("SET enable_progress_bar = false; SET enable_external_access = false")
        problems, read = list[BaseException](), BytesRead()
        with _our_errors(problems):
            relations = relations_of(connection, source, files, columns, problems, read, parser)
        selects = [_select(relation, protocol, by_number=by_number) for relation in relations]
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
    except MissingFileError:
        raise
    except (
        duckdb.Error,
        pa.ArrowException,
        MemoryError,
        OSError,
        UnicodeDecodeError,
        RuntimeError,
    ) as problem:
        if problems and isinstance(problems[0], (ArmslengthError, KeyboardInterrupt)):
            raise problems[0] from None
        if problems or isinstance(problem, MemoryError):
            raise OutOfMemoryError(NO_MEMORY) from None
        if isinstance(problem, duckdb.OutOfMemoryException):
            raise OutOfMemoryError(TOO_LITTLE, "memory") from None
        if isinstance(problem, RuntimeError) and "interrupted" in str(problem).lower():
            raise KeyboardInterrupt from None
        if BAD_LINE in str(problem):
            raise InputError("source has a line that is not a JSON object", "source") from None
        raise InputError(
            "cannot read source: it is damaged, or not what its extension says", "source"
        ) from None
