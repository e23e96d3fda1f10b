"""Questions about all parties: `armslength compare`, `nearest`, `cluster`, `alike`, `outliers`, `drift`, and `report` with all of them."""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.answers.explain import explainable
from armslength.cli.explain import echo_against_typical
from armslength.cli.options import (
    BEYOND_CHANCE,
    BY,
    FORMAT,
    LEVEL,
    LocalPath,
    answer_options,
    check_new_file,
    choice,
    chosen_parties,
    flag,
    load_all,
    open_sides,
    option,
    party_files,
)
from armslength.cli.output import as_csv, as_json, echo_notes, echo_result, finite, write_csv
from armslength.errors import plural
from armslength.estimates.shapes import ALIKE
from armslength.results import LONGEST_LABEL, Column, heading, line, shortened

if TYPE_CHECKING:
    import pyarrow as pa

FIELDS = ("left", "right", "value", "lower", "upper", "resolved", "in_clear")
_LINES_AT_ONCE = 8192
_MOST_DRAWN = 200  # leaves


@click.command(
    epilog="""\b
Examples:
  armslength compare sketches.parquet
  armslength compare north.parquet south.parquet --simultaneous
  armslength compare sketches.parquet --against north --format csv
  armslength compare sketches.parquet --below 40              surely at most 40 apart
  armslength compare sketches.parquet --below 40 --possibly   not surely more than 40 apart
  armslength compare sketches.parquet --above 40              surely more than 40 apart
  armslength compare sketches.parquet --by shape --top 20
  armslength compare sketches/ --top 20                       all files of a folder

"Not resolved": the interval contains 0, so the two may be equal. Memory does not grow with the number of pairs;
csv and json are written while they are computed.
"""
)
@party_files
@choice(
    "--quantity",
    ["distance", "squared-distance", "inner-product", "cosine"],
    "What to estimate. Inner products and cosines have approximate intervals.",
)
@flag(
    "--fdr",
    "Of the pairs told apart, at most 5% are wrong on average at a level of 0.95: false discovery rate.",
)
@flag("--simultaneous", "All intervals hold together at the level, not each by itself.")
@option("--against", "Only this party against all others.", metavar="LABEL")
@option("--top", "Only the N pairs of the smallest values, smallest first.", type=int, metavar="N")
@flag("--farthest", "With --top: those of the largest values, largest first.")
@option("--below", "Only pairs surely at or below X: their upper end is.", type=float, metavar="X")
@option("--above", "Only pairs surely above X: their lower end is.", type=float, metavar="X")
@flag("--possibly", "With --below or --above: all pairs but those that are surely on the other side.")
@answer_options
def compare(files: tuple[str, ...], against: str | None, output_format: str, **options: Any) -> None:
    """Distances between all parties in the files, with intervals. A folder stands for all sketch files in it.

    Each pair comes with its estimate, an interval that contains the truth with probability --level, and whether the two
    can be told apart. Comparing costs no privacy, however often you do it.
    """
    sketches = load_all(files, 2)
    left, right = (sketches, None) if against is None else _one_against_others(sketches, against)
    reader = al.compare(left, right, show_progress=True, **options)
    first = reader.read_next_batch()  # raises errors before anything is printed
    metadata = {key.decode(): value.decode() for key, value in reader.schema.metadata.items()}
    lines = _lines(first, reader)
    if output_format == "table":
        farthest = _write_table(lines, (left, left if right is None else right), metadata)
        pairs = len(left) * (len(left) - 1) // 2 if right is None else len(left) * len(right)
        if farthest is not None:
            _echo_farthest(sketches, files, farthest, 1 - (1 - float(metadata["level"])) / pairs)
        return
    if output_format == "csv":
        write_csv(lines, FIELDS, sys.stdout)
    else:
        _write_json(lines)
    echo_notes(metadata["note"])


