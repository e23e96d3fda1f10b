"""A second, naive implementation of docs/reference/contributions.md: one event at a time, with Python's own integers."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# White_Space of Unicode; str.strip() would take the separators U+001C to U+001F, too
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
Event = tuple[str | None, str, str | int | None, int]  # person, group, item, amount in grid units


def digest(key: bytes, kind: bytes, text: bytes) -> bytes:
    """A block of 16 bytes for a text."""
    return hashlib.blake2b(text, digest_size=16, key=key, person=kind).digest()


def chain_end(key: bytes, blocks: bytes) -> int:
    """The last block of AES-256 in CBC mode, as a number."""
    cipher_key = hashlib.blake2b(b"", digest_size=32, key=key, person=b"cipher").digest()
    chain = Cipher(algorithms.AES(cipher_key), modes.CBC(bytes(16))).encryptor()
    return int.from_bytes(chain.update(blocks)[-16:], "big")


def group_hash(key: bytes, person: str, group: str) -> int:
    """The number by which a person's groups are ordered."""
    return chain_end(key, digest(key, b"person", person.encode()) + digest(key, b"group", group.encode()))


def event_hash(key: bytes, person: str, group: str, item: str | int, occurrence: int) -> int:
    """The number by which a person's events are ordered."""
    item_bytes = item.encode() if isinstance(item, str) else (item % 2**64).to_bytes(8, "little")
    blocks = (
        digest(key, b"person", person.encode())
        + digest(key, b"group", group.encode())
        + digest(key, b"item", item_bytes)
        + occurrence.to_bytes(16, "little")
    )
    return chain_end(key, blocks)


def bounded_counts(
    events: Iterable[Event],
    groups: list[str],
    bound: int,
    key: bytes,
    *,
    each_once: bool = False,
    one_group: bool = False,
) -> dict[tuple[str, str | int], int]:
    """What is taken in all, by (group, item)."""
    of_person: dict[str, list[tuple[str, str | int, int]]] = defaultdict(list)
    for spelled, group, item, amount in events:
        person = unicodedata.normalize("NFC", spelled or "").strip(WHITE_SPACE)
        if person and item is not None and item != "" and group in groups and amount:
            form = unicodedata.normalize("NFC", item) if isinstance(item, str) else item
            of_person[person].append((group, form, amount))
    counts: dict[tuple[str, str | int], int] = defaultdict(int)
    for person, all_of_theirs in of_person.items():
        theirs = all_of_theirs
        if one_group:
            first = min((group_hash(key, person, group), group) for group, _, _ in theirs)
            theirs = [event for event in theirs if event[0] == first[1]]
        if each_once:
            theirs = [(group, item, 1) for group, item in {event[:2] for event in theirs}]
        seen: dict[tuple[str, str | int], int] = defaultdict(int)
        hashed = []
        for group, item, amount in sorted(theirs, key=lambda event: event[2]):
            hashed.append((event_hash(key, person, group, item, seen[group, item]), group, item, amount))
            seen[group, item] += 1
        left = bound
        for _, group, item, amount in sorted(hashed):
            taken = min(abs(amount), left)
            left -= taken
            counts[group, item] += taken if amount > 0 else -taken
    return {place: count for place, count in counts.items() if count}
