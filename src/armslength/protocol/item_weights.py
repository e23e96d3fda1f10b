"""Public item weights: how much an event counts by its item, from a public list whose hash is part of the protocol."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from armslength.checks import check_local, short_repr
from armslength.errors import ParameterError, printable
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.randomness.seeds import canonical_text, length_prefixed

_DOMAIN = b"armslength item weights v1"
_LARGEST, _MOST_UNITS = 2**40, 2**62
_MOST = 10_000_000
_COLUMNS = ["item", "weight"]


def item_weights_hash(source: Any, resolution: Fraction) -> str | None:
    """The hash of a list of weights, or a hash as it is; None for none."""
    if source is None or (isinstance(source, str) and re.fullmatch("[0-9a-f]{64}", source)):
        return source
    return _hash(_checked_weights(source, resolution))


def item_amounts(source: Any, hashed: str | None, resolution: Fraction) -> dict[str, int] | None:
    """⌊weight/γ⌋ grid units of each item with a weight above 0, if the list is the protocol's; other items count nothing."""
    if (source is None) != (hashed is None):
        rule = "item_weights (--item-weights) must be"
        raise ParameterError(
            f"{rule} the list that the protocol was made with, got none"
            if source is None
            else f"{rule} left out: the protocol has none"
        )
    if source is None:
        return None
    weights = _checked_weights(source, resolution)
    if _hash(weights) != hashed:
        raise ParameterError("item_weights must be those that the protocol was made with, got others")
    return {item: int(weight / resolution) for item, weight in weights.items() if weight}


def _hash(weights: Mapping[str, Fraction]) -> str:
    """SHA-256 over items and weights in the order of the items, each after its length."""
    digest = hashlib.sha256(length_prefixed(_DOMAIN))
    for item, weight in sorted(weights.items()):
        digest.update(length_prefixed(item.encode()) + length_prefixed(decimal_text(weight).encode()))
    return digest.hexdigest()


def _checked_weights(source: Any, resolution: Fraction) -> dict[str, Fraction]:
    """The weight of each item, in its NFC form."""
    weights = dict[str, Fraction]()
    for item, value in _rows_of(source):
        weight = exact_number("item_weights", value)
        if not (0 <= weight <= _LARGEST and weight <= _MOST_UNITS * resolution):
            rule = "item_weights must be from 0 to 2^40, and at most 2^62 times the resolution"
            raise ParameterError(f"{rule}, got {short_repr(value)}")
        if not isinstance(item, str) or not item:
            raise ParameterError(f"items of item_weights must be text, got {short_repr(item)}")
        try:
            name = canonical_text(item).decode()
        except ValueError as problem:
            raise ParameterError(f"items of item_weights must be {problem}") from None
        if name in weights:
            raise ParameterError(f"items of item_weights must be listed once, got {short_repr(item)} again")
        weights[name] = weight
    if not 1 <= len(weights) <= _MOST:
        raise ParameterError(f"item_weights must list 1 to {_MOST} items, got {len(weights)}")
    smallest = min(filter(None, weights.values()), default=resolution)
    if smallest < resolution:
        finer = resolution
        while finer > smallest:
            finer /= 2
        raise ParameterError(
            f"item_weights must be 0 or at least the resolution {decimal_text(resolution)}, got {decimal_text(smallest)}; "
            f"use --resolution {decimal_text(finer)}"
        )
    return weights


def _rows_of(source: Any) -> Iterable[tuple[Any, Any]]:
    """(item, weight) of a mapping, of a table or of a file; both columns of a CSV file are text."""
    if isinstance(source, Mapping):
        return source.items()
    import pyarrow as pa  # noqa: PLC0415  # a protocol by itself needs no tables

    try:
        table = _read(source) if isinstance(source, (str, os.PathLike)) else pa.table(source)
        return zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        where = (
            printable(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
        )
        raise ParameterError(
            f"item_weights must be a mapping, or a table or .csv or .parquet file with the columns item and weight, got {where}"
        ) from None


def _read(path: str | os.PathLike[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # the same
    import pyarrow.parquet as pq  # noqa: PLC0415  # the same
    from pyarrow import csv  # noqa: PLC0415  # the same

    check_local(path)
    if Path(path).suffix == ".parquet":
        return pq.read_table(path, columns=_COLUMNS)
    kinds = dict.fromkeys(_COLUMNS, pa.string())
    return csv.read_csv(
        path, convert_options=csv.ConvertOptions(column_types=kinds, include_columns=_COLUMNS)
    )
