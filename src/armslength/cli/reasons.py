"""In what parties differ, as lines below the answers of other commands, where releases have margins."""

import shlex
from collections.abc import Sequence

import click

import armslength as al
from armslength.cli.options import work_limit
from armslength.reporting.reasons import explained_rows
from armslength.sketches.sketch_file import list_files


def rows_with_margins(
    sketches: "al.Sketches | al.Collection", files: Sequence[str], labels: Sequence[str]
) -> "al.Sketches | None":
    """Those of these rows that have margins, the same; None if there are none."""
    explained = explained_rows(parts_with_margins(sketches, files, labels))
    return None if explained is None else explained.sketches


def parts_with_margins(
    sketches: "al.Sketches | al.Collection", files: Sequence[str], labels: Sequence[str]
) -> "list[al.Sketches]":
    """These rows, file by file where only some have margins: joined rows keep what all of them have."""
    rows = sketches[list(labels)]
    if rows.margins is not None or all(protocol.margins is None for protocol in sketches.protocols):
        return [rows]
    wanted, parts = set(labels), []
    for path in (path for source in files for path in list_files(source)):
        part = al.load(path, **work_limit())
        parts.append(part.rows([row for row, label in enumerate(part.labels) if label in wanted]))
    return [part for part in parts if len(part)]


def echo_against_others(
    sketches: "al.Sketches | al.Collection",
    files: Sequence[str],
    groups: Sequence[Sequence[str]],
    level: float,
) -> None:
    """For each group of labels, in what it differs from all others; the level is for all of the groups together."""
    try:
        rows = rows_with_margins(sketches, files, list(sketches.each_label())) if groups else None
    except al.ArmslengthError:  # two parties of one name
        return
    if rows is None:
        return
    lines = []
    for group in groups:
        rest = [label for label in rows.labels if label not in set(group)]
        try:
            answer = al.explain(rows[rest], rows[list(group)], level=1 - (1 - level) / len(groups))
            reasons = ", ".join(answer.reasons()) or "no difference is sure"
        except al.NotResolvableError:
            reasons = "too few people to say"
        except al.ArmslengthError:  # some have no margins, or there are no others
            continue
        if len(group) == 1:
            lines.append(f"{group[0]}: {reasons}: armslength explain {shlex.join((*files, *group))}")
        else:
            lines.append(f"{group[0]} and {len(group) - 1} more: {reasons}")
    if lines:
        click.echo("\n".join(["", "In what they differ from all others:", *lines]))
