"""Sketches as one Parquet file: written whole or not at all, read only within size limits.

Columns: label; values (k integers, without their dropped bits; or floats once scaled); noise, a list of (id,
coefficient, number of the protocol); offset; in_clear; and total where totals were released. The metadata key `armslength` holds the protocols,
what was released under each, and the release card as JSON, `armslength digests` what tells that the file was edited. DuckDB and polars read it as it is.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from armslength.checks import check_local, integer, is_file, is_folder, shown
from armslength.errors import CorruptFileError, ParameterError, printable
from armslength.formats.atomic import atomic_write
from armslength.formats.canonical import canonical_json
from armslength.protocol.card import release_card
from armslength.protocol.file_columns import noise_column
from armslength.protocol.file_digest import DIGEST_KEY, Digests
from armslength.protocol.file_layout import FORMAT, KEY, VERSION, Head, file_schema
from armslength.protocol.gather import Form
from armslength.protocol.sketch_file import SketchFile
from armslength.protocol.sketches import Sketches, check_same_space
from armslength.protocol.work import DEFAULT_WORK, WorkBudget
from armslength.threads import in_order

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
    pieces = in_order(_read, groups) if len(groups) > 1 else map(_read, groups)
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
