"""The whole workflow on public or made-up data, once (`armslength demo`) or over a grid of settings (`rehearse`)."""

from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength import rehearsal
from armslength.cli.options import (
    FILE,
    FORMAT,
    NAMES,
    check_new_file,
    event_source,
    option,
    source_options,
)
from armslength.cli.output import as_csv, as_json, echo_notes, paragraph
from armslength.demo import run_demo
from armslength.files import check_can_write
from armslength.results import table_lines

_COLUMNS = ("person", "item", "group", "public_groups")
_MADE_UP = ("parties", "people", "items_per_person", "seed")
_TITLES = ("ε", "C", "k", "pairs told apart", "right", "groups found", "right groups")


@click.command(
    epilog="""\b
Examples:
  armslength rehearse
  armslength rehearse --parties 9 --people 3000 --epsilon 1 --epsilon 2 --contribution 5 --sketch-dim 512
  armslength rehearse last-year.parquet --public --person patient --item code --group hospital \\
             --public-groups @hospitals.txt -o rehearsal-last-year.html

--epsilon, --contribution and --sketch-dim may come several times: every combination is tried. Pairs are told apart beyond
chance, by shape, all together at 95%. Right are those that truly differ: as made up, or as SOURCE shows without noise. Enough is
90% of them. The lines without noise show what chance alone hides. Never rehearse with private data: its answers without
noise are shown, and no ledger counts what is spent.
"""
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[SOURCE...]")
@click.option("--public", is_flag=True, help="Say that everybody may see SOURCE. Needed with SOURCE.")
@click.option("--person", metavar="COLUMN", help="Of SOURCE: who an event is about.")
@click.option("--item", metavar="COLUMN", help="Of SOURCE: what happened.")
@click.option("--group", metavar="COLUMN", help="Of SOURCE: which party an event belongs to.")
@click.option("--public-groups", **NAMES, help="Of SOURCE: the parties, with commas, or @file.")
@source_options
@click.option("--parties", type=click.IntRange(2), help="Parties to make up without SOURCE.  [default: 24]")
@click.option("--people", type=click.IntRange(1), help="People of each such party.  [default: 700]")
@click.option("--items-per-person", type=click.IntRange(1), help="Items of each, about.  [default: 3]")
@click.option("--seed", type=click.IntRange(0), help="The seed of the made-up data.  [default: 2026]")
@option("--epsilon", "epsilons", multiple=True, default=["0.5", "1", "2", "4"], help="ε of each release.")
@option("--contribution", "bounds", multiple=True, default=[1, 3], help="C: items of a person that count.")
@option("--sketch-dim", "dims", multiple=True, default=[256, 1024], help="k: numbers of a sketch.")
@option("--total-share", "share", default="0.2", help="The share of ε for totals.")
@option("-o", "--output", type=FILE, default="rehearsal.html", help="Where the report of one point goes.")
@FORMAT
def rehearse(files: tuple[str, ...], public: bool, output: str, form: str, **known: Any) -> None:
    """Try the whole workflow on public or made-up data, and see what the answers would look like.

    Releases are tried over a grid of ε, C and k, and compared with the truth, which is known. The smallest ε that shows most of
    it is chosen, and the report of that point is written. Nothing is spent, no ledger is needed, and no sketch is written.
    """
    name = Path(output).name.lower()
    if "rehearsal" not in name or not name.endswith((".html", ".htm")):
        raise click.UsageError(f"the output must be named like rehearsal.html, got {output}")
    check_new_file(output, overwrite=True, read=files)
    check_can_write(output)
    columns, sizes = (
        {name: value for name in names if (value := known.pop(name)) is not None}
        for names in (_COLUMNS, _MADE_UP)
    )
    if files and not public:
        raise click.UsageError("SOURCE must be public: answers without noise are shown; say so with --public")
    if sizes if files else (columns or public):
        raise click.UsageError("options of SOURCE and of made-up parties must not be mixed, got both")
    if files and len(columns) < len(_COLUMNS):
        raise click.UsageError("SOURCE must come with --person, --item, --group and --public-groups")
    if "-" in files:
        raise click.UsageError("SOURCE must be read several times, got the standard input; save it to a file")
    source = event_source(files, known)
    data = rehearsal.PublicData(source, columns) if files else rehearsal.made_up(**sizes)
    result = rehearsal.rehearse(data, **known)
    click.echo(_shown(result, form))
    point, text = result.chosen, rehearsal.setting_text(result.chosen)
    setting = point["epsilon"], point["contribution"], point["sketch_dim"]
    sketches = data.release(rehearsal.protocol_of(*setting, known["share"]))
    al.report(sketches, output, title=f"Rehearsal: {text}", level=rehearsal.LEVEL, banner=rehearsal.BANNER)
    echo_notes(rehearsal.BANNER, f"the report of {text} is in {output}")


def _shown(result: rehearsal.Rehearsal, form: str) -> str:
    rows = [{"rehearsal": True, **point} for point in result.points]
    if form == "csv":
        return as_csv(rows)
    if form == "json":
        facts = {"rehearsal": True, "advice": result.advice, "pairs": result.pairs, "differ": result.differ}
        return as_json({**facts, "groups": result.groups, "chosen": result.chosen, "points": rows})
    cells = [["no noise" if value is None else f"{value}" for value in at.values()] for at in result.points]
    table = table_lines([dict(zip(_TITLES, line, strict=True)) for line in cells], ())
    truth = (
        f"In truth {result.differ:,} of {result.pairs:,} pairs differ, and there are {result.groups} groups."
    )
    means = f"Means of {rehearsal.RUNS} runs:"
    return "\n".join([rehearsal.BANNER, "", truth, means, "", *table, "", paragraph(result.advice)])


@click.command(
    epilog="""\b
Examples:
  armslength demo
  armslength demo --folder /tmp/demo
"""
)
@option(
    "--folder",
    default="armslength-demo",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where tables, sketches, ledgers and the report go.",
)
def demo(folder: Path) -> None:
    """Run the whole workflow on generated data; it takes about a minute.

    24 hospitals in four hidden regions each have a private table of diagnoses. They plan, agree on a protocol, and release
    one sketch each, in separate processes; then anybody compares and clusters them, asks in what they differ, and looks at a report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run_demo(folder, click.echo)
