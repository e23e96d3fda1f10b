"""The ledger: one line for each release, written before any noise is drawn, if every budget allows it.

A crash after the line and before the release counts too much; nothing counts too little.
"""

import os
import sqlite3
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from armslength.checks import one_line, one_of
from armslength.errors import BudgetError, ParameterError
from armslength.ledger.budgets import (
    Budget,
    Spent,
    check_fits,
    check_same_meaning,
    checked_period,
    parse_time,
    period_of,
    spent_of,
    time_text,
)
from armslength.ledger.entry import RELATIONS, Entry, checked_population, ledger_entry, release_label
from armslength.ledger.ledger_file import (
    LedgerFile,
    current_time,
    read_budgets,
    read_entries,
    released_before,
    write_budget,
    write_entry,
)
from armslength.privacy.exact_numbers import (
    WEAK_DELTA,
    WEAK_EPSILON,
    checked_delta,
    checked_epsilon,
    decimal_text,
    weakness,
)
from armslength.protocol.protocol import Protocol
from armslength.version import __version__

__all__ = ["NO_LEDGER", "Account", "Budget", "Entry", "Ledger", "NoLedger", "Spent", "open_account"]


class NoLedger:
    """The explicit choice to keep no ledger: everything is allowed, and nothing is written."""

    def __repr__(self) -> str:
        return "al.NO_LEDGER"

    def charge(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:  # noqa: ARG002  # those of `Ledger.charge`
        """The entry as it is."""
        return entry

    preview = charge


NO_LEDGER: Final = NoLedger()


class Ledger:
    """A ledger in an SQLite file.

    Guarantee: a charge is on the disk before `charge` returns. Several processes can charge at the same time, and together they
    never exceed a budget. If a process dies, its charge is there as a whole or not at all. A ledger refuses to go on when its file
    is removed, replaced or restored from an older copy.

    Args:
        path: The file. It must exist, unless `create` is True.
        read_only: Whether nothing may be written to it.
        create: Whether to make a new ledger. The file must not exist; the first line makes it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, create: bool = False
    ) -> None:
        self.path = os.fspath(path)
        self.read_only = read_only
        if read_only and create:
            raise ParameterError("read_only must be False for a ledger to be made, got True; leave one out")
        # absolute: a change of the working folder must not change the ledger
        self._file = LedgerFile(str(Path(self.path).absolute()), create=create)

    def __repr__(self) -> str:
        return f"Ledger({self.path!r}{', read_only=True' if self.read_only else ''})"

    def charge(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:
        """Writes the entry and returns it with its time. Refuses to exceed a budget, and labels that were released before.

        Args:
            entry: What is about to be released.
            labels: The labels of its rows.
            repeat: Whether a population and label may be charged again.
        """
        self._check_writable()
        entry.loss  # noqa: B018  # refuses what is no valid entry, before any file is made
        with self._file.writing() as connection:
            stamped = _checked_entry(connection, entry, labels, repeat)
            write_entry(connection, stamped, labels)
        return stamped

    def preview(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:
        """The entry that `charge` would write now, or the same refusal. Nothing is written, and no file is made."""
        entry.loss  # noqa: B018  # refuses what is no valid entry
        with self._file.reading() as connection:
            return _checked_entry(connection, entry, labels, repeat)

    def set_budget(
        self,
        population: str,
        epsilon: Any,
        delta: Any = 0,
        *,
        unit: str,
        relation: str = "add_remove",
        period: str | None = None,
    ) -> Budget:
        """Sets how much a population may lose, and returns the budget. All earlier charges count.

        It replaces the budget of the same population and period, which stays in the file as history. A release must fit the
        budgets of all periods.

        Args:
            population: Whose budget it is.
            epsilon: ε, as an exact decimal.
            delta: δ; with 0, Gaussian noise is refused.
            unit: The unit of protection, in the words of the protocols that will be charged.
            relation: "add_remove" or "replace", as in those protocols.
            period: "year", "quarter", "month", "week" or "day", in UTC; None for all time.
        """
        self._check_writable()
        if not checked_population(population):
            raise ParameterError("population must name the people whose budget it is, got nothing")
        budget = Budget(
            population,
            unit=one_line("unit", unit),
            relation=one_of("relation", relation, RELATIONS),
            period=checked_period(period),
            epsilon=decimal_text(checked_epsilon(epsilon)),
            delta=decimal_text(checked_delta(delta)),
            version=__version__,
        )
        with self._file.writing() as connection:
            budgets = read_budgets(connection, population)
            # Everything that it counts must have its unit and relation. It replaces the budget of the same period.
            check_same_meaning(budget, [other for other in budgets if other.period != period])
            check_same_meaning(budget, read_entries(connection, population))
            stamped = replace(budget, time=time_text(current_time(connection)))
            write_budget(connection, stamped)
        return stamped

    def entries(self, population: str | None = None) -> list[Entry]:
        """All entries in order, or those of one population."""
        with self._file.reading() as connection:
            return read_entries(connection, population)

    def budgets(self, population: str | None = None, *, past: bool = False) -> list[Budget]:
        """The budgets in force, or with `past` all that were ever set, in order."""
        with self._file.reading() as connection:
            return read_budgets(connection, population, past=past)

    def spent(self, population: str | None = None, *, past: bool = False) -> list[Spent]:
        """What was spent: in the present period of each budget, or for all time without a budget.

        Args:
            population: Whose; None for all populations.
            past: Whether earlier periods with releases are listed too.
        """
        with self._file.reading() as connection:
            entries = read_entries(connection, population)
            budgets = read_budgets(connection, population)
            moment = current_time(connection)
        summaries: list[Spent] = []
        for key in dict.fromkeys([*map(_account, budgets), *map(_account, entries)]):
            own_entries = [entry for entry in entries if _account(entry) == key]
            own_budgets = [budget for budget in budgets if _account(budget) == key]
            if own_entries and all(budget.period is not None for budget in own_budgets):
                summaries.append(spent_of(own_entries, None, moment))
            for budget in own_budgets:
                earlier = _earlier_periods(budget.period, own_entries, moment) if past else []
                summaries += [spent_of(own_entries, budget, start, is_past=True) for start in earlier]
                summaries.append(spent_of(own_entries, budget, moment))
        return summaries

    def _check_writable(self) -> None:
        if self.read_only:
            raise ParameterError(f"ledger must not be read_only to be charged, got {self!r}")


def _checked_entry(
    connection: sqlite3.Connection, entry: Entry, labels: Sequence[str], repeat: bool
) -> Entry:
    """The entry with its time, if its labels are new and every budget allows it. Changes nothing."""
    again = released_before(connection, entry.population, labels)
    if again and not repeat:
        raise BudgetError(
            f"labels must be new for population {entry.population!r}, got {again[0][:100]!r} again; "
            "take another label, or pass repeat=True to spend the budget again"
        )
    moment = current_time(connection)
    budgets = read_budgets(connection, entry.population)
    check_same_meaning(entry, budgets)
    if budgets:
        check_fits(entry, budgets, read_entries(connection, entry.population), moment)
    return replace(entry, time=time_text(moment))


def _account(line: Entry | Budget) -> tuple[str, str, str]:
    """The lines with the same key count together."""
    return line.population, line.unit, line.relation


def _earlier_periods(period: str | None, entries: Sequence[Entry], moment: datetime) -> list[datetime]:
    """The starts of all earlier periods with entries."""
    if period is None:
        return []
    now, _ = period_of(period, moment)
    return sorted({period_of(period, parse_time(entry.time))[0] for entry in entries} - {now})


@dataclass(frozen=True)
class Account:
    """What a release charges: a ledger, whose budget, and whether labels may be charged again."""

    ledger: Ledger | NoLedger
    population: str
    repeat: bool

    def charge(self, protocol: Protocol, labels: Sequence[str]) -> None:
        """Writes the line of a release of these rows, or refuses; warns first if the promise is weak."""
        if protocol.epsilon > WEAK_EPSILON or protocol.released_delta > WEAK_DELTA:
            warnings.warn(
                weakness(protocol.epsilon, protocol.released_delta), stacklevel=5
            )  # where release was called
        self.ledger.charge(self._entry(protocol, labels), labels, repeat=self.repeat)

    def preview(self, protocol: Protocol, labels: Sequence[str]) -> None:
        """Refuses what `charge` would refuse, and writes nothing."""
        self.ledger.preview(self._entry(protocol, labels), labels, repeat=self.repeat)

    def _entry(self, protocol: Protocol, labels: Sequence[str]) -> Entry:
        return ledger_entry(protocol, self.population, release_label(labels))


def open_account(ledger: object, population: object, *, repeat: bool = False) -> Account:
    """The account to charge, if the ledger knows whose budget that is; with `NO_LEDGER` the population may be empty."""
    name = checked_population(population)
    if isinstance(ledger, (str, os.PathLike)):
        ledger = Ledger(ledger)
    if not isinstance(ledger, (Ledger, NoLedger)):
        raise ParameterError(
            "ledger must be given: a file such as 'ledger.sqlite', al.Ledger(path, create=True) for a new one, "
            "or al.NO_LEDGER to go without"
        )
    if isinstance(ledger, Ledger) and not name:
        raise ParameterError("population must name the people whose budget the ledger charges, got nothing")
    return Account(ledger, name, repeat)
