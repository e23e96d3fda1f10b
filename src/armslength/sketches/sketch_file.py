"""One sketch file, opened by its footer: what it holds is known at once, its rows are read group by group."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from armslength.checks import check_local, integer, is_file, is_folder, shown
from armslength.errors import CorruptFileError, ParameterError, printable
from armslength.files import atomic_write, canonical_json
from armslength.protocol.work_budget import DEFAULT_WORK, WorkBudget
from armslength.sketches.card import release_card
from armslength.sketches.noises import Provenance, Release, Released, joined_noises
from armslength.sketches.parquet_footer import RowGroup, as_corrupt_file, read_row_groups
from armslength.sketches.sketch_format import (
    DIGEST_KEY,
    FORMAT,
    KEY,
    VERSION,
    Digests,
    Head,
    check_columns,
    check_pages,
    check_size,
    checked_head,
    file_schema,
    head_text,
    labels_of,
    noise_column,
    read_digests,
    sketches_of,
)
from armslength.sketches.sketches import Sketches, check_same_space
from armslength.threads import ordered_map

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from armslength.protocol.protocol import Protocol


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


# Rows that come piece by piece, gathered into one array that is made once.


class Form:
    """What rows of several files have in common when they are joined, as `concat` joins them.

    Attributes:
        protocols: The protocols of all files.
        releases: The same, each with what was released under it.
        is_whole: Whether all values are integers; otherwise all become floats.
        has_totals: Whether all rows have totals; otherwise none keeps them.
    """

    def __init__(self, files: Sequence[SketchFile]) -> None:
        listed = (release for file in files for release in file.head.releases)
        self.releases: tuple[Release, ...] = tuple(dict.fromkeys(listed))
        self.protocols: tuple[Protocol, ...] = tuple(dict.fromkeys(protocol for protocol, _ in self.releases))
        self.is_whole = all(file.is_whole for file in files)
        self.has_totals = all(file.has_totals for file in files)

    def gathering(self, rows: int) -> "Gathering":
        """Room for so many rows."""
        return Gathering(self, rows)

    def gathered(self, pieces: Iterable[Sketches], rows: int) -> Sketches:
        """All rows of all pieces, of which there are so many."""
        gathering = self.gathering(rows)
        for piece in pieces:
            gathering.add(piece)
        return gathering.sketches()


class Gathering:
    """Room for a known number of rows, which is filled from the beginning."""

    def __init__(self, form: Form, rows: int) -> None:
        kind = np.int64 if form.is_whole else np.float64
        width = form.protocols[0].transform.sketch_dim
        self.room = rows
        self._form = form
        try:
            self._values: NDArray[Any] = np.empty((rows, width), dtype=kind)
            self._totals: NDArray[Any] | None = np.empty(rows, dtype=kind) if form.has_totals else None
        except (MemoryError, ValueError):  # more than there is, or than can be addressed
            raise ParameterError(
                f"rows must fit into memory, got {rows} of {width} numbers each; take fewer at a time"
            ) from None
        self._labels: list[str] = []
        self._noises: list[Released | tuple[Provenance, ...]] = []

    def add(self, piece: Sketches) -> None:
        """Takes rows, as many as there is room for at most."""
        start = len(self._values) - self.room
        place = slice(start, start + len(piece))
        self._values[place] = piece.values
        if self._totals is not None and piece.totals is not None:
            self._totals[place] = piece.totals
        self._labels += piece.labels
        self._noises.append(piece.noises)
        self.room -= len(piece)

    def sketches(self) -> Sketches:
        """What has been gathered, once there is no room left."""
        return Sketches(
            self._values, self._labels, joined_noises(self._noises), self._form.protocols, self._totals
        )


# Sketches as one Parquet file: written whole or not at all, read only within size limits.
#
# Columns: label; values (k integers, without their dropped bits; or floats once scaled); noise, a list of (id,
# coefficient, number of the protocol); offset; in_clear; and total where totals were released. The metadata key `armslength` holds the protocols,
# what was released under each, and the release card as JSON, `armslength digests` what tells that the file was edited. DuckDB and polars read it as it is.


DEFAULT_LIMIT, LARGEST_LIMIT = 4 * 2**30, 2**60
_GROUP_ROWS, _GROUP_BYTES = 16_384, 32 * 2**20  # of a row group, which is what a reader holds at once
_LEFT_OUT = (".", "_")  # how names begin that are no data: files half written, markers of other tools


def save_sketches(sketches: Sketches, path: str | os.PathLike[str]) -> None:
    """Writes the file, whole or not at all."""
    whole = sketches.values.dtype == np.int64
    bits = _shared_dropped_bits(sketches) if whole else 0
    width = sketches.values.shape[1]
    schema = file_schema(width, pa.int64() if whole else pa.float64(), totals=sketches.totals is not None)
    flat = pa.array((sketches.values >> np.int64(bits) if bits else sketches.values).ravel())
    releases = sketches.releases
    columns = [
        pa.array(sketches.labels, pa.string()),
        pa.FixedSizeListArray.from_arrays(flat, type=schema.field("values").type),
        noise_column(sketches, releases),
        pa.array(sketches.offsets),
        pa.array(sketches.in_clear, pa.bool_()),
    ]
    if sketches.totals is not None:
        columns.append(pa.array(sketches.totals, schema.field("total").type))
    head = {
        "format": FORMAT,
        "version": VERSION,
        "dropped_bits": bits,
        "protocols": [protocol.document() for protocol, _ in releases],
        "sources": [source for _, source in releases],
        "card": release_card(releases, in_clear=any(sketches.in_clear)),
    }
    table = pa.table(columns, schema=schema)
    text, group_rows = canonical_json(head), max(1, min(_GROUP_ROWS, _GROUP_BYTES // (8 * width)))
    metadata = {KEY: text, DIGEST_KEY: Digests.of(text, table, group_rows).text()}
    with atomic_write(path) as file:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            file,
            row_group_size=group_rows,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            # Noise leaves a few bits in each integer: packed they are smaller than compressed words, and read three times as fast.
            column_encoding={"values.list.element": "DELTA_BINARY_PACKED"} if whole else None,
        )


def _shared_dropped_bits(sketches: Sketches) -> int:
    """How many low bits are zero in every row by protocol; 0 for combinations."""
    each = {protocol.dropped_bits for protocol in sketches.protocols}
    released = sketches.released is not None or all(
        len(row.terms) == 1 and row.terms[0][1] == 1.0 and not row.in_clear for row in sketches.provenance
    )
    return each.pop() if len(each) == 1 and released else 0


def load(paths: Any, *, limit: int = DEFAULT_LIMIT, max_work: int | None = DEFAULT_WORK) -> Sketches:
    """The sketches of one file, or of several joined.

    Args:
        paths: A file, a folder of files (with all folders within it, sorted by path), or a list of either.
        limit: How many bytes a file may unpack to.
        max_work: How much work their protocols may ask for together, in operations of about a nanosecond; None: no limit.
    """
    listed = (
        [paths]
        if isinstance(paths, (str, os.PathLike))
        else list(paths)
        if isinstance(paths, Sequence)
        else []
    )
    if not listed or not all(isinstance(path, (str, os.PathLike)) for path in listed):
        raise ParameterError("paths must be a file, a folder or a list of them, got nothing of the kind")
    integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
    heads: dict[bytes, Head] = {}
    budget = WorkBudget(max_work)
    return rows_of([opened(path, limit, heads, budget) for each in listed for path in paths_of(each)])


def paths_of(source: Any) -> list[Path]:
    """The file, or all files of the folder that may be sketches, sorted by their paths."""
    if not isinstance(source, (str, os.PathLike)) or not os.fspath(source):
        raise ParameterError(f"source must be a folder or a list of files, got {shown(source)}")
    check_local(source)
    top = Path(source)
    if not is_folder(top):
        return [top]
    found = []
    for folder, inner, names in os.walk(top, onerror=_refuse):
        inner[:] = [name for name in inner if not name.startswith(_LEFT_OUT)]
        for name in inner:
            if (Path(folder) / name).is_symlink():
                raise ParameterError(
                    f"folders of a collection must be no links, got {printable(str(Path(folder) / name))}; "
                    "name what it leads to"
                )
        found += [Path(folder) / name for name in names if not name.startswith(_LEFT_OUT)]
    if not found:
        raise ParameterError(
            f"a folder must hold sketch files to be a collection, got none in {printable(str(top))}"
        )
    return sorted(found, key=lambda path: path.parts)


def _refuse(problem: OSError) -> None:
    raise CorruptFileError(f"{printable(str(problem.filename))} must be readable, got: {problem.strerror}")


def rows_of(files: Sequence[SketchFile]) -> Sketches:
    """The sketches of files that have been opened, joined."""
    form = Form(files)
    check_same_space(form.protocols)
    groups = [(file, group) for file in files for group, rows in enumerate(file.group_rows) if rows]
    pieces = ordered_map(_read, groups) if len(groups) > 1 else map(_read, groups)
    return form.gathered(pieces, sum(file.rows for file in files))


def _read(place: tuple[SketchFile, int]) -> Sketches:
    """The rows of one group of a file."""
    file, group = place
    return file.sketches(group)


def opened(
    path: str | os.PathLike[str], limit: int, heads: dict[bytes, Head], budget: WorkBudget
) -> SketchFile:
    """The file, if all of it fits into the limits."""
    if is_file(path) and Path(path).stat().st_size > limit:
        raise CorruptFileError(
            f"{printable(os.fspath(path))} must be at most {limit} bytes, got a larger file; raise limit if you trust it"
        )
    file = SketchFile.open(path, limit, heads, budget)
    file.check_size(range(len(file.group_rows)))
    return file
