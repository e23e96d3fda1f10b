"""The sections of the page, from top to bottom, and their tables."""

from armslength.errors import plural
from armslength.reporting import promise, statements
from armslength.reporting.drawings import HATCHING, MOST_LABELS_ON_MAP, map_svg, still_heat, tree_svg
from armslength.reporting.findings import NO_MARGINS, Findings, Reasons
from armslength.reporting.markup import asset, escaped, fill, level_text, name, percent, section, some_names
from armslength.sketches.sketches import Sketches

_MOST_PRINTED = 60
_MOST_NAMES = 5
_UNSURE_ITEM = '<li class="unsure">'
_HEAT_HINT = "Point at a cell, or move with the arrow keys, to read a pair."
_CLICK_HINT = " Click it, and “What sets them apart” shows the pair."
_NO_MARGINS = (
    "These releases cannot say what sets parties apart. To know it next time, plan with item groups, such as chapters of "
    "diagnoses: <code>armslength plan --margins chapters.csv …</code>. Single items can be asked about today: "
    "<code>armslength explain … --items codes.txt</code>."
)
_NO_HEAT = '<p class="without-script note">The heat map of so many parties needs JavaScript.</p>'


def all_sections(findings: Findings, sketches: Sketches) -> list[tuple[str, str, str]]:
    """(identifier, title in the menu, markup) of every section; only privacy and cards for one party."""
    promised = section(
        "privacy",
        "What is promised to the people in the data",
        promise.statement(sketches),
        '<p class="note">The <a href="#cards">release cards</a> have the exact terms of every release.</p>',
    )
    privacy = ("privacy", "Privacy", promised)
    cards = ("cards", "Release cards", section("cards", "Release cards", promise.cards(sketches)))
    if len(findings.labels) == 1:
        return [privacy, cards]
    return [
        ("summary", "In short", _summary(findings, sketches)),
        ("map", "Map", _map(findings)),
        ("heat", "Heat map", _heat(findings)),
        ("differs", "What differs", _differs(findings)),
        ("groups", "Tree", _groups(findings)),
        ("one", "One party", _one(findings)),
        ("nearest", "Nearest", _nearest(findings)),
        ("pairs", "All pairs", _pairs(findings)),
        privacy,
        cards,
    ]


def _summary(findings: Findings, sketches: Sketches) -> str:
    items = "".join(
        f"{'<li>' if is_sure else _UNSURE_ITEM}<h3>{heading}</h3><p>{text}</p></li>".replace("<p></p>", "")
        for is_sure, heading, text in statements.statements(findings)
    )
    limits = "".join(f"<li>{text}</li>" for text in statements.limits(findings, sketches))
    return section(
        "summary",
        "In short",
        f'<ul class="findings">{items}</ul>',
        f'<div class="limits"><h3>What is not claimed</h3><ul>{limits}</ul></div>',
    )


def _heat(findings: Findings) -> str:
    low, high = findings.color_range
    style = findings.style
    stops = "".join(f'<stop offset="{12.5 * step}%" class="ramp-{step}"/>' for step in range(9))
    beyond = " or more" if float(findings.distance.max()) > high else ""
    colors = (
        '<svg class="scale" aria-hidden="true"><defs><linearGradient id="colors">'
        f'{stops}</linearGradient></defs><rect width="100%" height="14" fill="url(#colors)"/></svg>'
        f'<p class="scale-ends"><span>near: {style.text(low)}</span><span>far: {style.text(high)}{beyond}</span></p>'
        if findings.resolved.any()
        else '<p class="note">No pair is resolved, so there is no distance to color.</p>'
    )
    still = still_heat(findings)
    can_choose = isinstance(findings.reasons, Reasons) and findings.reasons.sides is not None
    fields = {
        "prints": " prints-still" if still else "",
        "still": still or _NO_HEAT,
        "hint": f"{_HEAT_HINT}{_CLICK_HINT if can_choose else ''}",
        "colors": colors,
        "hatching": HATCHING.replace("hatching", "hatched"),
    }
    return section("heat", "Every pair at a glance", fill(asset("heat.html"), fields))


