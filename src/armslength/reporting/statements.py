"""The findings in words: what stands out, how sure it is, and what is not claimed. All texts are escaped markup."""

import math

from armslength.answers.explain import UNEXPLAINED, Explanation
from armslength.answers.outliers import Outliers
from armslength.answers.pairs import DIFFER, INCONCLUSIVE, QUESTION_TEXTS, SAME
from armslength.errors import plural
from armslength.estimates.questions import COUNTS, PEOPLE, POPULATIONS
from armslength.reporting.findings import Findings, Reasons
from armslength.reporting.markup import escaped, name, some_names
from armslength.results import percent
from armslength.sketches.misfits import listed
from armslength.sketches.sketches import Sketches

NONE_FOUND = "no item group was found to differ"
_ABOUT = {
    POPULATIONS: (
        "<strong>It is about populations, and assumes samples</strong>: as if each party’s people were an independent random sample of "
        "people like them. Families, clinics and repeat visits make chance larger than that. Nothing is said about the people counted."
    ),
    PEOPLE: (
        "<strong>It is about the people counted.</strong> Two samples of one population differ by chance; here that is a real difference."
    ),
    COUNTS: (
        "<strong>Size counts.</strong> The distance is between totals as they were released: a large party is far from a small one, even "
        "if both have the same profile."
    ),
}
_FOUND = ("more", "fewer", NONE_FOUND)  # how reasons begin, where they are not refusals
_REFUSED = "too few people to say"  # the beginning of a refusal
_MOST_NAMES = 3
# Up to so many pairs, docs/estimates.md has measured over how many items a difference must spread.
_MEASURED_PAIRS = 276


def finding(findings: Findings) -> str:
    """The main finding in one sentence."""
    labels, count = findings.labels, len(findings.labels)
    if count == 1:
        return f"There is one party, {name(labels[0])}, and nothing to compare it with."
    if count == 2:
        return _of_two(findings)
    rows = findings.outlier_rows or _unlike(findings)
    return _of_some(findings, rows) if rows else _of_pairs(findings)


def _unlike(findings: Findings) -> list[int]:
    """The parties that differ from the typical party, if they are a minority."""
    outliers = findings.outliers
    if outliers is None:
        return []
    rows = [row for row in outliers.ranking.tolist() if outliers.verdict[row] == DIFFER]
    return rows if 2 * len(rows) < len(findings.labels) else []


def _of_pairs(findings: Findings) -> str:
    """What is said of three or more parties of which none stands out."""
    count, total = len(findings.labels), len(findings.pairs[0])
    differ, alike = findings.count(DIFFER), findings.count(SAME)
    if alike == total:
        return f"All {count:,} parties are alike."
    if not differ:
        some = f"{alike:,} of {total:,} pairs are alike" if alike else "none were found to be alike"
        return f"No two of the {count:,} parties were found to differ; {some}."
    if differ == total:
        return f"All {count:,} parties differ from each other{_farthest(findings)}."
    alone = "" if findings.outliers is None else "No party stands out, but "
    return f"{alone}{differ:,} of {total:,} pairs differ{_farthest(findings)}."


def _farthest(findings: Findings) -> str:
    """The pair that is surely farthest apart."""
    if findings.farthest_pair is None:
        return ""
    i, j = findings.farthest_pair
    names = f"{name(findings.labels[i])} and {name(findings.labels[j])}"
    return f"; most different are {names} ({findings.number_words(i, j)})"


def _of_two(findings: Findings) -> str:
    """What is said of two parties."""
    first, second = map(name, findings.labels)
    number, verdict = findings.number_words(0, 1), str(findings.verdict[0, 1])
    if verdict == INCONCLUSIVE:
        return f"Whether {first} and {second} differ is inconclusive: {number}."
    if verdict == SAME:
        detail = ", not identical" if findings.lower[0, 1] > 0 else ""
        return f"{first} and {second} are alike: {number}{detail}."
    answer = findings.reasons.pair if isinstance(findings.reasons, Reasons) else None
    reasons = ""
    if isinstance(answer, str):
        why = answer.split(";")[0].removeprefix(f"{_REFUSED}: ")
        reasons = f"; item groups are {INCONCLUSIVE}: {escaped(why)}"
    elif answer is not None:
        found = escaped(", ".join(answer.reasons()))
        reasons = f"; {second} has {found}" if found else f"; {NONE_FOUND}"
    return f"{first} and {second} differ: {number}{reasons}."


