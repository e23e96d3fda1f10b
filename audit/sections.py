"""The result of one part of the audit: a table of figures, and the claims that they decide."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from audit.origin import Origin

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Check:
    """A claim that the figures decide.

    Attributes:
        claim: What must hold, in one line.
        holds: Whether it does.
        found: What was measured, in a few words.
    """

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Section:
    """One part of docs/audit.md.

    Attributes:
        title: Its heading.
        words: What was done, with which sizes and at which confidence: Markdown, a paragraph or a few.
        heads: The names of the table's columns.
        rows: The table; every cell as it is printed.
        checks: What must hold; the audit fails if one does not.
    """

    title: str
    words: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    checks: tuple[Check, ...]


def measured(name: str, audit: Callable[[bool], Section], *, quick: bool) -> dict[str, Any]:
    """Run a part and store its figures and commit under audit/results. A quick run is not stored."""
    origin, start = Origin.here(), time.monotonic()  # before the run, like the imports
    section = audit(quick)
    document = {**asdict(section), "seconds": round(time.monotonic() - start), "origin": asdict(origin)}
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document