def _one_against_others(sketches: "al.Sketches", label: str) -> "tuple[al.Sketches, al.Sketches]":
    """The row of this label, and all others."""
    return sketches[label], sketches.rows(
        [row for row, other in enumerate(sketches.labels) if other != label]
    )


def _lines(first: "pa.RecordBatch", rest: "Iterable[pa.RecordBatch]") -> Iterator[dict[str, Any]]:
    """Every pair, a few thousand at a time."""
    for batch in chain([first], rest):
        for start in range(0, batch.num_rows, _LINES_AT_ONCE):
            yield from batch.slice(start, _LINES_AT_ONCE).to_pylist()


def _write_json(lines: Iterable[dict[str, Any]]) -> None:
    sys.stdout.write("[")
    separator = "\n "
    for pair in lines:
        sys.stdout.write(separator + json.dumps(finite(pair), ensure_ascii=False))
        separator = ",\n "
    sys.stdout.write("\n]\n")


def _write_table(
    lines: Iterable[dict[str, Any]],
    sides: "tuple[al.Sketches, ...]",
    metadata: dict[str, str],
) -> list[str] | None:
    """Prints all pairs; returns the one whose interval ends farthest from 0, if one does."""
    columns = [
        *(Column.of_labels(name, side.labels) for name, side in zip(("left", "right"), sides, strict=True)),
        *map(Column.of_numbers, (metadata["quantity"], "from", "to")),
        Column("", len("not resolved")),
    ]
    if metadata["by"] == "shape":
        is_beyond_chance = metadata["beyond_chance"] == "true"
        counted = "How far apart are the mixes of the people counted?"
        populations = "Do the populations differ in their mix, beyond chance?"
        click.echo(f"{populations if is_beyond_chance else counted}\n")
    sys.stdout.write(f"{heading(columns)}\n")
    count = resolved = 0
    farthest, largest = None, 0.0
    is_cosine = metadata["quantity"] == "cosine"
    for pair in lines:
        state = "" if pair["resolved"] or is_cosine else "not resolved"
        if is_cosine and pair["lower"] >= ALIKE:
            state = "alike"
        sys.stdout.write(f"{line(columns, [*(pair[name] for name in FIELDS[:5]), state])}\n")
        count += 1
        resolved += pair["resolved"]
        apart = ALIKE - pair["upper"] if is_cosine else pair["lower"]  # a cosine is far where it is small
        if apart > largest:
            farthest, largest = pair, apart
    percent = f"{100 * float(metadata['level']):.6g}%"
    together = "together" if metadata["simultaneous"] == "true" else "for each pair by itself"
    if metadata["fdr"] == "true":
        together = "on average over the pairs told apart (false discovery rate)"
    differ = "" if metadata["quantity"] in ("cosine", "inner-product") else f", of which {resolved:,} differ"
    click.echo(f"{plural(count, 'pair')}{differ}; intervals hold at {percent}, {together}")
    if metadata["note"]:
        click.echo(metadata["note"])
    if farthest is None or metadata["quantity"] == "inner-product":
        return None
    return [farthest["left"], farthest["right"]]


def _echo_farthest(sketches: "al.Sketches", files: tuple[str, ...], pair: list[str], level: float) -> None:
    """What sets the farthest pair apart, if its releases have margins; the level is for all pairs, among which it was chosen."""
    farthest = f"Clearest difference of these: {pair[0]} and {pair[1]}"
    rows = sketches[pair]
    if not explainable(rows).all():
        if any(protocol.margins is not None for protocol in sketches.protocols):
            click.echo(f"{farthest}; the reasons are unknown: they do not have the same margins")
        return
    try:
        reasons = ", ".join(al.explain(rows[0], rows[1], level=level).reasons())
        unsure = "no reason holds for all pairs together; ask about these two alone"
        text = f"{pair[1]} has {reasons}" if reasons else unsure
    except al.NotResolvableError:
        text = "too few people for reasons"
    except al.ArmslengthError:  # they have a release in common, or are no sums of releases
        return
    click.echo(f"{farthest}; {text}: armslength explain {shlex.join((*files, *pair))}")


