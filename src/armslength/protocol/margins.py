"""Margins: public groups of items; a release counts how many people of each row have an item in each of them.

An item belongs to one item group: by a public table whose hash is in the protocol, by the longest listed prefix that it begins with, or
as a value of a column of the record. All other items belong to the last item group, `(other)`; of a record, to none.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import check_local, integer, is_showable, short_repr
from armslength.errors import (
    NO_MEMORY,
    MissingFileError,
    OutOfMemoryError,
    ParameterError,
    UnknownNameError,
    plural,
    printable,
)
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.protocol.public_lists import is_hash, list_hash, nfc
from armslength.protocol.record import Record
from armslength.threads import cached_attribute

OTHER = "(other)"
_MOST_NAMES = 10_000  # with (other)
_MOST_ITEMS = 10_000_000
_MOST_PREFIXES = 100_000
_LONGEST = 200  # bytes of a name or of a prefix
_PRINTED = 5  # names, or columns


@dataclass(frozen=True)
class Margins:
    """Checked item groups: their names, and the rule that puts items into them."""

    rule: str  # "table", "prefix" or "record"
    names: tuple[str, ...]  # of the item groups; the last is (other), except for a record
    table_hash: str | None = None  # of a table: item and name of each line
    prefixes: tuple[tuple[str, ...], ...] = ()  # of each item group but the last
    columns: tuple[str, ...] = ()  # of the record

    def __str__(self) -> str:
        names = ", ".join(self.names[:_PRINTED]) + (", …" if len(self.names) > _PRINTED else "")
        rules = {
            "table": f"the table with SHA-256 {self.table_hash}",
            "prefix": plural(sum(map(len, self.prefixes)), "prefix", "prefixes"),
            "record": f"the {plural(len(self.columns), 'column')} {', '.join(self.columns)}",
        }
        return f"{plural(len(self.names), 'item group')} by {rules[self.rule]}: {names}"

    def document(self) -> dict[str, Any]:
        """The field `margins` of the protocol's document."""
        if self.rule == "record":
            return {"rule": self.rule, "columns": list(self.columns)}
        named = {"rule": self.rule, "names": list(self.names[:-1])}
        if self.rule == "table":
            return {**named, "hash": self.table_hash}
        return {**named, "prefixes": list(map(list, self.prefixes))}

    def codes(
        self,
        texts: Sequence[str],
        table: Mapping[str, int],
        other_spellings: Mapping[str, int] | None = None,
    ) -> NDArray[np.int32]:
        """The number of the item group of each item, from 0 on; as many as there are item groups for an item that belongs to none.

        Args:
            texts: Items, in their NFC form.
            table: What `margin_table` gives.
            other_spellings: What `folded_table` gives; then one more is the number of an item that is in no listed item group, but would
                be with other capitals or punctuation.
        """
        other = len(self.names) - (self.rule != "record")
        codes: NDArray[np.int32] = np.full(len(texts), other, dtype=np.int32)
        for length in self._lengths:  # a longer prefix decides later
            matches = np.fromiter((table.get(text[:length], -1) for text in texts), np.int32, len(texts))
            np.copyto(codes, matches, where=matches >= 0)
        if other_spellings is not None and self.rule != "record":
            lengths = sorted(set(map(len, other_spellings))) if self.rule == "prefix" else [None]
            for place in np.flatnonzero(codes == other).tolist():
                text = folded(texts[place])
                if any(text[:length] in other_spellings for length in lengths):
                    codes[place] = len(self.names) + 1
        return codes

    @cached_attribute
    def _lengths(self) -> Sequence[int | None]:
        """The lengths of all prefixes; None for whole items."""
        return sorted({len(prefix) for prefixes in self.prefixes for prefix in prefixes}) or [None]


@dataclass(frozen=True, init=False, repr=False)
class ItemGroups:
    """Public groups of items: releases of votes then also count how many people have an item in each of them.

    Args:
        groups: A mapping from items to the names of their groups; a table or file with the columns item and group, or prefix and group, where an
            item belongs to the longest prefix that it begins with; or a list of columns of the record, whose values are listed. All other items
            belong to "(other)", those of a record to none.
        share: The share of ε that goes to them; 0.3 is usual.
        limit: G, how many item groups of one person count in full; of somebody with g more of them, each counts G/g. For columns of a record,
            None takes all of them.

    Example:
        >>> import armslength as al
        >>> al.ItemGroups({"prefix": ["I", "S"], "group": ["heart", "injuries"]}, share=0.3, limit=2)
        ItemGroups(3 item groups by 2 prefixes: heart, injuries, (other); share=0.3, limit=2)
    """

    groups: Margins | tuple[str, ...]
    share: Fraction
    limit: int

    def __init__(self, groups: Any, share: Any, limit: int | None = None) -> None:
        if groups is None:
            raise ParameterError(
                "item_groups is missing: share and limit need groups of items", "item_groups"
            )
        exact = exact_number("share", share)
        if not 0 < exact < 1:
            raise ParameterError(
                f"share must be above 0 and below 1, got {float(exact):g}; 0.3 is usual", "share"
            )
        named = checked_groups(groups)
        if limit is None and isinstance(named, tuple):
            limit = len(named)  # one row of a person has one value in each
        if limit is None:
            raise ParameterError(
                "limit is missing: say how many item groups of one person count in full; "
                "take a third more than a person typically has items",
                "limit",
            )
        most = integer("limit", limit, at_least=1, at_most=_MOST_NAMES)
        vars(self).update(groups=named, share=exact, limit=most)

    def __repr__(self) -> str:
        named = f"columns {', '.join(self.groups)}" if isinstance(self.groups, tuple) else self.groups
        return f"ItemGroups({named}; share={decimal_text(self.share)}, limit={self.limit})"


