"""The embedded engine: events of any source as a stream of Arrow batches, and small parts of it in the order of their persons.

The engine has no network, installs nothing and writes nothing to the disk. What does not fit memory is the business of `spill.py`.
"""

import gc
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from armslength.checks import shown
from armslength.errors import InputError, ParameterError, counted
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
    table_stream,
)
from armslength.ingest.text_files import LINES, BytesRead, first_object, lines, not_utf8, records
from armslength.protocol.protocol import Protocol
from armslength.randomness.seeds import is_canonical
from armslength.threads import available_threads, check_same_process

# How the engine reads each source: files of one kind and schema together, every part of a format given, nothing sniffed.


_MOST_COLUMNS = 20_000  # two seconds; the engine's time grows with their square
BAD_LINE = "ARMSLENGTH: a line is no JSON object"
_PATTERNS = set("*?[\\")  # what the engine takes for a pattern in the name of a file


@dataclass(frozen=True)
class Relation:
    """What the engine selects events from.

    Attributes:
        sql: A table function or a table's name.
        columns: For each role (person, item, group, weight) the column as SQL knows it, and its type.
        is_text: Whether it holds text alone, without types.
    """

    sql: str
    columns: dict[str, tuple[str, str]]
    is_text: bool


def relations_of(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    files: list[EventFile] | None,
    columns: EventColumns,
    problems: list[BaseException],
    read: BytesRead,
) -> list[Relation]:
    """The relations of a source, each column found in its own schema. Files of one kind and schema are one scan.

    Args:
        connection: The engine.
        source: A table in memory, if there are no files.
        files: The files, or None.
        columns: Which columns hold what.
        problems: Takes what our own readers find wrong while the engine reads, which would lose their words.
        read: Is told how far text files were read.
    """
    if files is None:
        stream = table_stream(source)
        check_names(columns.named, list(stream.schema.names), "source")
        return [_registered(connection, "events_of_table", stream, columns, problems)]
    relations, alike = list[Relation](), dict[tuple[str, ...], list[EventFile]]()
    delimited, objects = list[tuple[EventFile, list[str]]](), list[EventFile]()
    for number, file in enumerate(files):
        if file.kind == "json":
            keys = keys_of_first_line(connection, file)
            if keys is not None:  # no line, no event
                check_names(columns.named, keys, file.name, has_capitals=True)
                objects.append(file)
            continue
        names = own_names(file)
        if len(names) > _MOST_COLUMNS:
            raise InputError(
                f"{file.name} must have at most {_MOST_COLUMNS} columns, got {len(names)}; leave out those that are not needed"
            )
        check_names(columns.named, names, file.name, has_schema=file.kind in ("parquet", "arrow"))
        if file.kind in ("csv", "tsv"):
            delimited.append((file, names))
        elif file.kind == "arrow" or _is_awkward(file, names):
            relations.append(
                _registered(connection, f"events_{number}", file_stream(file), columns, problems)
            )
        else:
            kinds = _types(connection, _parquet([file])).values()
            alike.setdefault((*names, "types", *kinds), []).append(file)
    relations += [_of_parquet(connection, group, columns) for group in alike.values()]
    if delimited:
        relations.append(_of_records(connection, delimited, columns, problems, read))
    if objects:
        relations.append(_of_lines(connection, objects, columns, problems, read))
    return relations


def keys_of_first_line(connection: duckdb.DuckDBPyConnection, file: EventFile) -> list[str] | None:
    """The keys of the first object in a file of JSON lines; None for a file without any.

    The engine finds them, as it finds those of every other line: what one parser takes another may not.
    """
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


def _is_awkward(file: EventFile, names: Sequence[str]) -> bool:
    """Whether the engine would take the file's name for a pattern, or rename columns that differ in capitals alone."""
    return not _PATTERNS.isdisjoint(str(file.path.resolve())) or len(
        {name.casefold() for name in names}
    ) < len(names)


def check_names(
    columns: dict[str, str],
    names: Sequence[str],
    where: str,
    *,
    has_schema: bool = False,
    has_capitals: bool = False,
) -> None:
    """Refuses names among which that of each role is not there once; the engine does not tell capitals from small letters.

    Args:
        columns: Role and name of each column that there must be.
        names: The names that there are.
        where: What has them.
        has_schema: Whether they come from a schema. A text file without a header begins with somebody's data, and so do the
            columns of a data frame that was made of one: such names are not shown.
        has_capitals: Whether capitals are told from small letters, as in keys of JSON.
    """
    folded = [name.casefold() for name in names]
    for role, name in columns.items():
        if name not in names:
            raise InputError(
                f"{role} must be a column of {where}, got {name!r}; {_hint(name, names, has_schema=has_schema)}"
            )
        if not has_capitals and folded.count(name.casefold()) > 1:
            raise InputError(
                f"{role} must be one column of {where}, got several that are spelled like {name!r}; rename them"
            )


