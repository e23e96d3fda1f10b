"""The map of the parties as SVG: percentages instead of a view box, so that text keeps its size on every screen."""

import unicodedata
from dataclasses import dataclass

import numpy as np

from armslength.reporting.findings import Findings
from armslength.reporting.markup import escaped
from armslength.reporting.plane import Plane, Points
from armslength.reporting.scale import round_step

MOST_LABELED = 60

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
    many = " many" if len(texts) > MOST_LABELED else ""
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
    if count > MOST_LABELED:
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
