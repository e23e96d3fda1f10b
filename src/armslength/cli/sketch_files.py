"""Sketch files: `armslength inspect`, `card`, `verify` and `sum`."""

import textwrap
from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength.cli.exit_codes import INCOMPATIBLE
from armslength.cli.options import (
    EXISTING_FILE,
    FILE,
    FORMAT,
    NO_WORK_LIMIT,
    OVERWRITE,
    LocalPath,
    check_new_file,
    choice,
    sketch_files,
    work_limit,
)
from armslength.cli.output import TEXT_WIDTH, as_csv, as_json, paragraph
from armslength.errors import plural, printable
from armslength.files import atomic_write
from armslength.results import LONGEST_LABEL, Column, heading, line, shortened
from armslength.sketches.card import release_card
from armslength.sketches.noises import UNKNOWN
from armslength.sketches.sketch_file import list_files
from armslength.sketches.sketches import sum_rows
from armslength.sketches.verify import FAILS

_MOST_FILES, _MOST_PROTOCOLS, _MOST_FLAGGED = 20, 2, 10  # in the table
_MOST_ITEM_GROUPS, _MOST_PARTIES = 30, 5


@click.command(
    epilog="""\b
Examples:
  armslength inspect sketches.parquet
  armslength inspect north.parquet south.parquet --format json
  armslength inspect sketches.parquet --format csv             one line for each row
  armslength inspect sketches/                                 a folder: its files; of rows only in_clear is read
"""
)
@sketch_files
@FORMAT
def inspect(files: tuple[str, ...], form: str) -> None:
    """Show what sketch files hold: rows, sizes, protocols, and the guarantee in words.

    With a folder, all files are shown as one collection: files and row counts, not each row. Rows are flagged as implausible if
    the noise that their protocol declares would hardly ever give such numbers (one call in 10^9). Everything here is public:
    a sketch file holds no count of people without noise, no hash of data and no time.
    """
    if any(Path(name).is_dir() for name in files):
        click.echo(_collection_listing(files, form))
        return
    each = [(name, al.load(name, **work_limit())) for name in files]
    if form == "json":
        click.echo(as_json([{"file": name, **_document(sketches)} for name, sketches in each]))
    elif form == "csv":
        rows = [{"file": printable(name), **row} for name, sketches in each for row in _rows(sketches)]
        click.echo(as_csv(rows))
    else:
        click.echo("\n\n".join(_page(name, sketches) for name, sketches in each))


def _collection_listing(paths: tuple[str, ...], form: str) -> str:
    """The files of a collection as a "table" of the first of them, or all of them as "json" or "csv"."""
    collection = al.open_collection(paths, **work_limit())
    files: list[dict[str, Any]] = [
        {
            "file": file.path,
            "rows": file.rows,
            "row_groups": len(file.group_rows),
            "bytes": file.size,
            "in_clear": any(any(file.column("in_clear", group)) for group in range(len(file.group_rows))),
        }
        for file in collection.files
    ]
    if form == "csv":
        return as_csv([{**file, "file": printable(file["file"])} for file in files])
    card = release_card(collection.releases, in_clear=any(file["in_clear"] for file in files))
    width = collection.transform.sketch_dim
    if form == "json":
        facts = {"rows": len(collection), "sketch_dim": width, "space": collection.space}
        return as_json({**facts, "card": card, "files": files})
    columns = [
        Column("file", 2 * LONGEST_LABEL),
        *map(Column.of_numbers, ("rows", "row groups", "bytes")),
        Column("", len("NOT PRIVATE")),
    ]
    table = [
        [printable(path), *map(str, numbers), "NOT PRIVATE" if in_clear else ""]
        for path, *numbers, in_clear in (file.values() for file in files)
    ]
    title = (
        f"{printable(', '.join(paths))}: {plural(len(files), 'file')}, {plural(len(collection), 'row')} of {width} numbers,"
        f" {collection.transform.name}{_with(totals=collection.has_totals, margins=collection.has_margins)},"
        f" {sum(file['bytes'] for file in files):,} bytes"
    )
    words = _at_most(_MOST_PROTOCOLS, _card_paragraphs(card), "protocol")
    lines = _at_most(_MOST_FILES, [line(columns, cells) for cells in table], "file")
    return "\n".join([title, f"space {collection.space}", "", *words, "", heading(columns), *lines])


