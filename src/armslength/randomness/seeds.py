"""Public seeds, the keys derived from them, and their streams of words (specification, sections 1 to 3)."""

import hashlib
import secrets
import unicodedata
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.spelling import nfc

VERSION = b"armslength public randomness v1"
LONGEST_SEED = 256
WORD_BYTES = 8
BLOCK_BYTES = 16


def fresh_seed() -> str:
    """A new public seed."""
    return secrets.token_hex(16)


def checked_seed(seed: Any) -> str:
    """The seed in its normal form (NFC); a new one for None."""
    if seed is None:
        return fresh_seed()
    if not isinstance(seed, str):
        small = isinstance(seed, int) and abs(seed) < 10**18
        hint = f"; try seed={str(seed)!r}" if small else ""
        raise ParameterError(f"seed must be a string, got {short_repr(seed)}{hint}", "seed")
    try:
        text = canonical_text(seed)
    except ValueError as problem:
        raise ParameterError(f"seed must be {problem}", "seed") from None
    if not seed.isprintable():
        raise ParameterError("seed must be printable text on one line", "seed")
    if not 1 <= len(text) <= LONGEST_SEED:
        raise ParameterError(
            f"seed must be 1 to {LONGEST_SEED} bytes of UTF-8, got {len(text)} bytes", "seed"
        )
    return text.decode()


def derive_key(seed: str, purpose: str) -> bytes:
    """The 32-byte key of one purpose under a seed; keys of different purposes are unrelated."""
    parts = (VERSION, canonical_text(seed), purpose.encode("ascii"))
    return hashlib.sha256(b"".join(length_prefixed(part) for part in parts)).digest()


class Stream:
    """AES-256-CTR under the key of (seed, purpose): any word can be computed alone."""

    def __init__(self, seed: str, purpose: str) -> None:
        self._algorithm = algorithms.AES(derive_key(seed, purpose))
        self._position = 0  # of `take`

    def words(self, start: int, count: int) -> NDArray[np.uint64]:
        """The words at positions start … start+count−1."""
        first_block, offset = divmod(start * WORD_BYTES, BLOCK_BYTES)
        counter = first_block.to_bytes(BLOCK_BYTES, "big")
        cipher = Cipher(self._algorithm, modes.CTR(counter)).encryptor()
        keystream = cipher.update(bytes(offset + count * WORD_BYTES))
        return np.frombuffer(keystream, dtype="<u8", offset=offset).astype(np.uint64, copy=False)

    def bits(self, start: int, count: int) -> NDArray[np.uint8]:
        """The bits at positions start … start+count−1, each 0 or 1."""
        first_word, offset = divmod(start, 64)
        words = self.words(first_word, -(-(offset + count) // 64))
        unpacked = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        return unpacked[offset : offset + count]

    def take(self, count: int) -> NDArray[np.uint64]:
        """The next words from the beginning on, for procedures that may reject some."""
        words = self.words(self._position, count)
        self._position += count
        return words


def canonical_text(text: str) -> bytes:
    """The UTF-8 bytes of the NFC form: no trimming, no case folding. A ValueError says what the text must be, without quoting it."""
    if text.isascii():
        return text.encode("ascii")
    # NFC is stable for assigned characters only: another party's tables may treat a newer one differently.
    categories = {unicodedata.category(character) for character in text}
    if "Cs" in categories:
        raise ValueError("valid Unicode text without lone surrogates")
    if "Cn" in categories:
        raise ValueError(
            f"text of characters assigned in Unicode {unicodedata.unidata_version}; replace others, or use a newer Python"
        )
    return nfc(text).encode()


def length_prefixed(part: bytes) -> bytes:
    """The bytes with their length before them, so that no two lists of parts give the same bytes."""
    return len(part).to_bytes(8, "little") + part