def _of_some(findings: Findings, rows: list[int]) -> str:
    """Who stands out, or else differs from the typical party, in what, and what was found among the others."""
    labels, number = findings.labels, ""
    others = [row for row in range(len(labels)) if row not in rows]
    text, is_one = some_names([labels[row] for row in rows], _MOST_NAMES), len(rows) == 1
    if is_one and findings.outliers is not None:
        number = findings.outliers.number_words(rows[0])
    if rows == findings.outlier_rows:
        text += (
            f" {'stands' if is_one else 'stand'} out from the other {plural(len(others), 'party', 'parties')}"
        )
        kind = "distance from" if findings.likeness is None else "similarity to"
        number = f"{kind} the typical party {number}"
    else:
        text += f" {'differs' if is_one else 'differ'} from the typical party"
        number = f"{'distance' if findings.likeness is None else 'similarity'} {number}"
    if is_one:
        words = reason(findings, rows[0])
        text += f": {number}{f'; {words}' if words.startswith(_FOUND) else ''}"
    elif len(rows) < _MOST_NAMES:
        reasons = [(name(labels[row]), reason(findings, row)) for row in rows]
        whose = [f"{label}, {words}" for label, words in reasons if words.startswith(_FOUND)]
        text += f": {'; '.join(whose)}" if whose else ""
    also = [row for row in _unlike(findings) if row not in rows]
    if 0 < len(also) <= _MOST_NAMES:
        verb = "differs" if len(also) == 1 else "differ"
        text += (
            f"; {some_names([labels[row] for row in also], _MOST_NAMES)} {verb} from the typical party, too"
        )
    differ = findings.is_verdict(DIFFER)
    if len(others) > 1 and not any(differ[i, j] for i in others for j in others if i != j):
        return f"{text}; no two of the others were found to differ."
    return f"{text}; {findings.count(DIFFER):,} of {len(findings.pairs[0]):,} pairs differ."


def reason(findings: Findings, row: int) -> str:
    """What sets a party apart from the typical party, in short; empty where it is not asked."""
    words = findings.outliers.reasons[row] if findings.outliers else ""
    if UNEXPLAINED in words:
        return NONE_FOUND
    if words.startswith(_REFUSED):  # the line says which party it is
        words = words.replace(_REFUSED, INCONCLUSIVE).split(" between ")[0]
    return escaped(words)


def verdict_words(outliers: Outliers, row: int) -> str:
    """The verdict on a party and the typical party."""
    verdict = outliers.verdict[row]
    detail = ", not identical" if verdict == SAME and outliers.distance[row, 1] > 0 else ""
    return f"{'differs' if verdict == DIFFER else verdict}{detail}"


def is_unexplained(findings: Findings) -> bool:
    """Whether there are two parties that differ, and in no item group."""
    answer = findings.reasons.pair if isinstance(findings.reasons, Reasons) else None
    return isinstance(answer, Explanation) and not answer.found and str(findings.verdict[0, 1]) == DIFFER


def asked(findings: Findings) -> str:
    """The question, and what the level is for."""
    total = len(findings.pairs[0])
    scope = "each pair by itself" if findings.each else f"all {total:,} pairs together"
    return f"{QUESTION_TEXTS[findings.about]} {percent(findings.level)} confidence{f', {scope}' if total > 1 else ''}."


def inconclusive(findings: Findings) -> str:
    """How many pairs are inconclusive, who is in all of them, and what would settle them; empty if there are none."""
    count = findings.count(INCONCLUSIVE)
    if not count or len(findings.labels) == 2:
        return _remedy(findings).strip() if count else ""
    one = findings.in_all_inconclusive
    common = f"; all of them with {name(findings.labels[one])}" if one is not None else ""
    of = f"{plural(count, 'pair is', 'pairs are')}"
    return f"{of} inconclusive{common}.{_remedy(findings)}"


