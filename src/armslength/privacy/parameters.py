"""ε and δ as the exact decimals that were written."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from armslength.checks import shown
from armslength.errors import ParameterError


def exact_number(name: str, value: Any) -> Fraction:
    """The number that was written: 0.1 is a tenth, not the float next to it.

    Args:
        name: What the message calls it.
        value: An int, float, decimal string, `Decimal` or `Fraction`.
    """
    rule = f"{name} must be a finite number"
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction)):
        raise ParameterError(f"{rule}, got {shown(value)}")
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    try:
        # repr gives the shortest decimal that reads back as this float: what its writer meant
        written = Decimal(repr(float(value)) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ParameterError(f"{rule}, got {shown(value)}") from None
    if not written.is_finite():
        raise ParameterError(f"{rule}, got {shown(value)}")
    if abs(written.adjusted()) > 400:
        raise ParameterError(f"{name} must have fewer than 400 digits, got {shown(value)}")
    return Fraction(written)


def checked_epsilon(value: Any) -> Fraction:
    """ε, if it is above 0."""
    epsilon = exact_number("epsilon", value)
    if not epsilon > 0:
        raise ParameterError(f"epsilon must be above 0, got {shown(value)}")
    return epsilon


def checked_delta(value: Any) -> Fraction:
    """δ, if it is at least 0 and below 1."""
    delta = exact_number("delta", value)
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be at least 0 and below 1, got {shown(value)}")
    return delta
