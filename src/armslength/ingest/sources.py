"""Where events come from: files of a known kind, or a table in memory. Names and types come from their own schema."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from armslength.checks import check_local
from armslength.errors import InputError, ParameterError, printable
from armslength.ingest.text_files import DELIMITERS, header_names

_TEXT_KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json", ".ndjson": "json"}
_TABLE_KINDS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow"}
_KINDS = _TABLE_KINDS | _TEXT_KINDS | {f"{ending}.gz": kind for ending, kind in _TEXT_KINDS.items()}
_ENDINGS = ", ".join(_KINDS)


@dataclass(frozen=True)
class EventFile:
    """One file of events."""

    path: Path
    kind: str  # "parquet", "csv", "tsv", "json" or "arrow"

    @property
    def name(self) -> str:
        """Its path for messages."""
        return printable(str(self.path))


def event_files(source: Any) -> list[EventFile] | None:
    """The files of a path, a folder, or a list of paths, in order; None if the source is something else."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(paths, Sequence) or not len(paths):
        return None
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return None
    return [file for path in paths for file in _files_of(path)]


def _files_of(source: str | os.PathLike[str]) -> list[EventFile]:
    check_local(source)
    path = Path(source)
    try:
        inside = sorted(path.iterdir()) if os.path.isdir(path) else None
    except (OSError, ValueError):
        raise ParameterError("source must be a file or a folder that can be looked at, got another") from None
    if inside is not None:
        files = [EventFile(each, kind) for each in inside if (kind := _kind(each)) and each.is_file()]
        if not files:
            raise ParameterError(f"source must hold event files ({_ENDINGS}), got {printable(str(path))}")
        return files
    kind = _kind(path)
    if kind is None:
        # without the name: somebody may hand in the text of a table
        raise ParameterError(f"source must be a file whose name ends in {_ENDINGS}, got another name")
    if not os.path.isfile(path):
        raise ParameterError(f"source must be a file that is there, got {printable(str(path))}")
    return [EventFile(path, kind)]


def size_of(source: Any) -> tuple[int | None, str]:
    """How much there is to read, in rows of tables or bytes ("B") of text files; None if unknown."""
    files = event_files(source)
    if files is None:
        rows = getattr(source, "num_rows", None)
        return rows or (len(source) if hasattr(source, "__len__") else None), "rows"
    if all(file.kind not in ("parquet", "arrow") for file in files):
        return sum(file.path.stat().st_size for file in files), "B"
    try:
        return sum(_dataset(file).count_rows() for file in files if file.kind in ("parquet", "arrow")), "rows"
    except (pa.ArrowException, OSError, InputError):  # whoever reads it says what is wrong
        return None, "rows"


def _kind(path: Path) -> str | None:
    """The kind of a file by its name; None if unknown."""
    name = path.name.lower()
    return next((kind for ending, kind in _KINDS.items() if name.endswith(ending)), None)


def table_stream(source: Any) -> pa.RecordBatchReader:
    """A table in memory as a stream: an Arrow table or reader, or a data frame with an Arrow C stream."""
    if not hasattr(source, "__arrow_c_stream__"):
        raise ParameterError(f"source must be files or a table of events, got {type(source).__name__}")
    try:
        return pa.RecordBatchReader.from_stream(source)
    except Exception:  # noqa: BLE001  # an engine's own error may quote the data
        raise InputError("source must be a readable table with named columns, got something else") from None


def file_stream(file: EventFile) -> pa.RecordBatchReader:
    """The stream of an Arrow or Parquet file."""
    return _dataset(file).scanner().to_reader()


def _dataset(file: EventFile) -> ds.Dataset:
    try:
        return ds.dataset(file.path, format="parquet" if file.kind == "parquet" else "ipc")
    except (pa.ArrowException, OSError):
        raise InputError(f"{file.name} must be a {file.kind} file, got damage or another kind") from None


def chosen_columns(
    reader: pa.RecordBatchReader, roles: dict[str, str], problems: list[BaseException]
) -> pa.RecordBatchReader:
    """The stream's columns of these names, renamed to their roles.

    Broken text and indices are refused here: the engine trusts Arrow's buffers.
    """
    places = [reader.schema.names.index(name) for name in roles.values()]
    fields = [reader.schema.field(place).with_name(role) for place, role in zip(places, roles, strict=True)]
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            part = pa.RecordBatch.from_arrays([batch.column(place) for place in places], schema=schema)
            part.validate(full=True)
            yield part

    return recorded_stream(schema, batches(), problems)


def recorded_stream(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], problems: list[BaseException]
) -> pa.RecordBatchReader:
    """A stream for the engine; our own errors and interruptions go to `problems`, because the engine loses them."""

    def recorded() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except (InputError, KeyboardInterrupt) as problem:
            problems.append(problem)
            raise

    return pa.RecordBatchReader.from_batches(schema, recorded())


def own_names(file: EventFile) -> list[str]:
    """The columns of a file by its own schema, as it spells them; JSON lines have none."""
    if file.kind in DELIMITERS:
        return header_names(file.path, file.kind)
    return list(_dataset(file).schema.names)
