"""Canonical JSON (RFC 8785) for documents without floats, and strict reading."""

import json
from typing import Any

from armslength.errors import CorruptFileError

LARGEST_SAFE_INTEGER = 2**53 - 1


def canonical_json(document: Any) -> bytes:
    """The one JSON text of a document of objects, lists, strings, booleans, null and integers.

    RFC 8785: keys sorted, no white space, UTF-8. Floats are kept out of our documents (a float is written as
    a string), so that its number format never matters.
    """
    _check(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _check(value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (isinstance(key, str) and key.isascii()):
                raise TypeError("keys of a canonical document are ASCII strings")
            _check(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check(inner)
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST_SAFE_INTEGER:
            raise TypeError("integers of a canonical document stay below 2^53")
    elif not (value is None or isinstance(value, (str, bool))):
        raise TypeError(f"a canonical document has no {type(value).__name__}")


def read_json(data: bytes, what: str) -> Any:
    """The document in the bytes; refuses duplicate keys, NaN, and what is not JSON."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        raise CorruptFileError(f"{what} must be valid JSON, got something else") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("duplicate key")
    return document


def _no_constants(name: str) -> Any:
    raise ValueError(name)
