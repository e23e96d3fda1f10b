"""Parquet files whose columns are text: any thread reads some of their row groups, without the engine, in half of its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.errors import InputError
from armslength.ingest.event_columns import is_text
from armslength.ingest.event_files import EventFile
from armslength.ingest.partitions import ROWS_AT_ONCE
from armslength.ingest.relations import check_names

_FEWEST_ROWS = 1 << 16  # of a file on average; the engine joins smaller ones
_OPTIONS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 20}  # few bytes of a file at a time


@dataclass(frozen=True)
class ParquetTexts:
    """Files that were opened, of which only the schema has been read."""

    files: Sequence[tuple[EventFile, pq.FileMetaData]]
    columns: dict[str, str]  # by role

    @classmethod
    def of(cls, files: Sequence[EventFile] | None, columns: dict[str, str]) -> "ParquetTexts | None":
        """The files, if they are large, lie on this machine, and have all these columns as text; else None."""
        opened = []
        for file in files or ():
            if file.kind != "parquet" or file.filesystem is not None or file.partitions:
                return None
            try:
                parquet = pq.ParquetFile(file.path, **_OPTIONS)
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                return None  # the engine says why
            schema = parquet.schema_arrow
            check_names(columns, schema.names, file.name, has_schema=True)
            if not all(is_text(schema.field(name).type) for name in columns.values()):
                return None
            opened.append((file, parquet.metadata))
        rows = sum(metadata.num_rows for _, metadata in opened)
        are_small = len(opened) > 1 and rows < _FEWEST_ROWS * len(opened)
        return cls(opened, columns) if opened and not are_small else None

    bytes_read = 0  # of text files

    def pieces(self) -> Iterator[Iterator[pa.RecordBatch]]:
        """Batches of some row groups at a time, with a column for each role; each piece may be read by another thread."""
        for file, metadata in self.files:
            sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            groups, rows = list[int](), 0
            for number, size in enumerate(sizes):
                groups, rows = [*groups, number], rows + size
                if rows >= ROWS_AT_ONCE or number + 1 == len(sizes):
                    yield self._batches(file, metadata, groups)
                    groups, rows = [], 0

    def _batches(
        self, file: EventFile, metadata: pq.FileMetaData, groups: list[int]
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.columns.values())
        # few texts, so their numbers
        coded = [name for role, name in self.columns.items() if role == "group"]
        waiting, rows = list[pa.RecordBatch](), 0
        try:
            reader = pq.ParquetFile(file.path, metadata=metadata, read_dictionary=coded, **_OPTIONS)
            for batch in reader.iter_batches(
                ROWS_AT_ONCE, row_groups=groups, columns=names, use_threads=False
            ):
                for name in coded:
                    batch.column(name).validate(full=True)  # the reader does not check numbers of texts
                waiting, rows = [*waiting, batch], rows + batch.num_rows
                if rows >= ROWS_AT_ONCE:
                    yield self._joined(waiting)
                    waiting, rows = [], 0
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise InputError(f"cannot read {file.name}: it is damaged") from None
        if rows:
            yield self._joined(waiting)

    def _joined(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
        columns = [table.column(name).chunk(0) for name in self.columns.values()]
        return pa.RecordBatch.from_arrays(columns, list(self.columns))
