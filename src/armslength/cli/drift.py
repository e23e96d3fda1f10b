"""`armslength drift`: what changed between two releases of the same parties."""

from typing import TYPE_CHECKING, Any

import click

from armslength.cli.options import BY, LEVEL, METHOD, NO_WORK_LIMIT, LocalPath, load_all
from armslength.cli.output import FORMAT, echo_rows
from armslength.errors import counted
from armslength.results import Column, heading, line

if TYPE_CHECKING:
    from armslength.answers.drift import Drift

_FILE = LocalPath(exists=True)


@click.command(
    short_help="What changed between two releases of the same parties.",
    epilog="""\b
Examples:
  armslength drift march.parquet april.parquet
  armslength drift march.parquet april.parquet --by shape
  armslength drift march.parquet april.parquet --partial --format csv

Parties are matched by their labels. All intervals hold together with the probability of --level, so that every party that
is said to have changed truly did.
""",
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

    The second release cost its own ε; comparing the two costs nothing.
    """
    from armslength.answers.drift import drift as compare_by_label  # noqa: PLC0415  # --help must not wait for it

    found = compare_by_label(load_all((before,)), load_all((after,)), **known)
    if form == "table":
        click.echo(_table(found))
        return
    echo_rows(found.to_arrow().to_pylist(), form, _notes(found))


def _table(found: "Drift") -> str:
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
        f"{changed} of {counted(len(found.labels), 'party', 'parties')} surely changed; intervals hold together at {100 * found.level:.6g}%"
    )
    return "\n".join([*lines, *_notes(found)])


def _notes(found: "Drift") -> list[str]:
    missing = (("before", found.only_before), ("after", found.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    return [*only, *([found.note] if found.note else [])]