@click.command(
    epilog="""\b
Examples:
  armslength nearest sketches.parquet
  armslength nearest sketches.parquet --query north --count 5
  armslength nearest wards.parquet --index archive.parquet --count 3
  armslength nearest wards.parquet --index archive/            all files of a folder

"surely nearest": no other party can be nearer, at the level. "could be nearest": the intervals do not rule it out.
"""
)
@party_files
@option(
    "--index",
    "Search here, not among the queries; may be repeated.",
    multiple=True,
    type=LocalPath(exists=True),
    metavar="FILE",
)
@option("--query", "Ask only for this party.", metavar="LABEL")
@option("--count", "How many answers for each query.", default=10)
@flag("--simultaneous", "The level holds for all queries together, not for each.")
@answer_options
def nearest(
    files: tuple[str, ...], index: tuple[str, ...], query: str | None, output_format: str, **options: Any
) -> None:
    """Find the nearest parties of each party in the files, with intervals. A folder stands for all sketch files in it.

    The search is exact: it compares every pair. All intervals of one query hold together with probability --level.
    """
    queries, *others = open_sides(files, *([index] if index else []), at_least=1 if index else 2)
    searched = others[0] if others else None
    if query is not None:
        queries, rest = _one_against_others(queries, query)
        searched = rest if searched is None else searched
    result = al.nearest(queries, searched, show_progress=True, **options)
    echo_result(result, output_format, result.note)


@click.command(
    epilog="""\b
Examples:
  armslength cluster sketches.parquet
  armslength cluster sketches.parquet --by shape --beyond-chance
  armslength cluster sketches.parquet --cut 4 --format csv
  armslength cluster wards/                                    all files of a folder

Parties are joined at the average distance between them, but never two groups with parties that differ. Parties of two groups can be alike,
too, unless it says that they differ. A tree has at most 5,000 leaves. For more rows, use scikit-learn on the values of the sketches.
"""
)
@party_files
@option("--cut", "Cut the tree into this many clusters, whether or not their parties differ.", type=int)
@LEVEL
@BY
@BEYOND_CHANCE
@FORMAT
def cluster(files: tuple[str, ...], cut: int | None, output_format: str, **options: Any) -> None:
    """Group the parties in the files, so that no two of a group are found to differ.

    All pairs that are said to differ do so with probability --level. A cut is a description of the estimates.
    """
    sketches = load_all(files, 2)
    tree = al.cluster(sketches, **options)
    clusters = tree.flat(cut)
    if output_format == "table":
        click.echo(str(tree))
        if cut is not None:
            click.echo("\nThe cut, a description of the estimates:")
            for number in range(int(clusters.max()) + 1):
                names = [tree.labels[leaf] for leaf in tree.order if clusters[leaf] == number]
                click.echo(f"  cluster {number}: {', '.join(names)}")
        if len(tree.labels) <= _MOST_DRAWN:
            click.echo("\nThe tree: at which average distance parties merge (≠: some of them differ)")
            click.echo("\n".join(drawn_tree(tree)))
        groups = tree.groups() if tree.differ.any() else ()
        echo_against_typical(sketches, files, groups, tree.level)
        return
    rows = tree.to_arrow().to_pylist()
    for position, leaf in enumerate(tree.order):
        rows[position] |= {"position": position} | ({} if cut is None else {"cluster": int(clusters[leaf])})
    if output_format == "csv":
        click.echo(as_csv(rows))
    else:
        fields = ("level", "by", "beyond_chance", "note", "labels", "order", "linkage", "merges", "differ")
        facts = {name: getattr(tree, name) for name in fields}
        facts |= {"groups": tree.flat(), "clusters": clusters, "in_clear": rows[0]["in_clear"]}
        click.echo(as_json(facts))
    echo_notes(tree.note)


