"""The door of this room: exact noise of a law. Only a release may come through it."""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from armslength.laws import Law
from armslength.noise.inversion import (
    LARGEST_SMALL_SCALE,
    BitSource,
    SecretBits,
    continued,
    exact_magnitude,
    invert_double,
    invert_float,
    look_up_table,
    open_places,
)
from armslength.noise.quantile_tables import double_table, float_table, quantile_of, shift_of
from armslength.threads import for_runs

_BLOCK_WORDS = 1 << 17  # of cipher: large enough that threads seldom wait for the interpreter's lock
_CACHED = 1 << 18  # values that a core's own cache holds
_WORDS_AT_ONCE = 1 << 14
_SIGN_SHIFT = np.uint64(63)


def draw(law: Law, shape: tuple[int, ...], *, threads: int | None = None) -> NDArray[np.int64]:
    """Independent draws of the law, in integer units.

    Guarantee: exactly the law's probabilities, given ideal bits; no rounding decides an answer. Bits come
    from a cipher that the operating system keys anew for each block.
    Reference: docs/noise.md, theorem 1.

    Args:
        law: `DiscreteLaplace` or `RoundedNormal`.
        shape: The shape of the result.
        threads: At most this many threads; None takes all that the process may run.
    """
    noise = np.empty(shape, dtype=np.int64)
    add_noise(noise, law, threads=threads, to_zero=True)
    return noise


def add_noise(
    values: NDArray[np.int64],
    law: Law,
    *,
    threads: int | None = None,
    to_zero: bool = False,
    then: Callable[[int, int], None] | None = None,
) -> None:
    """Adds an independent draw of the law to each value, in place, modulo 2^64; the guarantee is that of `draw`.

    Args:
        values: Contiguous and writable.
        law: `DiscreteLaplace` or `RoundedNormal`.
        threads: At most this many threads; None takes all that the process may run.
        to_zero: Whether to begin with zeros, whatever the values are.
        then: Called with the first and last row of each block of rows that has got its noise, by the thread that has it
            in its cache.
    """
    if values.dtype != np.int64 or not values.flags.c_contiguous or not values.flags.writeable:
        # Flattening such an array would copy it, and the noise would go to the copy.
        raise ValueError("values must be contiguous int64 that can be written to")
    process = os.getpid()

    rows = values.reshape(-1) if then is None else values
    draws_a_word = 4 if law.scale <= LARGEST_SMALL_SCALE else 1
    block = _BLOCK_WORDS * draws_a_word
    if then is not None:
        block = max(1, min(block, _CACHED) // values.shape[1])

    def add(first: int, last: int) -> None:
        buffer = np.empty(_BLOCK_WORDS + 2, dtype=np.uint64)
        for start in range(first, last, block):
            stop = min(start + block, last)
            add_draws(rows[start:stop].reshape(-1), law, SecretBits(buffer), to_zero=to_zero)
            if then is not None:
                then(start, stop)

    for_runs(len(rows), block, add, threads)
    if os.getpid() != process:
        # A signal handler forked in the middle: both processes would return blocks of the same noise.
        raise RuntimeError("noise must be drawn in one process, but it was forked in the middle; draw again")


def add_draws(values: NDArray[np.int64], law: Law, source: BitSource, *, to_zero: bool = False) -> None:
    """Adds independent draws of the law to the values, or to zero, from the bits of the source: 2 or 8 bytes each at first."""
    if law.scale > LARGEST_SMALL_SCALE:
        if to_zero:
            values[:] = 0
        invert_words(values, law, source.words(len(values)), source)
        return
    patterns = source.words(-(-len(values) // 4)).view(np.uint16)[: len(values)]
    opened = open_places(patterns, look_up_table(quantile_of(law), law.scale), values, to_zero=to_zero)
    if len(opened):
        answers = np.zeros(len(opened), dtype=np.int64)
        invert_words(answers, law, continued(patterns[opened], source.words(len(opened))), source)
        values[opened] += answers


def invert_words(values: NDArray[np.int64], law: Law, words: NDArray[np.uint64], source: BitSource) -> None:
    """Adds the draws of these first words, each of which has one bit for the sign and 63 for W, to the values."""
    quantile = quantile_of(law)
    table = float_table(quantile)
    shift, _ = shift_of(quantile, law.scale)
    still_open = np.empty(min(len(words), _WORDS_AT_ONCE), dtype=np.int64)
    for first in range(0, len(words), _WORDS_AT_ONCE):
        part, target = words[first : first + _WORDS_AT_ONCE], values[first : first + _WORDS_AT_ONCE]
        count = invert_float(part, table.high, table.radius, law.scale, shift, target, still_open)
        if count:
            opened = still_open[:count]
            magnitudes = certain_magnitudes(law, part[opened], source)
            target[opened] += np.where(part[opened] >> _SIGN_SHIFT != 0, -magnitudes, magnitudes)


def certain_magnitudes(law: Law, words: NDArray[np.uint64], source: BitSource) -> NDArray[np.int64]:
    """The magnitude for each first word, by double-double and, where that is not certain, ball arithmetic."""
    quantile = quantile_of(law)
    table = double_table(quantile)
    more_words = source.words(len(words))
    magnitudes = np.empty(len(words), dtype=np.int64)
    shift = shift_of(quantile, law.scale)
    invert_double(words, more_words, table.high, table.low, table.radius, law.scale, shift, magnitudes)
    for i in np.flatnonzero(magnitudes < 0).tolist():
        magnitudes[i] = exact_magnitude(quantile, law.scale, int(words[i]), int(more_words[i]), source)
    return magnitudes
