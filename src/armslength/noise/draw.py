"""The door of this room: exact noise of a law. Only a release may come through it."""

import math
import os

import numpy as np
from numpy.typing import NDArray

from armslength.laws.law import Law
from armslength.noise.bits import BitSource, SecretBits
from armslength.noise.fallback import exact_magnitude
from armslength.noise.inversion import invert_double, invert_float
from armslength.noise.quantiles import quantile_of
from armslength.noise.tables import double_table, float_table
from armslength.threads import for_blocks

_BLOCK = 1 << 16
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
    process = os.getpid()
    noise = np.empty(math.prod(shape), dtype=np.int64)

    def fill(start: int, stop: int) -> None:
        draw_into(noise[start:stop], law, SecretBits())

    for_blocks(len(noise), _BLOCK, fill, threads)
    if os.getpid() != process:
        # A signal handler forked in the middle: both processes would return blocks of the same noise.
        raise RuntimeError("noise must be drawn in one process, but it was forked in the middle; draw again")
    return noise.reshape(shape)


def draw_into(values: NDArray[np.int64], law: Law, source: BitSource) -> None:
    """Fills the values with independent draws of the law, from the bits of the source."""
    quantile = quantile_of(law)
    table = float_table(quantile)
    filled = 0
    while filled < len(values):
        words = source.words(len(values) - filled)
        rest = values[filled:]
        still_open = np.empty((len(words), 2), dtype=np.int64)
        fresh, opened = invert_float(
            words,
            table.high,
            table.radius,
            law.scale,
            quantile.shift,
            quantile.redraw_minus_zero,
            rest,
            still_open,
        )
        if opened:
            _close(rest, law, words[still_open[:opened, 0]], still_open[:opened, 1], source)
        filled += fresh


def _close(
    values: NDArray[np.int64],
    law: Law,
    words: NDArray[np.uint64],
    slots: NDArray[np.int64],
    source: BitSource,
) -> None:
    """Answers what level 1 left open, and draws anew where the answer is "minus zero"."""
    magnitudes = certain_magnitudes(law, words, source)
    negative = words >> _SIGN_SHIFT != 0
    values[slots] = np.where(negative, -magnitudes, magnitudes)
    if quantile_of(law).redraw_minus_zero:
        # Sign and magnitude are both new: a new sign alone would double the probability of 0.
        again = slots[negative & (magnitudes == 0)]
        replacement = np.empty(len(again), dtype=np.int64)
        draw_into(replacement, law, source)
        values[again] = replacement


def certain_magnitudes(law: Law, words: NDArray[np.uint64], source: BitSource) -> NDArray[np.int64]:
    """The magnitude for each first word, by double-double and, where that is not certain, ball arithmetic."""
    quantile = quantile_of(law)
    table = double_table(quantile)
    more_words = source.words(len(words))
    magnitudes = np.empty(len(words), dtype=np.int64)
    invert_double(
        words, more_words, table.high, table.low, table.radius, law.scale, quantile.shift, magnitudes
    )
    for i in np.flatnonzero(magnitudes < 0).tolist():
        magnitudes[i] = exact_magnitude(quantile, law.scale, int(words[i]), int(more_words[i]), source)
    return magnitudes