def _with(*, totals: bool, margins: bool) -> str:
    """For a title: what rows have beside their sketches."""
    return ", with totals" * totals + ", with margins" * margins


def _rows(sketches: "al.Sketches") -> list[dict[str, Any]]:
    """One line for each row: its label, how many noises are in it, whether data in the clear is, total, people, and what is implausible."""
    people = [None] * len(sketches) if sketches.margins is None else sketches.margins[:, -1].tolist()
    totals = [None] * len(sketches) if sketches.totals is None else sketches.totals.tolist()
    flags: dict[int, list[str]] = {}
    for finding in al.implausible(sketches):
        flags.setdefault(finding.row, []).append(finding.reason)
    counts = (sketches.noises.starts[1:] - sketches.noises.starts[:-1]).tolist()
    rows = zip(sketches.labels, counts, sketches.in_clear, totals, people, strict=True)
    return [
        {
            "label": label,
            "noises": noises,
            "in_clear": in_clear,
            "total": total,
            "people": count,
            "implausible": "; ".join(flags.get(number, [])),
        }
        for number, (label, noises, in_clear, total, count) in enumerate(rows)
    ]


def _document(sketches: "al.Sketches") -> dict[str, Any]:
    # of each item group; the people behind them are in the rows
    margins = None if sketches.margins is None else sketches.margins.T.tolist()
    return {
        "rows": _rows(sketches),
        "sketch_dim": sketches.values.shape[1],
        "space": sketches.space,
        **({} if margins is None else {"margins": dict(zip(sketches.margin_names, margins, strict=False))}),
        "card": release_card(sketches.releases, in_clear=any(sketches.in_clear)),
    }


def _page(name: str, sketches: "al.Sketches") -> str:
    document = _document(sketches)
    has = {"total": sketches.totals is not None, "people": sketches.margins is not None}
    numbers = [name for name, is_there in has.items() if is_there]
    columns = [
        Column.of_labels("label", sketches.labels),
        Column.of_numbers("noises"),
        *map(Column.of_numbers, numbers),
        Column("made of", len("data in the clear: NOT PRIVATE")),
    ]
    table, flagged = [], []
    for row in document["rows"]:
        source = "a release" if row["noises"] == 1 else "a combination of releases"
        source = "data in the clear: NOT PRIVATE" if row["in_clear"] else source
        cells = [f"{row[name]:g}" for name in numbers]
        table.append(line(columns, [row["label"], str(row["noises"]), *cells, source]))
        if row["implausible"]:
            flagged.append(paragraph(f"IMPLAUSIBLE: {row['label']}: {row['implausible']}"))
    title = (
        f"{printable(name)}: {plural(len(sketches), 'row')} of {plural(document['sketch_dim'], 'number')}, "
        f"{sketches.transform.name}{_with(totals=has['total'], margins=has['people'])}"
    )
    words = _card_paragraphs(document["card"])
    lines = [title, f"space {document['space']}", "", *words, "", heading(columns), *table]
    if document.get("margins"):
        lines += ["", *_margin_lines(sketches.span(0, _MOST_PARTIES), document["margins"], len(sketches))]
    if flagged:
        meaning = "These rows were not released as their protocol says. Their own distances mean nothing; distances between the others are not affected."
        lines += ["", *_at_most(_MOST_FLAGGED, flagged), "", paragraph(meaning)]
    return "\n".join(lines)


