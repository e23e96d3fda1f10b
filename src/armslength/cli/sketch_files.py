"""Sketch files: `armslength show` and `verify`."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import armslength as al
from armslength.cli.exit_codes import INCOMPATIBLE
from armslength.cli.options import (
    CSV_HELP,
    EXISTING_FILE,
    OVERWRITE,
    TABLE_OR_JSON,
    LocalPath,
    check_new_file,
    choice,
    flag,
    option,
    sketch_files,
)
from armslength.cli.output import TEXT_WIDTH, as_csv, as_json, at_most, echo_notes, paragraph
from armslength.cli.protocol import description
from armslength.errors import plural, printable
from armslength.files import atomic_write
from armslength.protocol.neighbors import VOTE
from armslength.results import LONGEST_LABEL, Column, heading, line, shortened, table_lines
from armslength.sketches.card import release_card
from armslength.sketches.misfits import listed, misfits, repeated_label
from armslength.sketches.noises import UNKNOWN
from armslength.sketches.plausibility import implausible
from armslength.sketches.sketch_file import list_files, read_files
from armslength.sketches.verify import FAILS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MISSING, _UNDERCOUNT_UNIT = "missing in each, at most", 4  # margins hold four times as much
_MOST_FLAGGED, _MOST_ITEM_GROUPS, _MOST_PARTIES = 10, 30, 5  # in the table


@click.command(
    epilog="""\b
Examples:
  armslength show sketches.parquet                             rows, sizes, and the guarantee
  armslength show sketches/ --format csv                       one line for each row of all files
  armslength show protocol.json                                what all parties agreed on
  armslength show sketches.parquet --card                      the release card, for a data-protection officer
  armslength show protocol.json --card -o card.md --format markdown
