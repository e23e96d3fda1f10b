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
from armslength.noise.small_scales import LARGEST_SMALL_SCALE, continued, look_up_table, open_places
from armslength.noise.tables import double_table, float_table, shift_of
from armslength.threads import for_blocks

_BLOCK_BYTES = 1 << 20  # of cipher: large enough that threads seldom wait for the interpreter's lock
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

    block = _BLOCK_BYTES // (2 if law.scale <= LARGEST_SMALL_SCALE else 8)
    for_blocks(len(noise), block, fill, threads)
    if os.getpid() != process:
        # A signal handler forked in the middle: both processes would return blocks of the same noise.
        raise RuntimeError("noise must be drawn in one process, but it was forked in the middle; draw again")
    return noise.reshape(shape)


def draw_into(values: NDArray[np.int64], law: Law, source: BitSource) -> None:
    """Fills the values with independent draws of the law, from the bits of the source: 2 or 8 bytes each at first."""
    quantile = quantile_of(law)
    if law.scale > LARGEST_SMALL_SCALE:
        invert_words(values, law, source.words(len(values)), source)
        return
    patterns = source.words(-(-len(values) // 4)).view(np.uint16)[: len(values)]
    opened = open_places(patterns, look_up_table(quantile, law.scale), values)
    if len(opened):
        answers = np.empty(len(opened), dtype=np.int64)
        invert_words(answers, law, continued(patterns[opened], source.words(len(opened))), source)
        values[opened] = answers


def invert_words(values: NDArray[np.int64], law: Law, words: NDArray[np.uint64], source: BitSource) -> None:
    """Fills the values for these first words, each of which has one bit for the sign and 63 for W."""
    quantile = quantile_of(law)
    table = float_table(quantile)
    shift, _ = shift_of(quantile, law.scale)
    still_open = np.empty(len(words), dtype=np.int64)
    count = invert_float(words, table.high, table.radius, law.scale, shift, values, still_open)
    if count:
        opened = still_open[:count]
        magnitudes = certain_magnitudes(law, words[opened], source)
        values[opened] = np.where(words[opened] >> _SIGN_SHIFT != 0, -magnitudes, magnitudes)


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
