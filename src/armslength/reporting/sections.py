"""The sections of the page, from top to bottom, and their tables."""

import shlex

import numpy as np

from armslength.answers.explain import Explanation
from armslength.errors import plural
from armslength.reporting import promise, statements
from armslength.reporting.drawings import HATCHING, MOST_LABELS_ON_MAP, map_svg, still_heat, tree_svg
from armslength.reporting.findings import Findings
from armslength.reporting.markup import asset, escaped, fill, level_text, name, percent, points_text, section
from armslength.reporting.reasons import Reasons, Rows
from armslength.sketches.sketches import Sketches

_MOST_PAIRS_WITHOUT_SCRIPT, _MOST_PRINTED = 300, 60
FEWEST_DIFFERENCES, MOST_DIFFERENCES = 10, 25  # lines
_MOST_NAMES = 5
_TOO_FEW = (
    "People are too few to say in what: noise could be all of the people of a side. Compare groups of parties "
    "(armslength explain … --with … --against …), or plan a larger share of ε for margins."
)
_UNSURE_ITEM = '<li class="unsure">'
_HEAT_HINT = "Point at a cell, or move with the arrow keys, to read a pair."
_CLICK_HINT = " Click it, and “What sets them apart” shows the pair."
_ERROR_BAR = '<th scope="col" class="bar-cell"><span class="unseen">Error bar</span></th>'
_BRANCH = '<svg width="40" height="12" aria-hidden="true"><line class="branch{}" x1="2" x2="38" y1="6" y2="6"/></svg>'


def all_sections(findings: Findings, sketches: Sketches) -> list[tuple[str, str, str]]:
    """(identifier, title in the menu, markup) of every section; only privacy and cards for one party."""
    privacy = ("privacy", "Privacy", _privacy(sketches))
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