def _hint(wanted: str, names: Sequence[str], *, has_schema: bool) -> str:
    """What helps to find the name that was meant."""
    if has_schema:
        return f"its columns are {', '.join(map(repr, names[:20])) or 'none'}"
    near = next((name for name in names if _letters(name) == _letters(wanted)), None)
    if near is not None:  # who asked has written these letters
        return f"did you mean {near!r}?"
    if len(names) == 1:
        delimiter = next((mark for mark in (";", "\t", "|", ",") if mark in names[0]), None)
        if delimiter is not None:  # a mark alone shows nothing of what stands around it
            return f"its header is one column: is it separated by {delimiter!r}? Only commas (.csv) and tabs (.tsv) are read"
    count = "1 other name: is it" if len(names) == 1 else f"{len(names)} other names: are they"
    return f"it begins with {count} a header?"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _registered(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    stream: pa.RecordBatchReader,
    columns: EventColumns,
    problems: list[BaseException],
) -> Relation:
    """A stream under a name of ours, its columns under the names of their roles."""
    connection.register(name, chosen_columns(stream, columns.named, problems))
    types = _types(connection, name)
    return Relation(
        name, {role: (quoted(role), _plain_type(role, types[role])) for role in columns.named}, False
    )


def _of_parquet(
    connection: duckdb.DuckDBPyConnection, files: list[EventFile], columns: EventColumns
) -> Relation:
    """One relation for Parquet files of the same schema: thousands of them are one scan."""
    sql = _parquet(files)
    types = _types(connection, sql)
    named = {role: (quoted(name), _plain_type(role, types[name])) for role, name in columns.named.items()}
    return Relation(sql, named, False)


def _plain_type(role: str, kind: str) -> str:
    """The type of a column, unless it is JSON that nobody has checked: a single value could end the query."""
    if kind == "JSON":
        raise InputError(f"{role} must be a column of text or numbers, got JSON; cast it first")
    return kind


def _parquet(files: Sequence[EventFile]) -> str:
    places = ", ".join(text(str(file.path.resolve())) for file in files)
    return f"read_parquet([{places}], hive_partitioning = false, union_by_name = true)"


def _of_records(
    connection: duckdb.DuckDBPyConnection,
    files: list[tuple[EventFile, list[str]]],
    columns: EventColumns,
    problems: list[BaseException],
    read: BytesRead,
) -> Relation:
    """One relation for all CSV and TSV files, which our own reader cuts into records; every column is text."""
    roles = columns.named
    schema = pa.schema([(role, pa.string()) for role in roles])
    batches = (
        (file, batch) for file, names in files for batch in records(file.path, file.kind, names, roles, read)
    )
    connection.register("events_of_records", _valid(schema, batches, problems))
    return Relation("events_of_records", {role: (quoted(role), "VARCHAR") for role in roles}, True)


def _of_lines(
    connection: duckdb.DuckDBPyConnection,
    files: list[EventFile],
    columns: EventColumns,
    problems: list[BaseException],
    read: BytesRead,
) -> Relation:
    """One relation for all files of JSON lines: our own reader cuts the lines, and the engine looks into one line at a time."""
    batches = ((file, batch) for file in files for batch in lines(file.path, read))
    connection.register("events_of_lines", _valid(LINES, batches, problems))
    roles = columns.named
    # a pointer instead of a path: names of keys may hold anything
    pointers = [text("/" + name.replace("~", "~0").replace("/", "~1")) for name in roles.values()]
    sql = (
        f"(SELECT json_extract(object, [{', '.join(pointers)}]) AS parts FROM ("  # noqa: S608  # our own text, names quoted
        f"SELECT CASE WHEN line IS NULL THEN NULL WHEN json_valid(line) AND json_type(line) = 'OBJECT' THEN line::JSON ELSE error('{BAD_LINE}') END AS object "
        "FROM events_of_lines WHERE line IS NULL OR NOT regexp_full_match(line, '\\s*')))"
    )
    return Relation(sql, {role: (f"parts[{place}]", "JSON") for place, role in enumerate(roles, 1)}, False)


