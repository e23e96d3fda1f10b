"""Vector operations of the hot loops, written for LLVM.

Numba's own loops keep no row of sums in registers, because the arrays might overlap, and do not transpose in vectors. These
are a few lines of LLVM's portable vectors, which it turns into whatever the machine has; decision 11 has what they
save. None of them checks a bound: kernels call them with places that exist.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 16  # rows side by side in a tile of integers
TILE_ROWS, TILE_WIDTH = 6, 8  # of a tile of floats: its sums fill the registers of AVX-512, and those of AVX2
_WORD = ir.IntType(64)
_operation: Callable[[Any], Any] = (
    intrinsic  # whose type has the compiler's own argument, which callers do not give
)
_numba: Any = cgutils  # which has no types


@_operation
def sum_columns(
    _typing: Any, tile: Any, columns: Any, first: Any, middle: Any, last: Any, totals: Any, row: Any
) -> Any:
    """totals[row] += Σ tile[columns[first:middle]] − Σ tile[columns[middle:last]], lane by lane, modulo 2^64.

    Args:
        tile: m x 16, contiguous, of int32 or int64.
        columns: Positions in the tile, of int32.
        first: Where the positions to add begin.
        middle: Where they end, and those to subtract begin.
        last: Where those end.
        totals: k x 16, contiguous, of int64.
        row: Which of the totals.
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
        target = _place(context, builder, totals_type, arguments[5], (number, _WORD(0)))
        total = _numba.alloca_once_value(builder, _load(builder, target, _WORD, LANES))
        for start, stop, combine in (
            (bounds[0], bounds[1], builder.add),
            (bounds[1], bounds[2], builder.sub),
        ):
            with _numba.for_range_slice(builder, start, stop, _WORD(1)) as (position, _):
                column = builder.load(_place(context, builder, columns_type, arguments[1], (position,)))
                place = _place(
                    context, builder, tile_type, arguments[0], (builder.sext(column, _WORD), _WORD(0))
                )
                values = _load(builder, place, entry, LANES)
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
    """target[to_row+j, to_column+i] = source[row+i, column+j] for i, j < n: n = 16 for int32, 8 for int64.

    Args:
        source: A contiguous matrix of int32 or int64.
        row: The block's first row there.
        column: And its first column.
        target: Another one, of the same type.
        to_row: Its first row there.
        to_column: And its first column.
    """
    _check_layout(target)
    if source.layout == "F":
        raise TypingError("source must have rows that lie together")
    signature = types.void(source, row, column, target, to_row, to_column)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source_type, target_type = signature.args[0], signature.args[3]
        r, c, to_r, to_c = (
            context.cast(builder, arguments[i], signature.args[i], types.intp) for i in (1, 2, 4, 5)
        )
        entry = context.get_value_type(source_type.dtype)
        size = 512 // entry.width
        vectors = [
            _load(
                builder,
                _place(context, builder, source_type, arguments[0], (builder.add(r, _WORD(i)), c)),
                entry,
                size,
            )
            for i in range(size)
        ]
        half = 1
        while half < size:
            # Rows i and i+half exchange the quarters that lie off the diagonal of their 2·half square.
            upper = [t if not t & half else size + t - half for t in range(size)]
            lower = [t + half if not t & half else size + t for t in range(size)]
            kinds = ir.VectorType(ir.IntType(32), size)
            for i in range(size):
                if not i & half:
                    pair = vectors[i], vectors[i + half]
                    vectors[i] = builder.shuffle_vector(*pair, ir.Constant(kinds, upper))
                    vectors[i + half] = builder.shuffle_vector(*pair, ir.Constant(kinds, lower))
            half *= 2
        for j, vector in enumerate(vectors):
            place = _place(context, builder, target_type, arguments[3], (builder.add(to_r, _WORD(j)), to_c))
            _store(builder, vector, place)
        return context.get_dummy_value()

    return signature, generate


@_operation
def multiply_tile(_typing: Any, rows: Any, first: Any, panel: Any, tile: Any) -> Any:
    """tile[i, j] = Σ rows[first+i, n]·panel[n, j] for i < 6, j < 8, the products in any order and fused or not.

    Args:
        rows: A contiguous matrix of float64, k wide.
        first: The first of six of its rows.
        panel: k x 8, contiguous.
        tile: 6 x 8, contiguous.
    """
    _check_layout(rows, panel, tile)
    signature = types.void(rows, first, panel, tile)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows_type, first_type, panel_type, tile_type = signature.args
        first_row = context.cast(builder, arguments[1], first_type, types.intp)
        number = ir.DoubleType()
        vector = ir.VectorType(number, TILE_WIDTH)
        sums = [
            _numba.alloca_once_value(builder, ir.Constant(vector, [0.0] * TILE_WIDTH))
            for _ in range(TILE_ROWS)
        ]
        (length, _) = _numba.unpack_tuple(
            builder, context.make_array(panel_type)(context, builder, arguments[2]).shape
        )
        with _numba.for_range(builder, length) as loop:
            line = _load(
                builder,
                _place(context, builder, panel_type, arguments[2], (loop.index, _WORD(0))),
                number,
                TILE_WIDTH,
            )
            for i, total in enumerate(sums):
                row = builder.add(first_row, _WORD(i))
                entry = builder.load(_place(context, builder, rows_type, arguments[0], (row, loop.index)))
                factor = _everywhere(builder, entry, TILE_WIDTH)
                product = builder.fmul(factor, line, flags=("contract",))
                builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        for i, total in enumerate(sums):
            target = _place(context, builder, tile_type, arguments[3], (_WORD(i), _WORD(0)))
            _store(builder, builder.load(total), target)
        return context.get_dummy_value()

    return signature, generate


def _everywhere(builder: Any, entry: Any, count: int) -> Any:
    """A vector that has the entry in every lane."""
    nothing = ir.Constant(ir.VectorType(entry.type, count), ir.Undefined)
    alone = builder.insert_element(nothing, entry, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return builder.shuffle_vector(alone, nothing, zeros)


def _check_layout(*arrays: Any) -> None:
    """Refuses, when a kernel is compiled, arrays whose entries do not lie one behind the other."""
    if any(array.layout != "C" for array in arrays):
        raise TypingError("arrays must be contiguous, row by row")


def _place(context: Any, builder: Any, kind: Any, array: Any, indices: tuple[Any, ...]) -> Any:
    """A pointer to an entry of an array."""
    view = context.make_array(kind)(context, builder, array)
    return _numba.get_item_pointer(context, builder, kind, view, indices, wraparound=False, boundscheck=False)


def _load(builder: Any, place: Any, entry: Any, count: int) -> Any:
    """That many entries from a place on, aligned as entries are."""
    vector = builder.bitcast(place, ir.VectorType(entry, count).as_pointer())
    return builder.load(vector, align=_size(entry))


def _store(builder: Any, vector: Any, place: Any) -> None:
    """The vector's entries, to a place and those behind it."""
    target = builder.bitcast(place, vector.type.as_pointer())
    builder.store(vector, target, align=_size(vector.type.element))


def _size(entry: Any) -> int:
    """How many bytes an entry has."""
    return 8 if isinstance(entry, ir.DoubleType) else int(entry.width) // 8
