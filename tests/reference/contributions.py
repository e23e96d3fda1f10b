"""A second, naive implementation of docs/reference/contributions.md: one event at a time, with Python's own integers."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

from reference.spec import item_number, longest_run_of_marks

# White_Space of Unicode; str.strip() would take the separators U+001C to U+001F, too
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
WORD = 2**64
Person = str | int | float | None
Event = tuple[Person, str | None, str | int | None, int]  # person, group, item, amount in grid units
Place = tuple[str, str | int]  # group and item


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4 with 64 bits of output: Aumasson and Bernstein 2012, section 2."""
    k0, k1 = (int.from_bytes(key[start : start + 8], "little") for start in (0, 8))
    v = [
        k0 ^ int.from_bytes(b"somepseu", "big"),
        k1 ^ int.from_bytes(b"dorandom", "big"),
        k0 ^ int.from_bytes(b"lygenera", "big"),
        k1 ^ int.from_bytes(b"tedbytes", "big"),
    ]
    # the last word ends with the length modulo 256
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[int], count: int) -> None:
    """Applies the round function."""
    for _ in range(count):
        v[0] = (v[0] + v[1]) % WORD
        v[2] = (v[2] + v[3]) % WORD
        v[1] = _rotated(v[1], 13) ^ v[0]
        v[3] = _rotated(v[3], 16) ^ v[2]
        v[0] = _rotated(v[0], 32)
        v[2] = (v[2] + v[1]) % WORD
        v[0] = (v[0] + v[3]) % WORD
        v[1] = _rotated(v[1], 17) ^ v[2]
        v[3] = _rotated(v[3], 21) ^ v[0]
        v[2] = _rotated(v[2], 32)


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) % WORD


def sip(key: bytes, data: bytes) -> int:
    """The page's hash of bytes, under the key of a release."""
    return siphash(hashlib.blake2b(b"", digest_size=16, key=key, person=b"order").digest(), data)


def joined(*numbers: int) -> bytes:
    """Each number as 8 bytes, one after the other."""
    return b"".join(number.to_bytes(8, "little") for number in numbers)


def group_hash(key: bytes, person: str, group: str) -> int:
    """The number by which a person's groups are ordered."""
    return sip(key, joined(sip(key, person.encode()), sip(key, group.encode())))


def event_hash(key: bytes, person: str, group: str, item: str | int, occurrence: int) -> int:
    """The number by which a person's events are ordered."""
    high, low = divmod(item_number(item), WORD)
    numbers = (sip(key, person.encode()), sip(key, group.encode()), high, low, occurrence)
    return sip(key, joined(*numbers))


def canonical_person(spelled: Person) -> str:
    """The text by which a person is known; empty if it is no person."""
    if isinstance(spelled, float):
        spelled = int(spelled) if spelled.is_integer() and abs(spelled) <= 2**53 else None
    if spelled is None:
        return ""
    if longest_run_of_marks(str(spelled)) > 30:
        return ""
    text = unicodedata.normalize("NFC", str(spelled)).strip(WHITE_SPACE)
    is_whole = re.fullmatch(r"(-?[0-9]+)\.0*", text)
    if is_whole is None:
        return text
    digits = is_whole[1].lstrip("-")
    return digits if set(digits) == {"0"} else is_whole[1]


def persons_events(
    events: Iterable[Event], groups: Sequence[str]
) -> dict[str, list[tuple[str, str | int, int]]]:
    """(group, item, amount) of every event that is not left out, by person."""
    of_person: dict[str, list[tuple[str, str | int, int]]] = defaultdict(list)
    for spelled, group, item, amount in events:
        person = canonical_person(spelled)
        if person and group is not None and group in groups and item is not None and item != "" and amount:
            if isinstance(item, str) and longest_run_of_marks(item) > 30:
                continue
            form = unicodedata.normalize("NFC", item) if isinstance(item, str) else item
            of_person[person].append((group, form, amount))
    return dict(of_person)


def kept_of(
    person: str, theirs: list[tuple[str, str | int, int]], groups: Sequence[str], bound: int, key: bytes
) -> dict[Place, int]:
    """What is kept of one person's events, by (group, item)."""
    seen: dict[Place, int] = defaultdict(int)
    in_order = []
    for group, item, amount in sorted(theirs, key=lambda event: event[2]):
        number = seen[group, item]
        tie = groups.index(group), item_number(item), number
        in_order.append((event_hash(key, person, group, item, number), tie, (group, item), amount))
        seen[group, item] += 1
    left = bound
    kept: dict[Place, int] = defaultdict(int)
    for _, _, place, amount in sorted(in_order):
        part = min(abs(amount), left)
        left -= part
        kept[place] += part if amount > 0 else -part
    return kept


def bounded_counts(
    events: Iterable[Event], groups: Sequence[str], bound: int, key: bytes
) -> dict[Place, int]:
    """What is kept in all, by (group, item)."""
    counts: dict[Place, int] = defaultdict(int)
    for person, theirs in persons_events(events, groups).items():
        for place, amount in kept_of(person, theirs, groups, bound, key).items():
            counts[place] += amount
    return {place: count for place, count in counts.items() if count}
