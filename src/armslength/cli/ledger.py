"""`armslength ledger`: what was spent on whom, and how much may be."""

from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.options import CSV_HELP, FILE, FORMATS, RELATION, all_of, choice, option
from armslength.cli.output import as_csv, as_json
from armslength.errors import printable
from armslength.ledger.entry import COLUMNS
from armslength.ledger.ledger import NoLedger
from armslength.results import shortened, table_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armslength.ledger.ledger import Budget, Entry, Spent

_NEW_LEDGER = click.option(
    "--new-ledger", is_flag=True, help="Make a new ledger; the file must not exist yet."
)
# What commands that spend privacy are told about it.
ledger_options = all_of(
    click.option("--population", default="", help="Whose budget the ledger charges, such as visits-2026."),
    option("--ledger", default="ledger.sqlite", type=FILE, help="The ledger that is charged. It must exist."),
    _NEW_LEDGER,
    click.option("--no-ledger", is_flag=True, help="Use no ledger: you keep count yourself."),
    click.option(
        "--repeat",
        is_flag=True,
        help="Release or ask again what was released or asked before; spends the budget again.",
    ),
)
_PATH = click.argument("path", metavar="[LEDGER]", default="ledger.sqlite", type=FILE)
_WIDEST = 40


def chosen_ledger(known: dict[str, Any]) -> "al.Ledger | NoLedger":
    """The ledger that `ledger_options` name; takes them out of the options."""
    path, is_new, none = (known.pop(name) for name in ("ledger", "new_ledger", "no_ledger"))
    if is_new and none:
        raise click.UsageError("--new-ledger must go without --no-ledger, got both; leave one out")
    return al.NO_LEDGER if none else al.Ledger(path, create=is_new)


def charge_text(ledger: "al.Ledger | NoLedger", population: str, done: str) -> str:
    """Where something was charged, and what is left of each budget."""
    if isinstance(ledger, NoLedger):
        return "no ledger: you keep count yourself"
    budgets = [line for line in ledger.spent(population) if line.budget is not None]
    lines = [f"  budget {line.budget}; left now: {line.left:.4g}" for line in budgets]
    none = f"  no budget is set for {population!r}: `armslength ledger budget {ledger.path} --population ...` sets one"
    return "\n".join([f"{done} to {population!r} in {ledger.path}", *(lines or [none])])


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
@_PATH
@click.option("--population", help="Only this population.")
@click.option("--past", is_flag=True, help="Also what was spent in earlier periods.")
@choice(
    "--format",
    "form",
    values=FORMATS,
    text=f"table and json: the summary, all budgets that were ever set, and the lines; csv: the lines alone. {CSV_HELP}",
)
def show(path: str, population: str | None, past: bool, form: str) -> None:
    """What was spent of which budget, what is left, and every line.

    LEDGER is a file that exists (ledger.sqlite by default). Nothing is written.
    """
    book = al.Ledger(path, read_only=True)
    entries = book.entries(population)
    if form == "csv":
        click.echo(as_csv([asdict(entry) for entry in entries], COLUMNS))
        return
    spent, budgets = book.spent(population, past=past), book.budgets(population, past=True)
    in_force = book.budgets(population)
    if form == "json":
        document = {
            "spent": [asdict(line) for line in spent],
            "budgets": [{**asdict(budget), "in_force": budget in in_force} for budget in budgets],
            "entries": [asdict(entry) for entry in entries],
        }
        click.echo(as_json(document))
    else:
        text = _tables(spent, budgets, in_force, entries)
        click.echo(text or "nothing was spent, and no budget was set")


