"""Arithmetic modulo the prime 2^127 − 1, on pairs of words (specification, section 4).

The field holds every 64-bit id and 120 bits of a string's hash without merging any; 2^61 − 1, the usual
choice, would merge ids.
"""

import numpy as np

from armslength.compiled import kernel, mul_wide

PRIME = 2**127 - 1

_ONE = np.uint64(1)
_63 = np.uint64(63)
_LOW_63 = np.uint64(2**63 - 1)
_ALL_ONES = np.uint64(2**64 - 1)


@kernel
def add_carry(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The sum of two words and its carry, 0 or 1."""
    total = a + b
    return total, np.uint64(total < a)


@kernel
def fold(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A 128-bit number reduced to at most 2^127, the same modulo 2^127 − 1."""
    low, carry = add_carry(low, high >> _63)
    return (high & _LOW_63) + carry, low


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
def canonical(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The number in 0 … 2^127 − 2 that is the same in the field; for a number of at most 2^127."""
    high, low = fold(high, low)
    if high == _LOW_63 and low == _ALL_ONES:
        return np.uint64(0), np.uint64(0)
    return high, low


@kernel
def scaled_to(high: np.uint64, low: np.uint64, bound: np.uint64) -> np.uint64:
    """⌊ v·bound / 2^127 ⌋ for v < 2^127 and bound < 2^63."""
    middle, _ = mul_wide(low, bound)
    top_1, top_0 = mul_wide(high, bound)
    top_0, carry = add_carry(top_0, middle)
    return ((top_1 + carry) << _ONE) | (top_0 >> _63)
