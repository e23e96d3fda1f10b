"""What the engine selects events from: files of every kind, databases and tables in memory, each as a relation with one column a role."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import InputError
from armslength.ingest.event_columns import EventColumns, quoted
from armslength.ingest.event_files import EventFile
from armslength.ingest.sources import (
    as_source,
    chosen_columns,
    chosen_schema,
    has_own_schema,
    recorded_stream,
    table_stream,
)
from armslength.ingest.text_files import BytesRead, first_object, header_names, lines, records

_MOST_COLUMNS = 20_000  # two seconds; the engine's time grows with their square
BAD_LINE = "ARMSLENGTH: a line is no JSON object"
_PATH = "armslength: path"  # the engine's column of the file that a row comes from
_PATTERNS = set("*?[\\")  # what the engine takes for a pattern in the name of a file


@dataclass(frozen=True)
class Relation:
    """What the engine selects events from."""

    sql: str  # a table function or a table's name
    columns: dict[str, tuple[str, str]]  # for each role its column as SQL, and the type
    texts: frozenset[str] = frozenset()  # the roles whose columns are untyped text


def relations_of(
    connection: duckdb.DuckDBPyConnection,
    source: Any,
    files: list[EventFile] | None,
    columns: EventColumns,
    problems: list[BaseException],
    read: BytesRead,
) -> list[Relation]:
    """The relations of files, a database, or a table in memory. Files of one kind and schema are one scan.

    Our own readers add their errors to `problems`, because the engine would lose the messages.
    """
    roles = columns.named
    if files is None:
        return [_of_table(connection, source, roles, problems)]
    scans = dict[tuple[Any, ...], list[EventFile]]()
    for file in files:
        key = _scan_of(connection, file, roles)
        if key is not None:
            scans.setdefault(key, []).append(file)
    return [
        _of_files(connection, f"events_{number}", scan, roles, problems, read)
        for number, scan in enumerate(scans.values())
    ]


def _scan_of(
    connection: duckdb.DuckDBPyConnection, file: EventFile, roles: dict[str, str]
) -> tuple[Any, ...] | None:
    """What a file has in common with others that are read in one scan, after a look at its schema; None if it has no events."""
    inside, folders = _split(roles, file)
    if file.kind in ("lines", "json"):
        keys = keys_of_first_object(connection, file)
        if keys is None:  # no object, no event
            return None
        check_names(inside, keys, file.name, has_capitals=True)
        return ("json", *folders)
    names = own_names(file)
    if len(names) > _MOST_COLUMNS:
        raise InputError(
            f"{file.name} must have at most {_MOST_COLUMNS} columns, got {len(names)}; leave out those that are not needed"
        )
    check_names(inside, names, file.name, has_schema=not file.is_text)
    if file.is_text:
        return ("delimited",)
    if _is_for_engine(file, names):
        return ("parquet", *folders, *names, "types", *_types(connection, _parquet([file])).values())
    return ("arrow", chosen_schema(file.dataset().schema, inside, folders))


def _is_for_engine(file: EventFile, names: list[str]) -> bool:
    """Whether the engine can read the file itself.

    It would take some names of files for patterns, and rename columns that differ in capitals alone.
    """
    if file.kind != "parquet" or file.filesystem is not None:
        return False
    has_twins = len({name.casefold() for name in names}) < len(names)
    return not has_twins and _PATTERNS.isdisjoint(str(Path(file.path).resolve()))


def _of_files(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    files: Sequence[EventFile],
    roles: dict[str, str],
    problems: list[BaseException],
    read: BytesRead,
) -> Relation:
    """The files of one scan."""
    file = files[0]
    inside, folders = _split(roles, file)
    if file.kind == "delimited":
        batches = chain.from_iterable(records(each, roles, read) for each in files)
        schema = pa.schema([(role, pa.string()) for role in roles])
        connection.register(name, recorded_stream(schema, batches, problems))
        return Relation(name, {role: (quoted(role), "VARCHAR") for role in roles}, frozenset(roles))
    if file.is_text:
        batches = chain.from_iterable(lines(each, roles, read) for each in files)
        schema = pa.schema([(column, pa.string()) for column in ("line", *folders)])
        connection.register(name, recorded_stream(schema, batches, problems))
        return _of_lines(name, inside, folders)
    if _is_for_engine(file, own_names(file)):
        return _of_parquet(connection, name, files, roles)
    schema = chosen_schema(file.dataset().schema, inside, folders)
    batches = chain.from_iterable(_arrow_batches(each, roles) for each in files)
    connection.register(name, recorded_stream(schema, batches, problems))
    return _typed(connection, name, {role: role for role in roles}, folders)


def _split(roles: dict[str, str], file: EventFile) -> tuple[dict[str, str], dict[str, str | None]]:
    """(the column of each role inside the file, the value of each role that the name of a folder says)."""
    inside = {role: name for role, name in roles.items() if name not in file.partitions}
    return inside, {role: file.partitions[name] for role, name in roles.items() if name in file.partitions}


def _of_table(
    connection: duckdb.DuckDBPyConnection, source: Any, roles: dict[str, str], problems: list[BaseException]
) -> Relation:
    """A database, or a table in memory."""
    database, table = as_source(source).database, as_source(source).where
    if database is None:
        stream = table_stream(source, roles.values())
        names = list(stream.schema.names)
    else:
        names = database.schema().names
    is_missing = not set(roles.values()) <= set(names)
    check_names(
        roles, names, "source", has_schema=database is not None or (is_missing and has_own_schema(table))
    )
    if database is None:
        schema, batches = chosen_schema(stream.schema, roles, ()), chosen_columns(stream, roles, {})
    else:
        schema, batches = database.schema(roles), database.batches(roles)
    connection.register("events_of_table", recorded_stream(schema, batches, problems))
    texts = roles if database is not None and database.is_text else ()
    return _typed(connection, "events_of_table", {role: role for role in roles}, texts)


def own_names(file: EventFile) -> list[str]:
    """The columns of a file by its own schema, as it spells them; JSON has none."""
    return header_names(file) if file.kind == "delimited" else list(file.dataset().schema.names)


def _arrow_batches(file: EventFile, roles: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """The events of an Arrow file, or of a Parquet file that the engine cannot read itself."""
    inside, folders = _split(roles, file)
    dataset = file.dataset()
    has_twins = len(set(dataset.schema.names)) < len(dataset.schema.names)
    reader = dataset.scanner(columns=None if has_twins else list(inside.values())).to_reader()
    yield from chosen_columns(reader, inside, folders)


def keys_of_first_object(connection: duckdb.DuckDBPyConnection, file: EventFile) -> list[str] | None:
    """The keys of the first object in a JSON file, by the engine's own parser; None for a file without any."""
    line = first_object(file)
    if line is None:
        return None
    try:
        query = "SELECT CASE WHEN json_valid($1) AND json_type($1) = 'OBJECT' THEN json_keys($1) END"
        ((keys,),) = connection.execute(query, [line.decode()]).fetchall()
    except UnicodeDecodeError:
        raise file.wrong_encoding() from None
    if keys is None:
        raise InputError(
            f"{file.name} must hold one JSON object on each line, or an array of them, got something else"
        )
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
    delimiter = next((mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]), None)
    if delimiter is None:
        return f"none of its {len(names)} columns has this name; a text file needs a header line"
    # shows nothing of the text around it
    return f"its header is one column: is it separated by {delimiter!r}? Say delimiter={delimiter!r} (--delimiter)"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _typed(
    connection: duckdb.DuckDBPyConnection, sql: str, columns: dict[str, str], texts: Iterable[str] = ()
) -> Relation:
    """A relation with types of its own, given the column of each role."""
    types = _types(connection, sql)
    for role, name in columns.items():
        if types[name] == "JSON":  # unchecked: a single value could end the query
            raise InputError(f"{role} must be a column of text or numbers, got JSON; cast it first")
    columns_of = {role: (quoted(name), types[name]) for role, name in columns.items()}
    return Relation(sql, columns_of, frozenset(texts))


