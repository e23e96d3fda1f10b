"""The tables: each party's nearest, and all pairs, as HTML that is complete without a script where it can be."""

import numpy as np

from armslength.errors import counted
from armslength.reporting.embedded import longest
from armslength.reporting.findings import Findings
from armslength.reporting.markup import escaped, name
from armslength.reporting.numbers import level_text

MOST_WRITTEN_PAIRS, MOST_PRINTED = 300, 60


def nearest_table(findings: Findings) -> str:
    """One row for each party."""
    parties = np.arange(len(findings.labels))
    most = longest(findings, (parties, findings.nearest))
    rows = "".join(_nearest_row(findings, party, most) for party in parties.tolist())
    interval = f"{level_text(findings.level)} interval"
    return (
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Nearest parties, a table that scrolls">'
        '<table class="data" id="nearest-table"><caption class="unseen">For each party its nearest, with the interval'
        f"</caption><thead><tr>{_heading('party', 'Party')}{_heading('nearest', 'Nearest')}"
        f'<th scope="col" class="bar-cell"><span class="unseen">Error bar</span></th>{_heading("distance", "Distance", numeric=True)}'
        f'<th scope="col" class="interval">{interval}</th>{_heading("state", "Told apart?")}'
        f"{_heading('place', 'Surely the nearest?')}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _nearest_row(findings: Findings, party: int, most: float) -> str:
    other = int(findings.nearest[party])
    candidates = int(findings.candidates[party])
    sure = candidates == 1
    said = (
        "yes"
        if sure
        else "all others could be"
        if candidates == len(findings.labels) - 1
        else f"{counted(candidates - 1, 'other')} could be"
    )
    place = f'<span class="state {"sure" if sure else "unsure"}">{said}</span>'
    clear = ' <span class="state clear">IN CLEAR</span>' if findings.in_clear[party] else ""
    return (
        f'<tr data-party="{party}" data-other="{other}" data-candidates="{candidates}">'
        f'<th scope="row">{_party(findings, party)}{clear}</th><td class="name">{_party(findings, other)}</td>'
        f"{_numbers(findings, party, other, most)}<td>{place}</td></tr>"
    )


def pairs_table(findings: Findings) -> str:
    """All pairs: their rows where they are few, nearest first; otherwise the script writes them, page by page."""
    rows, columns = findings.pairs
    body = ""
    if len(rows) <= MOST_WRITTEN_PAIRS:
        order = findings.squared[findings.pairs].argsort(kind="stable").tolist()
        most = longest(findings, findings.pairs)
        body = "".join(_pair_row(findings, int(rows[pair]), int(columns[pair]), most) for pair in order)
    level = level_text(findings.level)
    return (
        '<div class="scroll tall" tabindex="0" role="region" aria-label="All pairs, a table that scrolls">'
        '<table class="data" id="pairs-table"><caption class="unseen">All pairs of parties with their distances</caption><thead><tr>'
        f'{_heading("left", "Party")}{_heading("right", "Other party")}<th scope="col" class="bar-cell"><span class="unseen">Error bar</span></th>'
        f"{_heading('distance', 'Distance', numeric=True, sort='ascending')}{_heading('lower', f'{level} from', numeric=True)}"
        f"{_heading('upper', 'to', numeric=True)}{_heading('state', 'Told apart?')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _pair_row(findings: Findings, left: int, right: int, most: float) -> str:
    style = findings.style
    return (
        f'<tr><td class="name">{_party(findings, left)}</td><td class="name">{_party(findings, right)}</td>'
        f'<td class="bar-cell">{_bar(findings, left, right, most)}</td><td class="numeric">{style.text(findings.distance[left, right])}</td>'
        f'<td class="numeric">{style.text(findings.lower[left, right])}</td>'
        f'<td class="numeric">{style.text(findings.upper[left, right])}</td><td>{state(findings, left, right)}</td></tr>'
    )


def _numbers(findings: Findings, left: int, right: int, most: float) -> str:
    """Error bar, distance, interval and state of a pair, as cells."""
    style = findings.style
    interval = style.interval(findings.lower[left, right], findings.upper[left, right])
    return (
        f'<td class="bar-cell">{_bar(findings, left, right, most)}</td><td class="numeric">{style.text(findings.distance[left, right])}</td>'
        f'<td class="interval">{interval}</td><td>{state(findings, left, right)}</td>'
    )


def state(findings: Findings, left: int, right: int) -> str:
    """Whether a pair is told apart, as a badge that says it in words."""
    if findings.resolved[left, right]:
        return '<span class="state sure">told apart</span>'
    return '<span class="state unsure">not resolved</span>'


def _bar(findings: Findings, left: int, right: int, most: float) -> str:
    """The interval as a bar; the script of the page draws the same."""
    ends = findings.lower[left, right], findings.upper[left, right], findings.distance[left, right]
    low, high, value = (f"{96 * min(1.0, float(end) / most) + 2:.2f}%" for end in ends)
    kind = "bars" if findings.resolved[left, right] else "bars unsure"
    return (
        f'<svg class="{kind}" aria-hidden="true"><line class="zero" x1="2.00%" x2="2.00%" y1="0" y2="16"/>'
        f'<line class="span" x1="{low}" x2="{high}" y1="8" y2="8"/><circle class="value" cx="{value}" cy="8" r="4"/></svg>'
    )


def _party(findings: Findings, party: int) -> str:
    return (
        f'<button type="button" class="party" data-chooses="{party}">{name(findings.labels[party])}</button>'
    )


def _heading(key: str, text: str, *, numeric: bool = False, sort: str = "none") -> str:
    kind = ' class="numeric"' if numeric else ""
    return (
        f'<th scope="col" data-key="{key}" aria-sort="{sort}"{kind}>'
        f'<button type="button">{escaped(text)}</button></th>'
    )
