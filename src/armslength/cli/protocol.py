"""What all parties agree on before any data is seen: `armslength plan` chooses it, `protocol` makes and shows it."""

import sys
from typing import Any

import click

import armslength as al
from armslength.cli.exit_codes import NOT_RESOLVABLE
from armslength.cli.options import (
    BEYOND_CHANCE,
    BY,
    EXISTING_FILE,
    FILE,
    FORMAT,
    NO_WORK_LIMIT,
    OVERWRITE,
    RANGE,
    RELATION,
    TABLE_OR_JSON,
    all_of,
    check_new_file,
    choice,
    flag,
    option,
    record_options,
    work_limit,
)
from armslength.cli.output import as_csv, as_json, echo_notes, is_terminal, paragraph
from armslength.planner.predictions import smallest_resolved_distance
from armslength.plots import check_format
from armslength.privacy.exact_numbers import weakness
from armslength.protocol.record import check_record_contribution, checked_record, record_input_dim
from armslength.randomness.seeds import fresh_seed
from armslength.sketches.card import guarantee_in_words
from armslength.sketches.noises import UNKNOWN

_TRANSFORMS = ("SparseJL", "HadamardJL", "FastJL", "GaussianJL", "SignJL", "Identity")


# The options of every protocol.
_protocol_options = all_of(
    record_options,
    option("--input-dim", "How many different items there are.", type=int),
    flag(
        "--open-vocabulary",
        "Items need not be listed beforehand: the default without --input-dim or --record.",
    ),
    option("--epsilon", "ε of each release, such as 1 or 0.5.", required=True),
    option("--delta", "δ; 0 is pure differential privacy.", default="0"),
    option("--contribution", "How many items of one person count at most; sets the radius.", type=int),
    option(
        "--count",
        "What event tables count: people, once for each group and item, or events.  [default: people]",
        type=click.Choice(["people", "events"]),
    ),
    flag("--one-group", "Count each person in one group only, drawn in secret: then rows share nobody."),
    option("--radius", "The largest change that one person can cause.  [default: 1]"),
    RELATION,
    choice("--norm", ["l1", "l2"], "l2: for vectors of bounded length."),
    option("--total-share", "The share of ε for totals, such as 0.1. Needed to compare shapes.", default="0"),
    option("--resolution", "1 for counts, a power of two, or auto.", default="1"),
    option("--on-grid/--off-grid", "Whether you promise multiples of the resolution.", default=None),
    option("--changed-entries", "How many entries one unit can change, for data off the grid.", type=int),
    option("--value-range", "A public range; values outside it are clamped.", **RANGE),
    option(
        "--vocabulary",
        "A text file with one item name on each line, in order.",
        type=click.File(encoding="utf-8"),
        callback=lambda _context, _option, file: None if file is None else file.read().splitlines(),
    ),
    choice("--items", ["string", "int64"], "The type of the items of an open vocabulary."),
    option("--seed", "The public seed.  [default: a new one]"),
)


# Those of item groups, for people who have an item in each.
_margin_options = all_of(
    option(
        "--margins",
        "A public .csv or .parquet file with item (or prefix) and group: count people by item group, too.",
        type=EXISTING_FILE,
    ),
    option(
        "--margin-column margin_columns",
        "Instead of --margins: a column of --record whose values are item groups; may be repeated.",
        multiple=True,
        metavar="COLUMN",
    ),
    option("--margin-share", "The share of ε for margins; 0.2 is usual.", default="0"),
    option(
        "--margin-contribution",
        "How many item groups of a person count in a release.  [default for --margin-column: all]",
        type=int,
    ),
)


def _complete(options: dict[str, Any]) -> None:
    """Take --margin-column out of the options: the margins say the same."""
    columns = list(options.pop("margin_columns"))
    if columns and options["margins"] is not None:
        raise click.UsageError("either --margins or --margin-column must be given, and not both")
    options["margins"] = columns or options["margins"]


