"""`armslength plan`: which settings, how accurate, and whether it can work at all. It touches no data."""

from typing import Any

import click

import armslength as al
from armslength.cli.exit_codes import NOT_RESOLVABLE
from armslength.cli.options import (
    BEYOND_CHANCE,
    BY,
    FILE,
    FORMAT,
    OVERWRITE,
    NumberRange,
    check_dimension,
    check_new_file,
    margin_options,
    protocol_options,
    take_margins,
)
from armslength.cli.output import as_csv, as_json, echo_notes
from armslength.plots import check_format


@click.command(
    epilog="""\b
Examples:
  armslength plan --by shape --beyond-chance --open-vocabulary --parties 9 --people 3000 --contribution 5 --epsilon 1
  armslength plan --by shape --open-vocabulary --people 3000 --contribution 5 --epsilon 1 --one-group --item-groups 20
  armslength plan --input-dim 70000 --epsilon 1 --people 500 --contribution 1
  armslength plan --open-vocabulary --epsilon 1 --people 2000 --contribution 3 --unit "one patient" -o protocol.json
  armslength plan --record age:18,40,65,80 --record sex=F,M --pair age,sex --epsilon 1 --people 500 --by shape
  armslength plan --by shape --open-vocabulary --people 20000 --contribution 3 --epsilon 1 --explain 300
  armslength plan --input-dim 5000 --epsilon 2 --distance 300 --distortion 0.2 --failure-probability 0.05
  armslength plan --input-dim 768 --epsilon 1 --delta 1e-6 --norm l2 --radius 2 --resolution auto --distance 1

Exit code 3: the distances cannot be resolved; the last line says what would be needed.
"""
)
@protocol_options
@margin_options
@click.option(
    "--item-groups",
    type=int,
    help="Instead of --margins: how many item groups there will be, with (other), where they are not listed yet.",
)
@click.option("--unit", default="", help='The unit of protection in words, such as "one patient".')
@BY
@BEYOND_CHANCE
@click.option(
    "--distance", type=NumberRange(), help="How far apart the groups are, or low:high, in data units."
)
@click.option("--people", type=int, help="Instead of --distance: how many people a group has.")
@click.option("--parties", type=int, help="How many parties are compared, all pairs together.")
@click.option(
    "--concentration",
    type=float,
    help="By shape: how often two records of a party, drawn at random, are of the same item.  [default: by Zipf's law]",
)
@click.option(
    "--explain",
    type=int,
    help="How many listed items `armslength explain --items` will be asked about: sizes the sketch for it.",
)
@click.option(
    "--max-sketch-dim",
    type=int,
    help="The largest sketch to recommend.  [default: 4096, or what --explain takes]",
)
@click.option("--distortion", type=float, help="α: the error may be at most α times the squared distance …")
@click.option("--failure-probability", type=float, help="… except with probability β, over all pairs.")
@click.option(
    "--pairs", type=int, help="Instead of --parties: how many pairs are to hold together.  [default: 1]"
)
@click.option("--plot", type=FILE, help="Write error against size and ε to .html, .svg or .png.")
@OVERWRITE
@click.option("-o", "--output", type=FILE, help="Write the recommended protocol here.")
@FORMAT
@click.pass_context
def plan(
    ctx: click.Context, /, plot: str | None, output: str | None, overwrite: bool, form: str, **known: Any
) -> None:
    """Choose the settings before any privacy is spent: predicts how accurate they are, and whether it can work.

    Give the size of the data (--input-dim, --open-vocabulary or --record), the privacy (--epsilon), and how far apart the groups are
    (--distance, or --people with --contribution). Transforms and noises, each at its best size, are ranked by exact error.
    The best is recommended, and written as a protocol with -o.

    With --by shape the plan is about mixes: it says which differences will be seen, what chance and noise hide, and what would
    show more. It chooses the size of the sketch and the share of ε for totals. With --margins or --item-groups it also says which
    differences in the prevalence of item groups will be seen, and chooses the share of ε for them and how many of each person count.

    With --explain N the sketch can also tell which of N listed items differ (armslength explain --items). That takes 20 numbers for each
    item, three entries of each item (sparsity 3), or no projection; the plan says what it costs for distances.
    """
    check_dimension(known)
    take_margins(known)
    check_new_file(output, overwrite=overwrite)
    if output is not None and known["item_groups"] is not None:
        raise click.UsageError(
            "-o must go with --margins, which lists the item groups, and not with --item-groups"
        )
    is_for_events = known["contribution"] is not None or known["record"] is not None
    if output is not None and is_for_events and not known["unit"]:
        raise click.UsageError(
            '-o must go with --unit, which says who is protected, such as --unit "one patient"'
        )
    if plot is not None:
        check_format(plot)  # before any work
        if known["by"] == "shape":
            raise click.UsageError("--plot draws plans by size; leave it out with --by shape")
    result: al.Plan | al.ShapePlan = al.plan(**known)
    if plot is not None and isinstance(result, al.Plan):
        result.plot(plot)
    click.echo(_listed(result, form))
    if form == "csv":  # the other forms say it themselves
        echo_notes(result.weakness)
    if output is not None and result.resolvable:
        result.protocol.save(output)
        echo_notes(f"the recommended protocol was written to {output}")
        if not is_for_events:
            echo_notes(
                "it has no contribution, so it is for matrices; for an event table, say --contribution and --unit"
            )
    if result.refusal:
        echo_notes(result.refusal)
        ctx.exit(NOT_RESOLVABLE)


def _listed(result: "al.Plan | al.ShapePlan", form: str) -> str:
    rows = result.to_arrow().to_pylist()
    if form == "csv":
        return as_csv(rows)
    if form == "table":
        return str(result)
    needs = result.needs
    about: dict[str, Any] = {
        "resolvable": result.resolvable,
        "refusal": result.refusal,
        "recommended": next(row for row in rows if row["is_recommended"]),
        "weak_promise": result.weakness or None,
        "needed": None if needs is None else vars(needs),
        "seed": result.seed,
        "protocol": _document(result),
        "configurations": rows,
    }
    if isinstance(result, al.Plan):
        about |= {
            "told_apart": result.told_apart if result.resolvable else None,
            "distance": [result.situation.distances.low, result.situation.distances.high],
            "assumption": result.situation.distances.assumption,
            "reasons": result.reasons,
        }
    else:
        about |= {
            "seen": result.seen,
            "hidden_by_chance": result.chance,
            "beyond_chance": result.situation.beyond_chance,
            "assumption": result.assumption,
        }
        margins = result.situation.margins
        if margins is not None:
            best = margins.recommended
            about["margins"] = {
                "item_groups": margins.item_groups,
                "share": float(best.share),
                "contribution": best.contribution,
                "seen": best.seen,
                "hidden_by_chance": margins.chance,
                "seen_with_one_group": margins.alone,
            }
    return as_json(about)


def _document(result: "al.Plan | al.ShapePlan") -> dict[str, Any] | None:
    """The recommended protocol; None if there is none, or if its item groups are not listed yet."""
    margins = result.situation.margins if isinstance(result, al.ShapePlan) else None
    if not result.resolvable or (margins is not None and margins.fields is None):
        return None
    return result.protocol.document()
