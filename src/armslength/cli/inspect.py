"""`armslength inspect`: show what a sketch file holds, and its guarantee."""

from pathlib import Path
from typing import Any

import click

import armslength as al
from armslength.cli.options import sketch_files, work_limit
from armslength.cli.output import FORMAT, as_csv, as_json, paragraph
from armslength.errors import plural, printable
from armslength.results import LONGEST_LABEL, Column, heading, line
from armslength.sketches.card import release_card

_MOST_FILES, _MOST_PROTOCOLS = 20, 2  # in the table


def collection_listing(paths: tuple[str, ...], form: str) -> str:
    """The files of a collection as a "table" of the first of them, or all of them as "json" or "csv"."""
    collection = al.open_collection(paths, **work_limit())
    files: list[dict[str, Any]] = [
        {
            "file": file.path,
            "rows": file.rows,
            "row_groups": len(file.group_rows),
            "bytes": file.size,
            "in_clear": any(any(file.in_clear(group)) for group in range(len(file.group_rows))),
        }
        for file in collection.files
    ]
    if form == "csv":
        return as_csv([{**file, "file": printable(file["file"])} for file in files])
    card = release_card(collection.releases, in_clear=any(file["in_clear"] for file in files))
    if form == "json":
        known = {"rows": len(collection), "sketch_dim": collection.transform.sketch_dim}
        return as_json({**known, "space": collection.space, "card": card, "files": files})
    return _collection_page(printable(", ".join(paths)), collection, card, files)


def _collection_page(
    name: str, collection: "al.Collection", card: dict[str, Any], files: list[dict[str, Any]]
) -> str:

    words = [card["words"]] if card["in_clear"] else [release["words"] for release in card["releases"]]
    columns = [
        Column("file", 2 * LONGEST_LABEL),
        *(Column.of_numbers(heading) for heading in ("rows", "row groups", "bytes")),
        Column("", len("NOT PRIVATE")),
    ]
    table = [
        line(
            columns,
            [
                printable(file["file"]),
                *(str(file[key]) for key in ("rows", "row_groups", "bytes")),
                "NOT PRIVATE" if file["in_clear"] else "",
            ],
        )
        for file in files
    ]
    return "\n".join(
        [
            (
                f"{name}: {plural(len(files), 'file')}, {plural(len(collection), 'row')} of {collection.transform.sketch_dim}"
                f" numbers, {collection.transform.name}{', with totals' if collection.has_totals else ''},"
                f" {sum(file['bytes'] for file in files):,} bytes"
            ),
            f"space {collection.space}",
            "",
            *map(paragraph, words[:_MOST_PROTOCOLS]),
            *_more(len(words) - _MOST_PROTOCOLS, "protocol"),
            "",
            heading(columns),
            *table[:_MOST_FILES],
            *_more(len(table) - _MOST_FILES, "file"),
        ]
    )


def _more(count: int, noun: str) -> list[str]:
    return [f"… and {plural(count, noun)} more; --format json has all"] if count > 0 else []


_MOST_FLAGGED = 10  # in the table


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
    a sketch file holds no count of people, no hash of data and no time.
    """
    if any(Path(name).is_dir() for name in files):
        click.echo(collection_listing(files, form))
        return
    each = [(name, al.load(name, **work_limit())) for name in files]
    if form == "json":
        click.echo(as_json([{"file": name, **_document(sketches)} for name, sketches in each]))
    elif form == "csv":
        rows = [{"file": printable(name), **row} for name, sketches in each for row in _rows(sketches)]
        click.echo(as_csv(rows))
    else:
        click.echo("\n\n".join(_page(name, sketches) for name, sketches in each))


def _rows(sketches: "al.Sketches") -> list[dict[str, Any]]:
    """One line for each row: its label, how many noises are in it, whether data in the clear is, and what is implausible."""
    totals = [None] * len(sketches) if sketches.totals is None else sketches.totals.tolist()
    flags: dict[int, list[str]] = {}
    for finding in al.implausible(sketches):
        flags.setdefault(finding.row, []).append(finding.reason)
    counts = (sketches.noises.starts[1:] - sketches.noises.starts[:-1]).tolist()
    rows = zip(sketches.labels, counts, sketches.in_clear, totals, strict=True)
    return [
        {
            "label": label,
            "noises": noises,
            "in_clear": in_clear,
            "total": total,
            "implausible": "; ".join(flags.get(number, [])),
        }
        for number, (label, noises, in_clear, total) in enumerate(rows)
    ]


def _document(sketches: "al.Sketches") -> dict[str, Any]:

    return {
        "rows": _rows(sketches),
        "sketch_dim": sketches.values.shape[1],
        "space": sketches.space,
        "card": release_card(sketches.releases, in_clear=any(sketches.in_clear)),
    }


def _page(name: str, sketches: "al.Sketches") -> str:

    document = _document(sketches)
    card = document["card"]
    count, width = len(sketches), document["sketch_dim"]
    words = [card["words"]] if card["in_clear"] else [release["words"] for release in card["releases"]]
    columns = [
        Column.of_labels("label", sketches.labels),
        Column.of_numbers("noises"),
        *([Column.of_numbers("total")] if sketches.totals is not None else []),
        Column("made of", len("data in the clear: NOT PRIVATE")),
    ]
    table = [
        line(
            columns,
            [
                row["label"],
                str(row["noises"]),
                *([f"{row['total']:g}"] if sketches.totals is not None else []),
                "data in the clear: NOT PRIVATE"
                if row["in_clear"]
                else "a release"
                if row["noises"] == 1
                else "a combination of releases",
            ],
        )
        for row in document["rows"]
    ]
    facts = [
        (
            f"{printable(name)}: {plural(count, 'row')} of {plural(width, 'number')}, {sketches.transform.name}"
            f"{', with totals' if sketches.totals is not None else ''}"
        ),
        f"space {document['space']}",
    ]
    flagged = [
        paragraph(f"IMPLAUSIBLE: {row['label']}: {row['implausible']}")
        for row in document["rows"]
        if row["implausible"]
    ]
    return "\n".join([*facts, "", *map(paragraph, words), "", heading(columns), *table, *_warned(flagged)])


def _warned(flagged: list[str]) -> list[str]:
    """The warning about implausible rows."""
    if not flagged:
        return []
    meaning = "These rows were not released as their protocol says. Their own distances mean nothing; distances between the others are not affected."
    return [
        "",
        *flagged[:_MOST_FLAGGED],
        *([f"… and {len(flagged) - _MOST_FLAGGED} more"] if len(flagged) > _MOST_FLAGGED else []),
        "",
        paragraph(meaning),
    ]
