"""The privacy part of the report: what the releases promise, their cards, and a warning where data has no noise."""

from fractions import Fraction
from typing import Any

import numpy as np

from armslength.errors import plural
from armslength.privacy.exact_numbers import decimal_text, weakness
from armslength.reporting.markup import asset, escaped, fill, some_names
from armslength.sketches.card import delta_in_words, limit_in_words, release_card, whether
from armslength.sketches.sketches import Sketches

_MOST_NAMES = 12


def epsilons(sketches: Sketches) -> str:
    """ε of the releases: one number, or the range."""
    values = sorted({protocol.epsilon for protocol in sketches.protocols})
    return f"ε = {_short(values[0])}" + (f" to {_short(values[-1])}" if len(values) > 1 else "")


def deltas(sketches: Sketches) -> str:
    """The largest δ of the releases."""
    largest = max(protocol.released_delta for protocol in sketches.protocols)
    return "pure: no δ" if largest == 0 else f"δ at most {float(largest):.3g}"


def fingerprints(sketches: Sketches) -> str:
    """The first letters of the protocol's fingerprint, or how many protocols there are."""
    found = sorted({protocol.fingerprint for protocol in sketches.protocols})
    return f"{len(found)} protocols" if len(found) > 1 else f"{found[0][:4]} {found[0][4:8]}"


def alarm(sketches: Sketches, labels: tuple[str, ...]) -> str:
    """A banner that names the parties without noise; empty if there are none."""
    in_clear = [label for label, is_clear in zip(labels, sketches.in_clear, strict=True) if is_clear]
    if not in_clear:
        return ""
    names = some_names(in_clear, _MOST_NAMES)
    words = escaped(release_card((), in_clear=True)["words"].removeprefix("NOT PRIVATE: "))
    return (
        '<div class="alarm" role="alert"><p class="shout">NOT PRIVATE</p>'
        f"<p>{plural(len(in_clear), 'party', 'parties')} in the clear: {names}. {words[0].upper()}{words[1:]} "
        "This page must not be published either.</p></div>"
    )


def statement(sketches: Sketches) -> str:
    """The promise to the people in the data, and what adds up for people in several releases."""
    in_clear = sketches.in_clear
    if all(in_clear):
        return (
            '<div class="promises"><div class="promise"><p><strong>No privacy is promised.</strong> '
            "All rows hold data without noise.</p></div></div>"
        )
    protocols = sketches.protocols
    epsilon = max(protocol.epsilon for protocol in protocols)
    delta = max(protocol.released_delta for protocol in protocols)
    units = sorted({protocol.unit or "one unit of protection" for protocol in protocols})
    unit = " or ".join(map(escaped, units))
    relations = {protocol.relation for protocol in protocols}
    change = "For the change of the data that its card states"  # adding or removing is not replacing
    if len(relations) == 1:
        change = whether(unit, relations.pop())
    weak = weakness(epsilon, delta)
    fields = {
        "limit": limit_in_words(change, "a release", epsilon, delta) + delta_in_words(epsilon, delta),
        "epsilon": _short(epsilon),
        "delta": " δ adds up as well." if delta else "",
        "warning": f" <strong>{escaped(weak)}</strong>" if weak else "",
        "exempt": " None of this holds for the parties in the clear." if any(in_clear) else "",
        "spent": _spent(sketches, epsilon),
    }
    return fill(asset("privacy.html"), fields)


def cards(sketches: Sketches) -> str:
    """One release card for each protocol and kind of source; none where all data is in the clear."""
    if all(sketches.in_clear):
        return ""
    releases = release_card(sketches.releases, in_clear=False)["releases"]
    return f'<div class="cards">{"".join(map(_card, releases))}</div>'


def _spent(sketches: Sketches, epsilon: Fraction) -> str:
    """How much more somebody in several released rows has spent. A sum holds the noise of every row that went into it."""
    rows, combined = len(np.unique(sketches.noises.ids)), int(np.diff(sketches.noises.starts).max())
    text = ""
    if rows > 1:
        text += (
            f"; somebody in all {rows:,} released rows behind this page, up to {_short(rows * epsilon)} "
            "if each row was released by itself"
        )
    if combined > 1:
        text += (
            f". A row here is made of up to {combined:,} released rows: somebody in all of those has spent up to "
            f"{_short(combined * epsilon)}"
        )
    return text


def _card(card: dict[str, Any]) -> str:
    """The words of a card, and its exact numbers."""
    mechanism = card["mechanism"]
    inputs = (
        "any number of items" if mechanism["input_dim"] is None else f"{mechanism['input_dim']:,} numbers"
    )
    facts = {
        "Unit": card["unit"] or "one unit of protection",
        "Relation": card["relation"],
        "Radius": f"{card['radius']} (l1 norm)",
        "ε": card["epsilon"],
        "δ": card["delta"],
        "Noise": f"{card['noise']}, scale {float.fromhex(card['scale']):.6g}, on the {card['noise_site']}",
        "Transform": f"{mechanism['transform']}, {inputs} to {mechanism['sketch_dim']:,}",
        "Source": card["source"],
        "Protocol": card["protocol"],
    }
    items = "".join(f"<dt>{key}</dt><dd>{escaped(value)}</dd>" for key, value in facts.items())
    return (
        f'<article class="card"><h3>Release card</h3><p class="words">{escaped(card["words"])}</p>'
        f"<dl>{items}</dl></article>"
    )


def _short(number: Fraction) -> str:
    """The exact decimal if it is short, else four digits."""
    text = decimal_text(number)
    return text if len(text) <= 8 else f"{float(number):.4g}"
