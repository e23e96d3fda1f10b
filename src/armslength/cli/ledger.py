"""`armslength ledger`: what was spent on whom, and how much may be."""

from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

import armslength as al
from armslength.cli.options import CSV_HELP, FILE, RELATION, all_of, choice, flag, option
from armslength.cli.output import as_csv, as_json
from armslength.errors import printable
from armslength.ledger.entry import COLUMNS
from armslength.ledger.ledger import Account, NoLedger
from armslength.results import shortened, table_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armslength.ledger.ledger import Budget, Entry, Spent

_NEW_LEDGER = flag("--new-ledger", "Make a new ledger; the file must not exist yet.")
# What commands that spend privacy are told about it.
ledger_options = all_of(
    option(
        "--population",
        "Whose budget the ledger charges, such as visits-2026.  [default: everybody in the ledger]",
        default="",
    ),
    option("--ledger", "The ledger that is charged. It must exist.", default="ledger.sqlite", type=FILE),
    _NEW_LEDGER,
    option(
        "--period",
        "The time that the data are about, such as 2026-11. The same labels can be released once per period.",
        default="",
    ),
    flag("--no-ledger", "Use no ledger: you keep count yourself."),
    flag("--repeat", "Release again what was released before; spends the budget again."),
)
_PATH = click.argument("path", metavar="[LEDGER]", default="ledger.sqlite", type=FILE)
_WIDEST = 40


def chosen_ledger(options: dict[str, Any]) -> "al.Ledger | NoLedger":
    """The ledger that `ledger_options` name; takes them out of the options."""
    path, is_new, none = (options.pop(name) for name in ("ledger", "new_ledger", "no_ledger"))
    if is_new and none:
        raise click.UsageError("--new-ledger cannot be combined with --no-ledger")
    return al.NO_LEDGER if none else al.Ledger(path, create=is_new)


def charge_text(account: Account, done: str) -> str:
    """Where something was charged, and what is left of each budget."""
    ledger, population = account.ledger, account.population
    if isinstance(ledger, NoLedger):
        return "no ledger: you keep count yourself"
    budgets = [line for line in ledger.spent(population) if line.budget is not None]
    lines = [
        f"  budget {line.budget}" + ("" if line.left is None else f"; left now: {line.left:.4g}")
        for line in budgets
    ]
    none = f"  no budget is set for {population!r}: `armslength ledger budget {ledger.path} --population ...` sets one"
    where = "" if account.line is None else f", line {account.line.number}"
    return "\n".join([f"{done} to {population!r} in {ledger.path}{where}", *(lines or [none])])


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
    and is refused if a budget of its population does not allow it. The lines hold settings and names, and nothing from the data.
    """


@ledger.command(
    short_help="What was spent of which budget, what is left, and every line.",
    epilog="""\b
Examples:
  armslength ledger show
  armslength ledger show north.sqlite --population visits-2026 --past
  armslength ledger show --format csv > lines.csv

