"""`armslength drift`: what changed between two releases of the same parties."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import (
    BEYOND_CHANCE,
    BY,
    FORMAT,
    LEVEL,
    METHOD,
    NO_WORK_LIMIT,
    LocalPath,
    chosen_parties,
    load_all,
)
from armslength.cli.output import echo_result

_FILE = LocalPath(exists=True)


@click.command(
    epilog="""\b
Examples:
  armslength drift march.parquet april.parquet
  armslength drift march.parquet april.parquet --by shape
  armslength drift march.parquet april.parquet --partial --format csv

Parties are matched by label. All intervals hold together with probability --level, so every party that is listed as
changed has changed.
"""
)
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option(
    "--partial", is_flag=True, help="Compare the parties that both files have, and list the others."
)
@LEVEL
@BY
@BEYOND_CHANCE
@METHOD
@chosen_parties
@NO_WORK_LIMIT
@FORMAT
def drift(before: str, after: str, form: str, **known: Any) -> None:
    """How far each party moved from one release to the next, with intervals.

    The second release cost its own ε. Comparing the two costs nothing.
    """
    result = al.drift(load_all((before,)), load_all((after,)), **known)
    missing = (("before", result.only_before), ("after", result.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    echo_result(result, form, *only, result.note)
