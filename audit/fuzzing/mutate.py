"""How inputs are changed: bytes anywhere, JSON as a tree, and the footer and page headers of Parquet as what they are.

Everything is decided by the given generator: the same seed makes the same inputs.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from forged_parquet import Parts, struct

Mutator = Callable[[bytes, Random], bytes]

_BYTES = (
    b"\0",
    b"\xff",
    b"\xff\xff\xff\x7f",
    b"\x80",
    b"\n",
    b"\r\n",
    b'"',
    b",",
    b"'",
    b"{",
    b"[",
    b"\x1b[31m",
    b"\xed\xa0\x80",
)
_TEXTS = ("", "0", "-1", "1e400", "1e-400", "1/3", "9" * 500, "nan", "0x1p-1074", "0x1p+1023", "\ud800", "\0", "a\nb", "\x1b[31m", "\u202e", "../../a",
          "<script>alert(1)</script>", "'; DROP TABLE entries; --", "a" * 2000, "٣", "e\u0301", "gaussian", "laplace", "replace", "month",
          "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00+00:00", "PAR1", "=cmd()", "\U0001f600")  # fmt: skip
_NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    2**15,
    2**24,
    2**31,
    2**40,
    2**53,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    5e-324,
)
_OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"a": 1})


def change_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes put in, taken out, copied or changed."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
        place = random.randrange(len(changed) + 1)
        kind = random.randrange(5)
        if kind == 0:
            changed[place:place] = random.choice(_BYTES)
        elif kind == 1:
            del changed[place : place + random.choice((1, 1, 2, 8, 64))]
        elif kind == 2 and place < len(changed):
            changed[place] = random.randrange(256)
        elif kind == 3 and place < len(changed):
            changed[place] ^= 1 << random.randrange(8)
        else:
            start = random.randrange(len(changed) + 1)
            changed[place:place] = changed[start : start + random.choice((1, 4, 16, 64))]
    return bytes(changed)


def change_json(data: bytes, random: Random) -> bytes:
    """One or a few places of the tree replaced, moved, doubled or left out; now and then the bytes themselves."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return change_bytes(data, random)
    if random.randrange(20) == 0:
        return change_bytes(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = random.choice(places)
        _change_place(holder, key, random)
    return json.dumps(tree).encode()


def change_text(data: bytes, random: Random) -> bytes:
    """JSON as a tree or as bytes, as often the one as the other."""
    return random.choice((change_json, change_bytes))(data, random)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in the tree."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left:
        holder = left.pop()
        inner = (
            list(holder.items())
            if isinstance(holder, dict)
            else list(enumerate(holder))
            if isinstance(holder, list)
            else []
        )
        found += [(holder, key) for key, _ in inner]
        left += [value for _, value in inner]
    return found


def _change_place(holder: Any, key: Any, random: Random) -> None:
    kind = random.randrange(10)
    old = holder[key]
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder[key:key] = json.loads(json.dumps([old] * random.choice((1, 1, 2, 40))))
    elif kind == 1:
        holder[random.choice((*_TEXTS, *holder))] = json.loads(json.dumps(old))
    elif kind == 2:
        other, place = random.choice(_places(holder))
        holder[key] = json.loads(json.dumps(other[place]))
    elif kind <= 5 and isinstance(old, int) and not isinstance(old, bool):
        holder[key] = random.choice((old + 1, old - 1, 2 * old, -old, old ^ 1, *_NUMBERS))
    elif kind <= 5 and isinstance(old, str):
        text = change_bytes(old.encode(errors="replace"), random).decode(errors="replace")
        holder[key] = random.choice((text, text, text, old + old, old[:-1], *_TEXTS))
    else:
        holder[key] = json.loads(json.dumps(random.choice(random.choice((_TEXTS, _NUMBERS, _OTHERS)))))


def change_parquet(data: bytes, random: Random) -> bytes:
    """The footer's numbers, texts and lists changed, or bytes where a page begins, or bytes anywhere."""
    kind = random.randrange(8)
    length = int.from_bytes(data[-8:-4], "little")
    if kind == 0 or not 0 < length <= len(data) - 12:
        return change_bytes(data, random)
    if kind <= 5:
        start = random.choice(
            (4, random.randrange(4, len(data) - 8 - length + 1), len(data) - 8 - random.randrange(length))
        )
        end = start + random.choice((8, 40))
        return data[:start] + change_bytes(data[start:end], random) + data[end:]
    try:
        footer = Parts(data[-8 - length : -8]).struct()  # type: ignore[no-untyped-call]  # a helper of the tests
        for _ in range(random.choice((1, 1, 2, 3))):
            _change_thrift(footer, random)
        new: bytes = struct(footer)  # type: ignore[no-untyped-call]  # the same
    except (StopIteration, RuntimeError, ValueError, TypeError, RecursionError, IndexError, OverflowError):
        return change_bytes(data, random)
    return data[: -8 - length] + new + len(new).to_bytes(4, "little") + b"PAR1"


def _change_thrift(fields: Any, random: Random) -> None:
    """One field, here or in what is within."""
    if not fields:
        return
    place = random.randrange(len(fields))
    number, kind, value = fields[place]
    if kind == 12 and random.randrange(4):
        _change_thrift(value, random)
    elif kind == 9 and value[1] and random.randrange(4):
        inner, items = value
        at = random.randrange(len(items))
        if inner == 12 and random.randrange(8):
            _change_thrift(items[at], random)
        elif random.randrange(2):
            items[at] = _other(inner, items[at], random)
        else:
            items[at:at] = items[at : at + 1] * random.choice((1, 2, 50))
    elif random.randrange(6) == 0:
        del fields[place]
    elif random.randrange(6) == 0:
        fields[place][0] = max(0, number + random.choice((-1, 1, 7)))
    else:
        fields[place][2] = _other(kind, value, random)


def _other(kind: int, value: Any, random: Random) -> Any:
    if isinstance(value, int):
        return random.choice(
            (
                value + 1,
                value - 1,
                2 * value,
                0,
                1,
                -1,
                2**31 - 1,
                2**31,
                2**62,
                2**63 - 1,
                random.randrange(12),
            )
        )
    if isinstance(value, bytes) and kind == 8:
        return change_bytes(value, random)
    return value
