"""How the engine reads each source: files of one kind and schema together, every part of a format given, nothing sniffed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from armslength.errors import InputError
from armslength.tables.columns import EventColumns
from armslength.tables.sources import (
    DELIMITERS,
    LONGEST_LINE,
    EventFile,
    chosen_columns,
    file_stream,
    own_names,
    table_stream,
)

_MOST_COLUMNS = 20_000  # two seconds; the engine's time grows with their square


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
    folder: Path,
    source: Any,
    files: list[EventFile] | None,
    columns: EventColumns,
) -> list[Relation]:
    """The relations of a source, each column found in its own schema."""
    if files is None:
        stream = table_stream(source)
        check_names(columns.named, list(stream.schema.names), "source")
        return [_registered(connection, "events_of_table", stream, columns)]
    relations, alike = [], dict[tuple[str, ...], list[tuple[EventFile, Path]]]()
    for number, file in enumerate(files):
        names = own_names(file)
        if names is None:
            continue  # no line, no event
        if len(names) > _MOST_COLUMNS:
            raise InputError(
                f"{file.name} must have at most {_MOST_COLUMNS} columns, got {len(names)}; leave out those that are not needed"
            )
        check_names(columns.named, names, file.name, has_schema=file.kind in ("parquet", "arrow"))
        twins = len({name.casefold() for name in names}) < len(names)
        if file.kind == "arrow" or (file.kind == "parquet" and twins):
            # The engine renames columns that differ in capitals alone, and could give their name to another one.
            relations.append(_registered(connection, f"events_{number}", file_stream(file), columns))
            continue
        link = _linked(folder, number, file)
        kinds = () if file.kind != "parquet" else tuple(_types(connection, _parquet([link])).values())
        header = () if file.kind == "json" else tuple(names)
        alike.setdefault((file.kind, str(file.is_zipped), *header, "types", *kinds), []).append((file, link))
    return relations + [_of_files(connection, group, columns) for group in alike.values()]


def check_names(
    columns: dict[str, str], names: Sequence[str], where: str, *, has_schema: bool = False
) -> None:
    """Refuses names among which that of each role is not there once; the engine does not tell capitals from small letters.

    Args:
        columns: Role and name of each column that there must be.
        names: The names that there are.
        where: What has them.
        has_schema: Whether they come from a schema. A text file without a header begins with somebody's data, and so do the
            columns of a data frame that was made of one: such names are not shown.
    """
    folded = [name.casefold() for name in names]
    for role, name in columns.items():
        if name not in names:
            raise InputError(
                f"{role} must be a column of {where}, got {name!r}; {_hint(name, names, has_schema=has_schema)}"
            )
        if folded.count(name.casefold()) > 1:
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
    return f"it begins with {len(names)} other names: are they a header?"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _linked(folder: Path, number: int, file: EventFile) -> Path:
    """A link with a plain name: names of files may hold what the engine takes for a pattern."""
    link = folder / f"events-{number}{'.gz' if file.is_zipped else ''}"
    link.symlink_to(file.path.resolve())
    return link


def _registered(
    connection: duckdb.DuckDBPyConnection, name: str, stream: Any, columns: EventColumns
) -> Relation:
    """A stream under a name of ours, its columns under the names of their roles."""
    connection.register(name, chosen_columns(stream, columns.named))
    types = _types(connection, name)
    return Relation(name, {role: (quoted(role), types[role]) for role in columns.named}, False)


def _of_files(
    connection: duckdb.DuckDBPyConnection, group: list[tuple[EventFile, Path]], columns: EventColumns
) -> Relation:
    """One relation for files of the same kind and schema: thousands of them are one scan."""
    first, links = group[0][0], [link for _, link in group]
    if first.kind == "parquet":
        sql = _parquet(links)
        types = _types(connection, sql)
        return Relation(
            sql, {role: (quoted(name), types[name]) for role, name in columns.named.items()}, False
        )
    places = f"[{', '.join(text(str(link)) for link in links)}]"
    zipped = f"compression = '{'gzip' if first.is_zipped else 'none'}', hive_partitioning = false"
    if first.kind == "json":
        wanted = list(columns.named.values())
        each = ", ".join(f"{text(name)}: 'JSON'" for name in wanted)
        sql = (
            f"read_json({places}, format = 'newline_delimited', columns = {{{each}}}, {zipped}, "
            f"maximum_object_size = {LONGEST_LINE})"
        )
        return Relation(sql, {role: (quoted(name), "JSON") for role, name in columns.named.items()}, False)
    names = own_names(first) or []
    # columns by their place: any header will do, and every one is text
    each = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    sql = (
        f"read_csv({places}, auto_detect = false, header = true, columns = {{{each}}}, "
        f"delim = {text(DELIMITERS[first.kind])}, quote = '\"', escape = '\"', strict_mode = true, "
        f"null_padding = false, {zipped}, max_line_size = {LONGEST_LINE})"
    )
    return Relation(
        sql, {role: (f"c{names.index(name)}", "VARCHAR") for role, name in columns.named.items()}, True
    )


def _parquet(links: Sequence[Path]) -> str:
    places = ", ".join(text(str(link)) for link in links)
    return f"read_parquet([{places}], hive_partitioning = false, union_by_name = true)"


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
