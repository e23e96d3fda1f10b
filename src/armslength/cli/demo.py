"""`armslength demo`: the whole workflow on generated data."""

from pathlib import Path

import click

from armslength.cli.options import option
from armslength.demo import run_demo


@click.command(
    epilog="""\b
Examples:
  armslength demo
  armslength demo --folder /tmp/demo
"""
)
@option(
    "--folder",
    default="armslength-demo",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where tables, sketches, ledgers and the report go.",
)
def demo(folder: Path) -> None:
    """Run the whole workflow on generated data; it takes about a minute.

    24 hospitals in four hidden regions each have a private table of diagnoses. They plan, agree on a protocol, and release
    one sketch each, in separate processes; then anybody compares and clusters them, asks in what they differ, and looks at a report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run_demo(folder, click.echo)
