"""Where the time of a release goes: its parts, each measured alone."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from cases import Case, Sizes, counts_release, dense_release, sparse_release
from timing import best_seconds, reading

from armslength.ingest.arrays import projected_sums
from armslength.noise.draw import add_noise
from armslength.threads import for_blocks


def _new_memory(shape: tuple[int, ...]) -> None:
    """Asks for the result's memory and touches it, as a release must."""
    result = np.empty(shape, dtype=np.int64)
    for_blocks(len(result), 64, partial(_clear, result))


def _clear(result: Any, start: int, stop: int) -> None:
    result[start:stop] = 0


def _releases(sizes: Sizes) -> Iterator[Case]:
    yield from dense_release(sizes)
    yield from counts_release(sizes)
    yield from sparse_release(sizes)


def parts(sizes: Sizes) -> list[dict[str, Any]]:
    """Seconds of the product (flooring included), of the noise, of new memory, and of reading the input."""
    found = []
    for case in _releases(sizes):
        work: Any = case.ours  # al.release of its X
        protocol, X = work.func.__self__, work.args[0]
        values = np.zeros((X.shape[0], protocol.transform.sketch_dim), dtype=np.int64)
        found.append(
            {
                "work": case.work,
                "whole": best_seconds(case.ours, sizes.repeats),
                "product": best_seconds(partial(projected_sums, protocol, X), sizes.repeats),
                "noise": best_seconds(partial(add_noise, values, protocol.law), sizes.repeats),
                "memory": best_seconds(partial(_new_memory, values.shape), sizes.repeats),
                "reading": reading(case.reads),
            }
        )
    return found
