"""One sketch file, opened by its footer and read group by group; and `load`, which reads files whole."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from armslength.checks import check_local, integer, short_repr
from armslength.errors import CorruptFileError, ParameterError
from armslength.protocol.work_budget import DEFAULT_WORK, WorkBudget
from armslength.sketches.noises import Noises
from armslength.sketches.parquet_footer import DamagedFileError, RowGroup, as_corrupt_file, read_row_groups
from armslength.sketches.sketch_format import (
    FileHeader,
    Layout,
    check_columns,
    check_digests,
    check_pages,
    check_size,
    header_text,
    margin_width,
    read_columns,
    read_digests,
    read_header,
    read_in_clear,
    read_labels,
)
from armslength.sketches.sketches import Sketches, check_same_space
from armslength.threads import ordered_map

StrPath = str | os.PathLike[str]
Headers = dict[bytes, FileHeader]  # those that have been checked, by their text
DEFAULT_LIMIT, LARGEST_LIMIT = 4 * 2**30, 2**60
_CHANGED = "must stay as it was when it was opened, got another file; open it again"
_NO_DATA = (".", "_")  # how names begin that are no data: files half written, markers of other tools


def load(paths: Any, *, limit: int = DEFAULT_LIMIT, max_work: int | None = DEFAULT_WORK) -> Sketches:
    """The sketches of one file, or of several joined.

    Args:
        paths: A file, a folder of files (with all folders within it, sorted by path), or a list of either.
        limit: How many bytes a file may unpack to.
        max_work: How much work their protocols may ask for together, in operations of about a nanosecond; None: no limit.
    """
    return read_files(open_files("paths", paths, limit, max_work, open_whole))


def open_files(
    name: str, source: Any, limit: int, max_work: int | None, open_one: Callable[..., "SketchFile"]
) -> "list[SketchFile]":
    """All files of a source, opened one by one; equal headers are checked once."""
    single = isinstance(source, (str, os.PathLike))
    listed = [source] if single else list(source) if isinstance(source, Sequence) else []
    if not listed or not all(isinstance(path, (str, os.PathLike)) for path in listed):
        raise ParameterError(f"{name} must be a file, a folder or a list of them, got nothing of the kind")
    files = [path for each in listed for path in list_files(each)]
    integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
    headers: Headers = {}
    budget = WorkBudget(max_work)
    return [open_one(path, limit, headers, budget) for path in files]


def list_files(source: Any) -> list[Path]:
    """The file, or all files of the folder that may be sketches, sorted by their paths."""
    if not isinstance(source, (str, os.PathLike)) or not os.fspath(source):
        raise ParameterError(f"source must be a folder or a list of files, got {short_repr(source)}")
    check_local(source)
    top = Path(source)
    if not os.path.isdir(top):
        return [top]
    paths = []
    for folder, inner, names in os.walk(top, onerror=_refuse_folder):
        inner[:] = [name for name in inner if not name.startswith(_NO_DATA)]
        for name in inner:
            if (Path(folder) / name).is_symlink():
                raise ParameterError(
                    f"folders of a collection must be no links, got {Path(folder) / name}; name what it leads to"
                )
        paths += [Path(folder) / name for name in names if not name.startswith(_NO_DATA)]
    if not paths:
        raise ParameterError(f"a folder must hold sketch files to be a collection, got none in {top}")
    return sorted(paths, key=lambda path: path.parts)


def _refuse_folder(problem: OSError) -> None:
    raise CorruptFileError(f"{problem.filename} must be readable, got: {problem.strerror}")


def open_whole(path: StrPath, limit: int, headers: Headers, budget: WorkBudget) -> "SketchFile":
    """The file, if all of it fits into the limits."""
    if os.path.isfile(path) and Path(path).stat().st_size > limit:
        raise CorruptFileError(
            f"{os.fspath(path)} must be at most {limit} bytes, got a larger file; raise limit if you trust it"
        )
    file = SketchFile.open(path, limit, headers, budget)
    file.check_size(range(len(file.group_rows)))
    return file


def read_files(files: "Sequence[SketchFile]") -> Sketches:
    """The sketches of files that have been opened, joined."""
    schema = JoinedSchema(files)
    check_same_space(schema.protocols)
    groups = [(file, group) for file in files for group, rows in enumerate(file.group_rows) if rows]
    each_map = ordered_map if len(groups) > 1 else map
    pieces = each_map(lambda place: place[0].sketches(place[1]), groups)
    return schema.join(pieces, sum(file.rows for file in files))


FileIdentity = tuple[int, int, int, int, int]
Content = TypeVar("Content")


@dataclass(frozen=True, eq=False)
class SketchFile:
    """A file whose footer has been read and checked."""

    path: str
    identity: FileIdentity  # when it was opened
    footer: pq.FileMetaData  # for Parquet to read it by: ask it nothing, its columns can end the process
    groups: tuple[RowGroup, ...]  # as we read them in the footer
    header: FileHeader
    digests: Sequence[Mapping[str, str]]  # of each row group, by column
    layout: Layout
    group_rows: tuple[int, ...]
    limit: int  # bytes that may be unpacked at once

    @classmethod
    def open(
        cls, path: StrPath, limit: int, headers: Headers | None = None, budget: WorkBudget | None = None
    ) -> "SketchFile":
        """The file, if its footer is one of ours."""
        name = os.fspath(path)
        if not os.path.isfile(path):
            raise ParameterError(f"sketches must be a file that is there, got {name}")
        headers = {} if headers is None else headers
        with as_corrupt_file(name), Path(path).open("rb") as handle:
            identity = file_identity(os.fstat(handle.fileno()))
            groups = read_row_groups(handle)
            with pq.ParquetFile(handle, read_dictionary=["label"]) as file:
                schema, footer = file.schema_arrow, file.metadata
            text = header_text(schema)
            if text not in headers:
                headers[text] = read_header(text, name, budget or WorkBudget())
            header = headers[text]
            layout = check_columns(schema, header)
            _check_unchanged(handle, identity)
            rows = tuple(group.num_rows for group in groups)
            digests = read_digests(schema, text, rows)
            return cls(name, identity, footer, groups, header, digests, layout, rows, limit)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(self.group_rows)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.identity[2]

    def check_size(self, groups: Sequence[int]) -> None:
        """Refuses row groups that together would unpack to more than the limit."""
        with as_corrupt_file(self.path):
            check_size([self.groups[group] for group in groups], self.layout, self.limit)

    def sketches(self, group: int) -> Sketches:
        """The rows of one group."""
        columns = self._read(group, lambda table: read_columns(table, self.header))
        return Sketches(protocols=self.header.protocols, **columns)

    def column(self, name: str, group: int) -> list[Any]:
        """The "label" of each row of one group, or whether it is "in_clear"; no other column is read."""
        convert: Callable[[Any], list[Any]] = read_labels if name == "label" else read_in_clear
        return self._read(group, lambda table: convert(table.column(name)), name)

    def _read(self, group: int, convert: Callable[[pa.Table], Content], only: str | None = None) -> Content:
        """What is made of one row group, or of only one column of it, if it is as it was written."""
        with as_corrupt_file(self.path):
            table = self._table(group, only)
            content = convert(table)  # which refuses missing values, of which digests know nothing
            check_digests(table, self.digests[group])
            return content

    def _table(self, group: int, only: str | None) -> pa.Table:
        """One row group, or only one column of it, if the file is still the one that was opened."""
        columns = self.groups[group].columns
        if only is not None:
            columns = tuple(column for column in columns if column.path[0] == only.encode())
        try:
            handle = Path(self.path).open("rb")  # noqa: SIM115  # closed below; only its opening may say that it is gone
        except FileNotFoundError:
            raise DamagedFileError(_CHANGED) from None
        with handle:
            _check_unchanged(handle, self.identity)
            check_pages(handle, columns)
            with pq.ParquetFile(handle, metadata=self.footer, read_dictionary=["label"]) as file:
                # One column is nearly all of the work: threads of the reader would bring nothing.
                table = file.read_row_group(group, columns=only and [only], use_threads=False)
            _check_unchanged(handle, self.identity)
        if table.num_rows != self.group_rows[group]:
            raise DamagedFileError("must have as many rows as its footer says, got others")
        return table


def file_identity(status: os.stat_result) -> FileIdentity:
    """What tells a file from another, and from itself once it was written to; nobody sets the last of its times."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _check_unchanged(handle: BinaryIO, identity: FileIdentity) -> None:
    if file_identity(os.fstat(handle.fileno())) != identity:
        raise DamagedFileError(_CHANGED)


