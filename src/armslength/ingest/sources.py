"""Where events come from: files, here or in an object store, databases, and tables in memory. Nothing is guessed from the content."""

import codecs
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
from pyarrow import fs

from armslength.checks import short_repr
from armslength.errors import (
    NO_MEMORY,
    ArmslengthError,
    InputError,
    MissingFileError,
    OutOfMemoryError,
    ParameterError,
)
from armslength.ingest.batches import engine_column, engine_schema
from armslength.ingest.databases import DATABASES, Database
from armslength.ingest.event_columns import quoted
from armslength.ingest.event_files import STANDARD_INPUT, EventFile
from armslength.threads import interruptible

_TABLES = {"parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow"}
_TEXTS = {
    **dict.fromkeys(("csv", "tsv", "txt"), "delimited"),
    **dict.fromkeys(("jsonl", "ndjson"), "lines"),
    "json": "json",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_FORMATS = (*_TABLES, *_TEXTS, *(f"{text}.{packed}" for text in _TEXTS for packed in _COMPRESSIONS))
_ENDINGS = f"{', '.join(f'.{name}' for name in (*_TABLES, *_TEXTS))} (text also as .gz, .bz2 or .zst; .txt needs a delimiter)"
_DATABASES = "sqlite:///visits.db, duckdb:///visits.duckdb, postgresql://me@host/name"
_STORES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file")
_GOOGLE_RETRIES = "retry_limit_seconds"  # of the address; Google's own limit is 15 minutes
_SCHEME = re.compile(r"([a-z][a-z0-9+.]+)://", re.IGNORECASE)
_TXT = re.compile(rf"\.txt(\.({'|'.join(_COMPRESSIONS)}))?$")
_WILDCARDS = frozenset("*?[")
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# Here the bytes of a text do not depend on the text before it, and no other character's bytes contain a line feed's.
_ENCODINGS = re.compile(
    r"utf-(8|16|32)(-[a-z]+)?|ascii|cp\d+|iso8859-\d+|koi8-.|mac-\w+|gbk|gb18030|big5|euc_jp|shift_jis"
)
_Partitions = dict[str, str | None]
_Entries = Callable[[str], list[tuple[str, str, bool]]]


@dataclass(frozen=True, eq=False)
class Source:
    """Events, with what their place alone does not say: `al.Source("visits.txt", delimiter=";", encoding="latin-1")`.

    Every function that takes a source of events takes one of these. A query must treat each person's rows by themselves. If it ranks,
    limits or counts over several people, one person decides which rows of another are released, and that is outside the guarantee.

    Args:
        where: A file, a folder, a pattern such as "visits/**/*.parquet", or a list of them, on this machine or at an address such as
            "s3://bucket/visits"; "-" for the standard input; a database such as "sqlite:///visits.db", "duckdb:///visits.duckdb" or
            "postgresql://host/name"; or a table: of Arrow, pandas, Polars or DuckDB, or a dataset of pyarrow.
        table: The table of a database.
        query: Instead: a SELECT that the database runs.
        format: What files are, whatever their names end in, such as "csv", "jsonl.gz" or "parquet"; needed for "-".
        delimiter: The ASCII character between the fields of a .csv, .tsv or .txt file; None is a comma for .csv and a tab for .tsv.
        quote: The ASCII character around fields; None if there is none.
        encoding: The encoding of text files.
    """

    where: Any = field(repr=False)  # a table's repr shows data, and an address may contain a password
    _: KW_ONLY
    table: str | None = None
    query: str | None = None
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = '"'
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.database is None and (self.table, self.query) != (None, None):
            raise ParameterError(f"table and query need a database ({_DATABASES})", "table", "query")
        if self.format is not None and self.format not in _FORMATS:
            raise ParameterError(f"format must be one of {_ENDINGS}, got {short_repr(self.format)}", "format")
        if self.format is not None and self.format.startswith("txt") and self.delimiter is None:
            raise ParameterError(
                "format='txt' needs a delimiter, such as delimiter=';'", "format", "delimiter"
            )
        for name, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
                raise ParameterError(f"{name} must be one ASCII character, got {short_repr(mark)}", name)
        try:
            encoding = codecs.lookup(self.encoding).name
        except (LookupError, TypeError, ValueError):
            encoding = ""
        if not _ENCODINGS.fullmatch(encoding):
            raise ParameterError(
                f"encoding must be one like utf-8, latin-1, cp1252 or utf-16, got {short_repr(self.encoding)}",
                "encoding",
            )

    @property
    def database(self) -> Database | None:
        """The database, if the source is one."""
        scheme = _scheme(self.where)
        return Database(scheme, self.where, self.table, self.query) if scheme in DATABASES else None

    def file(self, path: str, filesystem: fs.FileSystem | None, partitions: _Partitions) -> EventFile | None:
        """The file at this path, by its name or as `format` says; None if its kind is not known."""
        name = path.lower()
        ending = self.format or next((ending for ending in _FORMATS if name.endswith(f".{ending}")), None)
        if ending is None:
            return None
        first, _, packed = ending.partition(".")
        delimiter = self.delimiter or _DELIMITERS.get(first)
        if first == "txt" and delimiter is None:
            return None  # who knows what it is
        if delimiter is not None and delimiter == self.quote:
            raise ParameterError("delimiter and quote must be different characters", "delimiter", "quote")
        return EventFile(
            path,
            _TABLES.get(first) or _TEXTS[first],
            filesystem,
            partitions,
            _COMPRESSIONS.get(packed),
            delimiter or ",",
            self.quote,
            self.encoding,
        )


def as_source(source: Any) -> Source:
    """The source, with nothing said about it if it is no `Source`."""
    return source if isinstance(source, Source) else Source(source)


def _scheme(where: Any) -> str:
    """The first word of an address; empty for anything else."""
    match = _SCHEME.match(where) if isinstance(where, str) else None
    return match[1].lower() if match else ""


def event_files(source: Any) -> list[EventFile] | None:
    """The files of a path, an address, a folder, a pattern, or a list of them, in order; None if the source is something else."""
    source = as_source(source)
    where = [source.where] if isinstance(source.where, (str, os.PathLike)) else source.where
    is_list = (
        isinstance(where, Sequence)
        and len(where) > 0
        and all(isinstance(path, (str, os.PathLike)) for path in where)
    )
    if source.database is not None or not is_list:
        if (source.format, source.delimiter, source.quote, source.encoding) != (None, None, '"', "utf-8"):
            raise ParameterError(
                "format, delimiter, quote and encoding apply only to files",
                "format",
                "delimiter",
                "quote",
                "encoding",
            )
        return None
    files = [file for path in where for file in _files_at(os.fspath(path), source)]
    _check_different(files)
    return files


def _check_different(files: Sequence[EventFile]) -> None:
    """Refuses a file that is there twice: its events would count twice."""
    known = set[Any]()
    for file in files:
        key: Any = (file.filesystem and file.filesystem.type_name, file.path)
        if file.filesystem is None and file.path != STANDARD_INPUT:
            status = Path(file.path).stat()
            key = (status.st_dev, status.st_ino)
        if key in known:
            raise ParameterError(f"{file.name} is listed twice, or under two names")
        known.add(key)


def _files_at(path: str, source: Source) -> list[EventFile]:
    if path == STANDARD_INPUT:
        file = source.file(path, None, {})
        if file is None or not file.is_text:
            raise ParameterError(
                "the standard input needs the format of its text, such as format='csv'; write Parquet and Arrow to a file",
                "format",
            )
        return [file]
    filesystem, path, inside = (
        interruptible(lambda: _find_files(path)) if _scheme(path) else _find_files(path)
    )
    if inside is None:
        file = source.file(path, filesystem, {})
        # without the name, unless it is one: somebody may hand in the text of a table
        raise MissingFileError(f"no such file: {file.name}" if file else "no such file or folder")
    files = [file for name, parts in inside if (file := source.file(name, filesystem, parts)) is not None]
    if files:
        return files
    if not inside and not _WILDCARDS.isdisjoint(path):
        raise MissingFileError("no file matches the pattern")
    if not inside:
        raise ParameterError(f"no files in {path!r}")
    if all(_TXT.search(name.lower()) for name, _ in inside):
        raise ParameterError(".txt files need a delimiter, such as delimiter=';'", "delimiter")
    raise ParameterError(
        f"no event files in {path!r}, whose names end in {_ENDINGS}; say their format, such as format='csv', "
        f"or name a database ({_DATABASES})",
        "format",
    )


def _find_files(path: str) -> tuple[fs.FileSystem | None, str, list[tuple[str, _Partitions]] | None]:
    """The store of an address, the path there, and the files that it stands for; None if nothing is there."""
    scheme = _scheme(path)
    try:
        filesystem, path = _filesystem(path)
        inside = _files_inside(filesystem, path)
        if inside is None:
            is_file = os.path.isfile(path) if filesystem is None else filesystem.get_file_info(path).is_file
            inside = [(path, {})] if is_file else None
    except ParameterError:
        raise
    except (FileNotFoundError, NotADirectoryError):  # the folder of a pattern
        return None, path, None if _WILDCARDS.isdisjoint(path) else []
    except (OSError, ValueError, pa.ArrowException):  # whose words may contain a key
        if not scheme:
            raise InputError(
                "cannot open source: is it spelled right, and may you read it?", "source"
            ) from None
        raise InputError(
            f"cannot open the {scheme}:// address: is it spelled right, and are there a network and credentials?"
        ) from None
    return filesystem, path, inside


def _filesystem(path: str) -> tuple[fs.FileSystem | None, str]:
    """The store of an address, None if it is this machine, and the path there."""
    scheme = _scheme(path)
    if not scheme:
        return None, path
    if scheme not in _STORES:
        stores = ", ".join(f"{store}://" for store in _STORES)
        raise ParameterError(
            f"this kind of address is not supported, only files ({stores}) and databases ({_DATABASES}); copy the events to a file on this machine"
        )
    if scheme in ("gs", "gcs") and _GOOGLE_RETRIES not in path:
        path += f"{'&' if '?' in path else '?'}{_GOOGLE_RETRIES}=20"
    filesystem, path = fs.FileSystem.from_uri(path)
    if scheme in ("abfs", "abfss") and "/" not in path:
        # for a container itself, pyarrow would abort the process if it cannot log in
        filesystem.get_file_info(f"{path}/login")
    return None if isinstance(filesystem, fs.LocalFileSystem) else filesystem, path


def _files_inside(filesystem: fs.FileSystem | None, path: str) -> list[tuple[str, _Partitions]] | None:
    """The files in a folder or of a pattern, with the columns in names of folders below it; None for the path of a file."""

    def entries(folder: str) -> list[tuple[str, str, bool]]:
        if filesystem is None:
            with os.scandir(folder) as inside:
                return sorted((entry.path, entry.name, entry.is_dir()) for entry in inside)
        infos = filesystem.get_file_info(fs.FileSelector(folder))
        return sorted((info.path, info.base_name, info.type == fs.FileType.Directory) for info in infos)

    info = None if filesystem is None else filesystem.get_file_info(path)
    if os.path.isdir(path) if info is None else info.type == fs.FileType.Directory:
        return list(_files_below(entries, path, None, {}))
    path_type = Path if info is None else PurePosixPath
    parts = path_type(path).parts
    first = next((index for index, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part)), None)
    if first is None or (os.path.lexists(path) if info is None else info.type != fs.FileType.NotFound):
        return None
    folder = str(path_type(*parts[:first]))
    return sorted(dict(_files_below(entries, folder, list(parts[first:]), {})).items())


