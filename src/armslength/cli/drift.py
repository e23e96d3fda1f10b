"""`armslength drift`: what changed between two releases of the same parties."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import BY, LEVEL, METHOD, NO_WORK_LIMIT, LocalPath, load_all
from armslength.cli.output import FORMAT, echo_rows
from armslength.errors import plural
from armslength.results import Column, heading, line

_FILE = LocalPath(exists=True)


@click.command(
    epilog="""\b
Examples:
  armslength drift march.parquet april.parquet
  armslength drift march.parquet april.parquet --by shape
  armslength drift march.parquet april.parquet --partial --format csv

Parties are matched by label. All intervals hold together with probability --level, so every party that is listed as
changed has changed.
"""
)
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option(
    "--partial", is_flag=True, help="Compare the parties that both files have, and list the others."
)
@LEVEL
@BY
@METHOD
@NO_WORK_LIMIT
@FORMAT
def drift(before: str, after: str, form: str, **known: Any) -> None:
    """How far each party moved from one release to the next, with intervals.

    The second release cost its own ε. Comparing the two costs nothing.
    """
    found = al.drift(load_all((before,)), load_all((after,)), **known)
    if form == "table":
        click.echo(_table(found))
        return
    echo_rows(found.to_arrow().to_pylist(), form, _notes(found))


def _table(found: "al.Drift") -> str:
    columns = [
        Column.of_labels("party", found.labels),
        *(Column.of_numbers(name) for name in ("moved by", "from", "to")),
        Column("", len("not resolved")),
    ]
    lines = [heading(columns)]
    for row in sorted(found.to_arrow().to_pylist(), key=lambda each: -each["value"]):
        state = "" if row["resolved"] else "not resolved"
        lines.append(line(columns, [row["label"], row["value"], row["lower"], row["upper"], state]))
    changed = int(found.resolved.sum())
    lines.append(
        f"{changed} of {plural(len(found.labels), 'party', 'parties')} surely changed; intervals hold together at {100 * found.level:.6g}%"
    )
    return "\n".join([*lines, *_notes(found)])


def _notes(found: "al.Drift") -> list[str]:
    missing = (("before", found.only_before), ("after", found.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    return [*only, *([found.note] if found.note else [])]