class JoinedSchema:
    """What rows of several files have in common when they are joined, as `concat` joins them."""

    def __init__(self, files: Sequence[SketchFile]) -> None:
        headers = {id(file.header): file.header for file in files}.values()
        releases = [release for header in headers for release in header.releases]
        protocols = [protocol for protocol, _ in releases]
        self.releases, self.protocols = tuple(dict.fromkeys(releases)), tuple(dict.fromkeys(protocols))
        layouts = [file.layout for file in files]
        # A row keeps its total, and its margins, if all rows have them.
        self.layout = Layout(
            layouts[0].width,
            all(layout.is_integer for layout in layouts),
            all(layout.has_totals for layout in layouts),
            margin_width(self.protocols) if all(layout.margin_width for layout in layouts) else 0,
        )

    def join(self, pieces: Iterable[Sketches], rows: int) -> Sketches:
        """All rows of all pieces, of which there are so many."""
        try:
            arrays = self.layout.empty(rows)
        except (MemoryError, ValueError):  # more than there is, or than can be addressed
            raise ParameterError(
                f"rows must fit into memory, got {rows} of {self.layout.width} numbers each; take fewer at a time"
            ) from None
        labels, noises = list[str](), list[Noises]()
        for piece in pieces:
            place = slice(len(labels), len(labels) + len(piece))
            for name, array in arrays.items():
                array[place] = getattr(piece, name)
            labels += piece.labels
            noises.append(piece.noises)
        joined = Noises.concat(noises) if noises else Noises.none(0)
        return Sketches(labels=labels, noises=joined, protocols=self.protocols, **arrays)
