"""How the engine reads each source: files of one kind and schema together, every part of a format given, nothing sniffed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import InputError
from armslength.tables.columns import EventColumns
from armslength.tables.sources import EventFile, chosen_columns, file_stream, own_names, table_stream
from armslength.tables.text_files import LINES, BytesRead, first_object, lines, not_utf8, records

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
