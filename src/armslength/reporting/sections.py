"""The sections of the page, from top to bottom, and their tables."""

from armslength.answers.explain import UNEXPLAINED
from armslength.answers.outliers import Outliers
from armslength.answers.pairs import DIFFER, INCONCLUSIVE, SAME
from armslength.errors import plural
from armslength.estimates.questions import COUNTS
from armslength.reporting import promise, statements
from armslength.reporting.drawings import (
    HATCHING,
    MOST_LABELS_ON_MAP,
    interval_bar,
    map_svg,
    still_heat,
)
from armslength.reporting.findings import (
    NO_MARGINS,
    Findings,
    LeftOut,
    Reasons,
    axis_of_similarities,
)
from armslength.reporting.markup import asset, escaped, fill, name, section, share_text, some_names
from armslength.results import percent
from armslength.sketches.sketches import Sketches

_MOST_LINES, _FIRST_LINES, _FIRST_LEFT_OUT = 30, 20, 5
_MOST_PRINTED = 60
_MOST_NAMES, _MOST_MEMBERS, _MOST_GROUPS = 5, 24, 8
_LETTERS = "ABCDEFGH"
_HEAT_HINT = "Point at a cell, or move with the arrow keys, to read a pair."
_CLICK_HINT = " Click it, and “What sets them apart” shows the pair."
_NO_MARGINS = (
    "These releases cannot say what sets parties apart. To know it next time, plan with item groups, such as chapters of "
    "diagnoses: <code>armslength plan … --item-groups chapters.csv</code>. Single items can be asked about today: "
    "<code>armslength explain … --items codes.txt</code>."
)
_SECOND = '<th scope="col" data-key="distance" aria-sort="none" class="numeric second"><button type="button">Distance</button></th>'
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
    texts = "".join(f"<li>{text}</li>" for text in statements.claims(findings, sketches))
    reading = section("reading", "How to read this page", f'<ul class="claims">{texts}</ul>')
    fields = {
        "number": "Distance" if findings.likeness is None else "Similarity",
        "level": percent(findings.level),
        "second": "" if findings.likeness is None else _SECOND,
    }
    body = fill(asset("pairs.html"), fields)
    classes = "long" if len(findings.pairs[0]) > _MOST_PRINTED else ""
    parties, differs = (
        ("parties", "Parties", _parties(findings)),
        ("differs", "What differs", _differs(findings)),
    )
    claims = ("reading", "How to read", reading)
    if len(findings.labels) == 2:
        return [parties, differs, privacy, claims, cards]
    return [
        parties,
        ("groups", "Groups", _groups(findings)),
        ("map", "Map", _map(findings)),
        ("heat", "Heat map", _heat(findings)),
        differs,
        privacy,
        claims,
        ("pairs", "All pairs", section("pairs", "All pairs", body, classes=classes)),
        cards,
    ]


def _parties(findings: Findings) -> str:
    """One line for each party, those that stand out first; and those that were left out."""
    order = _order(findings)
    lines = [_line(findings, row) for row in order]
    left_out = [_left_out_line(findings, party) for party in findings.left_out]
    is_long = len(lines) + len(left_out) > _MOST_LINES
    first = [*lines[:_FIRST_LINES], *left_out[:_FIRST_LEFT_OUT]] if is_long else [*lines, *left_out]
    rest = [*lines[_FIRST_LINES:], *left_out[_FIRST_LEFT_OUT:]] if is_long else []
    more = (
        f'<details><summary>{len(rest):,} more parties</summary><div class="scroll tall" tabindex="0" role="region" '
        f'aria-label="More parties, a table that scrolls">{_table(findings, rest)}</div></details>'
        if rest
        else ""
    )
    unsure = statements.inconclusive(findings)
    notes = [f"<p>{unsure}</p>"] if unsure else []
    is_unexplained = any(
        statements.reason(findings, row) == statements.NONE_FOUND for row in order
    ) or statements.is_unexplained(findings)
    if is_unexplained:
        notes.append(
            f'<p class="note">Where {statements.NONE_FOUND}: {UNEXPLAINED}, '
            "<code>armslength explain … --items codes.txt</code>.</p>"
        )
    table = f'<div class="scroll">{_table(findings, first)}</div>'
    return section("parties", "Party by party", table, more, *notes)


def _order(findings: Findings) -> list[int]:
    """The parties that stand out, then those that differ, are inconclusive, are alike; the farthest first."""
    outliers = findings.outliers
    if outliers is None:
        return list(range(len(findings.labels)))
    ranks = {word: rank for rank, word in enumerate((DIFFER, INCONCLUSIVE, SAME))}
    return sorted(
        outliers.ranking.tolist(),
        key=lambda row: (not outliers.is_outlier[row], ranks[outliers.verdict[row]]),
    )


