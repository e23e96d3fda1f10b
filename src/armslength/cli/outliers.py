"""`armslength outliers`: which parties are unlike the rest."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import answer_options, load_all, sketch_files
from armslength.cli.output import echo_rows


@click.command(
    short_help="Which parties are unlike the rest.",
    epilog="""\b
Examples:
  armslength outliers sketches.parquet
  armslength outliers sketches.parquet --by shape --factor 2
  armslength outliers north.parquet south.parquet east.parquet --format json

A party's score is the median of its distances to the others. An outlier's score is more than --factor times the typical
score. With the probability of --level, no party that is none is called one.
""",
)
@sketch_files
@click.option(
    "--factor", type=float, default=1.5, show_default=True, help="How many times the typical score is usual."
)
@answer_options
def outliers(files: tuple[str, ...], form: str, **known: Any) -> None:
    """Which parties are surely unlike the rest, such that none is falsely called so."""
    found = al.outliers(load_all(files, 3), **known)
    if form == "table":
        lines = [
            found.sentence(row) for row in sorted(range(len(found.labels)), key=lambda row: -found.score[row])
        ]
        count = int(found.is_outlier.sum())
        lines.append(
            f"{count} of {len(found.labels)} parties surely unlike the rest, at {100 * found.level:.6g}%, all together"
        )
        click.echo("\n".join([*lines, *([found.note] if found.note else [])]))
        return
    echo_rows(found.to_arrow().to_pylist(), form, [found.note])
