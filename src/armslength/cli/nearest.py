"""`armslength nearest`: who is nearest to whom, and how sure that is."""

from typing import Any

import click

import armslength as al
from armslength.cli.options import LocalPath, answer_options, one_against_others, open_all, party_files
from armslength.cli.output import echo_result


@click.command(
    epilog="""\b
Examples:
  armslength nearest sketches.parquet
  armslength nearest sketches.parquet --query north --count 5
  armslength nearest wards.parquet --index archive.parquet --count 3
  armslength nearest sketches.parquet --by shape --format json
  armslength nearest wards.parquet --index archive/            all files of a folder, a block at a time

"surely nearest": no other party can be nearer, at the level. "could be nearest": the intervals do not rule it out.
"""
)
@party_files
@click.option(
    "--index",
    multiple=True,
    type=LocalPath(exists=True),
    metavar="FILE",
    help="Search here, instead of among the queries themselves. Can be given more than once.",
)
@click.option("--query", metavar="LABEL", help="Ask only for this party.")
@click.option("--count", default=10, show_default=True, help="How many answers for each query.")
@click.option("--simultaneous", is_flag=True, help="The level holds for all queries together, not for each.")
@answer_options
def nearest(
    files: tuple[str, ...], index: tuple[str, ...], query: str | None, form: str, **known: Any
) -> None:
    """Find the nearest parties of each party in the files, with intervals. A folder stands for all sketch files in it.

    The search is exact: it compares every pair. All intervals of one query hold together with probability --level.
    """
    queries = open_all(files, 1 if index else 2)
    candidates: Any = open_all(index) if index else None
    if query is not None:
        queries, others = one_against_others(queries, query)
        candidates = others if candidates is None else candidates
    if not isinstance(queries, al.Sketches):
        queries = queries.to_sketches()
    result = al.nearest(queries, candidates, show_progress=True, **known)
    echo_result(result, form, result.note)
