"""One line of the ledger: the cost of a release."""

import re
import unicodedata
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armslength.checks import one_line, one_of, short_repr
from armslength.errors import ParameterError
from armslength.privacy.composition import Loss, gaussian_loss, pure_loss
from armslength.privacy.exact_numbers import checked_delta, checked_epsilon, decimal_text, exact_number
from armslength.protocol.protocol import Protocol
from armslength.spelling import nfc
from armslength.threads import cached_attribute
from armslength.version import __version__

RELATIONS = ("add_remove", "replace")
_LONGEST_PERIOD = 40  # characters
# Characters that Python calls printable and that show nothing: joiners, fillers, variation selectors.
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


@dataclass(frozen=True)
class Entry:
    """What a release costs. All of it is public; nothing is read from data. Numbers are exact decimals as text."""

    population: str  # whose budget it is: a name for the people in the data
    period: str  # which time the data are about, "2026-11" for example; "" if nobody said
    file: str  # the name of the file that the release was to be written to; "" if nobody said
    release: str  # its id, 24 hexadecimal digits; the id of every noise in the sketch file begins with it
    unit: str  # the unit of protection, in words
    relation: str
    radius: str  # how far one unit can move the data, in ℓ1 norm
    law: str  # "laplace" or "gaussian"
    scale: str  # of the noise, in integer units, as a hexadecimal float
    sensitivity_squared: (
        str  # so that μ² of all Gaussian noise is this/σ²: (R·Δ₂)² in integer units; "" for Laplace noise
    )
    epsilon: str  # the whole ε of the release
    delta: str
    totals_epsilon: (
        str  # the part of ε under pure DP that totals, and margins, spend; Gaussian noise is (ε − this, δ)-DP
    )
    protocol: str  # its fingerprint
    version: str  # of armslength
    time: str = ""  # in UTC; never before the time of the line before
    number: int = 0  # of the line in its ledger, from 1; 0 before it is written
    labels: tuple[str, ...] = ()  # of the released rows, in order

    @cached_attribute
    def loss(self) -> Loss:
        """The privacy loss of the release; refuses a line that is not valid."""
        if not all(isinstance(getattr(self, name), str) for name in COLUMNS):
            raise ParameterError("an entry must have text in every field")
        checked_population(self.population)
        checked_period(self.period)
        one_of("relation", self.relation, RELATIONS)
        epsilon, delta = checked_epsilon(self.epsilon), checked_delta(self.delta)
        totals = exact_number("totals_epsilon", self.totals_epsilon)
        if not 0 <= totals < epsilon:
            raise ParameterError(
                f"totals_epsilon must be from 0 to below epsilon, got {short_repr(self.totals_epsilon)}"
            )
        if self.law == "laplace" and delta == 0:
            return pure_loss(epsilon)
        if self.law != "gaussian" or delta == 0:
            raise ParameterError(
                f"law must be 'laplace' with delta 0 or 'gaussian' with one above, got {short_repr(self.law)}"
            )
        squared = self.sensitivity_squared
        if not re.fullmatch("[0-9]{1,80}", squared) or not int(squared):
            raise ParameterError(f"sensitivity_squared must be an integer above 0, got {short_repr(squared)}")
        try:
            sigma = Fraction(float.fromhex(self.scale))
        except (ValueError, OverflowError):
            sigma = Fraction(0)
        if not sigma > 0:
            raise ParameterError(f"scale must be a hexadecimal float above 0, got {short_repr(self.scale)}")
        return gaussian_loss(epsilon, delta, int(squared), sigma, totals)

    def differing_cost(self, other: "Entry") -> str:
        """The first of unit, relation, ε and so on, or the protocol, in which the two entries differ; "" if they cost the same."""
        return next((name for name in _COST if getattr(self, name) != getattr(other, name)), "")


_COST = tuple(field.name for field in fields(Entry))
_COST = _COST[_COST.index("unit") : _COST.index("version")]
COLUMNS = tuple(field.name for field in fields(Entry) if field.type is str)


@lru_cache(maxsize=1)  # a release asks for it twice: to refuse what cannot be charged, and to charge it
def ledger_entry(
    protocol: Protocol, population: str, *, period: str = "", file: str = "", release: str = ""
) -> Entry:
    """The entry of a release under this protocol."""
    squared, pure = "", protocol.totals_epsilon + protocol.margins_epsilon
    if protocol.noise == "gaussian":
        squared = str(protocol.sensitivity)
    return Entry(
        population=population,
        period=period,
        file=file,
        release=release,
        unit=protocol.unit,
        relation=protocol.relation,
        radius=decimal_text(protocol.radius),
        law=protocol.noise,
        scale=protocol.law.scale.hex(),
        sensitivity_squared=squared,
        epsilon=decimal_text(protocol.epsilon),
        delta=decimal_text(protocol.released_delta),
        totals_epsilon=decimal_text(pure),
        protocol=protocol.fingerprint,
        version=__version__,
    )


def checked_population(value: Any) -> str:
    """The name of a population, in one spelling: two names that look alike must not be two budgets."""
    name = one_line("population", value)
    if name != nfc(name).strip():
        raise ParameterError(
            "population must have composed characters (NFC) and no blanks at its ends", "population"
        )
    return name


def checked_period(value: Any) -> str:
    """The name of the time that a release is about, in one spelling; "" for none."""
    name = one_line("period", value)
    if len(name) > _LONGEST_PERIOD or name != "".join(name.split()) or name != nfc(name):
        raise ParameterError(
            f"period must be a short name without blanks, such as 2026-11, of at most {_LONGEST_PERIOD} characters, "
            f"got {short_repr(value)}",
            "period",
        )
    return name


def resembles(name: str, other: str) -> bool:
    """Whether two names look alike: they differ at most by case, blanks, width, or characters that nobody sees."""
    return _skeleton(name) == _skeleton(other)


def _skeleton(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(
        character
        for character in folded
        if character.isprintable() and not character.isspace() and character not in _INVISIBLE
    )
