"""The types that columns of an event table must have, and how they become text or integers in the engine's SQL.

No type is guessed. A single bad value becomes NULL, and its event is left out: if it ended the release, one event would decide,
for all to see, whether there is a release at all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from armslength.checks import type_name
from armslength.errors import InputError, ParameterError
from armslength.protocol.protocol import Protocol
from armslength.spelling import nfc as composed

_SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
_WHOLE = _SIGNED | {f"U{kind}" for kind in _SIGNED}
REAL = {"FLOAT": 2**24, "DOUBLE": 2**53}  # up to here every whole number is one of the type
NULL_TYPE = '"NULL"'  # the type of a column in which everything is missing
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_WHOLE_NUMBER = "[+-]?[0-9]+"
_LARGEST_AMOUNT = 2**62
_POINT_ZERO = r"(-?[0-9]+)\.0*"
# White_Space in Unicode 17, which is trimmed from the id of a person
_BLANK_CODES = (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
_BLANKS = "".join(map(chr, _BLANK_CODES))


@dataclass(frozen=True)
class EventColumns:
    """Which columns hold what."""

    person: str
    item: str | None = None
    group: str | None = None
    weight: str | None = None
    record: Mapping[str, str] = field(default_factory=dict)  # role and name of each column of a record

    def __post_init__(self) -> None:
        roles = self.named
        for role, name in roles.items():
            if not isinstance(name, str) or name == "":  # type: ignore[redundant-expr]  # callers may have no type checker
                raise ParameterError(f"{role} must be the name of a column, got {type(name).__name__}", role)
        if len({name.casefold() for name in roles.values()}) != len(roles):
            raise ParameterError(f"{' and '.join(roles)} must be different columns", *roles)

    @property
    def named(self) -> dict[str, str]:
        """Role and name of each column that there is."""
        columns = {"person": self.person, "item": self.item, "group": self.group, "weight": self.weight}
        return {role: name for role, name in columns.items() if name is not None} | dict(self.record)

    @property
    def by_role(self) -> "EventColumns":
        """The columns of a table whose columns are called like their roles."""
        same = {role: role for role in self.named}
        record = {role: same.pop(role) for role in self.record}
        return EventColumns(**same, record=record)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def quoted(name: str) -> str:
    """A column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _null_where(*broken: str, value: str) -> str:
    """The value; NULL where any of the conditions holds."""
    return f"CASE {' '.join(f'WHEN {condition} THEN NULL' for condition in broken)} ELSE {value} END"


def _is_missing(column: str, kind: str) -> str:
    """The condition that a value is missing; empty text is, because CSV cannot tell the two apart."""
    if kind == "JSON":
        return f"{column} IS NULL OR json_type({column}) = 'NULL' OR {column} ->> '$' = ''"
    return f"{column} IS NULL OR {column} = ''" if kind == "VARCHAR" else f"{column} IS NULL"


def id_expression(column: str, kind: str, role: str) -> str:
    """A person or a group as text, missing as NULL; a float is the whole number that it is, and nobody if it is none."""
    if kind == "JSON":
        text = f"{column} ->> '$'"
        is_id = f"json_type({column}) = 'VARCHAR' OR regexp_full_match({text}, '-?[0-9]+(\\.0*)?')"
        name = _null_where(_is_missing(column, kind), f"NOT ({is_id})", value=text)
    elif kind in REAL:
        name = _whole_text(column, kind)
    elif is_whole(kind) or kind in {"VARCHAR", "UUID", "DATE", NULL_TYPE} or kind.startswith("ENUM"):
        name = f"CAST({column} AS VARCHAR)"
    else:
        raise InputError(f"{role} must be a column of text or numbers, got {type_name(kind)}; cast it", role)
    return f"nullif({name}, '')"


def is_whole(kind: str) -> bool:
    """Whether a type has whole numbers only."""
    return kind in _WHOLE or (kind.startswith("DECIMAL") and kind.endswith(",0)"))


def _whole_text(number: str, kind: str) -> str:
    """A float as the whole number that it is; NULL where it is none, or beyond those that its type tells apart."""
    is_whole = f"{number} = trunc({number}) AND abs({number}) <= {float(REAL[kind])!r}::{kind}"
    return f"CASE WHEN {is_whole} THEN CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR) END"


def canonical_person(text: str) -> str:
    """The id of a person: NFC, without white space around it; a whole number loses decimals of zero.

    Empty if it names nobody: it is blank, or has more than 30 combining marks in a row.
    """
    try:
        name = composed(text).strip(_BLANKS)
    except ValueError:
        return ""
    match = re.fullmatch(_POINT_ZERO, name)
    return re.sub("^-(0+)$", r"\1", match[1]) if match else name


