"""The configurations of a plan as a table of text, and the page that `print(plan)` shows."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armslength.planner.configuration import Configuration
from armslength.planner.words import WIDTH, percent, readable, summary
from armslength.transforms.fast_jl import FastJL
from armslength.transforms.gaussian_jl import GaussianJL
from armslength.transforms.hadamard_jl import HadamardJL
from armslength.transforms.identity import Identity
from armslength.transforms.sparse_jl import SparseJL

if TYPE_CHECKING:
    from armslength.planner.plan import Plan

_SHOWN = 6
_ALWAYS = (Identity, GaussianJL, FastJL, HadamardJL)
_HEADINGS = (
    "",
    "configuration",
    "k",
    "noise",
    "error",
    "at high",
    "smallest",
    "bytes",
    "additions",
    "guarantee",
)
_TEXT_COLUMNS = (0, 1, 3, 9)


def report(plan: "Plan") -> str:
    """The whole page."""
    rows = [_cells(line, is_recommended=line is plan.recommended) for line in shown_lines(plan)]
    return "\n".join([summary(plan), "", *_aligned([_HEADINGS, *rows]), "", *_footnotes(plan)])


def shown_lines(plan: "Plan") -> list[Configuration]:
    """The leading configurations, and the baselines that are always shown."""
    shown: list[Configuration] = []
    seen: set[str] = set()
    leading = 0
    for line in plan.configurations:
        is_baseline = line.member is None or line.baseline or line.is_of(*_ALWAYS)
        transform = None if line.member is None else line.member.transform
        # The same numbers as block; all lines are in `plan.table`.
        same_as_block = isinstance(transform, SparseJL) and transform.construction == "graph"
        if line is plan.recommended or (is_baseline and line.label not in seen):
            shown.append(line)
        elif leading < _SHOWN and not same_as_block:
            leading += 1
            shown.append(line)
        seen.add(line.label)
    return shown


def _cells(line: Configuration, *, is_recommended: bool) -> tuple[str, ...]:
    """One line of the table as text."""
    return (
        "*" if is_recommended else "" if line.is_choice else "-",
        line.label + ("" if line.is_exact else " ~"),
        f"{line.sketch_dim:,}",
        line.noise,
        percent(line.relative_error),
        percent(line.relative_error_high),
        readable(line.smallest_distance),
        f"{line.bytes:,}",
        f"{line.additions:,}" if line.additions is not None else "per item",
        line.guarantee,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: text to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in _TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _footnotes(plan: "Plan") -> list[str]:
    low, high = plan.situation.distances.low, plan.situation.distances.high
    notes = (
        f"* {'recommended' if plan.resolvable else 'the best there is'}; - not a choice (too large, or for comparison); ~ for a median "
        f"matrix, scanned exactly when it is made. error: standard error of the squared distance at distance {readable(low)}, at high: at "
        f"{readable(high)}. smallest: the distance at which that error is 100%. additions: for one vector. "
        f"{len(plan.configurations)} configurations in all."
    )
    if plan.situation.input_dim is None:
        notes += " Transforms with a fixed input_dim are left out for an open vocabulary."
    if not plan.situation.delta:
        notes += " Gaussian noise (Kenthapadi et al., noise on the input) needs a delta above 0."
    return textwrap.wrap(notes, WIDTH)