def _parquet(files: Sequence[EventFile], more: str = "") -> str:
    places = ", ".join(text(str(Path(file.path).resolve())) for file in files)
    return f"read_parquet([{places}], hive_partitioning = false, union_by_name = true{more})"


def _of_parquet(
    connection: duckdb.DuckDBPyConnection, name: str, files: Sequence[EventFile], roles: dict[str, str]
) -> Relation:
    """Parquet files of one schema, joined by their names with what the folders say."""
    inside, folders = _split(roles, files[0])
    if not folders:
        return _typed(connection, _parquet(files), roles)
    values = {
        role: pa.array([file.partitions[roles[role]] for file in files], pa.string()) for role in folders
    }
    paths = pa.array([str(Path(file.path).resolve()) for file in files], pa.string())
    connection.register(name, pa.table({"path": paths, **values}))
    chosen = [f"files.{quoted(column)} AS {quoted(role)}" for role, column in inside.items()]
    chosen += [f"folders.{quoted(role)} AS {quoted(role)}" for role in folders]
    sql = (
        f"(SELECT {', '.join(chosen)} FROM {_parquet(files, f', filename = {text(_PATH)}')} AS files "  # noqa: S608  # our own text, names quoted
        f"LEFT JOIN {name} AS folders ON files.{quoted(_PATH)} = folders.path)"
    )
    return _typed(connection, sql, {role: role for role in roles}, folders)


def _of_lines(name: str, inside: dict[str, str], folders: Iterable[str]) -> Relation:
    """JSON objects, which our own reader cuts, and the engine parses one at a time."""
    # a pointer instead of a path: names of keys may hold anything
    pointers = [text("/" + key.replace("~", "~0").replace("/", "~1")) for key in inside.values()]
    others = "".join(f", {quoted(role)}" for role in folders)
    sql = (
        f"(SELECT json_extract(object, [{', '.join(pointers)}]) AS parts{others} FROM ("  # noqa: S608  # our own text, names quoted
        f"SELECT CASE WHEN line IS NULL THEN NULL WHEN json_valid(line) AND json_type(line) = 'OBJECT' THEN line::JSON ELSE error('{BAD_LINE}') END AS object{others} "
        f"FROM {name} WHERE line IS NULL OR NOT regexp_full_match(line, '\\s*')))"
    )
    columns = {role: (f"parts[{place}]", "JSON") for place, role in enumerate(inside, 1)}
    return Relation(sql, columns | {role: (quoted(role), "VARCHAR") for role in folders}, frozenset(folders))


def _types(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, str]:
    """The type of each column, by name."""
    relation = connection.sql(f"SELECT * FROM {sql} LIMIT 0")  # noqa: S608  # our own text, names quoted
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def text(value: str) -> str:
    """Text as SQL."""
    return "'" + value.replace("'", "''") + "'"
