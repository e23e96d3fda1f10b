"""Argument checks: one bad value of one argument, written so that NaN fails."""

import operator
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from armslength.errors import ParameterError
from armslength.spelling import MOST_MARKS, has_too_many_marks

LONGEST_LABEL = 1024  # bytes
_LONGEST_LINE = 1000
SHOWABLE = f"printable, 1 to {LONGEST_LABEL} bytes each, with at most {MOST_MARKS} combining marks in a row"
_ADDRESS = re.compile(r"(s3[an]?|gcs|gs|az|abfss?|wasbs?|hdfs|dbfs|https?|s?ftp|file)://", re.IGNORECASE)


def integer(name: str, value: Any, *, at_least: int, at_most: int) -> int:
    """The value as an int, if it is an integer in the range."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not at_least <= number <= at_most:
        rule = f"{name} must be an integer from {at_least} to {at_most}"
        raise ParameterError(f"{rule}, got {short_repr(value if number is None else number)}", name)
    return number


def number(name: str, value: Any, *, above: float, at_most: float) -> float:
    """The value as a float, if it is a number in the range."""
    plain = plain_number(value)
    if plain is None or not above < plain <= at_most:
        rule = f"{name} must be a number above {above:g} and at most {at_most:g}"
        raise ParameterError(f"{rule}, got {short_repr(value)}", name)
    return float(plain)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        quoted = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} must be one of {quoted}, got {short_repr(value)}", name)
    return str(value)


def one_line(name: str, value: Any) -> str:
    """The value, if it is one line of text."""
    if not isinstance(value, str) or len(value) > _LONGEST_LINE or not value.isprintable():
        rule = f"{name} must be one line of at most {_LONGEST_LINE} characters"
        raise ParameterError(f"{rule}, got {short_repr(value)}", name)
    if has_too_many_marks(value):
        raise ParameterError(f"{name} must have at most {MOST_MARKS} combining marks in a row", name)
    return value


def is_showable(text: str, longest: int = LONGEST_LABEL) -> bool:
    """Whether a text from elsewhere can be shown: 1 to `longest` bytes, printable, at most 30 combining marks in a row.

    No control character reaches a terminal, no line break forges a line, and nothing turns the direction of the text around it.
    """
    if not 1 <= len(text) <= longest or not text.isprintable():
        return False
    return len(text.encode()) <= longest and not has_too_many_marks(text)


def checked_labels(labels: Any, count: int) -> list[str] | None:
    """One label for each row, if that is what they are; None for the rows' numbers."""
    if labels is None:
        return None
    names = [labels] if isinstance(labels, str) else list(labels) if isinstance(labels, Sequence) else None
    if names is None or not all(isinstance(label, str) for label in names):
        raise ParameterError(f"labels must be a list of strings, got {short_repr(labels)}", "labels")
    if len(names) != count:
        raise ParameterError(f"labels must name {count} rows, got {len(names)}", "labels")
    if not all(map(is_showable, names)):
        raise ParameterError(f"labels must be {SHOWABLE}", "labels")
    if len(set(names)) != len(names):
        raise ParameterError("labels must differ from each other", "labels")
    return names


def plain_number(value: Any) -> int | float | None:
    """A number of Python or NumPy as the same plain int or float; None for anything else."""
    if isinstance(value, (bool, np.timedelta64)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.float32, np.float16)):
        return float(value)
    return None


def short_repr(value: Any) -> str:
    """The value of a public argument for a message: short, on one line."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = ""
    if not text or len(text) > 60 or not text.isprintable():
        return f"a {type(value).__name__}"
    return text


def type_name(kind: Any) -> str:
    """A type of NumPy, Arrow or an engine for a message: its first word alone, for the others can come from the data."""
    if isinstance(kind, np.dtype):
        return kind.type.__name__.rstrip("_")
    return re.split(r"[<(\[{]", str(kind), maxsplit=1)[0]


def check_local(path: str | os.PathLike[str]) -> None:
    """Refuses addresses of other machines."""
    address = _ADDRESS.match(os.fspath(path)) if isinstance(os.fspath(path), str) else None
    if address is not None:
        raise ParameterError(
            f"files must be on this machine, got an address that begins with {address[0].lower()}; "
            "copy the file here first, and give its path"
        )
