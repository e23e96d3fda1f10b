"""Options and arguments that several commands share."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength.checks import check_local
from armslength.cli.output import echo_notes
from armslength.estimates.questions import QUESTIONS
from armslength.sketches.misfits import listed, repeated_label
from armslength.sketches.sketch_file import fitting_files, joined, read_files
from armslength.sketches.sketches import unknown_label

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class LocalPath(click.Path):
    """A path on this machine; a URL gets a message of its own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        check_local(value)
        return super().convert(value, param, ctx)


# Values of options, read from text.


def people_range(text: str) -> int | tuple[int, ...]:
    """A number of people, or (low, high) of low:high."""
    try:
        low, *high = map(int, text.replace(",", "").split(":", 1))
    except ValueError:
        raise click.BadParameter(f"must be a number of people or low:high, got {text!r}") from None
    return (low, *high) if high else low


def number_range(text: str) -> float | tuple[float, ...]:
    """A number, or (low, high) of low:high."""
    try:
        low, *high = map(float, text.split(":", 1))
    except ValueError:
        raise click.BadParameter(f"must be a number or low:high, got {text!r}") from None
    return (low, *high) if high else low


def file_lines(path: str) -> list[str]:
    """The lines of a text file, without blank ones."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(
            f"cannot read {path!r}: it must be a text file in UTF-8 with a name on each line"
        ) from None
    return [line for line in text.splitlines() if line.strip()]


def name_list(text: str) -> list[str]:
    """Names separated by commas, or those of @file, one on each line."""
    return file_lines(text[1:]) if text.startswith("@") else [name.strip() for name in text.split(",")]


def character(text: str) -> str:
    """A character, also by a name that a shell lets through: tab, or none, which is empty."""
    return {"tab": "\t", r"\t": "\t", "none": ""}.get(text, text)


def record_column(text: str) -> tuple[str, Any]:
    """A column of records and what becomes of it: NAME, NAME:18,40,65 with edges, NAME:month with a period, or NAME=F,M with categories."""
    column = re.split("[:=]", text, maxsplit=1)[0]
    separator, kind = text[len(column) :][:1], text[len(column) + 1 :]
    if separator == ":" and not re.fullmatch(r"[-+.0-9eE,]+|[a-z]+", kind):
        raise click.BadParameter(
            f"must have edges or a period after the colon, got {kind!r}; list categories as {column}=A,B"
        )
    return column, kind.split(",") if separator == "=" else kind or "category"


def _record(
    _context: click.Context, param: click.Parameter, columns: Sequence[tuple[str, Any]]
) -> dict[str, Any] | None:
    """The recipe of all --record options; None without any."""
    if len(dict(columns)) < len(columns):
        raise click.BadParameter("must name each column once", param=param)
    return dict(columns) or None


NAMES: dict[str, Any] = {"type": name_list, "metavar": "NAMES|@FILE"}
RECORD: dict[str, Any] = {"type": record_column, "multiple": True, "callback": _record}
RANGE: dict[str, Any] = {"type": number_range, "metavar": "LOW[:HIGH]"}
CHARACTER: dict[str, Any] = {"type": character, "metavar": "CHARACTER"}
FILE, EXISTING_FILE = LocalPath(dir_okay=False), LocalPath(exists=True, dir_okay=False)


def option(names: str, text: str, **settings: Any) -> Decorator:
    """An option with these names, separated by blanks; its help is the text, and shows the default if there is one."""
    has_default = settings.get("default") not in (None, "")
    return click.option(*names.split(), help=text, show_default=has_default, **settings)


def flag(name: str, text: str) -> Decorator:
    """An option without a value."""
    return click.option(name, is_flag=True, help=text)


def choice(names: str, values: Sequence[str], text: str = "") -> Decorator:
    """An option with these values, the first of which is the default."""
    return option(names, text, type=click.Choice(values), default=values[0])


def context_option(names: str, text: str, **settings: Any) -> Decorator:
    """An option that commands need no argument for: `context_value` has its value."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"armslength.{param.name}"] = value

    return click.option(names, expose_value=False, callback=keep, help=text, **settings)


def context_value(name: str) -> Any:
    """What the current command was told by the `context_option` of this name; None without."""
    return click.get_current_context().meta.get(f"armslength.{name}")


