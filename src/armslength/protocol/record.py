"""Records: a public recipe that turns the columns of a table with one row for each person into items.

A column gives each row one item, such as `age=40..65` or `sex=F`, and a pair of columns one more, such as `age=40..65 & sex=F`.
The spelling is unambiguous: `%`, `&` and what else could be misread are written as in URLs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any
from urllib.parse import quote

from armslength.checks import SHOWABLE, is_showable, one_line, short_repr
from armslength.errors import ParameterError, UnknownNameError
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.protocol.public_lists import nfc
from armslength.randomness.seeds import canonical_text

CATEGORY, MISSING, OTHER, AND = "category", "(missing)", "(other)", " & "
PERIODS = ("year", "quarter", "month", "week", "day")
_FARTHEST = 2**53  # up to here, numbers compare with an edge as their floats do
_MOST = 1000  # columns and pairs, or edges of a column
_MOST_CATEGORIES = 10_000
_LARGEST = 200_000  # categories and characters of edges, of all columns together
_MOST_ITEMS = 1_000_000
# an item ends its column's name at the first =, and a = before a stroke is NFC's ≠
_IN_NAME, _IN_VALUE = re.compile("[%&=≠]"), re.compile(r"[%&]|^\(")
_EDGES = re.compile("[-+.0-9eE,]+")
_WHOLE = re.compile(r"(-?[0-9]+)\.0*")
Kind = str | tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """A checked recipe: for each column "category", a period, edges such as "18,40,65", or the list of its categories."""

    columns: tuple[tuple[str, Kind], ...]  # by name
    pairs: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """As the options of the command: age:18,40 sex=F,M, and the pair age,sex as age & sex."""
        kinds = [
            (name, f":{kind}" if isinstance(kind, str) else f"={','.join(kind)}")
            for name, kind in self.columns
        ]
        columns = [name + kind.removesuffix(f":{CATEGORY}") for name, kind in kinds]
        return "; ".join([*columns, *map(AND.join, self.pairs)])

    @property
    def items_per_row(self) -> int:
        """How many items each row has."""
        return len(self.columns) + len(self.pairs)

    def document(self) -> dict[str, Any]:
        """The fields `record` and `record_pairs` of the protocol's document."""
        columns = {name: kind if isinstance(kind, str) else list(kind) for name, kind in self.columns}
        return {"record": columns, "record_pairs": list(map(list, self.pairs))}

    @property
    def unlisted(self) -> list[str]:
        """The columns whose categories or periods are not listed."""
        return [name for name, kind in self.columns if _values(kind) is None]

    def cells(self) -> dict[str, list[str]]:
        """The items that each column can have; none for a column whose values are not listed."""
        return {
            name: [f"{prefix(name)}{value}" for value in _values(kind) or ()] for name, kind in self.columns
        }

    def items(self) -> list[str] | None:
        """All items that there can be, in order; None where categories or periods are not listed."""
        if self.unlisted:
            return None
        cells = self.cells()
        count = sum(map(len, cells.values())) + sum(len(cells[a]) * len(cells[b]) for a, b in self.pairs)
        if count > _MOST_ITEMS:
            raise ParameterError(
                f"record must have at most {_MOST_ITEMS} items for a list, got {count}; use an open vocabulary",
                "record",
            )
        joint = (AND.join(both) for a, b in self.pairs for both in product(cells[a], cells[b]))
        return [item for name in cells for item in cells[name]] + list(joint)


def record_items(record: Mapping[str, Any], record_pairs: Sequence[Sequence[str]] = ()) -> list[str]:
    """All items of a record whose categories are listed: the coordinates of a protocol with a fixed `input_dim`.

    Args:
        record: The recipe, as for `Protocol`. Every column has edges or a list of categories.
        record_pairs: The pairs of columns.
    """
    checked = checked_record(record, record_pairs)
    items = None if checked is None else checked.items()
    if items is None:
        raise ParameterError(
            'record_items() needs a record that lists the categories of every column, such as {"sex": ["F", "M"]}'
        )
    return items


def record_input_dim(record: "Record | None", *, input_dim: Any, open_vocabulary: bool) -> Any:
    """The input dimension: as given, or how many items the record has if it lists them all and the vocabulary is not to be open."""
    if open_vocabulary and input_dim is not None:
        names = "open_vocabulary", "input_dim"
        raise ParameterError("open_vocabulary=True cannot be combined with input_dim", *names)
    if record is None or open_vocabulary or input_dim is not None:
        return input_dim
    items = record.items()
    return None if items is None else len(items)


