"""The privacy statement: the release card of every protocol, in words and as a list; or a shout where there is none."""

import math
from fractions import Fraction
from typing import Any

from armslength.errors import counted
from armslength.privacy.exact_numbers import weakness, written
from armslength.protocol.protocol import Protocol
from armslength.reporting.markup import escaped, name
from armslength.sketches.card import release_card
from armslength.sketches.noises import Release
from armslength.sketches.sketches import Sketches

_RELATIONS = {"add_remove": "one is added or removed", "replace": "one is replaced by another"}
_SOURCES = {
    "events": "an event table; the software bounded what each person adds",
    "rows": "prepared rows; the party promised the bound",
    "stream": "a stream; the party promised the bound",
    "unknown": "not known; the bound may be a promise of the party",
}
_LAWS = {"laplace": "discrete Laplace", "gaussian": "rounded normal"}
_MOST_NAMED = 12


def epsilons(sketches: Sketches) -> str:
    """ε in a few letters: one number, or the range."""
    found = sorted({protocol.epsilon for protocol in sketches.protocols})
    if len(found) == 1:
        return f"ε = {_short(found[0])}"
    return f"ε = {_short(found[0])} to {_short(found[-1])}"


def deltas(sketches: Sketches) -> str:
    """δ in a few words."""
    largest = max(protocol.released_delta for protocol in sketches.protocols)
    return "pure: no δ" if largest == 0 else f"δ at most {float(largest):.3g}"


def _short(number: Fraction) -> str:
    text = written(number)
    return text if len(text) <= 8 else f"{float(number):.4g}"


def clear_labels(sketches: Sketches, labels: tuple[str, ...]) -> list[str]:
    """The parties that are not protected."""
    return [label for label, clear in zip(labels, sketches.in_clear, strict=True) if clear]


def alarm(sketches: Sketches, labels: tuple[str, ...]) -> str:
    """A banner where any data has no noise; otherwise nothing."""
    found = clear_labels(sketches, labels)
    if not found:
        return ""
    names = ", ".join(name(label) for label in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    words = escaped(release_card(sketches.releases, in_clear=True)["words"].removeprefix("NOT PRIVATE: "))
    return (
        '<div class="alarm" role="alert"><p class="shout">NOT PRIVATE</p>'
        f"<p>{counted(len(found), 'party', 'parties')} in the clear: {names}{more}. {words[0].upper()}{words[1:]} "
        "The same holds for this page.</p></div>"
    )


def statement(sketches: Sketches) -> str:
    """What is promised, to whom, and what it means for people whose data several parties hold."""
    is_clear = all(sketches.in_clear)
    if is_clear:
        return '<div class="promises"><div class="promise"><p><strong>No privacy is promised.</strong> All rows hold data without noise.</p></div></div>'
    units = sorted({protocol.unit or "one unit of protection" for protocol in sketches.protocols})
    unit = " or ".join(escaped(each) for each in units)
    largest = max(protocol.epsilon for protocol in sketches.protocols)
    factor = float(largest)
    odds = f"e<sup>{escaped(_short(largest))}</sup>"
    shown = f"{math.exp(factor):.3g}" if factor < 20 else "an astronomical number"
    delta = max(protocol.released_delta for protocol in sketches.protocols)
    except_for = "" if delta == 0 else f", but for a probability of at most {float(delta):.3g}"
    weak = weakness(largest, delta)
    warning = f" <strong>{escaped(weak)}</strong>" if weak else ""
    exempt = " None of this holds for the parties in the clear." if any(sketches.in_clear) else ""
    relations = {protocol.relation for protocol in sketches.protocols}
    changed = (
        f"whether {unit} is in it or not"
        if relations == {"add_remove"}
        else f"whatever the data of {unit} is"
    )
    return (
        f'<div class="promises"><div class="promise"><p>Whatever anybody computes from a release, {changed}: no result '
        f"becomes more than {odds} ≈ {shown} times as likely or as unlikely{except_for}. This page is computed from the releases alone, so that for "
        f"somebody in one of them the same holds for the page.{warning}{exempt}</p></div>"
        "<div><h3>People who occur in several parties’ data</h3>"
        f"<p>They spend ε at each release that holds them. {_several(sketches, largest)} A party can add up what its own "
        "releases have spent with <code>armslength ledger</code>. Nobody can add it up across parties, and the sum is what counts.</p></div></div>"
    )


def _several(sketches: Sketches, largest: Fraction) -> str:
    """What people have spent who are in one release, in two, in all. A sum is made of as many releases as it has noises."""
    rows = len(sketches)
    noises = len({source for row in sketches.provenance for source, _ in row.terms})
    most = max(len(row.terms) for row in sketches.provenance)
    each = f"up to {escaped(_short(largest))}" if len(sketches.protocols) > 1 else escaped(_short(largest))
    if noises <= 1:
        return f"A person in this release has spent {each}."
    two, every = escaped(_short(2 * largest)), escaped(_short(noises * largest))
    summed = (
        f" A row here is made of up to {most:,} released rows: somebody in all of those has spent up to {escaped(_short(most * largest))}."
        if most > 1
        else ""
    )
    if noises == 2:
        return f"A person in one release has spent {each}; in two separate releases, {two} in all.{summed}"
    of_rows = (
        f"all {rows:,} rows, if each was"
        if most == 1
        else f"all {noises:,} rows that these are made of, if each was"
    )
    return (
        f"A person in one release has spent {each}; in two releases, up to {two}; and somebody in {of_rows} "
        f"released by itself, up to {every}.{summed}"
    )


def cards(sketches: Sketches) -> str:
    """One card for each protocol and what was released under it."""
    if all(sketches.in_clear):
        return ""
    releases = sketches.releases
    released = release_card(releases, in_clear=False)["releases"]
    rows = _rows_under(sketches)
    listed = "".join(
        _card(release[0], card, rows[release]) for release, card in zip(releases, released, strict=True)
    )
    return f'<div class="cards">{listed}</div>'


def _rows_under(sketches: Sketches) -> dict[Release, int]:
    """How many rows have noise of each release."""
    counts = dict.fromkeys(sketches.releases, 0)
    if sketches.released is not None:
        counts[sketches.released.protocol, sketches.released.source] = len(sketches)
        return counts
    for row in sketches.provenance:
        for release in {(noise.protocol, noise.source) for noise, _ in row.terms}:
            counts[release] += 1
    return counts


def _card(protocol: Protocol, card: dict[str, Any], rows: int) -> str:
    transform = protocol.transform
    source = "an open vocabulary" if transform.input_dim is None else f"{transform.input_dim:,} coordinates"
    lines = {
        "Rows": f"{rows:,}",
        "Released": _SOURCES[card["source"]],
        "Protects": escaped(card["unit"] or "one unit of protection"),
        "Neighbors": f"{_RELATIONS[card['relation']]}, moving the data by at most {escaped(card['radius'])} ({card['norm']} norm)",
        "ε": escaped(card["epsilon"]),
        "δ": "0 (pure differential privacy)" if card["delta"] == "0" else escaped(card["delta"]),
        "Noise": f"{_LAWS[card['noise']]}, integers, scale {protocol.law.scale:.6g}, on the {card['noise_site']}",
        "Sketch": f"{escaped(transform.name)}, {source} → {transform.sketch_dim:,} numbers",
        "Protocol": f"<code>{card['protocol']}</code>",
    }
    listed = "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in lines.items())
    return (
        f'<article class="card"><h3>Release card</h3><p class="words">{escaped(card["words"])}</p>'
        f"<dl>{listed}</dl></article>"
    )
