"""One offline HTML page about a set of sketches."""

import base64
import hashlib
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.answers.explain import UNEXPLAINED
from armslength.checks import short_repr
from armslength.errors import ParameterError, plural
from armslength.files import atomic_write
from armslength.reporting import promise, statements
from armslength.reporting.findings import Findings, Reasons, findings_of
from armslength.reporting.markup import asset, escaped, fill, level_text, percent, scripts
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


def report(
    sketches: Sketches,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    level: float = 0.95,
    simultaneous: bool = True,
    by: str | None = None,
    beyond_chance: bool | None = None,
    banner: str = "",
) -> None:
    """Writes one HTML file that opens offline: summary, map, heat map, what sets parties apart, tree, tables, privacy statement, cards.

    The page is computed from the sketches alone and costs no privacy. The same sketches give the same bytes.

    Args:
        sketches: One row for each party; at most 1,000.
        path: The file. It is written whole or not at all.
        title: The heading; None makes one.
        level: The confidence of the intervals, such as 0.95.
        simultaneous: Whether all intervals hold together (Bonferroni), or each by itself. Statements that compare pairs (which
            party is nearest, who belongs to a group) always use intervals that hold together.
        by: "size" for rows as they are, "shape" for rows divided by their totals; None: by shape where totals were released.
        beyond_chance: Whether to ask about the populations behind the rows; None: yes, where people were counted in event tables.
        banner: A line of text on top of every screen, such as that it is a rehearsal.
    """
    heading = None if title is None else _checked_title(title)
    findings = findings_of(
        sketches, level=level, simultaneous=simultaneous, by=by, beyond_chance=beyond_chance
    )
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
            "lead": statements.lead(findings),
            "figures": _figures(findings, sketches),
            "sections": "\n".join(markup for *_, markup in sections),
            "exception": " except where it says “in the clear”" if any(findings.in_clear) else "",
            "numbers": script_numbers(findings),
            "script": script,
        },
    )


def script_numbers(findings: Findings) -> str:
    """The numbers that the script of the page reads, as JSON."""
    rows, columns = findings.pairs
    # A negative squared estimate is passed on as the negative root of its size.
    values = np.sign(findings.squared) * np.sqrt(np.abs(findings.squared))
    low, high = findings.color_range
    return safe_json(
        {
            "labels": list(findings.labels),
            "alike": "".join("01"[alike] for alike in findings.is_alike[rows, columns].tolist()),
            "order": list(findings.clusters.order) if findings.clusters else [0],
            "clear": [number for number, is_clear in enumerate(findings.in_clear) if is_clear],
            "decimals": findings.style.decimals,
            "low": low,
            "high": high,
            "longest": findings.axis_end,
            "first": int(rows[np.argmin(findings.squared[rows, columns])]) if len(rows) else 0,
            "value": _base64_floats(values[rows, columns]),
            "lower": _base64_floats(findings.lower[rows, columns]),
            "upper": _base64_floats(findings.upper[rows, columns]),
            "margins": _margins(findings),
        }
    )


def _margins(findings: Findings) -> dict[str, Any] | None:
    """The prevalences of all parties and groups that can be compared; None where there are none."""
    reasons = findings.reasons
    if not isinstance(reasons, Reasons) or reasons.sides is None or reasons.missing is None:
        return None
    return {
        "names": reasons.names,
        "sides": _base64_floats(reasons.sides),
        "missing": _base64_floats(reasons.missing),
        "first": [findings.side_number(rows) for rows in findings.main_comparison],
        "groups": len(reasons.groups),
        "apart": _base64_floats(np.array(findings.group_distances)),
        "choices": reasons.choices,
        "unexplained": f"{UNEXPLAINED[0].upper()}{UNEXPLAINED[1:]}.",
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
    # A lower end above 0 makes a pair resolved, so it must not become 0.
    floats[(values > 0) & (floats == 0)] = np.finfo(np.float32).tiny
    return base64.b64encode(floats.tobytes()).decode("ascii")


def _checked_title(title: Any) -> str:
    if not isinstance(title, str) or not 1 <= len(title) <= _LONGEST_TITLE or not title.isprintable():
        raise ParameterError(
            f"title must be one printable line of 1 to {_LONGEST_TITLE} characters, got {short_repr(title)}",
            "title",
        )
    return title


def _figures(findings: Findings, sketches: Sketches) -> str:
    """The four numbers under the heading."""
    resolved, total = findings.resolved_pairs, len(findings.pairs[0])
    pairs = plural(total, "pair")
    in_clear = findings.in_clear
    epsilon = "none" if all(in_clear) else promise.epsilons(sketches)
    delta = "NOT ALL PRIVATE" if any(in_clear) else promise.deltas(sketches)
    tiles = [
        ("Parties", f"{len(findings.labels):,}", pairs),
        ("Differ", percent(resolved / total) if total else "–", f"{resolved:,} of {pairs}"),
        ("Privacy of each release", epsilon, delta),
        ("Confidence", level_text(findings.level), statements.joint_text(findings)),
    ]
    cells = "".join(
        f'<div><dt>{label}</dt><dd><span class="number">{value}</span><span class="under">{note}</span></dd></div>'
        for label, value, note in tiles
    )
    return f'<dl class="figures">{cells}</dl>'


def _search(findings: Findings) -> str:
    """The box that highlights a party; none for one party."""
    if len(findings.labels) == 1:
        return ""
    options = "".join(f'<option value="{escaped(label)}"></option>' for label in findings.labels)
    return (
        '<label><span class="unseen">Highlight a party</span><input type="search" id="search" list="parties" '
        f'placeholder="Highlight a party" autocomplete="off"></label><datalist id="parties">{options}</datalist>'
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
