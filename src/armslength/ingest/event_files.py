"""One file of events: where it lies, what kind it is, and its bytes."""

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError, printable
from armslength.ingest.batches import parquet_batches, row_group_runs

if TYPE_CHECKING:
    import pyarrow.dataset as ds

STANDARD_INPUT = "-"


@dataclass(frozen=True, eq=False)
class EventFile:
    """One file of events."""

    path: str
    kind: str  # "parquet", "arrow", "delimited", "lines" of JSON, or "json", which may also be an array
    filesystem: fs.FileSystem | None = None  # None: this machine's
    partitions: dict[str, str | None] = field(default_factory=dict)  # columns in the names of its folders
    compression: str | None = None
    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"

    @property
    def name(self) -> str:
        """Its path for messages."""
        if self.filesystem is not None:
            return printable(f"{self.filesystem.type_name}:{self.path}")
        return "the standard input" if self.path == STANDARD_INPUT else printable(self.path)

    @property
    def is_text(self) -> bool:
        """Whether our own readers read it."""
        return self.kind not in ("parquet", "arrow")

    def split(self, roles: dict[str, str]) -> tuple[dict[str, str], dict[str, str | None]]:
        """(the column of each role inside the file, the value of each role that the name of a folder says)."""
        inside = {role: name for role, name in roles.items() if name not in self.partitions}
        return inside, {role: self.partitions[name] for role, name in roles.items() if role not in inside}

    def size(self) -> int | None:
        """How many bytes are stored; None if that is not known."""
        if self.filesystem is not None:
            return cast("int | None", self.filesystem.get_file_info(self.path).size)
        return None if self.path == STANDARD_INPUT else Path(self.path).stat().st_size

    def dataset(self) -> "ds.Dataset":
        """An Arrow or Parquet file with its schema."""
        import pyarrow.dataset as ds  # noqa: PLC0415  # imports pandas, if it is there, which takes longer than a small table

        options = ds.ParquetFragmentScanOptions(arrow_extensions_enabled=True)  # UUIDs, and not their bytes
        parquet = ds.ParquetFileFormat(default_fragment_scan_options=options)
        file_format = parquet if self.kind == "parquet" else "ipc"
        try:
            return ds.dataset(self.path, format=file_format, filesystem=self.filesystem, partitioning=None)
        except MemoryError:
            raise OutOfMemoryError(NO_MEMORY) from None
        except (pa.ArrowException, OSError):
            raise InputError(f"cannot read {self.name}: it is damaged, or not a {self.kind} file") from None

    def parquet_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """These columns of a Parquet file."""
        file: Any = self.path if self.filesystem is None else self.filesystem.open_input_file(self.path)
        metadata = pq.ParquetFile(file).metadata
        for groups in row_group_runs(metadata):
            yield from parquet_batches(file, metadata, groups, schema)

    @contextmanager
    def opened(self, *, look: bool = False) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """The bytes of a text file, unpacked and in UTF-8, and the file as it is stored; errors become ours.

        The standard input can be read only once: after a `look`, the next call reads the same bytes again.
        """
        try:
            with self._stored(look=look) as stored:
                file: Any = stored
                if self.compression is not None:
                    file = pa.CompressedInputStream(stored, self.compression)
                if codecs.lookup(self.encoding).name != "utf-8":
                    file = pa.transcoding_input_stream(pa.PythonFile(file, "r"), self.encoding, "utf-8")
                yield file, stored
        except UnicodeError:
            raise self.wrong_encoding() from None
        except MemoryError:
            raise OutOfMemoryError(NO_MEMORY) from None
        except (OSError, EOFError, pa.ArrowException):
            raise InputError(f"cannot read {self.name}: it is damaged, or not what its name says") from None

    def _stored(self, *, look: bool) -> Any:
        if self.filesystem is not None:
            return self.filesystem.open_input_file(self.path)
        return _StandardInput(look=look) if self.path == STANDARD_INPUT else Path(self.path).open("rb")

    def wrong_encoding(self) -> InputError:
        """The error for text in another encoding."""
        return InputError(
            f"cannot read {self.name}: its text is not {self.encoding}; pass its encoding, such as encoding='latin-1'",
            "encoding",
        )


class _StandardInput(io.RawIOBase):
    """The standard input."""

    _ahead = bytearray()  # what a look at it used up

    def __init__(self, *, look: bool) -> None:
        self._look = look
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        start = self._position if self._look else 0
        if start == len(self._ahead):
            if sys.stdin is None:
                raise InputError("cannot read the standard input: this process has none")
            self._ahead += sys.stdin.buffer.read1(len(buffer))  # type: ignore[union-attr]  # of a buffer
        part = bytes(self._ahead[start : start + len(buffer)])
        if not self._look:
            del self._ahead[: len(part)]
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)
