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
    flag,
    option,
    source_options,
)
from armslength.cli.output import as_csv, as_json, echo_notes, paragraph
from armslength.demo import MONTHS, run_demo, write_tables
from armslength.files import check_can_write
from armslength.results import table_lines

_COLUMNS = ("person", "item", "group", "public_groups")
_MADE_UP = ("parties", "people", "items_per_person", "seed")
_TITLES = ("ε", "k", "pairs found", "right", "groups found", "right groups")


@click.command(
    epilog="""\b
Examples:
  armslength rehearse
  armslength rehearse --parties 9 --people 3000 --items-per-person 7 --epsilon 0.5 --epsilon 1 --sketch-dim 512
  armslength rehearse last-year.parquet --public --person patient --item code --group hospital \\
             --public-groups @hospitals.txt -o rehearsal-last-year.html

--epsilon and --sketch-dim may come several times: every combination is tried. Every person has one vote, split over all their
items. Pairs are found to differ beyond chance, all together at 95 %. Right are those that truly do: as made up, or as SOURCE shows
without noise. Enough is 90% of them. The line without noise shows what chance alone hides. Never rehearse with private data: its
answers without noise are shown, and no ledger counts what is spent.
"""
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[SOURCE...]")
@flag("--public", "Say that everybody may see SOURCE. Needed with SOURCE.")
@option("--person", "Of SOURCE: who an event is about.", metavar="COLUMN")
@option("--item", "Of SOURCE: what happened.", metavar="COLUMN")
@option("--group", "Of SOURCE: which party an event belongs to.", metavar="COLUMN")
@option("--public-groups", "Of SOURCE: the parties, with commas, or @file.", **NAMES)
@source_options
@option("--parties", "Parties to make up without SOURCE.  [default: 24]", type=click.IntRange(2))
@option("--people", "People of each such party.  [default: 700]", type=click.IntRange(1))
@option("--items-per-person", "Items of each, about.  [default: 3]", type=click.IntRange(1))
@option("--seed", "The seed of the made-up data.  [default: 2026]", type=click.IntRange(0))
@option("--epsilon", "ε of each release.", multiple=True, default=["0.5", "1", "2", "4"])
@option("--sketch-dim", "k: numbers of a sketch.", multiple=True, default=[256, 1024])
@option("--total-share", "The share of ε for the number of people.", default="0.1")
@option("-o --output", "Where the report of one point goes.", type=FILE, default="rehearsal.html")
@FORMAT
def rehearse(files: tuple[str, ...], public: bool, output: str, output_format: str, **options: Any) -> None:
    """Try the whole workflow on public or made-up data, and see what the answers would look like.

    Releases are tried over a grid of ε and sizes of a sketch, and compared with the truth, which is known. The smallest ε that shows most of
    it is chosen, and the report of that point is written. Nothing is spent, no ledger is needed, and no sketch is written.
    """
    name = Path(output).name.lower()
    if "rehearsal" not in name or not name.endswith((".html", ".htm")):
        raise click.UsageError(f"the output must be named like rehearsal.html, got {output}")
    check_new_file(output, overwrite=True, read=files)
    check_can_write(output)
    columns, sizes = (
        {name: value for name in names if (value := options.pop(name)) is not None}
        for names in (_COLUMNS, _MADE_UP)
    )
    if files and not public:
        raise click.UsageError("SOURCE must be public: answers without noise are shown; say so with --public")
    if sizes if files else (columns or public):
        raise click.UsageError("options of SOURCE cannot be combined with those of made-up parties")
    if files and len(columns) < len(_COLUMNS):
        raise click.UsageError("SOURCE needs --person, --item, --group and --public-groups")
    if "-" in files:
        raise click.UsageError("SOURCE is read several times; save the standard input to a file")
    source = event_source(files, options)
    data = rehearsal.PublicData(source, columns) if files else rehearsal.made_up(**sizes)
    result = rehearsal.rehearse(data, options["epsilon"], options["sketch_dim"], options["total_share"])
    click.echo(_result_text(result, output_format))
    point, text = result.chosen, rehearsal.setting_text(result.chosen)
    setting = point["epsilon"], point["sketch_dim"]
    sketches = data.release(rehearsal.protocol_of(*setting, options["total_share"]))
    title = f"Rehearsal: {text}"
    try:
        al.report(sketches, output, title=title, level=rehearsal.LEVEL, banner=rehearsal.BANNER)
    except al.NotResolvableError as problem:  # the table has said so
        echo_notes(rehearsal.BANNER, f"no report of {text}: {problem}")
        return
    echo_notes(rehearsal.BANNER, f"the report of {text} is in {output}")


def _result_text(result: rehearsal.Rehearsal, output_format: str) -> str:
    rows = [{"rehearsal": True, **point} for point in result.points]
    if output_format == "csv":
        return as_csv(rows)
    if output_format == "json":
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
  armslength demo --table march.parquet                            the tables of the tutorial
  armslength demo --table march.parquet --table april.parquet      and a second month

The tables have the columns patient, code and hospital. The public lists hospitals.txt and chapters.csv are written beside the first.
They are the same in every run, and no file is replaced.
"""
)
@option(
    "--folder",
    "Where its files go.  [default: armslength-demo]",
    type=click.Path(file_okay=False, path_type=Path),
)
@option(
    "--table tables",
    "Only write a made-up event table to this .parquet file. Repeat it for a second month.",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    multiple=True,
)
def demo(folder: Path | None, tables: tuple[Path, ...]) -> None:
    """Run the whole workflow on generated data, which takes about a minute; or write tables to try it with.

    24 hospitals in four hidden regions each have a private table of diagnoses. They plan, agree on a protocol, and release
    one sketch each, in separate processes; then anybody compares and clusters them, asks what sets them apart, and looks at a report.
    """
    if not tables:
        folder = folder or Path("armslength-demo")
        folder.mkdir(parents=True, exist_ok=True)
        run_demo(folder, click.echo)
        return
    if folder is not None:
        raise click.UsageError("--table names its own folder; leave out --folder")
    if len({table.resolve() for table in tables}) < len(tables) or len(tables) > MONTHS:
        raise click.UsageError(f"there are {MONTHS} months: name one file, or two different ones")
    if any(table.suffix != ".parquet" for table in tables):
        raise click.UsageError("name tables like march.parquet")
    write_tables(tables, click.echo)
