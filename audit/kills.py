"""`kill -9`, signals and failing system calls at every point of `armslength release`: what is left, and whether a retry works."""

import errno
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armslength.cli.exit_codes import ELSEWHERE, ending_signals
from armslength.progress import Advance, progress
from audit.faults.forks import Ended, Forks, after_milliseconds, at_call, at_line, when_spilled
from audit.faults.party import LITTLE_MEMORY, MANY_ROWS, Found, Party
from audit.faults.system_calls import CallFault, can_trace
from audit.sections import Check, Section

_KILL_LINE = "kill -9 at a line of our code"
_KILL_TIME = "kill -9 at a random time"
_SIGNAL = "another signal at a line"
_KILL_SPILLED = "kill -9 while private rows are in the temporary file"
_SIGNAL_SPILLED = "another signal while private rows are in the temporary file"
_ENDINGS = tuple(ending_signals())
_CALLS = {
    "kill -9 before a system call": CallFault("kill"),
    "kill -9 in the middle of a write": CallFault("tear"),
    "no space, at one call": CallFault("fail", error=errno.ENOSPC),
    "no space, from one call on": CallFault("fail", error=errno.ENOSPC, lasting=True),
    "input/output error at one call": CallFault("fail", error=errno.EIO),
    "a write is cut short": CallFault("shorten"),
}
_NEVER = 10**9
_LOST = "ε was charged, and nothing was written"


@dataclass(frozen=True)
class _Trial:
    """One fault, and what came of it."""

    kind: str
    ended: Ended
    found: Found
    wrong: tuple[str, ...]


def audit(quick: bool) -> Section:
    """Kills and fails releases of two parties at a time: of one that has released nothing, one that replaces a release, and a large one."""
    with (
        tempfile.TemporaryDirectory() as place,
        ThreadPoolExecutor(2) as pool,
        progress("faults", None, "faults", show=True) as advance,
    ):
        parties = [
            pool.submit(_trials, Path(place), name, quick=quick, advance=advance)
            for name in ("first", "again", "large")
        ]
        trials = [trial for party in parties for trial in party.result()]
    kinds = list(dict.fromkeys(trial.kind for trial in trials))
    return Section(
        "Faults: kill -9, signals and failing disks",
        _words(),
        ("fault", "times", "nothing spent", "charged, no file", "file and line", "something wrong"),
        tuple(_row(kind, [trial for trial in trials if trial.kind == kind]) for kind in kinds),
        _checks(trials, quick=quick),
    )


def _trials(place: Path, name: str, *, quick: bool, advance: Advance) -> list[_Trial]:
    temporary = place / f"{name}-temporary"
    temporary.mkdir()
    forks = Forks(temporary)
    try:
        is_large = name == "large"
        party = Party(place / name, forks, released_before=name == "again", spills=is_large)
        done = []
        for kind, fault in _faults_of_spilling(quick=quick) if is_large else _faults(party, quick=quick):
            party.restore()
            ended = party.run(fault)
            found = party.found()
            wrong = (*found.wrong, *_badly_ended(ended, found, temporary))
            done.append(_Trial(kind, ended, found, (*wrong, *party.retried(found))))
            advance(1)
        return done
    finally:
        forks.close()


