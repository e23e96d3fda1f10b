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
from audit.fuzzing.workspace import WORK
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
        progress("fuzzing", len(TARGETS), "targets", shown=True) as advance,
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
            "no input does what none may do",
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
        checks.append(
            _for_every(found, "accepted", "every target reads some inputs to their end that are no seeds")
        )
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
        f"{guided} of {len(found)} targets were guided by the coverage of the modules that read (atheris)"
        if guided
        else "They came without a guide, atheris is not there: they are changes of valid ones alone"
    )
    return (
        f"All readers together were given {promised:,} inputs ({shares}); with lists of names, labels and folders {total:,}. The table says how many "
        f"each target got. {guide}. Inputs are made of valid files of every kind by changing bytes, JSON trees, Parquet footers "
        "and page headers, lines and schemas of ledgers, labels and names. An input of which no file could be made, so that no reader of ours saw it, "
        "is no execution: those are in a column of their own. *accepted* counts inputs that were read to their end and are no seeds, "
        "*features* what the guide saw (0: it saw nothing). Event tables are read in three depths: their names (*first line*, *schema*); their "
        "events, bounded and summed, by an engine that stays (*events*); and a whole release (*table*), which starts an engine each time and so "
        f"gets fewer inputs. Each target runs in a process of its own with at most {MOST_RESIDENT} MB of memory and {SLOWEST} s for one "
        "input; a crash, any warning, any exception but ours, and any message of ours that is not one printable line count as findings. What is "
        "accepted is written and read again and must be the same; a release that a hostile ledger lets pass must have its line. Protocols "
        f"may ask for {WORK:,} operations here, and what the same lines of a ledger compose to is remembered, so that one input takes "
        "milliseconds. Ended in: " + ", ".join(kinds) + "."
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
