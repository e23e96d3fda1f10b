"""Runs a call and gathers everything that it shows: errors as a traceback would, warnings, logs, both outputs."""

import logging
import traceback
import warnings
from dataclasses import dataclass
from io import StringIO

import armslength as al


@dataclass(frozen=True)
class Outcome:
    """What one call showed.

    Attributes:
        name: Which call on what.
        error: What it raised, or None.
        printed: All text that it showed.
    """

    name: str
    error: BaseException | None
    printed: str

    @property
    def is_ours(self):
        """Whether it worked, or was refused by an error of ours."""
        return self.error is None or isinstance(self.error, al.ArmslengthError)


def outcome(name, call):
    """The outcome of a call without arguments."""
    written, error = StringIO(), None
    handler = logging.StreamHandler(written)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                call()
            except BaseException as raised:  # noqa: BLE001  # a panic of Rust's is one too
                error = raised
    finally:
        logging.getLogger().removeHandler(handler)
    written.writelines(f"{warning.message}\n" for warning in warned)
    written.writelines(_shown_by_a_traceback(error))
    return Outcome(name, error, written.getvalue())


def _shown_by_a_traceback(error):
    """The messages of an error, of its cause and of its context, without the lines of the programs."""
    if error is None:
        return
    yield from traceback.format_exception_only(error)
    yield from _shown_by_a_traceback(error.__cause__)
    # a traceback does not show every context, but tools that collect errors send it along
    yield from _shown_by_a_traceback(error.__context__)
