"""`armslength cluster`: which parties belong together, and how surely."""

from typing import TYPE_CHECKING, Any

import click

from armslength.cli.options import answer_options, open_all, sketch_files
from armslength.cli.output import as_csv, as_json
from armslength.results import LONGEST_LABEL, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from armslength.answers.cluster import Clusters

_MOST_DRAWN = 200  # leaves


@click.command(
    short_help="Which parties belong together, and how surely.",
    epilog="""\b
Examples:
  armslength cluster sketches.parquet
  armslength cluster sketches.parquet --by shape --linkage complete
  armslength cluster sketches.parquet --cut 4 --format csv
  armslength cluster north.parquet south.parquet --format json
  armslength cluster wards/

A group is sure if every distance inside is surely smaller than every distance from inside to outside; then the tree of
the true distances has it too. A question mark stands at merges that the error bars leave open.

A tree has at most 5,000 leaves. For more rows, use scikit-learn on the values of the sketches: docs/guides/collections.md.
""",
)
@sketch_files
@click.option(
    "--linkage",
    type=click.Choice(["average", "single", "complete"]),
    default="average",
    show_default=True,
    help="How the distance of two groups is made of those of their members.",
)
@click.option("--cut", type=int, help="Cut the tree into this many clusters.")
@click.option("--height", type=float, help="Or undo all merges above this distance.")
@answer_options
def cluster(
    files: tuple[str, ...],
    cut: int | None,
    height: float | None,
    form: str,
    **known: Any,
) -> None:
    """A tree of the parties in the files by their estimated distances, and which of its groups are sure.

    Without --cut or --height, clusters of the tree are its largest sure groups. All of them together are right with the
    probability of --level.
    """
    from armslength.answers.cluster import cluster as make_tree  # noqa: PLC0415  # the same
    from armslength.estimates.distances import is_clear  # noqa: PLC0415  # --help must not wait for it

    found = make_tree(open_all(files, 2), **known)
    clusters = found.flat(cut, height)
    if form == "table":
        click.echo(_text(found, clusters, chosen=cut is not None or height is not None))
        return
    clear = is_clear(found.note)
    rows = [
        {
            "label": found.labels[leaf],
            "cluster": int(clusters[leaf]),
            "position": position,
            "in_clear": clear,
        }
        for position, leaf in enumerate(found.order)
    ]
    if form == "csv":
        click.echo(as_csv(rows))
    else:
        said = {
            "level": found.level,
            "by": found.by,
            "joined_by": found.joined_by,
            "in_clear": clear,
            "note": found.note,
        }
        tree = {"linkage": found.linkage.tolist(), "supported": found.supported.tolist()}
        listed = {"labels": list(found.labels), "order": list(found.order), "clusters": clusters.tolist()}
        click.echo(as_json({**said, **listed, **tree}))
    if found.note:
        click.echo(f"armslength: {found.note}", err=True)


def _text(found: "Clusters", clusters: "NDArray[np.int64]", *, chosen: bool) -> str:
    lines = []
    if len(found.labels) <= _MOST_DRAWN:
        lines += [*drawn_tree(found), ""]
    lines.append(str(found))
    if chosen:
        for number in range(int(clusters.max()) + 1):
            names = [found.labels[leaf] for leaf in found.order if clusters[leaf] == number]
            lines.append(f"cluster {number}: {', '.join(names)}")
    return "\n".join(lines)


def drawn_tree(found: "Clusters") -> list[str]:
    """The tree, root first: heights, question marks at merges that are not sure, and leaves."""
    leaves = len(found.labels)
    lines: list[str] = []
    # (node, what stands before its branch, its branch, what stands before the branches below it)
    waiting = [(2 * leaves - 2, "", "", "")]
    while waiting:
        node, before, branch, below = waiting.pop()
        if node < leaves:
            lines.append(f"{before}{branch}{shortened(found.labels[node], LONGEST_LABEL)}")
            continue
        merge = node - leaves
        sure = "" if found.supported[merge] else " ?"
        lines.append(f"{before}{branch}{found.linkage[merge, 2]:.6g}{sure}")
        first, second = found.linkage[merge, :2].astype(int).tolist()
        waiting.append((second, below, "└─ ", f"{below}   "))
        waiting.append((first, below, "├─ ", f"{below}│  "))
    return lines
