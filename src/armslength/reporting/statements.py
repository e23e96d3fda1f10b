"""The findings in words: what the distances show, how sure it is, and what is not claimed. All texts are escaped markup."""

import math
from typing import NamedTuple

from armslength.answers.outliers import Outliers
from armslength.errors import plural
from armslength.estimates.shapes import ALIKE
from armslength.reporting.findings import (
    MOST_GROUPS,
    MOST_OUTLIERS,
    MOST_PAIRS_LISTED,
    TYPICAL,
    Findings,
    Reasons,
    Rows,
)
from armslength.reporting.markup import escaped, level_text, name, percent, some_names
from armslength.results import similarity_text
from armslength.sketches.misfits import listed
from armslength.sketches.sketches import Sketches

_SIZES = (
    "<strong>Size counts.</strong> A large party is far from a small one, even if both have the same mix: "
    "distances are between totals as they were released."
)
_COUNTS = (
    "<strong>It is about the people counted.</strong> Every party was divided by its released total, so only the mix counts. "
    "Two samples of one population differ by chance; that difference is real here, and may be shown."
)
_POPULATIONS = (
    "<strong>It is about populations, and assumes samples.</strong> As if each party’s people were an independent random sample of "
    "people like them. Families, clinics and repeat visitors make chance larger than that. Nothing is said about the people counted."
)
_MOST_MEMBERS, _MOST_LEFT_OUT = 12, 5
_MEASURED_PAIRS = (
    276  # up to so many pairs, docs/estimates.md has measured over how many items a difference must spread
)


class Statement(NamedTuple):
    """A finding in words, and whether the intervals leave no doubt about it."""

    is_sure: bool
    heading: str
    text: str


def lead(findings: Findings) -> str:
    """The first sentences of the page."""
    count = len(findings.labels)
    if count == 1:
        return (
            f"These sketches hold one party, {name(findings.labels[0])}: there is nothing to compare it with. "
            "Add another party’s sketches to get distances."
        )
    source = (
        "Estimated from sketches, not all of them private."
        if any(findings.in_clear)
        else "Estimated from differentially private sketches alone."
    )
    question = {
        ("size", False): f"How far apart are {count:,} populations, size and mix together?",
        ("shape", False): f"How far apart are the mixes of the people counted by {count:,} parties?",
        ("shape", True): f"Do the populations of {count:,} parties differ in their mix, beyond chance?",
    }[findings.by, findings.beyond_chance]
    left_out = ""
    if findings.left_out:
        names = some_names(findings.left_out, _MOST_LEFT_OUT)
        left_out = f" Left out, because they have too few people to say anything: {names}."
    return f"<strong>{question} {_verdict(findings)}</strong> {source}{left_out}"


def _verdict(findings: Findings) -> str:
    """How many pairs differ, are alike, or are open, in one or two sentences."""
    resolved, total = findings.resolved_pairs, len(findings.pairs[0])
    if total == 1:
        if resolved:
            return "The two differ."
        return "The two are alike." if findings.is_alike[0, 1] else "That cannot be said."
    if resolved == total:
        return f"All {total:,} pairs differ."
    alike = int((findings.is_alike & ~findings.resolved)[findings.pairs].sum())
    parts = [
        f"{resolved:,} of {total:,} pairs differ"
        if resolved
        else f"None of the {total:,} pairs is told apart"
    ]
    parts += [f"{alike:,} {'is' if alike == 1 else 'are'} alike (at least {ALIKE:g})"] if alike else []
    left = total - resolved - alike
    parts += [f"{left:,} {'is' if left == 1 else 'are'} too uncertain to say"] if left else []
    return f"{'; '.join(parts)}."


def statements(findings: Findings) -> list[Statement]:
    """All findings, for two or more parties."""
    if len(findings.labels) == 2:
        text = f"{_pair(findings, 0, 1)}.{_reasons(findings, (0,), (1,))}"
        distance = Statement(bool(findings.resolved[0, 1]), "The two parties", text)
        return [distance, _resolution(findings)]
    return [
        _groups(findings),
        _extremes(findings, closest=False),
        *_outliers(findings),
        _extremes(findings, closest=True),
        _resolution(findings),
    ]