def all_of(*options: Decorator) -> Decorator:
    """Adds all of these options and arguments to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        return reduce(lambda inner, add_one: add_one(inner), reversed(options), command)

    return add


# What events are read from: see `event_source`.
source_options = all_of(
    option("--table", "The table of a database.", metavar="NAME"),
    option(
        "--query",
        "Instead: what the database selects. It must look at each person's rows by themselves: no LIMIT, no ranks or counts over people.",
        metavar="SELECT",
    ),
    option(
        "--input-format format",
        "What files are: csv, jsonl.gz, parquet, ... Needed for standard input, -.",
        metavar="FORMAT",
    ),
    option("--delimiter", "Between the fields of .csv, .tsv or .txt files; such as ; or tab.", **CHARACTER),
    option("--quote", "Around fields that contain others; or none.", default='"', **CHARACTER),
    option("--encoding", "Of text files, such as latin-1, cp1252 or utf-16.", default="utf-8"),
)


def event_source(where: Sequence[str], options: dict[str, Any]) -> "al.Source":
    """The source that `source_options` describe; takes them out of the options."""
    names = ("table", "query", "format", "delimiter", "encoding")
    described = {name: options.pop(name) for name in names}
    quote = options.pop("quote") or None
    return al.Source(where[0] if len(where) == 1 else list(where), quote=quote, **described)


# What becomes of the columns of a table with one row for each person.
record_options = all_of(
    option(
        "--record",
        "A column of a table with one row for each person, instead of items: age:18,40,65 with edges, sex as it is, sex=F,M with "
        "categories, admitted:month (year, quarter, month, week, day). Once for each column.",
        metavar="COLUMN[:EDGES|:PERIOD|=CATEGORIES]",
        **RECORD,
    ),
    option(
        "--pair record_pairs",
        "Two columns of --record, such as age,sex, to compare together; may be repeated.",
        multiple=True,
        **NAMES,
    ),
)

ABOUT = option(
    "--about",
    "populations: do they differ, beyond chance? people: do the people who were counted? counts: the raw totals, size and profile together.  "
    "[default: the first of these that the releases allow]",
    type=click.Choice(QUESTIONS),
)
LEVEL = option("--level", "The confidence level.", default=0.95)
EACH = flag("--each", "The level is for each comparison by itself, not for all together.")
ALIKE = option(
    "--alike",
    "The similarity from which on parties are alike.  [default: 0.95; for counts give a distance]",
    type=float,
    metavar="X",
)
KEEP = flag("--keep", "Keep parties that have too few people to say anything.")
RELATION = choice(
    "--relation", ["add_remove", "replace"], "Whether a person is added or removed, or replaced."
)
CSV_HELP = "csv has ' before text that begins with = + - @: a spreadsheet would run it as a formula."
FORMAT = choice("--format output_format", ["table", "json", "csv"], CSV_HELP)
TABLE_OR_JSON = choice("--format output_format", ["table", "json"])
OVERWRITE = flag("--overwrite", "Replace the output file if it is there.")
sketch_files = click.argument(
    "files", nargs=-1, required=True, type=LocalPath(exists=True), metavar="FILE..."
)
# For commands that list parties: `load_all` reads them.
chosen_parties = all_of(
    context_option("--only", "Only these parties: names with commas, or @file.", **NAMES),
    context_option("--exclude", "All parties but these.", **NAMES),
)
party_files = all_of(sketch_files, chosen_parties)


def open_sides(
    *sides: tuple[str, ...],
    at_least: int = 1,
    labels: Sequence[str] | None = None,
    is_matched: bool = False,
) -> "list[al.Sketches]":
    """The rows of each side that --only and --exclude leave, at least so many of the first, and in each side every label once.

    Files with other settings than most are named, and left out if they cannot be compared.

    Args:
        sides: Files and folders.
        at_least: How many rows the first side must have; the others must have one.
        labels: The only labels that are needed; None: all.
        is_matched: Whether a label that is left out of one side is left out of all.
    """
    only, exclude = context_value("only"), context_value("exclude") or []
    read = [read_files("files", list(paths)) for paths in sides]
    known = [label for files in read for file in files for label in file.sketches.labels]
    for label in (*(only or ()), *exclude, *(labels or ())):
        if label not in known:
            raise unknown_label(label, known)

    def keep(label: str) -> bool:
        chosen = (only is None or label in only) and (labels is None or label in labels)
        return chosen and label not in exclude

    fitting, found = fitting_files(read, at_least=at_least, keep=keep)
    echo_notes(*listed(found))
    left_out = {label for misfit in found if not misfit.is_comparable for label in misfit.labels}
    if is_matched and left_out:
        fitting = [[file.where(lambda label: label not in left_out) for file in files] for files in fitting]
    for files in fitting:
        repeated = repeated_label([file.source for file in files])
        if repeated:
            raise al.ParameterError(
                f"two rows have the same label: {repeated}; name other files, or leave it out with --exclude; "
                "`armslength drift` compares two releases of one party"
            )
    return [joined(files) for files in fitting]


def load_all(paths: tuple[str, ...], at_least: int = 1, labels: Sequence[str] | None = None) -> "al.Sketches":
    """The rows of one side, as `open_sides` chooses them."""
    (sketches,) = open_sides(paths, at_least=at_least, labels=labels)
    return sketches


def check_new_file(output: str | None, *, overwrite: bool, read: Iterable[str] = ()) -> None:
    """Refuse to write over a file: a lost protocol or release cannot be made again. Files in use, `read`, never are."""
    if output is None:
        return
    if any(Path(output).resolve() == Path(name).resolve() for name in read):
        raise click.UsageError(
            f"cannot write to {output}: this command reads or charges it; name another file"
        )
    if Path(output).exists() and not overwrite:
        raise click.UsageError(f"{output} already exists; name another file, or pass --overwrite")
