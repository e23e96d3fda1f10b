"""The figures: labeled axes, names beside the lines, theory as lines and measurements as points."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from armslength.plots import COLORS, DASHES, label_ends
from reproduction.crossing import SPARSITIES
from reproduction.methods import METHODS, SWEEPS

_REFERENCE = METHODS[0].name
_GRAY = "#7F7F7F"
_PALETTE = (*COLORS, _GRAY)
_STYLES = (*DASHES, (0, (1, 1)))


def _places() -> dict[str, int]:
    """A color and a dash for each method: no two of one panel share them."""
    local = [method.name for method in METHODS if method.is_local]
    curator = [method.name for method in METHODS if not method.is_local]
    return {name: number for names in (local, [_REFERENCE, *curator]) for number, name in enumerate(names)}


mpl.rcParams["svg.hashsalt"] = "armslength"
mpl.rcParams["svg.fonttype"] = "path"


def draw_sweep(name: str, found: Sequence[dict[str, Any]], path: Path) -> None:
    """Variance against one parameter; what one curator must do stands in a panel of its own, beside our line."""
    label, stations, _ = SWEEPS[name]
    ticks = None if name == "delta" else [round(value) if value > 8 else value for value in stations]
    local = [each for each in found if each["is_local"]]
    curator = [each for each in found if not each["is_local"]]
    if name not in ("epsilon", "distance"):
        _save(_panels([(local, "each party alone")], label, ticks), path)
        return
    reference = [each for each in local if each["method"] == _REFERENCE]
    _save(
        _panels(
            [(local, "each party alone"), (reference + curator, "one curator sees everything")], label, ticks
        ),
        path,
    )


def _panels(
    panels: Sequence[tuple[Sequence[dict[str, Any]], str]], label: str, ticks: Sequence[float] | None
) -> Figure:
    figure = Figure(figsize=(6.6 * len(panels) + 1.2, 4.8), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    values = [v for lines, _ in panels for each in lines for _, v in each["line"]]
    bottom, top = min(values) / 2, max(values) * 2
    for panel, (lines, title) in zip(axes, panels, strict=True):
        panel.set(xscale="log", yscale="log", xlabel=label, ylim=(bottom, top))
        panel.set_title(title, fontsize=11)
        ends = []
        for each in lines:
            number = _places()[each["method"]]
            color, dashes = _PALETTE[number], _STYLES[number]
            x, y = zip(*each["line"], strict=True)
            panel.plot(x, y, color=color, linestyle=dashes, linewidth=1.8)
            points = each["points"]
            panel.plot(
                [point["at"] for point in points],
                [point["variance"] for point in points],
                "o",
                color=color,
                markersize=5,
            )
            ends.append((x[-1], y[-1], each["method"], color))
        _finish(panel)
        if ticks is not None:
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.minorticks_off()
        label_ends(panel, ends, bottom, top)
    axes[0].set_ylabel("variance of the estimated squared distance")
    return figure


def draw_crossing(found: Sequence[dict[str, Any]], path: Path) -> None:
    """The δ at which both laws cross, against s."""
    figure = Figure(figsize=(7.8, 4.6), layout="constrained")
    axes = figure.subplots()
    lines = (
        ("printed", "printed: e^(−s)", COLORS[1], "--"),
        ("small", "exact, small distances", COLORS[0], "-"),
        ("large", "exact, large distances", COLORS[2], "-."),
    )
    bottom, top = min(each["small"] for each in found) / 5, 3.0
    axes.set(
        yscale="log",
        xlabel="sparsity s",
        ylabel="δ at which the variances are equal (ε = 1)",
        ylim=(bottom, top),
    )
    axes.set_xticks(SPARSITIES)
    ends = []
    for key, name, color, dashes in lines:
        y = [each[key] for each in found]
        axes.plot(SPARSITIES, y, color=color, linestyle=dashes, linewidth=2, marker="o", markersize=4)
        ends.append((float(SPARSITIES[-1]), y[-1], name, color))
    axes.text(
        0.03, 0.05, "Laplace has the smaller variance below a line", transform=axes.transAxes, fontsize=9
    )
    _finish(axes)
    label_ends(axes, ends, bottom, top)
    _save(figure, path)


def draw_times(found: Sequence[dict[str, Any]], interval: tuple[int, int] | None, path: Path) -> None:
    """Time for a vector against d, the measured interval in which the FJLT is faster shaded."""
    figure = Figure(figsize=(7.8, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="input dimension d",
        ylabel="milliseconds for one dense vector, one thread",
    )
    x = [row["input_dim"] for row in found]
    values = [value for row in found for value in row["milliseconds"].values()]
    bottom, top = min(values) / 2, max(values) * 2
    axes.set_ylim(bottom, top)
    ends = []
    for number, name in enumerate(found[0]["milliseconds"]):
        y = [row["milliseconds"][name] for row in found]
        axes.plot(x, y, color=COLORS[number], linestyle=DASHES[number], linewidth=2, marker="o", markersize=4)
        ends.append((float(x[-1]), y[-1], name, COLORS[number]))
    if interval is not None:
        axes.axvspan(*interval, color="#888888", alpha=0.15, linewidth=0)
        axes.text(
            0.03, 0.93, "shaded: FJLT faster than SJLT at the paper's s", transform=axes.transAxes, fontsize=9
        )
    _finish(axes)
    label_ends(axes, ends, bottom, top)
    _save(figure, path)


def draw_limits(hamming: Sequence[dict[str, Any]], central: Sequence[dict[str, Any]], path: Path) -> None:
    """Measured errors above the lower bounds for any method."""
    figure = Figure(figsize=(14.4, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="length d of two random binary vectors",
        ylabel="root mean squared error (ε = 1)",
    )
    left.set_title("Hamming distance, each party alone", fontsize=11)
    names = [*hamming[0]["errors"], "lower bound, any method"]
    curves = [[row["errors"][name] for row in hamming] for name in names[:-1]]
    curves.append([row["bound"] for row in hamming])
    _lines(left, [row["input_dim"] for row in hamming], names, curves)
    right.set(xscale="log", yscale="log", xlabel="ε", ylabel="mean absolute error of one distance")
    right.set_title("one curator sees everything", fontsize=11)
    curves = [[row["error"] for row in central], [row["bound"] for row in central]]
    names = ["central curator", "lower bound, any method"]
    _lines(right, [row["epsilon"] for row in central], names, curves)
    _save(figure, path)


def _lines(axes: Any, x: Sequence[float], names: Sequence[str], curves: Sequence[Sequence[float]]) -> None:
    values = [value for curve in curves for value in curve]
    bottom, top = min(values) / 2, max(values) * 2
    axes.set_ylim(bottom, top)
    ends = []
    for number, (name, y) in enumerate(zip(names, curves, strict=True)):
        is_bound = name.startswith("lower bound")
        color = COLORS[-1] if is_bound else COLORS[number]
        axes.plot(
            x,
            y,
            color=color,
            linestyle="--" if is_bound else "-",
            linewidth=2,
            marker=None if is_bound else "o",
            markersize=4,
        )
        ends.append((float(x[-1]), y[-1], name, color))
    axes.fill_between(x, bottom, curves[-1], color="#888888", alpha=0.15, linewidth=0)
    _finish(axes)
    label_ends(axes, ends, bottom, top)


def _finish(axes: Any) -> None:
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---:"] * len(heads)) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
