"""Ctrl-C, a request to end, and a closed terminal: the command takes away its temporary files, and ends with one line."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def endings_ignored() -> Iterator[None]:
    """Inside the block, no signal that would end the process does anything: for the few lines that save what cannot be had again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _numbers()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _numbers() -> list[int]:
    return [getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)]


@contextmanager
def endings_as_interrupts() -> Iterator[list[int]]:
    """Inside the block, a signal that would end the process at once raises KeyboardInterrupt instead.

    The value lists the signals that came. A signal that is ignored, as under nohup, stays ignored.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # which alone may have handlers
        yield came
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    replaced = {
        number: signal.getsignal(number) for number in _numbers() if signal.getsignal(number) in usual
    }
    for number in replaced:
        signal.signal(number, interrupt)
    try:
        yield came
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
