"""A process that has everything imported and compiled, and forks a child for each command: hundreds of faults cost seconds.

It reads one JSON object a line: the folder, the arguments of `armslength`, and the fault. It answers with the child's status and what it passed.
No engine has run in it and no pool of ours is alive, so that children are forked from one quiet thread.
"""

import json
import os
import sys
import tempfile
import traceback
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa

import armslength as al
import armslength.tables.release_table  # here, and not in each child
from armslength.cli.main import main
from armslength.tables.bounds import bounded
from armslength.tables.order import KEY_BYTES, TakingOrder
from armslength.tables.partial import GroupSums
from audit.faults.lines import Lines
from audit.faults.system_calls import CallFault, followed, stop_to_be_traced

COUNT = "points.txt"


def _warm() -> None:
    """Every kernel that a release calls is compiled or read."""
    protocol = al.Protocol(
        al.SparseJL(None, 32, seed="warm"), 1, contribution=1, unit="one person", total_share="0.1"
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = protocol.release([[1, 2]], items=["a", "b"], ledger=al.NO_LEDGER, threads=1)
        rows.save(Path(folder) / "warm.parquet")
    events = pa.record_batch(
        {
            "person": ["p", "p"],
            "group": pa.array([0, 0], pa.int32()),
            "item": ["a", "b"],
            "amount": pa.array([1, 1], pa.int64()),
        }
    )
    sums = GroupSums(protocol, 1, 1)
    for taken in bounded(iter([events]), TakingOrder(bytes(KEY_BYTES), ["north"]), 1):
        sums.add(taken)
    sums.prepared()


def _child(job: dict[str, Any], log: Path) -> None:
    """Runs the command with its standard outputs in files; never returns."""
    code = 1
    try:
        for stream, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(log / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))  # noqa: SIM115  # open to the end
        os.environ["COLUMNS"] = "80"
        fault = job["fault"]
        with chdir(job["folder"]):
            if "call" in fault:
                stop_to_be_traced()
                code = _run(job["arguments"])
            else:
                lines = Lines(fault.get("line", -1), fault.get("signal", 0))
                lines.start()
                code = _run(job["arguments"])
                sys.settrace(None)
                (log / COUNT).write_text(str(lines.passed), encoding="utf-8")
    except BaseException:  # noqa: BLE001  # whatever it is, it is shown, and the child ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(arguments: list[str]) -> int:
    try:
        main.main(args=arguments, prog_name="armslength")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _done(job: dict[str, Any], log: Path) -> dict[str, Any]:
    for name in (COUNT, "out.txt", "err.txt"):
        (log / name).unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child(job, log)
    calls: list[str] = []
    if "call" in job["fault"]:
        status, calls = followed(child, CallFault(**job["fault"]["call"]))
    else:
        _, status = os.waitpid(child, 0)
    counted = log / COUNT
    return {
        "code": os.waitstatus_to_exitcode(status),
        "calls": calls,
        "lines": int(counted.read_text(encoding="utf-8")) if counted.exists() else None,
        "out": (log / "out.txt").read_text(encoding="utf-8"),
        "err": (log / "err.txt").read_text(encoding="utf-8"),
    }


def _serve() -> None:
    _warm()
    with tempfile.TemporaryDirectory() as log:
        for line in sys.stdin:
            print(json.dumps(_done(json.loads(line), Path(log))), flush=True)


if __name__ == "__main__":
    _serve()
