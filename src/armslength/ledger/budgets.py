"""Budgets, what is spent of them, and whether one more release fits. Nothing here opens a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf
from typing import Any

from armslength.checks import one_of, short_repr
from armslength.errors import BudgetError, CorruptFileError, ParameterError
from armslength.ledger.entry import Entry
from armslength.privacy.composition import Loss, compose, largest_pure_epsilon
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon

SPANS = ("year", "quarter", "month", "week", "day")
UNLIMITED = "unlimited"
_END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True)
class Budget:
    """How much a population may lose, in all or per calendar year, month and so on; a later one of the same kind replaces it."""

    population: str
    unit: str  # the unit of protection, in words
    relation: str
    per: str | None  # "year", "quarter", "month", "week" or "day", in UTC; None for all time
    epsilon: str  # an exact decimal, as δ; UNLIMITED: releases are recorded and not limited
    delta: str  # with 0, Gaussian noise is refused
    version: str  # of armslength
    time: str = ""  # when it was set, in UTC

    @property
    def limit(self) -> tuple[Fraction, Fraction] | None:
        """(ε, δ), exactly; None where nothing is limited."""
        if self.epsilon == UNLIMITED:
            return None
        return checked_epsilon(self.epsilon), checked_delta(self.delta)

    def __str__(self) -> str:
        if self.epsilon == UNLIMITED:
            return "no limit"
        return f"epsilon {self.epsilon} at delta {self.delta} {f'per {self.per}' if self.per else 'in all'}"


@dataclass(frozen=True)
class Spent:
    """What all releases of one population cost together, for all time or in one calendar year, month and so on."""

    population: str
    unit: str  # the unit of protection, in words
    relation: str
    per: str | None  # that of the budget; None for all time, as are start and end
    start: str | None  # the first moment
    end: str | None  # the first moment after it
    releases: int  # how many
    epsilon: float | None  # proved, rounded up to six digits; None if there is no proof at this δ
    delta: float  # of that ε: the budget's, or the sum over the releases
    method: str  # the proof: "sum", "gaussian" or "renyi"; "" if there is none
    budget: Budget | None  # in force
    left: float | None  # largest ε of one more pure release, rounded down; None if without budget or past


def checked_span(value: Any) -> str | None:
    """The name of a calendar span, or None for all time."""
    return None if value is None else one_of("per", value, SPANS)


def check_same_meaning(line: Entry | Budget, others: Sequence[Entry | Budget]) -> None:
    """Refuses a unit or a relation other than that of the other lines of the population: only equal ones compose."""
    for other in others:
        kind = "the budget" if isinstance(other, Budget) else "a release"
        for name in ("unit", "relation"):
            expected, got = getattr(other, name), getattr(line, name)
            if expected != got:
                raise BudgetError(
                    f"{name} must be {expected!r} as in {kind} of population {other.population!r}, got {got!r}; "
                    "only equal units and relations compose: agree on one, or take another population",
                    name,
                )


def check_fits(entry: Entry, budgets: Sequence[Budget], entries: Sequence[Entry], moment: datetime) -> None:
    """Refuses an entry that would exceed a budget."""
    loss = entry.loss
    for budget in budgets:
        if budget.limit is None:
            continue
        epsilon, delta = budget.limit
        if delta == 0 and loss.delta > 0:
            raise BudgetError(
                f"the budget of population {entry.population!r} ({budget}) has no delta, which Gaussian noise needs; "
                "take Laplace noise, or a budget with a delta"
            )
        total = compose([*losses_in(budget.per, entries, moment), loss], delta)
        if total is not None and total.epsilon <= epsilon:
            continue
        reached = "a delta beyond it" if total is None else f"epsilon {_rounded_up(total.epsilon):g}"
        left = min(_left(other, losses_in(other.per, entries, moment)) for other in budgets)
        until = wait = ""
        if budget.per is not None:
            until, wait = f" until {time_text(span_of(budget.per, moment)[1])}", "wait, "
        raise BudgetError(
            f"the release does not fit the budget of population {entry.population!r} ({budget}): it would reach {reached}; "
            f"epsilon {left:g} is left for a pure release{until}; take less, {wait}or raise the budget"
        )


def spent_of(
    entries: Sequence[Entry], budget: Budget | None, moment: datetime, *, is_past: bool = False
) -> Spent:
    """What entries of one population, unit and relation cost in the budget's year, month and so on; without a limit, in all time at their own δ."""
    subject = budget or entries[0]
    per = None if budget is None else budget.per
    limit = None if budget is None else budget.limit
    losses = losses_in(per, entries, moment)
    delta = sum((loss.delta for loss in losses), Fraction(0))
    total = compose(losses, delta if limit is None else limit[1])
    start, end = (None, None) if per is None else map(time_text, span_of(per, moment))
    return Spent(
        population=subject.population,
        unit=subject.unit,
        relation=subject.relation,
        per=per,
        start=start,
        end=end,
        releases=len(losses),
        epsilon=None if total is None else _rounded_up(total.epsilon),
        delta=_rounded_up(delta if total is None else total.delta),
        method="" if total is None else total.method,
        budget=budget,
        left=None if budget is None or limit is None or is_past else _left(budget, losses),
    )


def losses_in(per: str | None, entries: Sequence[Entry], moment: datetime) -> list[Loss]:
    """The losses of the entries in the moment's year, month and so on."""
    if per is not None:
        start, end = span_of(per, moment)
        entries = [entry for entry in entries if start <= parse_time(entry.time) < end]
    try:
        return [entry.loss for entry in entries]
    except ParameterError as problem:
        raise CorruptFileError(f"the ledger has a line that is not valid: {problem}") from None


def span_of(per: str, moment: datetime) -> tuple[datetime, datetime]:
    """The start of the moment's calendar year, month and so on in UTC, and the start of the next one; weeks begin on Monday."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if per in ("day", "week"):
            start = day - timedelta(days=day.weekday() if per == "week" else 0)
            return start, start + timedelta(days=7 if per == "week" else 1)
        months = {"month": 1, "quarter": 3, "year": 12}[per]
        first = (day.month - 1) // months * months  # counted from 0
        start, after = day.replace(month=first + 1, day=1), first + months
        return start, start.replace(year=start.year + after // 12, month=after % 12 + 1)
    except (OverflowError, ValueError):  # the calendar ends
        return start, _END_OF_TIME


def parse_time(text: str) -> datetime:
    """The time of a line."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):  # OverflowError: UTC has no such day
        pass
    raise CorruptFileError(f"a line of a ledger must have a time in UTC, got {short_repr(text)}")


def time_text(moment: datetime) -> str:
    """The time as a line stores it: such texts sort like their times."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _left(budget: Budget, losses: Sequence[Loss]) -> float:
    """The largest ε of one more pure release, rounded down to three digits; infinite without a limit."""
    if budget.limit is None:
        return inf
    return _decimal(largest_pure_epsilon(losses, *budget.limit), 3, ROUND_FLOOR)


def _rounded_up(number: Fraction) -> float:
    """The number to six digits, rounded up."""
    return _decimal(number, 6, ROUND_CEILING)


def _decimal(number: Fraction, digits: int, rounding: str) -> float:
    """The float whose shortest decimal is the number, rounded to that many digits in that direction."""
    context = Context(prec=digits, rounding=rounding)
    return float(context.divide(Decimal(number.numerator), Decimal(number.denominator)))
