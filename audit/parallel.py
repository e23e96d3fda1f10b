"""Long work of the audit on all cores, in processes of its own."""

import multiprocessing
from collections.abc import Callable, Sequence
from typing import TypeVar

from armslength.progress import progress
from armslength.threads import available_threads

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_processes(work: Callable[[_Job], _Result], jobs: Sequence[_Job], what: str) -> list[_Result]:
    """The result of each job, in the order of the jobs, with a bar on standard error.

    Args:
        work: A function of a module, which a new process can find by its name.
        jobs: Its arguments.
        what: Which work it is.
    """
    results = []
    with (
        progress(what, len(jobs), "jobs", show=True) as advance,
        multiprocessing.get_context("spawn").Pool(min(available_threads(), len(jobs))) as pool,
    ):
        for result in pool.imap(work, jobs):
            results.append(result)
            advance(1)
    return results
