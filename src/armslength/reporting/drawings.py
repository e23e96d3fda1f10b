"""The map of the parties as SVG: percentages instead of a view box, so that text keeps its size on every screen."""

import math
import unicodedata
from dataclasses import dataclass

import numpy as np

from armslength.answers.plane import Plane, Points
from armslength.errors import counted
from armslength.reporting.findings import Findings, color_ends
from armslength.reporting.markup import escaped, name

# Round numbers for rulers and axes.


def round_step(most: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is at most this; 0 for 0."""
    if not most > 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(most))
    # The power itself may be off by a rounding error.
    return next((digit * power for digit in (5, 2, 1) if digit * power <= most * (1 + 1e-12)), power / 2)


def ticks(top: float, count: int = 5) -> list[float]:
    """0 and multiples of a round step up to the top, about so many."""
    step = round_step(top / count * 1.6)
    return [step * number for number in range(math.floor(top / step * (1 + 1e-12)) + 1)] if step else [0.0]


MOST_LABELS_ON_MAP = 60

# Pixels: the narrowest map on a tablet, a desktop or paper, and that on a phone; both 4 to 3. Wider ones only have more room.
_WIDE, _NARROW = (600.0, 450.0), (350.0, 262.5)
_ROOM = 0.07  # of each side is left free
_LINE, _LETTER, _LONGEST = 15.0, 6.3, 34

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class _Spot:
    """Where a label goes: an offset from its mark in pixels, and the end of the text that is there."""

    dx: float
    dy: float
    anchor: str

    def box(self, x: float, y: float, width: float) -> Box:
        """What the label covers, in pixels."""
        shift = {"start": 0.0, "middle": -width / 2, "end": -width}[self.anchor]
        left = x + self.dx + shift
        return left, y + self.dy - 11, left + width, y + self.dy + _LINE - 11


_SPOTS = (
    _Spot(8, 4, "start"),
    _Spot(-8, 4, "end"),
    _Spot(0, -9, "middle"),
    _Spot(0, 18, "middle"),
    _Spot(7, -6, "start"),
    _Spot(7, 14, "start"),
    _Spot(-7, -6, "end"),
    _Spot(-7, 14, "end"),
)


def map_svg(findings: Findings) -> str:
    """The map; empty where the noise hides every distance, or there is one party."""
    plane = findings.plane
    if plane is None or plane.axes == 0:
        return ""
    shares, reach, length = _fitted(plane)
    texts = [label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…" for label in findings.labels]
    spots, crowded = _placed(shares, [text_width(text) for text in texts])
    marks = []
    for party, text in enumerate(texts):
        (x, y), (rx, ry) = 100 * shares[party], 100 * reach[party]
        spot = spots[party]
        classes = ["mark-party"]
        classes += ["hidden"] if spot is None else ["crowded"] if crowded[party] else []
        classes += ["clear"] if findings.in_clear[party] else []
        place = spot or _SPOTS[0]
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
        f'<svg class="plane{many}" id="plane" role="img" aria-label="Map of the parties: near on the map is '
        f'roughly near in the estimates; the tables hold the numbers">{_ruler(findings, length)}<g>{"".join(marks)}</g></svg>'
    )


def _fitted(plane: Plane) -> tuple[Points, Points, float]:
    """Places and half axes as shares of width and height, and the width in data units; one scale for both axes."""
    span = float(np.ptp(plane.places, axis=0).max())
    # An ellipse that is wider than the whole picture is cut off: it shall not make a dot of the others.
    around = np.minimum(plane.reach, span if span > 0 else np.inf)
    low, high = (plane.places - around).min(axis=0), (plane.places + around).max(axis=0)
    aspect = _WIDE[0] / _WIDE[1]
    inner = 1 - 2 * _ROOM
    width = max(float(high[0] - low[0]), float(high[1] - low[1]) * aspect, 1e-300) / inner
    sides = np.array([width, width / aspect])
    middle = (low + high) / 2
    shares = 0.5 + (plane.places - middle) / sides
    shares[:, 1] = 1 - shares[:, 1]
    return shares, plane.reach / sides, width


def _placed(shares: Points, widths: list[float]) -> tuple[list[_Spot | None], list[bool]]:
    """For each mark a spot for its label that covers no mark and no other label, or None; and which are crowded on a phone."""
    count = len(widths)
    spots: list[_Spot | None] = [None] * count
    crowded = [True] * count
    if count > MOST_LABELS_ON_MAP:
        return spots, crowded
    marks = shares * np.array(_WIDE)
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in marks.tolist()]
    for party, (x, y) in enumerate(marks.tolist()):
        for spot in _SPOTS:
            box = spot.box(x, y, widths[party])
            if _is_inside(box, _WIDE) and not any(
                _overlap(box, other) for at, other in enumerate(taken) if at != party
            ):
                spots[party] = spot
                taken.append(box)
                break
    marks = shares * np.array(_NARROW)
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in marks.tolist()]
    for party, (x, y) in enumerate(marks.tolist()):
        chosen = spots[party]
        if chosen is None:
            continue
        box = chosen.box(x, y, widths[party])
        crowded[party] = not _is_inside(box, _NARROW) or any(
            _overlap(box, other) for at, other in enumerate(taken) if at != party
        )
        if not crowded[party]:
            taken.append(box)
    return spots, crowded


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _is_inside(box: Box, size: tuple[float, float]) -> bool:
    return box[0] >= 2 and box[1] >= 2 and box[2] <= size[0] - 2 and box[3] <= size[1] - 24


def text_width(text: str) -> float:
    """About how wide a label is, in pixels: wide letters of East Asia and emoji count twice."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return _LETTER * (len(text) + wide) + 2


def _ruler(findings: Findings, width: float) -> str:
    """A bar of a round length, to measure the map with."""
    step = round_step(width * 0.2)
    share = 100 * step / width
    return (
        f'<g class="ruler"><line x1="2%" x2="{2 + share:.2f}%" y1="97%" y2="97%"/>'
        f'<text x="{2 + share:.2f}%" y="97%" dx="6" dy="4">{findings.style.text(step)}</text></g>'
    )


# The heat map as a drawing that needs no script: for pages of few parties, without JavaScript and on paper.


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


# The tree of merges: branches in SVG, in percentages of whatever width there is; leaves as a list beside it.


MOST_LABELS_ON_TREE = 80
_ROW, _TALLEST = 20.0, 1200.0


def tree_svg(findings: Findings) -> str:
    """The tree; empty for one party."""
    clustering = findings.clustering
    if clustering is None:
        return ""
    count = len(findings.labels)
    is_labeled = count <= MOST_LABELS_ON_TREE
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
