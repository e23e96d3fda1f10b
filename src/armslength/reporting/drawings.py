"""The pictures of the page as SVG: the map of the parties, a heat map without a script, and intervals as bars.

The map and the bars are in percentages of their width, so that text keeps its size on every screen.
"""

import math

import numpy as np

from armslength.answers.pairs import INCONCLUSIVE
from armslength.plots import LABEL_PLACES, LabelPlace, free_places
from armslength.reporting.findings import Findings
from armslength.reporting.markup import escaped
from armslength.reporting.plane import Plane, Points

MOST_LABELS_ON_MAP, MOST_CELLS_IN_A_ROW = 60, 48
HATCHING = (
    '<defs><pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="hatch-ground" width="6" height="6"/>'
    '<path class="hatch-line" d="M-1.5 1.5l3-3M0 6l6-6M4.5 7.5l3-3"/></pattern></defs>'
)

# The map. Pixels: its smallest size on a tablet, a desktop or paper, and that on a phone; both 4 to 3.
_WIDE, _NARROW = (600.0, 450.0), (350.0, 262.5)
_MARGIN = 0.07  # of each side
_MOST_LETTERS = 34

# The heat map, in its own units.
_CELL, _LABEL_SPACE, _MOST_CELL_LETTERS, _COLORS = 16, 150, 22, 9


def map_svg(findings: Findings) -> str:
    """The map; empty where the noise hides every distance, or there is one party."""
    plane = findings.plane
    if plane is None or plane.axes == 0:
        return ""
    centers, half_axes, width = _fit(plane)
    texts = [_shortened(label, _MOST_LETTERS) for label in findings.labels]
    places, crowded = _label_places(centers, texts)
    marks = []
    for party, text in enumerate(texts):
        (x, y), (rx, ry) = 100 * centers[party], 100 * half_axes[party]
        classes = ["mark-party"]
        classes += ["hidden"] if places[party] is None else ["crowded"] if crowded[party] else []
        classes += ["outlier"] if party in findings.outlier_rows else []
        classes += ["clear"] if findings.in_clear[party] else []
        place = places[party] or LABEL_PLACES[0]
        ellipse = (
            f'<ellipse cx="{x:.2f}%" cy="{y:.2f}%" rx="{rx:.2f}%" ry="{ry:.2f}%"/>' if max(rx, ry) > 0 else ""
        )
        marks.append(
            f'<g class="{" ".join(classes)}" data-party="{party}" data-x="{x:.2f}" data-y="{y:.2f}">{ellipse}'
            f'<circle cx="{x:.2f}%" cy="{y:.2f}%" r="4.5"/>'
            f'<text x="{x:.2f}%" y="{y:.2f}%" dx="{place.dx:g}" dy="{place.dy:g}" text-anchor="{place.anchor}">'
            f"{escaped(text)}</text></g>"
        )
    many = " many" if len(texts) > MOST_LABELS_ON_MAP else ""
    return (
        f'<svg class="plane{many}" id="plane" role="img" aria-label="Map of the parties: near on the map means '
        f'roughly near in the estimates; the tables have the numbers">{_ruler(findings, width)}<g>{"".join(marks)}</g></svg>'
    )


def _fit(plane: Plane) -> tuple[Points, Points, float]:
    """Marks and half axes as shares of width and height, and the width in data units; one scale for both axes."""
    span = float(np.ptp(plane.places, axis=0).max())
    # An ellipse wider than the whole picture is cut off, or it would shrink the rest to a dot.
    around = np.minimum(plane.reach, span if span > 0 else np.inf)
    low, high = (plane.places - around).min(axis=0), (plane.places + around).max(axis=0)
    aspect = _WIDE[0] / _WIDE[1]
    width = max(float(high[0] - low[0]), float(high[1] - low[1]) * aspect, 1e-300) / (1 - 2 * _MARGIN)
    sides = np.array([width, width / aspect])
    centers = 0.5 + (plane.places - (low + high) / 2) / sides
    centers[:, 1] = 1 - centers[:, 1]
    return centers, plane.reach / sides, width


