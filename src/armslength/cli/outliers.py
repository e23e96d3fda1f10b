"""`armslength outliers`: which parties are unlike the rest."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import answer_options, load_all, option, party_files
from armslength.cli.output import echo_result
from armslength.cli.reasons import echo_against_others


@click.command(
    epilog="""\b
Examples:
  armslength outliers sketches.parquet
  armslength outliers sketches.parquet --by shape --factor 2
  armslength outliers north.parquet south.parquet east.parquet --format json

A party's score is the median of its distances to the others. An outlier has a score of more than --factor times the typical
score. With probability --level, no party is wrongly called an outlier.
"""
)
@party_files
@option("--factor", default=1.5, help="How many times the typical score makes an outlier.")
@answer_options
def outliers(files: tuple[str, ...], form: str, **known: Any) -> None:
    """Find the parties that are unlike the rest, with a bound on false alarms."""
    sketches = load_all(files, 3)
    result = al.outliers(sketches, **known)
    echo_result(result, form, result.note)
    if form == "table":
        unlike = [[result.labels[row]] for row in result.is_outlier.nonzero()[0]]
        echo_against_others(sketches, files, unlike, result.level)
