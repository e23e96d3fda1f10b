"""A pool of threads over blocks of rows, made for one call and gone after it.

No pool outlives its call, so a forked child never inherits one.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from armslength.checks import integer

_RUNS_PER_THREAD = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """How many threads this process may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_blocks(total: int, block: int, work: Callable[[int, int], None], threads: int | None = None) -> None:
    """Calls `work(start, stop)` for consecutive blocks that cover `range(total)`, from several threads.

    Args:
        total: How many rows there are.
        block: How many rows a block has at most.
        work: Called once for each block; blocks must not share what they write.
        threads: At most this many threads; None takes all that the process may run.
    """

    def work_through(first: int, last: int) -> None:
        for start in range(first, last, block):
            work(start, min(start + block, last))

    for_runs(total, block, work_through, threads)


def for_runs(total: int, block: int, work: Callable[[int, int], None], threads: int | None = None) -> None:
    """Calls `work(first, last)` for consecutive runs of blocks, for work that keeps something from block to block.

    Neighbors in memory go to one thread, and several runs to each, so that none waits long at the end.
    """
    allowed = (
        available_threads() if threads is None else integer("threads", threads, at_least=1, at_most=1024)
    )
    blocks = -(-total // block)
    workers = min(allowed, blocks)
    if workers <= 1:
        if total:
            work(0, total)
        return
    run = -(-blocks // (workers * _RUNS_PER_THREAD)) * block
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, first, min(first + run, total)) for first in range(0, total, run)]:
            done.result()


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`work(item)` for each item, in their order, by as many threads as the process may run.

    No more results are made ahead than there are threads, and what has not begun when one fails never begins.
    """
    workers = available_threads()
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