def _valid(
    schema: pa.Schema, batches: Iterable[tuple[EventFile, pa.RecordBatch]], problems: list[BaseException]
) -> pa.RecordBatchReader:
    """A stream of batches whose text is text: the engine trusts Arrow's buffers."""

    def checked() -> Iterator[pa.RecordBatch]:
        try:
            for file, batch in batches:
                try:
                    batch.validate(full=True)
                except pa.ArrowInvalid:
                    raise not_utf8(file.path) from None
                yield batch
        except (InputError, KeyboardInterrupt) as problem:
            problems.append(problem)
            raise

    return pa.RecordBatchReader.from_batches(schema, checked())


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
    """How many rows were read, and how many of them do not count, by the first reason: **private**, for the data holder alone.

    Attributes:
        rows: All rows.
        bytes: How much of text files was read, as they lie on the disk.
        in_order: How many of the rows that count were sorted by person.
        person: Without a person.
        group: Of a group that is not listed.
        item: Without an item, with one of another type, or with a character that nobody has assigned.
        weight: With a weight that is 0, missing, no finite number, too large or off the grid.
    """

    rows: int = 0
    person: int = 0
    group: int = 0
    item: int = 0
    weight: int = 0
    bytes: int = field(default=0, compare=False)
    in_order: int = field(default=0, compare=False)

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
            f"PRIVATE, for you alone: of {counted(self.rows, 'row')}, {left:,} {'counts' if left == 1 else 'count'}, "
            f"up to the bound for each person"
            f"{'; left out: ' if lost else ''}{', '.join(lost)}"
        )


