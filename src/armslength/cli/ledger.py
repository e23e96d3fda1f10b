"""`armslength ledger`: what was spent on whom, and how much may be."""

from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.options import LocalPath
from armslength.cli.output import CSV_HELP, FORMATS, as_csv, as_json
from armslength.errors import printable
from armslength.ledger.entry import COLUMNS
from armslength.results import Column, heading, line, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armslength.ledger.ledger import Budget, Entry, Spent

NEW_LEDGER = click.option(
    "--new-ledger", is_flag=True, help="Make a new ledger; the file must not exist yet."
)
_DEFAULT = "ledger.sqlite"
_WIDEST = 40


@click.group(
    epilog="""\b
Examples:
  armslength ledger budget --new-ledger --population visits-2026 --epsilon 4 --unit "one patient"
  armslength ledger show
"""
)
def ledger() -> None:
    """Show what was spent, and set budgets.

    A ledger is one SQLite file (ledger.sqlite in the current folder, if none is named). Every release writes a line to it first,
    and is refused if a budget of its population does not allow it. The lines hold public parameters only.
    """


@ledger.command(
    short_help="What was spent of which budget, what is left, and every line.",
    epilog="""\b
Examples:
  armslength ledger show
  armslength ledger show north.sqlite --population visits-2026 --past
  armslength ledger show --format json
  armslength ledger show --format csv > lines.csv

epsilon is the smallest one that is proved for all releases of the period together, at the delta beside it, rounded up. left is the
largest epsilon of one more release with Laplace noise, rounded down. proof: sum (all ε and δ added), gaussian (all Gaussian noise
as one exact curve, pure ε added), or renyi (zCDP or better).
""",
)
@click.argument("path", metavar="[LEDGER]", default=_DEFAULT, type=LocalPath(dir_okay=False))
@click.option("--population", help="Only this population.")
@click.option("--past", is_flag=True, help="Also what was spent in earlier periods.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help=f"table and json: the summary, all budgets that were ever set, and the lines; csv: the lines alone. {CSV_HELP}",
)
def show(path: str, population: str | None, past: bool, form: str) -> None:
    """What was spent of which budget, what is left, and every line.

    LEDGER is a file that exists (ledger.sqlite by default). Nothing is written.
    """
    book = al.Ledger(path, read_only=True)
    entries = book.entries(population)
    if form == "csv":
        click.echo(as_csv([asdict(entry) for entry in entries]) if entries else ",".join(COLUMNS))
        return
    spent, budgets = book.spent(population, past=past), book.budgets(population, past=True)
    in_force = book.budgets(population)
    if form == "json":
        listed = [{**asdict(budget), "in_force": budget in in_force} for budget in budgets]
        click.echo(
            as_json(
                {
                    "spent": [asdict(line) for line in spent],
                    "budgets": listed,
                    "entries": [asdict(entry) for entry in entries],
                }
            )
        )
        return
    parts = [_spent_table(spent), _budget_table(budgets, in_force), _entry_table(entries)]
    click.echo("\n\n".join(part for part in parts if part) or "nothing was spent, and no budget was set")


