"""The pictures of the page as SVG: the map of the parties, a heat map without a script, and the tree of merges.

The map and the tree are in percentages of their width, so that text keeps its size on every screen.
"""

import math

import numpy as np

from armslength.answers.cluster import Clusters
from armslength.answers.plane import Plane, Points
from armslength.errors import plural
from armslength.plots import LABEL_PLACES, LabelPlace, free_places
from armslength.reporting.findings import Findings
from armslength.reporting.markup import NumberStyle, escaped, name

MOST_LABELS_ON_MAP, MOST_LABELS_ON_TREE, MOST_CELLS_IN_A_ROW = 60, 80, 48
HATCHING = (
    '<defs><pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect class="hatch-ground" width="6" height="6"/>'
    '<path class="hatch-line" d="M-1.5 1.5l3-3M0 6l6-6M4.5 7.5l3-3"/></pattern></defs>'
)

# The map. Pixels: its smallest size on a tablet, a desktop or paper, and that on a phone; both 4 to 3.
_WIDE, _NARROW = (600.0, 450.0), (350.0, 262.5)
_MARGIN = 0.07  # of each side
_MOST_LETTERS = 34

# The heat map, in its own units, and the tree, in pixels.
_CELL, _LABEL_SPACE, _MOST_CELL_LETTERS, _COLORS = 16, 150, 22, 9
_TREE_ROW, _TALLEST_TREE = 20.0, 1200.0
_MINOR = ' class="minor"'


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
        f'aria-label="Heat map of the distances between all pairs of parties; the tables show the same numbers">'
        f"{HATCHING}{paths}{names}</svg>"
    )


def _cell_color(findings: Findings, first: int, second: int) -> str:
    """The color of a cell, as an attribute."""
    if first == second:
        return 'class="itself"'
    if not findings.resolved[first, second]:
        return 'fill="url(#hatching)"'
    low, high = findings.color_range
    share = (float(findings.distance[first, second]) - low) / (high - low) if high > low else 0.0
    return f'class="ramp-{round(max(0.0, min(1.0, share)) * (_COLORS - 1))}"'


def _cell_labels(label: str, rank: int) -> str:
    """A label beside its row and above its column."""
    middle, end = _LABEL_SPACE + _CELL * rank + 11.5, _LABEL_SPACE - 6
    text = escaped(_shortened(label, _MOST_CELL_LETTERS))
    return (
        f'<text x="{end}" y="{middle}" text-anchor="end">{text}</text>'
        f'<text transform="translate({middle},{end})rotate(-90)">{text}</text>'
    )


def tree_svg(findings: Findings) -> str:
    """The tree of merges, with its leaves as a list beside it; empty for one party."""
    tree = findings.clusters
    if tree is None:
        return ""
    count = len(findings.labels)
    is_labeled = count <= MOST_LABELS_ON_TREE
    row = _TREE_ROW if is_labeled else _TALLEST_TREE / count
    top = float(tree.linkage[-1, 2]) or 1.0
    axis_ticks = [(value, _across(value, top)) for value in ticks(top)]
    axis = "".join(
        # Every second number is left out where the page is narrow.
        f'<text{_MINOR if number % 2 else ""} x="{x}" y="14" text-anchor="middle">{findings.style.text(value)}</text>'
        for number, (value, x) in enumerate(axis_ticks)
    )
    grid = "".join(f'<line x1="{x}" x2="{x}" y1="0" y2="{row * count:.1f}"/>' for _, x in axis_ticks)
    leaves = "".join(f'<li data-party="{leaf}">{name(findings.labels[leaf])}</li>' for leaf in tree.order)
    parties = f'<ol aria-label="Parties in the order of the tree">{leaves}</ol>'
    return (
        f'<div class="tree{"" if is_labeled else " bare"}" id="tree">'
        f'<svg class="axis axis-row" height="22" aria-hidden="true">{axis}</svg>{"<span></span>" if is_labeled else ""}'
        f'<svg class="branches" height="{row * count:.0f}" role="img" aria-label="Tree of {count} parties; '
        f'where parties differ, it is dashed"><g class="axis">{grid}</g>{_branches(tree, findings.style, row, top)}</svg>'
        f"{parties if is_labeled else ''}</div>"
    )


def _branches(tree: Clusters, style: NumberStyle, row: float, top: float) -> str:
    """The merges of the tree, and a mark for each leaf."""
    count = len(tree.labels)
    heights = [0.0] * count + [float(height) for height in tree.linkage[:, 2]]
    middles = [0.0] * len(heights)
    for rank, leaf in enumerate(tree.order):
        middles[leaf] = (rank + 0.5) * row
    merges = []
    for merge, (first, second, height, size) in enumerate(tree.linkage.tolist()):
        parts = int(first), int(second)
        ends = sorted(middles[part] for part in parts)
        middles[count + merge] = sum(ends) / 2
        x = _across(height, top)
        lines = "".join(
            f'<line x1="{x}" x2="{_across(heights[part], top)}" y1="{middles[part]:.1f}" y2="{middles[part]:.1f}"/>'
            for part in parts
        )
        is_group = merge < tree.merges
        title = (
            f"{plural(int(size), 'party', 'parties')} joined at {style.text(height)}: "
            f"{'no two are found to differ' if is_group else 'some differ'}"
        )
        merges.append(
            f'<g class="branch{"" if is_group else " unsure"}" data-merge="{title}">{lines}'
            f'<line x1="{x}" x2="{x}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/><title>{title}</title></g>'
        )
    marks = "".join(
        f'<circle class="leaf-mark" data-party="{leaf}" cx="99%" cy="{middles[leaf]:.1f}" r="4"/>'
        for leaf in tree.order
    )
    return "".join(merges) + marks


def _across(height: float, top: float) -> str:
    """The place of a height on the tree's axis, which runs from right to left."""
    return f"{99 - 97 * height / top:.2f}%"


def round_step(most: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is at most this; 0 for 0."""
    if not most > 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(most))
    # The power itself may be off by a rounding error.
    return next((digit * power for digit in (5, 2, 1) if digit * power <= most * (1 + 1e-12)), power / 2)


def ticks(top: float) -> list[float]:
    """0 and about five multiples of a round step, up to the top."""
    step = round_step(top / 5 * 1.6)
    return [step * number for number in range(math.floor(top / step * (1 + 1e-12)) + 1)] if step else [0.0]
