"""Canonical text, and bytes that cannot be confused (specification, sections 1 and 3)."""

import unicodedata


def canonical_text(text: str) -> bytes:
    """The UTF-8 bytes of the NFC form: no trimming, no case folding.

    Raises:
        ValueError: What the text must be, and what came, without the text itself.
    """
    if text.isascii():
        return text.encode("ascii")
    # NFC is stable for assigned characters only: another party's tables may treat a newer one otherwise.
    categories = {unicodedata.category(character) for character in text}
    if "Cs" in categories:
        raise ValueError("valid Unicode text, got a lone surrogate")
    if "Cn" in categories:
        raise ValueError(
            f"text of characters assigned in Unicode {unicodedata.unidata_version}, got one that is not; "
            "replace it, or use a newer Python"
        )
    return unicodedata.normalize("NFC", text).encode()


def is_canonical(text: str) -> bool:
    """Whether `canonical_text` takes it."""
    try:
        canonical_text(text)
    except ValueError:
        return False
    return True


def length_prefixed(part: bytes) -> bytes:
    """The bytes after their own length, so that no two lists of parts read the same."""
    return len(part).to_bytes(8, "little") + part
