"""A process that has everything imported and compiled, and forks a child for each command: hundreds of faults cost seconds.

It reads one JSON object a line: the folder, the arguments of `armslength`, and the fault; or a list of them, to be run at once. It answers with the child's status and what it passed.
No engine has run in it and no pool of ours is alive, so that children are forked from one quiet thread.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from contextlib import chdir, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa

import armslength as al
import armslength.releasing.release  # here, and not in each child
from armslength.cli.main import main
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import PublicGroups, TableJob
from audit.faults.lines import Lines
from audit.faults.party import READABLE, bytes_spilled
from audit.faults.powers import give_up_powers
from audit.faults.system_calls import CallFault, followed, stop_to_be_traced

COUNT = "points.txt"


def _warm() -> None:
    """Every kernel that a release calls is compiled or read."""
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=32, seed="warm"), al.Counts(1, total_share="0.1"), epsilon=1, unit="one person"
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = al.release(protocol, [[1, 2]], items=["a", "b"], ledger=al.NO_LEDGER, threads=1)
        rows.save(Path(folder) / "warm.parquet")
    votes = al.Protocol(protocol.transform, al.Votes(total_share="0.1"), epsilon=1, unit="one person")
    columns, groups = EventColumns("person", "item", "group"), PublicGroups(("north", "south"), "group")
    for memory in ("1GB", "1KB"):  # the second one goes through a temporary file
        _WarmJob.of(None, votes, columns, groups, memory=memory, threads=1).sums(bytes(KEY_BYTES))


class _WarmJob(TableJob):
    """Events that do not come from the engine."""

    def opened(self) -> Any:
        count = 5000
        texts = [pa.array([f"p{row % 700}" for row in range(count)], pa.large_string())] * 2
        places = pa.array(["north"] * count, pa.large_string())
        batch = pa.record_batch([texts[0], texts[1], places], ["person", "item", "group"])
        return nullcontext(SimpleNamespace(pieces=lambda: iter([[batch]]), bytes_read=0))


def _child(job: dict[str, Any], log: Path) -> NoReturn:
    """Runs the command with its standard outputs in files."""
    code = 1
    try:
        for stream, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(log / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115  # open to the end
        os.environ["COLUMNS"] = "80"
        with chdir(job["folder"]):
            code = _run_with(job["fault"], job["arguments"], log)
    except BaseException:  # noqa: BLE001  # whatever it is, it is shown, and the child ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_with(fault: dict[str, Any], arguments: list[str], log: Path) -> int:
    """Runs the command with its fault; how many lines it ran goes to a file."""
    if "call" in fault:
        stop_to_be_traced()
        return _run(arguments)
    if "powerless" in fault:
        give_up_powers()
        return _run(arguments)
    if "file_bytes" in fault:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["file_bytes"], resource.RLIM_INFINITY))
        code = _run(arguments)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return code
    lines = Lines(fault.get("line", -1), fault.get("signal", 0), fault.get("function"))
    lines.start()
    code = _run(arguments)
    threading.settrace(None)
    sys.settrace(None)
    (log / COUNT).write_text(str(lines.passed), encoding="utf-8")
    return code


def _run(arguments: list[str]) -> int:
    try:
        main.main(args=arguments, prog_name="armslength")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _started(job: dict[str, Any], log: Path) -> int:
    for name in (COUNT, "out.txt", "err.txt"):
        (log / name).unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child(job, log)
    return child


def _ended(log: Path, status: int, calls: list[str], spilled: bytes = b"") -> dict[str, Any]:
    count, out, err = (_text(log / name) for name in (COUNT, "out.txt", "err.txt"))
    return {
        "code": os.waitstatus_to_exitcode(status),
        "calls": calls,
        "lines": int(count) if count else None,
        "spilled": len(spilled),
        "readable": any(text in spilled for text in READABLE),
        "out": out,
        "err": err,
    }


def _text(file: Path) -> str:
    """What the child wrote, if it lived long enough."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _done(job: dict[str, Any], log: Path) -> dict[str, Any]:
    child = _started(job, log)
    if "call" in job["fault"]:
        return _ended(log, *followed(child, CallFault(**job["fault"]["call"])))
    if "milliseconds" in job["fault"]:
        time.sleep(job["fault"]["milliseconds"] / 1000)
        os.kill(child, signal.SIGKILL)  # not waited for yet: if it has ended, its number is still its own
    spilled = b""
    if "spilled" in job["fault"]:
        spilled = _spilled(child)
        os.kill(child, job["fault"]["spilled"])
        os.kill(child, signal.SIGCONT)
    return _ended(log, os.waitpid(child, 0)[1], [], spilled)


def _spilled(child: int) -> bytes:
    """Waits until the child has rows in its temporary file, or has ended; what is in the file."""
    while (
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):  # its number stays its own
        if bytes_spilled(child, 1):
            os.kill(child, signal.SIGSTOP)  # so that it does not end meanwhile; a signal that ends it waits
            return bytes_spilled(child)
        time.sleep(0.001)
    return b""


def _done_together(jobs: list[dict[str, Any]], log: Path) -> list[dict[str, Any]]:
    """All at once."""
    logs = [log / str(number) for number in range(len(jobs))]
    for each in logs:
        each.mkdir(exist_ok=True)
    children = [_started(job, each) for job, each in zip(jobs, logs, strict=True)]
    return [_ended(each, os.waitpid(child, 0)[1], []) for child, each in zip(children, logs, strict=True)]


def _serve() -> None:
    # A shell starts background jobs with some signals ignored: the faults need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _warm()
    with tempfile.TemporaryDirectory() as log:
        for line in sys.stdin:
            asked = json.loads(line)
            done = _done_together if isinstance(asked, list) else _done
            print(json.dumps(done(asked, Path(log))), flush=True)


if __name__ == "__main__":
    _serve()