class EventTable:
    """Events of a source, checked against their schema; made by `opened_table`, read once by `batches`.

    Attributes:
        left_out: What `batches` has read and left out so far.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        selects: list[str],
        problems: list[BaseException],
        read: BytesRead,
    ) -> None:
        self._connection = connection
        self._selects = selects
        self._problems = problems
        self._read = read
        self._process = os.getpid()
        self.left_out = LeftOut()

    def batches(
        self, groups: pa.Table | None, item_names: pa.Table | None = None, *, has_weights: bool
    ) -> Iterator[pa.RecordBatch]:
        """Events as (person, group, item, amount) in any order, with a hash of the person.

        Events that do not count are left out, each by itself: without a person, an item or a listed group, or with a weight that is no number
        of grid units, or 0. `group` is the number of the public group.

        Args:
            groups: Label and number of the public groups; None if there is one, of all events.
            item_names: The names of a fixed vocabulary with their numbers, which then are the items; others are left out.
            has_weights: Whether events have an amount; else it is 1.
        """
        events = " UNION ALL BY NAME ".join(self._selects or [_NO_EVENTS])
        group, item, joins = "0::INTEGER", "item", ""
        if groups is not None:
            self._connection.register("public_groups", groups)
            group, joins = "number", 'LEFT JOIN public_groups ON events."group" = public_groups.label'
        if item_names is not None:
            self._connection.register("item_names", item_names)
            item, joins = (
                "place",
                f"{joins} LEFT JOIN item_names ON {nfc('events.item')} = item_names.name",
            )
        amount = "amount" if has_weights else "1::BIGINT"
        query = (
            f'WITH events AS ({events}) SELECT person, {group} AS "group", {item} AS item, {amount} AS amount, '  # noqa: S608  # our own text, names quoted
            f"hash(person) AS {PERSON_HASH} FROM events {joins}"
        )
        for batch in self._batches_of(query):
            counted = self._that_count(batch)
            if counted.num_rows:
                yield counted

    def _that_count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that count; how many do not is noted."""
        person, group, item, amount = (batch.column(name) for name in EVENT)
        has_amount = pc.fill_null(pc.not_equal(amount, 0), False)
        reasons = {
            "person": person.is_valid(),
            "group": group.is_valid(),
            "item": _is_item(item),
            "weight": has_amount,
        }
        self.left_out.rows += batch.num_rows
        self.left_out.bytes = self._read.count
        count = np.ones(batch.num_rows, dtype=np.bool_)
        for reason, is_fine in reasons.items():
            still = count & is_fine.to_numpy(zero_copy_only=False)
            lost = int(np.count_nonzero(count)) - int(np.count_nonzero(still))
            setattr(self.left_out, reason, getattr(self.left_out, reason) + lost)
            count = still
        return batch if count.all() else batch.filter(pa.array(count))

    def in_order(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Events sorted by (person, group, item, amount)."""
        self._connection.register("part", events)
        for batch in self._batches_of('SELECT person, "group", item, amount FROM part ORDER BY 1, 2, 3, 4'):
            self.left_out.in_order += batch.num_rows
            yield batch
        self._connection.unregister("part")

    def with_event_hash(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events with a hash of (person, group, item)."""
        self._connection.register("part", _reader(batches))
        query = f'SELECT person, "group", item, amount, hash(person, "group", item) AS {EVENT_HASH} FROM part'  # noqa: S608  # our own names
        yield from self._batches_of(query)
        self._connection.unregister("part")

    def runs_in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `in_order`, for a stream of events of which few are different: only those are held."""
        self._connection.register("part", _reader(batches))
        query = 'SELECT person, "group", item, amount, count(*) AS times FROM part GROUP BY ALL ORDER BY 1, 2, 3, 4'
        for batch in self._batches_of(query):
            last = np.cumsum(batch.column("times").to_numpy())
            for start in range(0, int(last[-1]), _ROWS_AT_ONCE):
                rows = np.arange(start, min(start + _ROWS_AT_ONCE, int(last[-1])))
                self.left_out.in_order += len(rows)
                yield batch.select(EVENT).take(pa.array(np.searchsorted(last, rows, side="right")))
        self._connection.unregister("part")

    def _batches_of(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query in batches of a useful size: the engine's are smaller than what it is asked for."""
        check_same_process(self._process)
        with _our_errors(self._problems):
            reader = self._connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
        waiting: list[pa.RecordBatch] = []
        rows, size = 0, 0
        try:
            while True:
                check_same_process(self._process)
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
                    return
        finally:
            if os.getpid() != self._process:
                _keep_for_ever(reader)


def _reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Batches, of which there is at least one, as a stream."""
    first = next(batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _is_item(items: pa.Array) -> pa.Array:
    """Where there is an item that every party can read alike."""
    if not (pa.types.is_string(items.type) or pa.types.is_large_string(items.type)):
        return items.is_valid()
    other = items.filter(pc.invert(pc.fill_null(pc.string_is_ascii(items), True)))
    unreadable = [item for item in pc.unique(other).to_pylist() if not is_canonical(item)]
    if not unreadable:
        return items.is_valid()
    return pc.and_(items.is_valid(), pc.invert(pc.is_in(items, pa.array(unreadable, items.type))))


def memory_bytes(memory: Any) -> int:
    """A size such as '1GB' or '512MiB' in bytes."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B", str(memory))
    if found is None:
        raise ParameterError(f"memory must be a size such as '1GB', got {shown(memory)}")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])


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
        memory: How much the engine may hold.
        threads: At most this many threads; None takes all that the process may run.
    """
    limit = f"{memory_bytes(memory) // 1000}KB"
    files = event_files(source)
    config = {**_SETTINGS, "memory_limit": limit, "threads": threads or available_threads()}
    with _connected(config) as connection:
        connection.execute(
            "SET enable_progress_bar = false"
        )  # it writes to standard output, which may be a pipe
        problems: list[BaseException] = []
        read = BytesRead()
        with _our_errors(problems):
            relations = relations_of(connection, source, files, columns, problems, read)
        selects = [_select(each, protocol, by_number=by_number) for each in relations]
        yield EventTable(connection, selects, problems, read)


@contextmanager
def _connected(config: dict[str, Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that is closed at the end. A child that was forked meanwhile must leave it alone: to close it waits for threads of the parent."""
    process = os.getpid()
    connection = duckdb.connect(":memory:", config=config)
    try:
        yield connection
    finally:
        if os.getpid() == process:
            connection.close()
        else:
            _keep_for_ever(connection)


def _keep_for_ever(value: object) -> None:
    """Nothing destroys the object, not even the end of the process: it is part of a circle that the collector leaves alone."""
    kept: list[object] = [value]
    kept.append(kept)
    gc.freeze()


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
def _our_errors(problems: list[BaseException]) -> Iterator[None]:
    """The engine's errors as ours: its own messages may quote data.

    Args:
        problems: What our own readers have found, whose words the engine does not pass on.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError, RuntimeError) as problem:
        if problems:
            raise problems[0] from None
        if isinstance(problem, duckdb.OutOfMemoryException):
            raise InputError(
                "source must be sorted within the memory given, got too little; allow more memory, such as 4GB"
            ) from None
        if isinstance(problem, RuntimeError) and "interrupted" in str(problem).lower():
            raise KeyboardInterrupt from None
        if BAD_LINE in str(problem):
            raise InputError(
                "source must hold one JSON object on each line, got a line with something else"
            ) from None
        raise InputError(_UNREADABLE) from None


_UNREADABLE = "source must be readable to its end as what its name says, got damage or another kind"
