"""`make bench`: ratios against named peers in the same run, memory, start, growth; `cases.py` says what is measured."""

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from cases import QUICK, Sizes, all_cases
from growth import draw_growth, growth
from parts import parts
from processes import memory, starts
from report import PAGE, RESULTS, table, write_page
from timing import measured

from armslength.threads import available_threads

ROOT = Path(__file__).parent.parent
PEERS = ("armslength", "numba", "numpy", "scipy", "scikit-learn", "opendp", "pyarrow")


def _processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """The commit that is measured, with a mark if files have changed since."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603  # git is found as the user finds it
    return done.stdout.strip()


def main() -> None:
    """Measures, prints the table, writes the JSON; of a whole run the page and the plot too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run smaller sizes and write no page")
    parser.add_argument(
        "--only", default="", help="run only cases whose name contains this text, and print without writing"
    )
    arguments = parser.parse_args()
    quick = arguments.quick
    rows = []
    sizes = QUICK if quick else Sizes()
    for case in all_cases(sizes):
        if arguments.only in case.work:
            rows.append(measured(case, sizes.repeats))
            print(f"{rows[-1]['ratio']:8.2f}x  {case.work}, against {case.peer}", flush=True)
    print(f"\n{table(rows)}\n")
    if arguments.only:
        return
    report = {
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _processor(),
        "threads": available_threads(),
        "quick": quick,
        "versions": {"Python": sys.version.split()[0], **{name: version(name) for name in PEERS}},
        "rows": rows,
        "parts": parts(sizes),
        "starts": starts(),
        "memory": memory(sizes.memory),
        "growth": growth(sizes.growth_steps),
    }
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / ("quick.json" if quick else "full.json")
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"start: first {report['starts']['first']:.1f} s, then {report['starts']['second']:.2f} s")
    for name, each in report["memory"].items():
        print(
            f"memory beyond the output: {each['beyond_output'] / 1e6:.0f} MB for {each['input'] / 1e6:.0f} MB of {name}"
        )
    print(f"written: {target.relative_to(ROOT)}")
    if not quick:
        draw_growth(report["growth"], ROOT / "docs" / "benchmarks-growth.svg")
        write_page()
        print(f"written: {PAGE.relative_to(ROOT)}, docs/benchmarks-growth.svg")


if __name__ == "__main__":
    main()