"""
)
@sketch_files
@flag("--card", "The release card: who is protected, what can be learned at most, how, and what adds up.")
@choice("--format output_format", ["table", "json", "csv", "markdown"], f"{CSV_HELP} markdown is for cards.")
@option("--output -o", "Write it to this file.", type=LocalPath(dir_okay=False))
@OVERWRITE
def show(
    files: tuple[str, ...], *, card: bool, output_format: str, output: str | None, overwrite: bool
) -> None:
    """Show what sketch files or protocols (.json) hold, and what they guarantee.

    Of sketch files: rows, sizes, protocols, and the guarantee in words. Rows are flagged as implausible if the noise that their
    protocol declares would hardly ever give such numbers (one call in 10^9). Unless rows are in the clear, everything here is public:
    the file holds no count of people without noise, no hash of data and no time. No number on a card depends on the data.
    """
    paths = [str(path) for name in files for path in list_files(name)]
    check_new_file(output, overwrite=overwrite, read=paths)
    loaded = {path: al.Protocol.load(path) if _is_protocol(path) else al.load(path) for path in paths}
    if output_format == "csv" and (card or any(map(_is_protocol, paths))):
        raise click.UsageError("--format csv lists rows of sketch files; a card or a protocol has none")
    if output_format == "markdown" and not card:
        raise click.UsageError("--format markdown is for cards; add --card")
    documents = {path: (_card if card else _document)(one) for path, one in loaded.items()}
    if output_format == "json":
        text = as_json([{"file": path, **document} for path, document in documents.items()])
    elif output_format == "csv":
        text = as_csv(
            [{"file": path, **row} for path, document in documents.items() for row in document["rows"]]
        )
    else:
        pages = (
            _card_text(path if len(paths) > 1 else "", document, output_format)
            if card
            else _page(path, loaded[path], document)
            for path, document in documents.items()
        )
        text = "\n\n".join(pages)
    if output is None:
        click.echo(text)
    else:
        with atomic_write(output) as target:
            target.write(f"{text}\n".encode())


def _is_protocol(path: str) -> bool:
    return Path(path).suffix == ".json"


def _contents(sketches: "al.Sketches") -> str:
    """How many rows there are, and what they have beside their sketches."""
    votes, margins = sketches.spread is not None, sketches.margins is not None
    totals = sketches.totals is not None and not votes
    sizes = f"{plural(len(sketches), 'row')} of {plural(sketches.transform.sketch_dim, 'number')}"
    return f"{sizes}, {sketches.transform.name}{', with totals' * totals}{', with people' * votes}{', with margins' * margins}"


def _document(sketches: "al.Sketches | al.Protocol") -> dict[str, Any]:
    """All that a file says of its rows, and its card. Margins are people, by item group, with how many are missing at most."""
    if isinstance(sketches, al.Protocol):
        return {**sketches.document(), "fingerprint": sketches.fingerprint, "space": sketches.space}
    missing = [None] * len(sketches)
    flags: dict[int, list[str]] = {}
    for finding in implausible(sketches):
        flags.setdefault(finding.row, []).append(finding.reason)
    columns = {
        "label": sketches.labels,
        "noises": np.diff(sketches.noises.starts).tolist(),
        "in_clear": sketches.in_clear,
        "total": missing
        if sketches.totals is None or sketches.spread is not None
        else sketches.totals.tolist(),
        "people": missing if sketches.totals is None or sketches.spread is None else _people(sketches.totals),
        "implausible": ["; ".join(flags.get(row, [])) for row in range(len(sketches))],
    }
    document = {
        "rows": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "sketch_dim": sketches.values.shape[1],
        "space": sketches.space,
    }
    if sketches.margins is not None:
        *counts, undercount = sketches.margins.T
        document["margins"] = dict(zip(sketches.margin_names, map(_people, counts), strict=True))
        document["missing"] = _people(undercount / _UNDERCOUNT_UNIT)
    return document | {"card": release_card(sketches.releases, in_clear=any(sketches.in_clear))}


def _people(units: "NDArray[Any]") -> list[float]:
    """Grid units of a vote as people."""
    people: list[float] = np.round(units / VOTE, 3).tolist()
    return people


def _page(name: str, sketches: "al.Sketches | al.Protocol", document: dict[str, Any]) -> str:
    if isinstance(sketches, al.Protocol):
        return description(sketches)
    rows = []
    for row in document["rows"]:
        formats = {"noises": "g", "total": "g", "people": ",.0f"}
        numbers = {key: format(row[key], style) for key, style in formats.items() if row[key] is not None}
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
        margins = {**document["margins"], _MISSING: document["missing"]}
        lines += ["", *_margin_lines(sketches.span(0, _MOST_PARTIES), margins, len(sketches))]
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
        / VOTE
        for row in range(len(sketches))
    ]
    headings = ["people with an item in", *(shortened(x, LONGEST_LABEL) for x in sketches.labels)]
    cells = [[name, *(f"{number:,.0f}" for number in counts)] for name, counts in margins.items()]
    cells.append(["noise of each number", *(f"±{2 * noise:.0f}" for noise in noises)])
    columns = [
        Column.of_labels(heading, column, is_number=number > 0)
        for number, (heading, *column) in enumerate(zip(headings, *cells, strict=False))
    ]
    *table, missing_line, noise_line = (line(columns, row[: len(columns)]) for row in cells)
    more = count - len(sketches)
    others = f"; {plural(more, 'row')} more: --format json has all" if more else ""
    table = at_most(_MOST_ITEM_GROUPS, table, "item group")
    return [heading(columns), *table, missing_line, noise_line, f"± is two standard deviations{others}"]


def _card_paragraphs(card: dict[str, Any]) -> list[str]:
    return [paragraph(part["words"]) for part in ([card] if card["in_clear"] else card["releases"])]


def _card(sketches: "al.Sketches | al.Protocol") -> dict[str, Any]:
    if isinstance(sketches, al.Protocol):
        return release_card(((sketches, UNKNOWN),), in_clear=False, page=True)
    return release_card(sketches.releases, in_clear=any(sketches.in_clear), page=True)


def _card_text(name: str, document: dict[str, Any], output_format: str) -> str:
    """The card of a file; with its name, if it has to be told from others."""
    is_markdown = output_format == "markdown"
    releases = document.get("releases", [])
    of = f": {printable(name)}" if name else ""
    parts = [f"# Release card{of}" if is_markdown else f"RELEASE CARD{of}"]
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
    protocol = None if protocol_file is None else al.Protocol.load(protocol_file)
    paths = [path for name in files for path in list_files(name)]
    results = [al.verify(path, protocol=protocol, ledger=ledger) for path in paths]
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
        sources = [file.source for file in read_files("files", readable)]
        found = [misfit if misfit.is_comparable else misfit.problem for misfit in misfits(sources)]
        echo_notes(*listed(found), repeated_label(sources))
    if holding < len(results):
        click.get_current_context().exit(INCOMPATIBLE)
