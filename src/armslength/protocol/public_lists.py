"""Public lists of two columns that a protocol refers to: a mapping, a table, or a .csv or .parquet file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from armslength.checks import check_local
from armslength.errors import ParameterError


def rows_of(name: str, source: Any, keys: Sequence[str], value: str) -> tuple[str, Iterable[tuple[Any, Any]]]:
    """(key, rows): which one of the key columns the list has, and its rows of key and value; a mapping has the first.

    A mapping may also be one of columns. Both columns of a CSV file are text.
    """
    if isinstance(source, Mapping) and (
        isinstance(source.get(value), str) or not _is_long(source.get(value))
    ):
        return keys[0], source.items()
    import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables

    try:
        table = _read(source, [*keys, value]) if isinstance(source, (str, os.PathLike)) else pa.table(source)
        (key,) = set(table.column_names) & set(keys)
        return key, zip(*(table.column(each).to_pylist() for each in (key, value)), strict=True)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        where = os.fspath(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
        raise ParameterError(
            f"{name} must be a mapping, or a table or .csv or .parquet file with the columns {' or '.join(keys)} and {value}, got {where}"
        ) from None


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
