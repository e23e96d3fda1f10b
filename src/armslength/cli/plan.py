"""`armslength plan`: the best settings before any data is seen, and what they will show."""

from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength.cli.exit_codes import NOT_RESOLVABLE
from armslength.cli.options import (
    FILE,
    NAMES,
    OVERWRITE,
    RANGE,
    RECORD,
    check_new_file,
    name_list,
    option,
    people_range,
)
from armslength.cli.output import as_csv, as_json, echo_notes

_FORMATS = click.Choice(["table", "json", "csv"])


@click.command(
    epilog="""\b
Examples:
  armslength plan --people 3000 --parties 9 --epsilon 1 --items-per-person 7 --unit "one patient" -o protocol.json
  armslength plan --people 60:42000 --parties 9 --epsilon 1 --item-groups 20
  armslength plan --people 2000 --epsilon 1 --record age:18,40,65 --record sex=F,M --item-groups age,sex

Exit code 3: nothing would be seen; the last line says what would be needed.
"""
)
@option("--people", "How many people a party has, or low:high.", type=people_range, metavar="LOW[:HIGH]")
@option("--parties", "How many parties are compared.  [default: one pair]", type=int)
@option("--epsilon", "ε of each release, such as 1 or 0.5.", required=True, metavar="ε")
@option("--unit", 'Who is protected, in words, such as "one patient".', default="", metavar="TEXT")
@option("--items-per-person", "How many different items a person typically has.  [default: 5]", type=float)
@option(
    "--item-groups",
    "List with item or prefix, and group; columns of --record; or how many.",
    metavar="FILE|COLUMNS|N",
)
@option("--item-groups-per-person", "In how many item groups a person typically has items.", type=float)
@option("--listed-items", "How many items `armslength explain --items` will be asked about.", type=int)
@option(
    "--record",
    "Column of a table with one row per person: sex, sex=F,M, age:18,65. Repeatable.",
    metavar="COLUMN",
    **RECORD,
)
@option(
    "--pair record_pairs",
    "Two columns of --record to compare together.",
    multiple=True,
    **{**NAMES, "metavar": "A,B"},
)
@option(
    "--about",
    "The question.  [default: populations, or counts with --distance]",
    type=click.Choice(["populations", "people", "counts"]),
)
@option("--distance", "About counts: how far apart they are.", **RANGE)
@option("--contribution", "About counts: how many events of a person count at most.", type=int)
@option("--input-dim", "How many different items there are.  [default: not limited]", type=int)
@option("-o --output", "Write the recommended protocol here.", type=FILE)
@OVERWRITE
@option("--format output_format", "How to print it.", type=_FORMATS, default="table")
def plan(
    output: str | None, overwrite: bool, output_format: str, item_groups: str | None, **options: Any
) -> None:
    """Choose the settings before any privacy is spent: says what you will see, and what you will miss.

    It reads no data. -o writes what is recommended as a protocol, which all parties use. `armslength protocol new` has all
    other settings.
    """
    check_new_file(output, overwrite=overwrite)
    options["item_groups"] = _item_groups(item_groups, options["record"])
    if output is not None and isinstance(options["item_groups"], int):
        raise click.UsageError("-o needs a list of item groups, not only their number")
    is_for_events = options["distance"] is None or options["contribution"] is not None
    if output is not None and is_for_events and not options["unit"]:
        raise click.UsageError('-o needs --unit, which says who is protected, such as --unit "one patient"')
    result = al.plan(**options)
    if output_format == "csv":
        click.echo(as_csv(result.to_arrow().to_pylist()))
        echo_notes(result.weakness)  # the others have it in their text
    else:
        click.echo(str(result) if output_format == "table" else as_json(result.document()))
    if output is not None and result.resolvable:
        result.protocol.save(output)
        echo_notes(f"the recommended protocol was written to {output}")
        if not is_for_events:
            echo_notes("this protocol is for arrays; for an event table, say --people and --unit")
    if result.refusal:
        echo_notes(result.refusal)
        click.get_current_context().exit(NOT_RESOLVABLE)


def _item_groups(text: str | None, record: Any) -> Any:
    """A number, columns of a record, or a file."""
    if text is None or not text.isdecimal():
        is_file = text is None or record is None or Path(text).exists()
        return text if is_file else name_list(str(text))
    return int(text)
