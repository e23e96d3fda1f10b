"""docs/paper.md, from the numbers of a run."""

import math
from pathlib import Path
from typing import Any

from reproduction.drawing import table

_PAPERS = "SJLT, paper's s, Laplace"
_TEXT = Path(__file__).parent / "page.md"


def page(report: dict[str, Any]) -> str:
    """The whole page: page.md with its tables."""
    crossing = table(
        ["s", "printed e^(−s)", "exact, small distances", "exact, large distances"],
        (
            [str(row["sparsity"]), *(f"{row[key]:.2g}" for key in ("printed", "small", "large"))]
            for row in report["crossings"]
        ),
    )
    sizes = table(
        ["ε", "ε²D/5.29", "exact best k", "best of the measured sizes"],
        (
            [f"{row['epsilon']:g}", f"{row['formula']:.0f}", str(row["exact"]), str(row["measured"])]
            for row in report["best_sizes"]
        ),
    )
    interval = report["faster_interval"]
    k, s = report["papers_size"]
    ratio = report["crossing_ratio"]
    text = _TEXT.read_text(encoding="utf-8")
    words = {
        "crossing": crossing,
        "best_sizes": sizes,
        "agreement": _agreement(report),
        "points": str(sum(len(each["points"]) for sweep in report["sweeps"].values() for each in sweep)),
        "worst": f"{_worst(report):.1f}",
        "ratio": f"{ratio['ratio']:.2f} ± {ratio['error']:.2f}",
        "ratio_s": str(ratio["sparsity"]),
        "best_kenthapadi": f"{report['best_ratios']['Kenthapadi et al.']:.0f}",
        "best_papers": f"{report['best_ratios'][_PAPERS]:.1f}",
        "least_ratio": _crossing_ratio(report, 0),
        "most_ratio": _crossing_ratio(report, -1),
        "most_s": str(report["crossings"][-1]["sparsity"]),
        "largest": f"{report['times'][-1]['input_dim']:,}",
        "central_limit": _central_ratio(report),
        "interval": "nowhere" if interval is None else f"from d = {interval[0]:,} to {interval[1]:,}",
        "response_limit": _above_limit(report, "randomized response"),
        "sketch_limit": _above_limit(report, "our best sketch"),
        "k": str(k),
        "s": str(s),
        "kenthapadi": f"{_ratio_at(report, 'Kenthapadi et al.'):.0f}",
        "papers_s": f"{_ratio_at(report, _PAPERS):.0f}",
        "response": f"{1 / _ratio_at(report, 'randomized response'):.1f}",
    }
    for name, value in words.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def _points(report: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (each["method"], point)
        for sweep in report["sweeps"].values()
        for each in sweep
        for point in each["points"]
    ]


def _worst(report: dict[str, Any]) -> float:
    """The largest deviation from theory, in standard errors of the measurement."""
    deviations = (abs(point["variance"] - point["theory"]) / point["error"] for _, point in _points(report))
    return float(max(deviations))


def _agreement(report: dict[str, Any]) -> str:
    """For each method: how measured and predicted variance compare, over all of its points."""
    by_method: dict[str, list[dict[str, Any]]] = {}
    for method, point in _points(report):
        by_method.setdefault(method, []).append(point)
    rows = []
    for method, points in by_method.items():
        ratio = math.fsum(point["variance"] / point["theory"] for point in points) / len(points)
        error = math.sqrt(math.fsum((point["error"] / point["theory"]) ** 2 for point in points)) / len(
            points
        )
        rows.append([method, str(len(points)), f"{ratio:.3f} ± {error:.3f}"])
    return table(["method", "points", "measured / theory"], rows)


def _crossing_ratio(report: dict[str, Any], index: int) -> str:
    """How much smaller than printed the δ is, for large and for small distances."""
    row = report["crossings"][index]
    return f"{row['printed'] / row['large']:,.0f} to {row['printed'] / row['small']:,.0f}"


def _central_ratio(report: dict[str, Any]) -> str:
    ratios = [row["error"] / row["bound"] for row in report["central"]]
    return f"{min(ratios):.0f} to {max(ratios):.0f}"


def _above_limit(report: dict[str, Any], name: str) -> str:
    """How many times the lower bound the measured error is, at the longest vectors."""
    row = report["hamming"][-1]
    return f"{row['errors'][name] / row['bound']:.1f}"


def _ratio_at(report: dict[str, Any], method: str) -> float:
    """Its variance against that of the SJLT with s = 1 and Laplace noise, at ε = 1, by theory."""
    at_one = {
        each["method"]: float(next(point["theory"] for point in each["points"] if point["at"] == 1.0))
        for each in report["sweeps"]["epsilon"]
    }
    return at_one[method] / at_one["SJLT, s=1, Laplace"]
