"""Text, JSON and CSV for the terminal; text tables are in `armslength.results`."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

TEXT_WIDTH = 100
CSV_HELP = "csv has ' before text that begins with = + - @: a spreadsheet would run it as a formula."
FORMATS = ("table", "json", "csv")
FORMAT = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help=CSV_HELP
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how text begins that a spreadsheet runs as a formula


def paragraph(text: str) -> str:
    """Running text in lines of a width that reads well."""
    return "\n".join(textwrap.wrap(text, TEXT_WIDTH))


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
