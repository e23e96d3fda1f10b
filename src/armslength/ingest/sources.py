"""Where events come from: files of a known kind, or a table in memory. Names and types come from their own schema."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from armslength.checks import check_local, is_file, is_folder
from armslength.errors import InputError, ParameterError, printable
from armslength.ingest.text_files import DELIMITERS, header_names

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
    def name(self) -> str:
        """Its path as a message shows it."""
        return printable(str(self.path))


def event_files(source: Any) -> list[EventFile] | None:
    """The files of a path, a folder, or a list of paths, in order; None if the source is something else."""
    if isinstance(source, (str, os.PathLike)):
        return _files_of(source)
    if (
        isinstance(source, Sequence)
        and len(source) > 0
        and all(isinstance(path, (str, os.PathLike)) for path in source)
    ):
        return [file for path in source for file in _files_of(path)]
    return None


def _files_of(source: str | os.PathLike[str]) -> list[EventFile]:
    check_local(source)
    path = Path(source)
    try:
        inside = sorted(path.iterdir()) if is_folder(path) else None
    except (OSError, ValueError):
        raise ParameterError("source must be a file or a folder that can be looked at, got another") from None
    if inside is not None:
        events = [inner for inner in inside if kind_of(inner) is not None and inner.is_file()]
        if not events:
            raise ParameterError(
                f"source must be a folder with event files ({_known()}), got none in {printable(str(path))}"
            )
        return [EventFile(inner, str(kind_of(inner))) for inner in events]
    kind = kind_of(path)
    if kind is None:
        # not the name, nor its end: somebody may hand in the text of a table
        raise ParameterError(f"source must be a file whose name ends in {_known()}, got another name")
    if not is_file(path):
        raise ParameterError(f"source must be a file that is there, got {printable(str(path))}")
    return [EventFile(path, kind)]


def size_of(source: Any) -> tuple[int | None, str]:
    """How much there is to read, and in which unit: rows of tables, bytes of text files; None if nobody knows before."""
    files = event_files(source)
    if files is None:
        return getattr(source, "num_rows", None) or (
            len(source) if hasattr(source, "__len__") else None
        ), "rows"
    if all(file.kind not in ("parquet", "arrow") for file in files):
        return sum(file.path.stat().st_size for file in files), "B"
    try:
        return sum(_dataset(file).count_rows() for file in files if file.kind in ("parquet", "arrow")), "rows"
    except (pa.ArrowException, OSError, InputError):  # whoever reads it says what is wrong
        return None, "rows"


def kind_of(path: Path) -> str | None:
    """What a file is by its name; None if no kind has such names."""
    name = path.name.lower()
    return next((kind for ending, kind in KINDS.items() if name.endswith(ending)), None)


def _known() -> str:
    return ", ".join(KINDS)


def table_stream(source: Any) -> pa.RecordBatchReader:
    """A table in memory as a stream: an Arrow table or reader, or a data frame with an Arrow C stream."""
    if not hasattr(source, "__arrow_c_stream__"):
        raise ParameterError(
            f"source must be a file, a list of files, or a table of events, got {type(source).__name__}"
        )
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
        raise InputError(
            f"{file.name} must be a {file.kind} file, got a damaged one or another kind"
        ) from None


def chosen_columns(
    reader: pa.RecordBatchReader, roles: dict[str, str], problems: list[BaseException]
) -> pa.RecordBatchReader:
    """The stream's columns of these names, renamed to their roles, in valid batches.

    The engine trusts Arrow's buffers: text that is no text, and indices that lead nowhere, end the stream here.

    Args:
        reader: The stream.
        roles: Role and name of each column.
        problems: Takes an interruption, which the engine would not pass on.
    """
    places = [reader.schema.names.index(name) for name in roles.values()]
    schema = pa.schema(
        [reader.schema.field(place).with_name(role) for place, role in zip(places, roles, strict=True)]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                chosen = pa.RecordBatch.from_arrays([batch.column(place) for place in places], schema=schema)
                chosen.validate(full=True)
                yield chosen
        except KeyboardInterrupt as interruption:
            problems.append(interruption)
            raise

    return pa.RecordBatchReader.from_batches(schema, batches())


def own_names(file: EventFile) -> list[str]:
    """The columns of a file by its own schema, as it spells them; JSON lines have none."""
    if file.kind in DELIMITERS:
        return header_names(file.path, file.kind)
    return list(_dataset(file).schema.names)
