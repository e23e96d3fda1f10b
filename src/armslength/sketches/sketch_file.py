"""Sketch files: `load`, which reads one or many of them whole, and trusts nothing that they say."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from armslength.checks import check_local, integer, short_repr
from armslength.errors import CorruptFileError, MissingFileError, ParameterError, plural
from armslength.sketches.misfits import Misfit, Source, check_all_fit, incomparable, misfits
from armslength.sketches.parquet_footer import (
    DamagedFileError,
    as_corrupt_file,
    read_row_groups,
    unpacked_bytes,
)
from armslength.sketches.sketch_format import (
    FileHeader,
    check_columns,
    check_digests,
    check_size,
    header_text,
    read_columns,
    read_digests,
    read_header,
)
from armslength.sketches.sketches import Sketches, concat

Headers = dict[bytes, FileHeader]  # those that have been checked, by their text
DEFAULT_LIMIT, LARGEST_LIMIT = 4 * 2**30, 2**60
_NO_DATA = (".", "_")  # how names begin that are no data: files half written, markers of other tools


def load(paths: Any, *, limit: int = DEFAULT_LIMIT) -> Sketches:
    """The sketches of one file, or of several joined.

    Args:
        paths: A file, a folder of files (with all folders within it, sorted by path), or a list of either. In a folder,
            names that begin with "." or "_" are left out.
        limit: How many bytes a file may unpack to.
    """
    files = read_files("paths", paths, limit)
    check_all_fit([file.source for file in files])
    return joined(files)


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """A sketch file that was read whole."""

    path: str
    header: FileHeader
    sketches: Sketches

    @property
    def source(self) -> Source:
        """Its rows, as what may have other settings than those of other files."""
        return Source(self.header.protocols, len(self.sketches), self.sketches.labels.__iter__, self.path)

    def where(self, keep: Callable[[str], bool]) -> "LoadedFile":
        """The file with only the rows whose label is to be kept."""
        rows = [row for row, label in enumerate(self.sketches.labels) if keep(label)]
        return self if len(rows) == len(self.sketches) else replace(self, sketches=self.sketches.rows(rows))


def read_files(name: str, source: Any, limit: int = DEFAULT_LIMIT) -> list[LoadedFile]:
    """All files of a source, which the argument of this name gives; equal headers are checked once."""
    single = isinstance(source, (str, os.PathLike))
    paths = [source] if single else list(source) if isinstance(source, Sequence) else []
    if not paths or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise ParameterError(f"{name} must be a file, a folder or a list of them", name)
    headers = Headers()
    return [read_file(file, limit, headers) for path in paths for file in list_files(path)]


def joined(files: Sequence[LoadedFile]) -> Sketches:
    """All rows of all files."""
    return _joined([file.sketches for file in files])


def fitting_files(
    sides: Sequence[Sequence[LoadedFile]], *, at_least: int = 1, keep: Callable[[str], bool] | None = None
) -> tuple[list[list[LoadedFile]], list[Misfit]]:
    """The files of each side without those that cannot be compared with most rows; and all files with other settings.

    Args:
        sides: Files.
        at_least: How many rows the first side must have; the others must have one.
        keep: Which labels are asked about. Other rows are left out, and files with no such label are not named; None: all.
    """
    if keep is not None:
        asked = [[file.where(keep) for file in files] for files in sides]
    else:
        asked = [list(files) for files in sides]
    # What is not asked about tells what is usual.
    sources = [
        replace(file.source, is_asked=bool(len(part.sketches)))
        for files, parts in zip(sides, asked, strict=True)
        for file, part in zip(files, parts, strict=True)
    ]
    found = misfits(sources)
    left_out = {misfit.source for misfit in found if not misfit.is_comparable}
    fits = iter(source.is_asked and number not in left_out for number, source in enumerate(sources))
    chosen = [[file for file in files if next(fits)] for files in asked]
    for number, files in enumerate(chosen):
        needed, rows = 1 if number else at_least, sum(len(file.sketches) for file in files)
        if rows < needed:
            if left_out:
                raise incomparable(found)
            raise ParameterError(
                f"comparing needs at least {plural(needed, 'row')}, and the files have {rows}; name the files of other parties, too"
            )
    return chosen, found


def list_files(source: Any) -> list[Path]:
    """The file, or all files of the folder that may be sketches, sorted by their paths."""
    if not isinstance(source, (str, os.PathLike)) or not os.fspath(source):
        raise ParameterError(
            f"source must be a folder or a list of files, got {short_repr(source)}", "source"
        )
    check_local(source)
    top = Path(source)
    if not os.path.isdir(top):
        return [top]
    paths = []
    for folder, inner, names in os.walk(top, onerror=_refuse_folder):
        inner[:] = [name for name in inner if not name.startswith(_NO_DATA)]
        for name in inner:
            if (Path(folder) / name).is_symlink():
                raise ParameterError(f"{Path(folder) / name} is a link; name the folder that it leads to")
        paths += [Path(folder) / name for name in names if not name.startswith(_NO_DATA)]
    if not paths:
        raise ParameterError(f"no sketch files in {str(top)!r}")
    return sorted(paths, key=lambda path: path.parts)


def _refuse_folder(problem: OSError) -> None:
    raise CorruptFileError(f"cannot read {problem.filename}: {problem.strerror}")


def read_file(path: str | os.PathLike[str], limit: int, headers: Headers) -> LoadedFile:
    """A file; equal headers are checked once."""
    integer("limit", limit, at_least=1, at_most=LARGEST_LIMIT)
    name = os.fspath(path)
    if not os.path.isfile(path):
        raise MissingFileError(f"no such file: {name}")
    with as_corrupt_file(name), Path(path).open("rb") as handle:
        groups = read_row_groups(handle)
        if not groups:
            raise ValueError("row groups")
        # Of what Parquet knows of the file, ask for its schema alone: reading the rest can end the process.
        with pq.ParquetFile(handle, read_dictionary=["label"]) as file:
            schema = file.schema_arrow
            text = header_text(schema)
            if text not in headers:
                known = next((header.protocols[0].transform for header in headers.values()), None)
                headers[text] = read_header(text, name, known)
            header = headers[text]
            check_size(groups, check_columns(schema, header), limit)
            digests = read_digests(schema, text, [group.num_rows for group in groups])
            # The footer's sizes were compared with the limit.
            if any(
                unpacked_bytes(handle, column) > column.unpacked
                for group in groups
                for column in group.columns
            ):
                raise DamagedFileError("unpacks to more than its footer says")
            parts = []
            for number, group in enumerate(groups):
                # One column is nearly all of the work: threads of the reader would bring nothing.
                table = file.read_row_group(number, use_threads=False)
                if table.num_rows != group.num_rows:
                    raise DamagedFileError("does not have as many rows as its footer says")
                # Missing values are refused first: digests know nothing of them.
                columns = read_columns(table, header)
                check_digests(table, digests[number])
                parts.append(Sketches(protocols=header.protocols, **columns))
    return LoadedFile(name, header, _joined(parts))


def _joined(parts: list[Sketches]) -> Sketches:
    """All rows of all parts, which a single part is already."""
    return concat(parts) if len(parts) > 1 else parts[0]
