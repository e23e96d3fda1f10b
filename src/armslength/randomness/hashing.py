"""t-wise independent hash functions: polynomials with uniform coefficients (specification, section 4).

At any t distinct items the values are exactly independent and uniform on a field of 2^127 − 1 elements.
Four-wise independence already gives every variance in the design; t of at least log2(1/β) is the
paper's condition for tails of probability β (Kane & Nelson 2014).
"""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel
from armslength.randomness.field import PRIME, canonical, multiply_add
from armslength.randomness.stream import Reader, Stream


def uniform_field_elements(reader: Reader, count: int) -> NDArray[np.uint64]:
    """Uniform elements of the field as rows (high word, low word)."""
    elements = np.empty((count, 2), dtype=np.uint64)
    filled = 0
    while filled < count:
        pairs = reader.take(2 * (count - filled)).reshape(-1, 2)
        high = pairs[:, 1] & np.uint64(2**63 - 1)
        low = pairs[:, 0]
        # The prime itself, 127 ones, is the one value that is not an element.
        kept = (high != np.uint64(PRIME >> 64)) | (low != np.uint64(2**64 - 1))
        fresh = int(kept.sum())
        elements[filled : filled + fresh, 0] = high[kept]
        elements[filled : filled + fresh, 1] = low[kept]
        filled += fresh
    return elements


def hash_coefficients(seed: str, purpose: str, functions: int, independence: int) -> NDArray[np.uint64]:
    """Coefficients of the hash functions `purpose 0`, `purpose 1`, …: functions x independence x 2 words."""
    return np.stack(
        [
            uniform_field_elements(Reader(Stream(seed, f"{purpose} {number}")), independence)
            for number in range(functions)
        ]
    )


@kernel
def hash_value(
    coefficients: NDArray[np.uint64], item_high: np.uint64, item_low: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The value of one hash function at an item, by Horner's rule."""
    last = coefficients.shape[0] - 1
    high, low = coefficients[last, 0], coefficients[last, 1]
    for degree in range(last - 1, -1, -1):
        high, low = multiply_add(
            high, low, item_high, item_low, coefficients[degree, 0], coefficients[degree, 1]
        )
    return canonical(high, low)
