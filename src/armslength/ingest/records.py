"""Records in the engine's SQL: the columns of each row become items by the protocol's recipe.

No value ends a release: what is no number, no date or no text in a column of these counts as missing.
"""

import unicodedata

from armslength.checks import type_name
from armslength.errors import InputError
from armslength.ingest.event_columns import NULL_TYPE, REAL, is_whole, nfc, quoted, real_expression
from armslength.ingest.relations import Relation, text
from armslength.protocol.record import (
    AND,
    CATEGORY,
    MISSING,
    OTHER,
    PERIODS,
    Kind,
    Record,
    escaped,
    intervals,
    prefix,
)

_TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")  # in UTC
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
    """One row for each item of each record, beside `others`: SQL by the name of its column.

    A select for each step, because the engine would compute a value again wherever it stands in an expression.
    """
    names = {name: quoted(_role(name)) for name, _ in record.columns}
    roles = [(name, kind, *relation.columns[_role(name)]) for name, kind in record.columns]
    read = [_raw(*column, is_text=_role(column[0]) in relation.texts) for column in roles]
    spelled = [_value(names[name], kind) for name, kind in record.columns]
    cells = [
        f"{text(prefix(name))} || coalesce({_listed(names[name], kind)}, '{MISSING}')"
        for name, kind in record.columns
    ]
    same = [quoted(name) for name in others]
    rows = relation.sql
    for step, beside in ((read, list(others.values())), (spelled, same), (cells, same)):
        columns = zip([*beside, *step], [*same, *names.values()], strict=True)
        rows = f"(SELECT {', '.join(f'{value} AS {name}' for value, name in columns)} FROM {rows})"  # noqa: S608  # our own text, names quoted
    pairs = [f"{names[left]} || '{AND}' || {names[right]}" for left, right in record.pairs]
    items = f"unnest([{', '.join([*names.values(), *pairs])}]) AS item"
    return f"SELECT {', '.join([*same, items])} FROM {rows}"  # noqa: S608  # the same


def _raw(name: str, kind: Kind, column: str, column_type: str, *, is_text: bool) -> str:
    """A column's value as a number, a date or text; NULL where it is none."""
    if kind in PERIODS:
        return _date(column, column_type, _role(name))
    if kind == CATEGORY or not isinstance(kind, str):
        return _category(column, column_type, _role(name))
    return real_expression(column, column_type, _role(name), is_text=is_text)


def _value(raw: str, kind: Kind) -> str:
    """What follows the column's name in an item; NULL where it is missing."""
    if kind in PERIODS:
        return f"CASE WHEN year({raw}) BETWEEN 1 AND 9999 THEN {_PERIODS[str(kind)].format(raw)} END"
    if kind == CATEGORY or not isinstance(kind, str):
        # as `whole` and `escaped` of protocol.record
        short = f"regexp_replace({raw}, '^(-?[0-9]+)\\.0*$', '\\1')"
        marked = f"regexp_replace(replace(replace({short}, '%', '%25'), '&', '%26'), '^\\(', '%28')"
        return f"CASE WHEN regexp_matches({raw}, '[.%&(]') THEN {marked} ELSE nullif({raw}, '') END"
    *below, last = intervals(kind)
    cases = [
        f"WHEN {raw} < {float(edge)!r}::DOUBLE THEN '{interval}'"
        for edge, interval in zip(kind.split(","), below, strict=True)
    ]
    return f"CASE WHEN isfinite({raw}) THEN CASE {' '.join(cases)} ELSE '{last}' END END"


def _listed(value: str, kind: Kind) -> str:
    """The value; `(other)` for a category that is not in the list, if there is one."""
    if isinstance(kind, str):
        return value
    categories = list(map(escaped, kind))
    # No spelling has more characters than NFD. The engine takes n² steps for n marks, so longer text is never normalized.
    longest = 4 * max(len(unicodedata.normalize("NFD", category)) for category in categories)
    is_listed = f"{nfc(value)} IN ({', '.join(map(text, categories))})"
    return f"CASE WHEN strlen({value}) > {longest} THEN '{OTHER}' WHEN {is_listed} THEN {value} WHEN {value} IS NOT NULL THEN '{OTHER}' END"


def _date(column: str, column_type: str, role: str) -> str:
    """A date; of times, the day in UTC, and of text in ISO's form, the day that is written."""
    if column_type in ("DATE", NULL_TYPE, *_TIMES):
        return f"TRY_CAST({column} AS DATE)"
    if column_type == "JSON":
        column = f"CASE WHEN json_type({column}) = 'VARCHAR' THEN {column} ->> '$' END"
    elif column_type.startswith("ENUM"):
        column = f"CAST({column} AS VARCHAR)"
    elif column_type != "VARCHAR":
        raise InputError(
            f"{role} must be a column of dates, times or ISO text, got {type_name(column_type)}; cast it first",
            role,
        )
    return f"CASE WHEN regexp_full_match({column}, '{_DATE}') THEN TRY_CAST(left({column}, 10) AS DATE) END"


def _category(column: str, column_type: str, role: str) -> str:
    """A category as text."""
    name = f"CAST({column} AS VARCHAR)"
    if column_type == "JSON":
        kinds = "('VARCHAR', 'BOOLEAN', 'BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"
        name = f"CASE WHEN json_type({column}) IN {kinds} THEN {column} ->> '$' END"
    elif column_type in REAL or (column_type.startswith("DECIMAL") and not is_whole(column_type)):
        number = f"CAST({column} AS DOUBLE)" if column_type.startswith("DECIMAL") else column
        name = f"CASE WHEN {number} = 0 THEN '0' WHEN isfinite({number}) THEN CAST({number} AS VARCHAR) END"
    elif (
        not is_whole(column_type)
        and column_type not in ("VARCHAR", "BOOLEAN", NULL_TYPE)
        and not column_type.startswith("ENUM")
    ):
        raise InputError(
            f"{role} must be a column of text, numbers or booleans, got {type_name(column_type)}; "
            "give dates a period, and cast others first",
            role,
        )
    return name
