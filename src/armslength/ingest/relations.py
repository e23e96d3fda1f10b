"""What the engine selects events from: files of every kind, databases and tables in memory, each as a relation with one column a role."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import duckdb
import pyarrow as pa

from armslength.errors import InputError, OutOfMemoryError, UnknownNameError
from armslength.ingest.batches import cuts, text_sizes
from armslength.ingest.databases import DUCKDB_SETTINGS
from armslength.ingest.event_columns import EventColumns, quoted
from armslength.ingest.event_files import EventFile
from armslength.ingest.sources import (
    as_source,
    chosen_columns,
    chosen_schema,
    is_dataset,
    recorded_stream,
    table_stream,
)
from armslength.ingest.text_files import LINE, BytesRead, first_object, header_names, lines, records

BAD_LINE = "ARMSLENGTH: a line is no JSON object"
_NO_OBJECT = "?"  # which the engine refuses
TOO_LITTLE = "the memory given is too little to read the source; try memory=4GB"
_JSON_BLANKS = " \t\r\n"


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
    parser: "Parser",
) -> list[Relation]:
    """The relations of files, a database, or a table in memory. Files of one kind and schema are one scan.

    Our own readers add their errors to `problems`, because the engine would lose the messages.
    """
    roles = columns.named
    if files is None:
        return [_table_relation(connection, source, roles, problems)]
    scans = dict[tuple[bool, tuple[str, ...], pa.Schema], list[EventFile]]()
    for file in files:
        schema = _schema_of(connection, file, roles)
        if schema is not None:
            scans.setdefault((file.is_text, tuple(file.split(roles)[1]), schema), []).append(file)
    relations = []
    for number, ((is_text, folders, schema), scan) in enumerate(scans.items()):
        name = f"events_{number}"
        batches = chain.from_iterable(_batches(file, roles, read, parser) for file in scan)
        connection.register(name, recorded_stream(schema, batches, problems))
        if LINE in schema.names:
            relations.append(_json_relation(name, scan[0].split(roles)[0], folders))
        else:
            relations.append(_typed_relation(connection, name, roles if is_text else folders))
    return relations


def _schema_of(
    connection: duckdb.DuckDBPyConnection, file: EventFile, roles: dict[str, str]
) -> pa.Schema | None:
    """The schema of a file's batches, after a look at its own; None if it has no events."""
    inside, folders = file.split(roles)
    if file.kind in ("lines", "json"):
        keys = keys_of_first_object(connection, file)
        if keys is None:  # no object, no event
            return None
        check_names(inside, keys, file.name, has_capitals=True)
        return pa.schema([(column, pa.string()) for column in (LINE, *folders)])
    names = own_names(file)
    check_names(inside, names, file.name, has_schema=not file.is_text)
    if file.is_text:
        return pa.schema([(role, pa.string()) for role in roles])
    return chosen_schema(file.dataset().schema, inside, folders)


def _batches(
    file: EventFile, roles: dict[str, str], read: BytesRead, parser: "Parser"
) -> Iterator[pa.RecordBatch]:
    """The events of a file in the schema of `_schema_of`."""
    inside, folders = file.split(roles)
    if file.kind == "delimited":
        yield from records(file, roles, read)
        return
    if file.is_text:
        yield from parser.batches(lines(file, roles, read), inside)
        return
    schema = file.dataset().schema
    if file.kind == "parquet":
        schema = pa.schema([schema.field(schema.names.index(name)) for name in inside.values()])
        yield from chosen_columns(schema, file.parquet_batches(schema), inside, folders)
        return
    has_twins = len(set(schema.names)) < len(schema.names)
    reader = file.dataset().scanner(columns=None if has_twins else list(inside.values())).to_reader()
    yield from chosen_columns(reader.schema, reader, inside, folders)


def _table_relation(
    connection: duckdb.DuckDBPyConnection, source: Any, roles: dict[str, str], problems: list[BaseException]
) -> Relation:
    """A database, or a table in memory."""
    database, table = as_source(source).database, as_source(source).where
    if database is None:
        stream, texts = table_stream(source, roles.values()), dict[str, str]()
        check_names(roles, stream.schema.names, "the source", has_schema=is_dataset(table))
        schema, batches = (
            chosen_schema(stream.schema, roles, ()),
            chosen_columns(stream.schema, stream, roles, {}),
        )
    else:
        check_names(roles, database.schema().names, "the source", has_schema=True)
        own, same = database.schema(roles), {role: role for role in roles}
        schema = chosen_schema(own, same, ())
        batches = chosen_columns(own, database.batches(roles), same, {})
        texts = roles if database.is_text else {}
    connection.register("events_of_table", recorded_stream(schema, batches, problems))
    return _typed_relation(connection, "events_of_table", texts)


