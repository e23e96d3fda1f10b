"""Every error that we raise on purpose as one line on standard error, and an exit code that scripts can read.

An error that nobody meant to raise shows its kind and its place: its message may quote the data.
"""

import errno
import io
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from armslength.errors import (
    ArmslengthError,
    BudgetError,
    FormatError,
    IncompatibleSketchesError,
    NotResolvableError,
)

# Ctrl-C, a request to end, a closed terminal and the like: the command takes away its temporary files, and ends with one line.


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


INTERNAL, BAD_INPUT, NOT_RESOLVABLE, BUDGET, INCOMPATIBLE, ELSEWHERE = 1, 2, 3, 4, 5, 6
_INTERRUPTED = 128  # plus the signal, as shells count
_BROKEN_PIPE = 13
_CODES: tuple[tuple[type[ArmslengthError], int], ...] = (
    (NotResolvableError, NOT_RESOLVABLE),
    (BudgetError, BUDGET),
    (FormatError, INCOMPATIBLE),
    (IncompatibleSketchesError, INCOMPATIBLE),
)

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def exit_code(error: ArmslengthError) -> int:
    """The exit code of an error of ours; 2, bad input, where it has none of its own."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), BAD_INPUT)


class CleanErrors(click.Group):
    """A group of commands whose errors, and interruptions, are one line; anything else is a bug, and shows where it happened (exit code 1)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        with endings_as_interrupts() as came:
            try:
                return super().invoke(ctx)
            except ArmslengthError as error:
                click.echo(f"armslength: {error}", err=True)
                ctx.exit(exit_code(error))
            except KeyboardInterrupt as interruption:
                click.echo(f"armslength: {str(interruption) or 'interrupted'}", err=True)
                ctx.exit(_INTERRUPTED + (came[0] if came else signal.SIGINT))
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise  # click's own
            except BrokenPipeError:
                # Whoever read our output has gone: an end as by the signal, and no error of ours.
                _silence()
                ctx.exit(_INTERRUPTED + _BROKEN_PIPE)
            except Exception as error:  # noqa: BLE001  # a full standard output, or a bug of ours or another package
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    # Our files have errors of their own: this is standard output, as a rule.
                    _silence()
                    click.echo(
                        f"armslength: what is written must have room, also standard output, got: {error.strerror}",
                        err=True,
                    )
                    ctx.exit(BAD_INPUT)
                click.echo(_internal(error), err=True)
                ctx.exit(INTERNAL)


def _silence() -> None:
    """Nobody may write to the standard output again, not even what is left in it at the end."""
    sys.stdout = io.StringIO()


def _internal(error: Exception) -> str:
    """Where a bug came to light: the lines of the programs, and no message, which may quote the data."""
    places = "".join(traceback.format_tb(error.__traceback__))
    return (
        f"{places}armslength: internal error ({type(error).__name__}); its message is left out, for it may quote the data; "
        "please report the lines above"
    )
