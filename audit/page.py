"""docs/audit.md, from the figures of the last run of each part."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from armslength.version import __version__
from audit.sections import RESULTS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "audit.md"
_TEXT = Path(__file__).parent / "page.md"


def write_page(parts: Sequence[str]) -> None:
    """Writes the page; a part that was never run is named as such."""
    PAGE.write_text(
        _TEXT.read_text(encoding="utf-8").format(
            summary=_summary(parts), parts="\n\n".join(map(_part, parts)), **_machine()
        ),
        encoding="utf-8",
    )


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return found


def _summary(parts: Sequence[str]) -> str:
    lines = ["| part | claims | hold | minutes |", "|---|---:|---:|---:|"]
    for name in parts:
        section = _read(name)
        if section is None:
            lines.append(f"| {name} | not run | | |")
            continue
        held = sum(check["holds"] for check in section["checks"])
        mark = "" if held == len(section["checks"]) else " ✗"
        lines.append(
            f"| {section['title']} | {len(section['checks'])} | {held}{mark} | {section['seconds'] / 60:.1f} |"
        )
    return "\n".join(lines)


def _part(name: str) -> str:
    section = _read(name)
    if section is None:
        return f"## {name}\n\nNot run."
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
    return "\n".join([f"## {section['title']}", "", section["words"], "", *shown, "", *checks])


def _machine() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],  # noqa: S607  # whichever git the developer has
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "commit": commit or "no repository",
        "date": datetime.now(UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "version": __version__,
    }