def _faults(party: Party, *, quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every fault; of a quick audit, two of each kind."""
    start = time.monotonic()
    lines = range(party.run().lines or 0)
    longest = 1000 * (time.monotonic() - start)
    chance = random.Random(8)  # noqa: S311  # when to kill, not what to draw
    for number in _some(lines, 2 if quick else 100):
        yield _KILL_LINE, at_line(number, signal.SIGKILL)
    for _ in range(2 if quick else 40):
        yield _KILL_TIME, after_milliseconds(longest * chance.random())
    for turn, number in enumerate(_some(lines, 2 if quick else 60)):
        yield _SIGNAL, at_line(number, _ENDINGS[turn % len(_ENDINGS)])
    for kind, fault in _CALLS.items() if can_trace() else ():
        party.restore()
        calls = range(len(party.run(at_call(replace(fault, number=_NEVER))).calls))
        for number in _some(calls, 2 if quick else len(calls)):
            yield kind, at_call(replace(fault, number=number))


def _faults_of_spilling(*, quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Signals to a release that has just written private rows to its temporary file."""
    for turn in range(2 if quick else 2 * len(_ENDINGS)):
        yield _KILL_SPILLED, when_spilled(signal.SIGKILL)
        yield _SIGNAL_SPILLED, when_spilled(_ENDINGS[turn % len(_ENDINGS)])


def _some(points: range, most: int) -> list[int]:
    """So many of the points, evenly spread; the last ones are where files get their names."""
    count = min(most, len(points))
    return [points[-1 - number * len(points) // count] for number in range(count)]


def _badly_ended(ended: Ended, found: Found, temporary: Path) -> tuple[str, ...]:
    """What is wrong with the exit code, the message and the temporary folder, in which nothing may be left, whatever ended the process."""
    wrong = []
    if list(temporary.glob("armslength-*")):
        wrong.append("something was left in the temporary folder")
    if ended.readable:
        wrong.append("private rows can be read in the temporary file")
    if ended.code == -signal.SIGKILL:
        return tuple(wrong)
    if ended.code not in {0, 2, ELSEWHERE, *(128 + ending for ending in _ENDINGS)}:
        wrong.append(f"exit code {ended.code}: {ended.err}")
    if ended.code and (not ended.err.startswith("armslength: ") or ended.err.count("\n") != 1):
        wrong.append(f"the error is not one line of ours: {ended.err}")
    if ended.code not in {0, ELSEWHERE} and (_LOST in ended.err) != (found.charged and not found.released):
        wrong.append(f"what was spent is not said: {ended.err}")
    if ended.code == ELSEWHERE and "the release was saved as" not in ended.err:
        wrong.append(f"where the release was saved is not said: {ended.err}")
    if not ended.code and not found.released:
        wrong.append("a release that was reported is not there")
    return tuple(wrong)


def _row(kind: str, trials: list[_Trial]) -> tuple[str, ...]:
    states = [(trial.found.charged, trial.found.released) for trial in trials]
    return (
        kind,
        str(len(trials)),
        str(states.count((False, False))),
        str(states.count((True, False))),
        str(states.count((True, True))),
        str(sum(bool(trial.wrong) for trial in trials)),
    )


def _checks(trials: list[_Trial], *, quick: bool) -> tuple[Check, ...]:
    killed = [trial for trial in trials if trial.ended.code == -signal.SIGKILL]
    others = [trial for trial in trials if trial.ended.code != -signal.SIGKILL]
    spilled = [trial for trial in trials if trial.kind in {_KILL_SPILLED, _SIGNAL_SPILLED}]
    had = sum(trial.ended.spilled > 0 for trial in spilled)
    fewest = 8 if quick else 300
    return (
        Check(
            f"At least {fewest} releases were killed by kill -9", len(killed) >= fewest, f"{len(killed)} were"
        ),
        Check(
            "No half-written sketch loads, no release is missing from the ledger, every ledger opens, and a retry works",
            not any(trial.wrong for trial in killed),
            _first_wrong(killed),
        ),
        Check(
            "A failed or interrupted release prints one line of ours, says what was spent, exits with the right code and leaves no private row",
            not any(trial.wrong for trial in others),
            _first_wrong(others),
        ),
        Check(
            "The same holds if private rows were in the temporary file when the signal came: no value can be read there and nothing is left, even after kill -9",
            had == len(spilled) > 0 and not any(trial.wrong for trial in spilled),
            f"{had} of {len(spilled)} releases had rows there, up to {max((trial.ended.spilled for trial in spilled), default=0):,} bytes",
        ),
    )


def _first_wrong(trials: list[_Trial]) -> str:
    wrong = [f"{trial.kind}: {trial.wrong[0]}" for trial in trials if trial.wrong]
    return (
        f"{len(wrong)} of {len(trials)} went wrong, first {wrong[0]}"
        if wrong
        else f"{len(trials)} of {len(trials)} held"
    )


def _words() -> str:
    calls = (
        "Under ptrace, the process is killed before each system call of its main thread that changes a file, and in the "
        "middle of each write. Nothing changes on disk between two such calls, so these are all the states that a kill can "
        "leave. Each such call is also made to fail, once or from then on."
        if can_trace()
        else "This system has no ptrace or is not x86-64 Linux: faults at system calls were skipped."
    )
    signals = ", ".join(each.name for each in _ENDINGS)
    return (
        "The real command `armslength release` runs in a forked child, for a party that has released nothing yet and for one "
        f"that replaces an earlier release. {calls} Kills also come at lines of our code, spread evenly over all lines that "
        f"run, and at random times from outside. Every other catchable signal that would end a process ({signals}) comes at "
        f"such lines. A third party has {MANY_ROWS:,} events and {LITTLE_MEMORY} of memory, so private rows go to the "
        "temporary file. There the signal comes as soon as the file holds any, and the bytes of the file are searched for "
        "values of the table.\n\n"
        "After each fault we check: the output is unchanged, or new and complete; the ledger opens, passes SQLite's integrity "
        "check and has one line if any noisy value is on disk, even in a temporary file; and a retry succeeds, with "
        "`--repeat` if ε was charged. *Charged, no file* is the possible cost of a crash: the ledger over-counts and never "
        "under-counts. A killed process may leave a file `.NAME.….part`; it is harmless, no reader takes it for data, and you "
        "may delete it. No private rows remain, whatever ends the process: the temporary file has no name and is encrypted "
        "with a key that only the process had. Power failures are not tested; the ledger syncs each step before the next."
    )
