"""`armslength contribution`: how many items of a person should count? A private answer, which spends privacy."""

import math
from typing import Any

import click

import armslength as al
from armslength.cli.check import event_options
from armslength.cli.exit_codes import NOT_RESOLVABLE
from armslength.cli.ledger import charge_text, chosen_ledger, ledger_options
from armslength.cli.options import LEVEL, RELATIONS, choice, event_source
from armslength.cli.output import as_json, paragraph
from armslength.estimates.contribution_quantiles import LARGEST_ITEMS
from armslength.privacy.exact_numbers import checked_epsilon, decimal_text
from armslength.results import table_lines

_NEARLY_ALL = 0.99  # of the people: a larger C is not shown
_CHOSEN = 0.9  # the quantile without which C cannot be chosen


@click.command(
    epilog="""\b
Examples:
  armslength contribution visits.parquet --person patient_id --item code --group hospital \\
             --public-groups @hospitals.txt --epsilon 0.1 --unit "one patient" --population visits-2026
  armslength contribution visits.csv.gz --person patient_id --item code --label north \\
             --epsilon 0.1 --unit "one patient" --population north-2026 --new-ledger

`armslength release --help` lists everything that SOURCE may be.
People are counted by how many different items they have: 1, 2, 3 to 4, 5 to 8, ..., over 1024. The counts get exact
noise, so the answer may be shared, and costs ε, which adds up with that of the release. All parties must use one C:
each runs this, and together you take one number, such as the 90 % line. A line is "not resolved" if there are too few
people for this ε. For 90 % that is fewer than 100/ε (200/ε with --relation replace), and the exit code is 3. The noisy number
of people decides, after ε is spent: the true number is private.
"""
)
@event_options
@click.option(
    "--epsilon", required=True, help="ε of this answer, such as 0.1. It adds up with later releases."
)
@click.option("--unit", required=True, help='Who is protected, such as "one patient": as in the protocol.')
@choice("--relation", values=RELATIONS, text="Protect against adding or removing a person, or replacing one.")
@choice(
    "--count",
    values=["people", "events"],
    text="What the protocol will count: people, once for each group and item, or events.",
)
@click.option("--one-group", is_flag=True, help="The protocol will count each person in one group only.")
@choice("--items", values=["string", "int64"], text="The type of the items.")
@ledger_options
@LEVEL
@choice("--format", "form", values=["table", "json"])
def contribution(files: tuple[str, ...], form: str, **known: Any) -> None:
    """Learn in private how many items people have, to choose C, the contribution of a protocol. It spends privacy."""
    ledger = chosen_ledger(known)
    source = event_source(files, known)
    result = al.contribution_quantiles(source, ledger=ledger, show_progress=True, **known)
    if form == "json":
        click.echo(as_json(_document(result)))
    else:
        click.echo("\n".join(_lines(result, known)))
        click.echo(charge_text(ledger, known["population"], "charged"))
    if not result.is_resolved(_CHOSEN):
        click.get_current_context().exit(NOT_RESOLVABLE)


def _document(result: "al.ContributionQuantiles") -> dict[str, Any]:
    return {
        "people": result.people,
        "level": result.level,
        "noise_scale": result.law.scale,
        "counts": result.counts.tolist(),
        "quantiles": result.to_arrow().to_pylist(),
        "shares": result.shares().to_pylist(),
    }


def _lines(result: "al.ContributionQuantiles", known: dict[str, Any]) -> list[str]:
    """The answer in words and two tables."""
    what = "events" if known["count"] == "events" else "items"
    quantiles = [
        {
            "share of people": f"{row['quantile']:.0%}",
            f"have at most so many {what}": _edge(row["items"]) if row["resolved"] else "not resolved",
            "from": _edge(row["lower"]),
            "to": _edge(row["upper"]),
        }
        for row in result.to_arrow().to_pylist()
    ]
    rows = result.shares().to_pylist()
    last = 1 + next((place for place, row in enumerate(rows) if row["lower"] >= _NEARLY_ALL), len(rows))
    shares = [
        {
            "C": f"{row['items']:,}",
            "people counted in full": f"{row['share']:.0%}",
            "from": f"{row['lower']:.0%}",
            "to": f"{row['upper']:.0%}",
        }
        for row in rows[:last]
    ]
    epsilon = decimal_text(checked_epsilon(known["epsilon"]))
    about = f"about {max(0, result.people):,} people; ε = {epsilon} for {known['unit']}; {100 * result.level:g} % for all lines together"
    lines = [f"How many {what} do people have?  ({about})", "", *table_lines(quantiles, ())]
    if result.is_resolved(_CHOSEN):
        lines += ["", *table_lines(shares, ())]
        note = f"What share of {what} a C keeps cannot be told: a few people may have any number of them. All parties must use one C."
    else:
        least = math.ceil(100 * result.law.scale)
        note = f"Too few people for this ε: 90 % needs about {least:,}. Take C from public figures, or a larger ε."
    return [*lines, "", paragraph(note)]


def _edge(items: float) -> str:
    return f"{items:,.0f}" if math.isfinite(items) else f"over {LARGEST_ITEMS:,}"
