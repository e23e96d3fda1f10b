"""Every target in a process of its own, two at a time, and what came out of it."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from armslength.progress import progress
from audit.fuzzing.targets import TARGETS
from audit.fuzzing.verdicts import GROUPS, SLOWEST, Target, reached
from audit.fuzzing.worker import MOST_RESIDENT
from audit.sections import Check, Section

_WANTED = 10**6  # executions, of all targets of the groups together
_FEWEST = 20  # executions of each target in a quick run
_LONGEST = 1500  # seconds for one target
_MEMORY = Path("/dev/shm")  # noqa: S108  # folders of our own are made in it


def section_of(*, quick: bool) -> Section:
    """Runs every target, two at a time."""
    order = sorted(
        TARGETS, key=lambda target: target.group not in ("ledgers", "sketches")
    )  # the slow ones first
    with (
        tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder,
        ThreadPoolExecutor(2) as pool,
        progress("fuzzing", len(TARGETS), "targets", show=True) as advance,
    ):

        def measure(target: Target) -> tuple[Target, dict[str, Any]]:
            measured = _measured(target, _FEWEST if quick else target.runs, Path(folder))
            advance(1)
            return target, measured

        found = dict(pool.map(measure, order))
    return _section([(target, found[target]) for target in TARGETS], quick=quick)


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
        "accepted": 0,
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
            measured["finding"] or f"ended with {code} after {measured['executions']}: {log[-900:]}"
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


def _section(found: list[tuple[Target, dict[str, Any]]], *, quick: bool) -> Section:
    each = [measured for _, measured in found]
    total = sum(measured["executions"] for measured in each)
    promised = sum(measured["executions"] for target, measured in found if target.group in GROUPS)
    wanted = sum(_FEWEST for target, _ in found if target.group in GROUPS) if quick else _WANTED
    peak, slowest = (max(measured[what] for measured in each) for what in ("peak", "slowest"))
    findings = [f"{target.name}: {measured['finding']}" for target, measured in found if measured["finding"]]
    checks = [
        Check(
            "no input causes a finding",
            not findings,
            "; ".join(findings)[:1000] or f"none of {total:,} did",
        ),
        Check(
            f"at least {wanted:,} inputs reach the readers of {', '.join(GROUPS)}",
            promised >= wanted,
            f"{promised:,} did",
        ),
        Check(f"at most {MOST_RESIDENT} MB in every process", 0 < peak <= MOST_RESIDENT, f"{peak} MB"),
        Check(f"at most {SLOWEST} s for every input", slowest <= SLOWEST, f"{slowest:.2f} s"),
    ]
    if not quick:  # too few to tell
        checks.append(_for_every(found, "accepted", "every target accepts some inputs that are not seeds"))
    if find_spec("atheris") is not None:
        checks.append(_for_every(found, "features", "coverage guides every target"))
    return Section(
        title="Hostile files",
        words=_words(found, promised, total),
        heads=(
            "target",
            "executions",
            "never reached",
            "seconds",
            "features",
            "accepted",
            "verdicts",
            "peak MB",
            "slowest s",
        ),
        rows=tuple(_row(target, measured) for target, measured in found),
        checks=tuple(checks),
    )


def _for_every(found: list[tuple[Target, dict[str, Any]]], what: str, claim: str) -> Check:
    without = [target.name for target, measured in found if not measured[what]]
    return Check(
        claim,
        not without,
        f"not: {', '.join(without)}"
        if without
        else f"all {len(found)}, with at least {min(measured[what] for _, measured in found):,} {what}",
    )


def _words(found: list[tuple[Target, dict[str, Any]]], promised: int, total: int) -> str:
    counts = Counter[str]()
    for target, measured in found:
        counts[target.group] += measured["executions"]
    shares = ", ".join(f"{group} {counts[group]:,}" for group in GROUPS)
    guided = sum(measured["features"] > 0 for _, measured in found)
    kinds = sorted({kind for _, measured in found for kind in measured["verdicts"] if reached(kind)})
    guide = (
        f"Coverage of the reading modules guided {guided} of {len(found)} targets (atheris)"
        if guided
        else "Without atheris, inputs were mutated without guidance"
    )
    return (
        f"All readers together got {promised:,} inputs ({shares}); with lists of names, labels and folders, {total:,}. "
        f"{guide}. Inputs are valid files of every kind with changed bytes, JSON trees, Parquet footers and page headers, "
        "ledger lines and schemas, labels and names. *Never reached* counts inputs from which no file could be made, so no "
        "reader saw them; they are not executions. *Accepted* counts inputs other than seeds that were read to their end. "
        "*Features* is what the coverage guide saw. Event tables are read at three depths: their names (*first line*, "
        "*schema*), their events, bounded and summed, in one long-lived engine (*events*), and a whole release (*table*), "
        "which starts an engine each time and so gets fewer inputs.\n\n"
        f"Each target runs in its own process with at most {MOST_RESIDENT} MB of memory and {SLOWEST} s per input. A crash, "
        "any warning, any exception but ours, and any message of ours that is not one printable line counts as a finding. "
        "Accepted input is written and read again and must be the same. A release that a hostile ledger allows must have its "
        "line. Matrices are limited to small sizes here, and compositions of the same ledger lines are cached, so that "
        "one input takes milliseconds. Outcomes: " + ", ".join(kinds) + "."
    )


def _row(target: Target, measured: dict[str, Any]) -> tuple[str, ...]:
    return (
        target.name,
        f"{measured['executions']:,}",
        f"{sum(measured['verdicts'].values()) - measured['executions']:,}",
        f"{measured['seconds']:.0f}",
        f"{measured['features']:,}",
        f"{measured['accepted']:,}",
        str(sum(map(reached, measured["verdicts"]))),
        str(measured["peak"]),
        f"{measured['slowest']:.2f}",
    )
