"""The findings in words: what the distances show, how sure it is, and what is not claimed. All texts are escaped markup."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.errors import plural
from armslength.reporting.findings import Findings
from armslength.reporting.markup import level_text, name, percent
from armslength.sketches.sketches import Sketches

_SIZES = (
    "<strong>Size counts.</strong> A large party is far from a small one, even if both have the same mix: "
    "distances are between totals as they were released."
)
_SHAPES = (
    "<strong>Size does not count.</strong> Every party was divided by its released total, so only the mix is compared. "
    "The intervals include the error of the totals."
)
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
    resolved, total = findings.resolved_pairs, len(findings.pairs[0])
    if total == 1:
        result = "The two are told apart." if resolved else "The noise hides whether the two differ."
    elif resolved == total:
        result = f"All {total:,} pairs are told apart."
    elif resolved == 0:
        result = f"None of the {total:,} pairs is told apart: the noise hides whether they differ."
    else:
        result = f"{resolved:,} of {total:,} pairs are told apart; for the others the noise hides whether they differ."
    shapes = "the shapes of " if findings.by == "shape" else ""
    source = (
        "Estimated from sketches, not all of them private."
        if any(findings.in_clear)
        else "Estimated from differentially private sketches; nobody shared a record."
    )
    return f"How far apart are {shapes}{count:,} populations? {source} {result}"


def statements(findings: Findings) -> list[Statement]:
    """All findings, for two or more parties."""
    if len(findings.labels) == 2:
        distance = Statement(bool(findings.resolved[0, 1]), "The distance", f"{_pair(findings, 0, 1)}.")
        return [_resolution(findings), distance]
    return [
        _resolution(findings),
        _extreme(findings, closest=True),
        _extreme(findings, closest=False),
        _groups(findings),
        *_outliers(findings),
    ]


def limits(findings: Findings, sketches: Sketches) -> list[str]:
    """What the page does not claim."""
    width = sketches.transform.sketch_dim
    items = math.ceil((8 if findings.simultaneous else 4) * math.sqrt(width))
    many_pairs = findings.simultaneous and len(findings.pairs[0]) > _MEASURED_PAIRS
    claims = [
        "<strong>Not resolved is not the same as alike.</strong> Such a pair may be equal or not; the noise hides it.",
        _SIZES if findings.by == "size" else _SHAPES,
        "<strong>Nothing about a single person</strong>, and no cause: a distance does not say why two populations differ.",
        (
            f"<strong>Intervals are for differences spread over many items</strong>: about {items:,} or more of similar size "
            f"for sketches of {width:,} numbers{', and more for so many pairs' if many_pairs else ''}. They include the noise "
            "and the public random projection, but no error in the data."
        ),
    ]
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
        f"{plural(resolved, 'pair')} of {total:,} ({percent(resolved / total)}) {'has' if resolved == 1 else 'have'} "
        f"a distance that is surely above 0, at {level_text(findings.level)}, {joint_text(findings)}."
    )
    rest = total - resolved
    if rest:
        verb = "is" if rest == 1 else "are"
        text += f" {plural(rest, 'pair')} {verb} <em>not resolved</em>: a sign of noise, not of being alike."
    return Statement(rest == 0, "What can be told apart", text)


def _extreme(findings: Findings, *, closest: bool) -> Statement:
    """The closest or the farthest pair."""
    i, j, rivals = findings.extreme_pair(is_closest=closest)
    if rivals == 0:
        verdict = f"Surely the {'closest' if closest else 'farthest'} pair of all."
    else:
        verdict = f"{plural(rivals, 'other pair')} could be as {'close' if closest else 'far apart'}."
    if not findings.resolved[i, j]:
        verdict = f"The two are not told apart. {verdict}"
    heading = "Most alike" if closest else "Farthest apart"
    return Statement(rivals == 0, heading, f"{_pair(findings, i, j)}. {verdict}")


def _pair(findings: Findings, i: int, j: int) -> str:
    style = findings.style
    return (
        f"{name(findings.labels[i])} and {name(findings.labels[j])}: {style.text(findings.distance[i, j])} "
        f"(interval {style.interval(findings.lower[i, j], findings.upper[i, j])})"
    )


def _groups(findings: Findings) -> Statement:
    """The largest supported groups."""
    tree = findings.clusters
    if tree is None:
        return Statement(False, "Groups", "")
    cluster_of = tree.flat()
    groups = np.unique(cluster_of[tree.in_supported]).tolist()
    if not groups:
        return Statement(False, "Groups", "No group is supported: noise could have made the whole tree.")
    names = []
    for group in groups[:6]:
        members = np.array([leaf for leaf in tree.order if cluster_of[leaf] == group])
        if len(members) <= 4:
            names.append(", ".join(name(findings.labels[leaf]) for leaf in members))
        else:
            names.append(f"{len(members)} parties around {name(_central_label(findings, members))}")
    more = f" and {len(groups) - 6} more" if len(groups) > 6 else ""
    noun = "group of parties is" if len(groups) == 1 else "groups of parties are"
    text = f"{len(groups)} {noun} closer inside than to the others: {'; '.join(names)}{more}."
    single = int((~tree.in_supported).sum())
    if single:
        text += f" {plural(single, 'party is', 'parties are')} in no supported group."
    return Statement(single == 0, "Groups", text)


def _central_label(findings: Findings, members: NDArray[np.int64]) -> str:
    """The label of the member that is nearest to the others of its group."""
    sums = findings.distance[np.ix_(members, members)].sum(axis=1)
    return findings.labels[int(members[int(np.argmin(sums))])]


def _outliers(findings: Findings) -> list[Statement]:
    outliers, style = findings.outliers, findings.style
    if outliers is None:
        return []
    heading = "Unlike the rest"
    rows = np.flatnonzero(outliers.is_outlier)
    if not len(rows):
        usual = f"{outliers.factor:g} times as far from half of the others as is typical"
        return [Statement(False, heading, f"No party is surely more than {usual}.")]
    rows = rows[np.argsort(-outliers.score[rows], kind="stable")]
    names = ", ".join(name(findings.labels[int(row)]) for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    text = (
        f"{names}{more}: {'the first ' if len(rows) > 1 else ''}at least {style.text(float(outliers.lower[rows[0]]))} "
        f"from half of the others; {style.text(outliers.typical[0])} is typical."
    )
    return [Statement(True, heading, text)]