def _table(findings: Findings, lines: list[str]) -> str:
    """A table of parties."""
    heads = ['<th scope="col">Party</th>']
    heads += ['<th scope="col" class="numeric">People</th>'] if findings.people is not None else []
    if findings.outliers is not None:
        is_distance = findings.likeness is None
        text = "Distance from the typical party" if is_distance else "Similarity to the typical party"
        heads += ['<th scope="col">Verdict</th>', f'<th scope="col" colspan="2">{text}</th>']
        heads += [] if is_distance else ['<th scope="col">What sets it apart</th>']
    caption = '<caption class="unseen">Each party against the typical party</caption>'
    kind = "data lines" if findings.outliers is not None else "data lines small"
    return f'<table class="{kind}">{caption}<thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _line(findings: Findings, row: int) -> str:
    """The line of a party."""
    outliers, people = findings.outliers, findings.people
    clear = ' <span class="state clear">IN CLEAR</span>' if findings.in_clear[row] else ""
    cells = [
        f'<th scope="row"><button type="button" class="party" data-chooses="{row}">{name(findings.labels[row])}</button>{clear}</th>'
    ]
    if people is not None:
        value, lower, _ = people[row]
        cells.append(
            f'<td class="numeric people">{value:,.0f} <span class="reach">± {value - lower:,.0f}</span></td>'
        )
    if outliers is not None:
        verdict = outliers.verdict[row]
        badges = f'<span class="state {verdict}">{statements.verdict_words(outliers, row)}</span>'
        badges += ' <span class="state outlier">outlier</span>' if outliers.is_outlier[row] else ""
        value, lower, upper = (outliers.distance if outliers.similarity is None else outliers.similarity)[row]
        bar = interval_bar((value, lower, upper), _axis(outliers), is_sure=verdict != INCONCLUSIVE)
        cells += [
            f'<td class="verdicts">{badges}</td>',
            f'<td class="bar-cell">{bar}</td><td class="interval">{outliers.number_words(row)}</td>',
        ]
        cells += [] if findings.likeness is None else [f'<td class="why">{_reason(findings, row)}</td>']
    return f'<tr data-party="{row}">{"".join(cells)}</tr>'


def _axis(outliers: Outliers) -> tuple[float, float]:
    """The ends of the axis of what is typical."""
    if outliers.similarity is not None:
        return axis_of_similarities(outliers.similarity[:, 1])
    return 0.0, float(outliers.distance[:, 0].max()) * 1.25 or 1.0


def _left_out_line(findings: Findings, party: LeftOut) -> str:
    """The line of a party that has too few people."""
    value, _, upper = party.people
    columns = 4 if findings.outliers is not None else 1
    return (
        f'<tr class="left-out"><th scope="row">{name(party.label)}</th><td class="numeric people">about {value:,.0f} '
        f'<span class="reach">± {upper - value:,.0f}</span></td><td class="verdicts" colspan="{columns}">'
        '<span class="state few">too few people</span> left out of everything below</td></tr>'
    )


def _reason(findings: Findings, row: int) -> str:
    """What sets a party apart from the typical party, as a link that chooses the two below."""
    text, reasons = statements.reason(findings, row), findings.reasons
    if not text or not isinstance(reasons, Reasons) or not reasons.has_typical:
        return text
    return f'<a class="reasons" href="#differs" data-pair="{len(findings.labels)} {row}">{text}</a>'


def _groups(findings: Findings) -> str:
    """Which parties belong together."""
    heading, groups = "Which parties belong together", findings.groups
    if not groups:
        text = f"No two parties were found to differ, at {percent(findings.level)} for all pairs together. So all are one group."
        return section("groups", heading, f"<p>{text}</p>")
    together = [rows for rows in groups if len(rows) > 1]
    alone = [row for rows in groups if len(rows) == 1 for row in rows]
    items = [
        _group(findings, _LETTERS[number], rows, statements.apart(findings, rows))
        for number, rows in enumerate(together[:_MOST_GROUPS])
    ]
    if len(together) > _MOST_GROUPS:
        alone_text = f"and {plural(len(together) - _MOST_GROUPS, 'more group')}"
        items.append(f'<li><span class="letter"></span><span>{alone_text}</span></li>')
    if alone:
        items.append(_group(findings, "–", alone, statements.apart(findings, alone, are_alone=True)))
    if not together:
        return section("groups", heading, "<p>There are no groups: all parties differ from each other.</p>")
    lead = f"In a group no two parties differ, at {percent(findings.level)} for all pairs together; parties of two groups can be alike."
    return section("groups", heading, f"<p>{lead}</p>", f'<ul class="groups">{"".join(items)}</ul>')


