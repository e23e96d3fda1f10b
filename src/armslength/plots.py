"""How lines look in all of our figures: colors, dashes, and names beside their ends instead of a legend."""

import html
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from armslength.checks import shown
from armslength.errors import ParameterError
from armslength.files import atomic_write

# Okabe and Ito's colors, which people with any color vision can tell apart; yellow is too light for a line.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), "-")


def label_ends(axes: Any, ends: list[tuple[float, float, str, str]], bottom: float, top: float) -> None:
    """Names beside the right edge, moved apart where lines end close to each other."""
    room = 0.055  # of the panel's height for one label
    height = log10(top / bottom)
    wanted = sorted(
        (min(max(log10(y / bottom) / height, 0.0), 1.0), name, color) for _, y, name, color in ends
    )
    placed: list[float] = []
    for position, _, _ in wanted:
        placed.append(max(position, placed[-1] + room) if placed else position)
    overflow = max(0.0, placed[-1] - 1.0) if placed else 0.0
    for index in range(len(placed) - 1, -1, -1):
        ceiling = placed[index + 1] - room if index + 1 < len(placed) else 1.0
        placed[index] = min(placed[index] - (overflow if index == len(placed) - 1 else 0.0), ceiling)
    for position, (_, name, color) in zip(placed, wanted, strict=True):
        axes.annotate(
            name, (1.01, position), xycoords="axes fraction", fontsize=8.5, color=color, va="center"
        )


# The figure of a plan: relative error against sketch size and against ε, with the unresolvable region shaded.


FORMATS = (".html", ".svg", ".png")
_LOWEST, _HIGHEST = 1e-4, 100.0


@dataclass(frozen=True)
class Curve:
    """A named line: (x, relative error)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class PlanCurves:
    """All that the figure shows.

    Attributes:
        by_size: Error against sketch size, at the plan's ε.
        by_epsilon: Error against ε, each at its best size.
        epsilon: The plan's ε.
        sketch_dim: The recommended size.
        error: Its error.
        distance: Where the error is taken, in data units.
        title: What the plan is for.
    """

    by_size: Sequence[Curve]
    by_epsilon: Sequence[Curve]
    epsilon: float
    sketch_dim: int
    error: float
    distance: float
    title: str


def plan_figure(curves: PlanCurves) -> Any:
    """A Matplotlib figure with two panels."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra: only whoever plots needs it
    except ImportError:
        raise ParameterError(
            "plots must have Matplotlib, got none; run: pip install 'armslength[plot]'"
        ) from None
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    figure.suptitle(f"Plan for {curves.title}, at distance {curves.distance:,.4g}", fontsize=13)
    left, right = figure.subplots(1, 2, sharey=True)
    errors = [y for curve in (*curves.by_size, *curves.by_epsilon) for _, y in curve.points]
    shown_errors = [y for y in errors if _LOWEST <= y <= _HIGHEST]
    bottom, top = min([*shown_errors, 0.5]) / 1.5, min(max([*shown_errors, 2.0]) * 1.5, _HIGHEST)
    _panel(left, curves.by_size, "sketch size k (coordinates)", bottom, top)
    _panel(right, curves.by_epsilon, "ε of each release (best size for each ε)", bottom, top)
    left.set_ylabel("standard error of the squared distance,\nas a share of it")
    left.plot([curves.sketch_dim], [curves.error], "o", color="black", markersize=8, zorder=5)
    right.plot([curves.epsilon], [curves.error], "o", color="black", markersize=8, zorder=5)
    left.annotate(
        f"recommended: k={curves.sketch_dim:,}",
        (curves.sketch_dim, curves.error),
        xytext=(0, -18),
        textcoords="offset points",
        ha="center",
        fontsize=9,
    )
    return figure


def write_figure(figure: Any, path: str | os.PathLike[str], *, title: str, text: str) -> None:
    """The figure in a file of the kind that its name says, whole or not at all; .html is one page that needs no network."""
    kind = check_format(path)
    drawn = io.BytesIO()
    # Without a date and with fixed names, the same plan is the same file.
    from matplotlib import rc_context  # noqa: PLC0415  # an extra

    with rc_context({"svg.hashsalt": "armslength", "svg.fonttype": "path"}):
        if kind == ".png":
            figure.savefig(drawn, format="png", dpi=150, metadata={"Software": None})
        else:
            figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    content = drawn.getvalue()
    if kind == ".html":
        picture = content.decode()
        content = _page(title, text, picture[picture.index("<svg") :]).encode()
    with atomic_write(path) as file:
        file.write(content)


def check_format(path: str | os.PathLike[str]) -> str:
    """The ending of the name, if it says a kind of file that we write."""
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ParameterError(
            f"the plot's name must end in {', '.join(FORMATS)}, got {shown(os.fspath(path))}"
        )
    return kind


def _panel(axes: Any, curves: Sequence[Curve], label: str, bottom: float, top: float) -> None:
    """One panel with direct labels at the right ends of its lines."""
    drawn = [curve for curve in curves if curve.points]
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = []
    for number, curve in enumerate(drawn):
        color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
        x, y = zip(*curve.points, strict=True)
        if len(x) == 1:
            axes.plot(x, y, "D", color=color, markersize=6)
        else:
            axes.plot(x, y, color=color, linestyle=dashes, linewidth=2)
        ends.append((x[-1], y[-1], curve.name, color))
    axes.set_ylim(bottom, top)
    axes.axhspan(1, top, color="#888888", alpha=0.18, linewidth=0)
    axes.text(
        0.02, 0.97, "cannot be resolved", transform=axes.transAxes, fontsize=9, color="#444444", va="top"
    )
    axes.set_xlabel(label)
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(axes, ends, bottom, top)


def _page(title: str, text: str, picture: str) -> str:
    """One self-contained page."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1a1a1a; background: #fff; }}
figure {{ margin: 0; overflow-x: auto; }}
svg {{ width: 100%; min-width: 50rem; height: auto; }}
pre {{ overflow-x: auto; background: #f6f6f6; padding: 1rem; border-radius: 6px; font-size: 13px; }}
</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
<figure role="img" aria-label="Relative error against sketch size and against epsilon">{picture}</figure>
<pre>{html.escape(text)}</pre>
</body>
</html>
"""
