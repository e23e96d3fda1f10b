"""Items: what names a coordinate, as numbers that every party computes alike (specification, section 3)."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.checks import type_name
from armslength.errors import InputError
from armslength.randomness.text import canonical_text, length_prefixed

UNREADABLE = "items must be a list that can be read to its end, got an error in the middle"
_PREFIX = length_prefixed(b"armslength item v1")
_8, _56 = np.uint64(8), np.uint64(56)


def _string_words(items: Sequence[str]) -> NDArray[np.uint64]:
    """The first 120 bits of each item's digest, as (high word, low word)."""
    sha256 = hashlib.sha256
    try:
        digests = [sha256(_PREFIX + length_prefixed(canonical_text(item))).digest() for item in items]
    except ValueError as problem:
        raise InputError(f"items must be {problem}") from None
    words = np.frombuffer(b"".join(digests), dtype=">u8").reshape(len(items), 4)[:, :2].astype(np.uint64)
    # 15 of 16 bytes: the number ends 8 bits earlier
    low = (words[:, 0] << _56) | (words[:, 1] >> _8)
    return np.stack([words[:, 0] >> _8, low], axis=1)


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
                f"items must be a list of strings or integers, got {items.ndim} dimensions of {type_name(items.dtype)}"
            )
        if items.dtype.kind in "iu":
            return _integer_words(items)
        items = items.tolist()
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes, bytearray, memoryview)):
        kind = type(items).__name__
        raise InputError(
            f"items must be a list of strings or integers, got {kind}; a column has .tolist() or .to_list()"
        )
    items = read_to_the_end(items)
    kinds = {str if isinstance(item, str) else type(item) for item in items}
    if kinds <= {str}:
        return _string_words(items)
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


def read_to_the_end(items: Any) -> list[Any]:
    """The items as a list; errors of whatever makes itself a list may quote the data, and are left out."""
    try:
        return list(items)
    except Exception:  # noqa: BLE001  # whatever it is
        raise InputError(UNREADABLE) from None
