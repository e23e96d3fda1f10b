"""One offline HTML page about a set of sketches."""

import base64
import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.answers.explain import UNEXPLAINED
from armslength.answers.pairs import SAME, VERDICTS
from armslength.checks import short_repr
from armslength.errors import ParameterError
from armslength.files import atomic_write
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, Reasons, findings_of
from armslength.reporting.markup import asset, escaped, fill, scripts
from armslength.reporting.sections import all_sections
from armslength.sketches.sketches import Sketches
from armslength.version import __version__

_LONGEST_TITLE = 200
# JSON needs none of these, and without them no element can begin or end inside it.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 26 26'%3E%3Cg fill='none' stroke='%23407aa8' "
    "stroke-width='3'%3E%3Ccircle cx='7' cy='13' r='5'/%3E%3Ccircle cx='19' cy='13' r='5'/%3E%3C/g%3E%3C/svg%3E"
)


def report(  # noqa: PLR0913  # keywords that each choose one thing
    sketches: Sketches,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    about: str | None = None,
    level: float = 0.95,
    each: bool = False,
    alike: float | None = None,
    keep: bool = False,
    banner: str = "",
) -> None:
    """Writes one HTML file that opens offline: who stands out, a line for each party, groups, map, heat map, what sets parties apart.

    The page is computed from the sketches alone and costs no privacy. The same sketches give the same bytes. Its verdicts are those of
    `compare`, `outliers` and `cluster`.

    Guarantee: with probability at least `level`, all statements of one kind are true together: the verdicts of all pairs; what is said of
    each party and the typical party; the item groups in which parties differ from the typical party; the item groups in which any two
    parties differ. So it does not matter that the page, or its reader, chooses the most different parties by the same data.

    Args:
        sketches: One row for each party; at most 1,000.
        path: The file. It is written whole or not at all.
        title: The heading; None makes one.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: The confidence, such as 0.95.
        each: Whether the level is for each pair by itself. What is said of groups and of the typical party holds together in any case.
        alike: As for `compare`.
        keep: Whether to keep parties that have too few people to say anything.
        banner: A line of text on top of every screen, such as that it is a rehearsal.
    """
    heading = None if title is None else _checked_title(title)
    findings = findings_of(sketches, about=about, level=level, each=each, alike=alike, keep=keep)
    page = page_of(findings, sketches, heading, banner)
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))


def page_of(findings: Findings, sketches: Sketches, title: str | None, banner: str = "") -> str:
    """The page as text."""
    count = len(findings.labels)
    heading = escaped(title or f"{count:,} {'party' if count == 1 else 'parties compared'}")
    style = _style()
    script = f"(() => {{\n'use strict';\n{scripts()}}})();\n"
    sections = all_sections(findings, sketches)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return fill(
        asset("page.html"),
        {
            "policy": policy,
            "version": escaped(__version__),
            "title": heading,
            "icon": _ICON,
            "style": style,
            "contents": "".join(f'<a href="#{key}">{text}</a>' for key, text, _ in sections),
            "search": _search(findings),
            "alarm": (f'<div class="rehearsal">{escaped(banner)}</div>' if banner else "")
            + promise.alarm(sketches, sketches.labels),
            "heading": heading,
            "finding": statements.finding(findings),
            "asked": statements.asked(findings) if count > 1 else "",
            "facts": _facts(findings, sketches),
            "sections": "\n".join(markup for *_, markup in sections),
            "exception": " except where it says “in the clear”" if any(findings.in_clear) else "",
            "numbers": script_numbers(findings),
            "script": script,
        },
    )


def script_numbers(findings: Findings) -> str:
    """The numbers that the script of the page reads, as JSON."""
    pairs = findings.pairs
    low, high = findings.color_range
    numbers = [number[pairs] for number in findings.numbers]
    if findings.likeness is None:  # a negative squared estimate is passed on as the negative root of its size
        numbers[0] = (np.sign(findings.squared) * np.sqrt(np.abs(findings.squared)))[pairs]
    identical = findings.lower[pairs] <= 0
    letters = [
        word[0].upper() if word == SAME and not same else word[0]
        for word, same in zip(findings.verdict[pairs].tolist(), identical.tolist(), strict=True)
    ]
    return safe_json(
        {
            "labels": list(findings.labels),
            "lines": _party_words(findings),
            "verdicts": "".join(letters),
            "order": list(findings.clusters.order) if findings.clusters else [0],
            "clear": [number for number, is_clear in enumerate(findings.in_clear) if is_clear],
            "decimals": findings.style.decimals,
            "similar": findings.likeness is not None,
            "low": low,
            "high": high,
            "axis": findings.axis,
            "value": _base64_floats(numbers[0]),
            "lower": _base64_floats(numbers[1]),
            "upper": _base64_floats(numbers[2]),
            "distance": None if findings.likeness is None else _base64_floats(findings.distance[pairs]),
            "margins": _margins(findings),
        }
    )