@click.command(
    epilog="""\b
Examples:
  armslength plan --by shape --beyond-chance --parties 9 --people 3000 --contribution 5 --epsilon 1
  armslength plan --by shape --people 3000 --contribution 5 --epsilon 1 --one-group --item-groups 20
  armslength plan --input-dim 70000 --epsilon 1 --people 500 --contribution 1
  armslength plan --epsilon 1 --people 2000 --contribution 3 --unit "one patient" -o protocol.json
  armslength plan --record age:18,40,65,80 --record sex=F,M --pair age,sex --epsilon 1 --people 500 --by shape
  armslength plan --by shape --people 20000 --contribution 3 --epsilon 1 --explain 300
  armslength plan --input-dim 5000 --epsilon 2 --distance 300 --distortion 0.2 --failure-probability 0.05
  armslength plan --input-dim 768 --epsilon 1 --delta 1e-6 --norm l2 --radius 2 --resolution auto --distance 1

Exit code 3: the distances cannot be resolved; the last line says what would be needed.
"""
)
@_protocol_options
@_margin_options
@option("--item-groups", "Instead of --margins: how many item groups there will be, with (other).", type=int)
@option("--unit", 'The unit of protection in words, such as "one patient".', default="")
@BY
@BEYOND_CHANCE
@option("--distance", "How far apart the groups are, or low:high, in data units.", **RANGE)
@option("--people", "Instead of --distance: how many people a group has.", type=int)
@option("--parties", "How many parties are compared, all pairs together.", type=int)
@option(
    "--concentration",
    "By shape: how often two records of a party are of one item.  [default: by Zipf's law]",
    type=float,
)
@option("--explain", "How many items `armslength explain --items` will be asked about.", type=int)
@option(
    "--max-sketch-dim", "The largest sketch to recommend.  [default: 4096, or what --explain takes]", type=int
)
@option("--distortion", "α: the error may be at most α times the squared distance …", type=float)
@option("--failure-probability", "… except with probability β, over all pairs.", type=float)
@option("--pairs", "Instead of --parties: how many pairs are to hold together.  [default: 1]", type=int)
@option("--plot", "Draw what is predicted against size and ε, to .svg or .png.", type=FILE)
@OVERWRITE
@option("-o --output", "Write the recommended protocol here.", type=FILE)
@FORMAT
def plan(plot: str | None, output: str | None, overwrite: bool, output_format: str, **options: Any) -> None:
    """Choose the settings before any privacy is spent: predicts how accurate they are, and whether it can work.

    Give the size of the data (--input-dim or --record; neither if items are not listed), the privacy (--epsilon), and how far apart the groups are
    (--distance, or --people with --contribution). Transforms and noises, each at its best size, are ranked by exact error.
    The best is recommended, and written as a protocol with -o.

    With --by shape the plan is about mixes: it says which differences will be seen, what chance and noise hide, and what would
    show more. It chooses the size of the sketch and the share of ε for totals. With --margins or --item-groups it also says which
    differences in the prevalence of item groups will be seen, and chooses the share of ε for them and how many of each person count.

    With --explain N the sketch can also tell which of N listed items differ (armslength explain --items). That takes 20 numbers for each
    item, three entries of each item (sparsity 3), or no projection; the plan says what it costs for distances.
    """
    _complete(options)
    check_new_file(output, overwrite=overwrite)
    if output is not None and options["item_groups"] is not None:
        raise click.UsageError(
            "-o must go with --margins, which lists the item groups, and not with --item-groups"
        )
    is_for_events = options["contribution"] is not None or options["record"] is not None
    if output is not None and is_for_events and not options["unit"]:
        raise click.UsageError(
            '-o must go with --unit, which says who is protected, such as --unit "one patient"'
        )
    if plot is not None:
        check_format(plot)  # before any work
    result: al.Plan | al.ShapePlan = al.plan(**options)
    if plot is not None:
        result.plot(plot)
    if output_format == "csv":
        click.echo(as_csv(result.to_arrow().to_pylist()))
        echo_notes(result.weakness)  # the others have it in their text
    else:
        click.echo(str(result) if output_format == "table" else as_json(_plan_document(result)))
    if output is not None and result.resolvable:
        result.protocol.save(output)
        echo_notes(f"the recommended protocol was written to {output}")
        if not is_for_events:
            echo_notes(
                "it has no contribution, so it is for matrices; for an event table, say --contribution and --unit"
            )
    if result.refusal:
        echo_notes(result.refusal)
        click.get_current_context().exit(NOT_RESOLVABLE)


