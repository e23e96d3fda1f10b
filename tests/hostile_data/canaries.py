"""Values that occur nowhere else, and a search for any trace of them in what was printed."""

import datetime as dt
import decimal
import re

TEXT = "Zyxquv-Wombat-Äß"
OTHER_TEXT = "Qwjfp,Hrosk"
INTEGER = 7391846205
REAL = 48211.640625
NOT_WHOLE = decimal.Decimal("60318.2974")
DAY = dt.date(2787, 3, 19)
HUGE = int("8642097531" * 12)
BYTES = b"Vlotk\xff\xfeMurxi"
_SHORTEST = 5
_TEXTS = (TEXT, OTHER_TEXT, BYTES.decode("latin-1"), "Vlotk", "Murxi")
_NUMBERS = (INTEGER, REAL, NOT_WHOLE, HUGE, DAY.isoformat())
_BITS = (INTEGER, INTEGER & 0xFFFFFFFF)


def traces(printed):
    """Every piece of a canary, of five characters or digits and more, that the text holds in some spelling."""
    plain = printed.casefold()
    digits = re.sub(r"[\s,._'-]", "", re.sub(r"0x[0-9a-f]+", "", plain))
    found = {
        piece
        for text in _TEXTS
        for spelled in _spellings(text)
        for piece in _pieces(spelled.casefold())
        if piece in plain
    }
    found |= {
        start
        for start in (re.sub(r"\D", "", str(number))[:_SHORTEST] for number in _NUMBERS)
        if start in digits
    }
    found |= {f"{number:x}" for number in _BITS if f"{number:x}" in plain}
    return sorted(found)


def _spellings(text):
    yield text
    yield text.encode().hex()
    yield text.encode("unicode_escape").decode("ascii")
    yield ascii(text)[1:-1]


def _pieces(text):
    # a piece of an escape alone, as \xff is, is no trace
    pieces = (text[start : start + _SHORTEST] for start in range(len(text) - _SHORTEST + 1))
    return {piece for piece in pieces if "\\" not in piece}
