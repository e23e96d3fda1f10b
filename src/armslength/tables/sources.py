"""Where events come from: files of a known kind, or a table in memory; as queries of the engine, nothing sniffed."""

import csv
import gzip
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from armslength.checks import shown
from armslength.errors import InputError, ParameterError

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_LONGEST_LINE = 16 * 2**20


@dataclass(frozen=True)
class EventFile:
    """One file of events.

    Attributes:
        path: Where it is.
        kind: "parquet", "csv", "tsv", "json" or "arrow".
    """

    path: Path
    kind: str

    @property
    def is_text(self) -> bool:
        """Whether it holds text alone, without types."""
        return self.kind in ("csv", "tsv")


def event_files(source: Any) -> list[EventFile] | None:
    """The files of a path, a folder, or a list of paths, in order; None if the source is something else."""
    if isinstance(source, (str, os.PathLike)):
        return _files_of(Path(source))
    if (
        isinstance(source, Sequence)
        and len(source) > 0
        and all(isinstance(path, (str, os.PathLike)) for path in source)
    ):
        return [file for path in source for file in _files_of(Path(path))]
    return None


def _files_of(path: Path) -> list[EventFile]:
    if path.is_dir():
        inside = sorted(inner for inner in path.iterdir() if kind_of(inner) is not None and inner.is_file())
        if not inside:
            raise ParameterError(f"source must be a folder with event files ({_known()}), got none in {path}")
        return [EventFile(inner, str(kind_of(inner))) for inner in inside]
    kind = kind_of(path)
    if kind is None:
        raise ParameterError(f"source must be a file whose name ends in {_known()}, got {path}")
    if not path.is_file():
        raise ParameterError(f"source must be a file that is there, got {path}")
    return [EventFile(path, kind)]


def kind_of(path: Path) -> str | None:
    """What a file is by its name; None if no kind has such names."""
    name = path.name.lower()
    return next((kind for ending, kind in KINDS.items() if name.endswith(ending)), None)


def _known() -> str:
    return ", ".join(KINDS)


def event_reader(source: Any) -> pa.RecordBatchReader:
    """A table in memory as a stream: an Arrow table or reader, or a data frame with an Arrow C stream."""
    if not hasattr(source, "__arrow_c_stream__"):
        raise ParameterError(
            f"source must be a file, a list of files, or a table of events, got {shown(source)}"
        )
    try:
        return pa.RecordBatchReader.from_stream(source)
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError("source must be a readable table with named columns, got something else") from None


def arrow_file(path: Path) -> pa.RecordBatchReader:
    """The stream of an Arrow file."""
    try:
        return ds.dataset(path, format="ipc").scanner().to_reader()
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} must be an Arrow file, got a damaged one or another kind") from None


def header_of(file: EventFile) -> list[str]:
    """The names in the first line of a text file; columns without a name get one that no file has."""
    opened = gzip.open if file.path.suffix.lower() == ".gz" else open
    try:
        with opened(file.path, "rt", encoding="utf-8-sig", newline="") as lines:
            first = lines.readline(_LONGEST_LINE)
        names = next(csv.reader([first], delimiter="," if file.kind == "csv" else "\t", strict=True), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error):
        raise InputError(f"{file.path} must begin with a line of column names, got something else") from None
    if len(set(names)) != len(names) or not any(names):
        raise InputError(f"{file.path} must begin with a line of different column names, got something else")
    return [name or f"column {number} without a name" for number, name in enumerate(names)]


def _quoted(text: str) -> str:
    """Text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def table_function(file: EventFile, place: str, wanted: Sequence[str] | None) -> str:
    """What the engine reads a file with; `place` is a path without special characters.

    Args:
        file: What is read.
        place: Where the engine finds it.
        wanted: The columns of a JSON file, which are read as JSON; None looks for what there is.
    """
    text = _quoted(place)
    if file.kind == "parquet":
        return f"read_parquet({text})"
    if file.is_text:
        delimiter = "," if file.kind == "csv" else "\\t"
        each = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in header_of(file))
        # every part of the dialect is given, and every column is text
        return (
            f"read_csv({text}, auto_detect = false, header = true, columns = {{{each}}}, delim = '{delimiter}', "
            f"quote = '\"', escape = '\"', strict_mode = true, null_padding = false, max_line_size = {_LONGEST_LINE})"
        )
    columns = ""
    if wanted is not None:
        each = ", ".join(f"{_quoted(name)}: 'JSON'" for name in wanted)
        columns = f", columns = {{{each}}}"
    return f"read_json({text}, format = 'newline_delimited', maximum_object_size = {_LONGEST_LINE}{columns})"