def _plan_document(result: "al.Plan | al.ShapePlan") -> dict[str, Any]:
    rows = result.to_arrow().to_pylist()
    margins = result.situation.margins if isinstance(result, al.ShapePlan) else None
    is_complete = result.resolvable and (margins is None or margins.fields is not None)
    document: dict[str, Any] = {
        "resolvable": result.resolvable,
        "refusal": result.refusal,
        "recommended": next(row for row in rows if row["is_recommended"]),
        "weak_promise": result.weakness or None,
        "needed": result.needs and vars(result.needs),
        "seed": result.seed,
        "protocol": result.protocol.document() if is_complete else None,
        "configurations": rows,
    }
    if isinstance(result, al.Plan):
        document |= {
            "told_apart": result.told_apart if result.resolvable else None,
            "distance": [result.situation.distances.low, result.situation.distances.high],
            "assumption": result.situation.distances.assumption,
            "reasons": result.reasons,
        }
    else:
        document |= {
            "seen": result.seen,
            "hidden_by_chance": result.chance,
            "beyond_chance": result.situation.beyond_chance,
            "assumption": result.assumption,
        }
    if margins is not None:
        document["margins"] = {
            "item_groups": margins.item_groups,
            "share": float(margins.recommended.share),
            "contribution": margins.recommended.contribution,
            "seen": margins.recommended.seen,
            "hidden_by_chance": margins.chance,
            "seen_with_one_group": margins.alone,
        }
    return document


@click.group()
def protocol() -> None:
    """Make or show a protocol: what all parties agree on before any data is seen.

    It holds the public matrix (as a seed), the privacy parameters, who is protected, and how data becomes integers. All
    parties use the same file. Sketches of protocols with the same space can be compared.
    """


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol new --epsilon 1 --contribution 20 --unit "one patient" --sketch-dim 512 \\
             --seed trial-2026 --total-share 0.1 -o protocol.json    sizes and shapes can be compared
  armslength protocol new --epsilon 1 --delta 1e-6 --radius 1 --unit "one visit" --transform HadamardJL \\
             --input-dim 70000 --sketch-dim 256 -o protocol.json
  armslength protocol new --record age:18,40,65,80 --record sex --record admitted:month --pair age,sex \\
             --epsilon 1 --unit "one patient" --sketch-dim 256 --total-share 0.1 -o protocol.json    one row per person
  armslength protocol new --epsilon 1 --contribution 20 --one-group --unit "one patient" --sketch-dim 512 \\
             --margins chapters.csv --margin-share 0.2 --margin-contribution 3 -o protocol.json    what differs, too
  armslength protocol new --record age:18,40,65,80 --record sex=F,M --margin-column age --margin-column sex \\
             --margin-share 0.2 --epsilon 1 --unit "one patient" --sketch-dim 256 -o protocol.json

