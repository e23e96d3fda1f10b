"""`armslength compare`: distances between all parties, with intervals, as a stream."""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.explain import rows_with_margins
from armslength.cli.options import answer_options, choice, one_against_others, open_all, party_files
from armslength.cli.output import echo_notes, finite, write_csv
from armslength.errors import plural
from armslength.estimates.shapes import ALIKE
from armslength.results import LONGEST_LABEL, Column, heading, line

if TYPE_CHECKING:
    import pyarrow as pa
FIELDS = ("left", "right", "value", "lower", "upper", "resolved", "in_clear")
_LINES_AT_ONCE = 8192


@click.command(
    epilog="""\b
Examples:
  armslength compare sketches.parquet
  armslength compare north.parquet south.parquet --simultaneous
  armslength compare sketches.parquet --top 20
  armslength compare sketches.parquet --against north --format csv
  armslength compare sketches.parquet --below 40              surely at most 40 apart
  armslength compare sketches.parquet --below 40 --possibly   not surely more than 40 apart
  armslength compare sketches.parquet --above 40              surely more than 40 apart
  armslength compare sketches.parquet --by shape --top 20
  armslength compare sketches/ --top 20                       all files of a folder, a block at a time

"Not resolved": the interval contains 0, so the two may be equal. Memory does not grow with the number of pairs
or of files in a folder; csv and json are written while they are computed.
"""
)
@party_files
@choice(
    "--quantity",
    values=["distance", "squared-distance", "inner-product", "cosine"],
    text="What to estimate. Inner products and cosines have approximate intervals.",
)
@click.option(
    "--fdr",
    is_flag=True,
    help="The level is about false discoveries: of the pairs told apart, 5% are wrong on average at a level of 0.95.",
)
@click.option(
    "--simultaneous", is_flag=True, help="All intervals hold together at the level, not each by itself."
)
@click.option("--against", metavar="LABEL", help="Only this party against all others.")
@click.option("--top", type=int, metavar="N", help="Only the N pairs of the smallest values, smallest first.")
@click.option("--farthest", is_flag=True, help="With --top: those of the largest values, largest first.")
@click.option(
    "--below",
    "--threshold",
    type=float,
    metavar="X",
    help="Only pairs surely at or below X: their upper end is.",
)
@click.option("--above", type=float, metavar="X", help="Only pairs surely above X: their lower end is.")
@click.option(
    "--possibly",
    is_flag=True,
    help="With --below or --above: all pairs but those that are surely on the other side.",
)
@answer_options
def compare(files: tuple[str, ...], against: str | None, form: str, **known: Any) -> None:
    """Distances between all parties in the files, with intervals. A folder stands for all sketch files in it.

    Each pair comes with its estimate, an interval that contains the truth with probability --level, and whether the two
    can be told apart. Comparing costs no privacy, however often you do it.
    """
    sketches = open_all(files, 2)
    left, right = (sketches, None) if against is None else one_against_others(sketches, against)
    reader = al.compare(left, right, show_progress=True, **known)
    first = reader.read_next_batch()  # raises errors before anything is printed
    metadata = {key.decode(): value.decode() for key, value in reader.schema.metadata.items()}
    lines = _lines(first, reader)
    if form == "table":
        farthest = _write_table(lines, (left, left if right is None else right), metadata)
        pairs = len(left) * (len(left) - 1) // 2 if right is None else len(left) * len(right)
        if farthest is not None:
            _write_reasons(sketches, files, farthest, 1 - (1 - float(metadata["level"])) / pairs)
        return
    if form == "csv":
        write_csv(lines, FIELDS, sys.stdout)
    else:
        _write_json(lines)
    echo_notes(metadata["note"])


def _lines(first: "pa.RecordBatch", rest: "Iterable[pa.RecordBatch]") -> Iterator[dict[str, Any]]:
    """Every pair, a few thousand at a time."""
    for batch in chain([first], rest):
        for start in range(0, batch.num_rows, _LINES_AT_ONCE):
            yield from batch.slice(start, _LINES_AT_ONCE).to_pylist()


