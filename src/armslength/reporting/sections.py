"""The sections of the page, from top to bottom."""

import numpy as np

from armslength.errors import counted
from armslength.reporting import promise, statements
from armslength.reporting.drawings import HATCHING, MOST_LABELS_ON_MAP, map_svg, still_heat, tree_svg
from armslength.reporting.findings import Findings, color_ends, longest
from armslength.reporting.markup import escaped, level_text, name, percent, section
from armslength.sketches.sketches import Sketches

# The tables: each party's nearest, and all pairs, as HTML that is complete without a script where it can be.


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


CONTENTS = (
    ("summary", "In short"),
    ("privacy", "Privacy"),
    ("heat", "Heat map"),
    ("map", "Map"),
    ("groups", "Tree"),
    ("one", "One party"),
    ("nearest", "Nearest"),
    ("pairs", "All pairs"),
    ("cards", "Release cards"),
)
_FOR_ONE_PARTY = ("privacy", "cards")


def contents(findings: Findings) -> list[tuple[str, str]]:
    """(identifier, title) of the sections that there are."""
    is_alone = len(findings.labels) == 1
    return [(key, title) for key, title in CONTENTS if not is_alone or key in _FOR_ONE_PARTY]


def all_sections(findings: Findings, sketches: Sketches) -> str:
    """Every section."""
    makers = {
        "summary": lambda: _summary(findings, sketches),
        "privacy": lambda: section(
            "privacy",
            "What is promised to the people in the data",
            promise.statement(sketches),
            '<p class="note">The exact terms of every release stand in its <a href="#cards">release card</a>.</p>',
        ),
        "heat": lambda: _heat(findings),
        "map": lambda: _map(findings),
        "groups": lambda: _groups(findings),
        "one": lambda: _one(findings),
        "nearest": lambda: _nearest(findings),
        "pairs": lambda: _pairs(findings),
        "cards": lambda: section("cards", "Release cards", promise.cards(sketches)),
    }
    return "\n".join(makers[key]() for key, _ in contents(findings))


def _summary(findings: Findings, sketches: Sketches) -> str:
    items = "".join(
        f"<li{'' if sure else ' class=' + chr(34) + 'unsure' + chr(34)}><h3>{heading}</h3><p>{text}</p></li>"
        for sure, heading, text in statements.statements(findings)
    )
    claims = "".join(f"<li>{text}</li>" for text in statements.limits(findings, sketches))
    return section(
        "summary",
        "In short",
        f'<ul class="findings">{items}</ul>',
        f'<div class="limits"><h3>What is not claimed</h3><ul>{claims}</ul></div>',
    )


def _heat(findings: Findings) -> str:
    low, high = color_ends(findings)
    is_cut = float(findings.distance.max()) > high
    stops = "".join(f'<stop offset="{12.5 * step}%" class="ramp-{step}"/>' for step in range(9))
    style = findings.style
    still = still_heat(findings)
    colors = (
        '<svg class="scale" aria-hidden="true"><defs><linearGradient id="colors">'
        f'{stops}</linearGradient></defs><rect width="100%" height="14" fill="url(#colors)"/></svg>'
        f'<p class="scale-ends"><span>near: {style.text(low)}</span><span>far: {style.text(high)}{" or more" if is_cut else ""}</span></p>'
        if findings.resolved.any()
        else '<p class="note">No pair is resolved: there is no distance to color.</p>'
    )
    legend = (
        f'{colors}<ul class="legend"><li><svg width="34" height="18" aria-hidden="true">'
        f'{HATCHING.replace("hatching", "hatched")}<rect width="34" height="18" fill="url(#hatched)"/></svg>'
        "hatched: not resolved, the interval holds 0</li>"
        '<li><svg width="34" height="18" aria-hidden="true"><rect class="itself" x=".5" y=".5" width="33" height="17"/></svg>a party beside itself</li></ul>'
    )
    empty = "Point at a cell, or move with the arrow keys, to read a pair."
    drawing = (
        f'<div><div class="heat needs-script{" prints-still" if still else ""}"><canvas class="cursor" id="heat-canvas" tabindex="0" role="application" '
        'aria-label="Heat map of all pairs. Arrow keys move from cell to cell, Enter highlights the party of the row. The tables below hold the same numbers." '
        f'aria-describedby="heat-reading"></canvas></div>{still}'
        f"{'' if still else _without_script('The heat map of so many parties needs JavaScript.')}</div>"
    )
    side = (
        f'<div class="beside"><output class="reading needs-script" id="heat-reading" aria-live="polite" data-empty="{empty}">{empty}</output>{legend}'
        "<figcaption>Every row and every column is a party; a cell is the estimated distance of two. In the order of the "
        "tree, parties that are alike stand together and make blocks along the diagonal.</figcaption></div>"
    )
    order = (
        '<div class="controls needs-script"><span class="note" id="order-label">Order</span>'
        '<span class="group" id="heat-order" role="group" aria-labelledby="order-label"><button type="button" value="clusters" aria-pressed="true">by cluster</button>'
        '<button type="button" value="names" aria-pressed="false">by name</button></span></div>'
    )
    return section(
        "heat", "Every pair at a glance", order, f'<figure class="beside-figure">{drawing}{side}</figure>'
    )