def limits(findings: Findings, sketches: Sketches) -> list[str]:
    """What the page does not claim."""
    width = sketches.transform.sketch_dim
    items = math.ceil((8 if findings.simultaneous else 4) * math.sqrt(width))
    many_pairs = findings.simultaneous and len(findings.pairs[0]) > _MEASURED_PAIRS
    claims = [
        "<strong>Not resolved is not the same as alike.</strong> Such a pair may be equal or not.",
        _SIZES if findings.by == "size" else _POPULATIONS if findings.beyond_chance else _COUNTS,
        "<strong>Nothing about a single person</strong>, and no cause: nothing here says why two populations differ.",
        (
            f"<strong>Intervals are for differences spread over many items</strong>: about {items:,} or more of similar size "
            f"for sketches of {width:,} numbers{', and more for so many pairs' if many_pairs else ''}. They include the noise "
            "and the public random projection, but no error in the data, nor what its limits leave out."
        ),
    ]
    different = listed(sketches.misfits)
    if different:
        claims.append(
            f"<strong>Not all were released with the same settings</strong>: {escaped('; '.join(different))}."
        )
    if not findings.simultaneous:
        misses = f"{100 * (1 - findings.level):.3g}"
        claims.append(f"<strong>Each interval holds by itself.</strong> About {misses} in 100 miss.")
    return claims


def joint_text(findings: Findings) -> str:
    """Whether the level is for all intervals or for each."""
    return "all intervals together" if findings.simultaneous else "each interval by itself"


def _resolution(findings: Findings) -> Statement:
    resolved, total = findings.resolved_pairs, len(findings.pairs[0])
    text = (
        f"{plural(resolved, 'pair')} of {total:,} ({percent(resolved / total)}) surely "
        f"{'differs' if resolved == 1 else 'differ'}{' beyond chance' if findings.beyond_chance else ''}, "
        f"at {level_text(findings.level)}, {joint_text(findings)}."
    )
    is_open = ~(findings.resolved | findings.is_alike)
    count = int(is_open[findings.pairs].sum())
    if count:
        text += f" {plural(count, 'pair is', 'pairs are')} <em>too uncertain to say</em>. {_remedy(findings)}"
    return Statement(count == 0, "What could not be decided" if count else "How many differ", text)


def _remedy(findings: Findings) -> str:
    """Why pairs are open, and what would settle most of them."""
    remedy = findings.remedy
    if remedy is None:
        return "That is a sign of noise, not of being alike."
    cause = "chance: the samples are small" if remedy.noise_share < 0.5 else "the privacy noise"
    offers = [
        f"{remedy.epsilon:g} times the ε" if remedy.epsilon else "",
        f"{remedy.people:g} times the people" if remedy.people else "",
    ]
    would = " or ".join(filter(None, offers))
    if not would:
        return f"Most of the uncertainty is {cause}. They may truly be alike: neither ten times the ε nor ten times the people would tell most of them apart."
    return f"Most of the uncertainty is {cause}. About {would} would settle most of them, if they differ as they seem to."


def _extremes(findings: Findings, *, closest: bool) -> Statement:
    """The pairs whose intervals end closest to 0, or farthest from it."""
    pairs = findings.surest_pairs(MOST_PAIRS_LISTED, is_closest=closest)
    heading = "Most alike" if closest else "Clearest differences"
    if not pairs:
        reason = "No two parties are surely alike." if closest else "Not known: no pair is told apart."
        return Statement(False, heading, reason)
    lines = ""
    for i, j in pairs:
        state = ", surely alike" if findings.is_alike[i, j] else ", not told apart"
        lines += f"<li>{_pair(findings, i, j)}{state if closest else _reasons(findings, (i,), (j,))}</li>"
    return Statement(True, heading, f'</p><ol class="pairs">{lines}</ol><p>')


def _pair(findings: Findings, i: int, j: int) -> str:
    names = f"{name(findings.labels[i])} and {name(findings.labels[j])}"
    style = findings.style
    if findings.likeness is None:
        ends = style.interval(findings.lower[i, j], findings.upper[i, j])
        return f"{names}: distance {style.text(findings.distance[i, j])} ({ends})"
    value, lower, upper = (max(0.0, float(cosines[i, j])) for cosines in findings.likeness)
    return f"{names}: similarity {similarity_text(value, lower, upper)}"


