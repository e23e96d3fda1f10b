"""What each column of an event table must be, and how it becomes text or integers, as expressions of the engine's SQL.

Nothing is sniffed: a column of a typed file must have the type that its role asks for, and text (CSV) is read as text.
A value that breaks its rule ends the query with a marker, from which `engine.py` makes our own message; the engine's own messages may quote
data.
"""

from dataclasses import dataclass
from fractions import Fraction

from armslength.checks import type_name
from armslength.errors import InputError, ParameterError
from armslength.protocol.protocol import Protocol

MARKER = "ARMSLENGTH"
PROBLEMS = {
    "id": "person and group must be text or whole numbers in every row, got something else; cast them first",
    "item": "item must be of the protocol's type in every row, got another; cast it first",
    "place": "item must be a column number below the protocol's input_dim in every row, got another",
    "weight": "weight must be a finite number in every row, got something else; leave those rows out, or fill them",
    "large": "weight must stay within 2^62 times the resolution, got a larger one",
    "grid": "weight must lie on the grid of the protocol's resolution, got one off it; use a protocol that is not on the grid",
}

_WHOLE = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
}
_REAL = {"FLOAT", "DOUBLE"}
_NOTHING = '"NULL"'  # the type of a column in which everything is missing
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_FARTHEST = 2**62


@dataclass(frozen=True)
class EventColumns:
    """Which columns hold what.

    Attributes:
        person: Who the event is about.
        item: What happened.
        group: Where, or None.
        weight: How much of it, or None for 1.
    """

    person: str
    item: str
    group: str | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        for role, name in self.named.items():
            if not isinstance(name, str) or name == "":  # type: ignore[redundant-expr]  # callers may have no type checker
                raise ParameterError(f"{role} must be the name of a column, got {type(name).__name__}")
        if len({name.casefold() for name in self.named.values()}) != len(self.named):
            raise ParameterError("person, item, group and weight must be different columns, got one twice")

    @property
    def named(self) -> dict[str, str]:
        """Role and name of each column that there is."""
        each = {"person": self.person, "item": self.item, "group": self.group, "weight": self.weight}
        return {role: name for role, name in each.items() if name is not None}


def _case(missing: str | None, *rules: tuple[str, str], value: str) -> str:
    """The value where no rule is broken; NULL where the column is missing. A rule is (when it is broken, the problem)."""
    first = f"WHEN {missing} THEN NULL " if missing else ""
    broken = "".join(f"WHEN {when} THEN error('{MARKER} {problem}') " for when, problem in rules)
    return f"CASE {first}{broken}ELSE {value} END"


def _missing(column: str, kind: str) -> str:
    """Where a value of a JSON file, or text, or another type is missing; empty text is, as CSV cannot tell the two apart."""
    if kind == "JSON":
        return f"{column} IS NULL OR json_type({column}) = 'NULL' OR {column} ->> '$' = ''"
    return f"{column} IS NULL OR {column} = ''" if kind == "VARCHAR" else f"{column} IS NULL"


def id_expression(column: str, kind: str, role: str) -> str:
    """A person or a group as text, missing as NULL; a column is named as SQL names it."""
    if kind == "JSON":
        other = f"json_type({column}) NOT IN ('VARCHAR', 'BIGINT', 'UBIGINT')"
        return _case(_missing(column, kind), (other, "id"), value=f"{column} ->> '$'")
    if kind not in _WHOLE | {"VARCHAR", "UUID", "DATE", _NOTHING} and not kind.startswith("ENUM"):
        raise InputError(
            f"{role} must be a column of text or whole numbers, got {type_name(kind)}; cast it first"
        )
    return f"nullif(CAST({column} AS VARCHAR), '')"


