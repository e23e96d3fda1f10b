"""Every target in a process of its own, two at a time, and what came out of it."""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from armslength.progress import progress
from audit.fuzzing.targets import TARGETS
from audit.fuzzing.verdicts import SLOWEST, Target
from audit.fuzzing.worker import MOST_RESIDENT
from audit.sections import Check, Section

_QUICK = 2000  # how much less a quick run does
_LONGEST = 1500  # seconds for one target
_MEMORY = Path("/dev/shm")  # noqa: S108  # folders of our own are made in it


def section_of(*, quick: bool) -> Section:
    """Runs every target, two at a time."""
    order = sorted(TARGETS, key=lambda target: "table" not in target.name)  # the slow ones first
    with (
        tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder,
        ThreadPoolExecutor(2) as pool,
        progress("fuzzing", len(TARGETS), "targets", shown=not quick) as advance,
    ):

        def measure(target: Target) -> tuple[Target, dict[str, Any]]:
            measured = _measured(target, max(20, target.runs // (_QUICK if quick else 1)), Path(folder))
            advance(1)
            return target, measured

        found = dict(pool.map(measure, order))
    return _section([(target, found[target]) for target in TARGETS], 20 * len(TARGETS) if quick else 10**6)


def _measured(target: Target, runs: int, folder: Path) -> dict[str, Any]:
    """What happened to one target; a process that died is a finding, whatever it died of."""
    out = folder / f"{re.sub('[^a-z]+', '-', target.name.lower())}.json"
    own = out.with_suffix("")
    own.mkdir()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "audit.fuzzing.worker", target.name, str(runs), "1", str(out)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LONGEST,
            env={**os.environ, "TMPDIR": str(own)},
        )
        log, code = ended.stderr, ended.returncode
    except subprocess.TimeoutExpired:
        log, code = "", -1
    known = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    measured: dict[str, Any] = {
        "executions": 0,
        "seconds": 0.0,
        "verdicts": {},
        "slowest": 0.0,
        "peak": 0,
        "finding": "",
        **known,
    }
    measured["features"] = max((int(number) for number in re.findall(r" ft: (\d+) ", log)), default=0)
    if code != 0 or measured["executions"] < runs:
        measured["finding"] = (
            measured["finding"] or f"ended with {code} after {measured['executions']}: {log[-300:]}"
        )
        _keep(target, folder)
    return measured


def _keep(target: Target, folder: Path) -> None:
    """The inputs that did it go where the next developer finds them."""
    results = Path(__file__).parent.parent / "results"
    results.mkdir(exist_ok=True)
    stem = re.sub("[^a-z]+", "-", target.name.lower())
    for path in folder.glob(f"{stem}*"):
        if path.is_file() and path.suffix != ".json":
            (results / f"finding-{path.name}").write_bytes(path.read_bytes())


def _section(found: list[tuple[Target, dict[str, Any]]], wanted: int) -> Section:
    guided = find_spec("atheris") is not None
    total = sum(measured["executions"] for _, measured in found)
    findings = [f"{target.name}: {measured['finding']}" for target, measured in found if measured["finding"]]
    peak = max(measured["peak"] for _, measured in found)
    slowest = max(measured["slowest"] for _, measured in found)
    kinds = sorted({kind for _, measured in found for kind in measured["verdicts"]})
    guide = (
        "guided by the coverage of the modules that read (atheris)"
        if guided
        else "without a guide: atheris is not there, so inputs are changes of valid ones alone"
    )
    return Section(
        title="Hostile files",
        words=(
            f"Every reader was given {total:,} inputs in all, {guide}. They are made of valid files of every kind by changing bytes, JSON "
            "trees, Parquet footers and page headers, lines and schemas of ledgers, labels and names. Each target runs in a process of its own with at most "
            f"{MOST_RESIDENT} MB of memory and {SLOWEST} s for one input; a crash, any warning, any exception but ours, and any message of ours "
            "that is not one printable line count as findings. What is accepted is written and read again and must be the same; a release that a "
            "hostile ledger lets pass must have its line. The largest matrix that a protocol may ask for is made smaller here, so that one input takes "
            "milliseconds. Ended in: " + ", ".join(kinds) + "."
        ),
        heads=("target", "executions", "seconds", "features", "accepted", "verdicts", "peak MB", "slowest s"),
        rows=tuple(_row(target, measured) for target, measured in found),
        checks=(
            Check(
                "no input does what none may do",
                not findings,
                "; ".join(findings)[:1000] or f"none of {total:,} did",
            ),
            Check(f"at least {wanted:,} executions", total >= wanted, f"{total:,}"),
            Check(f"at most {MOST_RESIDENT} MB in every process", 0 < peak <= MOST_RESIDENT, f"{peak} MB"),
            Check(f"at most {SLOWEST} s for every input", slowest <= SLOWEST, f"{slowest:.2f} s"),
            Check(
                "every target reads some changed inputs to their end",
                all(_accepted(measured) for _, measured in found),
                f"{sum(map(_accepted, (measured for _, measured in found))):,} were accepted",
            ),
        ),
    )


def _accepted(measured: dict[str, Any]) -> int:
    return sum(count for kind, count in measured["verdicts"].items() if kind.startswith("accepted"))


def _row(target: Target, measured: dict[str, Any]) -> tuple[str, ...]:
    return (
        target.name,
        f"{measured['executions']:,}",
        f"{measured['seconds']:.0f}",
        f"{measured['features']:,}" if measured["features"] else "-",
        f"{_accepted(measured):,}",
        str(len(measured["verdicts"])),
        str(measured["peak"]),
        f"{measured['slowest']:.2f}",
    )