With --record, a table has one row for each person, and its columns become items: numbers by public edges, categories as they are or as
listed, dates by period, missing as a value of its own. The contribution is then the number of columns and pairs.
With --margins, a release also tells how many people of each group have an item in each item group, such as a chapter of diagnoses:
`armslength explain` then says in what two groups differ. The file is public. A release needs it again, unless it lists prefixes.
`armslength plan` finds the best settings for the distances that you expect, and writes the same kind of file.
"""
)
@option("--unit", 'The unit of protection in words, such as "one patient"; asked for if left out.')
@choice("--transform", _TRANSFORMS, "The public matrix.")
@option("--sketch-dim", "How many numbers a sketch has; a multiple of the sparsity.", type=int)
@option("--sparsity", "SparseJL: how many rows each coordinate goes to.", default=1)
@choice(
    "--construction",
    ["block", "graph", "balanced"],
    "SparseJL: balanced is a little more accurate, and needs --input-dim.",
)
@choice("--noise", ["auto", "laplace", "gaussian"], "auto: the law of the smaller exact variance.")
@_margin_options
@option("--dropped-bits", "Low bits to drop after the noise.", default=0)
@_protocol_options
@OVERWRITE
@option("-o --output", "Where to write it.", required=True, type=FILE)
def new(unit: str | None, transform: str, overwrite: bool, output: str, **options: Any) -> None:
    """Write a protocol to a file, and print what it means."""
    check_new_file(output, overwrite=overwrite)
    _complete(options)
    recipe = checked_record(options["record"], options["record_pairs"])
    options["input_dim"] = record_input_dim(
        recipe, **{name: options.pop(name) for name in ("input_dim", "open_vocabulary")}
    )
    if recipe is not None:
        check_record_contribution(recipe, options["contribution"])
    if not unit:
        if not is_terminal(sys.stdin):
            raise click.UsageError('--unit must say who is protected, such as --unit "one patient"')
        unit = click.prompt("Who is protected? Say it in words, such as: one patient")
    if transform != "SparseJL" and options["input_dim"] is None and recipe is not None and recipe.unlisted:
        names = ", ".join(recipe.unlisted)
        raise click.UsageError(
            f"--transform {transform} must know all categories, got no list for {names}; "
            f"list them, such as --record {recipe.unlisted[0]}=A,B, or use SparseJL with --sketch-dim"
        )
    sizes = {
        name: options.pop(name) for name in ("input_dim", "sketch_dim", "sparsity", "construction", "seed")
    }
    agreement = al.Protocol(_transform(transform, **sizes), unit=unit, **options)
    agreement.save(output)
    click.echo(description(agreement))
    table = ""
    if agreement.margins is not None and agreement.margins.rule == "table":
        table = f" and {options['margins']} (a release needs it again: --margins {options['margins']})"
    click.echo(f"\nwritten to {output}; give this file{table} to every party")


def _transform(
    name: str, *, input_dim: int | None, sketch_dim: int | None, seed: str | None, **sparse: Any
) -> Any:
    """The transform of that name; refuses options that it does not have."""
    if name != "SparseJL":
        if input_dim is None:
            raise click.UsageError(f"--input-dim must be given for {name}, got none")
        if sparse != {"sparsity": 1, "construction": "block"}:
            raise click.UsageError(
                f"--sparsity and --construction must go with SparseJL, got {name}; leave them out"
            )
        sparse = {}
        if name == "Identity":
            return al.Identity(input_dim=input_dim)
    if sketch_dim is None:
        raise click.UsageError("--sketch-dim must be given; `armslength plan` finds a good one")
    seed = fresh_seed() if seed is None else seed
    return getattr(al, name)(input_dim=input_dim, sketch_dim=sketch_dim, seed=seed, **sparse)


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol show protocol.json
  armslength protocol show protocol.json --format json
"""
)
@click.argument("file", type=EXISTING_FILE)
@TABLE_OR_JSON
@NO_WORK_LIMIT
def show(file: str, output_format: str) -> None:
    """Show a protocol: who is protected, how, and which distances can be told from 0."""
    loaded = al.Protocol.load(file, **work_limit())
    if output_format == "json":
        ids = {"fingerprint": loaded.fingerprint, "space": loaded.space}
        click.echo(as_json({**loaded.document(), **ids}))
    else:
        click.echo(description(loaded))


def description(protocol: "al.Protocol") -> str:
    """The protocol in words."""
    weak = weakness(protocol.epsilon, protocol.released_delta)
    optional = {
        "record": protocol.record,
        "margins": protocol.margins,
    }
    lines = [
        paragraph(guarantee_in_words(protocol, UNKNOWN)),
        "",
        protocol.transform.card(),
        *(f"  {name}: {text}" for name, text in optional.items() if text),
        f"  noise: {protocol.noise}, scale {protocol.law.scale:.6g} in integer units",
        f"  two parties are told from equal ones at 95% from about {smallest_resolved_distance(protocol):.4g} on",
        f"  fingerprint {protocol.fingerprint}",
        f"  space       {protocol.space}   (sketches with the same space can be compared)",
        *([f"WARNING: {weak}"] if weak else []),
    ]
    return "\n".join(lines)
