"""Public lists of two columns that a protocol refers to: a mapping, a table, or a .csv or .parquet file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from armslength.checks import check_local
from armslength.errors import ParameterError, printable

_SHOWN = 5


def rows_of(name: str, source: Any, keys: Sequence[str], value: str) -> tuple[str, Iterable[tuple[Any, Any]]]:
    """(key, rows): which one of the key columns the list has, and its rows of key and value; a mapping has the first.

    A mapping may also be one of columns. Both columns of a CSV file are text.
    """
    if isinstance(source, Mapping) and (
        isinstance(source.get(value), str) or not _is_long(source.get(value))
    ):
        return keys[0], source.items()
    table, where = _table(name, source, [*keys, value])
    names, wanted = table.column_names, f"{' or '.join(keys)} and {value}"
    known = [key for key in keys if key in names]
    if len(known) > 1:
        raise ParameterError(
            f"{name} must have one of the columns {' and '.join(keys)}, got both in {where}; leave one out"
        )
    if len(names) == 1 and ";" in names[0]:
        raise ParameterError(
            f"{name} must have commas between its columns, got semicolons in {where}; replace them"
        )
    if not known or names.count(known[0]) != 1 or names.count(value) != 1:
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        raise ParameterError(
            f"{name} must have the columns {wanted}, each once, got {printable(shown)} in {where}; the first line of a .csv file names them"
        )
    return known[0], zip(*(table.column(each).to_pylist() for each in (known[0], value)), strict=True)


def _table(name: str, source: Any, columns: Sequence[str]) -> tuple[Any, str]:
    """(table, where): the Arrow table of a file or of something like a table, and what messages call it."""
    import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables

    if not isinstance(source, (str, os.PathLike)):
        where = type(source).__name__
        try:
            return pa.table(source), where
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            raise ParameterError(
                f"{name} must be a mapping, a table, or a .csv or .parquet file, got {where}"
            ) from None
    where = printable(os.fspath(source))
    try:
        return _read(source, columns), where
    except (pa.ArrowException, OSError, ValueError):
        raise ParameterError(f"{name} must be {_fault(source)}, got {where}") from None


def _fault(path: str | os.PathLike[str]) -> str:
    """What a file must be that could not be read."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError):
        return "a .csv or .parquet file that exists and can be read"
    if not data.strip():
        return "a file that is not empty"
    if Path(path).suffix == ".parquet":
        return "a .parquet file that can be read"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "text in UTF-8: save the file again in that encoding"
    return "a .csv file with commas, and with as many values in each line as in the first"


def _is_long(column: Any) -> bool:
    return hasattr(column, "__len__")


def _read(path: str | os.PathLike[str], columns: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # the same
    import pyarrow.parquet as pq  # noqa: PLC0415  # the same
    from pyarrow import csv  # noqa: PLC0415  # the same

    check_local(path)
    if Path(path).suffix == ".parquet":
        return pq.read_table(path)
    kinds = dict.fromkeys(columns, pa.string())
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=kinds))
