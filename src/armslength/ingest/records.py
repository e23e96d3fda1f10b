"""Records in the engine's SQL: the columns of each row become items by the protocol's recipe.

No value ends a release: what is no number, no date or no text in a column of these counts as missing.
"""

from armslength.checks import type_name
from armslength.errors import InputError
from armslength.ingest.event_columns import NOTHING, REAL, WHOLE, nfc, real_expression
from armslength.ingest.relations import Relation, quoted, text
from armslength.protocol.record import AND, CATEGORY, MISSING, OTHER, PERIODS, Record, intervals, prefix

_TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"
_PERIODS = {
    "year": "left(CAST({0} AS VARCHAR), 4)",
    "quarter": "left(CAST({0} AS VARCHAR), 4) || '-Q' || quarter({0})",
    "month": "left(CAST({0} AS VARCHAR), 7)",
    "week": "strftime({0}, '%G-W%V')",
    "day": "CAST({0} AS VARCHAR)",
}


def record_roles(record: Record) -> dict[str, str]:
    """Role and name of each column."""
    return {_role(name): name for name, _ in record.columns}


def _role(name: str) -> str:
    return f"record {name}"


def record_select(relation: Relation, record: Record, others: dict[str, str]) -> str:
    """One row for each item of each record, beside `others`: SQL by the name of its column."""
    cells = dict[str, str]()
    for name, kind in record.columns:
        column, column_type = relation.columns[_role(name)]
        value = _value(column, column_type, _role(name), kind, is_text=relation.is_text)
        cells[name] = f"{text(prefix(name))} || coalesce({value}, '{MISSING}')"
    inner = {**others, **{_role(name): cell for name, cell in cells.items()}}
    selected = ", ".join(f"{value} AS {quoted(name)}" for name, value in inner.items())
    names = {name: quoted(_role(name)) for name in cells}
    items = [
        *names.values(),
        *(f"{names[left]} || '{AND}' || {names[right]}" for left, right in record.pairs),
    ]
    outer = ", ".join([*map(quoted, others), f"unnest([{', '.join(items)}]) AS item"])
    return f"SELECT {outer} FROM (SELECT {selected} FROM {relation.sql})"  # noqa: S608  # our own text, names quoted


def _value(column: str, column_type: str, role: str, kind: str | tuple[str, ...], *, is_text: bool) -> str:
    """What follows the column's name in an item; NULL where the value is missing."""
    if kind in PERIODS:
        return _period(_date(column, column_type, role), str(kind))
    if isinstance(kind, str) and kind != CATEGORY:
        return _interval(real_expression(column, column_type, role, is_text=is_text), kind)
    category = _category(column, column_type, role)
    if isinstance(kind, str):
        return _escaped(category)
    listed = f"{nfc(category)} IN ({', '.join(map(text, kind))})"
    return (
        f"CASE WHEN {category} IS NULL THEN NULL WHEN {listed} THEN {_escaped(category)} ELSE '{OTHER}' END"
    )


def _interval(number: str, edges: str) -> str:
    """The interval that a number is in; the infinite ones are missing, as NaN is."""
    *below, last = intervals(edges)
    cases = [
        f"WHEN {number} < {float(edge)!r}::DOUBLE THEN '{each}'"
        for edge, each in zip(edges.split(","), below, strict=True)
    ]
    return (
        f"CASE WHEN {number} IS NULL OR NOT isfinite({number}) THEN NULL {' '.join(cases)} ELSE '{last}' END"
    )


def _period(date: str, period: str) -> str:
    """The period that a date of the years 1 to 9999 is in."""
    return f"CASE WHEN year({date}) BETWEEN 1 AND 9999 THEN {_PERIODS[period].format(date)} END"


def _date(column: str, column_type: str, role: str) -> str:
    """A date; of times, the day in UTC, and of text in ISO's form, the day that is written."""
    if column_type in ("DATE", NOTHING, *_TIMES):
        return f"TRY_CAST({column} AS DATE)"
    if column_type == "TIMESTAMP WITH TIME ZONE":
        return f"CAST(make_timestamp(epoch_us({column})) AS DATE)"
    if column_type == "JSON":
        column = f"CASE WHEN json_type({column}) = 'VARCHAR' THEN {column} ->> '$' END"
    elif column_type.startswith("ENUM"):
        column = f"CAST({column} AS VARCHAR)"
    elif column_type != "VARCHAR":
        raise InputError(
            f"{role} must be a column of dates, times or ISO text, got {type_name(column_type)}; cast it first"
        )
    return f"CASE WHEN regexp_full_match({column}, '{_DATE}') THEN TRY_CAST(left({column}, 10) AS DATE) END"


def _category(column: str, column_type: str, role: str) -> str:
    """A category as text; of a whole number, without decimals of zero."""
    name = f"CAST({column} AS VARCHAR)"
    if column_type == "JSON":
        kinds = "('VARCHAR', 'BOOLEAN', 'BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"
        name = f"CASE WHEN json_type({column}) IN {kinds} THEN {column} ->> '$' END"
    elif column_type in REAL or column_type.startswith("DECIMAL"):
        number = f"CAST({column} AS DOUBLE)" if column_type.startswith("DECIMAL") else column
        name = f"CASE WHEN {number} = 0 THEN '0' WHEN isfinite({number}) THEN CAST({number} AS VARCHAR) END"
    elif column_type not in WHOLE | {"VARCHAR", "BOOLEAN", NOTHING} and not column_type.startswith("ENUM"):
        raise InputError(
            f"{role} must be a column of text, numbers or booleans, got {type_name(column_type)}; "
            "give dates a period, and cast others first"
        )
    short = f"regexp_replace({name}, '^(-?[0-9]+)\\.0*$', '\\1')"
    return f"nullif(CASE WHEN contains({name}, '.') THEN {short} ELSE {name} END, '')"


def _escaped(category: str) -> str:
    """As `protocol.record.escaped`."""
    marks = f"regexp_replace(replace(replace({category}, '%', '%25'), '&', '%26'), '^\\(', '%28')"
    return f"CASE WHEN regexp_matches({category}, '[%&(]') THEN {marks} ELSE {category} END"
