"""The embedded engine: events of any source as a stream of Arrow batches, and small parts of it sorted by person.

The engine has no network, installs nothing and writes nothing to the disk; `spill.py` handles what does not fit memory.
"""

import gc
import os
import re
from collections.abc import Callable, Iterator, Sequence
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
from armslength.ingest.sources import (
    EventFile,
    chosen_columns,
    event_files,
    file_stream,
    own_names,
    recorded_stream,
    table_stream,
)
from armslength.ingest.text_files import LINES, BytesRead, first_object, lines, not_utf8, records
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import canonical_text
from armslength.threads import available_threads, check_same_process

_MOST_COLUMNS = 20_000  # two seconds; the engine's time grows with their square
BAD_LINE = "ARMSLENGTH: a line is no JSON object"
_PATTERNS = set("*?[\\")  # what the engine takes for a pattern in the name of a file


@dataclass(frozen=True)
class Relation:
    """What the engine selects events from."""

    sql: str  # a table function or a table's name
    columns: dict[str, tuple[str, str]]  # for each role its column as SQL, and the type
    is_text: bool  # whether all columns are untyped text


def relations_of(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    files: list[EventFile] | None,
    columns: EventColumns,
    problems: list[BaseException],
    read: BytesRead,
) -> list[Relation]:
    """The relations of files, or of a table in memory. Files of one kind and schema are one scan.

    Our own readers add their errors to `problems`, because the engine would lose the messages.
    """
    roles = columns.named
    same_names = {role: role for role in roles}
    if files is None:
        stream = table_stream(source)
        check_names(roles, list(stream.schema.names), "source")
        connection.register("events_of_table", chosen_columns(stream, roles, problems))
        return [_typed(connection, "events_of_table", same_names)]
    relations, same_schema = list[Relation](), dict[tuple[str, ...], list[EventFile]]()
    delimited, objects = list[tuple[EventFile, list[str]]](), list[EventFile]()
    for number, file in enumerate(files):
        if file.kind == "json":
            keys = keys_of_first_line(connection, file)
            if keys is not None:  # no line, no event
                check_names(roles, keys, file.name, has_capitals=True)
                objects.append(file)
            continue
        names = own_names(file)
        if len(names) > _MOST_COLUMNS:
            raise InputError(
                f"{file.name} must have at most {_MOST_COLUMNS} columns, got {len(names)}; leave out those that are not needed"
            )
        check_names(roles, names, file.name, has_schema=file.kind in ("parquet", "arrow"))
        if file.kind in ("csv", "tsv"):
            delimited.append((file, names))
            continue
        # the engine would take the file's name for a pattern, or rename columns that differ in capitals alone
        is_pattern = not _PATTERNS.isdisjoint(str(file.path.resolve()))
        has_twins = len({name.casefold() for name in names}) < len(names)
        if file.kind == "arrow" or is_pattern or has_twins:
            connection.register(f"events_{number}", chosen_columns(file_stream(file), roles, problems))
            relations.append(_typed(connection, f"events_{number}", same_names))
        else:
            types = _types(connection, _parquet([file])).values()
            same_schema.setdefault((*names, "types", *types), []).append(file)
    relations += [_typed(connection, _parquet(group), roles) for group in same_schema.values()]
    if delimited:
        batches = chain.from_iterable(
            records(file.path, file.kind, names, roles, read) for file, names in delimited
        )
        schema = pa.schema([(role, pa.string()) for role in roles])
        connection.register("events_of_records", recorded_stream(schema, batches, problems))
        texts = {role: (quoted(role), "VARCHAR") for role in roles}
        relations.append(Relation("events_of_records", texts, is_text=True))
    if objects:
        batches = chain.from_iterable(lines(file.path, read) for file in objects)
        connection.register("events_of_lines", recorded_stream(LINES, batches, problems))
        relations.append(_of_lines(roles))
    return relations


def keys_of_first_line(connection: duckdb.DuckDBPyConnection, file: EventFile) -> list[str] | None:
    """The keys of the first object in a file of JSON lines, by the engine's own parser; None for a file without any."""
    line = first_object(file.path)
    if line is None:
        return None
    try:
        query = "SELECT CASE WHEN json_valid($1) AND json_type($1) = 'OBJECT' THEN json_keys($1) END"
        ((keys,),) = connection.execute(query, [line.decode()]).fetchall()
    except UnicodeDecodeError:
        raise not_utf8(file.path) from None
    if keys is None:
        raise InputError(f"{file.name} must hold one JSON object on each line, got something else")
    return list(keys)


