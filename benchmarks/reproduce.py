"""`make paper`: the paper's claims beside measurements, into docs/figures and docs/paper.md."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from reproduction.crossing import crossings, measured_at_crossing
from reproduction.drawing import draw_crossing, draw_limits, draw_sweep, draw_times
from reproduction.limits import best_ratios, best_sizes, central_errors, hamming_errors
from reproduction.methods import SWEEPS
from reproduction.page import page
from reproduction.sweeps import sweep
from reproduction.times import faster_interval, papers_size, times

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
RESULTS = Path(__file__).parent / "reproduction" / "measured.json"
_CROSSING_SPARSITY = 4


def measure() -> dict[str, Any]:
    """All numbers."""
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - started:6.0f} s  {text}", flush=True)

    say("time against d")
    measured_times = times()
    report: dict[str, Any] = {
        "times": measured_times,
        "faster_interval": faster_interval(measured_times),
        "papers_size": papers_size(),
        "sweeps": {name: sweep(name, say) for name in SWEEPS},
    }
    say("crossings")
    report["crossings"] = crossings()
    ratio, error = measured_at_crossing(_CROSSING_SPARSITY)
    report["crossing_ratio"] = {"sparsity": _CROSSING_SPARSITY, "ratio": ratio, "error": error}
    say("best sizes")
    report["best_sizes"], report["best_ratios"] = best_sizes(), best_ratios()
    say("lower bounds")
    report["hamming"], report["central"] = hamming_errors(), central_errors()
    say("done")
    return report


def draw(report: dict[str, Any]) -> None:
    """All figures."""
    for name, found in report["sweeps"].items():
        draw_sweep(name, found, FIGURES / f"variance-{name.replace('_', '-')}.svg")
    draw_crossing(report["crossings"], FIGURES / "crossing.svg")
    draw_times(report["times"], report["faster_interval"], FIGURES / "time.svg")
    draw_limits(report["hamming"], report["central"], FIGURES / "lower-bounds.svg")


def main() -> None:
    """Measures, draws and writes; with --draw, from the numbers of the last run."""
    if "--draw" in sys.argv[1:]:
        report = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        report = measure()
        RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        report = json.loads(RESULTS.read_text(encoding="utf-8"))
    draw(report)
    (ROOT / "docs" / "paper.md").write_text(page(report), encoding="utf-8")
    print("written: docs/paper.md, docs/figures/")


if __name__ == "__main__":
    main()