def _margin_lines(sketches: "al.Sketches", margins: dict[str, list[float]], rows: int) -> list[str]:
    """How many people of the first rows have an item in each item group, and how large the noise of one number is."""
    variances = [
        sum(
            times**2 * protocol.margin_law.second_moment
            for protocol, times in sketches.noises.terms(row)
            if protocol.margin_law is not None
        )
        for row in range(len(sketches))
    ]
    columns = [
        Column.of_labels("people counted with an item in", margins),
        *(
            Column.of_labels(shortened(label, LONGEST_LABEL), ["±100,000"], is_number=True)
            for label in sketches.labels
        ),
    ]
    table = [
        line(columns, [name, *(f"{count:,.0f}" for count in counts[: len(sketches)])])
        for name, counts in margins.items()
    ]
    table = _at_most(_MOST_ITEM_GROUPS, table, "item group")
    noise = line(columns, ["noise of each number", *(f"±{2 * each**0.5:.0f}" for each in variances)])
    others = (
        f"; {plural(rows - len(sketches), 'row')} more: --format json has all" if rows > len(sketches) else ""
    )
    return [heading(columns), *table, noise, f"± is two standard deviations{others}"]


def _card_paragraphs(card: dict[str, Any]) -> list[str]:
    return [paragraph(each["words"]) for each in ([card] if card["in_clear"] else card["releases"])]


def _at_most(count: int, lines: list[str], noun: str = "") -> list[str]:
    """The first lines, and how many there are beyond them."""
    rest = len(lines) - count
    more = f"{plural(rest, noun)} more; --format json has all" if noun else f"{rest} more"
    return [*lines[:count], f"… and {more}"] if rest > 0 else lines


@click.command(
    epilog="""\b
Examples:
  armslength card sketches.parquet
  armslength card protocol.json                       before anything is released
  armslength card sketches.parquet --format json -o card.json
  armslength card sketches.parquet --format markdown -o card.md
"""
)
@click.argument("file", type=LocalPath(exists=True))
@choice("--format", "form", values=["text", "markdown", "json"])
@click.option("--output", "-o", type=LocalPath(dir_okay=False), help="Write it to this file.")
@OVERWRITE
@NO_WORK_LIMIT
def card(file: str, form: str, output: str | None, overwrite: bool) -> None:
    """Print the release card: who is protected, what can be learned at most, how, and what adds up.

    FILE is a sketch file, a folder of them, or a protocol (.json). No number on the card depends on the data.
    """
    check_new_file(output, overwrite=overwrite, read=[file])
    releases: tuple[tuple[al.Protocol, str], ...]
    if Path(file).suffix == ".json":
        releases, in_clear = ((al.Protocol.load(file, **work_limit()), UNKNOWN),), False
    else:
        sketches = al.load(file, **work_limit())
        releases, in_clear = sketches.releases, any(sketches.in_clear)
    document = release_card(releases, in_clear=in_clear, page=True)
    text = as_json(document) if form == "json" else _card_text(document, is_markdown=form == "markdown")
    if output is None:
        click.echo(text)
    else:
        with atomic_write(output) as target:
            target.write(f"{text}\n".encode())


def _card_text(document: dict[str, Any], *, is_markdown: bool) -> str:
    def title(text: str) -> str:
        return f"# {text}" if is_markdown else text.upper()

    parts = [title("Release card")]
    if document["in_clear"]:
        return "\n\n".join([*parts, document["words"]])
    releases = document["releases"]
    for number, release in enumerate(releases, 1):
        if len(releases) > 1:
            parts.append(title(f"Release {number} of {len(releases)}"))
        for name, words in release["page"].items():
            indented = textwrap.indent(paragraph(words), "  ")
            parts.append(f"## {name}\n\n{words}" if is_markdown else f"{name}\n{indented}")
    return "\n\n".join(parts)


