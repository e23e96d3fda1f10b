"""In what parties differ: `armslength explain`, and lines below the answers of other commands."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

import armslength as al
from armslength.answers.explain import check_margins, explainable
from armslength.answers.pairs import best_question
from armslength.cli.options import (
    FORMAT,
    LEVEL,
    NO_WORK_LIMIT,
    LocalPath,
    chosen_parties,
    file_lines,
    flag,
    open_sides,
    option,
)
from armslength.cli.output import as_csv, as_json, echo_notes
from armslength.sketches.sketches import sum_rows, unknown_label


@click.command(
    epilog="""\b
Examples:
  armslength explain study/ north harbor                     harbor against north
  armslength explain study/ north                            north against the rest
  armslength explain a.parquet b.parquet north harbor --items codes.txt
  armslength explain study/ --with north --with hill --against harbor --against bay      two groups

"more": in the second, more of every 100 people were counted with an item of this group than in the first. With probability
--level all intervals hold together, so no "more" or "fewer" is wrong about what was counted. Of each person at most
margin_contribution item groups count: where people have more of them on one side, its shares come out too small, which can turn
"more" into "fewer". The last lines warn of it. Differences that chance explains do not count, unless --counted asks about the people counted.
"""
)
@click.argument("words", nargs=-1, required=True, metavar="FILE... [A [B]]")
@option("--with first", "A party of the first side; repeatable.", multiple=True, metavar="LABEL")
@option("--against second", "A party of the second side; repeatable.", multiple=True, metavar="LABEL")
@option(
    "--items",
    "Ask about these items, too: a file with one on each line. Needs no margins.",
    type=file_lines,
    metavar="FILE",
)
@flag("--counted", "Ask about the people counted, not about the populations that they are samples of.")
@LEVEL
@chosen_parties
@NO_WORK_LIMIT
@FORMAT
def explain(
    words: tuple[str, ...],
    first: tuple[str, ...],
    second: tuple[str, ...],
    items: list[str] | None,
    *,
    counted: bool,
    level: float,
    output_format: str,
) -> None:
    """Say in what two parties differ: which item groups more or fewer people have an item of.

    Name one party to compare it with the rest, two to compare the second with the first, or groups of parties by --with and
    --against. It needs releases with margins (`armslength protocol new --margins`), and costs no privacy.
    """
    files, parties = _files_and_labels(words)
    first, second = (*parties[:1], *first), (*parties[1:], *second)
    (rows,) = open_sides(files, at_least=2, labels=[*first, *second] if first and second else None)
    names = _sides(rows, list(first), list(second))
    sides = [rows[labels] for _, labels in names]
    if items is None:
        if not second:  # nobody named the others
            sides[0] = _like(sides[1], sides[0])
        check_margins(sides)
    a, b = (
        rows if len(rows) == 1 else sum_rows(rows, name) for (name, _), rows in zip(names, sides, strict=True)
    )
    has_groups = a.margins is not None and b.margins is not None
    if output_format == "csv" and has_groups and items is not None:
        raise click.UsageError("--format csv is one table; leave out --items, or use --format json")
    by, can_ask = best_question(al.concat([a, b]))
    likeness = None
    if by == "shape":
        cosine = al.shape_cosines(a, b, beyond_chance=can_ask and not counted)
        likeness = cosine.to_arrow(level).select(["value", "lower", "upper"]).to_pylist()[0]
    answers: dict[str, al.Explanation | al.ItemDifferences] = {}
    if has_groups:
        answers["item_groups"] = al.explain(a, b, beyond_chance=not counted, level=level)
    if items is not None:
        answers["items"] = al.explain_items(a, b, [item.strip() for item in items], level=level, by=by)
    if output_format == "table":
        if likeness is not None and not math.isnan(likeness["value"]):
            click.echo(
                f"The mixes of {a.labels[0]} and {b.labels[0]} are {likeness['value']:.2f} alike "
                f"({likeness['lower']:.2f} to {likeness['upper']:.2f}); 1 is the same mix.\n"
            )
        click.echo("\n\n".join(map(str, answers.values())))
        return
    tables = {name: answer.to_arrow().to_pylist() for name, answer in answers.items()}
    if output_format == "csv":
        click.echo(as_csv(next(iter(tables.values()))))
    else:
        click.echo(as_json({"a": a.labels[0], "b": b.labels[0], "likeness": likeness, **tables}))
    echo_notes(*(answer.note for answer in answers.values()))


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


def _like(rows: "al.Sketches", others: "al.Sketches") -> "al.Sketches":
    """Those of the others whose margins count the same as these rows; the rest is named. All of them if none does."""
    together = al.concat([rows, others])
    counts = explainable(together)[len(rows) :]
    if counts.all() or not counts.any():
        return others
    names = [label for label, is_like in zip(others.labels, counts, strict=True) if not is_like]
    echo_notes(f"the rest is without {', '.join(names)}: other margins, or none")
    return together.rows((np.flatnonzero(counts) + len(rows)).tolist())


def _sides(rows: "al.Collection", first: list[str], second: list[str]) -> list[tuple[str, list[str]]]:
    """The name and the labels of both sides. Without a second side the first is compared with the rest."""
    known = list(rows.each_label())
    parties = f"there are {', '.join(known[:8])}{', …' if len(known) > 8 else ''}"
    if not first and second:
        raise click.UsageError(f"--against alone is one side; add --with: {parties}")
    if not first:
        raise click.UsageError(f"name a party after the files, or with --with; {parties}")
    both = next((label for label in first if label in second), None)
    if both is not None:
        raise click.UsageError(f"{both} is on both sides; leave it out of one")
    for label in (*first, *second):
        if label not in known:
            raise unknown_label(label, known)
    if second:
        return [(_joined(first), first), (_joined(second), second)]
    others = [label for label in known if label not in set(first)]
    if not others:
        raise click.UsageError("nobody is left to compare with; name fewer parties with --with")
    return [("the rest", others), (_joined(first), first)]


def _joined(labels: list[str]) -> str:
    return " + ".join(labels).encode()[:200].decode(errors="ignore")


def echo_against_others(
    sketches: "al.Sketches | al.Collection",
    files: Sequence[str],
    groups: Sequence[Sequence[str]],
    level: float,
) -> None:
    """For each group of labels, in what it differs from all others; the level is for all of the groups together."""
    if not groups:
        return
    rows = sketches if isinstance(sketches, al.Sketches) else sketches.to_sketches()
    rows = rows[explainable(rows)]
    lines = []
    for group in groups:
        members = [label for label in rows.labels if label in set(group)]
        others = [label for label in rows.labels if label not in set(group)]
        if not members or not others:
            continue
        try:
            answer = al.explain(rows[others], rows[members], level=1 - (1 - level) / len(groups))
            reasons = ", ".join(answer.reasons()) or "no difference is sure"
        except al.NotResolvableError:
            reasons = "too few people to say"
        except al.ArmslengthError:  # some rows have a release in common, or are no sums of releases
            continue
        if len(group) == 1:
            lines.append(f"{group[0]}: {reasons}: armslength explain {shlex.join((*files, *group))}")
        else:
            lines.append(f"{group[0]} and {len(group) - 1} more: {reasons}")
    if lines:
        click.echo("\n".join(["", "In what they differ from all others:", *lines]))
