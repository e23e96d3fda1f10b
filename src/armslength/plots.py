"""Figures with Matplotlib: heat maps, intervals, trees, maps, and the curves of a plan."""

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armslength.checks import short_repr
from armslength.errors import MissingPackageError, ParameterError, plural
from armslength.files import atomic_write
from armslength.results import LONGEST_LABEL, shortened, three_digits

Numbers = NDArray[np.float64]
Marks = NDArray[np.bool_]
Box = tuple[float, float, float, float]  # left, top, right, bottom
Curves = dict[str, list[tuple[float, float]]]  # by name: (x, relative error)

# Okabe and Ito's colors, which people with any color vision can tell apart; yellow is too light for a line.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), "-")
FORMATS = (".svg", ".png")
INCONCLUSIVE = "inconclusive: may be 0"
_GRAY, _MIDDLE, _LIGHT = "#767676", "#a8a8a8", "#ececec"
_DASHED = (0, (3, 2))
_MOST_LABELS = 60  # of an axis
_MOST_LINES = 2000  # of a forest plot
_MOST_NUMBERS = 12  # rows and columns of a heat map with numbers in its cells
_LOWEST, _HIGHEST = 1e-4, 100.0  # relative errors in the figure of a plan


def heat_map(
    value: Numbers, resolved: Marks, labels: Sequence[Sequence[str]], label: str, ax: Any, *, within: bool
) -> Any:
    """Axes with a colored cell for each pair; inconclusive pairs are gray and hatched.

    `within` leaves the diagonal empty. Here and below, `ax` is where to draw, None for a new figure, and `label` names
    the numbers, with their unit.
    """
    rows, columns = value.shape
    has_numbers = max(rows, columns) <= _MOST_NUMBERS
    inches = 0.52 if has_numbers else 0.36  # of a cell
    axes = _axes(ax, 3.2 + inches * min(columns, 30), 2.2 + inches * min(rows, 30))
    own = np.eye(rows, columns, dtype=np.bool_) if within else np.zeros(value.shape, dtype=np.bool_)
    colored = resolved & np.isfinite(value) & ~own
    lowest = min(
        0.0, float(np.min(value, initial=0.0, where=colored))
    )  # small differences must not look large
    shades = np.ma.array(value, mask=~colored)
    image = axes.imshow(shades, cmap="viridis_r", aspect="equal", vmin=lowest)
    if colored.any():
        axes.figure.colorbar(image, ax=axes, label=label, shrink=0.8)
    else:
        axes.set_title(label, fontsize=10)
    hatched = ~resolved & ~own
    if hatched.any():
        style: dict[str, Any] = {"facecolor": _LIGHT, "edgecolor": _MIDDLE, "hatch": "////", "linewidth": 0.0}
        outlines = _matplotlib("matplotlib.path").Path(*_cell_outlines(hatched))
        axes.add_patch(_matplotlib("matplotlib.patches").PathPatch(outlines, **style, label=INCONCLUSIVE))
        _legend(axes)
    _name_ticks(axes.yaxis, labels[0])
    _name_ticks(axes.xaxis, labels[1])
    axes.tick_params(axis="x", rotation=90 if max(map(len, labels[1]), default=0) > 3 else 0)
    if has_numbers:
        for i, j in zip(*np.nonzero(colored | hatched), strict=True):
            is_light = hatched[i, j] or image.norm(value[i, j]) < 0.5
            box = {"facecolor": _LIGHT, "linewidth": 0, "pad": 1.0} if hatched[i, j] else None
            look = {"ha": "center", "va": "center", "fontsize": 7, "color": "black" if is_light else "white"}
            axes.text(j, i, three_digits(value[i, j]), **look, bbox=box)
    return axes