@ledger.command(
    short_help="Set, raise or lower what a population may lose.",
    epilog="""\b
Examples:
  armslength ledger budget --new-ledger --population visits-2026 --epsilon 4 --delta 1e-6 --unit "one patient"
  armslength ledger budget --population visits-2026 --epsilon 1 --delta 1e-6 --unit "one patient" --period month
  armslength ledger budget north.sqlite --population staff --epsilon 2 --unit "one nurse" --relation replace --dry-run

Budgets of several periods hold together: with the first two lines, a release must fit its month and the whole. A new budget
replaces the one of the same population and period; `armslength ledger show` still lists the earlier ones, with their times.
With --delta 0, Gaussian noise is refused. A budget for a period bounds each period alone: set one without a period, too.
""",
)
@click.argument("path", metavar="[LEDGER]", default=_DEFAULT, type=LocalPath(dir_okay=False))
@click.option("--population", required=True, help="Whose budget: the name that releases will give.")
@click.option("--epsilon", required=True, help="The largest ε of all releases together, such as 4 or 0.5.")
@click.option("--delta", default="0", show_default=True, help="Their δ; 0 is pure differential privacy.")
@click.option(
    "--unit",
    required=True,
    help='The unit of protection in the words of the protocols, such as "one patient".',
)
@click.option(
    "--relation",
    type=click.Choice(["add_remove", "replace"]),
    default="add_remove",
    show_default=True,
    help="Whether one person is added or removed, or replaced; as in the protocols.",
)
@click.option(
    "--period",
    type=click.Choice(["year", "quarter", "month", "week", "day"]),
    help="For each calendar period in UTC.  [default: once, for all time]",
)
@NEW_LEDGER
@click.option("--dry-run", is_flag=True, help="Say what would be set; write nothing.")
def budget(path: str, new_ledger: bool, dry_run: bool, **known: Any) -> None:
    """Set, raise or lower what a population may lose.

    LEDGER is a file that exists (ledger.sqlite by default), or a new one with --new-ledger. What was charged before counts.
    """
    book = al.Ledger(path, create=new_ledger)
    before = [old for old in book.budgets(known["population"]) if old.period == known["period"]]
    new = (book.preview_budget if dry_run else book.set_budget)(**known)
    spent = book.spent_under(new)
    done = "would be" if dry_run else "is"
    click.echo(
        f"the budget of {new.population!r} {done} {new}, for {new.unit or 'no named unit'!r} ({new.relation})"
    )
    if before:
        click.echo(f"before: {before[0]}, since {before[0].time}")
    click.echo(
        f"spent: epsilon {_number(spent.epsilon)} at delta {_number(spent.delta)}; left: {_number(spent.left)}"
    )
    if dry_run:
        click.echo("nothing was written")


def _spent_table(lines: "Sequence[Spent]") -> str:
    rows = [
        (
            line.population,
            line.unit,
            line.relation,
            "in all" if line.period is None else f"{line.period} from {(line.start or '')[:10]}",
            str(line.releases),
            _number(line.epsilon),
            _number(line.delta),
            "-" if line.budget is None else f"{line.budget.epsilon} at {_short(line.budget.delta)}",
            _number(line.left),
            line.method or "none",
        )
        for line in lines
    ]
    head = (
        "population",
        "unit",
        "relation",
        "period",
        "releases",
        "epsilon",
        "delta",
        "budget",
        "left",
        "proof",
    )
    return _table("Spent", head, rows)


def _budget_table(budgets: "Sequence[Budget]", in_force: "Sequence[Budget]") -> str:
    rows = [
        (
            line.time,
            line.population,
            line.period or "in all",
            line.epsilon,
            _short(line.delta),
            line.unit,
            line.relation,
            "in force" if line in in_force else "replaced",
        )
        for line in budgets
    ]
    head = ("set", "population", "period", "epsilon", "delta", "unit", "relation", "state")
    return _table("Budgets", head, rows)


def _entry_table(entries: "Sequence[Entry]") -> str:
    rows = [
        (
            line.time,
            line.population,
            line.label,
            line.law,
            line.epsilon,
            _short(line.delta),
            line.protocol[:12],
        )
        for line in entries
    ]
    return _table("Lines", ("time", "population", "label", "law", "epsilon", "delta", "protocol"), rows)


def _table(title: str, head: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> str:
    """Columns side by side under a title; nothing for no rows."""
    if not rows:
        return ""
    cells = [[shortened(printable(text) or "-", _WIDEST) for text in row] for row in rows]
    columns = [
        Column(name, max(len(name), *map(len, each))) for name, *each in zip(head, *cells, strict=True)
    ]
    return "\n".join([title, heading(columns), *(line(columns, row) for row in cells)])


def _short(exact: str) -> str:
    """A δ as it is usually written."""
    return f"{float(Fraction(exact)):g}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
