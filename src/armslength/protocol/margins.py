"""Margins: public groups of items; a release counts how many people of each row have an item in each of them.

An item belongs to one item group: by a public table whose hash is in the protocol, by the longest listed prefix that it begins with, or
as a value of a column of the record. All other items belong to the last item group, `(other)`; of a record, to none.
"""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import integer, short_repr
from armslength.errors import ParameterError, plural
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.public_lists import rows_of
from armslength.protocol.record import Record
from armslength.randomness.seeds import canonical_text, length_prefixed
from armslength.threads import cached_attribute

OTHER = "(other)"
_DOMAIN = b"armslength margins v1"
_MOST_NAMES = 10_000  # with (other)
_MOST_PREFIXES = 100_000
_MOST_ITEMS = 10_000_000
_LONGEST = 200  # bytes of a name or of a prefix
_SHOWN = 5


@dataclass(frozen=True)
class Margins:
    """Checked item groups: their names, and the rule that puts items into them."""

    rule: str  # "table", "prefix" or "record"
    names: tuple[str, ...]  # of the item groups; the last is (other), except for a record
    table_hash: str | None = None  # of a table: item and name of each line
    prefixes: tuple[tuple[str, ...], ...] = ()  # of each item group but the last
    columns: tuple[str, ...] = ()  # of the record

    def __str__(self) -> str:
        shown = ", ".join(self.names[:_SHOWN]) + (", …" if len(self.names) > _SHOWN else "")
        rules = {
            "table": f"the table with SHA-256 {self.table_hash}",
            "prefix": plural(sum(map(len, self.prefixes)), "prefix", "prefixes"),
            "record": f"the {plural(len(self.columns), 'column')} {', '.join(self.columns)}",
        }
        return f"{plural(len(self.names), 'item group')} by {rules[self.rule]}: {shown}"

    def document(self) -> dict[str, Any]:
        """The field `margins` of the protocol's document."""
        if self.rule == "record":
            return {"rule": self.rule, "columns": list(self.columns)}
        named = {"rule": self.rule, "names": list(self.names[:-1])}
        if self.rule == "table":
            return {**named, "hash": self.table_hash}
        return {**named, "prefixes": list(map(list, self.prefixes))}

    def codes(self, texts: Sequence[str], table: Mapping[str, int] | None = None) -> NDArray[np.int32]:
        """The number of the item group of each item, from 0 on; as many as there are item groups for an item that belongs to none.

        Args:
            texts: Items, in their NFC form.
            table: What `margin_table` gives; None where the rule is no table.
        """
        others = len(self.names) - (self.rule != "record")
        codes: NDArray[np.int32] = np.full(len(texts), others, dtype=np.int32)
        if self.rule == "prefix":
            for length, known in self._known:
                _set(codes, [text[:length] for text in texts], known)
        else:
            _set(codes, texts, self._known[0][1] if table is None else table)
        return codes

    @cached_attribute
    def _known(self) -> list[tuple[int, dict[str, int]]]:
        """The number of each whole item of a record, or of each prefix, by length."""
        if self.rule == "record":
            return [(0, {name: code for code, name in enumerate(self.names)})]
        if self.rule == "table":
            raise ParameterError("table must be what margin_table gives, got None")
        known = defaultdict[int, dict[str, int]](dict)
        for code, prefixes in enumerate(self.prefixes):
            for prefix in prefixes:
                known[len(prefix)][prefix] = code
        return sorted(known.items())  # a longer one decides later


def _set(codes: NDArray[np.int32], texts: Sequence[str], known: Mapping[str, int]) -> None:
    """Sets the codes of known texts."""
    found = np.fromiter((known.get(text, -1) for text in texts), dtype=np.int32, count=len(texts))
    np.copyto(codes, found, where=found >= 0)


def checked_margins(source: Any, record: Record | None) -> Margins | None:
    """The item groups of a list, or of columns of the record; None for none."""
    if source is None:
        return None
    if isinstance(source, Margins):
        if source.rule != "record":
            return source
        source = source.columns
    if isinstance(source, (list, tuple)):
        return _of_record(source, record)
    key, groups = _groups_of(source, ["item", "prefix"])
    if key == "item":
        return Margins("table", _checked_names(sorted(set(groups.values()))), table_hash=_hash(groups))
    return _of_prefixes(groups)


