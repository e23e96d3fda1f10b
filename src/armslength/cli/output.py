"""Tables for people, line by line: columns of a known width, labels shortened in the middle, numbers to six digits."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

LONGEST_LABEL = 28
TEXT_WIDTH = 100
NUMBER = 11  # characters of a number with six digits and an exponent


@dataclass(frozen=True)
class Column:
    """A column: its heading, how wide it is, and whether it holds numbers, which stand to the right."""

    heading: str
    width: int
    is_number: bool = False

    @classmethod
    def of_labels(cls, heading: str, labels: Iterable[str]) -> "Column":
        """A column as wide as its longest label, up to a limit."""
        longest = max((len(label) for label in labels), default=0)
        return cls(heading, max(len(heading), min(longest, LONGEST_LABEL)))

    @classmethod
    def of_numbers(cls, heading: str) -> "Column":
        """A column of numbers."""
        return cls(heading, max(len(heading), NUMBER), is_number=True)


def line(columns: Sequence[Column], cells: Sequence[str | float]) -> str:
    """One line of a table; what is left over at its end is not padded."""
    texts = [_cell(column, cell) for column, cell in zip(columns, cells, strict=True)]
    return "  ".join(texts).rstrip()


def heading(columns: Sequence[Column]) -> str:
    """The first line of a table."""
    return line(columns, [column.heading for column in columns])


def shortened(label: str, width: int) -> str:
    """The label, with an ellipsis in its middle if it is too long."""
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return f"{label[: width - 1 - end]}…{label[len(label) - end :]}"


def paragraph(text: str) -> str:
    """Running text in lines of a width that reads well."""
    return "\n".join(textwrap.wrap(text, TEXT_WIDTH))


def spelled(value: float) -> str:
    """A number to six digits."""
    return "no limit" if value == math.inf else f"{value:.6g}"


def _cell(column: Column, cell: str | float) -> str:
    text = cell if isinstance(cell, str) else spelled(cell)
    return text.rjust(column.width) if column.is_number else shortened(text, column.width).ljust(column.width)


# Listings for people and for scripts: JSON without infinities, CSV with a header.


CSV_HELP = "csv has ' before text that begins with = + - @: a spreadsheet would run it as a formula."
FORMATS = ("table", "json", "csv")
FORMAT = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help=CSV_HELP
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how text begins that a spreadsheet runs as a formula


def as_json(value: Any) -> str:
    """The value as indented JSON; numbers that JSON does not have become null, and what a terminal would act on is escaped."""
    text = json.dumps(finite(value), indent=1, ensure_ascii=False)
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each).strip('"') for each in text
    )


def echo_rows(rows: Sequence[Mapping[str, Any]], form: str, notes: Sequence[str] = ()) -> None:
    """Prints rows as "json" or "csv"; what must be known to read them goes to standard error."""
    click.echo(as_csv(rows) if form == "csv" else as_json(rows))
    for note in filter(None, notes):
        click.echo(f"armslength: {note}", err=True)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same fields as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(without_formulas, rows))
    return text.getvalue().rstrip("\n")


def without_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row for a CSV file that a spreadsheet opens: an apostrophe goes before text that it would run as a formula."""
    return {
        name: f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
        for name, cell in row.items()
    }


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value