def _groups(findings: Findings) -> Statement:
    """The groups in which no two parties are found to differ."""
    tree, groups, count = findings.clusters, findings.groups, len(findings.labels)
    if tree is None or not tree.differ.any():
        return Statement(
            False, "Groups", "No two parties are found to differ. That does not show that they are alike."
        )
    if not groups:
        return Statement(True, "Groups", "There are none: all parties differ from each other.")
    is_mirrored = len(groups) == 2 and sum(map(len, groups)) == count  # each is all others of the other
    lines = []
    for group in groups[:MOST_GROUPS]:
        names = some_names([findings.labels[row] for row in group], _MOST_MEMBERS)
        apart = "; each differs from every party outside" if tree.is_apart(group) else ""
        reasons = "" if is_mirrored and group == groups[0] else _reasons(findings, TYPICAL, group)
        lines.append(f"<li>{names}{apart}{reasons}</li>")
    more = f"<p>and {len(groups) - MOST_GROUPS} more.</p>" if len(groups) > MOST_GROUPS else ""
    single = count - sum(map(len, groups))
    alone = f" {plural(single, 'party is', 'parties are')} in no group." if single else ""
    against = (
        f" Below {'the second' if is_mirrored else 'each'}: what sets it apart from the typical party outside it."
        if any('class="reasons"' in line for line in lines)
        else ""
    )
    text = (
        f"{plural(len(groups), 'group')} in which no two parties are found to differ, at {level_text(findings.level)}, all pairs together. "
        f"Parties of two groups can be alike, too, unless it says that they differ.{alone}{against}</p>"
        f'<ol class="pairs" type="A">{"".join(lines)}</ol>{more}<p>'
    )
    return Statement(True, "Groups", text)


def _outliers(findings: Findings) -> list[Statement]:
    """The parties that are unlike the typical party, and what sets them apart."""
    outliers = findings.outliers
    if outliers is None:
        return []
    heading, rows = "Unlike the others", findings.outlier_rows
    if not rows:
        usual = (
            f"{outliers.factor:g} times as far from the typical party, the average of the others, as is usual"
        )
        return [Statement(False, heading, f"No party is surely more than {usual}.")]
    lines = "".join(
        f"<li>{name(findings.labels[row])}: {escaped(_how_far(outliers, row))}{_reasons(findings, TYPICAL, (row,))}</li>"
        for row in rows[:MOST_OUTLIERS]
    )
    more = f"<p>and {len(rows) - MOST_OUTLIERS} more.</p>" if len(rows) > MOST_OUTLIERS else ""
    text = (
        "Each party is compared with the typical party, the average of the others, in which none weighs more than the median party."
        f'</p><ul class="pairs">{lines}</ul>{more}<p>'
    )
    return [Statement(True, heading, text)]


def _how_far(outliers: Outliers, row: int) -> str:
    """How far an outlier is from the typical party."""
    similar = outliers.similarity_words(row)
    return f"at least {outliers.times_usual(row):.2g} times as far from it as is usual{f'; similarity {similar}' if similar else ''}"


def _reasons(findings: Findings, first: Rows, second: Rows) -> str:
    """What sets the second side apart from the first, or from the typical party, as a line that chooses the two below.

    Empty where no two sides have margins in common.
    """
    reasons = findings.reasons
    if not isinstance(reasons, Reasons) or (first, second) not in reasons.explanations:
        return ""
    answer = reasons.explanations[first, second]
    if isinstance(answer, str):
        why = answer.split(":")[0]
        text = f"{why[0].upper()}{why[1:]}."
    elif answer.found:
        text = ", ".join(answer.reasons())
        text = f"{findings.labels[second[0]]} has {text}" if first else text
    else:
        among = f", among all {reasons.choices:,} choices of this page" if reasons.choices > 1 else ""
        text = f"No item group surely differs{among}."
    text = escaped(text)
    if isinstance(answer, str) or reasons.sides is None or not (first or reasons.has_typical):
        return f'<span class="reasons">{text}</span>'
    number = findings.side_number(first) if first else findings.typical_number
    return (
        f'<a class="reasons" href="#differs" data-pair="{number} {findings.side_number(second)}">{text}</a>'
    )
