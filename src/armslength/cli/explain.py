"""`armslength explain`: in what two parties differ."""

from pathlib import Path
from typing import Any

import click
import numpy as np

import armslength as al
from armslength.answers.explain import check_margins
from armslength.answers.pairs import best_question
from armslength.cli.options import (
    FORMAT,
    LEVEL,
    NO_WORK_LIMIT,
    LocalPath,
    chosen_parties,
    load_all,
)
from armslength.cli.output import as_csv, as_json, echo_notes
from armslength.cli.reasons import parts_with_margins
from armslength.sketches.sketches import sum_rows

_REST = "the rest"


@click.command(
    epilog="""\b
Examples:
  armslength explain study/ north harbor                     harbor against north
  armslength explain study/ north                            north against the rest
  armslength explain a.parquet b.parquet north harbor --items codes.txt
  armslength explain study/ --with north --with hill --against harbor --against bay      two groups
  armslength explain study/ north harbor --format csv

"more": in the second, more of every 100 people were counted with an item of this group than in the first. With probability
--level all intervals hold together, so no "more" or "fewer" is wrong about what was counted. Of each person at most
margin_contribution item groups count: where people have more of them on one side, its shares come out too small, which can turn
"more" into "fewer". The last lines warn of it. Differences that chance explains do not count.
"""
)
@click.argument("words", nargs=-1, required=True, metavar="FILE... [A [B]]")
@click.option(
    "--with", "first", multiple=True, metavar="LABEL", help="A party of the first side; repeatable."
)
@click.option(
    "--against", "second", multiple=True, metavar="LABEL", help="A party of the second side; repeatable."
)
@click.option(
    "--items",
    type=LocalPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask about these items, too: a text file with an item on each line. This needs no margins.",
)
@click.option(
    "--counted",
    is_flag=True,
    help="Ask about the people counted, not about the populations that they are samples of.",
)
@LEVEL
@chosen_parties
@NO_WORK_LIMIT
@FORMAT
def explain(
    words: tuple[str, ...],
    first: tuple[str, ...],
    second: tuple[str, ...],
    items: str | None,
    *,
    counted: bool,
    level: float,
    form: str,
) -> None:
    """Say in what two parties differ: which item groups more or fewer people have an item of.

    Name one party to compare it with the rest, two to compare the second with the first, or groups of parties by --with and
    --against. It needs releases with margins (`armslength protocol new --margins`), and costs no privacy.
    """
    files, labels = _files_and_labels(words)
    listed = None if items is None else _lines(items)
    sketches = load_all(files, 2)
    names = _named(sketches, [*labels[:1], *first], [*labels[1:], *second])
    sides = [_rows(sketches, files, chosen) for _, chosen in names]
    if listed is None:
        check_margins(sides)
    a, b = (
        rows if len(rows) == 1 else sum_rows(rows, name) for (name, _), rows in zip(names, sides, strict=True)
    )
    has_groups = a.margins is not None and b.margins is not None
    if form == "csv" and has_groups and listed is not None:
        raise click.UsageError("--format csv is one table; leave out --items, or use --format json")
    by, can_ask = best_question(al.concat([a, b]))
    likeness = _likeness(a, b, level, beyond_chance=can_ask and not counted) if by == "shape" else None
    groups = al.explain(a, b, beyond_chance=not counted, level=level) if has_groups else None
    codes = None if listed is None else al.explain_items(a, b, listed, level=level, by=by)
    if form == "table":
        _print(a.labels[0], b.labels[0], likeness, groups, codes)
        return
    tables = {
        name: result.to_arrow().to_pylist()
        for name, result in (("item_groups", groups), ("items", codes))
        if result is not None
    }
    if form == "csv":
        click.echo(as_csv(next(iter(tables.values()))))
    else:
        numbers = None if likeness is None else dict(zip(("value", "lower", "upper"), likeness, strict=True))
        click.echo(as_json({"a": a.labels[0], "b": b.labels[0], "likeness": numbers, **tables}))
    echo_notes(*(result.note for result in (groups, codes) if result is not None))


def _files_and_labels(words: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """What is there is a file or a folder; what follows is a label."""
    count = next((place for place, word in enumerate(words) if not Path(word).exists()), len(words))
    if not count:
        LocalPath(exists=True).convert(words[0], None, None)  # its message says what is missing
    if len(words) - count > 2:  # A and B
        raise click.UsageError(
            f"at most two parties may follow the files, got {len(words) - count}, the first of them {words[count]!r}; "
            "is it a file that is not there? More parties go with --with and --against"
        )
    return words[:count], list(words[count:])


def _named(sketches: "al.Sketches", first: list[str], second: list[str]) -> list[tuple[str, list[str]]]:
    """The name and the labels of both sides. Without a second side the first is compared with the rest."""
    known = f"there are {', '.join(sketches.labels[:8])}{', …' if len(sketches) > 8 else ''}"
    if not first and second:
        raise click.UsageError(f"--against alone is one side; add --with: {known}")
    if not first:
        raise click.UsageError(f"name a party after the files, or with --with; {known}")
    both = next((label for label in first if label in second), None)
    if both is not None:
        raise click.UsageError(f"{both} is on both sides; leave it out of one")
    sketches[[*first, *second]]  # raises an error for a name that no row has
    if second:
        return [(_joined(first), first), (_joined(second), second)]
    rest = [label for label in sketches.labels if label not in set(first)]
    if not rest:
        raise click.UsageError("nobody is left to compare with; name fewer parties with --with")
    return [(_REST, rest), (_joined(first), first)]


def _joined(labels: list[str]) -> str:
    return " + ".join(labels).encode()[:200].decode(errors="ignore")


def _rows(sketches: "al.Sketches", files: tuple[str, ...], labels: list[str]) -> "al.Sketches":
    """The rows of these labels, with margins if they all have some: joined with files that have none, they have lost them."""
    return al.concat(parts_with_margins(sketches, files, labels))[labels]


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise click.UsageError(
            f"--items must be a text file with an item on each line, got {path!r}"
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _likeness(
    a: "al.Sketches", b: "al.Sketches", level: float, *, beyond_chance: bool
) -> tuple[float, float, float]:
    """(value, lower, upper) of the cosine of two mixes."""
    estimate = al.shape_cosines(a, b, beyond_chance=beyond_chance)
    lower, upper = (float(end[0, 0]) for end in estimate.interval(level))
    return float(estimate.value[0, 0]), lower, upper


def _print(
    a: str,
    b: str,
    likeness: tuple[float, float, float] | None,
    groups: "al.Explanation | None",
    codes: "al.ItemDifferences | None",
) -> None:
    if likeness is not None and not np.isnan(likeness[0]):
        value, lower, upper = likeness
        first, second = (b, a) if a == _REST else (a, b)
        click.echo(
            f"The mixes of {first} and {second} are {value:.2f} alike ({lower:.2f} to {upper:.2f}); 1 is the same mix.\n"
        )
    parts: list[Any] = [each for each in (groups, codes) if each is not None]
    click.echo("\n\n".join(map(str, parts)))
