"""Questions about all parties: `armslength compare`, `cluster`, `outliers`, `drift`, and `report` with all of them."""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

import armslength as al
from armslength.answers.compare import Comparison
from armslength.answers.explain import explainable
from armslength.cli.options import (
    ABOUT,
    ALIKE,
    EACH,
    FORMAT,
    KEEP,
    LEVEL,
    LocalPath,
    check_new_file,
    chosen_parties,
    flag,
    load_all,
    open_sides,
    option,
    party_files,
)
from armslength.cli.output import echo_notes, echo_result, finite, write_csv

_LINES_AT_ONCE = 8192


@click.command(
    epilog="""\b
Examples:
  armslength compare sketches/                          all files of a folder
  armslength compare north.parquet south.parquet
  armslength compare sketches/ --against north          one party and all others
  armslength compare sketches/ --verdict differ --top 20 --farthest
  armslength compare sketches/ --about counts --alike 40
  armslength compare sketches/ --format csv

"differ": a difference was found. "alike": the similarity is surely at least --alike, even if a difference was found, too.
"inconclusive": neither can be said. With confidence --level all verdicts are true. Comparing costs no privacy.
"""
)
@party_files
@option("--against", "Only this party against all others.", metavar="LABEL")
@option("--verdict", "Only pairs with this verdict.", type=click.Choice(["differ", "alike", "inconclusive"]))
@option("--top", "Only the N nearest pairs, nearest first.", type=int, metavar="N")
@flag("--farthest", "With --top: the farthest pairs, farthest first.")
@ALIKE
@ABOUT
@LEVEL
@EACH
@KEEP
@flag(
    "--fdr", "Of the pairs that are said to differ, at most 5% are wrong on average (false discovery rate)."
)
@FORMAT
def compare(files: tuple[str, ...], against: str | None, output_format: str, **options: Any) -> None:
    """Say of each pair of parties whether they differ, are alike, or neither can be said, and how similar they are.

    A folder stands for all sketch files in it. Memory does not grow with the number of pairs: csv and json are written while they are computed.
    """
    sketches = load_all(files, 2)
    left, right = (sketches, None) if against is None else _one_against_others(sketches, against)
    comparison = al.compare(left, right, show_progress=True, **options)
    if output_format == "table":
        click.echo(str(comparison))
        _echo_explain(comparison, sketches, files)
        return
    if output_format == "csv":
        write_csv(_lines(comparison), comparison.schema.names, sys.stdout)
    else:
        _write_json(_lines(comparison))
    echo_notes(comparison.note)


def _one_against_others(sketches: al.Sketches, label: str) -> tuple[al.Sketches, al.Sketches]:
    """The row of this label, and all others."""
    return sketches[label], sketches.rows(
        [row for row, other in enumerate(sketches.labels) if other != label]
    )


def _lines(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Every pair, a few thousand at a time."""
    for batch in comparison:
        for start in range(0, batch.num_rows, _LINES_AT_ONCE):
            yield from batch.slice(start, _LINES_AT_ONCE).to_pylist()


def _write_json(lines: Iterable[dict[str, Any]]) -> None:
    sys.stdout.write("[")
    separator = "\n "
    for pair in lines:
        sys.stdout.write(separator + json.dumps(finite(pair), ensure_ascii=False))
        separator = ",\n "
    sys.stdout.write("\n]\n")


def _echo_explain(comparison: Comparison, sketches: al.Sketches, files: tuple[str, ...]) -> None:
    """How to ask what sets the most different pair apart, if item groups can tell."""
    pair = comparison.most_different()
    if pair is not None and explainable(sketches[list(pair)]).all():
        click.echo(
            f"What sets {pair[0]} and {pair[1]} apart: armslength explain {shlex.join((*files, *pair))}"
        )


@click.command(
    epilog="""\b
Examples:
  armslength cluster sketches/
  armslength cluster sketches/ --format csv

Parties are joined at the average distance between them, but never two groups with parties that differ. Parties of two groups can be alike,
too, unless it says that they differ. What sets a group apart: armslength explain sketches/ --with a --with b. For more than 5,000 rows, use
scikit-learn on the values of the sketches.
"""
)
@party_files
@ALIKE
@ABOUT
@LEVEL
@KEEP
@FORMAT
def cluster(files: tuple[str, ...], output_format: str, **options: Any) -> None:
    """Group the parties, so that no two of a group differ.

    With confidence --level all pairs that are said to differ do.
    """
    tree = al.cluster(load_all(files, 2), **options)
    echo_result(tree, output_format, tree.note)


@click.command(
    epilog="""\b
Examples:
  armslength outliers sketches/
  armslength outliers sketches/ --factor 2

Each party is compared with the typical party: the average of the others, none weighing more than the median party. An outlier is
farther from it than --factor times what is usual for a party. With confidence --level, no party is wrongly called an outlier.
"""
)
@party_files
@option("--factor", "How many times the usual distance makes an outlier.", default=1.5)
@ALIKE
@ABOUT
@LEVEL
@KEEP
@FORMAT
def outliers(files: tuple[str, ...], output_format: str, **options: Any) -> None:
    """Find the parties that are unlike the others, and what sets them apart."""
    result = al.outliers(load_all(files, 3), **options)
    echo_result(result, output_format, result.note)


@click.command(
    epilog="""\b
Examples:
  armslength drift march.parquet april.parquet
  armslength drift march.parquet april.parquet --format csv

Parties are matched by label; those that are only in one release are listed. With confidence --level, every party that is said to differ has changed.
"""
)
@click.argument("before", type=LocalPath(exists=True))
@click.argument("after", type=LocalPath(exists=True))
@chosen_parties
@ALIKE
@ABOUT
@LEVEL
@EACH
@FORMAT
def drift(before: str, after: str, output_format: str, **options: Any) -> None:
    """What changed from one release to the next, party by party.

    The second release cost its own ε. Comparing the two costs nothing.
    """
    first, second = open_sides((before,), (after,), is_matched=True)
    result = al.drift(first, second, **options)
    missing = (("before", result.only_before), ("after", result.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    echo_result(result, output_format, *only, result.note)


@click.command(
    epilog="""\b
Examples:
  armslength report sketches/
  armslength report north.parquet south.parquet -o report.html --title "Two wards, one winter"

The page opens in any browser, without a network; it prints, and most of it can be read without JavaScript.
"""
)
@party_files
@option("-o --output", "Where the page goes.", default="report.html", type=LocalPath())
@option("--title", "The heading; by default it says how many parties there are.")
@ALIKE
@ABOUT
@LEVEL
@EACH
@KEEP
def report(files: tuple[str, ...], output: str, **options: Any) -> None:
    """Write one offline page with all answers about the sketches.

    It begins with the main finding and one line for each party, and has groups, a map, what sets parties apart, the privacy statement
    and the release cards. It loads nothing from the network.
    """
    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"the output must be a page that ends in .html, got {output}")
    check_new_file(output, overwrite=True, read=files)
    al.report(load_all(files), output, **options)
    click.echo(f"the report is in {output}")
