"""Public item weights: how much an event counts by its item, from a public list whose hash is part of the protocol."""

from fractions import Fraction
from typing import Any

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.protocol.public_lists import MOST_ITEMS, check_given, is_hash, mapping_hash, read_list

_DOMAIN = "item weights"
_LARGEST, _MOST_UNITS = 2**40, 2**62


def item_weights_hash(source: Any, resolution: Fraction) -> str | None:
    """The hash of a list of weights, or a hash as it is; None for none."""
    is_hashed = source is None or is_hash(source)
    return source if is_hashed else mapping_hash(_DOMAIN, _read_weights(source, resolution), decimal_text)


def item_amounts(source: Any, hashed: str | None, resolution: Fraction) -> dict[str, int] | None:
    """⌊weight/γ⌋ grid units of each item with a weight above 0, if the list is the protocol's; other items count nothing."""
    check_given("item_weights", source, needed=hashed is not None)
    if source is None:
        return None
    weights = _read_weights(source, resolution)
    if mapping_hash(_DOMAIN, weights, decimal_text) != hashed:
        raise ParameterError("item_weights must be those that the protocol was made with, got others")
    return {item: int(weight / resolution) for item, weight in weights.items() if weight}


def _read_weights(source: Any, resolution: Fraction) -> dict[str, Fraction]:
    """The weight of each item, in its NFC form."""

    def checked_weight(value: Any) -> Fraction:
        weight = exact_number("item_weights", value)
        if not (0 <= weight <= _LARGEST and weight <= _MOST_UNITS * resolution):
            rule = "item_weights must be from 0 to 2^40, and at most 2^62 times the resolution"
            raise ParameterError(f"{rule}, got {short_repr(value)}")
        return weight

    _, weights = read_list("item_weights", source, {"item": MOST_ITEMS}, "weight", checked_weight)
    if not weights:
        raise ParameterError("item_weights must list an item, got none")
    smallest = min(filter(None, weights.values()), default=resolution)
    if smallest < resolution:
        finer = resolution
        while finer > smallest:
            finer /= 2
        raise ParameterError(
            f"item_weights must be 0 or at least the resolution {decimal_text(resolution)}, got {decimal_text(smallest)}; "
            f"use --resolution {decimal_text(finer)}"
        )
    return weights
