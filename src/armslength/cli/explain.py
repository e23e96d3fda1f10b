"""What sets parties apart: `armslength explain`, and lines below the answers of other commands."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import armslength as al
from armslength.answers.explain import (
    TYPICAL_NAME,
    UNEXPLAINED,
    Explanation,
    Side,
    check_margins,
    explain_sides,
    explain_typical,
    explainable,
    typical_of,
)
from armslength.answers.pairs import best_question
from armslength.cli.options import (
    FORMAT,
    LEVEL,
    LocalPath,
    chosen_parties,
    file_lines,
    flag,
    open_sides,
    option,
)
from armslength.cli.output import as_csv, as_json, echo_notes
from armslength.estimates.typical import large_enough
from armslength.results import similarity_text
from armslength.sketches.sketches import unknown_label

_MOST_NAMED = 4  # parties of a group


@click.command(
    epilog="""\b
Examples:
  armslength explain study/ north harbor                     harbor against north
  armslength explain study/ north                            north against the typical party
  armslength explain a.parquet b.parquet north harbor --items codes.txt
  armslength explain study/ --with north --with hill --against harbor --against bay      two groups

"more": in the second, more of every 100 people have an item of this group than in the first. With probability --level all intervals
hold together, so that no "more" or "fewer" is wrong. People with more item groups than margin_contribution count in part in each: the
last lines say by how much shares can be too small, and the intervals allow for it. Differences that chance explains do not count, unless
--counted asks about the people counted. The typical party is the average of the others, none weighing more than the median party.
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
    """Show what sets two parties apart: the item groups of which more or fewer people have an item.

    Name one party to compare it with the typical party, two to compare the second with the first, or groups of parties by --with and
    --against. It needs releases with item groups (`armslength protocol new --item-groups`), and costs no privacy.
    """
    files, parties = _files_and_labels(words)
    first, second = (*parties[:1], *first), (*parties[1:], *second)
    (rows,) = open_sides(files, at_least=2, labels=[*first, *second] if first and second else None)
    names = _sides(rows, list(first), list(second))
    sides = [Side(rows[labels], name) for name, labels in names]
    together, members = rows, list[int]()
    if not second:  # nobody named the others
        together, members = _with_others(sides[1].rows, sides[0].rows)
        sides[0] = typical_of(together, members)
    if items is None:
        check_margins([side.rows for side in sides])
    a, b = (side.rows if len(side.rows) == 1 and second else side.row for side in sides)
    has_groups = a.margins is not None and b.margins is not None
    if output_format == "csv" and has_groups and items is not None:
        raise click.UsageError("--format csv is one table; leave out --items, or use --format json")
    by, can_ask = best_question(al.concat([a, b]) if second else together)
    likeness = None
    if second and by == "shape":
        cosine = al.shape_cosines(a, b, beyond_chance=can_ask and not counted)
        likeness = cosine.to_arrow(level).select(["value", "lower", "upper"]).to_pylist()[0]
    answers: dict[str, al.Explanation | al.ItemDifferences] = {}
    if has_groups and second:
        answers["item_groups"] = al.explain(a, b, beyond_chance=not counted, level=level)
    elif has_groups:
        answers["item_groups"] = explain_typical(together, members, beyond_chance=not counted, level=level)
    if items is not None:
        names_of_items = [item.strip() for item in items]
        question: dict[str, Any] = {"by": by, "beyond_chance": can_ask and not counted}
        answers["items"] = al.explain_items(a, b, names_of_items, level=level, **question)
    _echo(answers, (a, b), likeness, output_format)