def _remedy(findings: Findings) -> str:
    """Why pairs are inconclusive, and what would settle most of them."""
    remedy = findings.remedy
    if remedy is None:
        return ""
    cause = "chance, as the samples are small" if remedy.noise_share < 0.5 else "the privacy noise"
    offers = [
        f"{remedy.epsilon:g} times the ε" if remedy.epsilon else "",
        f"{remedy.people:g} times the people" if remedy.people else "",
    ]
    would = " or ".join(filter(None, offers))
    if not would:
        return f" Most of that is {cause}. They may be alike: neither ten times the ε nor ten times the people would settle most of them."
    return (
        f" Most of that is {cause}. About {would} would settle most of them, if they differ as they seem to."
    )


def apart(findings: Findings, rows: list[int], *, are_alone: bool = False) -> str:
    """How the parties of a group, or those in no group, stand to the others, and what a group's parties have in common."""
    tree, reasons = findings.clusters, findings.reasons
    words = []
    if tree is not None and tree.differ.any() and tree.is_apart(rows):
        if not are_alone:
            words.append("each differs from every party outside")
        elif tree.are_apart(rows):
            words.append(
                "each differs from every other party" if len(rows) > 1 else "differs from every other party"
            )
    shared = reasons.shared(rows) if isinstance(reasons, Reasons) and not are_alone else []
    words += [f"each has {escaped(', '.join(shared))} than the typical party"] if shared else []
    return "; ".join(words)


def claims(findings: Findings, sketches: Sketches) -> list[str]:
    """How to read the page, and what it does not claim."""
    width, level = sketches.transform.sketch_dim, percent(findings.level)
    items = math.ceil((4 if findings.each else 8) * math.sqrt(width))
    many_pairs = not findings.each and len(findings.pairs[0]) > _MEASURED_PAIRS
    limit = findings.alike
    alike = "is not asked for without a limit"
    if limit is not None:
        alike = f"the whole interval of the {'distance is at most' if findings.likeness is None else 'similarity is at least'} {limit:g}"
    texts = [
        (
            f"<strong>Every pair has one verdict.</strong> <em>Differ</em>: a difference was found. <em>Alike</em>: {alike}, even where they are "
            "not identical. <em>Inconclusive</em>: neither was found. That is not the same as alike."
        ),
        _ABOUT[findings.about],
        "<strong>Similarity</strong> is 1 for the same profile and 0 for profiles without a common item. A profile says how people are spread "
        "over items, whatever the size. Numbers of people have noise: ± holds for each at 95 %."
        if findings.likeness is not None
        else "",
        f"<strong>The typical party</strong> is the average of all others, none weighing more than the median party. A party <em>stands out</em> "
        f"(an outlier) if it is found to be more than {findings.outliers.factor:g} times as far from it as is usual."
        if findings.outliers is not None
        else "",
        f"<strong>{level} is for all of a kind together</strong>: all verdicts of pairs; all that is said of parties and the typical party; all "
        "item groups of parties against the typical party; all item groups of pairs."
        if not findings.each and len(findings.labels) > 2
        else f"<strong>Each pair has its own level.</strong> About {100 * (1 - findings.level):.3g} in 100 miss. What is said of the typical "
        "party and of groups holds for all together."
        if findings.each
        else "",
        "<strong>Nothing about a single person</strong>, and no cause: nothing here says why two parties differ.",
        (
            f"<strong>Intervals are for differences spread over many items</strong>: about {items:,} or more of similar size "
            f"for sketches of {width:,} numbers{', and more for so many pairs' if many_pairs else ''}. They include the noise "
            "and the public random projection, but no error in the data, nor what its limits leave out."
        ),
    ]
    different = listed(sketches.misfits)
    if different:
        texts.append(
            f"<strong>Not all were released with the same settings</strong>: {escaped('; '.join(different))}."
        )
    return list(filter(None, texts))
