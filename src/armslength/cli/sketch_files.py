"""Sketch files: `armslength inspect`, `card`, `verify` and `sum`."""

import textwrap
from pathlib import Path
from typing import Any

import click
import numpy as np

import armslength as al
from armslength.cli.exit_codes import INCOMPATIBLE
from armslength.cli.options import (
    EXISTING_FILE,
    FILE,
    FORMAT,
    NO_WORK_LIMIT,
    OVERWRITE,
    TABLE_OR_JSON,
    LocalPath,
    check_new_file,
    choice,
    flag,
    opened_files,
    option,
    sketch_files,
    work_limit,
)
from armslength.cli.output import TEXT_WIDTH, as_csv, as_json, at_most, echo_notes, paragraph
from armslength.errors import plural, printable
from armslength.files import atomic_write
from armslength.results import LONGEST_LABEL, Column, heading, line, shortened, table_lines
from armslength.sketches.card import release_card
from armslength.sketches.misfits import listed, misfits, repeated_label
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
def inspect(files: tuple[str, ...], output_format: str) -> None:
    """Show what sketch files hold: rows, sizes, protocols, and the guarantee in words.

    With a folder, all files are shown as one collection: files and row counts, not each row. Rows are flagged as implausible if
    the noise that their protocol declares would hardly ever give such numbers (one call in 10^9). Unless rows are in the clear,
    everything here is public: the file holds no count of people without noise, no hash of data and no time.
    """
    if any(Path(name).is_dir() for name in files):
        click.echo(_collection_listing(files, output_format))
        return
    loaded = {name: al.load(name, **work_limit()) for name in files}
    documents = {name: _document(sketches) for name, sketches in loaded.items()}
    if output_format == "json":
        click.echo(as_json([{"file": name, **document} for name, document in documents.items()]))
    elif output_format == "csv":
        rows = [{"file": name, **row} for name, document in documents.items() for row in document["rows"]]
        click.echo(as_csv(rows))
    else:
        click.echo("\n\n".join(_page(name, loaded[name], document) for name, document in documents.items()))


def _collection_listing(paths: tuple[str, ...], output_format: str) -> str:
    """The files of a collection: a table of the first of them, or all of them as "json" or "csv"."""
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
    if output_format == "csv":
        return as_csv(files)
    card = release_card(collection.releases, in_clear=any(file["in_clear"] for file in files))
    if output_format == "json":
        facts = {"sketch_dim": collection.transform.sketch_dim, "space": collection.space, "card": card}
        return as_json({"rows": len(collection), **facts, "files": files})
    rows = [
        {
            "file": shortened(printable(file["file"]), 2 * LONGEST_LABEL),
            "rows": f"{file['rows']:,}",
            "row groups": f"{file['row_groups']:,}",
            "bytes": f"{file['bytes']:,}",
            "": "NOT PRIVATE" if file["in_clear"] else "",
        }
        for file in files
    ]
    first_line, *lines = table_lines(rows, ("file", ""))
    title = f"{printable(', '.join(paths))}: {plural(len(files), 'file')}, {_contents(collection)}"
    return "\n".join(
        [
            f"{title}, {sum(file['bytes'] for file in files):,} bytes",
            f"space {collection.space}",
            "",
            *at_most(_MOST_PROTOCOLS, _card_paragraphs(card), "protocol"),
            "",
            first_line,
            *at_most(_MOST_FILES, lines, "file"),
        ]
    )


def _contents(source: "al.Sketches | al.Collection") -> str:
    """How many rows there are, and what they have beside their sketches."""
    if isinstance(source, al.Sketches):
        totals, margins = source.totals is not None, source.margins is not None
    else:
        totals, margins = source.has_totals, source.has_margins
    sizes = f"{plural(len(source), 'row')} of {plural(source.transform.sketch_dim, 'number')}"
    return f"{sizes}, {source.transform.name}{', with totals' * totals}{', with margins' * margins}"


def _document(sketches: "al.Sketches") -> dict[str, Any]:
    """All that a file says of its rows, and its card. Margins are by item group; the people behind them are in the rows."""
    missing = [None] * len(sketches)
    flags: dict[int, list[str]] = {}
    for finding in al.implausible(sketches):
        flags.setdefault(finding.row, []).append(finding.reason)
    columns = {
        "label": sketches.labels,
        "noises": np.diff(sketches.noises.starts).tolist(),
        "in_clear": sketches.in_clear,
        "total": missing if sketches.totals is None else sketches.totals.tolist(),
        "people": missing if sketches.margins is None else sketches.margins[:, -1].tolist(),
        "implausible": ["; ".join(flags.get(row, [])) for row in range(len(sketches))],
    }
    document = {
        "rows": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "sketch_dim": sketches.values.shape[1],
        "space": sketches.space,
    }
    if sketches.margins is not None:
        document["margins"] = dict(zip(sketches.margin_names, sketches.margins.T.tolist(), strict=False))
    return document | {"card": release_card(sketches.releases, in_clear=any(sketches.in_clear))}


