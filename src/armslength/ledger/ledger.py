"""The ledger: one line for each release, written before any noise is drawn, if every budget allows it.

A crash after the line and before the release counts too much; nothing counts too little.
"""

import os
import secrets
import sqlite3
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from armslength.checks import one_line, one_of
from armslength.errors import BudgetError, ParameterError
from armslength.ledger.budgets import (
    UNLIMITED,
    Budget,
    Spent,
    check_fits,
    check_same_meaning,
    checked_span,
    parse_time,
    span_of,
    spent_of,
    time_text,
)
from armslength.ledger.entry import (
    RELATIONS,
    Entry,
    checked_period,
    checked_population,
    ledger_entry,
    resembles,
)
from armslength.ledger.ledger_file import (
    LedgerFile,
    current_time,
    populations,
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

    def charge(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:  # noqa: ARG002  # as in `Ledger.charge`
        """The entry with its labels."""
        return replace(entry, labels=tuple(labels))

    preview = charge


NO_LEDGER: Final = NoLedger()
RELEASE_BYTES: Final = 12  # of a release's id
EVERYBODY: Final = "everybody"  # the population where none is named: all releases of a ledger add up


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
            raise ParameterError("create=True cannot be combined with read_only=True", "create", "read_only")
        # absolute: a change of the working folder must not change the ledger
        self._file = LedgerFile(str(Path(self.path).absolute()), create=create)

    def __repr__(self) -> str:
        return f"Ledger({self.path!r}{', read_only=True' if self.read_only else ''})"

    def charge(self, entry: Entry, labels: Sequence[str], *, repeat: bool = False) -> Entry:
        """Writes the entry and returns it with its time, labels and number. Refuses to exceed a budget.

        It also refuses a population, period and label that were charged before, a population whose name looks like that of another, and
        a population without a budget where others have one.

        Args:
            entry: What is about to be released.
            labels: The labels of its rows.
            repeat: Whether the same population, period and label may be charged again.
        """
        self._check_writable()
        entry.loss  # noqa: B018  # refuses what is no valid entry, before any file is made
        with self._file.writing() as connection:
            return write_entry(connection, _checked_entry(connection, entry, labels, repeat))

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
        per: str | None = None,
    ) -> Budget:
        """Sets how much a population may lose, and returns the budget. All earlier charges count.

        It replaces the budget of the same population and `per`, which stays in the file as history. A release must fit all
        budgets of its population.

        Args:
            population: Whose budget it is.
            epsilon: ε, as an exact decimal; None records releases without limiting them.
            delta: δ; with 0, Gaussian noise is refused.
            unit: The unit of protection, in the words of the protocols that will be charged.
            relation: "add_remove" or "replace", as in those protocols.
            per: "year", "quarter", "month", "week" or "day", in UTC; None for all time.
        """
        self._check_writable()
        if not checked_population(population):
            raise ParameterError("population is missing: name the people whose budget it is", "population")
        if epsilon is None and per is not None:
            raise ParameterError(
                "per needs an epsilon: a budget without a limit is for all time", "per", "epsilon"
            )
        budget = Budget(
            population,
            unit=one_line("unit", unit),
            relation=one_of("relation", relation, RELATIONS),
            per=checked_span(per),
            epsilon=UNLIMITED if epsilon is None else decimal_text(checked_epsilon(epsilon)),
            delta=decimal_text(checked_delta(delta)),
            version=__version__,
        )
        with self._file.writing() as connection:
            _check_new_name(connection, population)
            budgets = read_budgets(connection, population)
            # Everything that it counts must have its unit and relation. It replaces the budget of the same span.
            check_same_meaning(budget, [other for other in budgets if other.per != per])
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
        """What was spent: in the present year, month and so on of each budget, or for all time without a budget.

        Args:
            population: Whose; None for all populations.
            past: Whether earlier years, months and so on with releases are listed too.
        """
        with self._file.reading() as connection:
            entries = read_entries(connection, population)
            budgets = read_budgets(connection, population)
            moment = current_time(connection)
        summaries: list[Spent] = []
        accounts: dict[tuple[str, str, str], tuple[list[Budget], list[Entry]]] = {}
        for budget in budgets:
            accounts.setdefault(_account(budget), ([], []))[0].append(budget)
        for entry in entries:
            accounts.setdefault(_account(entry), ([], []))[1].append(entry)
        for own_budgets, own_entries in accounts.values():
            if own_entries and all(budget.per is not None for budget in own_budgets):
                summaries.append(spent_of(own_entries, None, moment))
            for budget in own_budgets:
                earlier = _earlier_spans(budget.per, own_entries, moment) if past else []
                summaries += [spent_of(own_entries, budget, start, is_past=True) for start in earlier]
                summaries.append(spent_of(own_entries, budget, moment))
        return summaries

    def _check_writable(self) -> None:
        if self.read_only:
            raise ParameterError(f"cannot charge {self!r}: it was opened with read_only=True")


def _checked_entry(
    connection: sqlite3.Connection, entry: Entry, labels: Sequence[str], repeat: bool
) -> Entry:
    """The entry with its time and labels, if they are new and every budget allows it. Changes nothing."""
    _check_new_name(connection, entry.population)
    again = released_before(connection, entry, labels)
    if again and not repeat:
        period = f" for the period {entry.period}" if entry.period else ""
        raise BudgetError(
            f"{again[0][:100]!r} was released before for population {entry.population!r}{period}; give another label or "
            "period, or pass repeat=True to spend the budget again",
            "repeat",
        )
    moment = current_time(connection)
    budgets = read_budgets(connection, entry.population)
    check_same_meaning(entry, budgets)
    if budgets:
        check_fits(entry, budgets, read_entries(connection, entry.population), moment)
    elif others := read_budgets(connection, None):
        raise BudgetError(
            f"population {entry.population!r} has no budget in this ledger, where others have one "
            f"({others[0].population!r} for example); check the name, or set a budget for it first, which may have no limit"
        )
    return replace(entry, time=time_text(moment), labels=tuple(labels))


def _check_new_name(connection: sqlite3.Connection, population: str) -> None:
    """Refuses a name that looks like that of another population: two spellings would be two budgets for the same people."""
    names = populations(connection)
    if population == EVERYBODY and names and population not in names:
        raise ParameterError(
            f"population is missing: this ledger has others, such as {next(iter(names))!r}; name the people whose budget to charge",
            "population",
        )
    if EVERYBODY in names and population not in names:
        raise BudgetError(
            f"this ledger charges all its releases to {EVERYBODY!r}, whose charges a budget of {population!r} would not know; "
            "leave population out, or take another ledger for other people",
            "population",
        )
    for other in () if population in names else names:
        if resembles(population, other):
            raise BudgetError(
                f"population {population!r} differs from {other!r} in this ledger only by case, blanks, width or invisible "
                f"characters; write {other!r}, or take a name that looks different"
            )


def _account(line: Entry | Budget) -> tuple[str, str, str]:
    """The lines with the same key count together."""
    return line.population, line.unit, line.relation


def _earlier_spans(per: str | None, entries: Sequence[Entry], moment: datetime) -> list[datetime]:
    """The starts of all earlier years, months and so on with entries."""
    if per is None:
        return []
    now, _ = span_of(per, moment)
    return sorted({span_of(per, parse_time(entry.time))[0] for entry in entries} - {now})


@dataclass
class Account:
    """What one release charges, once: a ledger, whose budget, and whether labels may be charged again."""

    ledger: Ledger | NoLedger
    population: str
    period: str = ""
    file: str = ""  # the name of the file that it will be written to, if that is known
    repeat: bool = False
    release: bytes = field(default_factory=lambda: secrets.token_bytes(RELEASE_BYTES))  # its public id
    _is_used: bool = False

    def charge(self, protocol: Protocol, labels: Sequence[str]) -> None:
        """Writes the line of a release of these rows, or refuses; warns first if the promise is weak."""
        if self._is_used:
            raise RuntimeError("an account is for one release, and must not be charged again: it has one id")
        if protocol.epsilon > WEAK_EPSILON or protocol.released_delta > WEAK_DELTA:
            warnings.warn(
                weakness(protocol.epsilon, protocol.released_delta), stacklevel=5
            )  # where release was called
        self._is_used = True
        self.ledger.charge(self._entry(protocol), labels, repeat=self.repeat)

    def preview(self, protocol: Protocol, labels: Sequence[str]) -> None:
        """Refuses what `charge` would refuse, and writes nothing."""
        self.ledger.preview(self._entry(protocol), labels, repeat=self.repeat)

    @property
    def line(self) -> Entry | None:
        """The line that was written for the release; None if there is none."""
        if isinstance(self.ledger, NoLedger):
            return None
        entries = self.ledger.entries(self.population)
        return next((entry for entry in entries if entry.release == self.release.hex()), None)

    def _entry(self, protocol: Protocol) -> Entry:
        release = self.release.hex()
        return ledger_entry(protocol, self.population, period=self.period, file=self.file, release=release)


def open_account(
    ledger: object, population: object, *, period: object = "", file: str = "", repeat: bool = False
) -> Account:
    """The account to charge. Without a name, all people in the ledger are one population."""
    name = checked_population(population) or ("" if isinstance(ledger, NoLedger) else EVERYBODY)
    if isinstance(ledger, (str, os.PathLike)):
        ledger = Ledger(ledger)
    if not isinstance(ledger, (Ledger, NoLedger)):
        raise ParameterError(
            "ledger must be a file such as 'ledger.sqlite', al.Ledger(path, create=True) for a new one, "
            "or al.NO_LEDGER to go without",
            "ledger",
        )
    return Account(ledger, name, checked_period(period or ""), file, repeat)
