"""Ctrl-C, a request to end, a closed terminal and the like: the command takes away its temporary files, and ends with one line."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Every signal that ends a process unless it is caught, but for those that say that the process itself is broken. SIGKILL cannot be caught.
_ENDINGS = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"),
    *("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGPOLL", "SIGPWR", "SIGSTKFLT"),
)


@contextmanager
def endings_ignored() -> Iterator[None]:
    """Inside the block, no signal that would end the process does anything: for the few lines that save what cannot be had again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ending_signals() -> list[signal.Signals]:
    """The signals that end a process unless it catches them, as far as this system has them."""
    return [signal.Signals[name] for name in _ENDINGS if name in signal.Signals.__members__]


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
        number: signal.getsignal(number) for number in ending_signals() if signal.getsignal(number) in usual
    }
    for number in replaced:
        signal.signal(number, interrupt)
    try:
        yield came
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
