"""One sketch file, opened by its footer: what it holds is known at once, its rows are read group by group."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.checks import is_file
from armslength.errors import CorruptFileError, ParameterError, printable
from armslength.formats.parquet_footer import RowGroup, as_corrupt_file, read_row_groups
from armslength.protocol.file_columns import labels_of, sketches_of
from armslength.protocol.file_digest import Digests, read_digests
from armslength.protocol.file_layout import (
    Head,
    check_columns,
    check_pages,
    check_size,
    checked_head,
    head_text,
)
from armslength.protocol.sketches import Sketches
from armslength.protocol.work import WorkBudget


@dataclass(frozen=True, eq=False)
class SketchFile:
    """A file whose footer has been read and checked.

    Attributes:
        path: Where it is.
        stamp: Device, number, size and times of the file when it was opened.
        footer: What Parquet says of it, for Parquet to read it by: ask it nothing, its columns can end the process.
        groups: What we read of its row groups in the footer.
        head: What its metadata says of all rows.
        digests: What its rows must have been when they were written.
        is_whole: Whether its values are integers.
        has_totals: Whether its rows have totals.
        group_rows: How many rows each row group has.
        limit: What may be unpacked at once, in bytes.
    """

    path: str
    stamp: tuple[int, int, int, int, int]
    footer: pq.FileMetaData
    groups: tuple[RowGroup, ...]
    head: Head
    digests: Digests
    is_whole: bool
    has_totals: bool
    group_rows: tuple[int, ...]
    limit: int

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        limit: int,
        heads: dict[bytes, Head] | None = None,
        budget: WorkBudget | None = None,
    ) -> "SketchFile":
        """The file, if its footer is one of ours.

        Args:
            path: Where it is.
            limit: What may be unpacked at once, in bytes.
            heads: Heads that have been checked, by their text; what is new is added.
            budget: The work that new heads may ask for; None: the default of a single file.
        """
        where = printable(os.fspath(path))
        if not is_file(path):
            raise ParameterError(f"sketches must be a file that is there, got {where}")
        known = {} if heads is None else heads
        with as_corrupt_file(where), Path(path).open("rb") as handle:
            stamp = _stamp(os.fstat(handle.fileno()))
            groups = read_row_groups(handle, where)
            with pq.ParquetFile(handle, read_dictionary=["label"]) as file:
                schema, footer = file.schema_arrow, file.metadata
            text = head_text(schema, where)
            if text not in known:
                known[text] = checked_head(text, where, budget or WorkBudget())
            head = known[text]
            check_columns(schema, head, where)
            if _stamp(os.fstat(handle.fileno())) != stamp:
                raise _changed(where)
            return cls(
                os.fspath(path),
                stamp,
                footer,
                groups,
                head,
                read_digests(schema, text, [group.num_rows for group in groups], where),
                schema.field("values").type.value_type == pa.int64(),
                "total" in schema.names,
                tuple(group.num_rows for group in groups),
                limit,
            )

    @property
    def name(self) -> str:
        """Where it is, as messages show it: on one line."""
        return printable(self.path)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(self.group_rows)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.stamp[2]

    def check_size(self, groups: Sequence[int]) -> None:
        """Refuses row groups that together would unpack to more than the limit."""
        with as_corrupt_file(self.name):
            width = self.head.protocols[0].transform.sketch_dim
            chosen = [self.groups[group] for group in groups]
            check_size(chosen, width, self.limit, self.name, totals=self.has_totals)

    def sketches(self, group: int) -> Sketches:
        """The rows of one group."""
        with as_corrupt_file(self.name):
            table = self._table(group)
            sketches = sketches_of(table, self.head, self.limit, self.name)
            self.digests.check(table, group, self.name)
            return sketches

    def labels(self, group: int) -> list[str]:
        """The labels of one group; no other column is read."""
        with as_corrupt_file(self.name):
            table = self._table(group, "label")
            labels = labels_of(table.column("label"), self.name)
            self.digests.check(table, group, self.name)
            return labels

    def in_clear(self, group: int) -> list[bool]:
        """For each row of one group, whether data without noise is part of it; no other column is read."""
        with as_corrupt_file(self.name):
            table = self._table(group, "in_clear")
            column = table.column("in_clear")
            listed: list[bool] = column.to_pylist()
            if column.null_count:
                raise CorruptFileError(f"{self.name} must have no missing values, got some")
            self.digests.check(table, group, self.name)
            return listed

    def _table(self, group: int, only: str | None = None) -> pa.Table:
        """One row group, or only one column of it, if the file is still the one that was opened."""
        columns = [
            column for column in self.groups[group].columns if only is None or column.path[0] == only.encode()
        ]
        try:
            handle = Path(self.path).open("rb")  # noqa: SIM115  # closed below; only its opening may say that it is gone
        except FileNotFoundError:
            raise _changed(self.name) from None
        with handle:
            if _stamp(os.fstat(handle.fileno())) != self.stamp:
                raise _changed(self.name)
            check_pages(handle, columns, self.name)
            with pq.ParquetFile(handle, metadata=self.footer, read_dictionary=["label"]) as file:
                # One column is nearly all of the work: threads of the reader would bring nothing.
                table = file.read_row_group(group, columns=only and [only], use_threads=False)
            if _stamp(os.fstat(handle.fileno())) != self.stamp:
                raise _changed(self.name)
        if table.num_rows != self.group_rows[group]:
            raise CorruptFileError(f"{self.name} must have as many rows as its footer says, got others")
        return table


def _stamp(known: os.stat_result) -> tuple[int, int, int, int, int]:
    """What tells a file from another, and from itself once it was written to; nobody sets the last of its times."""
    return known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns


def _changed(where: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where} must stay as it was when it was opened, got another file; open it again"
    )
