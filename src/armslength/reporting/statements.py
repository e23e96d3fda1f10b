"""The findings in plain words: what was seen, how surely, and what is not claimed. All of it is markup, escaped."""

import math

import numpy as np

from armslength.errors import counted
from armslength.reporting.findings import Findings
from armslength.reporting.markup import level_text, name, percent
from armslength.sketches.sketches import Sketches

_SIZES = (
    "<strong>Size counts.</strong> Distances are between totals as they were released: a large party is far from a small one "
    "even if both have the same mix."
)
_SHAPES = (
    "<strong>Size does not count.</strong> Every party was divided by its released total, so that only its mix is compared; the "
    "error of the totals is in the intervals."
)
_MEASURED_PAIRS = 276  # for how many pairs docs/estimates.md has measured how spread a difference must be


def lead(findings: Findings) -> str:
    """The first sentence."""
    count = len(findings.labels)
    if count == 1:
        return (
            f"These sketches hold one party, {name(findings.labels[0])}: there is nothing to compare it with. "
            "Add another party’s sketches to get distances."
        )
    resolved, total = int(findings.resolved[findings.pairs].sum()), len(findings.pairs[0])
    if total == 1:
        told = "The two are told apart." if resolved else "The noise does not let the two be told apart."
    elif resolved == total:
        told = f"All {total:,} pairs are told apart."
    elif resolved == 0:
        told = f"None of the {total:,} pairs is told apart: the noise hides whether they differ."
    else:
        told = f"{resolved:,} of {total:,} pairs are told apart; for the others the noise hides whether they differ."
    clear = any(findings.in_clear)
    what = "the shapes of " if findings.by == "shape" else ""
    how = (
        "Estimated from sketches, not all of them private."
        if clear
        else "Estimated from differentially private sketches; nobody shared a record."
    )
    return f"How far apart are {what}{count:,} populations? {how} {told}"


def statements(findings: Findings) -> list[tuple[bool, str, str]]:
    """(whether it is sure, its heading, its text) of every finding."""
    said = [_resolution(findings)]
    if len(findings.labels) > 2:
        said += [_extreme(findings, closest=True), _extreme(findings, closest=False), _groups(findings)]
        said += _unlike(findings)
    else:
        said.append(_only_pair(findings))
    return said


def confidence(findings: Findings) -> str:
    """The level, and what it is for."""
    together = "all intervals together" if findings.simultaneous else "each interval by itself"
    return f"{level_text(findings.level)}, {together}"


def _resolution(findings: Findings) -> tuple[bool, str, str]:
    resolved, total = int(findings.resolved[findings.pairs].sum()), len(findings.pairs[0])
    text = (
        f"{counted(resolved, 'pair')} of {total:,} ({percent(resolved / total)}) "
        f"{'has' if resolved == 1 else 'have'} a distance that is surely above 0, at {confidence(findings)}."
    )
    if resolved < total:
        left = total - resolved
        text += (
            f" {counted(left, 'pair')} {'is' if left == 1 else 'are'} <em>not resolved</em>: that is no sign of being "
            "alike, only of noise."
        )
    return resolved == total, "What can be told apart", text


def _pair(findings: Findings, i: int, j: int) -> str:
    style = findings.style
    return (
        f"{name(findings.labels[i])} and {name(findings.labels[j])}: {style.text(findings.distance[i, j])} "
        f"(interval {style.interval(findings.lower[i, j], findings.upper[i, j])})"
    )


def _only_pair(findings: Findings) -> tuple[bool, str, str]:
    sure = bool(findings.resolved[0, 1])
    return sure, "The distance", f"{_pair(findings, 0, 1)}."


