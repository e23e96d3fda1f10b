"""A pool of threads over blocks of rows, made for one call and gone after it.

No pool outlives its call, so a forked child never inherits one.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from armslength.checks import integer


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
    allowed = (
        available_threads() if threads is None else integer("threads", threads, at_least=1, at_most=1024)
    )
    starts = range(0, total, block)
    workers = min(allowed, len(starts))
    if workers <= 1:
        for start in starts:
            work(start, min(start + block, total))
        return
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work, start, min(start + block, total)) for start in starts]:
            done.result()
