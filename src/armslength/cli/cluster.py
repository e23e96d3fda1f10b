"""`armslength cluster`: which parties belong together, and which groups are supported."""

from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.options import BEYOND_CHANCE, BY, FORMAT, LEVEL, choice, open_all, party_files
from armslength.cli.output import as_csv, as_json, echo_notes
from armslength.cli.reasons import echo_against_others
from armslength.estimates.distances import is_clear
from armslength.results import LONGEST_LABEL, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_DRAWN = 200  # leaves


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
    clear = is_clear(tree.note)
    rows = [
        {
            "label": tree.labels[leaf],
            "cluster": int(clusters[leaf]),
            "supported": bool(tree.in_supported[leaf]),
            "position": position,
            "in_clear": clear,
        }
        for position, leaf in enumerate(tree.order)
    ]
    if form == "csv":
        click.echo(as_csv(rows))
    else:
        facts = {
            "level": tree.level,
            "by": tree.by,
            "joined_by": tree.joined_by,
            "in_clear": clear,
            "note": tree.note,
        }
        lists = {"labels": tree.labels, "order": tree.order, "clusters": clusters.tolist()}
        merges = {
            "linkage": tree.linkage.tolist(),
            "support": tree.support.tolist(),
            "supported": tree.supported.tolist(),
        }
        click.echo(as_json({**facts, **lists, **merges}))
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
