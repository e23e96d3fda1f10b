"""The one place that meets Numba: how our hot loops are compiled.

Kernels release the GIL and are never parallel inside: after a fork, Numba's own threading layers abort the process.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError
from numba.core.event import Listener, register
from numba.extending import intrinsic
from numpy.typing import NDArray

Integers = NDArray[np.signedinteger[Any]]  # of any width; kernels sum in int64
Words = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])
LANES = 16  # rows side by side in a tile of integers
_WORD = ir.IntType(64)
_operation: Callable[[Any], Any] = intrinsic  # its type has the compiler's argument, which callers omit
_numba: Any = cgutils  # which has no types

# No fastmath and no fused operations: the error bounds of docs/noise.md are about IEEE operations exactly as they are written.
_compile = numba.njit(nogil=True, fastmath=False, error_model="numpy")


def kernel(function: Function) -> Function:
    """The function, compiled on its first call and cached on disk."""
    compiled = _compile(function)
    _cache_by_content(compiled)
    return cast("Function", compiled)


class _Note(Listener):
    """Writes to the terminal, once, why the first call takes so long."""

    is_written = False

    def on_start(self, event: Any) -> None:
        """A kernel is about to be compiled, and was not in the cache."""
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        ours = str(getattr(function, "__module__", "")).startswith("armslength.")
        if ours and not self.is_written and sys.stderr is not None and sys.stderr.isatty():
            self.is_written = True
            sys.stderr.write("armslength: compiling for this machine, up to a minute, once …\n")

    def on_end(self, event: Any) -> None:
        """It was compiled."""


register("numba:compile", _Note())  # type: ignore[no-untyped-call]  # Numba is typed in part


@cache
def source_digest() -> str:
    """SHA-256 of every source file of the package."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_by_content(compiled: Any) -> None:
    """Caches a kernel on disk until any source of the package changes.

    Numba checks only the file that defines a kernel, but a kernel also has code and constants of other files: with a stale cache
    the proofs would be about other code than what runs.
    """
    try:
        compiled.enable_caching()
    except RuntimeError:
        return  # no folder that can be written to: compiled anew in every process
    index: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp") and hasattr(index, "_data_name_pattern"):
        index._source_stamp = source_digest()  # noqa: SLF001  # the only place where Numba can be told
        index.save = partial(_save_under_own_name, index)
    else:
        compiled._cache = NullCache()  # noqa: SLF001  # a Numba that works otherwise: no cache rather than a stale one


def _save_under_own_name(index: Any, key: Any, data: Any) -> None:
    """Saves a compiled kernel in a file that is named after its sources and types.

    Numba numbers its files. Two processes that compile a kernel for different types at the same time take the same number,
    and the index of one then leads to the code of the other.
    """
    content = f"{index._source_stamp} {key!r}"  # noqa: SLF001  # as above
    name = index._data_name_pattern.replace("{number:d}", hashlib.sha256(content.encode()).hexdigest()[:16])  # noqa: SLF001  # as above
    # On a full disk it is compiled anew in the next process; a release that was charged must not end here.
    with suppress(OSError):
        index._save_data(name, data)  # noqa: SLF001  # before the index leads there
        overloads = index._load_index()  # noqa: SLF001  # as above
        overloads[key] = name
        index._save_index(overloads)  # noqa: SLF001  # as above


# A fork waits until no other thread compiles: the child would inherit a lock that nobody releases.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


@_operation
def mul_wide(_typing: Any, _a: Any, _b: Any) -> Any:
    """The two words (high, low) of the 128-bit product of two words."""
    pair = types.UniTuple(types.uint64, 2)  # type: ignore[no-untyped-call]  # Numba is typed in part
    signature = pair(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD)
        low = builder.trunc(product, _WORD)
        return context.make_tuple(builder, signature.return_type, (high, low))

    return signature, generate


