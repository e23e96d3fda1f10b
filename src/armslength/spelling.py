"""The one spelling (NFC) of text from elsewhere, in time that grows with its length alone."""

import re
import unicodedata
from functools import cache

MOST_MARKS = 30  # combining marks in a row: the limit of Unicode's Stream-Safe Text Format (UAX 15)
_FEWEST = 14  # characters of such a longer run: one decomposes into at most 2 marks, and the letter before them ends in at most 3


def nfc(text: str) -> str:
    """The NFC form of a text. A ValueError says what the text must be, without quoting it."""
    if text.isascii():
        return text
    if has_too_many_marks(text):
        raise ValueError(f"text with at most {MOST_MARKS} combining marks in a row")
    return unicodedata.normalize("NFC", text)


def has_too_many_marks(text: str) -> bool:
    """Whether more than 30 non-starters follow each other in the NFKD form; the same for all spellings of a text.

    Normalization sorts each run of them, and takes n² steps for n: a text of some hundred kilobytes could take minutes.
    """
    if len(text) < _FEWEST or text.isascii():
        return False
    some, too_many = _runs()
    if some.search(text) is None:
        return False
    # Of single characters: the order of marks in a run does not matter here.
    return too_many.search("".join(unicodedata.normalize("NFKD", letter) for letter in text)) is not None


@cache
def _runs() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What every text with too many marks contains, quick to look for, and the run of marks in its decomposition.

    All marks are in the first two planes. `re` looks up a set of the first plane, and goes through one with others.
    """
    letters = map(chr, range(0x20000))
    marks = [each for each in letters if all(map(unicodedata.combining, unicodedata.normalize("NFKD", each)))]
    first_plane = "".join(mark for mark in marks if mark < "\U00010000")
    likely = f"[{first_plane}\U00010000-\U0001ffff]"
    return re.compile(f"{likely}{{{_FEWEST}}}"), re.compile(f"[{''.join(marks)}]{{{MOST_MARKS + 1}}}")