def _echo(
    answers: "dict[str, al.Explanation | al.ItemDifferences]",
    sides: "tuple[al.Sketches, al.Sketches]",
    likeness: dict[str, float] | None,
    output_format: str,
) -> None:
    """Prints all answers in this format."""
    a, b = (side.labels[0] for side in sides)
    if output_format == "table":
        if likeness is not None and not math.isnan(likeness["value"]):
            similar = similarity_text(**likeness)
            click.echo(f"Similarity of {a} and {b}: {similar}; 1 is the same mix.\n")
        click.echo("\n\n".join(map(str, answers.values())))
        return
    tables = {name: answer.to_arrow().to_pylist() for name, answer in answers.items()}
    if output_format == "csv":
        click.echo(as_csv(next(iter(tables.values()))))
    else:
        named = answers.get("item_groups") or answers["items"]
        click.echo(as_json({"a": named.labels[0], "b": named.labels[1], "likeness": likeness, **tables}))
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


def _with_others(rows: "al.Sketches", others: "al.Sketches") -> "tuple[al.Sketches, list[int]]":
    """The others that the typical party can be made of, with these rows after them, and the numbers of these rows; the rest is named."""
    together = al.concat([others, rows])
    is_like = explainable(together)[: len(others)]
    if is_like.any():
        _echo_left_out(others[~is_like], "other margins, or none")
        others = others[is_like]
    together = al.concat([others, rows])
    by, can_ask = best_question(together)
    is_large = np.ones(len(together), dtype=np.bool_)
    if by == "shape":
        is_large = large_enough(together, beyond_chance=can_ask)
    is_large = is_large[: len(others)]
    if is_large.any():
        _echo_left_out(others[~is_large], "too few people")
        others = others[is_large]
    return al.concat([others, rows]), list(range(len(others), len(others) + len(rows)))


def _echo_left_out(rows: "al.Sketches", reason: str) -> None:
    if len(rows):
        echo_notes(f"{TYPICAL_NAME} is without {', '.join(rows.labels)}: {reason}")


def _sides(rows: "al.Sketches", first: list[str], second: list[str]) -> list[tuple[str, list[str]]]:
    """The name and the labels of both sides. Without a second side the first is compared with the typical party."""
    known = rows.labels
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
    return [(TYPICAL_NAME, others), (_joined(first), first)]


def _joined(labels: list[str]) -> str:
    return " + ".join(labels).encode()[:200].decode(errors="ignore")


def echo_against_typical(
    sketches: "al.Sketches",
    files: Sequence[str],
    groups: Sequence[Sequence[str]],
    level: float,
) -> None:
    """For each group of labels, what sets it apart from the typical party; the level is for all of the groups together."""
    rows = sketches[explainable(sketches)]
    by, beyond_chance = best_question(rows) if len(rows) > 1 else ("size", False)
    if by == "shape":
        rows = rows[large_enough(rows, beyond_chance=beyond_chance)]
    members = [[row for row, label in enumerate(rows.labels) if label in set(group)] for group in groups]
    shown = [
        (group, chosen)
        for group, chosen in zip(groups, members, strict=True)
        if chosen and len(chosen) < len(rows)
    ]
    sides = [side for _, chosen in shown for side in (typical_of(rows, chosen), Side.of(rows, chosen))]
    pairs = [(2 * number, 2 * number + 1) for number in range(len(shown))]
    try:
        answers = explain_sides(sides, pairs, beyond_chance=True, level=level)
    except al.ArmslengthError:  # some rows have a release in common, or are no sums of releases
        return
    lines = []
    for (group, _), answer in zip(shown, answers, strict=True):
        if isinstance(answer, Explanation):
            reasons = ", ".join(answer.reasons()) or f"no item group surely differs; {UNEXPLAINED}"
        else:
            reasons = answer.split(":")[0]
        if len(group) == 1:
            lines.append(f"{group[0]}: {reasons}: armslength explain {shlex.join((*files, *group))}")
        else:
            more = [f"{len(group) - _MOST_NAMED} more"] if len(group) > _MOST_NAMED else []
            *names, last = [*group[:_MOST_NAMED], *more]
            lines.append(f"{', '.join(names)} and {last}: {reasons}")
    if lines:
        click.echo("\n".join(["", "What sets them apart from the typical party:", *lines]))
