"""What sets parties apart: `armslength explain`."""

from pathlib import Path

import click

import armslength as al
from armslength.cli.options import (
    ABOUT,
    FORMAT,
    LEVEL,
    LocalPath,
    chosen_parties,
    file_lines,
    open_sides,
    option,
)
from armslength.cli.output import echo_result
from armslength.sketches.sketches import unknown_label


@click.command(
    epilog="""\b
Examples:
  armslength explain study/ north harbor                     harbor against north
  armslength explain study/ north                            north against the typical party
  armslength explain study/ north harbor --items codes.txt
  armslength explain study/ --with north --with hill --against harbor --against bay      two groups

"more": in the second, more of every 100 people have an item of this group than in the first. With confidence --level no "more" or "fewer"
is wrong. The typical party is the average of the others, none weighing more than the median party.
"""
)
@click.argument("words", nargs=-1, required=True, metavar="FILE... [A [B]]")
@option("--with first", "A party of the first side; repeatable.", multiple=True, metavar="LABEL")
@option("--against second", "A party of the second side; repeatable.", multiple=True, metavar="LABEL")
@option(
    "--items",
    "Ask about these items instead of item groups: a file with one on each line.",
    type=file_lines,
    metavar="FILE",
)
@ABOUT
@LEVEL
@chosen_parties
@FORMAT
def explain(  # one argument for each option
    words: tuple[str, ...],
    first: tuple[str, ...],
    second: tuple[str, ...],
    items: list[str] | None,
    about: str | None,
    level: float,
    output_format: str,
) -> None:
    """Show what sets two parties apart.

    Name one party to compare it with the typical party, two to compare the second with the first, or groups of parties by --with and
    --against. Without --items it needs releases with item groups. It costs no privacy.
    """
    files, parties = _files_and_labels(words)
    a, b = [*parties[:1], *first], [*parties[1:], *second]
    for label in a:
        if label in b:
            raise click.UsageError(f"{label!r} is on both sides; leave it out of one")
    (rows,) = open_sides(files, at_least=2, labels=[*a, *b] if a and b else None)
    known = rows.labels
    if not a:
        shown = f"{', '.join(known[:8])}{', …' if len(known) > 8 else ''}"
        raise click.UsageError(f"name a party after the files, or with --with; there are {shown}")
    for label in (*a, *b):
        if label not in known:
            raise unknown_label(label, known)
    names = None if items is None else [item.strip() for item in items]
    answer = al.explain(rows, a, b or None, items=names, about=about, level=level)
    echo_result(answer, output_format, answer.note)


def _files_and_labels(words: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """What is there is a file or a folder; what follows is a label."""
    count = next((index for index, word in enumerate(words) if not Path(word).exists()), len(words))
    if not count:
        LocalPath(exists=True).convert(words[0], None, None)  # its message says what is missing
    if len(words) - count > 2:  # A and B
        raise click.UsageError(
            f"at most two parties may follow the files, got {len(words) - count}, the first of them {words[count]!r}; "
            "is it a file that is not there? More parties go with --with and --against"
        )
    return words[:count], list(words[count:])
