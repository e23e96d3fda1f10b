"""Ball arithmetic (python-flint's `arb`): numbers with proved error bounds."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flint import arb, ctx

_lock = threading.RLock()  # of the working precision, which belongs to the whole process


def _renew_lock() -> None:
    """A child process gets a new lock: a fork may happen while another thread holds the old one."""
    global _lock  # noqa: PLW0603  # the one lock of the process
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Ball arithmetic at this many bits, for one thread of ours at a time.

    Other code in the process may set the precision meanwhile. That can make balls wider, never wrong.
    """
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def upper_float(ball: Any) -> float:
    """A float that is at least the ball's largest element."""
    bound = float(arb(ball).upper())
    while not arb(bound) >= ball:
        bound = bound * (1 + 2**-52) + 5e-324
    return bound
