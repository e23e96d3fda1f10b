"""A child process under ptrace, and one of the system calls with which it changes files: killed there, cut short, or failed.

Between two such calls of its main thread nothing changes on the disk, so that a kill before each of them, and in the middle of each write, leaves
every state that a killed process can leave. (A power failure can leave more: what was not synced. It is not played here.)
"""

import ctypes
import os
import platform
import signal
import sys
from dataclasses import dataclass
from typing import Any, Literal

Deed = Literal["kill", "tear", "fail", "shorten", "stay"]

_TRACE_ME, _GET_REGISTERS, _SET_REGISTERS, _GO_TO_CALL, _SET_OPTIONS = 0, 12, 13, 24, 0x4200
_MARK_CALLS, _KILL_WITH_TRACER = 1, 0x100000
_MARKED = 0x80
_CREATES = os.O_CREAT
# The numbers of x86-64.
_WRITES = {1: "write", 18: "pwrite64", 20: "writev", 296: "pwritev"}
_OPENS = {2: "open", 257: "openat"}
_OTHERS = {
    74: "fsync",
    75: "fdatasync",
    76: "truncate",
    77: "ftruncate",
    82: "rename",
    83: "mkdir",
    84: "rmdir",
    86: "link",
    87: "unlink",
    90: "chmod",
    91: "fchmod",
    258: "mkdirat",
    263: "unlinkat",
    264: "renameat",
    265: "linkat",
    268: "fchmodat",
    285: "fallocate",
    316: "renameat2",
}
_TAKE_ROOM = {
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "open",
    "openat",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "fsync",
    "fdatasync",
}


class _Registers(ctypes.Structure):
    """`struct user_regs_struct` of x86-64."""

    _fields_ = tuple(
        (name, ctypes.c_ulonglong)
        for name in (
            *(
                "r15",
                "r14",
                "r13",
                "r12",
                "rbp",
                "rbx",
                "r11",
                "r10",
                "r9",
                "r8",
                "rax",
                "rcx",
                "rdx",
                "rsi",
                "rdi",
            ),
            *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
        )
    )


@dataclass(frozen=True)
class CallFault:
    """What happens at one of the calls that change files.

    Attributes:
        deed: "kill" before the call; "tear": half of a write, then kill; "fail" with an error and do nothing; "shorten": half of a write, and go on;
            "stay": nothing happens.
        number: At which call, counted from 0 among those that the deed is for.
        error: For "fail": errno.
        lasting: For "fail": whether all later calls fail too, as on a disk that stays full.
        name: If it is not empty, only calls of this name are counted.
    """

    deed: Deed
    number: int = 0
    error: int = 0
    lasting: bool = False
    name: str = ""

    def is_for(self, name: str) -> bool:
        """Whether the deed can be done to a call of this name."""
        if self.name and name != self.name:
            return False
        if self.deed in {"tear", "shorten"}:
            return name in {"write", "pwrite64"}
        return self.deed != "fail" or name in _TAKE_ROOM


def can_trace() -> bool:
    """Whether this system lets a process trace its child, and has the registers that are known here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if _ptrace(_TRACE_ME, 0) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def stop_to_be_traced() -> None:
    """In the child: hands over to `followed`."""
    _ptrace(_TRACE_ME, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def followed(child: int, fault: CallFault) -> tuple[int, list[str]]:
    """In the parent: the child's status in the end, and the calls that the deed was for, in their order."""
    os.waitpid(child, 0)
    _ptrace(_SET_OPTIONS, child, data=_MARK_CALLS | _KILL_WITH_TRACER)
    seen: list[str] = []
    at_entry, pass_on, after = True, 0, ""
    while True:
        _ptrace(_GO_TO_CALL, child, data=pass_on)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            return status, seen
        stopped_by = os.WSTOPSIG(status)
        if stopped_by != signal.SIGTRAP | _MARKED:
            pass_on = stopped_by
            continue
        pass_on = 0
        if at_entry:
            after = _entered(child, fault, seen)
        elif after:
            _left(child, fault, after)
        at_entry = not at_entry


def _entered(child: int, fault: CallFault, seen: list[str]) -> str:
    """Does the deed, if this is its call; what remains to be done after the call."""
    registers = _registers(child)
    name = _changing(registers)
    if name is None or not fault.is_for(name):
        return ""
    seen.append(name)
    number = len(seen) - 1
    is_it = number >= fault.number if fault.lasting else number == fault.number
    if not is_it or fault.deed == "stay":
        return ""
    if fault.deed == "kill":
        os.kill(child, signal.SIGKILL)
        return ""
    if fault.deed == "fail":
        registers.orig_rax = 2**64 - 1  # no such call: nothing is done
    else:
        registers.rdx = max(1, registers.rdx // 2)
    _set(child, registers)
    return fault.deed


def _left(child: int, fault: CallFault, deed: str) -> None:
    """What remains to be done after the call."""
    if deed == "tear":
        os.kill(child, signal.SIGKILL)
    if deed == "fail":
        registers = _registers(child)
        registers.rax = 2**64 - fault.error
        _set(child, registers)


def _changing(registers: Any) -> str | None:
    """The call, if it changes a file other than the standard ones."""
    number = registers.orig_rax
    if number in _OPENS:
        flags = registers.rsi if _OPENS[number] == "open" else registers.rdx
        return _OPENS[number] if flags & _CREATES else None
    if number in _WRITES:
        return _WRITES[number] if registers.rdi > 2 else None
    return _OTHERS.get(number)


def _ptrace(request: int, child: int, *, data: Any = None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    done: int = libc.ptrace(request, child, None, data)
    return done


def _registers(child: int) -> Any:
    registers = _Registers()
    _ptrace(_GET_REGISTERS, child, data=ctypes.addressof(registers))
    return registers


def _set(child: int, registers: Any) -> None:
    _ptrace(_SET_REGISTERS, child, data=ctypes.addressof(registers))
