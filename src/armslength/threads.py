"""Threads over blocks of rows, and attributes that are computed once.

Every call makes its own pool. A child that is forked meanwhile has none of its threads: it is refused and does not wait for them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import cached_property, partial
from threading import Lock, Thread
from typing import Any, TypeVar

from armslength.checks import integer

_RUNS_PER_THREAD = 8
_SECONDS_BETWEEN_LOOKS = 0.5
Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")
Outcome = tuple[Any, BaseException | None]  # of work: its result, or its error


def available_threads() -> int:
    """How many threads this process may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(threads: int | None) -> int:
    """How many threads work, at most as many as asked for; None: all that the process may run."""
    if threads is None:
        return available_threads()
    return integer("threads", threads, at_least=1, at_most=1024)


def for_blocks(total: int, block: int, work: Callable[[int, int], None], threads: int | None = None) -> None:
    """Calls `work(start, stop)` for consecutive blocks that cover `range(total)`; they must not share what they write."""

    def work_through(first: int, last: int) -> None:
        for start in range(first, last, block):
            work(start, min(start + block, last))

    for_runs(total, block, work_through, threads)


def for_runs(total: int, block: int, work: Callable[[int, int], None], threads: int | None = None) -> None:
    """Calls `work(first, last)` for consecutive runs of blocks, for work that reuses something from block to block.

    At most so many threads work, by default all that the process may run. Each gets several runs, so that none waits long at the end.
    """
    blocks = -(-total // block)
    workers = min(worker_count(threads), blocks)
    if workers <= 1:
        if total:
            work(0, total)
        return
    run = -(-blocks // (workers * _RUNS_PER_THREAD)) * block
    process = os.getpid()
    ended, outcomes = Lock(), deque[Outcome]()
    starts = range(0, total, run)
    with ThreadPoolExecutor(workers) as pool:
        try:
            for first in starts:
                pool.submit(_work_and_report, partial(work, first, min(first + run, total)), ended, outcomes)
            for _ in starts:
                _wait_for_one(ended, outcomes, process)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # waits only for runs that have begun
            raise


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """`work(item)` for each item, in order, by threads that work at most as many items ahead; after an error none begins."""
    workers = threads or available_threads()
    process = os.getpid()
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque[tuple[Lock, deque[Outcome]]]()
        try:
            for item in items:
                waiting.append((Lock(), deque()))
                pool.submit(_work_and_report, partial(work, item), *waiting[-1])
                if len(waiting) > workers:
                    yield _wait_for_one(*waiting.popleft(), process)
            while waiting:
                yield _wait_for_one(*waiting.popleft(), process)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def interruptible(work: Callable[[], Result]) -> Result:
    """`work()` in a thread of its own, so that a signal ends the wait for a library that waits for a network."""
    ended, outcomes = Lock(), deque[Outcome]()
    Thread(target=_work_and_report, args=(work, ended, outcomes), daemon=True).start()
    result: Result = _wait_for_one(ended, outcomes, os.getpid())
    return result


def _work_and_report(work: Callable[[], object], ended: Lock, outcomes: deque[Outcome]) -> None:
    try:
        outcomes.append((work(), None))
    except BaseException as error:  # noqa: BLE001  # the waiting thread raises it again
        outcomes.append((None, error))
    with suppress(RuntimeError):  # somebody else has just released it
        ended.release()


def _wait_for_one(ended: Lock, outcomes: deque[Outcome], process: int) -> Any:
    """The result of work that has ended, or its error.

    By a lock that nobody holds for long: in a forked child the lock of a future can stay locked for ever, and a queue of Python 3.11
    waits for ever after a signal whose handler took longer than its timeout.
    """
    while not outcomes:
        if not ended.acquire(timeout=_SECONDS_BETWEEN_LOOKS):
            check_same_process(process)
    result, problem = outcomes.popleft()
    if problem is not None:
        raise problem
    return result


def check_same_process(process: int) -> None:
    """Refuses to go on in a forked child: threads, and their locks, stay with the parent."""
    if os.getpid() != process:
        raise RuntimeError("the process was forked in the middle of this work; do it again in the child")


class cached_attribute(cached_property[Value]):  # noqa: N801  # a decorator, like property
    """`functools.cached_property` without the lock that Python 3.11 has for all instances of a class.

    With it a large transform would make every other one wait, and a child forked meanwhile would wait for ever. Here two threads may
    both compute; the values are equal, and one of them stays.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        super().__init__(function)
        self.lock = nullcontext()
