"""The public stream of a seed and a purpose: words by position (specification, section 2)."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from armslength.randomness.seeds import derive_key

WORD_BYTES = 8
BLOCK_BYTES = 16


class Stream:
    """AES-256-CTR under the key of (seed, purpose): any word can be computed alone."""

    def __init__(self, seed: str, purpose: str) -> None:
        self._algorithm = algorithms.AES(derive_key(seed, purpose))

    def words(self, start: int, count: int) -> NDArray[np.uint64]:
        """The words at positions start … start+count−1."""
        first_block, skipped = divmod(start * WORD_BYTES, BLOCK_BYTES)
        counter = first_block.to_bytes(BLOCK_BYTES, "big")
        cipher = Cipher(self._algorithm, modes.CTR(counter)).encryptor()
        keystream = cipher.update(bytes(skipped + count * WORD_BYTES))
        return np.frombuffer(keystream, dtype="<u8", offset=skipped).astype(np.uint64, copy=False)

    def bits(self, start: int, count: int) -> NDArray[np.uint8]:
        """The bits at positions start … start+count−1, each 0 or 1."""
        first_word, skipped = divmod(start, 64)
        words = self.words(first_word, -(-(skipped + count) // 64))
        unpacked = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        return unpacked[skipped : skipped + count]


class Reader:
    """Words of a stream in sequence, for the procedures that may reject."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._position = 0

    def take(self, count: int) -> NDArray[np.uint64]:
        """The next words."""
        words = self._stream.words(self._position, count)
        self._position += count
        return words
