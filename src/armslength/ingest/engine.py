"""The embedded engine: events of any source as a stream of Arrow batches, and small parts of it sorted by person.

The engine has no network, installs nothing and writes nothing to the disk; `spill.py` handles what does not fit memory.
"""

import gc
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength.checks import short_repr
from armslength.errors import InputError, ParameterError, plural
from armslength.ingest.event_columns import (
    EventColumns,
    amount_expression,
    id_expression,
    item_expression,
    nfc,
)
from armslength.ingest.records import record_select
from armslength.ingest.relations import BAD_LINE, Relation, relations_of
from armslength.ingest.sources import event_files
from armslength.ingest.text_files import BytesRead
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import canonical_text
from armslength.threads import available_threads, check_same_process

DEFAULT_MEMORY = "1GB"
EVENT = ("person", "group", "item", "amount")
PERSON_HASH, EVENT_HASH = "person_hash", "event_hash"
_ROWS_AT_ONCE = 1 << 20  # few enough for memory, many enough that an item that occurs often is hashed seldom
_BYTES_AT_ONCE = 1 << 26
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
    "arrow_large_buffer_size": True,  # texts of a batch may be longer than 2 GB together
    "temp_directory": "",  # the engine cannot encrypt what it writes there
}
_NO_EVENTS = 'SELECT NULL AS person, NULL AS item, NULL AS "group", NULL AS amount'
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}


@dataclass
class LeftOut:
    """How many rows were read, and left out for lack of a usable role; **private**, for the data holder alone."""

    rows: int = 0
    person: int = 0
    group: int = 0
    item: int = 0
    weight: int = 0
    bytes: int = field(default=0, compare=False)  # of text files, on the disk
    in_order: int = field(default=0, compare=False)  # rows that were sorted by person

    @property
    def counting(self) -> int:
        """How many rows count, up to the bound for each person."""
        return self.rows - self.person - self.group - self.item - self.weight

    def in_words(self) -> str:
        """One line that says how much of the table counts."""
        reasons = {
            "without a person": self.person,
            "of groups that are not listed": self.group,
            "without a usable item": self.item,
            "without a usable weight": self.weight,
        }
        lost = [f"{count:,} {reason}" for reason, count in reasons.items() if count]
        left = self.counting
        return (
            f"PRIVATE, for you alone: of {plural(self.rows, 'row')}, {left:,} {'counts' if left == 1 else 'count'}, "
            f"up to the bound for each person{'; left out: ' if lost else ''}{', '.join(lost)}"
        )


