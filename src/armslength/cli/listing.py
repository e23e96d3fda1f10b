"""Listings for people and for scripts: JSON without infinities, CSV with a header."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

FORMATS = ("table", "json", "csv")


def as_json(value: Any) -> str:
    """The value as indented JSON; numbers that JSON does not have become null."""
    return json.dumps(finite(value), indent=1, ensure_ascii=False)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same fields as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value