def drawn_tree(tree: "al.Clusters") -> list[str]:
    """The lines of the drawn tree, root first: heights, ≠ at merges of parties of which some differ, and leaves."""
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
        mark = "" if merge < tree.merges else " ≠"
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
@option("--left", "One party.", required=True, metavar="LABEL")
@option("--right", "The other party.", required=True, metavar="LABEL")
@option("--within", "The largest distance that counts as alike.", type=float, required=True)
@answer_options
def alike(files: tuple[str, ...], left: str, right: str, output_format: str, **options: Any) -> None:
    """Decide whether two parties are alike, different, or undecided, with a known error rate."""
    sketches = load_all(files, len({left, right}), [left, right])
    answer = al.alike(sketches[left], sketches[right], **options)
    echo_result(answer, output_format, answer.note)


@click.command(
    epilog="""\b
Examples:
  armslength outliers sketches.parquet
  armslength outliers sketches.parquet --by shape --beyond-chance --factor 2

Each party is compared with the typical party: the average of the others, none weighing more than the median party. An outlier is
farther from it than --factor times what is usual for a party. With probability --level, no party is wrongly called an outlier.
"""
)
@party_files
@option("--factor", "How many times the usual distance makes an outlier.", default=1.5)
@LEVEL
@BY
@BEYOND_CHANCE
@FORMAT
def outliers(files: tuple[str, ...], output_format: str, **options: Any) -> None:
    """Find the parties that are unlike the others, with a bound on false alarms."""
    sketches = load_all(files, 3)
    result = al.outliers(sketches, **options)
    echo_result(result, output_format, result.note)
    if output_format == "table":
        unlike = [[result.labels[row]] for row in result.is_outlier.nonzero()[0]]
        echo_against_typical(sketches, files, unlike, result.level)


@click.command(
    epilog="""\b
Examples:
  armslength drift march.parquet april.parquet
  armslength drift march.parquet april.parquet --by shape
  armslength drift march.parquet april.parquet --partial --format csv

Parties are matched by label. All intervals hold together with probability --level; then every party that is listed as
changed has changed.
"""
)
@click.argument("before", type=LocalPath(exists=True))
@click.argument("after", type=LocalPath(exists=True))
@flag("--partial", "Compare the parties that both files have, and list the others.")
@chosen_parties
@answer_options
def drift(before: str, after: str, output_format: str, **options: Any) -> None:
    """How far each party moved from one release to the next, with intervals.

    The second release cost its own ε. Comparing the two costs nothing.
    """
    first, second = open_sides((before,), (after,), is_matched=True)
    result = al.drift(first, second, **options)
    missing = (("before", result.only_before), ("after", result.only_after))
    only = [f"only {when}: {', '.join(labels)}" for when, labels in missing if labels]
    echo_result(result, output_format, *only, result.note)


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
@option("-o --output", "Where the page goes, such as report.html.", required=True, type=LocalPath())
@option("--title", "The heading; by default it says how many parties there are.")
@LEVEL
@option("--simultaneous/--each", "Whether all intervals hold together, or each by itself.", default=True)
@option(
    "--by",
    "size: counts as they are. shape: the mix alone.  [default: shape, where totals were released]",
    type=click.Choice(["size", "shape"]),
)
@option(
    "--beyond-chance/--counts",
    "Ask about populations, or the people counted.  [default: populations, if possible]",
    default=None,
)
def report(files: tuple[str, ...], output: str, **options: Any) -> None:
    """Write one offline page about the sketches in FILE.

    It has a summary in words, a map of all parties, a heat map, what sets two parties or groups apart (for releases with
    margins), a tree of groups, the nearest of each party, all pairs with their intervals, the privacy statement, and the release
    cards. It loads nothing from the network. Pairs that cannot be told apart are marked everywhere.
    """
    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"the output must be a page that ends in .html, got {output}")
    check_new_file(output, overwrite=True, read=files)
    al.report(load_all(files), output, **options)
    click.echo(f"the report is in {output}")