@_operation
def leading_zeros(_typing: Any, _word: Any) -> Any:
    """How many zero bits stand above the highest one bit of a word; 64 for zero."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return signature, generate


@_operation
def load_word(_typing: Any, data: Any, index: Any) -> Any:
    """The 8 bytes from an index on as a word, the first one lowest; checks no bounds."""
    _check_layout(data)
    signature = types.uint64(data, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        start = _pointer(context, builder, signature.args[0], arguments[0], (index,))
        word = builder.load(builder.bitcast(start, _WORD.as_pointer()), align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return signature, generate


# Numba's own loops keep no row of sums in registers and do not transpose in vectors; LLVM's portable vectors do (decision 11).
# These operations check no bounds.


@_operation
def sum_columns(
    _typing: Any, tile: Any, columns: Any, first: Any, middle: Any, last: Any, totals: Any, row: Any
) -> Any:
    """totals[row] += Σ tile[columns[first:middle]] − Σ tile[columns[middle:last]], lane by lane, modulo 2^64.

    The tile is m x 16 of int32 or int64, columns are int32, totals are k x 16 of int64.
    """
    _check_layout(tile, columns, totals)
    signature = types.void(tile, columns, first, middle, last, totals, row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile_type, columns_type, *index_types, totals_type, row_type = signature.args
        bounds = [
            context.cast(builder, bound, kind, types.intp)
            for bound, kind in zip(arguments[2:5], index_types, strict=True)
        ]
        number = context.cast(builder, arguments[6], row_type, types.intp)
        entry = context.get_value_type(tile_type.dtype)
        target = _pointer(context, builder, totals_type, arguments[5], (number, _WORD(0)))
        total = _numba.alloca_once_value(builder, _load(builder, target, _WORD, LANES))
        for start, stop, combine in ((*bounds[:2], builder.add), (*bounds[1:], builder.sub)):
            with _numba.for_range_slice(builder, start, stop, _WORD(1)) as (position, _):
                column = builder.load(_pointer(context, builder, columns_type, arguments[1], (position,)))
                indices = builder.sext(column, _WORD), _WORD(0)
                source = _pointer(context, builder, tile_type, arguments[0], indices)
                values = _load(builder, source, entry, LANES)
                if entry.width < 64:
                    values = builder.sext(values, ir.VectorType(_WORD, LANES))
                builder.store(combine(builder.load(total), values), total)
        _store(builder, builder.load(total), target)
        return context.get_dummy_value()

    return signature, generate


@_operation
def transpose_block(
    _typing: Any, source: Any, row: Any, column: Any, target: Any, to_row: Any, to_column: Any
) -> Any:
    """target[to_row+j, to_column+i] = source[row+i, column+j] for i, j < n: n = 16 for int32, 8 for int64."""
    _check_layout(target)
    if source.layout == "F":
        raise TypingError("source must have rows that lie together")
    signature = types.void(source, row, column, target, to_row, to_column)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source_type, target_type = signature.args[0], signature.args[3]
        kinds = signature.args
        r, c, to_r, to_c = (context.cast(builder, arguments[i], kinds[i], types.intp) for i in (1, 2, 4, 5))
        entry = context.get_value_type(source_type.dtype)
        size = 512 // entry.width
        starts = [(builder.add(r, _WORD(i)), c) for i in range(size)]
        pointers = [_pointer(context, builder, source_type, arguments[0], start) for start in starts]
        vectors = [_load(builder, pointer, entry, size) for pointer in pointers]
        half = 1
        while half < size:
            # Rows i and i+half exchange the quarters that lie off the diagonal of their 2·half square.
            upper = [t if not t & half else size + t - half for t in range(size)]
            lower = [t + half if not t & half else size + t for t in range(size)]
            mask = ir.VectorType(ir.IntType(32), size)
            for i in range(size):
                if not i & half:
                    pair = vectors[i], vectors[i + half]
                    vectors[i] = builder.shuffle_vector(*pair, ir.Constant(mask, upper))
                    vectors[i + half] = builder.shuffle_vector(*pair, ir.Constant(mask, lower))
            half *= 2
        for j, vector in enumerate(vectors):
            indices = builder.add(to_r, _WORD(j)), to_c
            _store(builder, vector, _pointer(context, builder, target_type, arguments[3], indices))
        return context.get_dummy_value()

    return signature, generate


def _check_layout(*arrays: Any) -> None:
    """Refuses, when a kernel is compiled, arrays whose entries do not lie one behind the other."""
    if any(array.layout != "C" for array in arrays):
        raise TypingError("arrays must be contiguous, row by row")


def _pointer(context: Any, builder: Any, kind: Any, array: Any, indices: tuple[Any, ...]) -> Any:
    """A pointer to an entry of an array."""
    view = context.make_array(kind)(context, builder, array)
    return _numba.get_item_pointer(context, builder, kind, view, indices, wraparound=False, boundscheck=False)


def _load(builder: Any, pointer: Any, entry: Any, count: int) -> Any:
    """That many entries from a pointer on, aligned as entries are."""
    vector = builder.bitcast(pointer, ir.VectorType(entry, count).as_pointer())
    return builder.load(vector, align=entry.width // 8)


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    """The vector's entries, to a pointer and what is behind it."""
    target = builder.bitcast(pointer, vector.type.as_pointer())
    builder.store(vector, target, align=vector.type.element.width // 8)
