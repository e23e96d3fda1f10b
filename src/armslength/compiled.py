"""The one place that meets Numba: how our hot loops are compiled.

Kernels release the GIL and are never parallel inside: after a fork, Numba's own threading layers kill
or abort the process. Threads are a pool over blocks (`threads.py`).
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

# fastmath off and no contraction into fused operations: the error bounds of docs/noise.md are about
# IEEE operations exactly as they are written.
_compile = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")


def kernel(function: Function) -> Function:
    """The function, compiled on its first call and cached on disk."""
    return cast("Function", _compile(function))


@intrinsic
def _mul_wide(_typing: Any, _a: Any, _b: Any) -> Any:
    """Numba intrinsic: the two words (high, low) of the 128-bit product of two words."""
    pair = types.UniTuple(types.uint64, 2)  # type: ignore[no-untyped-call]  # Numba is typed in part
    signature = pair(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        word = ir.IntType(64)
        left, right = (builder.zext(argument, wide) for argument in arguments)
        product = builder.mul(left, right)
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        low = builder.trunc(product, word)
        return context.make_tuple(builder, signature.return_type, (high, low))

    return signature, generate


@kernel
def mul_wide(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The two words (high, low) of the 128-bit product of two words."""
    return _mul_wide(a, b)  # type: ignore[call-arg]  # the first argument is Numba's


@intrinsic
def _leading_zeros(_typing: Any, _word: Any) -> Any:
    """Numba intrinsic: how many zero bits stand above the highest one bit."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return signature, generate


@kernel
def leading_zeros(word: np.uint64) -> int:
    """How many zero bits stand above the highest one bit of a word; 64 for zero."""
    return _leading_zeros(word)  # type: ignore[call-arg]  # the first argument is Numba's
