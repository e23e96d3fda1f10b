"""Commands in forked children of a warm process, and the faults that they may get."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from audit.faults.system_calls import CallFault

_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code; minus the signal that killed it.
        calls: The system calls that the fault was for, if it was one at a call.
        lines: How many lines of our code it ran; None if it was killed or not counted.
        spilled: How many bytes of rows it had written to its temporary file when it got its signal, if the fault waits for them.
        readable: Whether a value of the rows could be read there.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    calls: list[str] = field(default_factory=list)
    lines: int | None = None
    spilled: int = 0
    readable: bool = False
    out: str = ""
    err: str = ""


class Forks:
    """A server of forked commands; to be closed."""

    def __init__(self, temporary: Path) -> None:
        places = [str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "audit.faults.server"],
            cwd=_ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, places)),
                "TMPDIR": str(temporary),
                "OPENBLAS_NUM_THREADS": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, arguments: tuple[str, ...], fault: dict[str, Any] | None = None) -> Ended:
        """Runs `armslength` in the folder, with the fault."""
        return Ended(**self._asked(_job(folder, arguments, fault)))

    def run_together(self, folder: Path, commands: Sequence[tuple[str, ...]]) -> list[Ended]:
        """Runs several commands in the folder at once."""
        answers = self._asked([_job(folder, arguments, None) for arguments in commands])
        return [Ended(**answer) for answer in answers]

    def _asked(self, asked: Any) -> Any:
        if self._process.stdin is None or self._process.stdout is None:
            raise TypeError("the server must have pipes")
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server of commands ended with {self._process.wait()} on {asked}")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the server."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def _job(folder: Path, arguments: tuple[str, ...], fault: dict[str, Any] | None) -> dict[str, Any]:
    return {"folder": str(folder), "arguments": list(arguments), "fault": fault or {}}


def at_call(fault: CallFault) -> dict[str, Any]:
    """A fault at a system call, as the server takes it."""
    return {"call": asdict(fault)}


def after_milliseconds(milliseconds: float) -> dict[str, Any]:
    """A kill from outside, whatever the process does then."""
    return {"milliseconds": milliseconds}


def when_spilled(signal: int) -> dict[str, Any]:
    """A signal from outside, as soon as rows are in the temporary file; as the server takes it."""
    return {"spilled": int(signal)}


def with_file_bytes(most: int) -> dict[str, Any]:
    """No file may become larger than this, as the server takes it."""
    return {"file_bytes": most}


POWERLESS = {"powerless": True}  # permissions bind, also the superuser


def at_line(number: int, signal: int, function: str | None = None) -> dict[str, Any]:
    """A signal at a line of our code, or of one function by its qualified name, as the server takes it."""
    return {"line": number, "signal": int(signal), "function": function}
