"""Numbers as the exact rationals that a user typed, and back to text."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from armslength.checks import short_repr
from armslength.errors import ParameterError

WEAK_EPSILON, WEAK_DELTA = 10, Fraction(1, 1000)  # above which a promise is called weak
# np.float64 is a float; narrower floats are refused
_NUMBERS = (int, float, str, Decimal, Fraction, np.integer)
_LONGEST = 400
_MOST_DIGITS = 190  # of numerator and denominator; protocols store both
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_QUOTIENT = re.compile(r"[+-]?[0-9]+/0*[1-9][0-9]*")


def exact_number(name: str, value: Any) -> Fraction:
    """The exact number that the user typed: 0.1 is a tenth, not the float next to it; also text such as "1e-6" or "1/3"."""
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, _NUMBERS):
        raise ParameterError(f"{name} must be a finite number, got {short_repr(value)}", name)
    if isinstance(value, (int, Fraction, np.integer)):
        exact = Fraction(value if isinstance(value, Fraction) else int(value))
    else:
        # A float means the shortest decimal that reads back as it. The methods of the plain types are called by name, so that
        # neither print options nor a subclass can change the number.
        if isinstance(value, float):
            text = float.__repr__(float(value))
        else:
            text = Decimal.__str__(value) if isinstance(value, Decimal) else str.__str__(value)
        if len(text) > _LONGEST or not (_DECIMAL.fullmatch(text) or _QUOTIENT.fullmatch(text)):
            got = short_repr(value) + _suggestion(text)
            raise ParameterError(
                f"{name} must be a finite number of at most {_LONGEST} digits, got {got}", name
            )
        exact = Fraction(text)
    if max(abs(exact.numerator), exact.denominator) >= 10**_MOST_DIGITS:
        raise ParameterError(
            f"{name} must have fewer than {_MOST_DIGITS} digits, got {short_repr(value)}", name
        )
    return exact


def decimal_text(number: Fraction) -> str:
    """A rational as text: a decimal where it has one, else a quotient."""
    digits = next((digits for digits in range(61) if 10**digits % number.denominator == 0), None)
    if not digits:  # a whole number, or one without a decimal
        return str(number)
    whole, part = divmod(abs(number.numerator) * 10**digits // number.denominator, 10**digits)
    return f"{'-' if number < 0 else ''}{whole}.{part:0{digits}d}"


def checked_epsilon(value: Any) -> Fraction:
    """ε, if it is above 0."""
    epsilon = exact_number("epsilon", value)
    if not epsilon > 0:
        raise ParameterError(f"epsilon must be above 0, got {short_repr(value)}", "epsilon")
    return epsilon


def checked_delta(value: Any) -> Fraction:
    """δ, if it is at least 0 and below 1."""
    delta = exact_number("delta", value)
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be at least 0 and below 1, got {short_repr(value)}", "delta")
    return delta


def weakness(epsilon: Fraction, delta: Fraction) -> str:
    """Why a promise is weak, in one sentence; empty if it is not. It is a warning, never a refusal."""
    reasons = []
    if epsilon > WEAK_EPSILON:
        reasons.append(f"ε is above {WEAK_EPSILON}")
    if delta > WEAK_DELTA:
        reasons.append(f"δ is above {float(WEAK_DELTA):g}")
    if not reasons:
        return ""
    return f"This is a weak promise: {', and '.join(reasons)}; ask for less before you rely on it."


def _suggestion(text: str) -> str:
    """A suggestion for a number with a decimal comma or in percent; else empty."""
    plain = text.strip().replace(",", ".")
    share = plain.removesuffix("%").rstrip()
    if len(plain) > 20 or not re.fullmatch(r"[0-9]*\.?[0-9]+", share):
        return ""
    return f"; did you mean {plain if share == plain else Decimal(share) / 100}?"