def _map(findings: Findings) -> str:
    plane = findings.plane
    drawing = map_svg(findings)
    if plane is None or not drawing:
        return section(
            "map",
            "The parties as a map",
            "<p>There is no map: the noise is larger than all of the distances, and any picture would be of noise.</p>",
        )
    what = "The plane shows" if plane.axes == 2 else "There is one axis only, which shows"
    many = len(findings.labels) > MOST_LABELS_ON_MAP
    against = (
        f" Eigenvalues below 0, which only noise can make, come to {percent(plane.against)} of the others and are left out."
        if plane.against > 0
        else ""
    )
    names = (
        " With so many parties, names appear under the pointer and for the highlighted party."
        if many
        else " Names that would cover each other appear under the pointer."
    )
    caption = (
        f"<figcaption><p><strong>It is a picture, not a measurement.</strong> {what} {percent(plane.share)} of the squared distances "
        f"(classical scaling of the estimates).{against} Two parties that look close can differ in what the plane does not show: the tables decide.</p>"
        f"<p><strong>Ellipses</strong> show where a party would be drawn, at {level_text(findings.level)}, if its noise and the public projection were drawn again and "
        f"the axes stayed.{' The released totals are taken as they are.' if findings.by == 'shape' else ''}</p><p>The bar at the lower left is a distance."
        f"{names}</p></figcaption>"
    )
    return section(
        "map",
        "The parties as a map",
        f'<figure class="beside-figure on-its-own"><div>{drawing}</div>{caption}</figure>',
    )


def _groups(findings: Findings) -> str:
    clustering = findings.clustering
    if clustering is None:
        return ""
    sure, total = int(clustering.supported.sum()), len(clustering.supported)
    legend = (
        '<ul class="legend"><li><svg width="40" height="12" aria-hidden="true"><line class="branch" x1="2" x2="38" y1="6" y2="6"/></svg>'
        "supported: every distance inside is surely smaller than every distance to the outside</li>"
        '<li><svg width="40" height="12" aria-hidden="true"><line class="branch unsure" x1="2" x2="38" y1="6" y2="6"/></svg>'
        "dashed: the error bars leave this merge open</li></ul>"
    )
    caption = (
        f"<p>Parties are joined at the average distance of their members ({clustering.joined_by} linkage); the farther left, the farther apart. "
        f"{sure:,} of {counted(total, 'merge')} {'is' if sure == 1 else 'are'} supported, all together at {level_text(findings.level)}.</p>"
    )
    return section(
        "groups", "Who belongs together", caption, legend, f"<figure>{tree_svg(findings)}</figure>"
    )


def _one(findings: Findings) -> str:
    choices = "".join(
        f'<option value="{party}">{name(label)[5:-6]}</option>' for party, label in enumerate(findings.labels)
    )
    level = level_text(findings.level)
    return section(
        "one",
        "One party and the others",
        _without_script("To look at one party needs JavaScript; the tables below do not."),
        '<div class="needs-script" id="one-party"><div class="controls"><label>Party '
        f'<select id="one-select">{choices}</select></label></div>'
        '<div class="scroll"><table class="data" id="one-table"><caption id="one-caption"></caption><thead><tr>'
        '<th scope="col">Party</th><th scope="col">Error bar</th><th scope="col" class="numeric">Distance</th>'
        f'<th scope="col" class="interval">{level} interval</th><th scope="col">Told apart?</th></tr></thead><tbody></tbody></table></div>'
        '<div class="pages"><button type="button" id="one-more">Show all</button></div></div>',
    )


def _nearest(findings: Findings) -> str:
    sure, count = int((findings.candidates == 1).sum()), len(findings.labels)
    text = (
        f"<p>For {sure:,} of {count:,} parties the nearest is surely the nearest. “Could be” counts the others whose interval reaches as low; it "
        f"is judged with all intervals together at {level_text(findings.level)}.</p>"
    )
    controls = (
        '<div class="controls needs-script"><label>Filter <input type="search" id="nearest-filter" placeholder="part of a name"></label>'
        f'<output class="note" id="nearest-count">{count:,} of {count:,} parties</output></div>'
    )
    on_paper = (
        f'<p class="only-print note">The first {MOST_PRINTED} parties; the file itself has all of them.</p>'
        if count > MOST_PRINTED
        else ""
    )
    return section("nearest", "Each party’s nearest", text, controls, nearest_table(findings), on_paper)


def _pairs(findings: Findings) -> str:
    total = len(findings.pairs[0])
    is_written = total <= MOST_WRITTEN_PAIRS
    controls = (
        '<div class="controls needs-script"><label>Party <input type="search" id="pairs-filter" placeholder="part of a name"></label>'
        '<label>and <input type="search" id="pairs-other" placeholder="part of another"></label>'
        '<label>Show <select id="pairs-state"><option value="all">all pairs</option><option value="resolved">told apart</option>'
        '<option value="unresolved">not resolved</option></select></label></div>'
    )
    pages = (
        '<div class="pages needs-script"><output id="pairs-count" class="note"></output><span id="pairs-turn">'
        '<button type="button" id="pairs-back">← Previous</button> <button type="button" id="pairs-next">Next →</button></span></div>'
    )
    missing = (
        _without_script(f"The table of {total:,} pairs needs JavaScript; armslength compare lists them too.")
        if not is_written
        else ""
    )
    is_long = total > MOST_PRINTED
    return section(
        "pairs",
        "All pairs",
        missing,
        controls,
        pairs_table(findings),
        pages,
        classes="long" if is_long else "",
    )


def _without_script(text: str) -> str:
    return f'<p class="without-script note">{text}</p>'