def margins_of_document(document: Any) -> Margins | list[str]:
    """What `checked_margins` takes, from the field of a document, which never names a file to read."""
    fields = {"table": ("names", "hash"), "prefix": ("names", "prefixes"), "record": ("columns",)}
    rule = document.get("rule") if isinstance(document, Mapping) else None
    if not isinstance(rule, str) or rule not in fields or set(document) != {"rule", *fields[rule]}:
        raise ParameterError("margins must have a rule and its fields, got something else")
    names = document[fields[rule][0]]
    if not isinstance(names, list):
        raise ParameterError("margins must have a list of names or columns, got something else")
    if rule == "record":
        return names
    if rule == "table":
        hashed = document["hash"]
        if not isinstance(hashed, str) or not re.fullmatch("[0-9a-f]{64}", hashed):
            raise ParameterError("hash of margins must be 64 hexadecimal digits, got something else")
        return Margins("table", _checked_names(sorted(names)), table_hash=hashed)
    lists = document["prefixes"]
    if not isinstance(lists, list) or not all(isinstance(each, list) for each in lists):
        raise ParameterError("prefixes of margins must be a list for each name, got something else")
    pairs = ((each, name) for name, prefixes in zip(names, lists, strict=True) for each in prefixes)
    return _of_prefixes(_checked_groups("prefix", pairs))


def margin_table(source: Any, margins: Margins | None) -> dict[str, int] | None:
    """The number of each listed item's group, if the table is the protocol's; None where the protocol needs no table."""
    needed = margins is not None and margins.rule == "table"
    if (source is not None) != needed:
        rule = "margins (--margins) must be"
        raise ParameterError(
            f"{rule} the table of items that the protocol was made with, got none"
            if needed
            else f"{rule} left out: the protocol has {'all of its' if margins else 'no'} item groups"
        )
    if margins is None or source is None:
        return None
    groups = _groups_of(source, ["item"])[1]
    codes = {name: code for code, name in enumerate(margins.names[:-1])}
    if _hash(groups) != margins.table_hash or set(groups.values()) != codes.keys():
        raise ParameterError("margins must be the table that the protocol was made with, got another")
    return {item: codes[name] for item, name in groups.items()}


def checked_margin_bounds(
    margins: Margins | None,
    share: Any,
    bound: Any,
    contribution: int | None,
    record: Record | None,
    items: str,
) -> tuple[Fraction, int | None]:
    """(margin_share, margin_contribution), if they go with the margins and the rest of the protocol."""
    share = exact_number("margin_share", share)
    if margins is None:
        if share or bound is not None:
            raise ParameterError("margin_share and margin_contribution must go with margins, got none")
        return share, None
    if contribution is None or items != "string":
        raise ParameterError(
            "margins must go with a contribution and items of text, got others: they count people of event tables"
        )
    if not 0 < share < 1:
        raise ParameterError(
            f"margin_share must be above 0 and below 1 with margins, got {float(share):g}; 0.2 is usual"
        )
    if bound is None and margins.rule == "record" and record is not None:
        bound = min(len(margins.columns), contribution)  # one row of a person has one value in each
    if bound is None:
        raise ParameterError(
            f"margin_contribution must say how many item groups of one person count, from 1 to {contribution}, got None; "
            f"add --margin-contribution {min(2, contribution)}"
        )
    return share, integer("margin_contribution", bound, at_least=1, at_most=contribution)


def _hash(groups: Mapping[str, str]) -> str:
    """SHA-256 over items and names of their groups in the order of the items, each after its length."""
    digest = hashlib.sha256(length_prefixed(_DOMAIN))
    for item, name in sorted(groups.items()):
        digest.update(length_prefixed(item.encode()) + length_prefixed(name.encode()))
    return digest.hexdigest()