@click.command(
    epilog="""\b
Examples:
  armslength verify sketches.parquet
  armslength verify north.parquet south.parquet --protocol protocol.json     as it was agreed on?
  armslength verify sketches.parquet --ledger ledger.sqlite                  and was it charged?
"""
)
@sketch_files
@click.option("--protocol", "protocol_file", type=EXISTING_FILE, help="The protocol that was agreed on.")
@click.option(
    "--ledger",
    type=EXISTING_FILE,
    help="The ledger of the party that released the files: it must have a line for each.",
)
@choice("--format", "form", values=["table", "json"])
@click.pass_context
def verify(
    ctx: click.Context, files: tuple[str, ...], protocol_file: str | None, ledger: str | None, form: str
) -> None:
    """Recheck sketch files that you received: was anything edited, and is the noise enough for the guarantee?

    It recomputes the digests of all rows, columns of the matrix, sensitivity, noise scale, guarantee and release card, and flags
    rows whose numbers are implausible for the declared noise. No file can prove that the noise was really added.

    Exit code 5: something failed.
    """
    protocol = None if protocol_file is None else al.Protocol.load(protocol_file, **work_limit())
    results = [
        al.verify(path, protocol=protocol, ledger=ledger, **work_limit())
        for name in files
        for path in list_files(name)
    ]
    if form == "json":
        click.echo(as_json([result.document() for result in results]))
    else:
        for result in results:
            click.echo(result.path)
            for check in result.checks:
                state = check.state.upper() if check.state == FAILS else check.state
                first = f"  {state:<12} {check.subject + ':':<12} "
                click.echo(
                    textwrap.fill(check.words, TEXT_WIDTH, initial_indent=first, subsequent_indent=" " * 28)
                )
    failing = sum(not result.holds for result in results)
    if failing:
        click.echo(f"armslength: {failing} of {len(results)} files failed verification", err=True)
        ctx.exit(INCOMPATIBLE)


@click.command(
    "sum",
    epilog="""\b
Examples:
  armslength sum wards.parquet --label hospital -o hospital.parquet          all rows make one
  armslength sum january.parquet february.parquet --by-label -o both.parquet rows of the same name make one
""",
)
@sketch_files
@click.option("--label", help="The name of the one row that is the sum of all rows.")
@click.option(
    "--by-label",
    is_flag=True,
    help="Or: add rows that have the same label, one of each file, and keep the labels.",
)
@OVERWRITE
@click.option("-o", "--output", required=True, type=FILE, help="The sketch file to write.")
def add(files: tuple[str, ...], label: str | None, by_label: bool, overwrite: bool, output: str) -> None:
    """Add sketches: the sum is the sketch of the added data, with the noise of all of them.

    It costs no privacy. A person in several rows counts in each, and spent ε in each.
    """
    if (label is None) != by_label:
        raise click.UsageError("either --label or --by-label must be given, and not both")

    paths = [path for name in files for path in list_files(name)]
    check_new_file(output, overwrite=overwrite, read=map(str, paths))
    parts = [al.load(path, **work_limit()) for path in paths]
    ids = [noise for part in parts for noise in part.noises.ids.tolist()]
    if len(set(ids)) != len(ids):  # its data and its noise would count twice
        raise click.UsageError("each release must be added once, got one that is in several rows or files")
    added = _by_label(parts) if label is None else sum_rows(al.concat(parts), label)
    added.save(output)
    rows = plural(len(added), "row")
    click.echo(f"{rows} written to {output}, with the noise of all the rows that were added")
    if any(added.in_clear):
        named = ", ".join(label for label, clear in zip(added.labels, added.in_clear, strict=True) if clear)
        click.echo(
            f"NOT PRIVATE: data in the clear went into {printable(named)}; the file must not be published"
        )


def _by_label(parts: "list[al.Sketches]") -> "al.Sketches":
    labels = parts[0].labels
    for part in parts:
        if sorted(part.labels) != sorted(labels) or len(set(part.labels)) != len(part):
            raise al.ParameterError(
                "labels must be the same in every file, each once, got others; use --label"
            )
    return al.concat([sum_rows(al.concat([part[label] for part in parts]), label) for label in labels])