def _party_words(findings: Findings) -> list[str]:
    """What is said of each party and the typical party."""
    outliers = findings.outliers
    if outliers is None:
        return [""] * len(findings.labels)
    kind = "distance" if outliers.similarity is None else "similarity"
    return [
        f"{statements.verdict_words(outliers, row)}, {kind} {outliers.number_words(row)}"
        for row in range(len(findings.labels))
    ]


def _margins(findings: Findings) -> dict[str, Any] | None:
    """The prevalences of all parties; None where there are none."""
    reasons = findings.reasons
    if not isinstance(reasons, Reasons) or not reasons.can_choose:
        return None
    return {
        "names": reasons.names,
        "sides": _base64_floats(reasons.sides),
        "missing": _base64_floats(reasons.missing),
        "first": findings.main_comparison,
        "choices": reasons.choices,
        "unexplained": UNEXPLAINED,
    }


def safe_json(document: Any) -> str:
    """JSON without any character that HTML could read as markup."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, harmless in _UNSAFE.items():
        text = text.replace(letter, harmless)
    return text


def _base64_floats(values: NDArray[np.float64]) -> str:
    """The numbers as little-endian float32."""
    with np.errstate(over="ignore", under="ignore"):
        floats = values.astype("<f4")
    # A lower end above 0 must not become 0.
    floats[(values > 0) & (floats == 0)] = np.finfo(np.float32).tiny
    return base64.b64encode(floats.tobytes()).decode("ascii")


def _checked_title(title: Any) -> str:
    if not isinstance(title, str) or not 1 <= len(title) <= _LONGEST_TITLE or not title.isprintable():
        raise ParameterError(
            f"title must be one printable line of 1 to {_LONGEST_TITLE} characters, got {short_repr(title)}",
            "title",
        )
    return title


def _facts(findings: Findings, sketches: Sketches) -> str:
    """What was compared, under which promise and protocol."""
    total = len(findings.pairs[0])
    in_clear = findings.in_clear
    left_out = (
        f"{len(findings.left_out):,} left out: too few people" if findings.left_out else "none left out"
    )
    counts = ", ".join(f"{findings.count(word):,} {word}" for word in VERDICTS if findings.count(word))
    facts = [
        ("Parties", f"{len(findings.labels):,}", left_out),
        ("Pairs", f"{total:,}", counts),
        (
            "Privacy of each release",
            "none" if all(in_clear) else promise.epsilons(sketches),
            "NOT ALL PRIVATE" if any(in_clear) else f"{promise.deltas(sketches)}",
        ),
        ("Protocol", promise.fingerprints(sketches), "ε per year, dates: not in the files"),
    ]
    if len(findings.labels) < 3:
        del facts[1]
    cells = "".join(
        f'<div><dt>{label}</dt><dd><span class="number">{value}</span><span class="under">{note}</span></dd></div>'
        for label, value, note in facts
    )
    return f'<dl class="figures">{cells}</dl>'


def _search(findings: Findings) -> str:
    """The box that highlights a party; none for one or two."""
    if len(findings.labels) < 3:
        return ""
    options = "".join(f'<option value="{escaped(label)}"></option>' for label in findings.labels)
    return (
        '<label><span class="unseen">Highlight a party</span><input type="search" id="search" list="names" '
        f'placeholder="Highlight a party" autocomplete="off"></label><datalist id="names">{options}</datalist>'
    )


def _style() -> str:
    dark = asset("dark.css")
    themes = (
        f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{\n{dark}}} }}\n'
    )
    return asset("tokens.css") + themes + asset("layout.css") + asset("drawings.css") + asset("print.css")


def _digest(text: str) -> str:
    """The hash that makes the page's policy allow this script or style and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