def checked_groups(source: Any) -> Margins | tuple[str, ...]:
    """The item groups of a list, or the columns of a record that are named instead."""
    if isinstance(source, Margins):
        return source.columns if source.rule == "record" else source
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(name, str) for name in source) or len(set(source)) < len(source):
            raise ParameterError(
                "item_groups by columns must name at least one column, and none twice", "item_groups"
            )
        return tuple(source)
    key, groups = _read_list(source, {"item": _MOST_ITEMS, "prefix": _MOST_PREFIXES})
    if key == "item":
        names = _checked_names(sorted(set(groups.values())))
        return Margins("table", names, table_hash=_table_hash(groups))
    return _prefix_margins(groups)


def margins_of_document(document: Any) -> Margins | list[str]:
    """What `ItemGroups` takes, from the field of a document, which never names a file to read."""
    match document:
        case {"rule": "record", "columns": list(columns)}:
            return columns
        case {"rule": "table", "names": list(names), "hash": hashed} if is_hash(hashed):
            return Margins("table", _checked_names(sorted(names)), table_hash=hashed)
        case {"rule": "prefix", "names": list(names), "prefixes": list(lists)}:
            pairs = (
                (prefix, name) for name, prefixes in zip(names, lists, strict=True) for prefix in prefixes
            )
            return _prefix_margins(_checked_list("prefix", pairs, _MOST_PREFIXES))
    raise ParameterError("item_groups must have a rule and its fields")


def margin_table(source: Any, margins: Margins | None) -> dict[str, int] | None:
    """The number of the item group of each listed item or prefix; None without margins. A table must be the protocol's."""
    is_needed = margins is not None and margins.rule == "table"
    if is_needed and source is None:
        raise ParameterError(
            "item_groups is missing: give the list that the protocol was made with", "item_groups"
        )
    if source is not None and not is_needed:
        raise ParameterError("leave item_groups out: the protocol needs no list", "item_groups")
    if margins is None:
        return None
    if margins.rule == "prefix":
        return {prefix: code for code, prefixes in enumerate(margins.prefixes) for prefix in prefixes}
    codes = {name: code for code, name in enumerate(margins.names)}
    if margins.rule == "record":
        return codes
    _, groups = _read_list(source, {"item": _MOST_ITEMS})
    if _table_hash(groups) != margins.table_hash or {*groups.values(), OTHER} != codes.keys():
        raise ParameterError("item_groups is not the table that the protocol was made with", "item_groups")
    return {item: codes[name] for item, name in groups.items()}


def folded(text: str) -> str:
    """An item without capital letters, punctuation and blanks."""
    return "".join(character for character in text.casefold() if character.isalnum())


def folded_table(table: Mapping[str, int]) -> dict[str, int]:
    """What `margin_table` gives, with each item or prefix in this spelling."""
    spelled = {folded(text): code for text, code in table.items()}
    spelled.pop("", None)
    return spelled


def _prefix_margins(groups: Mapping[str, str]) -> Margins:
    lists = {name: list[str]() for name in sorted(set(groups.values()))}
    for prefix, name in sorted(groups.items()):
        if not is_showable(prefix, _LONGEST):
            raise ParameterError(
                f"prefix of item_groups must be printable and at most {_LONGEST} bytes, got {short_repr(prefix)}"
            )
        lists[name].append(prefix)
    return Margins("prefix", _checked_names(list(lists)), prefixes=tuple(map(tuple, lists.values())))


def margins_of(groups: Margins | tuple[str, ...], record: Record | None) -> Margins:
    """The groups; or, of columns, the values of these columns of the record, which must be listed there."""
    if isinstance(groups, Margins):
        return groups
    if record is None:
        raise ParameterError(
            "item_groups by columns need a record; give one, or a table of item groups",
            *("item_groups", "record"),
        )
    cells = record.cells()
    for name in groups:
        if name not in cells:
            raise UnknownNameError(f"item_groups: the record has no column {short_repr(name)}", "record")
        if not cells[name]:
            raise ParameterError(
                f"item_groups by {name!r} need a list of its categories, or edges, in the record", "record"
            )
    chosen = tuple(name for name in cells if name in groups)
    values = [value for name in chosen for value in cells[name]]
    return Margins("record", _checked_names(values)[:-1], columns=chosen)