def _map(findings: Findings) -> str:
    plane, drawing, heading = findings.plane, map_svg(findings), "The parties as a map"
    if plane is None or not drawing:
        return section("map", heading, "<p>There is no map: the noise is larger than all distances.</p>")
    negative = f" Negative eigenvalues, which true distances do not have, add up to {percent(plane.against)} of the others and are left out."
    overlapping = "Names that would overlap appear under the pointer."
    many = "With so many parties, names appear under the pointer, and names and ellipses for the highlighted party."
    fields = {
        "drawing": drawing,
        "axes": "The plane shows" if plane.axes == 2 else "There is only one axis. It shows",
        "share": percent(plane.share),
        "negative": negative if plane.against > 0 else "",
        "level": level_text(findings.level),
        "totals": " The released totals are taken as exact." if findings.by == "shape" else "",
        "names": many if len(findings.labels) > MOST_LABELS_ON_MAP else overlapping,
    }
    return section("map", heading, fill(asset("map.html"), fields))


def _groups(findings: Findings) -> str:
    tree = findings.clusters
    if tree is None:
        return ""
    fields = {"level": level_text(findings.level), "tree": tree_svg(findings)}
    return section("groups", "Who belongs together", fill(asset("groups.html"), fields))


def _differs(findings: Findings) -> str:
    """What sets two sides apart, as bars that the script draws; one can choose the sides."""
    heading, reasons = "What sets them apart", findings.reasons
    if not isinstance(reasons, Reasons):
        text = f"These rows cannot say what sets parties apart: {escaped(reasons)}."
        return section("differs", heading, f"<p>{_NO_MARGINS if reasons == NO_MARGINS else text}</p>")
    limit = _limit_note(findings, reasons) + _left_out_note(findings, reasons)
    if reasons.sides is None:
        too_many = "There are too many item groups to choose two sides here: <code>armslength explain</code> compares any two."
        return section("differs", heading, f"<p>{too_many}</p>", limit)
    fields = {
        "first": _choices(findings, reasons, is_first=True),
        "second": _choices(findings, reasons, is_first=False),
        "limit": limit,
        "level": level_text(findings.level),
        "note": _differs_note(findings, reasons),
    }
    return section("differs", heading, fill(asset("differs.html"), fields))


def _limit_note(findings: Findings, reasons: Reasons) -> str:
    """By how much shares are too small, because people with many item groups count in part."""
    bound, missing = reasons.undercounts()
    if not missing:
        return ""
    names = some_names([findings.labels[row] for row in missing], _MOST_NAMES)
    return (
        f'<p class="limit">Some people have more than {plural(bound, "item group")}, and count in part in each. '
        f"So shares can be up to about {100 * max(missing.values()):.1f} points too small in {names}. The intervals allow for it.</p>"
    )


def _left_out_note(findings: Findings, reasons: Reasons) -> str:
    """Which parties have no part in the reasons."""
    labels = [label for row, label in enumerate(findings.labels) if row not in reasons.known]
    if not labels:
        return ""
    names = some_names(labels, _MOST_NAMES)
    return f'<p class="note">Without {names}: released with other item groups, or without any.</p>'


def _choices(findings: Findings, reasons: Reasons, *, is_first: bool) -> str:
    """Groups and parties as options of a list; the first has the typical party, too."""
    groups = "".join(
        f'<option value="{findings.side_number(rows)}">Group {"ABCDEFGH"[number]}: {escaped(findings.labels[rows[0]])} '
        f"and {len(rows) - 1} more</option>"
        for number, rows in enumerate(reasons.groups)
    )
    if not reasons.groups or (len(reasons.groups) == 1 and (is_first or not reasons.has_typical)):
        groups = ""
    else:
        groups = f'<optgroup label="Groups">{groups}</optgroup>'
    typical = f'<option value="{findings.typical_number}">The typical party</option>'
    first = typical if is_first and reasons.has_typical else ""
    return f'{first}{groups}<optgroup label="Parties">{_party_options(findings)}</optgroup>'


