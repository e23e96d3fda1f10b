"""Calendar periods in UTC: where they begin and end, and a clock that never goes back."""

from datetime import UTC, datetime, timedelta

from armslength.checks import shown
from armslength.errors import CorruptFileError, ParameterError

PERIODS = ("year", "quarter", "month", "week", "day")


_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def checked_period(value: object) -> str | None:
    """The period, if it is one; None for all time."""
    if value is None or (isinstance(value, str) and value in PERIODS):
        return None if value is None else str(value)
    raise ParameterError(f"period must be None or one of {', '.join(PERIODS)}, got {shown(value)}")


def period_of(period: str, moment: datetime) -> tuple[datetime, datetime]:
    """The (first, first after) moments of the calendar period that the moment lies in; weeks begin on Monday."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if day > _LAST - timedelta(days=8):
        return day, _LAST  # a clock that nobody should have
    if period == "day":
        return day, day + timedelta(days=1)
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=7)
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    first = (day.month - 1) // months * months  # counted from 0
    after = first + months
    start = day.replace(month=first + 1, day=1)
    if start.year + after // 12 > _LAST.year:
        return start, _LAST
    return start, start.replace(year=start.year + after // 12, month=after % 12 + 1)


def not_before(last: str | None) -> datetime:
    """The time now in UTC, to the second; never before the last line of the ledger.

    A clock that was stopped or set back must not open a period a second time.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    return now if not last else max(now, read_time(last))


def read_time(text: str) -> datetime:
    """The moment that a line carries."""
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        raise CorruptFileError(f"a line of a ledger must have a time, got {shown(text)}") from None
    if moment.tzinfo is None:
        raise CorruptFileError(f"a time of a ledger must be in UTC, got {shown(text)}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # in its own zone it is, in UTC there is no such day
        raise CorruptFileError(f"a line of a ledger must have a time, got {shown(text)}") from None


def written_time(moment: datetime) -> str:
    """The moment as a line carries it: such texts sort as their times do."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")
