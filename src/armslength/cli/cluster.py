"""`armslength cluster`: which parties belong together, and how surely."""

from typing import TYPE_CHECKING, Any

import click

from armslength.cli.answer_options import answer_options, open_all, sketch_files
from armslength.cli.layout import LONGEST_LABEL, shortened
from armslength.cli.listing import as_csv, as_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from armslength.protocol.sketches import Sketches
    from armslength.search.cluster import Clustering
    from armslength.search.collection import Collection
    from armslength.search.flat_clusters import FlatClustering

_MOST_DRAWN = 200  # leaves


@click.command(
    short_help="Which parties belong together, and how surely.",
    epilog="""\b
Examples:
  armslength cluster sketches.parquet
  armslength cluster sketches.parquet --by shape --linkage complete
  armslength cluster sketches.parquet --cut 4 --format csv
  armslength cluster north.parquet south.parquet --format json
  armslength cluster devices/ --count 20
  armslength cluster devices.parquet --count 20 --format csv > clusters.csv

A group is sure if every distance inside is surely smaller than every distance from inside to outside; then the tree of
the true distances has it too. A question mark stands at merges that the error bars leave open.

A tree has at most 5,000 leaves. --count makes flat clusters instead (k-means, in which noise is not counted), for millions of
rows. They describe the sketches and promise nothing: a row's margin says how many standard deviations of its own noise it
is from the second nearest center. Rows that are all equal, and many more than coordinates, would have margins of 0.7 or less
in the middle, and 1 in 20 above 2; few rows have larger ones.
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
@click.option("--count", type=int, help="No tree: this many flat clusters, for very many rows.")
@click.option(
    "--seed",
    metavar="TEXT",
    help="With --count: the public seed. The same seed and the same files give the same clusters.",
)
@answer_options
def cluster(
    files: tuple[str, ...],
    cut: int | None,
    height: float | None,
    count: int | None,
    seed: str | None,
    form: str,
    **known: Any,
) -> None:
    """A tree of the parties in the files by their estimated distances, and which of its groups are sure; or flat clusters.

    Without --cut or --height, clusters of the tree are its largest sure groups. All of them together are right with the
    probability of --level.
    """
    from armslength.estimates.squared_distances import is_clear  # noqa: PLC0415  # --help must not wait for it
    from armslength.search.cluster import cluster as make_tree  # noqa: PLC0415  # the same

    if count is not None and not (cut is height is None):
        raise click.UsageError("--cut and --height are for the tree, and must be left out with --count")
    if seed is not None:
        known["seed"] = seed
    sketches = open_all(files, 2)
    if count is not None:
        _echo_flat(make_tree(sketches, count=count, show_progress=True, **known), sketches, form)
        return
    found = make_tree(sketches, **known)
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


def _text(found: "Clustering", clusters: "NDArray[np.int64]", *, chosen: bool) -> str:
    lines = []
    if len(found.labels) <= _MOST_DRAWN:
        lines += [*drawn_tree(found), ""]
    lines.append(str(found))
    if chosen:
        for number in range(int(clusters.max()) + 1):
            names = [found.labels[leaf] for leaf in found.order if clusters[leaf] == number]
            lines.append(f"cluster {number}: {', '.join(names)}")
    return "\n".join(lines)


def _echo_flat(found: "FlatClustering", rows: "Sketches | Collection", form: str) -> None:
    """The clusters for people; or a line for each row, a batch of them at a time."""
    if form == "table":
        click.echo(str(found))
        if len(rows) <= _MOST_DRAWN:
            labels = [label for block in rows.blocks(_MOST_DRAWN) for label in block.labels]
            for number in range(found.count):
                names = [label for label, own in zip(labels, found.numbers, strict=True) if own == number]
                click.echo(f"cluster {number}: {', '.join(names)}")
        return
    if form == "csv":
        for place, batch in enumerate(found.batches(rows)):
            header, _, lines = as_csv(batch.to_pylist()).partition("\n")
            click.echo(lines if place else f"{header}\n{lines}")
    else:
        said = {
            "asked": found.asked,
            "passes": found.passes,
            "converged": found.converged,
            "seed": found.seed,
        }
        each = {"sizes": found.sizes.tolist(), "radius": found.radius.tolist()}
        between = {"center_distances": found.center_distances.tolist(), "inertia": found.inertia}
        listed = [line for batch in found.batches(rows) for line in batch.to_pylist()]
        click.echo(as_json({**said, **each, **between, "note": found.note, "rows": listed}))
    click.echo(f"armslength: {found.note}", err=True)


def drawn_tree(found: "Clustering") -> list[str]:
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
