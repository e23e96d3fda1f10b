"""Public lists that a protocol refers to, most of them by their hash: a mapping, a table, or a .csv or .parquet file."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from armslength.checks import check_local, short_repr
from armslength.errors import ParameterError, printable
from armslength.randomness.seeds import canonical_text, length_prefixed

MOST_ITEMS = 10_000_000
_PRINTED = 5  # columns
Value = TypeVar("Value")


def list_hash(domain: str, texts: Iterable[str]) -> str:
    """SHA-256 over texts in their order, each after its length."""
    digest = hashlib.sha256(length_prefixed(f"armslength {domain} v1".encode()))
    for text in texts:
        digest.update(length_prefixed(text.encode()))
    return digest.hexdigest()


def mapping_hash(domain: str, values: Mapping[str, Value], as_text: Callable[[Value], str]) -> str:
    """The same over keys and their values as text, in the order of the keys."""
    return list_hash(domain, (text for key in sorted(values) for text in (key, as_text(values[key]))))


def is_hash(value: Any) -> bool:
    """Whether it is what `list_hash` gives."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def nfc(name: str, text: Any) -> str:
    """The NFC form of a text."""
    if not isinstance(text, str):
        raise ParameterError(f"{name} must be text, got {short_repr(text)}")
    try:
        return canonical_text(text).decode()
    except ValueError as problem:
        raise ParameterError(f"{name} must be {problem}") from None


def checked_name(name: str, text: Any) -> str:
    """The NFC form of a text that is not empty, and has no blanks at its ends."""
    checked = nfc(name, text)
    if not checked or checked != checked.strip():
        raise ParameterError(
            f"{name} must be text with no blank at either end, got {short_repr(text)}; take the blanks out"
        )
    return checked


def checked_list(
    name: str,
    rows: Iterable[tuple[Any, Any]],
    checked_value: Callable[[Any], Value],
    largest: int = MOST_ITEMS,
    row_name: str = "row",
    first: int = 1,
) -> dict[str, Value]:
    """The value of each key; every key is listed once."""
    values = dict[str, Value]()

    def new_key(text: Any) -> str:
        key = checked_name(name, text)
        if key in values:
            raise ParameterError(f"{name} must be listed once, got {short_repr(text)} again")
        if len(values) == largest:
            raise ParameterError(f"{name} must be listed at most {largest} times, got more")
        return key

    for number, (text, value) in enumerate(rows, first):
        try:
            values[new_key(text)] = checked_value(value)
        except ParameterError as problem:
            raise ParameterError(f"{problem}, in {row_name} {number}") from None
    return values


def read_list(
    name: str, source: Any, keys: Mapping[str, int], value: str, checked_value: Callable[[Any], Value]
) -> tuple[str, dict[str, Value]]:
    """(key, values): which one of the key columns the list has, and the value of each of its names; a mapping has the first.

    A mapping may also be one of columns. Both columns of a CSV file are text.

    Args:
        name: Of the argument, for messages.
        source: The list.
        keys: How many rows it may have, for each key column.
        value: The other column.
        checked_value: Refuses a value, or returns what it stands for.
    """
    if isinstance(source, Mapping) and (
        isinstance(source.get(value), str) or not hasattr(source.get(value), "__len__")
    ):
        key, rows = next(iter(keys)), list(source.items())
    else:
        key, rows = _rows(name, source, list(keys), value)
    has_heading = isinstance(source, (str, os.PathLike)) and Path(source).suffix != ".parquet"
    numbering = ("line", 2) if has_heading else ("row", 1)
    return key, checked_list(f"{key} of {name}", rows, checked_value, keys[key], *numbering)


def _rows(name: str, source: Any, keys: Sequence[str], value: str) -> tuple[str, list[tuple[Any, Any]]]:
    """The key column of a table or a file, and its rows of key and value."""
    import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables
    import pyarrow.parquet as pq  # noqa: PLC0415  # the same
    from pyarrow import csv  # noqa: PLC0415  # the same

    is_path = isinstance(source, (str, os.PathLike))
    where = printable(os.fspath(source)) if is_path else type(source).__name__
    if is_path:
        check_local(source)
    try:
        if not is_path:
            table = pa.table(source)
        elif Path(source).suffix == ".parquet":
            table = pq.read_table(source)
        else:
            texts = csv.ConvertOptions(column_types=dict.fromkeys([*keys, value], pa.string()))
            table = csv.read_csv(source, convert_options=texts)
    # Their messages may quote a private file, named by mistake.
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        remedy = "; a .csv file must have a first line with names, text in UTF-8, and as many values in each line as in the first"
        raise ParameterError(
            f"{name} must be a mapping, a table, or a .csv or .parquet file that can be read, got {where}{remedy if is_path else ''}"
        ) from None
    names = table.column_names
    present = [key for key in keys if key in names]
    if len(present) > 1:
        raise ParameterError(
            f"{name} must have one of the columns {' and '.join(keys)}, got both in {where}; leave one out"
        )
    if len(names) == 1 and ";" in names[0]:
        raise ParameterError(
            f"{name} must have commas between its columns, got semicolons in {where}; replace them"
        )
    if not present or names.count(present[0]) != 1 or names.count(value) != 1:
        columns = ", ".join(names[:_PRINTED]) + (", …" if len(names) > _PRINTED else "")
        raise ParameterError(
            f"{name} must have the columns {' or '.join(keys)} and {value}, each once, got {printable(columns)} in {where}; "
            "the first line of a .csv file names them"
        )
    key = present[0]
    return key, list(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


def check_given(option: str, source: Any, *, needed: bool) -> None:
    """Refuses a list that a protocol does not need, and a missing one that it needs."""
    if (source is not None) != needed:
        needed_list = "the list that the protocol was made with, got none"
        rule = needed_list if needed else "left out: the protocol needs none"
        raise ParameterError(f"{option} (--{option.replace('_', '-')}) must be {rule}")