def _privacy(sketches: Sketches) -> str:
    return section(
        "privacy",
        "What is promised to the people in the data",
        promise.statement(sketches),
        '<p class="note">The <a href="#cards">release cards</a> have the exact terms of every release.</p>',
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
    fields = {
        "prints": " prints-still" if still else "",
        "still": still or _without_script("The heat map of so many parties needs JavaScript."),
        "hint": _HEAT_HINT
        + (
            _CLICK_HINT
            if isinstance(findings.reasons, Reasons) and findings.reasons.sides is not None
            else ""
        ),
        "colors": colors,
        "hatching": HATCHING.replace("hatching", "hatched"),
    }
    return section("heat", "Every pair at a glance", fill(asset("heat.html"), fields))


def _map(findings: Findings) -> str:
    plane, drawing, heading = findings.plane, map_svg(findings), "The parties as a map"
    if plane is None or not drawing:
        return section("map", heading, "<p>There is no map: the noise is larger than all distances.</p>")
    axes = "The plane shows" if plane.axes == 2 else "There is only one axis. It shows"
    negative = (
        f" Negative eigenvalues, which only noise can cause, add up to {percent(plane.against)} of the others and are left out."
        if plane.against > 0
        else ""
    )
    hidden = (
        "With so many parties, names appear under the pointer and for the highlighted party."
        if len(findings.labels) > MOST_LABELS_ON_MAP
        else "Names that would overlap appear under the pointer."
    )
    totals = " The released totals are taken as exact." if findings.by == "shape" else ""
    ellipses = (
        " They appear for the party you highlight." if len(findings.labels) > MOST_LABELS_ON_MAP else ""
    )
    caption = (
        f"<figcaption><p><strong>This is a picture, not a measurement.</strong> {axes} {percent(plane.share)} of the squared "
        f"distances (classical scaling of the estimates).{negative} Two parties that look close can differ in what the map does "
        "not show: trust the tables.</p><p><strong>Ellipses</strong> show where a party could be drawn, at "
        f"{level_text(findings.level)}, if its noise and the public projection were drawn again and the axes stayed.{totals}{ellipses}</p>"
        f"<p>The bar at the lower left is a distance. {hidden}</p></figcaption>"
    )
    return section(
        "map", heading, f'<figure class="beside-figure on-its-own"><div>{drawing}</div>{caption}</figure>'
    )


def _groups(findings: Findings) -> str:
    tree = findings.clusters
    if tree is None:
        return ""
    supported, total = int(tree.supported.sum()), len(tree.supported)
    legend = (
        f'<ul class="legend"><li>{_BRANCH.format("")}supported: the two parts are closer to each other than the group is to '
        f"any cluster beside it</li><li>{_BRANCH.format(' unsure')}dashed: only a description, noise could have made it</li></ul>"
    )
    caption = (
        f"<p>Groups are joined at the distance between them ({tree.joined_by} linkage); the farther left, the farther apart. "
        f"{supported:,} of {plural(total, 'merge')} {'is' if supported == 1 else 'are'} supported, all together at about "
        f"{level_text(findings.level)}.</p>"
    )
    return section(
        "groups", "Who belongs together", caption, legend, f"<figure>{tree_svg(findings)}</figure>"
    )


def _differs(findings: Findings) -> str:
    """In what two sides differ, as bars; the script lets choose them, and writes the same."""
    heading, reasons = "What sets them apart", findings.reasons
    if not isinstance(reasons, Reasons):
        return section("differs", heading, f"<p>{_no_reasons(reasons)}</p>")
    first, second = findings.main_comparison
    answer = reasons.shown[first, second]
    a, b = (_side(findings, rows) for rows in (first, second))
    apart = (
        statements.group_distance(findings, 0, 1)
        if len(first) > 1
        else statements.pair_distance(findings, first[0], second[0])
    )
    hidden = 0 if answer is None else len(answer.item_groups) - _first_lines(answer)
    fields = {
        "choice": "" if reasons.sides is not None else " hidden",
        "first": _choices(findings, reasons, is_first=True),
        "second": _choices(findings, reasons, is_first=False),
        "text": f"{a[0].upper()}{a[1:]} and {b}: {apart}. {_verdict(answer, reasons.choices, _command(findings, first, second))}",
        "limit": _limit_note(findings, reasons),
        "few": _TOO_FEW,
        "table": "" if answer is not None else " hidden",
        "level": level_text(findings.level),
        "a": a,
        "b": b,
        "rows": "" if answer is None else _difference_rows(answer),
        "more": f'<p class="without-script note">{hidden:,} more item groups are shown with JavaScript.</p>'
        if hidden
        else "",
        "note": _differs_note(findings, reasons),
    }
    return section("differs", heading, fill(asset("differs.html"), fields))


def _limit_note(findings: Findings, reasons: Reasons) -> str:
    """What the limit on item groups of each person can do to the answer, and who was released without them."""
    parts = []
    near = reasons.near_limit
    if near:
        names = "all parties" if len(near) == len(reasons.rows) else _some_names(findings, near)
        parts.append(
            f"<strong>At most {plural(reasons.limit or 0, 'item group')} of each person count, and many people reach that in {names}.</strong> "
            "Shares there come out too small; where people have more item groups on one side, a true “more” can come out as “fewer”. "
            "A larger margin_contribution would show it."
        )
    missing = tuple(row for row in range(len(findings.labels)) if row not in set(reasons.rows))
    if missing:
        were = "was" if len(missing) == 1 else "were"
        parts.append(
            f"{_some_names(findings, missing)} {were} released without these margins, and cannot be chosen."
        )
    return "".join(f'<p class="limit">{part}</p>' for part in parts)


def _some_names(findings: Findings, rows: Rows) -> str:
    names = [name(findings.labels[row]) for row in rows]
    if len(names) > _MOST_NAMES:
        names[_MOST_NAMES - 1 :] = [f"{len(names) - _MOST_NAMES + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _command(findings: Findings, first: Rows, second: Rows) -> str:
    """What asks about these two alone; the script writes the same."""
    if len(first) > 1:
        return "armslength explain … --with … --against …"
    return escaped(f"armslength explain … {shlex.join(findings.labels[rows[0]] for rows in (first, second))}")


def _no_reasons(reason: str) -> str:
    if reason == "no margins":
        return (
            "These releases cannot say in what parties differ. To know it next time, plan with item groups, such as chapters of "
            "diagnoses: <code>armslength plan --margins chapters.csv …</code>. Single items can be asked about today: "
            "<code>armslength explain … --items codes.txt</code>."
        )
    return f"In what parties differ cannot be said of these rows: {escaped(reason)}."


def _side(findings: Findings, rows: Rows) -> str:
    return (
        name(findings.labels[rows[0]])
        if len(rows) == 1
        else f"group {'ABCDEFGH'[findings.groups.index(rows)]}"
    )


def _choices(findings: Findings, reasons: Reasons, *, is_first: bool) -> str:
    """Groups and parties as options of a list; the first has all others, too."""
    if reasons.sides is None:
        return ""
    groups = [
        f'<option value="{findings.side_number(rows)}">Group {"ABCDEFGH"[number]}: {escaped(findings.labels[rows[0]])} '
        f"and {len(rows) - 1} more</option>"
        for number, rows in enumerate(reasons.groups)
        if reasons.is_known(rows)
    ]
    parties = "".join(
        f'<option value="{row}">{escaped(findings.labels[row])}</option>' for row in reasons.rows
    )
    can_choose = len(groups) > 1 or (reasons.has_alone and not is_first and groups)
    listed = f'<optgroup label="Groups">{"".join(groups)}</optgroup>' if can_choose else ""
    rest = (
        f'<option value="{findings.all_others}">All others</option>' if is_first and reasons.has_alone else ""
    )
    return f'{rest}{listed}<optgroup label="Parties">{parties}</optgroup>'


def _verdict(answer: Explanation | None, choices: int, command: str) -> str:
    """How many item groups differ, and how large a difference the others could still have."""
    if answer is None:
        return _TOO_FEW
    found, count = answer.found, len(answer.item_groups)
    most = 100 * max(
        np.abs(answer.lower[found:]).max(initial=0.0), np.abs(answer.upper[found:]).max(initial=0.0)
    )
    if not found and choices > 1:
        return (
            f"No difference is large enough to be sure of among all {choices:,} choices of this page; none is larger than {most:.1f} "
            f"points. For these two alone: <code>{command}</code>."
        )
    if not found:
        return f"No difference found: in none of {count:,} item groups is it larger than {most:.1f} points."
    rest = f" In the others no difference is larger than {most:.1f} points." if found < count else ""
    return f"{found:,} of {count:,} item groups differ.{rest}"


def _first_lines(answer: Explanation) -> int:
    """How many lines are shown at first: all that differ, and some others."""
    return min(max(FEWEST_DIFFERENCES, answer.found), MOST_DIFFERENCES, len(answer.item_groups))


def _difference_rows(answer: Explanation) -> str:
    """A line for each item group: first those that differ, the clearest first; then the others, the largest first."""
    rest = range(answer.found, len(answer.item_groups))
    order = [*range(answer.found), *sorted(rest, key=lambda row: -abs(answer.difference[row]))]
    shown = order[: _first_lines(answer)]
    widest = max(max(-answer.lower[row], answer.upper[row]) for row in shown)

    def at(value: float) -> str:
        return f"{50 + 48 * value / widest:.2f}%"

    lines = []
    for row in shown:
        lower, upper, value = (float(each[row]) for each in (answer.lower, answer.upper, answer.difference))
        kind = "bars" if row < answer.found else "bars unsure"
        bar = (
            f'<svg class="{kind}" aria-hidden="true"><line class="zero" x1="50%" x2="50%" y1="0" y2="16"/>'
            f'<line class="bar-line" x1="50%" x2="{at(value)}" y1="8" y2="8"/>'
            f'<line class="ends" x1="{at(lower)}" x2="{at(upper)}" y1="8" y2="8"/></svg>'
        )
        a, b = (f"{100 * float(side[row]):.1f} %" for side in (answer.a, answer.b))
        ends = f"{points_text(lower)} to {points_text(upper)}"
        lines.append(
            f'<tr><th scope="row">{name(answer.item_groups[row])}<span class="narrow">{a} → {b} ({ends})</span></th>'
            f'<td class="wide-bar">{bar}</td><td class="numeric">{points_text(value)}</td>'
            f'<td class="interval">{ends}</td><td class="numeric share">{a}</td><td class="numeric share">{b}</td></tr>'
        )
    return "".join(lines)


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
    more = (
        ""
        if reasons.sides is not None
        else " There are too many item groups to choose other parties here: <code>armslength explain</code> does it."
    )
    return (
        f"Points: how many more or fewer of every 100 people were counted with an item of the group. Intervals hold at {level_text(findings.level)}, "
        f"{chance}{family}. Dashed: no difference found, because there is none or because noise hides it.{groups}{more}"
    )


def _one(findings: Findings) -> str:
    choices = "".join(
        f'<option value="{party}">{escaped(label)}</option>' for party, label in enumerate(findings.labels)
    )
    fields = {"choices": choices, "level": level_text(findings.level)}
    return section("one", "One party and the others", fill(asset("one.html"), fields))


def _nearest(findings: Findings) -> str:
    sure, count = int((findings.candidates == 1).sum()), len(findings.labels)
    text = (
        f"<p>For {sure:,} of {count:,} parties the nearest is sure. “Could be” counts the others whose interval reaches as low, "
        f"by intervals that all hold together at {level_text(findings.level)}.</p>"
    )
    controls = (
        '<div class="controls needs-script"><label>Filter <input type="search" id="nearest-filter" placeholder="part of a name">'
        f'</label><output class="note" id="nearest-count">{count:,} of {count:,} parties</output></div>'
    )
    on_paper = (
        f'<p class="only-print note">The first {_MOST_PRINTED} parties; the file has all of them.</p>'
        if count > _MOST_PRINTED
        else ""
    )
    return section("nearest", "Each party’s nearest", text, controls, nearest_table(findings), on_paper)


def _pairs(findings: Findings) -> str:
    total = len(findings.pairs[0])
    missing = (
        _without_script(f"The table of {total:,} pairs needs JavaScript; armslength compare lists them too.")
        if total > _MOST_PAIRS_WITHOUT_SCRIPT
        else ""
    )
    body = fill(asset("pairs.html"), {"table": pairs_table(findings)})
    return section("pairs", "All pairs", missing, body, classes="long" if total > _MOST_PRINTED else "")


def nearest_table(findings: Findings) -> str:
    """One row for each party and its nearest."""
    parties = np.arange(len(findings.labels))
    axis_end = findings.axis_end((parties, findings.nearest))
    rows = "".join(_nearest_row(findings, party, axis_end) for party in parties.tolist())
    return _table(
        "nearest",
        "Nearest parties",
        "For each party its nearest, with the interval",
        _heading("party", "Party"),
        _heading("nearest", "Nearest"),
        _heading("state", "Told apart?"),
        _heading("place", "Surely the nearest?"),
        _ERROR_BAR,
        _heading("distance", "Distance", numeric=True),
        f'<th scope="col" class="interval">{level_text(findings.level)} interval</th>',
        rows=rows,
    )


def pairs_table(findings: Findings) -> str:
    """All pairs, nearest first. Where they are many, the script adds the rows page by page."""
    rows, columns = findings.pairs
    body = ""
    if len(rows) <= _MOST_PAIRS_WITHOUT_SCRIPT:
        order = findings.squared[findings.pairs].argsort(kind="stable").tolist()
        axis_end = findings.axis_end(findings.pairs)
        body = "".join(_pair_row(findings, int(rows[pair]), int(columns[pair]), axis_end) for pair in order)
    return _table(
        "pairs",
        "All pairs",
        "All pairs of parties with their distances",
        _heading("left", "Party"),
        _heading("right", "Other party"),
        _heading("state", "Told apart?"),
        _ERROR_BAR,
        _heading("distance", "Distance", numeric=True, sort="ascending"),
        _heading("lower", f"{level_text(findings.level)} from", numeric=True),
        _heading("upper", "to", numeric=True),
        rows=body,
    )


def _table(identifier: str, title: str, caption: str, *headings: str, rows: str) -> str:
    return (
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="{title}, a table that scrolls">'
        f'<table class="data" id="{identifier}-table"><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{''.join(headings)}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _heading(key: str, text: str, *, numeric: bool = False, sort: str = "none") -> str:
    kind = ' class="numeric"' if numeric else ""
    return (
        f'<th scope="col" data-key="{key}" aria-sort="{sort}"{kind}>'
        f'<button type="button">{escaped(text)}</button></th>'
    )


def _nearest_row(findings: Findings, party: int, axis_end: float) -> str:
    other, candidates = int(findings.nearest[party]), int(findings.candidates[party])
    if candidates == 1:
        verdict = '<span class="state sure">yes</span>'
    elif candidates == len(findings.labels) - 1:
        verdict = '<span class="state unsure">all others could be</span>'
    else:
        verdict = f'<span class="state unsure">{plural(candidates - 1, "other")} could be</span>'
    clear = ' <span class="state clear">IN CLEAR</span>' if findings.in_clear[party] else ""
    style = findings.style
    return (
        f'<tr data-party="{party}" data-other="{other}" data-candidates="{candidates}">'
        f'<th scope="row">{_party(findings, party)}{clear}</th><td class="name">{_party(findings, other)}</td>'
        f"<td>{_state(findings, party, other)}</td><td>{verdict}</td>"
        f"{_bar(findings, party, other, axis_end)}"
        f'<td class="numeric">{style.text(findings.distance[party, other])}</td>'
        f'<td class="interval">{style.interval(findings.lower[party, other], findings.upper[party, other])}</td></tr>'
    )


def _pair_row(findings: Findings, left: int, right: int, axis_end: float) -> str:
    numbers = "".join(
        f'<td class="numeric">{findings.style.text(matrix[left, right])}</td>'
        for matrix in (findings.distance, findings.lower, findings.upper)
    )
    return (
        f'<tr><td class="name">{_party(findings, left)}</td><td class="name">{_party(findings, right)}</td>'
        f"<td>{_state(findings, left, right)}</td>{_bar(findings, left, right, axis_end)}{numbers}</tr>"
    )


def _party(findings: Findings, party: int) -> str:
    return (
        f'<button type="button" class="party" data-chooses="{party}">{name(findings.labels[party])}</button>'
    )


def _bar(findings: Findings, left: int, right: int, axis_end: float) -> str:
    """The interval as a bar in a cell; the script of the page draws the same."""
    ends = findings.lower[left, right], findings.upper[left, right], findings.distance[left, right]
    low, high, value = (f"{96 * min(1.0, float(end) / axis_end) + 2:.2f}%" for end in ends)
    kind = "bars" if findings.resolved[left, right] else "bars unsure"
    return (
        f'<td class="bar-cell"><svg class="{kind}" aria-hidden="true">'
        '<line class="zero" x1="2.00%" x2="2.00%" y1="0" y2="16"/>'
        f'<line class="span" x1="{low}" x2="{high}" y1="8" y2="8"/>'
        f'<circle class="value" cx="{value}" cy="8" r="4"/></svg></td>'
    )


def _state(findings: Findings, left: int, right: int) -> str:
    """Whether a pair is told apart, as a badge."""
    if findings.resolved[left, right]:
        return '<span class="state sure">told apart</span>'
    if findings.is_alike[left, right]:
        return '<span class="state sure">alike</span>'
    return '<span class="state unsure">not resolved</span>'


def _without_script(text: str) -> str:
    return f'<p class="without-script note">{text}</p>'
