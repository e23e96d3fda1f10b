"""One offline page about a set of sketches: everything computed here, drawn once, and written whole or not at all."""

import base64
import hashlib
import os
from importlib.resources import files
from typing import Any

from armslength.checks import shown
from armslength.errors import ParameterError, counted
from armslength.files import atomic_write
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, findings_of, numbers
from armslength.reporting.markup import escaped, filled, level_text, percent
from armslength.reporting.sections import all_sections, contents
from armslength.sketches.sketches import Sketches
from armslength.version import __version__

_SCRIPTS = (
    "1-numbers.js",
    "2-choice.js",
    "3-theme.js",
    "4-heat.js",
    "5-drawings.js",
    "6-tables.js",
    "7-one-party.js",
)
_LONGEST_TITLE = 200
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 26 26'%3E%3Cg fill='none' stroke='%23407aa8' "
    "stroke-width='3'%3E%3Ccircle cx='7' cy='13' r='5'/%3E%3Ccircle cx='19' cy='13' r='5'/%3E%3C/g%3E%3C/svg%3E"
)


def report(
    sketches: Sketches,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    level: float = 0.95,
    simultaneous: bool = True,
    by: str = "size",
) -> None:
    """Writes one HTML file that opens offline: summary, privacy statement, heat map, map, tree, tables, release cards.

    Everything on it is post-processing of the sketches, and costs no privacy. The same sketches give the same bytes.

    Args:
        sketches: One row for each party; at most 1,000.
        path: Where the file goes; whole or not at all.
        title: The heading; None makes one.
        level: The confidence of the intervals, such as 0.95.
        simultaneous: Whether all intervals hold together (Bonferroni), or each by itself. Statements that compare pairs with
            each other (which is nearest, which merges are supported) are judged together in any case.
        by: "size" for rows as they are, "shape" for rows divided by their totals, where the protocols paid for totals.
    """
    heading = None if title is None else _checked_title(title)
    findings = findings_of(sketches, level=level, simultaneous=simultaneous, by=by)
    page = page_of(findings, sketches, heading)
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))


def page_of(findings: Findings, sketches: Sketches, title: str | None) -> str:
    """The page as text."""
    count = len(findings.labels)
    heading = escaped(title or f"{count:,} {'party' if count == 1 else 'parties compared'}")
    style = _style()
    script = "(() => {\n'use strict';\n" + "".join(_asset(f"script/{each}") for each in _SCRIPTS) + "})();\n"
    links = "".join(f'<a href="#{key}">{text}</a>' for key, text in contents(findings))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return filled(
        _asset("page.html"),
        {
            "policy": policy,
            "version": escaped(__version__),
            "title": heading,
            "icon": _ICON,
            "style": style,
            "contents": links,
            "search": _search(findings),
            "alarm": promise.alarm(sketches, findings.labels),
            "heading": heading,
            "lead": statements.lead(findings),
            "figures": _figures(findings, sketches),
            "sections": all_sections(findings, sketches),
            "footnote": " but what is marked as in the clear" if any(sketches.in_clear) else "",
            "numbers": numbers(findings),
            "script": script,
        },
    )


def _checked_title(title: Any) -> str:
    if not isinstance(title, str) or not 1 <= len(title) <= _LONGEST_TITLE or not title.isprintable():
        raise ParameterError(
            f"title must be one printable line of 1 to {_LONGEST_TITLE} characters, got {shown(title)}"
        )
    return title


def _figures(findings: Findings, sketches: Sketches) -> str:
    """The four numbers under the heading."""
    resolved, total = int(findings.resolved[findings.pairs].sum()), len(findings.pairs[0])
    is_clear = any(sketches.in_clear)
    tiles = [
        ("Parties", f"{len(findings.labels):,}", counted(total, "pair")),
        (
            "Told apart",
            percent(resolved / total) if total else "–",
            f"{resolved:,} of {counted(total, 'pair')}",
        ),
        (
            "Privacy of each release",
            "none" if all(sketches.in_clear) else promise.epsilons(sketches),
            "NOT ALL PRIVATE" if is_clear else promise.deltas(sketches),
        ),
        (
            "Confidence",
            level_text(findings.level),
            "all intervals together" if findings.simultaneous else "each interval by itself",
        ),
    ]
    cells = "".join(
        f'<div><dt>{label}</dt><dd><span class="number">{value}</span><span class="under">{beside}</span></dd></div>'
        for label, value, beside in tiles
    )
    return f'<dl class="figures">{cells}</dl>'


def _search(findings: Findings) -> str:
    """The box that finds a party; none for one party."""
    if len(findings.labels) == 1:
        return ""
    options = "".join(f'<option value="{escaped(label)}"></option>' for label in findings.labels)
    return (
        '<label><span class="unseen">Highlight a party</span><input type="search" id="search" list="parties" '
        f'placeholder="Highlight a party" autocomplete="off"></label><datalist id="parties">{options}</datalist>'
    )


def _style() -> str:
    dark = _asset("dark.css")
    themes = (
        f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{\n{dark}}} }}\n'
    )
    return _asset("tokens.css") + themes + _asset("layout.css") + _asset("drawings.css") + _asset("print.css")


def _asset(name: str) -> str:
    return files("armslength.reporting").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash by which the page's policy knows its own script and style, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