@dataclass
class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `batches`."""

    _connection: duckdb.DuckDBPyConnection
    _selects: list[str]
    _problems: list[BaseException]
    _read: BytesRead
    _process: int = field(default_factory=os.getpid)
    left_out: LeftOut = field(default_factory=LeftOut)

    def batches(
        self,
        groups: pa.Table | None,
        item_names: pa.Table | None = None,
        item_amounts: Mapping[str, int] | None = None,
        *,
        has_weights: bool,
        watch: Callable[[pa.RecordBatch], object] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Events as (person, number of the group, item, amount) in any order, with a hash of the person.

        Leaves out events without a person, an item or a listed group, or whose weight is 0 or no number of grid units.
        `watch` sees all rows before that, with the name of each group that is not listed as `unlisted`.
        """
        events = " UNION ALL BY NAME ".join(self._selects or [_NO_EVENTS])
        group, item, joins = "0::INTEGER", "item", ""
        if groups is not None:
            self._connection.register("public_groups", groups)
            group, joins = "number", 'LEFT JOIN public_groups ON events."group" = public_groups.label'
        if item_names is not None:
            self._connection.register("item_names", item_names)
            item = "place"
            joins += f" LEFT JOIN item_names ON {nfc('events.item')} = item_names.name"
        amount = "amount" if has_weights else "1::BIGINT"
        if item_amounts is not None:
            listed = pa.array(item_amounts, pa.string()), pa.array(item_amounts.values(), pa.int64())
            self._connection.register("item_amounts", pa.table(listed, ["weighed", "units"]))
            amount = "units"
            joins += f" LEFT JOIN item_amounts ON {nfc('events.item')} = item_amounts.weighed"
        unlisted = ""
        if watch is not None and groups is not None:
            unlisted = ', CASE WHEN number IS NULL THEN events."group" END AS unlisted'
        query = (
            f'WITH events AS ({events}) SELECT person, {group} AS "group", {item} AS item, {amount} AS amount, '  # noqa: S608  # our own text, names quoted
            f"hash(person) AS {PERSON_HASH}{unlisted} FROM events {joins}"
        )
        for batch in self._batches_of(query):
            if watch is not None:
                watch(batch)
            rows = self._usable(batch.select([*EVENT, PERSON_HASH]))
            if rows.num_rows:
                yield rows

    def _usable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that count; the others are counted in `left_out`, by the first reason."""
        person, group, spelled, amount = (batch.column(name) for name in EVENT)
        item = _canonical_items(spelled)
        batch = batch.set_column(batch.schema.get_field_index("item"), "item", item)
        is_usable = {
            "person": person.is_valid(),
            "group": group.is_valid(),
            "item": item.is_valid(),
            "weight": pc.fill_null(pc.not_equal(amount, 0), False),
        }
        self.left_out.rows += batch.num_rows
        self.left_out.bytes = self._read.count
        mask = np.ones(batch.num_rows, dtype=np.bool_)
        for role, usable in is_usable.items():
            before = int(mask.sum())
            mask &= usable.to_numpy(zero_copy_only=False)
            setattr(self.left_out, role, getattr(self.left_out, role) + before - int(mask.sum()))
        return batch if mask.all() else batch.filter(pa.array(mask))

    def in_order(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Events sorted by (person, group, item, amount)."""
        query = 'SELECT person, "group", item, amount FROM part ORDER BY 1, 2, 3, 4'
        for batch in self._batches_of(query, events):
            self.left_out.in_order += batch.num_rows
            yield batch

    def with_event_hash(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events with a hash of (person, group, item)."""
        query = f'SELECT person, "group", item, amount, hash(person, "group", item) AS {EVENT_HASH} FROM part'  # noqa: S608  # our own names
        return self._batches_of(query, _reader(batches))

    def runs_in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `in_order`, for a stream of events of which few are different: only those are in memory."""
        query = 'SELECT person, "group", item, amount, count(*) AS times FROM part GROUP BY ALL ORDER BY 1, 2, 3, 4'
        for batch in self._batches_of(query, _reader(batches)):
            last = np.cumsum(batch.column("times").to_numpy())
            for start in range(0, int(last[-1]), _ROWS_AT_ONCE):
                rows = np.arange(start, min(start + _ROWS_AT_ONCE, int(last[-1])))
                self.left_out.in_order += len(rows)
                yield batch.select(EVENT).take(pa.array(np.searchsorted(last, rows, side="right")))

    def _batches_of(self, query: str, part: Any = None) -> Iterator[pa.RecordBatch]:
        """The rows of a query, which may read `part`, in larger batches than the engine's."""
        check_same_process(self._process)
        if part is not None:
            self._connection.register("part", part)
        with _our_errors(self._problems):
            reader = self._connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        waiting: list[pa.RecordBatch] = []
        rows, size = 0, 0
        try:
            while True:
                if os.getpid() != self._process:
                    check_same_process(self._process)  # raises
                with _our_errors(self._problems):
                    batch = next(reader, None)
                if batch is not None and batch.num_rows:
                    waiting.append(batch)
                    rows, size = rows + batch.num_rows, size + batch.nbytes
                if waiting and (batch is None or rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE):
                    yield pa.concat_batches(waiting)
                    waiting.clear()
                    rows, size = 0, 0
                if batch is None:
                    break
        finally:
            if os.getpid() != self._process:
                _keep_for_ever(reader)
        if part is not None:
            self._connection.unregister("part")


def _reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Batches, of which there is at least one, as a stream."""
    first = next(batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _canonical_items(items: pa.Array) -> pa.Array:
    """The items in their NFC form, in which they are hashed; NULL where there is none that every party can read alike."""
    if not (pa.types.is_string(items.type) or pa.types.is_large_string(items.type)):
        return items
    is_other = pc.fill_null(pc.invert(pc.string_is_ascii(items)), False)
    if not pc.any(is_other).as_py():
        return items
    coded = items.filter(is_other).dictionary_encode()
    forms = pa.array(map(_canonical, coded.dictionary.to_pylist()), items.type)
    return pc.replace_with_mask(items, is_other, forms.take(coded.indices))


def _canonical(item: str) -> str | None:
    try:
        return canonical_text(item).decode()
    except ValueError:
        return None


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
            value = item_expression(column, kind, protocol, is_text=relation.is_text, by_number=by_number)
        elif role == "weight":
            value = amount_expression(column, kind, protocol, is_text=relation.is_text)
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
