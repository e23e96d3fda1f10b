"""Time against d for FJLT and SJLT on dense vectors, and the interval in which the FJLT is faster."""

import math
from functools import partial
from typing import Any

import numpy as np
from timing import best_seconds

import armslength as al

DISTORTION, FAILURE = 0.1, 0.01
DIMENSIONS = tuple(2**power for power in range(6, 21, 2))
_ENTRIES = 2**22
_REPEATS = 3


def papers_size() -> tuple[int, int]:
    """(k, s) of the paper at these α and β, every hidden constant taken as 1; s divides k."""
    s = math.ceil(math.log(1 / FAILURE) / DISTORTION)
    return s * math.ceil(math.log(1 / FAILURE) / DISTORTION**2 / s), s


def times() -> list[dict[str, Any]]:
    """Milliseconds for one dense vector of counts in one thread, projection alone, without set-up."""
    k, s = papers_size()
    found = []
    for d in DIMENSIONS:
        rows = max(1, _ENTRIES // d // 16)
        X = np.random.default_rng(0).integers(0, 100, (rows, d), dtype=np.int64)
        transforms: dict[str, al.FastJL | al.SparseJL] = {
            "FJLT": al.FastJL(
                input_dim=d, sketch_dim=k, seed="time", density=min(1.0, math.log(1 / FAILURE) ** 2 / d)
            ),
            "SJLT, paper's s": al.SparseJL(input_dim=d, sketch_dim=k, sparsity=s, seed="time"),
            "SJLT, s=1": al.SparseJL(input_dim=d, sketch_dim=k, sparsity=1, seed="time"),
        }
        each = {
            name: 1000 * best_seconds(partial(transform.apply, X, threads=1), _REPEATS) / rows
            for name, transform in transforms.items()
        }
        found.append({"input_dim": d, "milliseconds": each})
    return found


def faster_interval(found: list[dict[str, Any]]) -> tuple[int, int] | None:
    """The smallest and the largest measured d at which the FJLT beats the SJLT at the paper's s."""
    faster = [
        row["input_dim"]
        for row in found
        if row["milliseconds"]["FJLT"] < row["milliseconds"]["SJLT, paper's s"]
    ]
    return (min(faster), max(faster)) if faster else None