def _label_places(centers: Points, texts: list[str]) -> tuple[list[LabelPlace | None], list[bool]]:
    """For each mark a place where its label covers nothing, or None; and whether it covers something on a phone."""
    if len(texts) > MOST_LABELS_ON_MAP:
        return [None] * len(texts), [True] * len(texts)
    places = free_places(centers, texts, _WIDE)
    on_phone = free_places(centers, texts, _NARROW, [[place] if place else [] for place in places])
    return places, [place is None for place in on_phone]


def _shortened(label: str, letters: int) -> str:
    return label if len(label) <= letters else f"{label[: letters - 1]}…"


def _ruler(findings: Findings, width: float) -> str:
    """A bar of a round length, to measure the map with."""
    step = round_step(width * 0.2)
    share = 100 * step / width
    return (
        f'<g class="ruler"><line x1="2%" x2="{2 + share:.2f}%" y1="97%" y2="97%"/>'
        f'<text x="{2 + share:.2f}%" y="97%" dx="6" dy="4">{findings.style.text(step)}</text></g>'
    )


def still_heat(findings: Findings) -> str:
    """A heat map that needs no script, for few parties; the theme chooses the colors of its classes."""
    if findings.clusters is None or len(findings.labels) > MOST_CELLS_IN_A_ROW:
        return ""
    order = findings.clusters.order
    cells: dict[str, list[str]] = {}
    for row, first in enumerate(order):
        for column, second in enumerate(order):
            corner = f"M{_LABEL_SPACE + _CELL * column} {_LABEL_SPACE + _CELL * row}h15v15h-15z"
            cells.setdefault(_cell_color(findings, first, second), []).append(corner)
    paths = "".join(f'<path {color} d="{"".join(cells[color])}"/>' for color in sorted(cells))
    names = "".join(_cell_labels(findings.labels[party], rank) for rank, party in enumerate(order))
    side = _LABEL_SPACE + _CELL * len(order)
    return (
        f'<svg class="still-heat prints" width="{side * 1.3:.0f}" viewBox="0 0 {side} {side}" role="img" '
        f'aria-label="Heat map of all pairs of parties; the table of all pairs has the numbers">'
        f"{HATCHING}{paths}{names}</svg>"
    )


def _cell_color(findings: Findings, first: int, second: int) -> str:
    """The color of a cell, as an attribute."""
    if first == second:
        return 'class="itself"'
    if findings.verdict[first, second] == INCONCLUSIVE:
        return 'fill="url(#hatching)"'
    low, high = findings.color_range
    share = (float(findings.farness[first, second]) - low) / (high - low) if high > low else 0.0
    return f'class="ramp-{round(max(0.0, min(1.0, share)) * (_COLORS - 1))}"'


def _cell_labels(label: str, rank: int) -> str:
    """A label beside its row and above its column."""
    middle, end = _LABEL_SPACE + _CELL * rank + 11.5, _LABEL_SPACE - 6
    text = escaped(_shortened(label, _MOST_CELL_LETTERS))
    return (
        f'<text x="{end}" y="{middle}" text-anchor="end">{text}</text>'
        f'<text transform="translate({middle},{end})rotate(-90)">{text}</text>'
    )


def interval_bar(ends: tuple[float, float, float], axis: tuple[float, float], *, is_sure: bool) -> str:
    """A number with its interval on an axis."""
    value, lower, upper = (
        f"{2 + 96 * min(max((end - axis[0]) / (axis[1] - axis[0]), 0.0), 1.0):.2f}%" for end in ends
    )
    mark = f'<circle class="value" cx="{value}" cy="8" r="4"/>' if math.isfinite(ends[0]) else ""
    return (
        f'<svg class="bars{"" if is_sure else " unsure"}" aria-hidden="true"><line class="zero" x1="2%" x2="98%" y1="8" y2="8"/>'
        f'<line class="span" x1="{lower}" x2="{upper}" y1="8" y2="8"/>{mark}</svg>'
    )


def round_step(most: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is at most this; 0 for 0."""
    if not most > 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(most))
    # The power itself may be off by a rounding error.
    return next((digit * power for digit in (5, 2, 1) if digit * power <= most * (1 + 1e-12)), power / 2)