def _checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    """The names of the item groups in their NFC form, with (other) behind them."""
    if not 1 <= len(names) < _MOST_NAMES:
        raise ParameterError(
            f"item_groups must have 1 to {_MOST_NAMES - 1} item groups besides {OTHER}, got {len(names)}",
            "item_groups",
        )
    texts = [_checked_name("names of item groups", name) for name in names]
    for text in texts:
        if not is_showable(text, _LONGEST) or text == OTHER:
            raise ParameterError(
                f"names of item groups must be printable, at most {_LONGEST} bytes and not {OTHER}, got {short_repr(text)}"
            )
    if len(set(texts)) < len(texts):
        raise ParameterError("two item groups have the same name")
    return (*texts, OTHER)


def _read_list(source: Any, keys: Mapping[str, int]) -> tuple[str, dict[str, str]]:
    """(key, groups): which one of the key columns the list has, and the group of each of its names; a mapping has the first.

    A mapping may also be one of columns. Both columns of a CSV file are text.

    Args:
        source: A mapping, a table, or a .csv or .parquet file.
        keys: How many rows it may have, for each key column.
    """
    if isinstance(source, Mapping) and (
        isinstance(source.get("group"), str) or not hasattr(source.get("group"), "__len__")
    ):
        key, rows = next(iter(keys)), list(source.items())
    else:
        key, rows = _rows(source, list(keys))
    has_heading = isinstance(source, (str, os.PathLike)) and Path(source).suffix != ".parquet"
    numbering = ("line", 2) if has_heading else ("row", 1)
    return key, _checked_list(key, rows, keys[key], *numbering)


def _rows(source: Any, keys: Sequence[str]) -> tuple[str, list[tuple[Any, Any]]]:
    """The key column of a table or a file, and its rows of key and group."""
    import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables
    import pyarrow.parquet as pq  # noqa: PLC0415  # the same
    from pyarrow import csv  # noqa: PLC0415  # the same

    is_path = isinstance(source, (str, os.PathLike))
    where = printable(os.fspath(source)) if is_path else type(source).__name__
    if is_path:
        check_local(source)
    try:
        if not is_path:
            table = pa.table(source)
        elif Path(source).suffix == ".parquet":
            table = pq.read_table(source)
        else:
            texts = csv.ConvertOptions(column_types=dict.fromkeys([*keys, "group"], pa.string()))
            table = csv.read_csv(source, convert_options=texts)
        names = table.column_names
    except FileNotFoundError:
        raise MissingFileError(f"no such file: {where}") from None
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    # Their messages may quote a private file, named by mistake.
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        raise ParameterError(
            f"cannot read item_groups from {where}; a .csv file needs text in UTF-8, a first line with names, and as many values in every line"
            if is_path
            else f"item_groups must be a mapping, a table, or a .csv or .parquet file, got {where}",
            "item_groups",
        ) from None
    present = [key for key in keys if key in names]
    if len(present) > 1:
        raise ParameterError(
            f"item_groups have both columns {' and '.join(keys)} in {where}; leave one out", "item_groups"
        )
    if len(names) == 1 and ";" in names[0]:
        raise ParameterError(
            f"item_groups need commas between columns, not semicolons, in {where}", "item_groups"
        )
    if not present or names.count(present[0]) != 1 or names.count("group") != 1:
        # Other names may be the first line of a private file, named by mistake.
        known = ", ".join(name for name in names if name in (*keys, "group")) or "none of them"
        raise ParameterError(
            f"item_groups need the columns {' or '.join(keys)} and group, each once; {where} has {known} "
            "(the first line of a .csv file names them)",
            "item_groups",
        )
    key = present[0]
    return key, list(zip(table[key].to_pylist(), table["group"].to_pylist(), strict=True))


def _checked_list(
    key: str, rows: Iterable[tuple[Any, Any]], largest: int, row_name: str = "row", first: int = 1
) -> dict[str, str]:
    """The group of each item or prefix; every one is listed once."""
    name, groups = f"{key} of item_groups", dict[str, str]()

    def new_key(text: Any) -> str:
        checked = _checked_name(name, text)
        if checked in groups:
            raise ParameterError(f"{key} {short_repr(text)} is listed twice in item_groups")
        if len(groups) == largest:
            raise ParameterError(f"item_groups must list at most {largest} names in the column {key}")
        return checked

    for number, (text, group) in enumerate(rows, first):
        try:
            # one text for each group
            groups[new_key(text)] = sys.intern(_checked_name("group of item_groups", group))
        except ParameterError as problem:
            raise ParameterError(f"{problem}, in {row_name} {number}", "item_groups") from None
    return groups


def _table_hash(groups: Mapping[str, str]) -> str:
    """The hash of items and their groups, in the order of the items."""
    return list_hash("margins", (text for item in sorted(groups) for text in (item, groups[item])))


def _checked_name(name: str, text: Any) -> str:
    """The NFC form of a text that is not empty, and has no blanks at its ends."""
    checked = nfc(name, text)
    if not checked or checked != checked.strip():
        raise ParameterError(
            f"{name} must be text with no blank at either end, got {short_repr(text)}; take the blanks out"
        )
    return checked
