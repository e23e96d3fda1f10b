"""Uniform permutations and samples without replacement (specification, section 5)."""

import numpy as np
from numpy.typing import NDArray

from armslength.compiled import kernel, mul_wide
from armslength.randomness.stream import Reader, Stream

_WORDS_AT_ONCE = 1 << 16
_ZERO = np.uint64(0)


def uniform_permutation(seed: str, purpose: str, size: int) -> NDArray[np.int64]:
    """A uniform permutation of 0 … size−1, by Fisher and Yates."""
    reader = Reader(Stream(seed, purpose))
    permutation = np.arange(size, dtype=np.int64)
    remaining = size
    while remaining > 1:
        words = reader.take(min(remaining - 1, _WORDS_AT_ONCE))
        remaining = _shuffle_down(permutation, remaining, words)
    return permutation


@kernel
def _shuffle_down(permutation: NDArray[np.int64], remaining: int, words: NDArray[np.uint64]) -> int:
    """Swaps from the top down while words last; the size of the part that is still in order.

    Every word is used: a rejected one costs its turn, and the caller brings more.
    """
    for word in words:
        bound = np.uint64(remaining)
        high, low = mul_wide(word, bound)
        # 2^64 mod bound, in words
        if low < (_ZERO - bound) % bound:
            continue
        last = remaining - 1
        permutation[last], permutation[high] = permutation[high], permutation[last]
        remaining = last
    return remaining


def uniform_sample(seed: str, purpose: str, count: int, size: int) -> NDArray[np.int64]:
    """`count` of 0 … size−1 without replacement, in the order drawn; memory grows with count alone."""
    reader = Reader(Stream(seed, purpose))
    moved: dict[int, int] = {}
    drawn: list[int] = []
    while len(drawn) < count:
        for word in reader.take(count - len(drawn)).tolist():
            position = len(drawn)
            high, low = divmod(word * (size - position), 2**64)
            if low < 2**64 % (size - position):
                continue
            chosen = position + high
            drawn.append(moved.get(chosen, chosen))
            moved[chosen] = moved.get(position, position)
    return np.array(drawn, dtype=np.int64)
