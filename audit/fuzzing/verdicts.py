"""What an execution may end in: normally, or in one line of ours. Everything else is a finding."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

import click

import armslength as al
from audit.fuzzing.mutate import Mutator

SLOWEST = 20  # seconds for one input
GROUPS = ("protocols", "sketches", "ledgers", "tables")  # what the audit promises a number of executions for


class Finding(Exception):  # noqa: N818  # it is the name of what it is
    """Something that no input may do."""


@dataclass(frozen=True)
class Target:
    """A reader under attack.

    Attributes:
        group: What kind of reader it is: one of `GROUPS`, or another.
        name: What it is called.
        seeds: Makes valid inputs, from which all others come.
        read: Reads one input, and raises what the reader raises; what is returned is the verdict in a word, which begins with "no "
            if nothing could be made of the input that a reader of ours could be given.
        change: How an input becomes another.
        runs: How many executions that reach a reader of ours `make audit` gives it.
        costly: Makes inputs that are valid but for the work that they ask for, to be changed like the others.
    """

    group: str
    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], str]
    change: Mutator
    runs: int
    costly: Callable[[], list[bytes]] = list


def verdict(target: Target, data: bytes, slowest: float = SLOWEST) -> str:
    """How the reading ended; raises `Finding` if it may not end so, or takes more than so many seconds of the processor."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ended = target.read(data)
    except (al.ArmslengthError, click.UsageError) as problem:
        message = str(problem) if isinstance(problem, al.ArmslengthError) else problem.message
        if not message.isprintable() or len(message) > 5000:
            raise Finding(
                f"a message of {type(problem).__name__} is not one short line: {message!r}"
            ) from problem
        ended = type(problem).__name__
    except Finding:
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # MemoryError and panics of libraries too
        raise Finding(f"{type(problem).__name__}: {problem}") from problem
    took = time.process_time() - start
    if took > slowest:
        raise Finding(f"{took:.0f} seconds for {len(data)} bytes")
    return ended


def reached(ended: str) -> bool:
    """Whether a reader of ours was given the input at all."""
    return not ended.startswith("no ")


@cache
def seeds_of(target: Target) -> tuple[bytes, ...]:
    """The target's valid inputs; each must be read to its end."""
    made = tuple(target.seeds())
    for data in made:
        if (ended := verdict(target, data, math.inf)) != "accepted":  # the first one compiles
            raise Finding(f"a valid input of {target.name} ended in {ended}")
    return made


@cache
def starts_of(target: Target) -> tuple[bytes, ...]:
    """What inputs are made of: the valid ones, and those that are refused for their work."""
    return (*seeds_of(target), *target.costly())


class Changes:
    """Inputs as a seed says: half of them changes of valid ones, half of those that were accepted."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._random = Random(f"{target.name} {seed}")  # noqa: S311  # repeatable by design
        self._known = list(starts_of(target))
        self._longest = 2 * max(map(len, self._known))

    def one(self) -> bytes:
        """The next input."""
        fresh = self._random.randrange(2)
        data = self._random.choice(starts_of(self._target) if fresh else self._known)
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            data = self._target.change(data, self._random)
        return data

    def accepted(self, data: bytes) -> None:
        """Others may be made of this one."""
        if len(data) <= self._longest and len(self._known) < 500:
            self._known.append(data)
