"""Before a release: is my table read as I mean it (`armslength check`)?"""

import json
import sys
from dataclasses import asdict
from typing import Any

import click

import armslength as al
from armslength.cli.exit_codes import NEEDS_A_LOOK
from armslength.cli.options import (
    EXISTING_FILE,
    NAMES,
    all_of,
    choice,
    event_source,
    option,
    source_options,
)
from armslength.cli.output import as_json, at_most, indented_lines, is_terminal
from armslength.errors import plural, printable
from armslength.estimates.prevalence import MOST_UNDERCOUNT
from armslength.ingest.check_table import TableCheck, Typical, check_table
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ingest.spellings import SpellingCheck
from armslength.planner.least_people import least_people
from armslength.protocol.neighbors import VOTE
from armslength.protocol.record import MISSING, OTHER

BANNER = "PRIVATE: for you, the data holder. Nothing was spent. Do not share this output."
_MOST_SHOWN = 20


# The options of a release that say what is read.
table_options = all_of(
    click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="SOURCE..."),
    option("--protocol protocol_file", "What all parties agreed on.", required=True, type=EXISTING_FILE),
    option("--person", "Who an event is about.", required=True, metavar="COLUMN"),
    option("--item", "What happened. Not for records: their columns become items.", metavar="COLUMN"),
    option("--label", "The name of the one sketch for all events."),
    option("--group", "Instead, one sketch for each group: the column of groups.", metavar="COLUMN"),
    option("--public-groups", "With --group: every group that gets one; names, or @file.", **NAMES),
    option(
        "--item-groups",
        "For a protocol whose item groups are a table of items: the same file.",
        type=EXISTING_FILE,
    ),
    option("--vocabulary", "For a protocol with a vocabulary: its names, or @file.", **NAMES),
    option(
        "--weight",
        "With amounts (a contribution of C): how much an event counts; may be negative.  [default: 1 each]",
        metavar="COLUMN",
    ),
    source_options,
    option(
        "--memory",
        "About how much events may take before they go to an encrypted file; the process needs 0.7 to 2 GB beside it.",
        default="1GB",
    ),
    option("--threads", "At most this many threads.", type=int),
)


def table_job(files: tuple[str, ...], options: dict[str, Any]) -> TableJob:
    """The job that `table_options` describe."""
    protocol = al.Protocol.load(options["protocol_file"])
    return TableJob.of(
        event_source(files, options),
        protocol,
        EventColumns(options["person"], options["item"], options["group"], options["weight"]),
        public_groups_of(options["group"], options["public_groups"], options["label"]),
        options["vocabulary"],
        item_groups=options["item_groups"],
        memory=options["memory"],
        threads=options["threads"],
    )


@click.command(
    epilog="""\b
Examples:
  armslength check visits.parquet --person patient_id --item code --group hospital \\
             --public-groups @hospitals.txt --protocol protocol.json
  armslength check visits.csv.gz --person patient_id --item code --label north --protocol protocol.json
  armslength check sqlite:///visits.db --table visits --person patient_id --item code --label north --protocol protocol.json

`armslength release --help` lists everything that SOURCE may be.
The output is as private as the table: it goes to your terminal, and never to a file or a pipe unless you ask for
--format json. Fix your table, the columns or the spelling of the list of groups with it. Do not add or remove a group, and
do not change the protocol, because of it: what it shows about your people would then reach the other parties. Exit code 0 says that nothing looks wrong; 7 that
problems were found.
"""
)
@table_options
@choice("--format output_format", ["table", "json"], "json: for a program of yours; private, too.")
def check(files: tuple[str, ...], output_format: str, **options: Any) -> None:
    """Check your own table before a release: is it read as you mean it? Nothing is spent.

    The options are those of `armslength release`. You see which public groups have no rows, which groups are not listed, how many rows
    are left out and why, whether ids or items are written in two ways, whether the columns of people and items look swapped, which groups
    have too few people for any answer, how many people are in several groups, and how many different items they have; where amounts are added up,
    how much of them the contribution keeps. For records, you
    see how much of each column is missing, or is none of the categories listed. For item groups, you see which of them nobody has an item in,
    how much is in none of those listed, and how many of them people have.
    """
    if output_format == "table" and not is_terminal(sys.stdout):
        raise click.UsageError(
            "the check is private and goes to a terminal only; pass --format json for a file or a pipe"
        )
    job = table_job(files, options)
    result = checked_table(job)
    click.echo(as_json(_document(result)) if output_format == "json" else check_text(result, job))
    if result.needs_a_look:
        if output_format == "table":
            click.echo(f"Problems found. (exit code {NEEDS_A_LOOK})")
        click.get_current_context().exit(NEEDS_A_LOOK)


