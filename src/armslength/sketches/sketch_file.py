"""Sketch files: one opened by its footer and read group by group, many as a collection, and `load`, which reads them whole."""

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from armslength.checks import check_local, integer, short_repr
from armslength.errors import CorruptFileError, ParameterError, plural
from armslength.protocol.margins import Margins
from armslength.protocol.work_budget import DEFAULT_WORK, WorkBudget
from armslength.sketches.misfits import Misfit, Source, check_all_fit, incomparable, misfits
from armslength.sketches.noises import Noises
from armslength.sketches.parquet_footer import (
    DamagedFileError,
    RowGroup,
    as_corrupt_file,
    read_row_groups,
    unpacked_bytes,
)
from armslength.sketches.sketch_format import (
    FileHeader,
    Layout,
    check_columns,
    check_digests,
    check_size,
    header_text,
    margin_width,
    read_columns,
    read_digests,
    read_header,
    read_in_clear,
    read_labels,
    usual_margins,
)
from armslength.sketches.sketches import Sketches, SketchRows, unknown_label
from armslength.threads import cached_attribute, ordered_map

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
    files = open_files("paths", paths, limit, max_work)
    check_all_fit([file.source for file in files])
    for file in files:
        file.check_size()
    return Collection(files).all_rows()


def open_files(name: str, source: Any, limit: int, max_work: int | None) -> "list[SketchFile]":
    """All files of a source, opened one by one; equal headers are checked once."""
    single = isinstance(source, (str, os.PathLike))
    paths = [source] if single else list(source) if isinstance(source, Sequence) else []
    if not paths or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise ParameterError(f"{name} must be a file, a folder or a list of them, got nothing of the kind")
    files = [file for path in paths for file in list_files(path)]
    integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
    headers: Headers = {}
    budget = WorkBudget(max_work)
    return [SketchFile.open(file, limit, headers, budget) for file in files]


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

    def check_size(self, group: int | None = None) -> None:
        """Refuses a row group, or by default all of them together, that would unpack to more than the limit."""
        groups = self.groups if group is None else self.groups[group : group + 1]
        with as_corrupt_file(self.path):
            check_size(groups, self.layout, self.limit)

    def labels(self) -> Iterator[str]:
        """The labels of all rows; no other column is read."""
        return (label for group in range(len(self.groups)) for label in self.column("label", group))

    @property
    def source(self) -> Source:
        """Its rows, as what may have other settings than those of other files."""
        return Source(self.header.protocols, self.rows, self.labels, self.path)

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
            table = self._read_table(group, only)
            content = convert(table)  # which refuses missing values, of which digests know nothing
            check_digests(table, self.digests[group])
            return content

    def _read_table(self, group: int, only: str | None) -> pa.Table:
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
            # The footer's sizes were compared with the limit.
            if any(unpacked_bytes(handle, column) > column.unpacked for column in columns):
                raise DamagedFileError("must unpack to what its footer says, got more")
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


@dataclass(frozen=True)
class _Group:
    """Rows of one row group of one file, by their numbers in it."""

    file: SketchFile
    number: int
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def sketches(self) -> Sketches:
        sketches = self.file.sketches(self.number)
        return sketches if len(sketches) == len(self) else sketches.rows(self.rows)

    def column(self, name: str) -> list[Any]:
        column = self.file.column(name, self.number)
        return [column[row] for row in self.rows]


