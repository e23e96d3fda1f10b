"""Values of a changed JSON tree made to fit a column, so that there is nearly always a file that a reader can be given."""

import json
import math
from typing import Any
from zlib import crc32

import pyarrow as pa

_ONE_FOREIGN_IN = 16


def is_foreign(data: bytes) -> bool:
    """Whether this input is one of the few whose columns may have any type; the input itself decides."""
    return crc32(data) % _ONE_FOREIGN_IN == 0


def array_of(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    """A column of this type, or of one that fits: text, if nothing else does."""
    if kind is not None:
        return pa.array([fitted(value, kind) for value in values], kind)
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.array([fitted(value, pa.string()) for value in values], pa.string())


def fitted(value: Any, kind: pa.DataType) -> Any:  # noqa: PLR0911  # one line for each type
    """The value if it is of the type, or one that is made of it; nothing stays nothing."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        text = value if isinstance(value, str) else json.dumps(value)
        return text.encode(errors="replace").decode()
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_integer(kind):
        return int(min(max(_number(value), -(2 ** (kind.bit_width - 1))), 2 ** (kind.bit_width - 1) - 1))
    if pa.types.is_floating(kind):
        return float(min(max(_number(value), -1e308), 1e308)) if not _is_special(value) else float(value)
    if pa.types.is_fixed_size_binary(kind):
        return _identifier(value)[: kind.byte_width].ljust(kind.byte_width, b"\0")
    if pa.types.is_struct(kind):
        given = value if isinstance(value, dict) else {}
        return {field.name: _present(given.get(field.name), field.type) for field in kind}
    inner = [_present(each, kind.value_type) for each in (value if isinstance(value, list) else [value])]
    if pa.types.is_fixed_size_list(kind):
        return (inner + [0] * kind.list_size)[: kind.list_size]
    return inner


def _present(value: Any, kind: pa.DataType) -> Any:
    """What lies within lists is never missing."""
    return fitted(0 if value is None else value, kind)


def _number(value: Any) -> Any:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    return len(value) if isinstance(value, (str, list, dict)) else 0


def _is_special(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _identifier(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (ValueError, TypeError):
        return json.dumps(value).encode()
