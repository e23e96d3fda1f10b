"""One target in a process of its own, under limits: python -m audit.fuzzing.worker TARGET RUNS SEED OUT.

With atheris, inputs are guided by the coverage of the modules that read; without it, they are changes of valid inputs alone. What
happened is written to OUT as JSON while it happens, so that it is there if the process dies.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.fuzzing.verdicts import Target

MOST_RESIDENT = 1500  # megabytes
_LONGEST_SILENCE = 60  # seconds
_MOST_ADDRESSES = 8 * 2**30
READING = ("checks", "cli", "files", "ingest", "ledger", "privacy", "protocol", "sketches")


class Account:
    """What happened so far, until so many executions reached a reader of ours."""

    def __init__(self, out: Path, runs: int) -> None:
        self.verdicts: Counter[str] = Counter()
        self.executions = 0
        self.accepted = 0
        self.slowest = 0.0
        self.finding = ""
        self._start = self._told = time.monotonic()
        self.out = out
        self._runs = runs
        self.tell()

    @property
    def is_full(self) -> bool:
        """Whether there were enough, or far too many that no reader was given."""
        return self.executions >= self._runs or self.verdicts.total() >= 3 * self._runs

    def add(self, ended: str, took: float, *, is_reached: bool, is_seed: bool) -> None:
        """One more input."""
        self.verdicts[ended] += 1
        self.executions += is_reached
        self.accepted += ended.startswith("accepted") and not is_seed
        self.slowest = max(self.slowest, took)
        if self.is_full or time.monotonic() - self._told > 1:
            self.tell()

    def found(self, finding: str, data: bytes) -> None:
        """What may not be, and the input that did it."""
        self.finding = finding
        self.tell()
        self.out.with_suffix(".input").write_bytes(data)

    def tell(self) -> None:
        """Writes it down. The process ends, and says where it was, if it does not come back here in time."""
        self._told = time.monotonic()
        faulthandler.dump_traceback_later(_LONGEST_SILENCE, exit=True)  # the fuzzer times readings alone
        document = {
            "executions": self.executions,
            "accepted": self.accepted,
            "seconds": self._told - self._start,
            "verdicts": dict(self.verdicts),
            "slowest": self.slowest,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "finding": self.finding,
        }
        self.out.write_text(json.dumps(document), encoding="utf-8")


def modules_without_guide() -> list[str]:
    """The modules of armslength that do not read, and those with compiled functions, which cannot be instrumented."""
    spec = find_spec("armslength")
    if spec is None or spec.origin is None:
        raise ImportError("armslength must be installed")
    top = Path(spec.origin).parent
    modules = []
    for path in top.rglob("*.py"):
        parts = path.relative_to(top).with_suffix("").parts
        if parts[0] not in READING or "@kernel" in path.read_text(encoding="utf-8"):
            modules.append(".".join(("armslength", *parts)).removesuffix(".__init__"))
    return modules


def main() -> None:
    """Reads inputs until there were enough of them, or one does what none may do."""
    name, runs, seed, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    atheris: Any = import_module("atheris") if find_spec("atheris") is not None else None
    instrumented: AbstractContextManager[Any] = nullcontext()
    if atheris is not None:
        instrumented = atheris.instrument_imports(include=["armslength"], exclude=modules_without_guide())
    with instrumented:
        targets = import_module("audit.fuzzing.targets")  # and with it all that is read with
    import_module("audit.fuzzing.workspace").remember_compositions()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    target, account = targets.BY_NAME[name], Account(out, runs)
    if atheris is None:
        _unguided(target, seed, account)
    else:
        _guided(atheris, target, seed, account)


def _read(target: "Target", data: bytes, account: Account) -> str:
    """One execution, written down."""
    from audit.fuzzing.verdicts import (  # noqa: PLC0415  # after what it imports was instrumented
        Finding,
        reached,
        seeds_of,
        verdict,
    )

    start = time.monotonic()
    try:
        ended = verdict(target, data)
    except Finding as problem:
        account.found(str(problem), data)
        raise
    took = time.monotonic() - start
    account.add(ended, took, is_reached=reached(ended), is_seed=data in seeds_of(target))
    return ended


def _unguided(target: "Target", seed: int, account: Account) -> None:
    from audit.fuzzing.verdicts import SLOWEST, Changes  # noqa: PLC0415  # the same

    changes = Changes(target, seed)
    while not account.is_full:
        data = changes.one()
        signal.alarm(2 * SLOWEST)  # ends the process if nothing else does
        if _read(target, data, account) == "accepted":
            changes.accepted(data)


def _guided(atheris: Any, target: "Target", seed: int, account: Account) -> None:
    from audit.fuzzing.verdicts import SLOWEST, starts_of  # noqa: PLC0415  # the same
    from audit.fuzzing.workspace import folder  # noqa: PLC0415  # the same

    corpus = folder() / "corpus"
    corpus.mkdir()
    for number, data in enumerate(starts_of(target)):
        (corpus / str(number)).write_bytes(data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)  # noqa: S311  # repeatable by design
        # Changes upon changes soon are refused at the first byte: half of them begin with a valid input.
        return target.change(random.choice((data, random.choice(starts_of(target)))), random)[:most]

    def one(data: bytes) -> None:
        _read(target, data, account)
        if account.is_full:
            os._exit(0)  # the fuzzer's own alarm would go off while Python ends

    options = {
        "atheris_runs": 2**31 - 1,  # the account says when it is enough
        "max_len": 4 * max(map(len, starts_of(target))),
        "rss_limit_mb": MOST_RESIDENT,
        "seed": seed,
        "timeout": SLOWEST,
        "artifact_prefix": f"{account.out.with_suffix('')}-",
    }
    arguments = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup(["worker", *arguments, str(corpus)], one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
