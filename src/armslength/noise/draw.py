"""Exact noise of a law from secret random bits. Only a release may import this module."""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from armslength._numba import Int64s, Words
from armslength.laws import Law
from armslength.noise.inversion import (
    LARGEST_SMALL_SCALE,
    BitSource,
    exact_magnitude,
    invert_double,
    invert_float,
    look_up,
    look_up_table,
)
from armslength.noise.quantile_tables import double_table, float_table, quantile_of, shift_of
from armslength.threads import for_runs, worker_count

_BLOCK_WORDS = 1 << 17  # of cipher: large enough that threads seldom wait for the interpreter's lock
_WORDS_AT_ONCE = 1 << 14
_SIGN_SHIFT = np.uint64(63)
_48, _LOW_48 = np.uint64(48), np.uint64(2**48 - 1)
_ZEROS = bytes(1 << 20)  # encrypted, they are the keystream


def draw(law: Law, shape: tuple[int, ...], *, threads: int | None = None) -> Int64s:
    """Independent draws of the law, in integer units; the guarantee is that of `add_noise`."""
    noise = np.zeros(shape, dtype=np.int64)
    add_noise(noise, law, threads=worker_count(threads))
    return noise


def add_noise(values: Int64s, law: Law, *, threads: int | None = None) -> None:
    """Adds an independent draw of the law to each value, in place, modulo 2^64.

    Guarantee: exactly the law's probabilities, given ideal bits; no rounding decides an answer. The bits of each block come from
    a cipher under a new key of the operating system.
    Reference: docs/noise.md, theorem 1.
    """
    if values.dtype != np.int64 or not values.flags.c_contiguous or not values.flags.writeable:
        # Flattening such an array would copy it, and the noise would go to the copy.
        raise ValueError("values must be contiguous int64 that can be written to")
    process = os.getpid()
    flat = values.reshape(-1)
    block = _BLOCK_WORDS * (4 if law.scale <= LARGEST_SMALL_SCALE else 1)  # draws from as many words

    def add(first: int, last: int) -> None:
        buffer = np.empty(_BLOCK_WORDS + 2, dtype=np.uint64)
        for start in range(first, last, block):
            add_draws(flat[start : min(start + block, last)], law, SecretBits(buffer))

    if len(flat) > block:
        for_runs(len(flat), block, add, threads)
    else:  # nothing to share, neither work nor memory
        add_draws(flat, law, SecretBits())
    if os.getpid() != process:
        # A signal handler forked meanwhile: both processes would return blocks of the same noise.
        raise RuntimeError("the process was forked in the middle of drawing noise; draw again")


def add_draws(values: Int64s, law: Law, source: BitSource) -> None:
    """Adds independent draws of the law to the values. Each draw begins with 2 or 8 bytes of the source."""
    if law.scale > LARGEST_SMALL_SCALE:
        invert_words(values, law, source.words(len(values)), source)
        return
    patterns = source.words(-(-len(values) // 4)).view(np.uint16)[: len(values)]
    still_open = np.empty(len(patterns), dtype=np.int64)  # of which few pages are ever touched
    count = look_up(patterns, look_up_table(quantile_of(law), law.scale), values, still_open)
    if count:
        positions, answers = still_open[:count], np.zeros(count, dtype=np.int64)
        # Words for level 1: first the bits of the patterns, then the low 48 bits of new words.
        words = (patterns[positions].astype(np.uint64) << _48) | (source.words(count) & _LOW_48)
        invert_words(answers, law, words, source)
        values[positions] += answers


def invert_words(values: Int64s, law: Law, words: Words, source: BitSource) -> None:
    """Adds the draws of these first words to the values. A word has one bit for the sign and 63 bits of W."""
    quantile = quantile_of(law)
    table = float_table(quantile)
    shift, _ = shift_of(quantile, law.scale)
    still_open = np.empty(min(len(words), _WORDS_AT_ONCE), dtype=np.int64)
    for first in range(0, len(words), _WORDS_AT_ONCE):
        part, target = words[first : first + _WORDS_AT_ONCE], values[first : first + _WORDS_AT_ONCE]
        count = invert_float(part, table.high, table.radius, law.scale, shift, target, still_open)
        if count:
            positions = still_open[:count]
            magnitudes = certain_magnitudes(law, part[positions], source)
            target[positions] += np.where(part[positions] >> _SIGN_SHIFT != 0, -magnitudes, magnitudes)


def certain_magnitudes(law: Law, words: Words, source: BitSource) -> Int64s:
    """The magnitude for each first word: by level 2, and by level 3 where that is not certain."""
    quantile = quantile_of(law)
    table = double_table(quantile)
    more_words = source.words(len(words))
    magnitudes = np.empty(len(words), dtype=np.int64)
    shift = shift_of(quantile, law.scale)
    invert_double(words, more_words, table.high, table.low, table.radius, law.scale, shift, magnitudes)
    for i in np.flatnonzero(magnitudes < 0).tolist():
        magnitudes[i] = exact_magnitude(quantile, law.scale, int(words[i]), int(more_words[i]), source)
    return magnitudes


class SecretBits:
    """Secret random bits: AES-256-CTR under a new key of the operating system.

    A key is used for one block of one release and stored nowhere, so no two blocks, releases, threads or forked children share
    bits. Given ideal bits the noise is exact; the cipher makes that computational (SECURITY.md).
    """

    def __init__(self, buffer: Words | None = None) -> None:
        self._buffer = buffer  # for the first words, if they fit: new memory costs more than the cipher
        # A counter that begins at zero is safe: the key is used for this stream alone.
        self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> Words:
        """The next words, each one new."""
        size = count + 2  # the cipher needs space for one more block
        buffer, self._buffer = self._buffer, None
        words = np.empty(size, np.uint64) if buffer is None or len(buffer) < size else buffer[:size]
        target = words.view(np.uint8)
        for start in range(0, 8 * count, len(_ZEROS)):
            length = min(len(_ZEROS), 8 * count - start)
            self._cipher.update_into(memoryview(_ZEROS)[:length], target[start:].data)
        return words[:count]

    def __reduce__(self) -> str:
        raise TypeError("secret bits cannot be copied or pickled: two uses of one key would share noise")
