"""What the engine selects events from: files of every kind and tables in memory, each as a relation with one column a role."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import InputError
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.sources import (
    EventFile,
    chosen_columns,
    file_stream,
    own_names,
    recorded_stream,
    table_stream,
)
from armslength.ingest.text_files import LINES, BytesRead, first_object, lines, not_utf8, records

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