@ledger.command(
    short_help="Set, raise or lower what a population may lose.",
    epilog="""\b
Examples:
  armslength ledger budget --new-ledger --population visits-2026 --epsilon 4 --delta 1e-6 --unit "one patient"
  armslength ledger budget --population visits-2026 --epsilon 1 --delta 1e-6 --unit "one patient" --period month
  armslength ledger budget north.sqlite --population staff --epsilon 2 --unit "one nurse" --relation replace

Budgets of several periods hold together: with the first two lines, a release must fit its month and the whole. A new budget
replaces the one of the same population and period; `armslength ledger show` still lists the earlier ones, with their times.
With --delta 0, Gaussian noise is refused. A budget for a period bounds each period alone: set one without a period, too.
""",
)
@_PATH
@click.option("--population", required=True, help="Whose budget: the name that releases will give.")
@click.option("--epsilon", required=True, help="The largest ε of all releases together, such as 4 or 0.5.")
@option("--delta", default="0", help="Their δ; 0 is pure differential privacy.")
@click.option(
    "--unit",
    required=True,
    help='The unit of protection in the words of the protocols, such as "one patient".',
)
@RELATION
@click.option(
    "--period",
    type=click.Choice(["year", "quarter", "month", "week", "day"]),
    help="For each calendar period in UTC.  [default: once, for all time]",
)
@_NEW_LEDGER
def budget(path: str, new_ledger: bool, **known: Any) -> None:
    """Set, raise or lower what a population may lose.

    LEDGER is a file that exists (ledger.sqlite by default), or a new one with --new-ledger. What was charged before counts.
    """
    book = al.Ledger(path, create=new_ledger)
    before = [old for old in book.budgets(known["population"]) if old.period == known["period"]]
    new = book.set_budget(**known)
    (spent,) = (each for each in book.spent(new.population) if each.budget == new)
    click.echo(
        f"the budget of {new.population!r} is {new}, for {new.unit or 'no named unit'!r} ({new.relation})"
    )
    if before:
        click.echo(f"before: {before[0]}, since {before[0].time}")
    click.echo(
        f"spent: epsilon {_number(spent.epsilon)} at delta {_number(spent.delta)}; left: {_number(spent.left)}"
    )


def _tables(
    spent: "Sequence[Spent]",
    budgets: "Sequence[Budget]",
    in_force: "Sequence[Budget]",
    entries: "Sequence[Entry]",
) -> str:
    """Three tables, without those that are empty."""
    spent_rows = [
        {
            "population": each.population,
            "unit": each.unit,
            "relation": each.relation,
            "period": "in all" if each.period is None else f"{each.period} from {(each.start or '')[:10]}",
            "releases": str(each.releases),
            "epsilon": _number(each.epsilon),
            "delta": _number(each.delta),
            "budget": "-" if each.budget is None else f"{each.budget.epsilon} at {_short(each.budget.delta)}",
            "left": _number(each.left),
            "proof": each.method or "none",
        }
        for each in spent
    ]
    budget_rows = [
        {
            "set": each.time,
            "population": each.population,
            "period": each.period or "in all",
            "epsilon": each.epsilon,
            "delta": _short(each.delta),
            "unit": each.unit,
            "relation": each.relation,
            "state": "in force" if each in in_force else "replaced",
        }
        for each in budgets
    ]
    names = ("time", "population", "label", "law", "epsilon", "delta", "protocol")
    entry_rows = [{name: getattr(each, name) for name in names} for each in entries]
    for row in entry_rows:
        row |= {"delta": _short(row["delta"]), "protocol": row["protocol"][:12]}
    tables = {"Spent": spent_rows, "Budgets": budget_rows, "Lines": entry_rows}
    return "\n\n".join(_table(title, rows) for title, rows in tables.items() if rows)


def _table(title: str, rows: "Sequence[dict[str, str]]") -> str:
    """Columns side by side under a title."""
    cells = [{name: shortened(printable(text) or "-", _WIDEST) for name, text in row.items()} for row in rows]
    return "\n".join([title, *table_lines(cells, rows[0])])


def _short(exact: str) -> str:
    """A δ as it is usually written."""
    return f"{float(Fraction(exact)):g}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
