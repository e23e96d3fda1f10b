"""One spelling of text from elsewhere, in linear time, against the definition of the rule."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armslength.spelling import has_too_many_marks, nfc
from reference.spec import longest_run_of_marks

# letters, marks of several classes, precomposed letters with up to three marks, Hangul, half-width and presentation forms, marks of two
LETTERS = (
    "aé\u1f82\u0390\uac01\ufc5e\ufb2c\u3316"
    "\u0301\u0316\u0327\u0344\u0f77\u3099\uff9e\u0345\U0001d165\U0001e000\u05b0"
)


@given(st.text(alphabet=LETTERS, max_size=60))
@example("a" + "\u0301" * 30)
@example("a" + "\u0301" * 31)
@example("é" + "\u0316" * 29)
@example("é" + "\u0316" * 30)
@example("\u1f82" + "\u0344" * 14)
@example("\u1f82" + "\u0344" * 13 + "\u0301")
@example("\u1f82" + "\u0344" * 13 + "\u0301" * 2)
@example("ｶ" + "\uff9e" * 31)
def test_the_rule_is_that_of_the_specification_for_every_spelling(text):
    is_too_long = longest_run_of_marks(text) > 30
    for form in ("NFC", "NFD"):
        assert has_too_many_marks(unicodedata.normalize(form, text)) == is_too_long
    assert has_too_many_marks(text) == is_too_long
    if is_too_long:
        with pytest.raises(ValueError, match="at most 30"):
            nfc(text)
    else:
        assert nfc(text) == unicodedata.normalize("NFC", text)


def test_what_the_quick_search_takes_for_granted_holds_for_all_of_unicode():
    """A mark has at most 2 in its decomposition, a letter ends in at most 3, and none begins with one; all marks are in the first two planes."""
    for letter in map(chr, range(0x110000)):
        decomposed = unicodedata.normalize("NFKD", letter)
        marks = [unicodedata.combining(part) > 0 for part in decomposed]
        if all(marks):
            assert len(marks) <= 2
            assert letter < "\U00020000"
        else:
            assert not marks[0]
            assert not all(marks[-4:])


@pytest.mark.parametrize(
    "text", ["a" + "\u0301\u0316" * 500_000, "é\u0316" * 500_000, "\U0001f600" * 1_000_000]
)
def test_megabytes_are_decided_at_once(text):
    """Normalizing the first one takes an hour."""
    assert has_too_many_marks(text) == (text[0] == "a")
