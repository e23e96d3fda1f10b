"""The vocabulary: the hash of the ordered names of all coordinates, so that columns mean the same everywhere."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from armslength.checks import shown
from armslength.errors import InputError, ParameterError
from armslength.randomness.text import canonical_text, length_prefixed

_DOMAIN = b"armslength vocabulary v1"


def vocabulary_hash(names: Sequence[str]) -> str:
    """SHA-256 over the canonical texts of the names in their order, each after its length."""
    digest = hashlib.sha256(length_prefixed(_DOMAIN))
    for name in names:
        if not isinstance(name, str):
            raise ParameterError(f"vocabulary must hold strings, got {type(name).__name__}")
        try:
            digest.update(length_prefixed(canonical_text(name)))
        except ValueError as problem:
            raise ParameterError(f"vocabulary must hold {problem}") from None
    return digest.hexdigest()


def checked_vocabulary(value: Any, input_dim: int | None) -> str | None:
    """The hash of a list of names, or a hash as it is; None for no vocabulary."""
    if value is None:
        return None
    if input_dim is None:
        raise ParameterError("vocabulary must be None for an open vocabulary, got one")
    if isinstance(value, str):
        if not re.fullmatch("[0-9a-f]{64}", value):
            raise ParameterError(f"vocabulary must be a list of names or its hash, got {shown(value)}")
        return value
    names = list(value) if isinstance(value, Sequence) else None
    if names is None or len(names) != input_dim:
        raise ParameterError(
            f"vocabulary must list {input_dim} names, one for each coordinate, got {shown(value)}"
        )
    hashed = vocabulary_hash(names)  # every name is text with a canonical form, or refused
    if len({canonical_text(name) for name in names}) != len(names):
        raise ParameterError("vocabulary must list each name once, got duplicates")
    return hashed


def check_columns(names: Sequence[str], vocabulary: str | None) -> None:
    """Refuses a data frame whose columns are not the vocabulary, in its order."""
    if vocabulary is not None and vocabulary_hash(names) != vocabulary:
        raise InputError(
            "columns must be the protocol's vocabulary in its order, got others; reorder or rename them"
        )