def _of_prefixes(groups: Mapping[str, str]) -> Margins:
    lists = {name: list[str]() for name in sorted(set(groups.values()))}
    for prefix, name in sorted(groups.items()):
        lists[name].append(prefix)
    return Margins("prefix", _checked_names(list(lists)), prefixes=tuple(map(tuple, lists.values())))


def _of_record(columns: Sequence[Any], record: Record | None) -> Margins:
    """The values of columns of the record, which must be listed there."""
    if record is None:
        raise ParameterError(
            "margins must be a table where the protocol has no record, got a list of columns"
        )
    cells = record.cells()
    if not columns:
        raise ParameterError("margins must name at least one column of the record, got none")
    for name in columns:
        if not isinstance(name, str) or name not in cells:
            raise ParameterError(
                f"margins must name columns of the record, got {short_repr(name)}: there is no such column"
            )
        if not cells[name]:
            raise ParameterError(
                f"margins must name columns with edges or a list of categories, got {short_repr(name)}, which has no list; "
                f"write its list, such as --record {name}=A,B"
            )
    if len(set(columns)) < len(columns):
        raise ParameterError("margins must name each column once, got one twice")
    chosen = tuple(name for name in cells if name in set(columns))
    values = [value for name in chosen for value in cells[name]]
    return Margins("record", _checked_names(values)[:-1], columns=chosen)


def _groups_of(source: Any, keys: Sequence[str]) -> tuple[str, dict[str, str]]:
    """(key, groups): whether a list has items or prefixes, and the name of the item group of each."""
    key, rows = rows_of("margins", source, keys, "group")
    has_heading = isinstance(source, (str, os.PathLike)) and Path(source).suffix != ".parquet"
    return key, _checked_groups(key, rows, "line" if has_heading else "row", 2 if has_heading else 1)


def _checked_groups(
    key: str, rows: Iterable[tuple[Any, Any]], place: str = "row", first: int = 1
) -> dict[str, str]:
    """The name of the item group of each item or prefix, both in their NFC form."""
    groups, names = dict[str, str](), dict[str, str]()
    most = _MOST_ITEMS if key == "item" else _MOST_PREFIXES
    for number, (text, name) in enumerate(rows, first):
        of_group = _canonical("group of margins", name, f"{place} {number}")
        canonical = _canonical(f"{key} of margins", text, f"{place} {number}")
        if canonical in groups:
            raise ParameterError(
                f"{key} of margins must be listed once, got {short_repr(text)} again in {place} {number}"
            )
        if len(groups) == most or (key == "prefix" and len(canonical.encode()) > _LONGEST):
            raise ParameterError(
                f"margins must list at most {most} of {key}, and prefixes of at most {_LONGEST} bytes, got more"
            )
        groups[canonical] = names.setdefault(of_group, of_group)  # one text for each group
    return groups


def _checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    """The names of the item groups in their NFC form, with (other) behind them."""
    if not 1 <= len(names) < _MOST_NAMES:
        raise ParameterError(
            f"margins must have 1 to {_MOST_NAMES - 1} item groups beside {OTHER}, got {len(names)}"
        )
    texts = [_canonical("names of item groups in margins", name, "their list") for name in names]
    for text in texts:
        if not text.isprintable() or len(text.encode()) > _LONGEST or text == OTHER:
            raise ParameterError(
                f"names of item groups in margins must be printable, at most {_LONGEST} bytes and not {OTHER}, got {short_repr(text)}"
            )
    if len(set(texts)) < len(texts):
        raise ParameterError("names of item groups in margins must differ, got two alike")
    return (*texts, OTHER)


def _canonical(what: str, text: Any, place: str) -> str:
    """The NFC form of a text that is not empty, and has no blanks at its ends."""
    if not isinstance(text, str) or not text:
        raise ParameterError(f"{what} must be text, got {short_repr(text)} in {place}")
    if text != text.strip():
        raise ParameterError(
            f"{what} must have no blank at either end, got {short_repr(text)} in {place}; take the blanks out"
        )
    try:
        return canonical_text(text).decode()
    except ValueError as problem:
        raise ParameterError(f"{what} must be {problem}, got other text in {place}") from None
