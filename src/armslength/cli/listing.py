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
    return json.dumps(_finite(value), indent=1, ensure_ascii=False)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same fields as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