def _files_below(
    entries: _Entries, folder: str, pattern: list[str] | None, partitions: _Partitions
) -> Iterator[tuple[str, _Partitions]]:
    """The files below a folder whose path matches the pattern; without one all files, also in folders named key=value."""
    for path, name, is_folder in entries(folder):
        if name.startswith((".", "_")):  # hidden, or a note of another program, such as Spark's _SUCCESS
            continue
        key, equals, value = name.partition("=")
        inner = partitions
        if equals and is_folder:
            inner = {**partitions, unquote(key): None if value == _NO_PARTITION else unquote(value)}
        patterns = pattern or ["*"]
        if patterns[0] == "**":  # any number of folders
            if is_folder:
                yield from _files_below(entries, path, patterns, inner)
            patterns = patterns[1:] or ["*"]
        if not fnmatchcase(name, patterns[0]):
            continue
        if not is_folder:
            if len(patterns) == 1:
                yield path, partitions
        elif pattern is not None or equals:
            yield from _files_below(entries, path, patterns[1:] or None, inner)


def size_of(source: Any) -> tuple[int | None, str]:
    """How much there is to read, in rows of tables or bytes ("B") of text files; None if unknown."""
    files = event_files(source)
    if files is None:
        table = as_source(source).where
        if isinstance(table, (str, duckdb.DuckDBPyRelation)):  # the size of a relation is a query
            return None, "rows"
        rows = getattr(table, "num_rows", None)
        return rows or (len(table) if hasattr(table, "__len__") else None), "rows"
    try:
        if all(file.is_text for file in files):
            sizes = [file.size() for file in files]
            return None if None in sizes else sum(filter(None, sizes)), "B"
        return sum(file.dataset().count_rows() for file in files if not file.is_text), "rows"
    except (pa.ArrowException, OSError, InputError):  # whoever reads it says what is wrong
        return None, "rows"


