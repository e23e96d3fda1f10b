"""Write docs/audit.md from the figures of the last run of each part."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armslength.version import __version__
from audit.origin import PAGE, Origin
from audit.sections import RESULTS

_TEXT = Path(__file__).parent / "page.md"


def write_page(parts: Sequence[str]) -> None:
    """Write the page. A part without results here keeps its figures on the page; a part that never ran is listed as "not run"."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(
        _TEXT.read_text(encoding="utf-8").format(
            summary=_summary(parts, before),
            parts="\n\n".join(_part(name, before) for name in parts),
            **_machine(),
        ),
        encoding="utf-8",
    )


def _kept(name: str, before: str) -> tuple[str, str] | None:
    """The summary line and the section of a part on the existing page, found by its mark."""
    mark = f"<!-- {name} -->\n"
    if mark not in before:
        return None
    section = before.split(mark)[1].split("\n## ", 2)
    title = section[0].removeprefix("## ").splitlines()[0]
    line = next(line for line in before.splitlines() if line.startswith(f"| {title} | "))
    return line, mark + section[0].split("\n<!-- ")[0].rstrip()


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found if "origin" in found else None


def _summary(parts: Sequence[str], before: str) -> str:
    lines = [
        "| part | claims | hold | minutes | measured at commit | on |",
        "|---|---:|---:|---:|---|---|",
    ]
    edited = False
    for name in parts:
        section = _read(name)
        if section is None:
            kept = _kept(name, before)
            lines.append(kept[0] if kept else f"| {name} | not run | | | | |")
            continue
        held = sum(check["holds"] for check in section["checks"])
        mark = "" if held == len(section["checks"]) else " ✗"
        origin = Origin(**section["origin"])
        edited |= origin.edited
        lines.append(
            f"| {section['title']} | {len(section['checks'])} | {held}{mark} | {section['seconds'] / 60:.1f} "
            f"| {_commit(origin)} | {origin.date} |"
        )
    if edited:
        lines += ["", "\\* Files were edited after that commit, so these figures belong to no commit."]
    return "\n".join(lines)


def _commit(origin: Origin) -> str:
    return origin.commit + (r" \*" if origin.edited else "")


def _part(name: str, before: str) -> str:
    section = _read(name)
    if section is None:
        kept = _kept(name, before)
        return kept[1] if kept else f"## {name}\n\nNot run."
    table = [
        "| " + " | ".join(section["heads"]) + " |",
        "|" + "---|" * len(section["heads"]),
        *("| " + " | ".join(row) + " |" for row in section["rows"]),
    ]
    checks = [
        f"* {'' if check['holds'] else '**Does not hold.** '}{check['claim']}: {check['found']}"
        for check in section["checks"]
    ]
    shown = table if section["rows"] else []
    origin = Origin(**section["origin"])
    measured = f"Measured at commit {_commit(origin)} on {origin.date}."
    return f"<!-- {name} -->\n" + "\n".join(
        [f"## {section['title']}", "", section["words"], "", measured, "", *shown, "", *checks]
    )


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "version": __version__,
    }
