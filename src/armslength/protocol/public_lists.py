"""Public lists of texts that a protocol refers to by their hash."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.randomness.seeds import canonical_text, length_prefixed


def list_hash(domain: str, texts: Iterable[str]) -> str:
    """SHA-256 over texts in their order, each after its length."""
    digest = hashlib.sha256(length_prefixed(f"armslength {domain} v1".encode()))
    for text in texts:
        digest.update(length_prefixed(text.encode()))
    return digest.hexdigest()


def is_hash(value: Any) -> bool:
    """Whether it is what `list_hash` gives."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def nfc(name: str, text: Any) -> str:
    """The NFC form of a text."""
    if not isinstance(text, str):
        raise ParameterError(f"{name} must be text, got {short_repr(text)}", name)
    try:
        return canonical_text(text).decode()
    except ValueError as problem:
        raise ParameterError(f"{name} must be {problem}", name) from None