def table_stream(source: Any, wanted: Iterable[str]) -> pa.RecordBatchReader:
    """A table in memory, or one that somebody else reads, as a stream; of the wanted columns alone, where it can choose."""
    table, columns = as_source(source).where, list(wanted)
    try:
        if is_dataset(table):
            _check_typed(table)
            return table.scanner(columns=_chosen(columns, table.schema.names)).to_reader()
        if isinstance(table, duckdb.DuckDBPyRelation):
            chosen = _chosen(columns, table.columns)
            relation = table.project(", ".join(map(quoted, chosen))) if chosen else table
            return relation.to_arrow_reader(1 << 16)
        if hasattr(table, "collect_batches"):  # a lazy frame of Polars
            chosen = _chosen(columns, table.collect_schema().names())
            return _lazy_stream(table.select(chosen) if chosen else table)
        if hasattr(table, "iloc"):
            return _pandas_stream(table, columns)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
    except ArmslengthError:
        raise
    except (MemoryError, duckdb.OutOfMemoryException):
        raise OutOfMemoryError(NO_MEMORY) from None
    except FileNotFoundError:
        raise MissingFileError("cannot read source: one of its files is missing") from None
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError("cannot read source as a table with named columns", "source") from None
    raise ParameterError(
        f"source must be files or a table of events (Arrow, pandas, Polars, DuckDB, a dataset of pyarrow, a database), got {type(table).__name__}",
        "source",
    )