def nfc(text: str) -> str:
    """The NFC form of an expression of text, piece by piece between NULs, where the engine's own function stops."""
    pieces = f"list_transform(string_split({text}, chr(0)), lambda piece: nfc_normalize(piece))"
    return f"CASE WHEN contains({text}, chr(0)) THEN array_to_string({pieces}, chr(0)) ELSE nfc_normalize({text}) END"


def item_expression(column: str, kind: str, protocol: Protocol, *, is_text: bool, by_number: bool) -> str:
    """An item as text or int64, as the protocol declares; a column number if `by_number`; NULL where it is none."""
    missing = _is_missing(column, kind)
    if protocol.items == "string" and not by_number:
        if kind == "JSON":
            return _null_where(missing, f"json_type({column}) <> 'VARCHAR'", value=f"{column} ->> '$'")
        if kind not in ("VARCHAR", NULL_TYPE) and not kind.startswith("ENUM"):
            raise InputError(
                f"item must be of the protocol's type string, got {type_name(kind)}; cast it", "item"
            )
        return f"nullif(CAST({column} AS VARCHAR), '')"
    broken = [missing]
    if kind == "JSON":
        number = f"TRY_CAST({column} ->> '$' AS BIGINT)"
        broken.append(f"json_type({column}) NOT IN ('BIGINT', 'UBIGINT')")
    elif is_text:
        number = f"TRY_CAST({column} AS BIGINT)"
        # the engine would round '1.5', and accept ' 1'
        broken.append(f"NOT regexp_full_match({column}, '{_WHOLE_NUMBER}')")
    elif is_whole(kind) or kind == NULL_TYPE:
        number = f"TRY_CAST({column} AS BIGINT)"  # NULL where it does not fit 64 bits
    else:
        raise InputError(
            f"item must be of the protocol's type int64, got {type_name(kind)}; cast it first", "item"
        )
    if by_number:
        broken.append(f"{number} NOT BETWEEN 0 AND {(protocol.transform.input_dim or 0) - 1}")
    return _null_where(*broken, value=number)


def amount_expression(column: str, kind: str, protocol: Protocol, *, is_text: bool) -> str:
    """floor(weight/γ), event by event, before any sum; NULL where it is no number or does not fit.

    γ is a power of two, so dividing a float by it is exact. Whole numbers never become floats; decimals and text do.
    """
    resolution = protocol.resolution
    if is_whole(kind):
        number, shift = f"TRY_CAST({column} AS BIGINT)", resolution.numerator.bit_length() - 1
        broken = [f"{number} IS NULL"]
        if shift and protocol.on_grid:
            broken.append(f"({number} & {min(resolution.numerator - 1, 2**63 - 1)}) <> 0")
        # the shift of a negative number floors
        shifted = f"({number} >> {min(shift, 63)})" if shift else number
        largest = _LARGEST_AMOUNT // resolution.denominator
        broken.append(f"{shifted} NOT BETWEEN {-largest} AND {largest}")
        return _null_where(*broken, value=f"{shifted} * {resolution.denominator}::BIGINT")
    real = real_expression(column, kind, "weight", is_text=is_text)
    # ⌊x/γ⌋ = ⌊⌊x⌋/γ⌋ for a whole γ; without the inner floor, tiny negative floats would become 0
    whole = f"floor({real})" if resolution > 1 else real
    floored = f"floor({whole} * {float(1 / resolution)!r}::DOUBLE)"
    too_large = f"NOT abs({floored}) <= {float(_LARGEST_AMOUNT)!r}::DOUBLE"
    broken = [f"{real} IS NULL OR NOT isfinite({real})", too_large]
    if protocol.on_grid:
        broken.append(f"{floored} * {float(resolution)!r}::DOUBLE <> {real}")
    return _null_where(*broken, value=f"TRY_CAST({floored} AS BIGINT)")


def real_expression(column: str, kind: str, role: str, *, is_text: bool) -> str:
    """A number as a DOUBLE; NULL where it is none."""
    if kind == "JSON":
        numbers = "('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"
        return f"CASE WHEN json_type({column}) IN {numbers} THEN TRY_CAST({column} ->> '$' AS DOUBLE) END"
    if is_text:
        # the engine would accept '1_000' and ' 5'
        return f"CASE WHEN regexp_full_match({column}, '{_NUMBER}') THEN TRY_CAST({column} AS DOUBLE) END"
    if is_whole(kind) or kind in {*REAL, NULL_TYPE} or kind.startswith("DECIMAL"):
        return f"CAST({column} AS DOUBLE)"
    raise InputError(f"{role} must be a column of numbers, got {type_name(kind)}; cast it first", role)