def checked_table(job: TableJob) -> TableCheck:
    """The check of the table, with a progress bar."""
    return check_table(job, least_people(job.protocol), MOST_UNDERCOUNT, show_progress=True)


def _document(result: TableCheck) -> dict[str, Any]:
    """All of it, the banner first."""
    left = result.left_out
    return {
        "banner": BANNER,
        "needs_a_look": result.needs_a_look,
        "rows": left.rows,
        "left_out": {name: getattr(left, name) for name in ("person", "group", "item", "weight")},
        "groups": result.groups,
        "empty_groups": result.empty_groups,
        "unlisted_groups": result.unlisted,
        "likely_groups": result.likely,
        "people": result.people,
        "votes": None if result.votes is None else _nested(asdict(result.votes)),
        "people_over_contribution": result.people_over,
        "share_kept": result.share,
        "people_with_several_ids": result.ids._asdict(),
        "items_in_several_spellings": result.items._asdict(),
        "columns_look_swapped": result.is_swapped,
        "people_of_groups": result.people_of_groups,
        "least_people": result.least_people,
        "small_groups": result.small_groups,
        "columns": {name: column._asdict() for name, column in result.columns.items()},
        "margins": None if result.margins is None else _nested(asdict(result.margins)),
    }


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with names for what people typically have."""
    return {**fields, "per_person": fields["per_person"]._asdict()}


def check_text(result: TableCheck, job: TableJob) -> str:
    """The check in words, under its banner."""
    parts = {
        "groups": _groups(result),
        "left out": [_left_out(result)],
        "columns": _columns(result, job),
        "people": _people(result, job),
        "items": _spelled_items(result),
        "size": _size(result, job),
        "votes": _votes(result),
        "counted": _counted(result, job),
        "item groups": _item_groups(result, job),
    }
    return "\n".join([BANNER, "", *indented_lines({name: lines for name, lines in parts.items() if lines})])


def _groups(result: TableCheck) -> list[str]:
    meant = {label: f" Did you mean {_name(near)}?" for label, near in result.likely.items()}
    empty = [
        f"{_name(label)} is listed and has no rows.{meant.get(label, '')}" for label in result.empty_groups
    ]
    unlisted = [
        f"{_name(name)} has {plural(rows, result.left_out.noun)} and is not listed."
        for name, rows in result.unlisted.items()
    ]
    lines = [*at_most(_MOST_SHOWN, empty, "group"), *at_most(_MOST_SHOWN, unlisted, "group")]
    return lines or [f"rows in every listed group, and in no other ({len(result.groups):,})"]


def _name(name: str) -> str:
    """A group's name; in quotes where its blanks would not be seen."""
    is_plain = name == name.strip() and name.isprintable()
    return printable(name) if is_plain else json.dumps(name, ensure_ascii=True)


def _left_out(result: TableCheck) -> str:
    left = result.left_out
    reasons = {
        "without a person": left.person,
        "without a group": result.without_group,
        "of groups that are not listed": left.group - result.without_group,
        "without a usable item": left.item,
        "without a usable weight": left.weight,
    }
    counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    total = left.rows - left.counting
    rows = plural(left.rows, left.noun)
    return f"{total:,} of {rows}: {counts}" if total else f"none of {rows}"


def _columns(result: TableCheck, job: TableJob) -> list[str]:
    """For each column of a record, how much is missing or other; one line more where that is nearly all."""
    lines = []
    for name, kind in () if job.protocol.record is None else job.protocol.record.columns:
        column = result.columns[name]
        rows = max(column.rows, 1)
        other = "" if isinstance(kind, str) else f", {column.other / rows:.1%} {OTHER}"
        lines.append(f"{_name(name)}: {column.missing / rows:.1%} {MISSING}{other}")
        if column.needs_a_look:
            remedy = "Is it the right column, with values that can be read?"
            if not isinstance(kind, str):
                more = ", …" if len(kind) > _MOST_SHOWN else ""
                remedy = f"The protocol lists {printable(', '.join(kind[:_MOST_SHOWN]))}{more}: write the table that way."
            lines.append(f"{_name(name)} needs a look: nearly every row is {MISSING} or {OTHER}. {remedy}")
    return lines


