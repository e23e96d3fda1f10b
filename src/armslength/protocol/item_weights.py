"""Public item weights: how much an event counts by its item, from a public list whose hash is part of the protocol."""

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.privacy.exact_numbers import decimal_text, exact_number
from armslength.protocol.public_lists import rows_of
from armslength.randomness.seeds import canonical_text, length_prefixed

_DOMAIN = b"armslength item weights v1"
_LARGEST, _MOST_UNITS = 2**40, 2**62
_MOST = 10_000_000


def item_weights_hash(source: Any, resolution: Fraction) -> str | None:
    """The hash of a list of weights, or a hash as it is; None for none."""
    if source is None or (isinstance(source, str) and re.fullmatch("[0-9a-f]{64}", source)):
        return source
    return _hash(_checked_weights(source, resolution))


def item_amounts(source: Any, hashed: str | None, resolution: Fraction) -> dict[str, int] | None:
    """⌊weight/γ⌋ grid units of each item with a weight above 0, if the list is the protocol's; other items count nothing."""
    if (source is None) != (hashed is None):
        rule = "item_weights (--item-weights) must be"
        raise ParameterError(
            f"{rule} the list that the protocol was made with, got none"
            if source is None
            else f"{rule} left out: the protocol has none"
        )
    if source is None:
        return None
    weights = _checked_weights(source, resolution)
    if _hash(weights) != hashed:
        raise ParameterError("item_weights must be those that the protocol was made with, got others")
    return {item: int(weight / resolution) for item, weight in weights.items() if weight}


def _hash(weights: Mapping[str, Fraction]) -> str:
    """SHA-256 over items and weights in the order of the items, each after its length."""
    digest = hashlib.sha256(length_prefixed(_DOMAIN))
    for item, weight in sorted(weights.items()):
        digest.update(length_prefixed(item.encode()) + length_prefixed(decimal_text(weight).encode()))
    return digest.hexdigest()


def _checked_weights(source: Any, resolution: Fraction) -> dict[str, Fraction]:
    """The weight of each item, in its NFC form."""
    weights = dict[str, Fraction]()
    for item, value in rows_of("item_weights", source, ["item"], "weight")[1]:
        weight = exact_number("item_weights", value)
        if not (0 <= weight <= _LARGEST and weight <= _MOST_UNITS * resolution):
            rule = "item_weights must be from 0 to 2^40, and at most 2^62 times the resolution"
            raise ParameterError(f"{rule}, got {short_repr(value)}")
        if not isinstance(item, str) or not item:
            raise ParameterError(f"items of item_weights must be text, got {short_repr(item)}")
        try:
            name = canonical_text(item).decode()
        except ValueError as problem:
            raise ParameterError(f"items of item_weights must be {problem}") from None
        if name in weights:
            raise ParameterError(f"items of item_weights must be listed once, got {short_repr(item)} again")
        weights[name] = weight
    if not 1 <= len(weights) <= _MOST:
        raise ParameterError(f"item_weights must list 1 to {_MOST} items, got {len(weights)}")
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