def own_names(file: EventFile) -> list[str]:
    """The columns of a file by its own schema, as it spells them; JSON has none."""
    return header_names(file) if file.kind == "delimited" else list(file.dataset().schema.names)


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
        raise InputError(f"{file.name} must hold one JSON object on each line, or an array of them")
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
            hint = _name_hint(name, names, has_schema=has_schema)
            raise UnknownNameError(f"{role}: no column {name!r} in {where}; {hint}", role, "delimiter")
        if not has_capitals and folded.count(name.casefold()) > 1:
            raise InputError(f"{role}: several columns like {name!r} in {where}; rename them", role)


def _name_hint(wanted: str, names: Sequence[str], *, has_schema: bool) -> str:
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
    return f"its header is one column: is it separated by {delimiter!r}? Pass delimiter={delimiter!r}"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _typed_relation(connection: duckdb.DuckDBPyConnection, name: str, texts: Iterable[str]) -> Relation:
    """A stream of a column for each role, with types of its own."""
    relation = connection.sql(f"SELECT * FROM {name} LIMIT 0")  # noqa: S608  # our own name
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return Relation(name, {role: (quoted(role), kind) for role, kind in types.items()}, frozenset(texts))


@dataclass(frozen=True)
class Parser:
    """How much JSON the engine parses at a time: for each byte it may need 60 bytes in each of its threads."""

    memory: int
    threads: int

    def batches(self, lines: Iterable[pa.RecordBatch], inside: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """The same lines in small batches; a longer line has only what counts of it."""
        most = self.memory // (128 * self.threads)
        for batch in lines:
            sizes = text_sizes(batch.column(LINE))
            for first, last in cuts(sizes, most):
                piece = batch.slice(first, last - first)
                if sizes[first] > most:
                    short = pa.array([self._shortened(piece.column(LINE)[0].as_py(), inside)], pa.string())
                    piece = piece.set_column(piece.schema.names.index(LINE), LINE, short)
                yield piece

    def _shortened(self, line: str, inside: dict[str, str]) -> str:
        """The object with the values of some keys, without lists and objects, by an engine of one thread that parses once at a time."""
        names = list(dict.fromkeys(inside.values()))
        limits = {"memory_limit": f"{self.memory // 1000}KB", "threads": 1}
        with duckdb.connect(":memory:", config=DUCKDB_SETTINGS | limits) as engine:

            def values(function: str, keys: list[str]) -> list[str | None]:
                query = (
                    f"SELECT {function}($1, [{', '.join(map(_pointer, keys))}])"  # our own text, names quoted
                )
                ((found,),) = engine.execute(query, [line]).fetchall() if keys else (((),),)
                return list(found)

            try:
                kinds = values("json_type", names)
                if not line.lstrip(_JSON_BLANKS).startswith("{"):
                    return _NO_OBJECT
                simple = [
                    name
                    for name, kind in zip(names, kinds, strict=True)
                    if kind not in (None, "ARRAY", "OBJECT")
                ]
                found = zip(simple, values("json_extract", simple), strict=True)
            except duckdb.OutOfMemoryException:
                raise OutOfMemoryError(TOO_LITTLE, "memory") from None
            except duckdb.Error:
                return _NO_OBJECT
        return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in found) + "}"


def _pointer(key: str) -> str:
    """A key as a JSON pointer in SQL: unlike in a path, names of keys may hold anything."""
    return text("/" + key.replace("~", "~0").replace("/", "~1"))


def _json_relation(name: str, inside: dict[str, str], folders: Iterable[str]) -> Relation:
    """JSON objects, which our own reader cuts, and the engine parses one at a time."""
    others = "".join(f", {quoted(role)}" for role in folders)
    sql = (
        f"(SELECT CASE WHEN line IS NULL THEN NULL WHEN starts_with(ltrim(line, {text(_JSON_BLANKS)}), '{{') AND json_valid(line) "  # noqa: S608  # our own text, names quoted
        f"THEN json_extract(line, [{', '.join(map(_pointer, inside.values()))}]) ELSE error('{BAD_LINE}') END AS parts{others} FROM {name})"
    )
    columns = {role: (f"parts[{place}]", "JSON") for place, role in enumerate(inside, 1)}
    return Relation(sql, columns | {role: (quoted(role), "VARCHAR") for role in folders}, frozenset(folders))


def text(value: str) -> str:
    """Text as SQL."""
    return "'" + value.replace("'", "''") + "'"