def checked_record(record: Any, pairs: Any) -> Record | None:
    """The recipe, with its columns and pairs in the order of their names; None for no record."""
    if record is None:
        if pairs:
            raise ParameterError("record_pairs needs a record", "record_pairs")
        return None
    if not isinstance(record, Mapping) or not 1 <= len(record) <= _MOST:
        raise ParameterError(
            f'record must map 1 to {_MOST} columns to their kind, such as {{"age": [18, 40, 65], "sex": "category"}}, got {short_repr(record)}',
            "record",
        )
    if sum(len(kind) for kind in record.values() if isinstance(kind, Sequence)) > _LARGEST:
        raise ParameterError(f"record must list at most {_LARGEST} categories in all", "record")
    columns = {_checked_name(name): _checked_kind(name, kind) for name, kind in record.items()}
    if len({prefix(name).casefold() for name in columns}) < len(columns):
        raise ParameterError("record has two columns that differ only in capitals", "record")
    return Record(tuple(sorted(columns.items())), _checked_pairs(pairs, columns))


def _checked_pairs(pairs: Any, columns: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if isinstance(pairs, str) or not isinstance(pairs, Sequence) or len(pairs) > _MOST:
        raise ParameterError(
            f"record_pairs must be at most {_MOST} pairs of columns, got {short_repr(pairs)}", "record_pairs"
        )
    checked = {(min(pair), max(pair)) for pair in pairs if _is_pair(pair)}
    if len(checked) < len(pairs):
        raise ParameterError(
            "record_pairs must be different pairs of two columns of the record", "record_pairs"
        )
    unknown = sorted({name for pair in checked for name in pair} - columns.keys())
    if unknown:
        raise UnknownNameError(
            f"record_pairs: the record has no column {short_repr(unknown[0])}", "record_pairs"
        )
    return tuple(sorted(checked))


def _is_pair(pair: Any) -> bool:
    is_pair = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
    return is_pair and all(isinstance(name, str) for name in pair) and pair[0] != pair[1]


def _checked_name(name: Any) -> str:
    if one_line("columns of the record", name) == "":
        raise ParameterError("a column of the record has an empty name")
    return nfc("columns of the record", name) and str(name)


def _checked_kind(name: str, kind: Any) -> Kind:
    """What a column's values become, as the document has it."""
    if isinstance(kind, str) and kind in (CATEGORY, *PERIODS):
        return kind
    edges = kind.split(",") if isinstance(kind, str) and _EDGES.fullmatch(kind) else kind
    if isinstance(edges, (str, bytes)) or not isinstance(edges, Sequence) or not len(edges):
        raise ParameterError(
            f"record of {name!r} must be 'category', a period ({', '.join(PERIODS)}), a list of edges or a list of categories, got {short_repr(kind)}",
            "record",
        )
    if edges is kind and all(isinstance(category, str) for category in kind):
        return _checked_categories(name, kind)
    texts = [decimal_text(exact_number(f"edges of {name!r}", edge)) for edge in edges]
    if len(texts) > _MOST or any("/" in text or abs(Fraction(text)) > _FARTHEST for text in texts):
        raise ParameterError(f"edges of {name!r} must be at most {_MOST} decimals within ±2^53")
    if any(not float(low) < float(high) for low, high in pairwise(texts)):
        raise ParameterError(f"edges of {name!r} must increase, got {short_repr(kind)}")
    return ",".join(texts)


def _checked_categories(name: str, categories: Sequence[str]) -> tuple[str, ...]:
    if len(categories) > _MOST_CATEGORIES:
        raise ParameterError(
            f"categories of {name!r} must be at most {_MOST_CATEGORIES}, got {len(categories)}"
        )
    for category in categories:
        if not is_showable(category):
            raise ParameterError(f"categories of {name!r} must be {SHOWABLE}, got {short_repr(category)}")
    texts = tuple(whole(nfc(f"categories of {name!r}", category)) for category in categories)
    if len(set(texts)) < len(texts):
        raise ParameterError(f"a category of {name!r} is listed twice")
    return texts


def whole(category: str) -> str:
    """The category; a whole number without decimals of zero, which pandas adds to a column with gaps."""
    match = _WHOLE.fullmatch(category)
    return match[1] if match else category


def prefix(name: str) -> str:
    """How all items of a column begin."""
    return _IN_NAME.sub(_escaped, canonical_text(name).decode()) + "="


def escaped(category: str) -> str:
    """A category as it stands in an item."""
    return _IN_VALUE.sub(_escaped, category)


def _escaped(match: re.Match[str]) -> str:
    return quote(match[0], safe="")


def intervals(edges: str) -> list[str]:
    """The intervals between edges such as "18,40", with their lower end and without their upper: ..18, 18..40, 40.. ."""
    return [f"{low}..{high}" for low, high in pairwise(["", *edges.split(","), ""])]


def _values(kind: Kind) -> list[str] | None:
    """All that can follow a column's name in an item; None where that is not listed."""
    if not isinstance(kind, str):
        return [*map(escaped, kind), OTHER, MISSING]
    return None if kind in (CATEGORY, *PERIODS) else [*intervals(kind), MISSING]
