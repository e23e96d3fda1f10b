"""Items: what names a coordinate, as numbers that every party computes alike (specification, section 3)."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.errors import InputError
from armslength.randomness.text import canonical_text, length_prefixed

_PREFIX = hashlib.sha256(length_prefixed(b"armslength item v1"))
_DIGEST_BYTES = 15


def string_number(item: str) -> int:
    """The 120-bit number of a string item."""
    try:
        text = canonical_text(item)
    except ValueError as problem:
        raise InputError(f"items must be {problem}") from None
    digest = _PREFIX.copy()
    digest.update(length_prefixed(text))
    return int.from_bytes(digest.digest()[:_DIGEST_BYTES], "big")


def item_words(items: Any) -> NDArray[np.uint64]:
    """Items as rows (high word, low word): all strings, or all integers that fit int64.

    Args:
        items: A sequence or array of `str`, or of integers. Anything else is refused, and so is a mixture.
    """
    if isinstance(items, range):
        return _integer_words(np.asarray(items))
    if isinstance(items, np.ndarray) and not isinstance(items, np.ma.MaskedArray):
        if items.ndim != 1 or items.dtype.kind not in "iuUTO":
            raise InputError(
                f"items must be a list of strings or integers, got {items.ndim} dimensions of {items.dtype}"
            )
        if items.dtype.kind in "iu":
            return _integer_words(items)
        items = items.tolist()
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes, bytearray, memoryview)):
        kind = type(items).__name__
        raise InputError(
            f"items must be a list of strings or integers, got {kind}; a column has .tolist() or .to_list()"
        )
    kinds = {str if isinstance(item, str) else type(item) for item in items}
    if kinds <= {str}:
        numbers = [string_number(item) for item in items]
        words = [(number >> 64, number & (2**64 - 1)) for number in numbers]
        return np.array(words, dtype=np.uint64).reshape(len(items), 2)
    if all(
        issubclass(kind, (int, np.integer)) and not issubclass(kind, (bool, np.timedelta64)) for kind in kinds
    ):
        return _integer_words(np.array([int(item) for item in items], dtype=object))
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"items must be all strings or all integers, got {names}; convert them first")


def _integer_words(items: NDArray[Any]) -> NDArray[np.uint64]:
    """Integer items modulo 2^64, as their low word."""
    if items.size and (items.min() < -(2**63) or items.max() >= 2**63):
        raise InputError("integer items must fit int64 (−2^63 to 2^63 − 1), got a larger one; use strings")
    words = np.zeros((len(items), 2), dtype=np.uint64)
    words[:, 1] = items.astype(np.int64).view(np.uint64)
    return words
