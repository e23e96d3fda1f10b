"""One spelling for each name: names that look alike must not be two budgets, or two labels."""

import unicodedata

from armslength.errors import ParameterError


def check_spelling(population: str) -> None:
    """Refuses a name of people that looks like another one."""
    if population != unicodedata.normalize("NFC", population).strip():
        raise ParameterError(
            "population must have no blanks at its ends and composed characters (NFC), got another spelling"
        )


def one_spelling(label: str) -> str:
    """The label as a ledger knows it: in composed characters (NFC)."""
    return unicodedata.normalize("NFC", label)
