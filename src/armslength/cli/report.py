"""`armslength report`: one offline page about sketches. It costs no privacy."""

from typing import Any

import click

import armslength as al
from armslength.cli.explain import parts_with_margins
from armslength.cli.options import LEVEL, LocalPath, check_new_file, load_all, option, party_files


@click.command(
    epilog="""\b
Examples:
  armslength report sketches.parquet -o report.html
  armslength report north.parquet south.parquet -o report.html --title "Two wards, one winter"
  armslength report sketches/ -o report.html                   all files of a folder
  armslength report sketches.parquet -o report.html --level 0.99 --each

The page opens in any browser, without a network; it prints, and most of it can be read without JavaScript.
"""
)
@party_files
@click.option(
    "-o", "--output", required=True, type=LocalPath(), help="Where the page goes, such as report.html."
)
@click.option("--title", help="The heading; by default it says how many parties there are.")
@LEVEL
@option(
    "--simultaneous/--each",
    default=True,
    help="Whether all intervals hold together at that level, or each by itself.",
)
@click.option(
    "--by",
    type=click.Choice(["size", "shape"]),
    help="size: counts as they are. shape: the mix alone.  [default: shape, where totals were released]",
)
@click.option(
    "--beyond-chance/--counts",
    default=None,
    help="About the populations behind the samples, or about the people counted.  [default: populations, where people were counted]",
)
def report(files: tuple[str, ...], output: str, **known: Any) -> None:
    """Write one offline page about the sketches in FILE.

    It has a summary in words, a map of all parties, a heat map, what sets two parties or groups apart (for releases with
    margins), a tree of groups, the nearest of each party, all pairs with their intervals, the privacy statement, and the release
    cards. It loads nothing from the network. Pairs that cannot be told apart are marked everywhere.
    """
    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"the output must be a page that ends in .html, got {output}")
    check_new_file(output, overwrite=True, read=files)
    sketches = load_all(files)
    al.report(parts_with_margins(sketches, files, sketches.labels), output, **known)
    click.echo(f"the report is in {output}")