def _extreme(findings: Findings, *, closest: bool) -> tuple[bool, str, str]:
    i, j, rivals = findings.closest() if closest else findings.farthest()
    word = "close" if closest else "far apart"
    heading = "Most alike" if closest else "Farthest apart"
    if rivals == 0:
        judged = f"Surely the {'closest' if closest else 'farthest'} pair of all."
    else:
        judged = f"{counted(rivals, 'other pair')} could truly be as {word}."
    if not findings.resolved[i, j]:
        judged = f"The two are not told apart. {judged}"
    return rivals == 0, heading, f"{_pair(findings, i, j)}. {judged}"


def _groups(findings: Findings) -> tuple[bool, str, str]:
    """The largest groups that the error bars support."""
    heading = "Groups"
    if findings.clustering is None:
        return False, heading, ""
    clusters = findings.clustering.flat()
    sizes = np.bincount(clusters)
    sure = [int(cluster) for cluster in np.flatnonzero(sizes > 1)]
    if not sure:
        return False, heading, "No group is sure: the error bars leave the whole tree open."
    loose = int((sizes == 1).sum())
    shown = "; ".join(
        ", ".join(
            name(findings.labels[leaf]) for leaf in findings.clustering.order if clusters[leaf] == cluster
        )
        if sizes[cluster] <= 4
        else f"{sizes[cluster]} parties around {name(_middle(findings, clusters, cluster))}"
        for cluster in sure[:6]
    )
    more = f" and {len(sure) - 6} more" if len(sure) > 6 else ""
    rest = (
        f" {counted(loose, 'party', 'parties')} belong{'s' * (loose == 1)} to none surely." if loose else ""
    )
    noun = "group of parties is" if len(sure) == 1 else "groups of parties are"
    text = f"{len(sure)} {noun} closer inside than to anybody outside: {shown}{more}.{rest}"
    return loose == 0, heading, text


def _middle(findings: Findings, clusters: np.ndarray[tuple[int], np.dtype[np.int64]], cluster: int) -> str:
    """The label of the member that is nearest to the others of its group."""
    members = np.flatnonzero(clusters == cluster)
    inside = findings.distance[np.ix_(members, members)].sum(axis=1)
    return findings.labels[int(members[int(np.argmin(inside))])]


def _unlike(findings: Findings) -> list[tuple[bool, str, str]]:
    found = findings.outliers
    if found is None:
        return []
    called = np.flatnonzero(found.is_outlier)
    called = called[np.argsort(-found.score[called], kind="stable")]
    if not len(called):
        text = f"No party is surely more than {found.factor:g} times as far from half of the others as is typical."
        return [(False, "Unlike the rest", text)]
    style = findings.style
    listed = ", ".join(name(findings.labels[int(row)]) for row in called[:5])
    more = f" and {len(called) - 5} more" if len(called) > 5 else ""
    least = style.text(float(found.lower[called[0]]))
    text = (
        f"{listed}{more}: {'at least ' + least if len(called) == 1 else 'the first at least ' + least} from half of the others, where "
        f"{style.text(found.typical[0])} is typical."
    )
    return [(True, "Unlike the rest", text)]


def limits(findings: Findings, sketches: Sketches) -> list[str]:
    """What the page does not claim."""
    width = sketches.transform.sketch_dim
    more = (
        ", and more for so many pairs"
        if findings.simultaneous and len(findings.pairs[0]) > _MEASURED_PAIRS
        else ""
    )
    spread = math.ceil((8 if findings.simultaneous else 4) * math.sqrt(width))
    said = [
        "<strong>Not resolved is not the same as alike.</strong> Such a pair may be equal or not; the noise hides it.",
        _SIZES if findings.by == "size" else _SHAPES,
        "<strong>Nothing about a single person</strong>, and no cause: a distance does not say why two populations differ.",
        (
            f"<strong>Intervals are for differences spread over many items</strong>, about {spread:,} or more of similar size "
            f"for sketches of {width:,} numbers{more}. They count the noise and the public random projection, and no error in the data."
        ),
    ]
    if not findings.simultaneous:
        said.append(
            "<strong>Each interval holds by itself.</strong> Of many, some miss: about "
            f"{100 * (1 - findings.level):.3g} in 100."
        )
    return said