def _people(result: TableCheck, job: TableJob) -> list[str]:
    if not result.people:
        return ["nobody has an event that counts. Are the columns right?"]
    lines = [f"{result.people:,}"]
    if result.ids.several:
        several = plural(result.ids.several, "person", "people")
        lines.append(
            f"{several} may be counted twice, under ids that differ only in {_differences(result.ids)}. "
            "Write each id in one way."
        )
    if result.is_swapped:
        person, item = _name(job.columns.person), _name(job.columns.item or "")
        lines.append(
            f"the columns look swapped: {person} looks like items and {item} like people. A few values of {person} have most events."
        )
    return lines


def _differences(spellings: SpellingCheck) -> str:
    """What differs; with counts, if there is more than one difference."""
    found = spellings.differences
    parts = [name if len(found) == 1 else f"{name} ({count:,})" for name, count in found.items()]
    return "; ".join(parts)


def _spelled_items(result: TableCheck) -> list[str]:
    if not result.items.several:
        return []
    several = plural(result.items.several, "item has", "items have")
    return [
        f"{several} several spellings that differ only in {_differences(result.items)}. Each spelling counts as an item."
    ]


def _size(result: TableCheck, job: TableJob) -> list[str]:
    """The groups that are too small for any answer."""
    small, least = result.small_groups, f"{result.least_people:,}"
    if not small or not result.people:
        return []
    if job.groups.column is None:
        people = plural(result.people, "person", "people")
        return [f"{people}: with fewer than about {least}, every answer will be inconclusive"]
    shown = [f"{_name(label)} ({people:,})" for label, people in small.items()]
    names = ", ".join([*shown[:_MOST_SHOWN], *(["…"] if len(shown) > _MOST_SHOWN else [])])
    groups = plural(len(small), "group has", "groups have")
    return [
        f"{groups} fewer than about {least} people, and every answer about such a group will be inconclusive: {names}"
    ]


def _votes(result: TableCheck) -> list[str]:
    """How people vote."""
    votes = result.votes
    if votes is None:
        return []
    lines = [f"A person typically has {_typical(votes.per_person, 'different item')}."]
    if votes.several_groups:
        several = plural(votes.several_groups, "person is", "people are")
        lines.append(f"{several} in several groups. Each votes in one of them, chosen at random.")
    if votes.without:
        without = plural(votes.without, "person has", "people have")
        lines.append(f"{without} more than {VOTE:,} items, and no vote. Is it a person?")
    return lines


def _typical(numbers: Typical, noun: str) -> str:
    """How many of something people have."""
    return f"{plural(numbers.median, noun)}; 90 % of people have at most {numbers.most:,}"


def _counted(result: TableCheck, job: TableJob) -> list[str]:
    """How much the contribution keeps, where amounts are added up."""
    if result.share is None:
        return [] if job.protocol.votes else ["nothing"]
    over = f"{plural(result.people_over, 'person has', 'people have')} more"
    noun = "events" if job.columns.weight is None else "weights"
    return [f"{result.share:.0%} of {noun} at {job.protocol.contribution:,} a person; {over}."]


def _item_groups(result: TableCheck, job: TableJob) -> list[str]:
    """Whether the item groups fit the table, where there are some."""
    check, margins = result.margins, job.protocol.margins
    if check is None or margins is None:
        return []
    lines = []
    if margins.rule != "record":
        spelling = " Are items written as in the list?" if check.in_none >= 0.9 else ""
        lines.append(f"{check.in_none:.1%} of votes are {margins.names[-1]}.{spelling}")
        if check.spelled_otherwise:
            part = f"{check.spelled_otherwise:.1%}" if check.spelled_otherwise >= 0.001 else "less than 0.1%"
            lines.append(
                f"{part} of votes are {margins.names[-1]} only because the list has other capitals, punctuation or blanks. Write items as in the list."
            )
    empty = [f"{_name(name)}: nobody has an item in it." for name in check.empty]
    lines += at_most(_MOST_SHOWN, empty, "item group")
    lines.append(f"A person typically has {_typical(check.per_person, 'item group')}.")
    bound, share = job.protocol.margin_contribution or 0, check.people_over / result.people
    if check.people_over:
        lines.append(
            f"{share:.1%} of people have more than the {plural(bound, 'item group')} that count in full. "
            f"Shares of people may be up to {100 * check.missing:.1f} points larger than what is counted."
        )
    if check.missing > check.most_missing:
        lines.append(
            f"That is more than {100 * check.most_missing:g} points, so no difference between parties will be named."
        )
    return lines
