"""The tree of merges: branches in SVG, in percentages of whatever width there is; leaves as a list beside it."""

from armslength.errors import counted
from armslength.reporting.findings import Findings
from armslength.reporting.markup import name
from armslength.reporting.scale import ticks

MOST_LABELED = 80
_ROW, _TALLEST = 20.0, 1200.0


def tree_svg(findings: Findings) -> str:
    """The tree; empty for one party."""
    clustering = findings.clustering
    if clustering is None:
        return ""
    count = len(findings.labels)
    is_labeled = count <= MOST_LABELED
    row = _ROW if is_labeled else _TALLEST / count
    top = float(clustering.linkage[-1, 2]) or 1.0
    height_of = [0.0] * count + [float(height) for height in clustering.linkage[:, 2]]
    middle = [0.0] * len(height_of)
    for rank, leaf in enumerate(clustering.order):
        middle[leaf] = (rank + 0.5) * row

    def across(height: float) -> str:
        return f"{99 - 97 * height / top:.2f}%"

    merges = []
    for merge, (first, second, height, leaves) in enumerate(clustering.linkage.tolist()):
        parts = int(first), int(second)
        middle[count + merge] = (middle[parts[0]] + middle[parts[1]]) / 2
        is_sure = bool(clustering.supported[merge])
        said = (
            f"{counted(int(leaves), 'party', 'parties')} joined at {findings.style.text(height)}: "
            f"{'the error bars support it' if is_sure else 'the error bars leave it open'}"
        )
        lines = "".join(
            f'<line x1="{across(height)}" x2="{across(height_of[part])}" y1="{middle[part]:.1f}" y2="{middle[part]:.1f}"/>'
            for part in parts
        )
        ends = sorted(middle[part] for part in parts)
        lines += f'<line x1="{across(height)}" x2="{across(height)}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>'
        merges.append(
            f'<g class="branch{"" if is_sure else " unsure"}" data-merge="{said}">{lines}<title>{said}</title></g>'
        )
    marks = "".join(
        f'<circle class="leaf-mark" data-party="{leaf}" cx="99%" cy="{middle[leaf]:.1f}" r="4"/>'
        for leaf in clustering.order
    )
    axis = "".join(_tick(findings, across(value), value, number) for number, value in enumerate(ticks(top)))
    grid = "".join(
        f'<line x1="{across(value)}" x2="{across(value)}" y1="0" y2="{row * count:.1f}"/>'
        for value in ticks(top)
    )
    leaves_list = "".join(
        f'<li data-party="{leaf}">{name(findings.labels[leaf])}</li>' for leaf in clustering.order
    )
    return (
        f'<div class="tree{"" if is_labeled else " bare"}" id="tree">'
        f'<svg class="axis axis-row" height="22" aria-hidden="true">{axis}</svg>{"<span></span>" if is_labeled else ""}'
        f'<svg class="branches" height="{row * count:.0f}" role="img" aria-label="Tree of {count} parties; '
        f'merges that the error bars do not support are dashed"><g class="axis">{grid}</g>{"".join(merges)}{marks}</svg>'
        f"{f'<ol aria-label={chr(34)}Parties in the order of the tree{chr(34)}>{leaves_list}</ol>' if is_labeled else ''}</div>"
    )


def _tick(findings: Findings, x: str, value: float, number: int) -> str:
    """The number at an axis; every second one goes where the page is narrow."""
    kind = ' class="minor"' if number % 2 else ""
    return f'<text{kind} x="{x}" y="14" text-anchor="middle">{findings.style.text(value)}</text>'
