"""Parquet files whose columns are text: any thread reads some of their row groups, without the engine, in half of its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError
from armslength.ingest.batches import joined, parquet_batches, row_group_runs
from armslength.ingest.event_columns import is_text
from armslength.ingest.event_files import EventFile
from armslength.ingest.relations import check_names

_FEWEST_ROWS = 1 << 16  # of a file on average; the engine joins smaller ones


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
                parquet = pq.ParquetFile(file.path)
            except MemoryError:
                raise OutOfMemoryError(NO_MEMORY) from None
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
            for groups in row_group_runs(metadata):
                yield self._batches(file, metadata, groups)

    def _batches(
        self, file: EventFile, metadata: pq.FileMetaData, groups: list[int]
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.columns.values())
        schema = pa.schema([metadata.schema.to_arrow_schema().field(name) for name in names])
        # few texts, so their numbers
        coded = [name for role, name in self.columns.items() if role == "group"]
        try:
            for batch in joined(parquet_batches(file.path, metadata, groups, schema, coded=coded)):
                yield batch.rename_columns(list(self.columns))
        except MemoryError:
            raise OutOfMemoryError(NO_MEMORY) from None
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise InputError(f"cannot read {file.name}: it is damaged") from None
