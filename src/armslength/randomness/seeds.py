"""Public seeds and the keys derived from them (specification, section 1)."""

import hashlib
import secrets
import unicodedata
from typing import Any

from armslength.checks import shown
from armslength.errors import ParameterError
from armslength.randomness.text import canonical_text, length_prefixed

VERSION = b"armslength public randomness v1"
LONGEST_SEED = 256


def fresh_seed() -> str:
    """A new public seed, for whoever starts a protocol."""
    return secrets.token_hex(16)


def checked_seed(seed: Any) -> str:
    """The seed in its normal form; a fresh one for None."""
    if seed is None:
        return fresh_seed()
    if not isinstance(seed, str):
        small = isinstance(seed, int) and abs(seed) < 10**18
        hint = f"; try seed={str(seed)!r}" if small else ""
        raise ParameterError(f"seed must be a string, got {shown(seed)}{hint}")
    try:
        size = len(canonical_text(seed))
    except ValueError as problem:
        raise ParameterError(f"seed must be {problem}") from None
    if not seed.isprintable():
        raise ParameterError("seed must be printable text on one line, got other characters")
    if not 1 <= size <= LONGEST_SEED:
        raise ParameterError(f"seed must be 1 to {LONGEST_SEED} bytes of UTF-8, got {size} bytes")
    return unicodedata.normalize("NFC", str(seed))


def derive_key(seed: str, purpose: str) -> bytes:
    """The 32-byte key of one purpose under a seed; keys of different purposes are unrelated."""
    parts = (VERSION, canonical_text(seed), purpose.encode("ascii"))
    return hashlib.sha256(b"".join(length_prefixed(part) for part in parts)).digest()
