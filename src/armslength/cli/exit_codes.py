"""Errors and signals become one line on standard error and an exit code.

An internal error shows its type and its place, never its message: that may quote data.
"""

import errno
import io
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from armslength.errors import (
    NO_MEMORY,
    ArmslengthError,
    BudgetError,
    FormatError,
    IncompatibleSketchesError,
    NotResolvableError,
)

# Signals that end a process unless it catches them, without those that report a fault of the process. SIGKILL cannot be caught.
_ENDINGS = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"),
    *("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGPOLL", "SIGPWR", "SIGSTKFLT"),
)


def ending_signals() -> list[signal.Signals]:
    """The signals that end a process unless it catches them, as far as this system has them."""
    return [signal.Signals[name] for name in _ENDINGS if name in signal.Signals.__members__]


@contextmanager
def endings_ignored() -> Iterator[None]:
    """Ignore these signals inside the block: for the few lines that save a release, which cannot be made again."""
    with _handled(ending_signals(), signal.SIG_IGN):
        yield


@contextmanager
def endings_as_interrupts() -> Iterator[list[int]]:
    """Inside the block, a signal that would end the process at once raises KeyboardInterrupt instead.

    Yields the list of signals received. A signal that is ignored, as under nohup, stays ignored.
    """
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        raise KeyboardInterrupt

    default_handlers = (signal.SIG_DFL, signal.default_int_handler)
    numbers = [number for number in ending_signals() if signal.getsignal(number) in default_handlers]
    with _handled(numbers, interrupt):
        yield received


@contextmanager
def _handled(numbers: list[signal.Signals], handler: Any) -> Iterator[None]:
    """Set this handler inside the block, in the main thread, which alone may have handlers."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers} if is_main else {}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


INTERNAL, BAD_INPUT, NOT_RESOLVABLE, BUDGET, INCOMPATIBLE, ELSEWHERE, NEEDS_A_LOOK = range(1, 8)
_INTERRUPTED = 128  # plus the signal, as shells count
_BROKEN_PIPE = 13
_CODES: dict[type[ArmslengthError], int] = {
    NotResolvableError: NOT_RESOLVABLE,
    BudgetError: BUDGET,
    FormatError: INCOMPATIBLE,
    IncompatibleSketchesError: INCOMPATIBLE,
}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def exit_code(error: ArmslengthError) -> int:
    """The exit code of an error of ours; 2, bad input, where it has none of its own."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), BAD_INPUT)


def _options_of(command: click.Command) -> dict[str, str]:
    """What each argument of the library is called on the command line."""
    if isinstance(command, click.Group):
        return {name: text for part in command.commands.values() for name, text in _options_of(part).items()}
    options = (param for param in command.params if isinstance(param, click.Option))
    return {str(option.name): max(option.opts, key=len) for option in options}


class CleanErrors(click.Group):
    """A group of commands whose errors, and interruptions, are one line; anything else is a bug, and shows where it happened (exit code 1)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with endings_as_interrupts() as received, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This is a weak promise")  # commands say it in their own lines
            try:
                return super().invoke(ctx)
            except ArmslengthError as error:
                command = self.get_command(ctx, ctx.invoked_subcommand or "")
                options = {"create": "--new-ledger", **(_options_of(command) if command else {})}
                click.echo(f"armslength: {error.message(options)}", err=True)
                ctx.exit(exit_code(error))
            except KeyboardInterrupt as interruption:
                click.echo(f"armslength: {str(interruption) or 'interrupted'}", err=True)
                ctx.exit(_INTERRUPTED + (received[0] if received else signal.SIGINT))
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise  # click's own
            except BrokenPipeError:
                # The reader of our output is gone: end as by the signal.
                _silence()
                ctx.exit(_INTERRUPTED + _BROKEN_PIPE)
            except MemoryError:  # whatever its words are
                click.echo(f"armslength: {NO_MEMORY}", err=True)
                ctx.exit(BAD_INPUT)
            except Exception as error:  # noqa: BLE001  # a full standard output, or a bug of ours or another package
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    # Our own files raise our own errors: this is standard output, as a rule.
                    _silence()
                    click.echo(f"armslength: cannot write the output: {error.strerror}", err=True)
                    ctx.exit(BAD_INPUT)
                places = "".join(traceback.format_tb(error.__traceback__))
                click.echo(
                    f"{places}armslength: internal error ({type(error).__name__}); its message is left out because it may "
                    "quote data; please report the lines above",
                    err=True,
                )
                ctx.exit(INTERNAL)


def _silence() -> None:
    """Discard what is still in the buffer of the standard output."""
    sys.stdout = io.StringIO()