def check_names(
    columns: dict[str, str],
    names: list[str],
    where: str,
    *,
    has_schema: bool = False,
    has_capitals: bool = False,
) -> None:
    """Refuses names that do not have the column of each role once, ignoring case unless `has_capitals`.

    Names that do not come from a schema are not shown: a file without a header begins with somebody's data.
    """
    folded = [name.casefold() for name in names]
    for role, name in columns.items():
        if name not in names:
            raise InputError(
                f"{role} must be a column of {where}, got {name!r}; {_hint(name, names, has_schema=has_schema)}"
            )
        if not has_capitals and folded.count(name.casefold()) > 1:
            raise InputError(f"{role} must be one column of {where}, got several like {name!r}; rename them")


def _hint(wanted: str, names: Sequence[str], *, has_schema: bool) -> str:
    """Help to find the name that was meant."""
    if has_schema:
        return f"its columns are {', '.join(map(repr, names[:20])) or 'none'}"
    near = next((name for name in names if _letters(name) == _letters(wanted)), None)
    if near is not None:  # the caller wrote these letters
        return f"did you mean {near!r}?"
    if len(names) != 1:
        return f"it begins with {len(names)} other names: are they a header?"
    delimiter = next((mark for mark in (";", "\t", "|", ",") if mark in names[0]), None)
    if delimiter is None:
        return "it begins with 1 other name: is it a header?"
    # shows nothing of the text around it
    return f"its header is one column: is it separated by {delimiter!r}? Only commas (.csv) and tabs (.tsv) are read"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _typed(connection: duckdb.DuckDBPyConnection, sql: str, columns: dict[str, str]) -> Relation:
    """A relation with types of its own, given the column of each role."""
    types = _types(connection, sql)
    for role, name in columns.items():
        if types[name] == "JSON":  # unchecked: a single value could end the query
            raise InputError(f"{role} must be a column of text or numbers, got JSON; cast it first")
    return Relation(sql, {role: (quoted(name), types[name]) for role, name in columns.items()}, is_text=False)


def _parquet(files: Sequence[EventFile]) -> str:
    places = ", ".join(text(str(file.path.resolve())) for file in files)
    return f"read_parquet([{places}], hive_partitioning = false, union_by_name = true)"


def _of_lines(roles: dict[str, str]) -> Relation:
    """JSON lines, which our own reader cuts, and the engine parses one at a time."""
    # a pointer instead of a path: names of keys may hold anything
    pointers = [text("/" + name.replace("~", "~0").replace("/", "~1")) for name in roles.values()]
    sql = (
        f"(SELECT json_extract(object, [{', '.join(pointers)}]) AS parts FROM ("  # noqa: S608  # our own text, names quoted
        f"SELECT CASE WHEN line IS NULL THEN NULL WHEN json_valid(line) AND json_type(line) = 'OBJECT' THEN line::JSON ELSE error('{BAD_LINE}') END AS object "
        "FROM events_of_lines WHERE line IS NULL OR NOT regexp_full_match(line, '\\s*')))"
    )
    columns = {role: (f"parts[{place}]", "JSON") for place, role in enumerate(roles, 1)}
    return Relation(sql, columns, is_text=False)


def _types(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, str]:
    """The type of each column, by name."""
    relation = connection.sql(f"SELECT * FROM {sql} LIMIT 0")  # noqa: S608  # our own text, names quoted
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def quoted(name: str) -> str:
    """A column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Text as SQL."""
    return "'" + value.replace("'", "''") + "'"


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
    parts = []
    for role, (column, kind) in relation.columns.items():
        if role == "item":
            value = item_expression(column, kind, protocol, is_text=relation.is_text, by_number=by_number)
        elif role == "weight":
            value = amount_expression(column, kind, protocol, is_text=relation.is_text)
        else:
            value = id_expression(column, kind, role)
        parts.append(f'{value} AS "{"amount" if role == "weight" else role}"')
    return f"SELECT {', '.join(parts)} FROM {relation.sql}"  # noqa: S608  # our own text, names quoted


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