def forest(
    labels: Sequence[str | tuple[str, str]],
    ends: tuple[Numbers, Numbers, Numbers],
    resolved: Marks,
    label: str,
    ax: Any,
    *,
    is_sorted: bool = False,
    marks: Sequence[tuple[float, str]] = (),
    words: tuple[str, str] = ("differ", INCONCLUSIVE),
) -> Any:
    """Axes with a line for each interval, the largest value at the top unless `is_sorted`; infinite ends are arrows.

    `ends` are values, lower and upper ends; those `resolved` get a filled dot and a full line, the others a dashed one,
    and `words` say what that means; `marks` are vertical lines and what they mean.
    """
    step = max(1, -(-len(labels) // _MOST_LINES))
    order = (np.arange(len(labels)) if is_sorted else np.argsort(-ends[0], kind="stable"))[::step]
    value, lower, upper = (numbers[order] for numbers in ends)
    resolved, labels = resolved[order], [labels[index] for index in order]
    count = len(value)
    is_short = count <= _MOST_LABELS
    axes = _axes(ax, 7.0, 1.4 + 0.24 * min(max(count, 2), _MOST_LABELS))
    numbers = np.concatenate([value, lower, upper, [x for x, _ in marks], [0.0]])
    finite = numbers[np.isfinite(numbers)]
    low, high = float(finite.min()), float(finite.max())
    margin = 0.04 * (high - low) or 1.0
    left, right = low - margin, high + margin
    places = np.arange(count)
    for chosen, word, color, dashes, fill in (
        (resolved, words[0], COLORS[0], "-", COLORS[0]),
        (~resolved, words[1], _GRAY, _DASHED if is_short else "-", "white"),
    ):
        if not chosen.any():
            continue
        y = places[chosen]
        starts, stops = np.maximum(lower[chosen], left), np.minimum(upper[chosen], right)
        look = {"linewidth": 1.6} if is_short else {"linewidth": 0.8, "alpha": 0.35}
        axes.hlines(y, starts, stops, colors=color, linestyles=[dashes], **look)
        style = {"linestyle": "none", "color": color, "markersize": 5 if is_short else 2}
        axes.plot(value[chosen], y, marker="o", markerfacecolor=fill, label=word, **style)
        for end, edge, arrow in ((lower, left, "<"), (upper, right, ">")):
            open_ends = places[chosen & ~np.isfinite(end)]
            axes.plot(np.full(len(open_ends), edge), open_ends, marker=arrow, **style)
    axes.axvline(0.0, color="black", linewidth=0.8, zorder=0)
    for (x, text), color in zip(marks, COLORS[1:], strict=False):
        axes.axvline(x, color=color, linestyle="--", linewidth=1.2, zorder=0, label=text)
    axes.set_xlim(left, right)
    axes.set_ylim(max(count, 1) - 0.4, -0.6)
    if not count:
        axes.text(0.5, 0.5, "no pairs", ha="center", transform=axes.transAxes, color=_GRAY)
    _name_ticks(axes.yaxis, labels)
    if step > 1:
        axes.set_ylabel(f"one row in {step} is drawn")
    return _finished(axes, label)


def ends_of(numbers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """(value, lower, upper) of numbers that have these along their last axis."""
    value, lower, upper = numbers.reshape(-1, 3).T
    return value, lower, upper


def bars(
    labels: Sequence[str],
    ends: tuple[Numbers, Numbers, Numbers],
    resolved: Marks,
    label: str,
    ax: Any,
    *,
    words: tuple[str, str],
) -> Any:
    """The axes of `forest` with a bar from 0 to each value, in this order; the first lines, as many as can have names."""
    first = slice(_MOST_LABELS)
    value, lower, upper = (numbers[first] for numbers in ends)
    resolved = resolved[first]
    axes = forest(labels[first], (value, lower, upper), resolved, label, ax, is_sorted=True, words=words)
    colors = [COLORS[0] if is_resolved else _GRAY for is_resolved in resolved.tolist()]
    axes.barh(np.arange(len(value)), value, height=0.7, color=colors, alpha=0.25, linewidth=0)
    if len(labels) > _MOST_LABELS:
        axes.set_ylabel(f"the first {_MOST_LABELS} of {len(labels):,}")
    return axes


def tree(
    linkage: Numbers, within_group: Marks, order: Sequence[int], labels: Sequence[str], label: str, ax: Any
) -> Any:
    """Axes with the tree, its leaves on the left in this order; merges of parties that differ are dashed and gray.

    `linkage` is (n−1) x 4, as SciPy has it.
    """
    leaves = len(labels)
    axes = _axes(ax, 7.0, 1.4 + 0.24 * min(leaves, _MOST_LABELS))
    is_short = leaves <= _MOST_LABELS
    look: dict[bool, dict[str, Any]] = {
        True: {"color": COLORS[0], "linestyle": "-"},
        False: {"color": _GRAY, "linestyle": _DASHED if is_short else "-"},
    }
    middle, height = np.zeros(2 * leaves - 1), np.zeros(2 * leaves - 1)
    middle[list(order)] = np.arange(leaves)
    height[leaves:] = linkage[:, 2]
    for merge, parts in enumerate(linkage[:, :2].astype(np.int64)):
        middle[leaves + merge] = middle[parts].mean()
        top = height[leaves + merge]
        x, y = (height[parts[0]], top, top, height[parts[1]]), np.repeat(middle[parts], 2)
        width = 1.8 if is_short else 0.8
        axes.plot(x, y, **look[bool(within_group[merge])], linewidth=width, solid_capstyle="round")
    for is_within, word in ((True, "no two are found to differ"), (False, "some differ")):
        if (within_group == is_within).any():
            axes.plot([], [], **look[is_within], label=word)
    axes.set_xlim(0, 1.04 * float(height.max()) or 1.0)
    axes.set_ylim(leaves - 0.4, -0.6)
    _name_ticks(axes.yaxis, [labels[leaf] for leaf in order])
    return _finished(axes, label)


def short_name(label: str | tuple[str, str]) -> str:
    """A label, or a pair of them, for a figure: not too long, and with escaped dollar signs."""
    if isinstance(label, tuple):
        return " – ".join(map(short_name, label))
    return shortened(label, LONGEST_LABEL).replace("$", r"\$")


def _axes(ax: Any, width: float, height: float) -> Any:
    """The axes to draw on: the given ones, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    return _matplotlib("matplotlib.pyplot").subplots(figsize=(width, height), layout="compressed")[1]


def _matplotlib(module: str) -> Any:
    """A module of Matplotlib, which is an extra: only whoever plots needs it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingPackageError('plots need Matplotlib: pip install "armslength[plot]"') from None


def _cell_outlines(chosen: Marks) -> tuple[Numbers, NDArray[np.uint8]]:
    """Vertices and codes of one path around the chosen cells: a rectangle for each run of cells in a row."""
    edges = np.diff(np.pad(chosen.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    (row, start), (_, stop) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    x = np.stack([start, stop, stop, start, start], axis=1) - 0.5
    y = np.stack([row, row, row + 1, row + 1, row], axis=1) - 0.5
    codes = np.tile(np.array([1, 2, 2, 2, 79], dtype=np.uint8), len(row))  # move, lines, close
    return np.stack([x.ravel(), y.ravel()], axis=1), codes


def _name_ticks(axis: Any, labels: Sequence[str | tuple[str, str]]) -> None:
    """Names at the ticks: all of them, or one in so many where there are too many to read."""
    step = max(1, -(-len(labels) // _MOST_LABELS))
    numbers = range(0, len(labels), step)
    size = 9 if len(labels) <= _MOST_LABELS // 2 else 7
    axis.set_ticks(numbers, [short_name(labels[number]) for number in numbers], fontsize=size)
    if step > 1:
        axis.set_label_text(f"{plural(len(labels), 'row')}, one name in {step}")


def _legend(axes: Any) -> None:
    """A legend above the picture, if there is anything to explain."""
    if axes.get_legend_handles_labels()[0]:
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        axes.legend(**above, ncols=2, frameon=False, fontsize=9, handleheight=1.2)


def _finished(axes: Any, label: str) -> Any:
    axes.set_xlabel(label)
    _clean(axes, "x")
    _legend(axes)
    return axes


def _clean(axes: Any, grid: str) -> None:
    axes.grid(visible=True, axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


class LabelPlace(NamedTuple):
    """Where a label goes: an offset from its mark in pixels, to the right and down, and which end of the text is there."""

    dx: float
    dy: float
    anchor: str


LABEL_PLACES = (
    LabelPlace(8, 4, "start"),
    LabelPlace(-8, 4, "end"),
    LabelPlace(0, -9, "middle"),
    LabelPlace(0, 18, "middle"),
    LabelPlace(7, -6, "start"),
    LabelPlace(7, 14, "start"),
    LabelPlace(-7, -6, "end"),
    LabelPlace(-7, 14, "end"),
)


def free_places(
    marks: Numbers,
    texts: Sequence[str],
    size: Sequence[float],
    choices: Sequence[Sequence[LabelPlace]] | None = None,
) -> list[LabelPlace | None]:
    """For each mark the first of its places inside the picture where its label covers no other mark or label; None without one.

    `marks` are shares of width and height from the upper left; `size` is in pixels.
    """
    points = (marks * np.array(size)).tolist()
    boxes = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    places: list[LabelPlace | None] = []
    for number, ((x, y), text) in enumerate(zip(points, texts, strict=True)):
        others = [*boxes[:number], *boxes[number + 1 :]]
        areas = (
            (place, _label_area(place, x, y, text_width(text)))
            for place in (LABEL_PLACES if choices is None else choices[number])
        )
        place, area = next((pair for pair in areas if _is_free(pair[1], size, others)), (None, None))
        places.append(place)
        boxes += [area] if area else []
    return places


def _label_area(place: LabelPlace, x: float, y: float, width: float) -> Box:
    left = x + place.dx - {"start": 0.0, "middle": width / 2, "end": width}[place.anchor]
    top = y + place.dy - 11
    return left, top, left + width, top + 15


def _is_free(area: Box, size: Sequence[float], others: list[Box]) -> bool:
    """Whether a label lies inside the picture, above what stands at its bottom, and covers none of the others."""
    left, top, right, bottom = area
    if left < 2 or top < 2 or right > size[0] - 2 or bottom > size[1] - 24:
        return False
    return not any(left < x1 and x0 < right and top < y1 and y0 < bottom for x0, y0, x1, y1 in others)


def text_width(text: str) -> float:
    """About how wide a label is, in pixels: wide letters of East Asia and emoji count twice."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return 6.3 * (len(text) + wide) + 2


@dataclass(frozen=True)
class PlanCurves:
    """The contents of a plan's figure."""

    title: str
    label: str  # what the curves show: the smaller, the better; from 1 on, nothing can be resolved
    by_size: Curves  # against sketch size, at the plan's ε
    by_epsilon: Curves  # against ε, each at its best size
    epsilon: float
    sketch_dim: int  # recommended
    value: float  # at that size


def plan_figure(curves: PlanCurves) -> Any:
    """A figure with curves against sketch size and against ε, with the unresolvable region shaded."""
    figure = _matplotlib("matplotlib.figure").Figure(figsize=(12, 5.2), layout="constrained")
    figure.suptitle(f"Plan for {curves.title}", fontsize=13)
    left, right = figure.subplots(1, 2, sharey=True)
    points = (*curves.by_size.values(), *curves.by_epsilon.values())
    values = [y for line in points for _, y in line if _LOWEST <= y <= _HIGHEST]
    bottom, top = min([*values, 0.5]) / 1.5, min(max([*values, 2.0]) * 1.5, _HIGHEST)
    _panel(left, curves.by_size, "sketch size k (coordinates)", bottom, top)
    _panel(right, curves.by_epsilon, "ε of each release (best size for each ε)", bottom, top)
    left.set_ylabel(curves.label)
    for axes, x in ((left, curves.sketch_dim), (right, curves.epsilon)):
        axes.plot([x], [curves.value], "o", color="black", markersize=8, zorder=5)
    below = {"xytext": (0, -18), "textcoords": "offset points", "ha": "center"}
    text = f"recommended: k={curves.sketch_dim:,}"
    left.annotate(text, (curves.sketch_dim, curves.value), **below, fontsize=9)
    return figure


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes the figure to a file of the type of its name, whole or not at all."""
    kind = check_format(path)
    # Without a date and with fixed names, the same plan is the same file.
    metadata = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}[kind]
    fixed = {"svg.hashsalt": "armslength", "svg.fonttype": "path"}
    with _matplotlib("matplotlib").rc_context(fixed), atomic_write(path) as file:
        figure.savefig(file, format=kind[1:], dpi=150, metadata=metadata)


def check_format(path: str | os.PathLike[str]) -> str:
    """The extension of the name, if it is one of FORMATS."""
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ParameterError(
            f"the plot's name must end in {', '.join(FORMATS)}, got {short_repr(os.fspath(path))}"
        )
    return kind


def _panel(axes: Any, curves: Curves, label: str, bottom: float, top: float) -> None:
    """One panel with direct labels at the right ends of its lines."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = []
    for number, (name, points) in enumerate((name, points) for name, points in curves.items() if points):
        color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
        x, y = zip(*points, strict=True)
        if len(x) == 1:
            axes.plot(x, y, "D", color=color, markersize=6)
        else:
            axes.plot(x, y, color=color, linestyle=dashes, linewidth=2)
        ends.append((x[-1], y[-1], name, color))
    axes.set_ylim(bottom, top)
    axes.axhspan(1, top, color="#888888", alpha=0.18, linewidth=0)
    look = {"fontsize": 9, "color": "#444444", "va": "top"}
    axes.text(0.02, 0.97, "cannot be resolved", transform=axes.transAxes, **look)
    axes.set_xlabel(label)
    _clean(axes, "both")
    label_ends(axes, ends, bottom, top)


def label_ends(axes: Any, ends: list[tuple[float, float, str, str]], bottom: float, top: float) -> None:
    """Names beside the right edge, moved apart where lines end close to each other."""
    spacing = 0.055  # of the panel's height for one label
    names = sorted((log10(y / bottom) / log10(top / bottom), name, color) for _, y, name, color in ends)
    offsets = spacing * np.arange(len(names))
    ends_of_lines = np.clip([height for height, _, _ in names], 0.0, 1.0)
    # First up from the label below, then down from the top.
    heights = np.minimum(np.maximum.accumulate(ends_of_lines - offsets) + offsets, 1.0 - offsets[::-1])
    for height, (_, name, color) in zip(heights, names, strict=True):
        look = {"xycoords": "axes fraction", "fontsize": 8.5, "va": "center", "color": color}
        axes.annotate(name, (1.01, height), **look)