def _chosen(wanted: list[str], names: Sequence[str]) -> list[str] | None:
    """The wanted columns, if each is there once; None is all columns, so that an error can say what is there."""
    return wanted if wanted and all(list(names).count(name) == 1 for name in wanted) else None


def _pandas_stream(frame: Any, wanted: list[str]) -> pa.RecordBatchReader:
    """A data frame of pandas; if the wanted columns are there, no other one is converted."""
    chosen = _chosen(wanted, frame.columns)
    try:
        return pa.RecordBatchReader.from_stream(frame[chosen] if chosen else frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        for name in chosen or ():
            try:
                pa.array(frame[name], from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise InputError(
                    f"column {name!r} has values of several types; cast it: table[{name!r}].astype('string')"
                ) from None
        raise


def is_dataset(table: Any) -> bool:
    """Whether it is a `pyarrow.dataset`, a module that nobody who has one has yet to import."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(table, module.Dataset)


def _check_typed(dataset: Any) -> None:
    """Refuses text that pyarrow would read: it guesses types from some rows, and cuts text in chunks."""
    module = sys.modules["pyarrow.dataset"]
    for child in getattr(dataset, "children", [dataset]):
        if isinstance(getattr(child, "format", None), (module.CsvFileFormat, module.JsonFileFormat)):
            raise ParameterError(
                "a dataset must be of Parquet or Arrow files; for text, pass the paths of its files instead"
            )


def _lazy_stream(frame: Any) -> pa.RecordBatchReader:
    schema = pa.RecordBatchReader.from_stream(frame.collect_schema().to_frame()).schema
    streams = (pa.RecordBatchReader.from_stream(part) for part in frame.collect_batches())
    return pa.RecordBatchReader.from_batches(schema, (batch for stream in streams for batch in stream))


def chosen_schema(schema: pa.Schema, roles: dict[str, str], constants: Iterable[str]) -> pa.Schema:
    """The columns of these names, renamed to their roles, and those that are the same in all rows, as the engine gets them."""
    fields = [schema.field(schema.names.index(name)).with_name(role) for role, name in roles.items()]
    return engine_schema(pa.schema([*fields, *((role, pa.string()) for role in constants)]))


def constant_columns(values: dict[str, str | None], count: int) -> dict[str, pa.Array]:
    """So many rows of columns that have one value each."""
    return {role: pa.repeat(pa.scalar(value, pa.string()), count) for role, value in values.items()}


def chosen_columns(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    roles: dict[str, str],
    constants: dict[str, str | None],
) -> Iterator[pa.RecordBatch]:
    """The columns of these names, renamed to their roles, and the constant ones, as the engine gets them."""
    places = [schema.names.index(name) for name in roles.values()]
    wanted = chosen_schema(schema, roles, constants)
    for batch in batches:
        same = constant_columns(constants, batch.num_rows).values()
        columns = [*(batch.column(place) for place in places), *same]
        checked = [engine_column(column, kind) for column, kind in zip(columns, wanted.types, strict=True)]
        yield pa.RecordBatch.from_arrays(checked, schema=wanted)


def recorded_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], problems: list[BaseException]
) -> pa.RecordBatchReader:
    """A stream for the engine; our own errors and interruptions go to `problems`, because the engine loses them."""

    def recorded() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except (ArmslengthError, MemoryError, KeyboardInterrupt) as problem:
            problems.append(problem)
            raise

    return pa.RecordBatchReader.from_batches(schema, recorded())