def _group(findings: Findings, letter: str, rows: list[int], words: str) -> str:
    names = some_names([findings.labels[row] for row in rows], _MOST_MEMBERS)
    note = f'<span class="reasons">{words}</span>' if words else ""
    return f'<li><span class="letter">{letter}</span><span>{names}{note}</span></li>'


def _heat(findings: Findings) -> str:
    low, high = findings.color_range
    beyond = float(findings.farness[findings.pairs].max()) > high
    if findings.likeness is None:
        near = f"near: {findings.style.text(low)}"
        far = f"far: {findings.style.text(high)}{' or more' if beyond else ''}"
    else:
        near, far = f"similarity {1 - low:.2f}", f"{1 - high:.2f}{' or less' if beyond else ''}"
    stops = "".join(f'<stop offset="{12.5 * step}%" class="ramp-{step}"/>' for step in range(9))
    still = still_heat(findings)
    can_choose = isinstance(findings.reasons, Reasons) and findings.reasons.can_choose
    fields = {
        "prints": " prints-still" if still else "",
        "still": still or _NO_HEAT,
        "hint": f"{_HEAT_HINT}{_CLICK_HINT if can_choose else ''}",
        "stops": stops,
        "near": near,
        "far": far,
        "hatching": HATCHING.replace("hatching", "hatched"),
    }
    return section("heat", "Every pair at a glance", fill(asset("heat.html"), fields))


def _map(findings: Findings) -> str:
    plane, drawing, heading = findings.plane, map_svg(findings), "The parties as a map"
    if plane is None or not drawing:
        return section("map", heading, "<p>There is no map: the noise is larger than all distances.</p>")
    negative = f" Negative eigenvalues, which true distances do not have, add up to {share_text(plane.against)} of the others and are left out."
    overlapping = "Names that would overlap appear under the pointer."
    many = "With so many parties, names appear under the pointer, and names and ellipses for the highlighted party."
    fields = {
        "drawing": drawing,
        "axes": "The plane shows" if plane.axes == 2 else "There is only one axis. It shows",
        "share": share_text(plane.share),
        "negative": negative if plane.against > 0 else "",
        "level": percent(findings.level),
        "totals": " The numbers of people are taken as exact." if findings.about != COUNTS else "",
        "names": many if len(findings.labels) > MOST_LABELS_ON_MAP else overlapping,
    }
    return section("map", heading, fill(asset("map.html"), fields))


def _differs(findings: Findings) -> str:
    """What sets two sides apart, as bars that the script draws; one can choose the sides."""
    heading, reasons = "What sets them apart", findings.reasons
    if not isinstance(reasons, Reasons):
        text = f"These rows cannot say what sets parties apart: {escaped(reasons)}."
        return section("differs", heading, f"<p>{_NO_MARGINS if reasons == NO_MARGINS else text}</p>")
    limit = _limit_note(findings, reasons) + _without_note(findings, reasons)
    if not reasons.can_choose:
        too_many = "There are too many item groups to choose two sides here: <code>armslength explain</code> compares any two."
        return section("differs", heading, f"<p>{too_many}</p>", limit)
    options = "".join(
        f'<option value="{row}">{escaped(label)}</option>' for row, label in enumerate(findings.labels)
    )
    typical = f'<option value="{len(findings.labels)}">the typical party</option>'
    fields = {
        "first": f"{typical if reasons.has_typical else ''}{options}",
        "second": options,
        "limit": limit,
        "level": percent(findings.level),
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


def _without_note(findings: Findings, reasons: Reasons) -> str:
    """Which parties have no part in the reasons."""
    labels = [label for row, label in enumerate(findings.labels) if row not in reasons.known]
    if not labels:
        return ""
    names = some_names(labels, _MOST_NAMES)
    return f'<p class="note">Without {names}: released with other item groups, or without any.</p>'


def _differs_note(findings: Findings, reasons: Reasons) -> str:
    """For what the intervals hold together."""
    family = "for all item groups together"
    if reasons.choices > 1:
        family = f"for all item groups of all {reasons.choices:,} pairs together, so wider than those of one pair alone"
    elif len(findings.labels) > 2:
        family = "for all item groups of one pair together; of many pairs that you look at, some miss"
    typical = (
        f"; against the typical party, of all {len(findings.labels):,} parties together"
        if reasons.has_typical
        else ""
    )
    return (
        f"Points: how many more or fewer of every 100 people have an item of the group. Intervals hold at {percent(findings.level)}, "
        f"{family}{typical}. Dashed: inconclusive, a difference may be there or not."
    )
