"""A column of vectors as a matrix: packed numbers as they lie in memory, or lists of numbers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.errors import InputError, ParameterError

PACKED = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4"}


def check_vector_type(kind: pa.DataType, dtype: Any) -> None:
    """Refuses a column that holds no vectors, and a `dtype` that does not go with it.

    Args:
        kind: The column's type.
        dtype: What packed numbers are; None for a list of numbers, which says so itself.
    """
    if _is_binary(kind):
        if dtype not in PACKED:
            raise ParameterError(
                f"dtype must say what a binary vector holds, one of {', '.join(PACKED)}, got {dtype!r}"
            )
        return
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    if inner is None or not (pa.types.is_integer(inner) or pa.types.is_floating(inner)):
        raise InputError(
            f"vector must be a column of binary or of lists of numbers, got {type_name(kind)}; cast it first"
        )
    if dtype is not None:
        raise ParameterError(f"dtype must be left out for lists of numbers, got {dtype!r}")


def matrix_of(column: pa.Array, width: int, dtype: str | None) -> NDArray[Any]:
    """The vectors of a column as rows.

    Args:
        column: Packed numbers, or lists.
        width: How many numbers each vector must have.
        dtype: What packed numbers are.
    """
    if column.null_count:
        raise InputError("vector must be there in every listed row, got a missing one; leave such rows out")
    if _is_binary(column.type):
        return _unpacked(column.cast(pa.large_binary()), width, np.dtype(PACKED[str(dtype)]))
    _check_lengths(pc.list_value_length(column), width, f"{width} numbers")
    inner = column.flatten()
    if inner.null_count:
        raise InputError("vector must hold a number in every place, got a missing one")
    matrix: NDArray[Any] = inner.to_numpy().reshape(len(column), width)
    return matrix


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _unpacked(column: pa.Array, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Packed numbers as they lie in memory, without a copy."""
    size = width * dtype.itemsize
    _check_lengths(pc.binary_length(column), size, f"{width} numbers of {dtype.itemsize} bytes")
    if len(column) == 0:
        return np.zeros((0, width), dtype=dtype.newbyteorder("="))
    _, starts, data = column.buffers()
    first = int(np.frombuffer(starts, dtype=np.int64)[column.offset])
    numbers = np.frombuffer(data, dtype=dtype, count=len(column) * width, offset=first)
    aligned = np.require(numbers.astype(dtype.newbyteorder("="), copy=False), requirements=["A"])
    return aligned.reshape(len(column), width)


def _check_lengths(lengths: pa.Array, expected: int, meaning: str) -> None:
    if not pc.all(pc.equal(lengths, expected), min_count=0).as_py():
        raise InputError(f"vector must have {meaning} in every listed row, got another length")
