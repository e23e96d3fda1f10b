"""Questions about all parties: `armslength nearest`, `cluster`, `alike`, `outliers` and `drift`."""

from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.explain import echo_against_others
from armslength.cli.options import (
    BEYOND_CHANCE,
    BY,
    FORMAT,
    LEVEL,
    NO_WORK_LIMIT,
    LocalPath,
    answer_options,
    choice,
    chosen_parties,
    load_all,
    one_against_others,
    open_all,
    option,
    party_files,
)
from armslength.cli.output import as_csv, as_json, echo_notes, echo_result
from armslength.results import LONGEST_LABEL, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_DRAWN = 200  # leaves


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


@click.command(
    epilog="""\b
Examples:
  armslength cluster sketches.parquet
  armslength cluster sketches.parquet --by shape --linkage complete
  armslength cluster sketches.parquet --cut 4 --format csv
  armslength cluster north.parquet south.parquet --format json
  armslength cluster wards/

A group is supported if its two parts are closer to each other than the group is to any cluster beside it, by more than noise, the
projection and the totals could explain. That is about the people in the data, not about the populations behind them. A question
mark marks merges that are not supported: there the tree is only a description.

A tree has at most 5,000 leaves, and support is claimed for at most 2,000. For more rows, use scikit-learn on the values of the sketches: docs/guides/collections.md.
"""
)
@party_files
@choice(
    "--linkage",
    values=["average", "single", "complete"],
    text="How the distance of two groups follows from those of their members.",
)
@click.option("--cut", type=int, help="Cut the tree into this many clusters.")
@click.option("--height", type=float, help="Or undo all merges above this distance.")
@LEVEL
@BY
@BEYOND_CHANCE
@FORMAT
def cluster(files: tuple[str, ...], cut: int | None, height: float | None, form: str, **known: Any) -> None:
    """Group the parties in the files by their estimated distances, and say which groups are supported.

    Without --cut or --height, the largest supported groups are clusters, and all parties are one cluster if there are none. All
    supported groups are right together with probability of about --level. A cut is a description of the estimates.
    """
    sketches = open_all(files, 2)
    tree = al.cluster(sketches, **known)
    clusters = tree.flat(cut, height)
    if form == "table":
        click.echo(_text(tree, clusters, is_cut=cut is not None or height is not None))
        echo_against_others(sketches, files, tree.groups(), tree.level)
        return
    rows = tree.to_arrow().to_pylist()
    for position, (row, leaf) in enumerate(zip(rows, tree.order, strict=True)):
        row |= {"cluster": int(clusters[leaf]), "position": position}
    if form == "csv":
        click.echo(as_csv(rows))
    else:
        names = ("level", "by", "joined_by", "note", "labels", "order", "linkage", "support", "supported")
        facts = {name: getattr(tree, name) for name in names}
        click.echo(as_json({**facts, "clusters": clusters, "in_clear": rows[0]["in_clear"]}))
    echo_notes(tree.note)


def _text(tree: "al.Clusters", clusters: "NDArray[np.int64]", *, is_cut: bool) -> str:
    lines = [str(tree)]
    if is_cut:
        lines += ["", "The cut, a description of the estimates:"]
        for number in range(int(clusters.max()) + 1):
            names = [tree.labels[leaf] for leaf in tree.order if clusters[leaf] == number]
            lines.append(f"  cluster {number}: {', '.join(names)}")
    if len(tree.labels) <= _MOST_DRAWN:
        lines += ["", *drawn_tree(tree)]
    return "\n".join(lines)


def drawn_tree(tree: "al.Clusters") -> list[str]:
    """The lines of the drawn tree, root first: heights, question marks at merges that are not supported, and leaves."""
    leaves = len(tree.labels)
    lines: list[str] = []
    # (node, what stands before its branch, its branch, what stands before the branches below it)
    waiting = [(2 * leaves - 2, "", "", "")]
    while waiting:
        node, before, branch, below = waiting.pop()
        if node < leaves:
            lines.append(f"{before}{branch}{shortened(tree.labels[node], LONGEST_LABEL)}")
            continue
        merge = node - leaves
        mark = "" if tree.supported[merge] else " ?"
        lines.append(f"{before}{branch}{tree.linkage[merge, 2]:.6g}{mark}")
        first, second = tree.linkage[merge, :2].astype(int).tolist()
        waiting.append((second, below, "└─ ", f"{below}   "))
        waiting.append((first, below, "├─ ", f"{below}│  "))
    return lines


@click.command(
    epilog="""\b
Examples:
  armslength alike sketches.parquet --left north --right south --within 40
  armslength alike sketches.parquet --left north --right south --within 0.05 --by shape

The answer is "alike" if the upper end of the interval is at most --within, and "different" if the lower end is above it.
Otherwise it is "undecided". A wrong answer has probability at most 1 − --level.
"""
)
@party_files
@click.option("--left", required=True, metavar="LABEL", help="One party.")
@click.option("--right", required=True, metavar="LABEL", help="The other party.")
@click.option("--within", type=float, required=True, help="The largest distance that counts as alike.")
@answer_options
def alike(files: tuple[str, ...], left: str, right: str, form: str, **known: Any) -> None:
    """Decide whether two parties are alike, different, or undecided, with a known error rate."""
    sketches = load_all(files)
    answer = al.alike(sketches[left], sketches[right], **known)
    echo_result(answer, form, answer.note)


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
@click.argument("before", type=LocalPath(exists=True))
@click.argument("after", type=LocalPath(exists=True))
@click.option(
    "--partial", is_flag=True, help="Compare the parties that both files have, and list the others."
)
@chosen_parties
@NO_WORK_LIMIT
@answer_options
def drift(before: str, after: str, form: str, **known: Any) -> None:
    """How far each party moved from one release to the next, with intervals.

    The second release cost its own ε. Comparing the two costs nothing.
    """
    result = al.drift(load_all((before,)), load_all((after,)), **known)
    missing = (("before", result.only_before), ("after", result.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    echo_result(result, form, *only, result.note)