def _write_json(lines: Iterable[dict[str, Any]]) -> None:
    sys.stdout.write("[")
    separator = "\n "
    for pair in lines:
        sys.stdout.write(separator + json.dumps(finite(pair), ensure_ascii=False))
        separator = ",\n "
    sys.stdout.write("\n]\n")


_QUESTIONS = (
    "How far apart are the mixes of the people counted?",
    "Do the populations differ in their mix, beyond chance?",
)


def _write_table(
    lines: Iterable[dict[str, Any]],
    sides: "tuple[al.Sketches | al.Collection, ...]",
    metadata: dict[str, str],
) -> tuple[str, str, str] | None:
    """Prints all pairs; returns the one that is surely farthest apart, if one is, and how far that surely is."""
    columns = [
        *(
            # The labels of a collection are not known before.
            Column.of_labels(name, side.labels)
            if isinstance(side, al.Sketches)
            else Column(name, LONGEST_LABEL)
            for name, side in zip(("left", "right"), sides, strict=True)
        ),
        *map(Column.of_numbers, (metadata["quantity"], "from", "to")),
        Column("", len("not resolved")),
    ]
    if metadata["by"] == "shape":
        question = _QUESTIONS[metadata["beyond_chance"] == "true"]
        click.echo(f"{question}\n")
    sys.stdout.write(f"{heading(columns)}\n")
    count = resolved = 0
    farthest, most = None, 0.0
    is_cosine = metadata["quantity"] == "cosine"
    for pair in lines:
        state = "" if pair["resolved"] or is_cosine else "not resolved"
        if is_cosine and pair["lower"] >= ALIKE:
            state = "alike"
        sys.stdout.write(f"{line(columns, [*(pair[name] for name in FIELDS[:5]), state])}\n")
        count += 1
        resolved += pair["resolved"]
        apart = ALIKE - pair["upper"] if is_cosine else pair["lower"]  # a cosine is far where it is small
        if apart > most:
            sure = (
                f"at most {pair['upper']:.2g} alike" if is_cosine else f"at least {pair['lower']:.3g} apart"
            )
            farthest, most = (pair["left"], pair["right"], sure), apart
    percent = f"{100 * float(metadata['level']):.6g}%"
    together = "together" if metadata["simultaneous"] == "true" else "for each pair by itself"
    if metadata["fdr"] == "true":
        together = "on average over the pairs told apart (false discovery rate)"
    differ = "" if metadata["quantity"] in ("cosine", "inner-product") else f", of which {resolved:,} differ"
    click.echo(f"{plural(count, 'pair')}{differ}; intervals hold at {percent}, {together}")
    if metadata["note"]:
        click.echo(metadata["note"])
    return None if metadata["quantity"] == "inner-product" else farthest


def _write_reasons(
    sketches: "al.Sketches | al.Collection",
    files: tuple[str, ...],
    farthest: tuple[str, str, str],
    level: float,
) -> None:
    """In what the farthest pair differs, if its releases have margins; the level is for all pairs, among which it was chosen."""
    *pair, sure = farthest
    rows = rows_with_margins(sketches, files, pair)
    if rows is None:
        return
    begin = f"Surely farthest of these: {pair[0]} and {pair[1]}, {sure}"
    if not set(pair) <= set(rows.labels):
        click.echo(f"{begin}; not both were released with these margins")
        return
    try:
        reasons = ", ".join(al.explain(rows[pair[0]], rows[pair[1]], level=level).reasons())
        unsure = "in what is not sure for all pairs together; for these two alone"
        words = f"{pair[1]} has {reasons}" if reasons else unsure
    except al.NotResolvableError:
        words = "too few people to say in what"
    except al.ArmslengthError:  # they share a release
        return
    click.echo(f"{begin}; {words}: armslength explain {shlex.join((*files, *pair))}")
