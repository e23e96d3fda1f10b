"""The one place that meets Numba: how our hot loops are compiled.

Kernels release the GIL and are never parallel inside: after a fork, Numba's own threading layers kill
or abort the process. Threads are a pool over blocks (`threads.py`).
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
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import Listener, register
from numba.extending import intrinsic
from numpy.typing import NDArray

Integers = NDArray[np.signedinteger[Any]]  # of any width; kernels sum in int64
Function = TypeVar("Function", bound=Callable[..., Any])

# fastmath off and no contraction into fused operations: the error bounds of docs/noise.md are about
# IEEE operations exactly as they are written.
_compile = numba.njit(nogil=True, fastmath=False, error_model="numpy")


def kernel(function: Function) -> Function:
    """The function, compiled on its first call and cached on disk."""
    compiled = _compile(function)
    _cache_by_content(compiled)
    return cast("Function", compiled)


class _Note(Listener):
    """Tells whoever sits at a terminal, once, why the first call takes seconds."""

    told = False

    def on_start(self, event: Any) -> None:
        """A kernel is about to be compiled, and was not in the cache."""
        function = getattr(event.data.get("dispatcher"), "py_func", None)
        ours = str(getattr(function, "__module__", "")).startswith("armslength.")
        if ours and not self.told and sys.stderr is not None and sys.stderr.isatty():
            self.told = True
            sys.stderr.write("armslength: compiling for this machine, a few seconds, once …\n")

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

    Numba's cache asks for the time stamp of the one file that defines a kernel, but a kernel also holds code and
    constants of other files: with a stale cache the proofs would be about other code than what runs.
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
    """Saves a compiled kernel in a file that is named after what it is: sources and types.

    Numba numbers its files. Two processes that compile a kernel for different types at the same time take the same number,
    and the index of one then leads to the code of the other: for arrays of another type, or another layout, which nobody checks.
    """
    said = f"{index._source_stamp} {key!r}"  # noqa: SLF001  # as above
    name = index._data_name_pattern.replace("{number:d}", hashlib.sha256(said.encode()).hexdigest()[:16])  # noqa: SLF001  # as above
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
def _float_bits(_typing: Any, _value: Any) -> Any:
    """Numba intrinsic: the bits of a float."""
    signature = types.int64(types.float64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return signature, generate


@kernel
def float_bits(value: float) -> np.int64:
    """The bits of a float: sign, exponent, digits."""
    return _float_bits(value)  # type: ignore[call-arg]  # the first argument is Numba's


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
