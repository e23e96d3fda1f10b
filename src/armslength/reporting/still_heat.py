"""The heat map as a drawing that needs no script: for pages of few parties, without JavaScript and on paper."""

from armslength.reporting.embedded import color_ends
from armslength.reporting.findings import Findings
from armslength.reporting.markup import escaped

MOST_PARTIES = 48
STEPS = 9

_CELL, _MARGIN, _LETTERS = 16, 150, 22


def still_heat(findings: Findings) -> str:
    """An SVG of all pairs in the order of the tree, colors by class, so that the theme decides on them."""
    if findings.clustering is None or len(findings.labels) > MOST_PARTIES:
        return ""
    order = findings.clustering.order
    ends = color_ends(findings)
    cells: dict[str, list[str]] = {}
    for row, first in enumerate(order):
        for column, second in enumerate(order):
            kind = _kind(findings, first, second, ends)
            place = f"M{_MARGIN + _CELL * column} {_MARGIN + _CELL * row}h15v15h-15z"
            cells.setdefault(kind, []).append(place)
    paths = "".join(f'<path {kind} d="{"".join(cells[kind])}"/>' for kind in sorted(cells))
    names = "".join(_names(findings.labels[party], rank) for rank, party in enumerate(order))
    side = _MARGIN + _CELL * len(order)
    return (
        f'<svg class="still-heat prints" width="{side * 1.3:.0f}" viewBox="0 0 {side} {side}" role="img" '
        f'aria-label="Heat map of the distances between all pairs of parties; the tables hold the same numbers">'
        f"{HATCHING}{paths}{names}</svg>"
    )


HATCHING = (
    '<defs><pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="hatch-ground" width="6" height="6"/>'
    '<path class="hatch-line" d="M-1.5 1.5l3-3M0 6l6-6M4.5 7.5l3-3"/></pattern></defs>'
)


def _kind(findings: Findings, first: int, second: int, ends: tuple[float, float]) -> str:
    """How a cell is painted, as an attribute."""
    if first == second:
        return 'class="itself"'
    if not findings.resolved[first, second]:
        return 'fill="url(#hatching)"'
    low, high = ends
    share = (float(findings.distance[first, second]) - low) / (high - low) if high > low else 0.0
    return f'class="ramp-{round(max(0.0, min(1.0, share)) * (STEPS - 1))}"'


def _names(label: str, rank: int) -> str:
    """A label beside its row and above its column."""
    middle = _MARGIN + _CELL * rank + 11.5
    text = escaped(label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…")
    end = _MARGIN - 6
    return (
        f'<text x="{end}" y="{middle}" text-anchor="end">{text}</text>'
        f'<text transform="translate({middle},{end})rotate(-90)">{text}</text>'
    )
