"""`armslength card`: the release card of a sketch file or a protocol, for people and for machines."""

from pathlib import Path
from textwrap import indent
from typing import Any

import click

import armslength as al
from armslength.cli.options import NO_WORK_LIMIT, OVERWRITE, LocalPath, check_new_file, choice, work_limit
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
@choice("--format", "form", values=["text", "markdown", "json"])
@click.option("--output", "-o", type=LocalPath(dir_okay=False), help="Write it to this file.")
@OVERWRITE
@NO_WORK_LIMIT
def card(file: str, form: str, output: str | None, overwrite: bool) -> None:
    """Print the release card: who is protected, what can be learned at most, how, and what adds up.

    FILE is a sketch file, a folder of them, or a protocol (.json). No number on the card depends on the data.
    """
    check_new_file(output, overwrite=overwrite, read=[file])
    releases: tuple[tuple[al.Protocol, str], ...]
    if Path(file).suffix == ".json":
        releases, in_clear = ((al.Protocol.load(file, **work_limit()), UNKNOWN),), False
    else:
        sketches = al.load(file, **work_limit())
        releases, in_clear = sketches.releases, any(sketches.in_clear)
    document = release_card(releases, in_clear=in_clear, page=True)
    text = as_json(document) if form == "json" else _page(document, is_markdown=form == "markdown")
    if output is None:
        click.echo(text)
    else:
        with atomic_write(output) as target:
            target.write(f"{text}\n".encode())


def _page(document: dict[str, Any], *, is_markdown: bool) -> str:
    def title(text: str) -> str:
        return f"# {text}" if is_markdown else text.upper()

    parts = [title("Release card")]
    if document["in_clear"]:
        return "\n\n".join([*parts, document["words"]])
    releases = document["releases"]
    for number, release in enumerate(releases, 1):
        if len(releases) > 1:
            parts.append(title(f"Release {number} of {len(releases)}"))
        for heading, words in release["page"].items():
            text = (
                f"## {heading}\n\n{words}" if is_markdown else f"{heading}\n{indent(paragraph(words), '  ')}"
            )
            parts.append(text)
    return "\n\n".join(parts)
