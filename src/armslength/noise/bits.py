"""Secret random bits: a cipher keyed by the operating system, anew for each block of each release.

A key lives as long as the drawing of its block and is kept nowhere, so no two blocks, releases, threads
or forked children can share bits. Given ideal bits the noise is exact; the cipher makes that
computational (SECURITY.md).
"""

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_ZEROS = bytes(1 << 20)  # what is encrypted to give the keystream


class BitSource(Protocol):
    """Where uniform words come from; tests bring their own to force the rare paths."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words, each one new."""
        ...


class SecretBits:
    """AES-256-CTR under a key that the operating system has just drawn.

    Args:
        buffer: Where the first words go, if they fit; it must be nobody else's until they are used up. New memory costs
            more than the cipher.
    """

    def __init__(self, buffer: NDArray[np.uint64] | None = None) -> None:
        self._buffer = buffer
        # A counter block of zero is safe: the key is used for this stream alone.
        self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words, each one new."""
        room = count + 2  # the cipher asks for room for one more block
        buffer, self._buffer = self._buffer, None
        words = np.empty(room, np.uint64) if buffer is None or len(buffer) < room else buffer[:room]
        target = words.view(np.uint8)
        for start in range(0, 8 * count, len(_ZEROS)):
            size = min(len(_ZEROS), 8 * count - start)
            self._cipher.update_into(memoryview(_ZEROS)[:size], target[start:].data)
        return words[:count]

    def __reduce__(self) -> str:
        raise TypeError("secret bits cannot be copied or pickled: two uses of one key would share noise")
