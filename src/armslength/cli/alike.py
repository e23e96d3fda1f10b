"""`armslength alike`: are these two alike? Yes, no or undecided."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import answer_options, load_all, party_files
from armslength.cli.output import as_csv, as_json, echo_notes


@click.command(
    epilog="""\b
Examples:
  armslength alike sketches.parquet --left north --right south --within 40
  armslength alike sketches.parquet --left north --right south --within 0.05 --by shape

The answer is "alike" if the upper end of the interval is at most --within, and "different" if the lower end is above it.
Otherwise it is "undecided". A wrong answer has probability at most 1 − --level.
"""
)
@party_files
@click.option("--left", required=True, metavar="LABEL", help="One party.")
@click.option("--right", required=True, metavar="LABEL", help="The other party.")
@click.option("--within", type=float, required=True, help="The largest distance that counts as alike.")
@answer_options
def alike(files: tuple[str, ...], left: str, right: str, form: str, **known: Any) -> None:
    """Decide whether two parties are alike, different, or undecided, with a known error rate."""
    sketches = load_all(files)
    answer = al.alike(sketches[left], sketches[right], **known)
    (row,) = answer.to_arrow().to_pylist()
    click.echo(str(answer) if form == "table" else as_csv([row]) if form == "csv" else as_json(row))
    if form != "table":
        echo_notes(answer.note)
