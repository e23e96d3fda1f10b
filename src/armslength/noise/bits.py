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


class BitSource(Protocol):
    """Where uniform words come from; tests bring their own to force the rare paths."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words, each one new."""
        ...


class SecretBits:
    """AES-256-CTR under a key that the operating system has just drawn."""

    def __init__(self) -> None:
        # A counter block of zero is safe: the key is used for this stream alone.
        self._cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words, each one new."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype=np.uint64)

    def __reduce__(self) -> str:
        raise TypeError("secret bits cannot be copied or pickled: two uses of one key would share noise")