def _page(name: str, sketches: "al.Sketches", document: dict[str, Any]) -> str:
    rows = []
    for row in document["rows"]:
        numbers = {key: f"{row[key]:g}" for key in ("noises", "total", "people") if row[key] is not None}
        source = "a release" if row["noises"] == 1 else "a combination of releases"
        source = "data in the clear: NOT PRIVATE" if row["in_clear"] else source
        rows.append({"label": shortened(row["label"], LONGEST_LABEL), **numbers, "made of": source})
    lines = [
        f"{printable(name)}: {_contents(sketches)}",
        f"space {sketches.space}",
        "",
        *_card_paragraphs(document["card"]),
        "",
        *table_lines(rows, ("label", "made of")),
    ]
    if sketches.margins is not None:
        lines += ["", *_margin_lines(sketches.span(0, _MOST_PARTIES), document["margins"], len(sketches))]
    flagged = [
        paragraph(f"IMPLAUSIBLE: {row['label']}: {row['implausible']}")
        for row in document["rows"]
        if row["implausible"]
    ]
    if flagged:
        meaning = "Do not rely on distances of these rows; distances between the others are not affected."
        lines += ["", *at_most(_MOST_FLAGGED, flagged, "row"), "", paragraph(meaning)]
    return "\n".join(lines)


def _margin_lines(sketches: "al.Sketches", margins: dict[str, list[float]], count: int) -> list[str]:
    """How many people of the first rows have an item in each item group, and how large the noise of one number is."""
    noises = [
        sum(
            times**2 * protocol.margin_law.second_moment
            for protocol, times in sketches.noises.terms(row)
            if protocol.margin_law is not None
        )
        ** 0.5
        for row in range(len(sketches))
    ]
    headings = ["people counted with an item in", *(shortened(x, LONGEST_LABEL) for x in sketches.labels)]
    cells = [[name, *(f"{number:,.0f}" for number in counts)] for name, counts in margins.items()]
    cells.append(["noise of each number", *(f"±{2 * noise:.0f}" for noise in noises)])
    columns = [
        Column.of_labels(heading, column, is_number=number > 0)
        for number, (heading, *column) in enumerate(zip(headings, *cells, strict=False))
    ]
    *table, noise_line = (line(columns, row[: len(columns)]) for row in cells)
    more = count - len(sketches)
    others = f"; {plural(more, 'row')} more: --format json has all" if more else ""
    table = at_most(_MOST_ITEM_GROUPS, table, "item group")
    return [heading(columns), *table, noise_line, f"± is two standard deviations{others}"]


def _card_paragraphs(card: dict[str, Any]) -> list[str]:
    return [paragraph(part["words"]) for part in ([card] if card["in_clear"] else card["releases"])]


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
@choice("--format output_format", ["text", "markdown", "json"])
@option("--output -o", "Write it to this file.", type=LocalPath(dir_okay=False))
@OVERWRITE
@NO_WORK_LIMIT
def card(file: str, output_format: str, output: str | None, overwrite: bool) -> None:
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
    text = as_json(document) if output_format == "json" else _card_text(document, output_format)
    if output is None:
        click.echo(text)
    else:
        with atomic_write(output) as target:
            target.write(f"{text}\n".encode())


def _card_text(document: dict[str, Any], output_format: str) -> str:
    is_markdown = output_format == "markdown"
    releases = document.get("releases", [])
    parts = [("# Release card" if is_markdown else "RELEASE CARD")]
    parts += [document["words"]] if document["in_clear"] else []
    for number, release in enumerate(releases, 1):
        if len(releases) > 1:
            title = f"Release {number} of {len(releases)}"
            parts.append(f"# {title}" if is_markdown else title.upper())
        for title, text in release["page"].items():
            indented = textwrap.indent(paragraph(text), "  ")
            parts.append(f"## {title}\n\n{text}" if is_markdown else f"{title}\n{indented}")
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
@option("--protocol protocol_file", "The protocol that was agreed on.", type=EXISTING_FILE)
@option("--ledger", "The ledger of the party that released them: it has a line for each.", type=EXISTING_FILE)
@TABLE_OR_JSON
def verify(files: tuple[str, ...], protocol_file: str | None, ledger: str | None, output_format: str) -> None:
    """Recheck sketch files that you received: are they whole, and is the declared noise enough for the guarantee?

    It recomputes the digests of all rows, columns of the matrix, sensitivity, guarantee and release card, and flags rows whose
    numbers are implausible for the declared noise. A forger can recompute the digests. No file can prove that the noise was really
    added, or kept secret.

    Exit code 5: something failed.
    """
    protocol = None if protocol_file is None else al.Protocol.load(protocol_file, **work_limit())
    paths = [path for name in files for path in list_files(name)]
    results = [al.verify(path, protocol=protocol, ledger=ledger, **work_limit()) for path in paths]
    if output_format == "json":
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
    holding = sum(result.holds for result in results)
    if output_format == "table":
        click.echo(f"{holding} of {len(results)} hold")
    readable = [path for path, result in zip(paths, results, strict=True) if result.checks[0].state != FAILS]
    if readable:
        sources = [file.source for file in opened_files(readable)]
        found = [misfit if misfit.is_comparable else misfit.problem for misfit in misfits(sources)]
        echo_notes(*listed(found), repeated_label(sources))
    if holding < len(results):
        click.get_current_context().exit(INCOMPATIBLE)


@click.command(
    "sum",
    epilog="""\b
Examples:
  armslength sum wards.parquet --label hospital -o hospital.parquet          all rows make one
  armslength sum january.parquet february.parquet --by-label -o both.parquet rows of the same name make one
""",
)
@sketch_files
@option("--label", "The name of the one row that is the sum of all rows.")
@flag("--by-label", "Or: add rows that have the same label, one of each file, and keep the labels.")
@OVERWRITE
@option("-o --output", "The sketch file to write.", required=True, type=FILE)
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
