"""`armslength card`: the release card of a sketch file or a protocol, for people and for machines."""

from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength.cli.options import NO_WORK_LIMIT, OVERWRITE, LocalPath, check_new_file, work_limit
from armslength.cli.output import as_json, paragraph
from armslength.files import atomic_write
from armslength.sketches.card import release_card
from armslength.sketches.noises import UNKNOWN


@click.command(
    epilog="""\b
Examples:
  armslength card sketches.parquet
  armslength card protocol.json                       before anything is released
  armslength card sketches.parquet --format json -o card.json
  armslength card sketches.parquet --format markdown -o card.md
"""
)
@click.argument("file", type=LocalPath(exists=True))
@click.option(
    "--format", "form", type=click.Choice(("text", "markdown", "json")), default="text", show_default=True
)
@click.option("--output", "-o", type=LocalPath(dir_okay=False), help="Write it to this file.")
@OVERWRITE
@NO_WORK_LIMIT
def card(file: str, form: str, output: str | None, overwrite: bool) -> None:
    """Print the release card: who is protected, what can be learned at most, how, and what adds up.

    FILE is a sketch file, a folder of them, or a protocol (.json). No number on the card depends on the data.
    """
    check_new_file(output, overwrite=overwrite, read=[file])
    if Path(file).suffix == ".json":
        card_document = release_card(
            [(al.Protocol.load(file, **work_limit()), UNKNOWN)], in_clear=False, page=True
        )
    else:
        sketches = al.load(file, **work_limit())
        card_document = release_card(sketches.releases, in_clear=any(sketches.in_clear), page=True)
    text = as_json(card_document) if form == "json" else _page(card_document, form)
    if output is None:
        click.echo(text)
    else:
        with atomic_write(output) as target:
            target.write(f"{text}\n".encode())


def _page(card_document: dict[str, Any], form: str) -> str:
    title = "Release card"
    lines = [f"# {title}" if form == "markdown" else title.upper()]
    if card_document["in_clear"]:
        return "\n\n".join([*lines, card_document["words"]])
    for number, release in enumerate(card_document["releases"], 1):
        if len(card_document["releases"]) > 1:
            named = f"Release {number} of {len(card_document['releases'])}"
            lines.append(f"# {named}" if form == "markdown" else named.upper())
        lines += [
            f"## {heading}\n\n{words}" if form == "markdown" else f"{heading}\n{_indented(words)}"
            for heading, words in release["page"].items()
        ]
    return "\n\n".join(lines)


def _indented(words: str) -> str:
    return "\n".join(f"  {line}" for line in paragraph(words).splitlines())