epsilon is the smallest one that is proved for all releases together, at the delta beside it, rounded up. left is the
largest epsilon of one more release with Laplace noise, rounded down. proof: sum (all ε and δ added), gaussian (all Gaussian noise
as one exact curve, pure ε added), or renyi (zCDP or better).
""",
)
@_PATH
@option("--population", "Only this population.")
@flag("--past", "Also what was spent in earlier years, months and so on.")
@choice(
    "--format output_format",
    ["table", "json", "csv"],
    f"table and json: the summary, all budgets that were ever set, and the lines; csv: the lines alone. {CSV_HELP}",
)
def show(path: str, population: str | None, past: bool, output_format: str) -> None:
    """What was spent of which budget, what is left, and every line.

    LEDGER is a file that exists (ledger.sqlite by default). Nothing is written.
    """
    book = al.Ledger(path, read_only=True)
    entries = book.entries(population)
    if output_format == "csv":
        lines = [asdict(entry) | {"labels": ", ".join(entry.labels)} for entry in entries]
        click.echo(as_csv(lines, ("number", "labels", *COLUMNS)))
        return
    spent, budgets = book.spent(population, past=past), book.budgets(population, past=True)
    in_force = book.budgets(population)
    if output_format == "json":
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
  armslength ledger budget --population visits-2026 --epsilon 1 --delta 1e-6 --unit "one patient" --per month
  armslength ledger budget north.sqlite --population staff --epsilon 2 --unit "one nurse" --relation replace
  armslength ledger budget --population pilot --no-limit --unit "one patient"

All budgets of a population hold together: with the first two lines, a release must fit its month and the whole. A new budget
replaces the one of the same population and --per; `armslength ledger show` still lists the earlier ones, with their times.
With --delta 0, Gaussian noise is refused. A budget per month bounds each month alone: set one without --per, too. Once a population
has a budget, releases for a population without one are refused, as its name may be misspelled; --no-limit allows them.
""",
)
@_PATH
@option("--population", "Whose budget: the name that releases will give.", required=True)
@option("--epsilon", "The largest ε of all releases together, such as 4 or 0.5.")
@flag("--no-limit", "Instead of --epsilon: record releases without limiting them.")
@option("--delta", "Their δ; 0 is pure differential privacy.", default="0")
@option("--unit", 'Who is protected, in the words of the protocols, such as "one patient".', required=True)
@RELATION
@option(
    "--per",
    "For each calendar year, month and so on in UTC.  [default: once, for all time]",
    type=click.Choice(["year", "quarter", "month", "week", "day"]),
)
@_NEW_LEDGER
def budget(path: str, new_ledger: bool, no_limit: bool, **options: Any) -> None:
    """Set, raise or lower what a population may lose.

    LEDGER is a file that exists (ledger.sqlite by default), or a new one with --new-ledger. What was charged before counts.
    """
    if no_limit == (options["epsilon"] is not None):
        raise click.UsageError("give either --epsilon or --no-limit")
    book = al.Ledger(path, create=new_ledger)
    before = [old for old in book.budgets(options["population"]) if old.per == options["per"]]
    new = book.set_budget(**options)
    (spent,) = (line for line in book.spent(new.population) if line.budget == new)
    click.echo(
        f"the budget of {new.population!r} is {new}, for {new.unit or 'no named unit'!r} ({new.relation})"
    )
    if before:
        click.echo(f"before: {before[0]}, since {before[0].time}")
    epsilon, delta, left = map(_cell, (spent.epsilon, spent.delta, spent.left))
    click.echo(f"spent: epsilon {epsilon} at delta {delta}; left: {left}")


def _tables(
    spent: "Sequence[Spent]",
    budgets: "Sequence[Budget]",
    in_force: "Sequence[Budget]",
    entries: "Sequence[Entry]",
) -> str:
    """Three tables, without those that are empty."""
    spent_rows = [
        {
            "population": line.population,
            "unit": line.unit,
            "relation": line.relation,
            "time": "in all" if line.per is None else f"{line.per} from {(line.start or '')[:10]}",
            "releases": line.releases,
            "epsilon": line.epsilon,
            "delta": line.delta,
            "budget": line.budget
            and (
                f"{line.budget.epsilon} at {_short(line.budget.delta)}" if line.budget.limit else "no limit"
            ),
            "left": line.left,
            "proof": line.method or "none",
        }
        for line in spent
    ]
    budget_rows = [
        {
            "set": budget.time,
            "population": budget.population,
            "per": budget.per or "in all",
            "epsilon": budget.epsilon,
            "delta": _short(budget.delta),
            "unit": budget.unit,
            "relation": budget.relation,
            "state": "in force" if budget in in_force else "replaced",
        }
        for budget in budgets
    ]
    entry_rows = [
        {name: getattr(entry, name) for name in ("number", "time", "population", "period")}
        | {"labels": ", ".join(entry.labels), "file": entry.file}
        | {"law": entry.law, "epsilon": entry.epsilon, "delta": _short(entry.delta)}
        | {"release": entry.release[:12], "protocol": entry.protocol[:12]}
        for entry in entries
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "Spent": spent_rows,
        "Budgets": budget_rows,
        "Lines": entry_rows,
    }
    parts = []
    for title, rows in tables.items():
        if rows:
            cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
            parts.append("\n".join([title, *table_lines(cells, rows[0])]))
    return "\n\n".join(parts)


def _short(exact: str) -> str:
    """A δ as it is usually written."""
    return f"{float(Fraction(exact)):g}"


def _cell(value: str | float | None) -> str:
    text = f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)
    return shortened(printable(text) or "-", _WIDEST)
