"""Threads over blocks of rows, and attributes that are computed once.

Every call makes its own pool. A child that is forked meanwhile has none of its threads: it is refused and does not wait for them.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from armslength.checks import integer

_RUNS_PER_THREAD = 8
_SECONDS_BETWEEN_LOOKS = 0.5
Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


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
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def work_and_report(first: int) -> None:
        problem: BaseException | None = None
        try:
            work(first, min(first + run, total))
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it again
            problem = error
        ended.put(problem)

    starts = range(0, total, run)
    with ThreadPoolExecutor(workers) as pool:
        try:
            for first in starts:
                pool.submit(work_and_report, first)
            for _ in starts:
                _wait_for_one(ended, process)
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
        waiting: deque[tuple[SimpleQueue[BaseException | None], list[Result]]] = deque()
        try:
            for item in items:
                waiting.append((SimpleQueue(), []))
                pool.submit(_work_and_report, partial(work, item), waiting[-1][0], waiting[-1][1])
                if len(waiting) > workers:
                    ended, results = waiting.popleft()
                    _wait_for_one(ended, process)
                    yield results.pop()
            while waiting:
                ended, results = waiting.popleft()
                _wait_for_one(ended, process)
                yield results.pop()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def interruptible(work: Callable[[], Result]) -> Result:
    """`work()` in a thread of its own, so that a signal ends the wait for a library that waits for a network."""
    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    results: list[Result] = []
    Thread(target=_work_and_report, args=(work, ended, results), daemon=True).start()
    _wait_for_one(ended, os.getpid())
    return results.pop()


def _work_and_report(
    work: Callable[[], Result], ended: "SimpleQueue[BaseException | None]", results: list[Result]
) -> None:
    problem: BaseException | None = None
    try:
        results.append(work())
    except BaseException as error:  # noqa: BLE001  # the waiting thread raises it again
        problem = error
    ended.put(problem)


def check_same_process(process: int) -> None:
    """Refuses to go on in a forked child: threads, and their locks, stay with the parent."""
    if os.getpid() != process:
        raise RuntimeError(
            "work must stay in one process, but it was forked in the middle; do it again in the child"
        )


class cached_attribute(cached_property[Value]):  # noqa: N801  # a decorator, like property
    """`functools.cached_property` without the lock that Python 3.11 has for all instances of a class.

    With it a large transform would make every other one wait, and a child forked meanwhile would wait for ever. Here two threads may
    both compute; the values are equal, and one of them stays.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        super().__init__(function)
        self.lock = nullcontext()


def _wait_for_one(ended: "SimpleQueue[BaseException | None]", process: int) -> None:
    """Waits for the end of a run, and raises its error. Not by a future: in a forked child its lock could stay locked for ever."""
    while True:
        try:
            problem = ended.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except Empty:
            check_same_process(process)
            continue
        if problem is not None:
            raise problem
        return
