"""t-wise independent hash functions of items: polynomials with uniform coefficients (specification, sections 3 and 4).

At any t distinct items the values are exactly independent and uniform on a field of 2^127 − 1 elements, as pairs of words (high,
low). The field holds every 64-bit id, and 120 bits of a string's hash, without merging any; 2^61 − 1 would merge ids.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength._numba import Words, kernel, mul_wide
from armslength.checks import type_name
from armslength.errors import NO_MEMORY, InputError, OutOfMemoryError
from armslength.randomness.seeds import Stream, canonical_text, length_prefixed

PRIME = 2**127 - 1
UNREADABLE = "items must be a list that can be read to its end, got an error in the middle"
_PREFIX = length_prefixed(b"armslength item v1")
_ONE = np.uint64(1)
_63 = np.uint64(63)
_LOW_63 = np.uint64(2**63 - 1)
_ALL_ONES = np.uint64(2**64 - 1)


def hash_coefficients(seed: str, purpose: str, functions: int, independence: int) -> Words:
    """Coefficients of the hash functions `purpose 0`, `purpose 1`, …: functions x independence x 2 words."""
    streams = [Stream(seed, f"{purpose} {number}") for number in range(functions)]
    return np.stack([uniform_field_elements(stream, independence) for stream in streams])


@kernel
def hash_value(coefficients: Words, item_high: np.uint64, item_low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The value of one hash function at an item, by Horner's rule."""
    last = coefficients.shape[0] - 1
    high, low = coefficients[last, 0], coefficients[last, 1]
    for degree in range(last - 1, -1, -1):
        c_high, c_low = coefficients[degree, 0], coefficients[degree, 1]
        high, low = multiply_add(high, low, item_high, item_low, c_high, c_low)
    return canonical(high, low)


def item_words(items: Any) -> Words:
    """Items as rows (high word, low word): all strings, or all integers that fit int64."""
    rule = "items must be a list of strings or integers"
    if isinstance(items, range):
        return _integer_words(np.asarray(items))
    if isinstance(items, np.ndarray) and not isinstance(items, np.ma.MaskedArray):
        if items.ndim != 1 or items.dtype.kind not in "iuUTO":
            raise InputError(f"{rule}, got {items.ndim} dimensions of {type_name(items.dtype)}", "items")
        if items.dtype.kind in "iu":
            return _integer_words(items)
        items = items.tolist()
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes, bytearray, memoryview)):
        raise InputError(f"{rule}, got {type(items).__name__}; a column has .tolist() or .to_list()", "items")
    items = read_to_the_end(items)
    kinds = {str if isinstance(item, str) else type(item) for item in items}
    if kinds <= {str}:
        return _string_words(items)
    no_integers = (bool, np.timedelta64)  # although they are subclasses of the integer types
    if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, no_integers) for kind in kinds):
        return _integer_words(np.array([int(item) for item in items], dtype=object))
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"items must be all strings or all integers, got {names}; convert them first", "items")


def read_to_the_end(items: Any) -> list[Any]:
    """The items as a list. Errors of custom sequences may quote the data, so they are left out."""
    try:
        return list(items)
    except MemoryError:
        raise OutOfMemoryError(NO_MEMORY) from None
    except Exception:  # noqa: BLE001  # of any kind
        raise InputError(UNREADABLE) from None


def string_words(text: bytes) -> bytes:
    """The high and the low word of an item: the first 120 bits of a digest of its canonical text."""
    digest = hashlib.sha256(_PREFIX + length_prefixed(text)).digest()[14::-1]
    return digest[8:] + b"\0" + digest[:8]


def _string_words(items: Sequence[str]) -> Words:
    """The words of each item."""
    try:
        words = b"".join([string_words(canonical_text(item)) for item in items])
    except ValueError as problem:
        raise InputError(f"items must be {problem}", "items") from None
    return np.frombuffer(words, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def _integer_words(items: NDArray[Any]) -> Words:
    """Integer items modulo 2^64, as their low word."""
    if items.size and (items.min() < -(2**63) or items.max() >= 2**63):
        raise InputError("integer items must fit int64 (−2^63 to 2^63 − 1); use strings for larger ones")
    words = np.zeros((len(items), 2), dtype=np.uint64)
    words[:, 1] = items.astype(np.int64).view(np.uint64)
    return words


def uniform_field_elements(stream: Stream, count: int) -> Words:
    """Uniform elements of the field as rows (high word, low word)."""
    elements = np.empty((count, 2), dtype=np.uint64)
    filled = 0
    while filled < count:
        pairs = stream.take(2 * (count - filled)).reshape(-1, 2)
        high, low = pairs[:, 1] & _LOW_63, pairs[:, 0]
        # The prime itself, 127 ones, is the one value that is not an element.
        is_element = (high != _LOW_63) | (low != _ALL_ONES)
        count_now = int(is_element.sum())
        elements[filled : filled + count_now] = np.stack([high, low], axis=1)[is_element]
        filled += count_now
    return elements


@kernel
def scaled_to(high: np.uint64, low: np.uint64, bound: np.uint64) -> np.uint64:
    """⌊ v·bound / 2^127 ⌋ for v < 2^127 and bound < 2^63."""
    middle, _ = mul_wide(low, bound)
    top_1, top_0 = mul_wide(high, bound)
    top_0, carry = add_carry(top_0, middle)
    quotient: np.uint64 = ((top_1 + carry) << _ONE) | (top_0 >> _63)
    return quotient


@kernel
def canonical(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The number in 0 … 2^127 − 2 that is the same in the field; for a number of at most 2^127."""
    high, low = fold(high, low)
    if high == _LOW_63 and low == _ALL_ONES:
        return np.uint64(0), np.uint64(0)
    return high, low


@kernel
def multiply_add(
    a_high: np.uint64,
    a_low: np.uint64,
    x_high: np.uint64,
    x_low: np.uint64,
    c_high: np.uint64,
    c_low: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """a·x + c modulo 2^127 − 1, at most 2^127; for a ≤ 2^127 and x, c < 2^127."""
    low_1, product_0 = mul_wide(a_low, x_low)
    cross_1, cross_0 = mul_wide(a_low, x_high)
    other_1, other_0 = mul_wide(a_high, x_low)
    high_1, high_0 = mul_wide(a_high, x_high)
    product_1, carry_a = add_carry(low_1, cross_0)
    product_1, carry_b = add_carry(product_1, other_0)
    product_2, carry_c = add_carry(cross_1, other_1)
    product_2, carry_d = add_carry(product_2, high_0)
    product_2, carry_e = add_carry(product_2, carry_a + carry_b)
    product_3 = high_1 + carry_c + carry_d + carry_e

    # The product is (its low 127 bits) + 2^127·(the rest), and 2^127 is 1 in the field.
    rest_low = (product_1 >> _63) | (product_2 << _ONE)
    rest_high = (product_2 >> _63) | (product_3 << _ONE)
    low, carry = add_carry(product_0, rest_low)
    high, low = fold((product_1 & _LOW_63) + rest_high + carry, low)
    low, carry = add_carry(low, c_low)
    return fold(high + c_high + carry, low)


@kernel
def fold(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A 128-bit number reduced to at most 2^127, the same modulo 2^127 − 1."""
    low, carry = add_carry(low, high >> _63)
    return (high & _LOW_63) + carry, low


@kernel
def add_carry(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The sum of two words and its carry, 0 or 1."""
    total = a + b
    return total, np.uint64(total < a)