def _party_options(findings: Findings) -> str:
    return "".join(
        f'<option value="{row}">{escaped(label)}</option>' for row, label in enumerate(findings.labels)
    )


def _differs_note(findings: Findings, reasons: Reasons) -> str:
    chance = "beyond chance, " if reasons.beyond_chance else "about the people counted, "
    family = (
        f"for all item groups of all {reasons.choices:,} choices of this page together, so wider than those of one pair alone"
        if reasons.choices > 1
        else "for all item groups together"
        if findings.simultaneous
        else "for all item groups of one pair together; of many pairs that you look at, some miss"
    )
    groups = (
        " Groups were found in the same releases; here they are taken as given, and as if nobody were in two parties."
        if len(reasons.groups) > 1
        else ""
    )
    if reasons.has_typical:
        groups = f" The typical party is the average of all others, none weighing more than the median party.{groups}"
    return (
        f"Points: how many more or fewer of every 100 people have an item of the group. Intervals hold at {level_text(findings.level)}, "
        f"{chance}{family}. Dashed: no difference found, which does not mean that there is none.{groups}"
    )


def _one(findings: Findings) -> str:
    fields = {"choices": _party_options(findings), "level": level_text(findings.level)}
    return section("one", "One party and the others", fill(asset("one.html"), fields))


def _nearest(findings: Findings) -> str:
    count = len(findings.labels)
    fields = {
        "sure": f"{int((findings.candidates == 1).sum()):,}",
        "count": f"{count:,}",
        "level": level_text(findings.level),
        "rows": "".join(_nearest_row(findings, party) for party in range(count)),
    }
    first = f'<p class="only-print note">The first {_MOST_PRINTED} parties; the file has all of them.</p>'
    on_paper = first if count > _MOST_PRINTED else ""
    return section("nearest", "Each party’s nearest", fill(asset("nearest.html"), fields), on_paper)


def _pairs(findings: Findings) -> str:
    """All pairs; the script adds the rows, nearest first, page by page."""
    body = fill(asset("pairs.html"), {"level": level_text(findings.level)})
    classes = "long" if len(findings.pairs[0]) > _MOST_PRINTED else ""
    return section("pairs", "All pairs", body, classes=classes)


def _nearest_row(findings: Findings, party: int) -> str:
    """A row of the table; the script adds the bar."""
    other, candidates = int(findings.nearest[party]), int(findings.candidates[party])
    is_resolved, is_alike = findings.resolved[party, other], findings.is_alike[party, other]
    state = "told apart" if is_resolved else "alike" if is_alike else "not resolved"
    count = "all others" if candidates == len(findings.labels) - 1 else plural(candidates - 1, "other")
    verdict = "yes" if candidates == 1 else f"{count} could be"
    clear = ' <span class="state clear">IN CLEAR</span>' if findings.in_clear[party] else ""
    style = findings.style
    return (
        f'<tr data-party="{party}" data-other="{other}" data-candidates="{candidates}">'
        f'<th scope="row">{_party(findings, party)}{clear}</th><td class="name">{_party(findings, other)}</td>'
        f'<td><span class="state {"sure" if is_resolved or is_alike else "unsure"}">{state}</span></td>'
        f'<td><span class="state {"sure" if candidates == 1 else "unsure"}">{verdict}</span></td>'
        f'<td class="bar-cell"></td><td class="numeric">{style.text(findings.distance[party, other])}</td>'
        f'<td class="interval">{style.interval(findings.lower[party, other], findings.upper[party, other])}</td></tr>'
    )


def _party(findings: Findings, party: int) -> str:
    return (
        f'<button type="button" class="party" data-chooses="{party}">{name(findings.labels[party])}</button>'
    )
