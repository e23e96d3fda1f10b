"""Text, JSON and CSV for the terminal; text tables are in `armslength.results`."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click

from armslength.errors import plural, printable
from armslength.results import Result

TEXT_WIDTH = 100
# how text begins that a spreadsheet runs as a formula; some also read the full-width forms
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def paragraph(text: str) -> str:
    """Running text in lines of a width that reads well."""
    return "\n".join(textwrap.wrap(text, TEXT_WIDTH))


def indented_lines(parts: Mapping[str, Sequence[str]]) -> list[str]:
    """Parts of a text, each beside its name: the lines of each part, wrapped and indented alike."""
    width = max(map(len, parts)) + 4
    lines = []
    for name, texts in parts.items():
        for number, text in enumerate(texts):
            first = f"  {'' if number else name}".ljust(width)
            lines += textwrap.wrap(text, TEXT_WIDTH, initial_indent=first, subsequent_indent=" " * width)
    return lines


def at_most(count: int, lines: list[str], noun: str) -> list[str]:
    """The first lines, and how many there are beyond them."""
    more = len(lines) - count
    return [*lines[:count], f"… and {plural(more, noun)} more; --format json has all"] if more > 0 else lines


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads or types there."""
    return stream is not None and stream.isatty()


def as_json(value: Any) -> str:
    """The value as indented JSON; numbers that JSON does not have become null, and what a terminal would act on is escaped."""
    text = json.dumps(finite(value), indent=1, ensure_ascii=False)
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter).strip('"') for letter in text
    )


def echo_result(result: Result, output_format: str, *notes: str) -> None:
    """Prints a result in words, or its rows as "json" or "csv" with the notes beside them."""
    if output_format == "table":
        click.echo(str(result))
        return
    rows = result.to_arrow().to_pylist()
    click.echo(as_csv(rows) if output_format == "csv" else as_json(rows))
    echo_notes(*notes)


def echo_notes(*notes: str) -> None:
    """Prints what must be known to read the output to standard error."""
    for note in filter(None, notes):
        click.echo(f"armslength: {note}", err=True)


def as_csv(rows: Sequence[Mapping[str, Any]], fields: Sequence[str] = ()) -> str:
    """Rows as CSV, with these fields, or those of the first row."""
    text = io.StringIO()
    write_csv(rows, fields or list(rows[0] if rows else ()), text)
    return text.getvalue().rstrip("\n")


def write_csv(rows: Iterable[Mapping[str, Any]], fields: Sequence[str], file: TextIO) -> None:
    """Rows as CSV for a spreadsheet: text that it would run as a formula gets an apostrophe, and what a terminal would act on is escaped."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(fields)
    for row in rows:
        writer.writerow(map(_cell, map(row.__getitem__, fields)))


def _cell(value: Any) -> Any:
    """The value; text without anything that acts."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(_FORMULA) else printable(value)


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if hasattr(value, "tolist"):  # an array
        return finite(value.tolist())
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value
