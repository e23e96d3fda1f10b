"""How time is taken: warmed up, best of several, ours and the peer's in turn."""

import gc
import time
from functools import partial
from typing import Any

import numpy as np
from cases import Case, Work
from numpy.typing import NDArray

from armslength._numba import kernel
from armslength.threads import for_blocks

_PAUSE = 0.05  # seconds: a BLAS's threads go on spinning after a call, and would be counted as the next one's


def measured(case: Case, repeats: int) -> dict[str, Any]:
    """One line of the report: seconds of ours, of each of the peer's settings, and of reading the input."""
    theirs = case.theirs()
    works = {"ours": case.ours, **{f"peer {name}": work for name, work in theirs.items()}}
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        _seconds(work)
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(_seconds(work))
    best = {name: min(each) for name, each in times.items()}
    peers = {name: best[f"peer {name}"] / case.shares for name in theirs}
    fastest = min(peers, key=lambda name: peers[name])
    return {
        "work": case.work,
        "peer": case.peer,
        "target": case.target,
        "ours": best["ours"],
        "theirs": peers,
        "fastest": fastest,
        "ratio": peers[fastest] / best["ours"],
        "same": case.same,
        "same_ratio": peers[case.same] / best["ours"] if case.same else None,
        "limit": reading(case.reads) if case.reads else None,
    }


def best_seconds(work: Work, repeats: int) -> float:
    """The best of several runs, after one that is not counted."""
    _seconds(work)
    return min(_seconds(work) for _ in range(repeats))


def _seconds(work: Work) -> float:
    """One run, without what it takes to give its memory back."""
    gc.collect()
    time.sleep(_PAUSE)
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    del result
    return seconds


def reading(arrays: tuple[NDArray[Any], ...]) -> float:
    """Seconds to read all of the arrays once, with all threads."""
    words = [
        array.reshape(-1, order="A").view(np.uint8)[: array.nbytes // 8 * 8].view(np.uint64)
        for array in arrays
    ]

    def read() -> None:
        for each in words:
            for_blocks(len(each), 1 << 20, partial(_read, each))

    return best_seconds(read, 5)


def _read(words: NDArray[np.uint64], start: int, stop: int) -> None:
    _sum(words[start:stop])


@kernel
def _sum(words: NDArray[np.uint64]) -> np.uint64:
    total = np.uint64(0)
    for i in range(len(words)):
        total += words[i]
    return total