def item_expression(column: str, kind: str, protocol: Protocol, *, is_text: bool, by_number: bool) -> str:
    """An item as text, or as a 64-bit integer, whichever the protocol declares; missing as NULL.

    Args:
        column: The column, as SQL names it.
        kind: Its type.
        protocol: What declares the type of items.
        is_text: Whether the file holds nothing but text, so that numbers must be read out of it.
        by_number: Whether items are the numbers of columns below a fixed input_dim.
    """
    missing = _missing(column, kind)
    if protocol.items == "string" and not by_number:
        if kind == "JSON":
            return _case(missing, (f"json_type({column}) <> 'VARCHAR'", "item"), value=f"{column} ->> '$'")
        if kind not in ("VARCHAR", _NOTHING) and not kind.startswith("ENUM"):
            raise InputError(
                f"item must be of the protocol's type string, got {type_name(kind)}; cast it first"
            )
        return f"nullif(CAST({column} AS VARCHAR), '')"
    if kind == "JSON":
        number = f"TRY_CAST({column} ->> '$' AS BIGINT)"
        rules = [(f"json_type({column}) NOT IN ('BIGINT', 'UBIGINT')", "item")]
    elif is_text:
        number = f"TRY_CAST({column} AS BIGINT)"
        # the engine would round '1.5', and take ' 1'
        rules = [(f"NOT regexp_full_match({column}, '[+-]?[0-9]+')", "item")]
    elif kind in _WHOLE | {_NOTHING}:
        number, rules = f"TRY_CAST({column} AS BIGINT)", []
    else:
        raise InputError(f"item must be of the protocol's type int64, got {type_name(kind)}; cast it first")
    rules.append((f"{number} IS NULL", "item"))  # it does not fit 64 bits
    if by_number:
        rules.append((f"{number} NOT BETWEEN 0 AND {(protocol.transform.input_dim or 0) - 1}", "place"))
    return _case(missing, *rules, value=number)


def amount_expression(column: str, kind: str, protocol: Protocol, *, is_text: bool) -> str:
    """A weight in grid units, by floor(weight/γ), event by event, before any sum.

    γ is a power of two, so that a float divided by it is exact; whole numbers are never turned into floats. Decimals, and
    numbers in text, are first the floats next to them.
    """
    if kind in _WHOLE:
        return _whole_amount(f"TRY_CAST({column} AS BIGINT)", protocol.resolution, on_grid=protocol.on_grid)
    if kind == "JSON":
        numbers = "('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"
        real = f"CASE WHEN json_type({column}) IN {numbers} THEN TRY_CAST({column} ->> '$' AS DOUBLE) END"
    elif is_text:
        # the engine would take '1_000' and ' 5'
        real = f"CASE WHEN regexp_full_match({column}, '{_NUMBER}') THEN TRY_CAST({column} AS DOUBLE) END"
    elif kind in _REAL | {_NOTHING} or kind.startswith("DECIMAL"):
        real = f"CAST({column} AS DOUBLE)"
    else:
        raise InputError(f"weight must be a column of numbers, got {type_name(kind)}; cast it first")
    # ⌊x/γ⌋ = ⌊⌊x⌋/γ⌋ for a whole γ, and ⌊x⌋ does not vanish when it is divided, as the smallest floats do
    whole = f"floor({real})" if protocol.resolution > 1 else real
    floored = f"floor({whole} * {float(1 / protocol.resolution)!r}::DOUBLE)"
    rules = [
        (f"{real} IS NULL OR NOT isfinite({real})", "weight"),
        (f"NOT abs({floored}) <= {float(_FARTHEST)!r}::DOUBLE", "large"),
    ]
    if protocol.on_grid:
        rules.append((f"{floored} * {float(protocol.resolution)!r}::DOUBLE <> {real}", "grid"))
    return _case(None, *rules, value=f"CAST({floored} AS BIGINT)")


def _whole_amount(number: str, resolution: Fraction, *, on_grid: bool) -> str:
    """A whole number in grid units; the shift of a negative number floors."""
    factor = resolution.denominator
    shift = resolution.numerator.bit_length() - 1
    rules = [(f"{number} IS NULL", "weight")]
    if shift and on_grid:
        rules.append((f"({number} & {min(resolution.numerator - 1, 2**63 - 1)}) <> 0", "grid"))
    shifted = f"({number} >> {min(shift, 63)})" if shift else number
    farthest = _FARTHEST // factor
    rules.append((f"{shifted} NOT BETWEEN {-farthest} AND {farthest}", "large"))
    return _case(None, *rules, value=f"{shifted} * {factor}::BIGINT")