class Collection(SketchRows):
    """Rows of many files as if they were one `Sketches`, of which a block at a time is in memory; made by `al.open_collection`.

    Rows come in the order of the files and are selected as in `Sketches`. Several may have the same label, if a party
    released again. Everything here is post-processing of released rows: it costs no privacy, however often it is done.

    Attributes:
        files: The files, in order.
        protocols: The protocols of all rows; they share one space.
        releases: The same, each with what was released under it: "events", "rows" or "stream"; "unknown" for a protocol without rows.
        has_totals: Whether all rows have totals; if only some have, no block has any.
        has_margins: Whether all rows have the same margins. If only some have, others than most have are left out of blocks.
    """

    def __init__(self, files: Sequence[SketchFile], groups: Sequence[_Group] | None = None) -> None:
        self.files = tuple(files)
        headers = {id(file.header): file.header for file in self.files}.values()
        self.releases = tuple(dict.fromkeys(release for header in headers for release in header.releases))
        super().__init__(protocol for protocol, _ in self.releases)
        self._layout, self._item_groups = _common_layout(self.files)
        self.has_totals, self.has_margins = self._layout.has_totals, self._layout.margin_width > 0
        if groups is None:
            groups = [
                _Group(file, number, range(rows))
                for file in self.files
                for number, rows in enumerate(file.group_rows)
            ]
        self._groups = tuple(group for group in groups if len(group))
        self._starts = np.cumsum([0, *map(len, self._groups)])

    @cached_attribute
    def in_clear(self) -> tuple[bool, ...]:
        """For each row, whether data without noise is part of it; reads that column once."""
        return tuple(clear for group in self._groups for clear in group.column("in_clear"))

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __repr__(self) -> str:
        size = f"{plural(len(self), 'row')} in {plural(len(self.files), 'file')}"
        width = plural(self.transform.sketch_dim, "coordinate")
        return f"<Collection of {size}, {width}, {self.transform.name}>"

    def __iter__(self) -> Iterator[Sketches]:
        return (block.span(row, row + 1) for block in self.blocks(1024) for row in range(len(block)))

    def blocks(self, rows: int, first: int = 0) -> Iterator[Sketches]:
        """All rows in order from the first, so many at a time, and in the last block the rest.

        In memory are a row group and two blocks: the one that was given and the one that is being filled.

        Args:
            rows: How many rows a block has.
            first: The number of the row to begin with.
        """
        integer("rows", rows, at_least=1, at_most=2**40)
        integer("first", first, at_least=0, at_most=len(self))
        read = lru_cache(maxsize=1)(lambda number: self._groups[number].sketches())

        def block(start: int, stop: int) -> Sketches:
            group = int(np.searchsorted(self._starts, start, side="right")) - 1
            end = int(np.searchsorted(self._starts, stop, side="left"))
            pieces = (
                read(number).span(max(0, start - int(begin)), stop - int(begin))
                for number, begin in enumerate(self._starts[group:end], group)
            )
            return self._join(pieces, stop - start)

        return (block(start, min(start + rows, len(self))) for start in range(first, len(self), rows))

    def rows(self, numbers: Sequence[int]) -> Sketches:
        """Rows by number, in this order; one may come more than once. Reads each row group that has one of them, once."""
        try:
            rows = np.array([operator.index(number) for number in numbers], dtype=np.int64)
        except (TypeError, OverflowError):  # no integers, or far beyond every row
            rows = np.array([-1])
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise ParameterError(f"rows must be numbers from 0 to {len(self) - 1}, got others")
        unique, inverse = np.unique(rows, return_inverse=True)
        by_group = list(self._rows_by_group(unique))
        # What all of the chosen rows have, they keep.
        files = [self._groups[group].file for group, _ in by_group]
        pieces = (self._groups[group].sketches().rows(part.tolist()) for group, part in by_group)
        sketches = self._join(pieces, len(unique), *(_common_layout(files) if files else ()))
        return sketches if np.array_equal(unique, rows) else sketches.rows(inverse.tolist())

    def without(self, label: str) -> "Collection":
        """All rows but those of this label; reads the labels once."""
        rest = self.where(lambda other: other != label)
        if len(rest) == len(self):
            raise unknown_label(label, self.each_label())
        return rest

    def where(self, keep: Callable[[str], bool]) -> "Collection":
        """The rows whose labels are to be kept; reads the labels once."""
        groups = [
            replace(
                group,
                rows=[
                    row for row, label in zip(group.rows, group.column("label"), strict=True) if keep(label)
                ],
            )
            for group in self._groups
        ]
        used = {id(group.file) for group in groups if len(group)}
        return Collection([file for file in self.files if id(file) in used] or self.files, groups)

    def _rows_by_group(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The number of each row group that has one of the rows, and their numbers within it."""
        groups = np.searchsorted(self._starts, numbers, side="right") - 1
        for group in np.unique(groups).tolist():
            yield group, numbers[groups == group] - self._starts[group]

    def each_label(self) -> Iterator[str]:
        """The labels of all rows, in order, a row group at a time; no other column is read."""
        return (label for group in self._groups for label in group.column("label"))

    def to_sketches(self, *, limit: int = DEFAULT_LIMIT) -> Sketches:
        """All rows in memory; refuses more than `limit` bytes of values."""
        integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
        needed = 8 * len(self) * (self.transform.sketch_dim + self._layout.margin_width)
        if needed > limit:
            raise ParameterError(
                f"a collection must have at most {limit} bytes of values to be loaded, got {needed}; "
                "take it in blocks, or raise limit"
            )
        return self.all_rows()

    def all_rows(self) -> Sketches:
        """All rows in memory, whatever their size."""
        map_groups = ordered_map if len(self._groups) > 1 else map
        return self._join(map_groups(_Group.sketches, self._groups), len(self))

    def _join(
        self,
        pieces: Iterable[Sketches],
        rows: int,
        layout: Layout | None = None,
        item_groups: Margins | None = None,
    ) -> Sketches:
        """All rows of all pieces, of which there are so many; with this layout and these margins, or those of all files."""
        if layout is None:
            layout, item_groups = self._layout, self._item_groups
        try:
            arrays = layout.empty(rows)
            if item_groups is not None and not layout.margin_width:  # some have them
                arrays["margins"] = np.full((rows, len(item_groups.names) + 1), np.nan)
        except (MemoryError, ValueError):  # more than there is, or than can be addressed
            raise ParameterError(
                f"rows must fit into memory, got {rows} of {layout.width} numbers each; take fewer at a time"
            ) from None
        labels, noises = list[str](), list[Noises]()
        for piece in pieces:
            part = slice(len(labels), len(labels) + len(piece))
            for name, array in arrays.items():
                if name != "margins" or piece.item_groups == item_groups:
                    array[part] = getattr(piece, name)
            labels += piece.labels
            noises.append(piece.noises)
        joined = Noises.concat(noises) if noises else Noises.none(0)
        return Sketches(labels=labels, noises=joined, protocols=self.protocols, **arrays)


def _common_layout(files: Sequence[SketchFile]) -> tuple[Layout, Margins | None]:
    """The columns that all of the files have, and the item groups of the margins that most of their rows have."""
    layouts = [file.layout for file in files]
    headers = {id(file.header): file.header for file in files}.values()
    item_groups = usual_margins(
        (file.header.protocols[0].margins if file.layout.margin_width else None, file.rows) for file in files
    )
    layout = Layout(
        layouts[0].width,
        all(layout.is_integer for layout in layouts),
        all(layout.has_totals for layout in layouts),
        margin_width([protocol for header in headers for protocol in header.protocols])
        if all(layout.margin_width for layout in layouts)
        else 0,
    )
    return layout, item_groups


def open_collection(
    source: Any, *, limit: int = DEFAULT_LIMIT, max_work: int | None = DEFAULT_WORK
) -> Collection:
    """The sketches in a folder, and in all folders within it, as one collection; reads no row yet.

    Files come sorted by their paths. The footer of each is checked as `al.load` checks it, and all must share one
    space. Every file must be a sketch file, except that names beginning with "." or "_" are left out. A file that is
    replaced, changed or removed after this is noticed when it is read, and refused.

    Args:
        source: A folder, a file, or a list of either, in their order.
        limit: How many bytes one row group of a file may unpack to.
        max_work: How much work their protocols may ask for together, in operations of about a nanosecond; None: no limit.
    """
    files = _opened(source, limit, max_work)
    check_all_fit([file.source for file in files])
    return Collection(files)


def open_fitting(
    *sources: Any,
    at_least: int = 1,
    keep: Callable[[str], bool] | None = None,
    limit: int = DEFAULT_LIMIT,
    max_work: int | None = DEFAULT_WORK,
) -> tuple[list[Collection], list[Misfit]]:
    """A collection of each source, without files that cannot be compared with most rows; and all files with other settings.

    Args:
        sources: Each as for `open_collection`.
        at_least: How many rows the first must have; the others must have one.
        keep: Which labels are asked about. Other rows are left out, and files with no such label are not named; None: all.
        limit: As for `open_collection`.
        max_work: As for `open_collection`, of each source.
    """
    sides = [_opened(source, limit, max_work) for source in sources]
    parts = [file.source for side in sides for file in side]
    if keep is not None:
        parts = [replace(part, is_asked=any(map(keep, part.labels()))) for part in parts]
    found = misfits(parts)
    left_out = {misfit.source for misfit in found if not misfit.is_comparable}
    fits = iter(part.is_asked and number not in left_out for number, part in enumerate(parts))
    fitting = [[file for file in side if next(fits)] for side in sides]
    collections = []
    for number, files in enumerate(fitting):
        needed = 1 if number else at_least
        rows = Collection(files) if files else None
        if rows is not None and keep is not None:
            rows = rows.where(keep)
        if rows is None or len(rows) < needed:
            if left_out:
                raise incomparable(found)
            raise ParameterError(
                f"the files must hold at least {plural(needed, 'row')} to compare, got {0 if rows is None else len(rows)}; "
                "name the files of other parties, too"
            )
        collections.append(rows)
    return collections, found


def _opened(source: Any, limit: int, max_work: int | None) -> list[SketchFile]:
    """All files of a source, each once."""
    files = open_files("source", source, limit, max_work)
    if len({file.identity for file in files}) != len(files):
        raise ParameterError("source must name each file once, got one of them twice")
    for file in files:
        for group in range(len(file.groups)):
            file.check_size(group)
    return files
