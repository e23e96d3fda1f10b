"""`armslength alike`: are these two alike? Yes, no or undecided."""

from typing import Any

import click

from armslength.cli.options import BY, LEVEL, METHOD, load_all, sketch_files
from armslength.cli.output import FORMAT, as_csv, as_json


@click.command(
    short_help="Are these two alike? Yes, no or undecided.",
    epilog="""\b
Examples:
  armslength alike sketches.parquet --left north --right south --within 40
  armslength alike sketches.parquet --left north --right south --within 0.05 --by shape

"alike" is said only if the upper end is at most --within, "different" only if the lower end is above it. A wrong answer has
a probability of at most 1 − --level.
""",
)
@sketch_files
@click.option("--left", required=True, metavar="LABEL", help="One party.")
@click.option("--right", required=True, metavar="LABEL", help="The other party.")
@click.option(
    "--within", type=float, required=True, help="How far apart two parties may be that are called alike."
)
@LEVEL
@BY
@METHOD
@FORMAT
def alike(files: tuple[str, ...], left: str, right: str, form: str, **known: Any) -> None:
    """Whether two parties are at most so far apart: alike, different, or undecided, with its error rate."""
    from armslength.answers.alike import alike as decide  # noqa: PLC0415  # --help must not wait for it

    sketches = load_all(files)
    found = decide(sketches[left], sketches[right], **known)
    (row,) = found.to_arrow().to_pylist()
    click.echo(str(found) if form == "table" else as_csv([row]) if form == "csv" else as_json(row))
    if found.note and form != "table":
        click.echo(f"armslength: {found.note}", err=True)
